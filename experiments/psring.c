/*
 * psring: trains a small CNN data-parallel, averaging gradients through a parameter server or a
 * ring all-reduce, and measures both. Finds the subcommand, runs it on the world of ranks.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/net/world.h"
#include "experiments/bench/bench.h"
#include "experiments/bench/bench_compute.h"
#include "experiments/config/config.h"
#include "experiments/measure/info.h"
#include "experiments/train/train.h"
#include "ring/vendor/library.h"

/* Ctrl-C (mpirun passes it on as another signal, and prints nothing any more): says what is left,
 * then ends as without a handler. */
static void say_and_end(int number, const char *text, size_t length)
{
    ssize_t written = write(STDERR_FILENO, text, length);
    (void)written;
    signal(number, SIG_DFL);
    raise(number);
}

static void on_interrupt_train(int number)
{
    static const char text[] =
        "\npsring: interrupted; rows written so far are whole, and a run that was started with "
        "--checkpoint DIR goes on with --resume\n";
    say_and_end(number, text, sizeof text - 1);
}

static void on_interrupt_bench(int number)
{
    static const char text[] = "\npsring: interrupted; rows written so far are whole\n";
    say_and_end(number, text, sizeof text - 1);
}

struct command {
    const char *name;
    const char *summary;
    enum config_command options;
    /* Logs its errors. STATUS_USAGE is met by all ranks alike. */
    enum status (*run)(struct config *config, struct world *world);
    void (*on_interrupt)(int number); /* of rank 0 */
};

static enum status bench_any(struct config *config, struct world *world)
{
    return config->bench_compute ? bench_compute_run(config, world) : bench_run(config, world);
}

static const struct command commands[] = {
    {"train", "Train a CNN on MNIST, alone or on several ranks.", CONFIG_TRAIN, train_run,
     on_interrupt_train},
    {"bench", "Time the averaging of gradients by size, or computing by layer.", CONFIG_BENCH,
     bench_any, on_interrupt_bench},
    {"info", "List what this build and this machine have.", CONFIG_INFO, info_run, SIG_DFL},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *out)
{
    fprintf(out, "usage: psring COMMAND [OPTION...]\n"
                 "Parameter server against ring all-reduce, measured by training a small CNN.\n\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\npsring COMMAND --help lists its options. psring --version prints the version.\n"
                 "Several ranks: mpirun -n 4 psring train --backend ring --data DIR\n"
                 "Without mpirun: see --rendezvous in psring train --help\n");
}

static int exit_code(enum status status)
{
    return status == STATUS_OK ? 0 : status == STATUS_USAGE ? 2 : 1;
}

/* A rank that fails ends the others, which would wait for it. Bad usage is met by all alike. */
static int run_on_world(const struct command *command, struct config *config, int argc, char **argv)
{
    struct world *world = NULL;
    library_request(config->mpi_algorithm);
    const struct world_options options = {
        .subnet = config->subnet,
        .startup_timeout_ms = (int64_t)(config->startup_timeout * 1000),
        .rendezvous = config->rendezvous,
        .rank = (int)config->rank,
        .size = (int)config->world,
    };
    enum status status = world_open(&world, &argc, &argv, &options);
    if (status != STATUS_OK)
        return exit_code(status);
    if (world->rank == 0)
        signal(SIGINT, command->on_interrupt);
    status = config_settle(config, world);
    if (status == STATUS_OK)
        status = command->run(config, world);
    if (status != STATUS_OK && status != STATUS_USAGE)
        world_abort(world, exit_code(status));
    world_close(&world);
    return exit_code(status);
}

/* mpirun ends all ranks when one exits with an error: rank 0, which speaks, is to be that.
 */
static int exit_after_first(int code)
{
    if (!config_speaks())
        clock_sleep_until_ns(clock_now_ns() + 3 * NS_PER_S);
    return code;
}

static int run_command(const struct command *command, int argc, char **argv)
{
    struct config config;
    bool helped = false;
    /* Before MPI starts, so that --help and bad usage need none. */
    enum status status = config_parse(command->options, argc, argv, &config, &helped);
    if (status != STATUS_OK)
        return exit_after_first(exit_code(status));
    if (helped)
        return 0;
    return run_on_world(command, &config, argc, argv);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(name, "--version") == 0) {
        printf("psring %s\n", PSRING_VERSION);
        return 0;
    }
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0)
            return run_command(&commands[i], argc - 1, argv + 1);
    }
    if (argc > 1 && config_speaks())
        log_error("%s: no such command; psring --help lists them", name);
    else if (config_speaks())
        print_usage(stderr);
    return exit_after_first(2);
}
