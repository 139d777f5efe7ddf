/*
 * psring: trains a small CNN data-parallel and averages gradients through a parameter server or a
 * ring all-reduce. It measures both. This file finds the subcommand and runs it on the world of
 * ranks.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/descriptors.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/net/secure.h"
#include "common/net/watchdog.h"
#include "common/net/world.h"
#include "experiments/bench/bench.h"
#include "experiments/bench/info.h"
#include "experiments/config/config.h"
#include "experiments/config/config_table.h"
#include "experiments/config/launch.h"
#include "experiments/train/train.h"
#include "ring/baselines/baselines.h"

/* -------- satellites ---------------------------------------------------------------------------
 *
 * A build may leave out each satellite: cmake -DPSRING_REPORT=OFF. Its functions are then NULL
 * here, and no other file names them. The options of satellites are in
 * experiments/config/config_table.c. */

#if PSRING_ELASTIC
#include "experiments/elastic/elastic.h"
#else
#define elastic_serve NULL
#define elastic_train NULL
#endif
#if PSRING_PREDICT
#include "experiments/predict/predict.h"
#else
#define auto_choose NULL
#define predict_command NULL
#endif
#if PSRING_TRACE
#include "experiments/trace/trace.h"
#define TRACE_RECORDER &timeline_recorder
#else
#define replay_add NULL
#define trace_command NULL
#define TRACE_RECORDER NULL
#endif
#if PSRING_REPORT
#include "experiments/report/report.h"
static enum status report_alone(int argc, char **argv)
{
    return report_command(argc, argv, replay_add);
}
#else
#define compare_command NULL
#define report_alone NULL
#endif

/* psring train --join */
static enum status (*const join_job)(struct config *config) = elastic_train;

/* -------- interrupts -------------------------------------------------------------------------- */

/* Global for the signal handlers. Otherwise it belongs to run_on_world. */
static struct watchdog *watchdog;

/* mpirun sends SIGTERM to all ranks when one rank has ended. The watchdog finds out which one. */
static void on_terminate(int number)
{
    (void)number;
    /* NOLINTNEXTLINE(bugprone-signal-handler): stores an atomic and calls write */
    watchdog_signalled(watchdog);
}

/* Ctrl-C (mpirun passes it on as another signal and then prints nothing). Prints what remains of
 * the run, then ends as without a handler. */
static void write_and_exit(int number, const char *text, size_t length)
{
    ssize_t written = write(STDERR_FILENO, text, length);
    (void)written;
    signal(number, SIG_DFL);
    raise(number);
}

static void interrupt_train(int number)
{
    static const char text[] = "\n"
                               "psring: interrupted; rows written so far are complete, and a run "
                               "with --checkpoint DIR can be continued with --resume\n";
    write_and_exit(number, text, sizeof text - 1);
}

static void interrupt_bench(int number)
{
    static const char text[] = "\npsring: interrupted; rows written so far are complete\n";
    write_and_exit(number, text, sizeof text - 1);
}

static void interrupt_serve(int number)
{
    static const char text[] = "\n"
                               "psring: ended by a signal: the server's job, if it has one, "
                               "ends with an error on all workers, or with --checkpoint waits "
                               "for the server\n";
    write_and_exit(number, text, sizeof text - 1);
}

struct command {
    const char *name;
    const char *summary;
    enum config_command options;
    /* Logs its errors. If all ranks meet the same error, rank 0 logs it. */
    enum status (*run)(struct config *config, struct world *world);
    void (*on_interrupt)(int number); /* of SIGINT on rank 0; with `apart` also of SIGTERM */
    /* Instead of the fields above: a command of one process that parses its own arguments. */
    enum status (*alone)(int argc, char **argv);
    const char *own_options; /* options among these arguments, separated by spaces */
    /* Instead of `run`: a command that needs no world of ranks. */
    enum status (*apart)(struct config *config);
    const char *satellite; /* the build option of its satellite; NULL: it is in every build */
};

static enum status bench_any(struct config *config, struct world *world)
{
    return config->bench.layers ? bench_compute_run(config, world) : bench_run(config, world);
}

static enum status keys_command(int argc, char **argv)
{
    enum status status;
    bool helped;
    const char *folder = NULL;
    static const struct option_spec none[] = {{.name = NULL}};
    const struct options options = {
        .command = "psring keys",
        .summary = "Write the keys of a job to a new folder, for --secure DIR. Copy the folder to "
                   "all hosts: who has\nit can take part in the job and read its messages.",
        .specs = none,
        .operands = "DIR",
        .operands_error = "expected one folder, which is written",
        .found = &folder,
        .operand_count = 1,
    };
    TRY(options_parse(&options, argc, argv, NULL, &helped));
    if (helped)
        return STATUS_OK;
    TRY(secure_write_keys(folder));
    printf("wrote %s; copy it to all hosts, and start all ranks with --secure DIR\n", folder);
out:
    return status;
}

static const struct command commands[] = {
    {.name = "train",
     .summary = "Train a CNN on MNIST, alone or on several ranks.",
     .options = CONFIG_TRAIN,
     .run = train_run,
     .on_interrupt = interrupt_train},
    {.name = "bench",
     .summary = "Time the averaging of gradients by size, or computing by layer.",
     .options = CONFIG_BENCH,
     .run = bench_any,
     .on_interrupt = interrupt_bench},
    {.name = "serve",
     .summary = "Serve workers that join and leave (psring train --join).",
     .options = CONFIG_SERVE,
     .apart = elastic_serve,
     .on_interrupt = interrupt_serve,
     .satellite = "PSRING_ELASTIC"},
    {.name = "keys",
     .summary = "Write the keys of a job, so that only its members can connect (--secure).",
     .alone = keys_command,
     .own_options = "--help"},
    {.name = "predict",
     .summary = "Predict times and costs from fitted measurements.",
     .options = CONFIG_PREDICT,
     .apart = predict_command,
     .on_interrupt = SIG_DFL,
     .satellite = "PSRING_PREDICT"},
    {.name = "trace",
     .summary = "Show where the time of a training went, from its timeline.",
     .alone = trace_command,
     .own_options = "--step --help",
     .satellite = "PSRING_TRACE"},
    {.name = "report",
     .summary = "Write the page of a run, or print its summary: measurements, theory, a replay.",
     .alone = report_alone,
     .own_options = "--text --unsteady --figures --help",
     .satellite = "PSRING_REPORT"},
    {.name = "compare",
     .summary = "Compare the all-reduce times of two runs, as a table and a page.",
     .alone = compare_command,
     .own_options = "--help",
     .satellite = "PSRING_REPORT"},
    {.name = "info",
     .summary = "List what this build and this machine have.",
     .options = CONFIG_INFO,
     .run = info_run,
     .on_interrupt = SIG_DFL},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

/* Whether this build has the command. */
static bool is_built(const struct command *command)
{
    return command->run || command->alone || command->apart;
}

static void print_usage(FILE *out)
{
    fprintf(out, "usage: psring COMMAND [OPTION...]\n"
                 "Compare a parameter server with a ring all-reduce by training a small CNN.\n"
                 "\n");
    for (int i = 0; i < COMMANDS; i++) {
        if (is_built(&commands[i]))
            fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
    }
    fprintf(out,
            "\n"
            "psring help COMMAND lists the options of a command, like psring COMMAND --help.\n"
            "psring --version prints the version, --manual a manual page, and --completion a\n"
            "script that completes options in bash.\n"
            "Several ranks: mpirun -n 4 psring train --backend ring --data DIR\n"
            "(mpirun --quiet hides the lines that mpirun adds when psring fails)\n"
            "Without mpirun: see --rendezvous in psring train --help%s\n",
            join_job ? ", and psring serve" : "");
}

static void print_from_table(void (*print)(FILE *out, const struct manual_command *commands,
                                           size_t count))
{
    struct manual_command described[COMMANDS];
    size_t count = 0;
    for (int i = 0; i < COMMANDS; i++) {
        if (is_built(&commands[i]))
            described[count++] =
                (struct manual_command){commands[i].name, commands[i].summary, commands[i].options,
                                        commands[i].own_options};
    }
    print(stdout, described, count);
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    }
    return NULL;
}

static enum status no_such_command(const char *name)
{
    static const char *const options[] = {"--help", "--version", "--manual", "--completion"};
    char hint[64];
    bool option = name[0] == '-';
    struct nearest nearest = nearest_to(name);
    for (int i = 0; !option && i < COMMANDS; i++) {
        if (is_built(&commands[i]))
            nearest_offer(&nearest, commands[i].name);
    }
    for (size_t i = 0; option && i < sizeof options / sizeof *options; i++)
        nearest_offer(&nearest, options[i]);
    if (!option)
        nearest_offer(&nearest, "help");
    return FAIL(STATUS_USAGE, "%s: no such %s%s; psring --help lists them", name,
                option ? "option" : "command", nearest_hint(&nearest, "", hint, sizeof hint));
}

static enum status left_out(const struct command *command)
{
    return FAIL(STATUS_USAGE,
                "%s: this build has no such command, because %s is OFF; configure it with -D%s=ON",
                command->name, command->satellite, command->satellite);
}

static int exit_code(enum status status)
{
    const int stopped = 75; /* EX_TEMPFAIL of sysexits.h: not finished, start again */
    return status == STATUS_OK        ? 0
           : status == STATUS_USAGE   ? 2
           : status == STATUS_STOPPED ? stopped
                                      : 1;
}

/* -------- the run ----------------------------------------------------------------------------- */

/* The watchdog has logged the reason. Flushes stdout, but only if this is possible at once. */
static void end_process(int code)
{
    enum { FLUSH_S = 2 };
    alarm(FLUSH_S);
    if (ftrylockfile(stdout) == 0)
        fflush(stdout);
    _exit(code);
}

static enum status open_watchdog(const struct config *config)
{
    const double default_s = 60; /* after bad usage, when config has no values */
    double startup_s = config->startup_timeout > 0 ? config->startup_timeout : default_s;
    double timeout_s = config->timeout > 0 ? config->timeout : default_s;
    int rank = config->rendezvous ? (int)config->rank : launch_rank();
    /* A rendezvous has its own time limit and better messages, so the watchdog waits longer. It
     * still ends a rank that comes just before rank 0 gives up, or whose name server does not
     * answer. */
    double meet_s = config->rendezvous ? 2 * startup_s + 30 : startup_s;
    return watchdog_new(&watchdog, &(struct watchdog_options){
                                       .rank = rank,
                                       .startup_timeout_ms = (int64_t)(startup_s * 1000),
                                       .meet_timeout_ms = (int64_t)(meet_s * 1000),
                                       .timeout_ms = (int64_t)(timeout_s * 1000),
                                       .stall_warning_ms = (int64_t)(config->stall_warning * 1000),
                                       .subnet = config->subnet,
                                       .end = end_process,
                                   });
}

/* Meets the other ranks. If `usage` is an error, only this rank has it: bad usage on the first rank
 * would have ended all ranks. */
static enum status meet(struct config *config, enum status usage, struct world **world, int *argc,
                        char ***argv)
{
    enum status status = STATUS_OK;
    uint64_t job;
    activity_set(watchdog_activity(watchdog), ACTIVITY_MAIN, ACTIVITY_MEET, 0, 0);
    TRY(launch_job(config, &job));
    status = world_open(world, argc, argv,
                        &(struct world_options){
                            .subnet = config->subnet,
                            .startup_timeout_ms = (int64_t)(config->startup_timeout * 1000),
                            .rendezvous = config->rendezvous,
                            .token = job,
                            .rank = (int)config->rank,
                            .size = (int)config->world_size,
                            .alone = launch_alone(config),
                        });
    if (status != STATUS_OK)
        launch_warn_of_environment(config);
    TRY(status);
    TRY(watchdog_join(watchdog, *world));
    log_release(usage != STATUS_OK);
    TRY(usage);
    activity_set((*world)->activity, ACTIVITY_MAIN, ACTIVITY_SET_UP, 0, 0);
    TRY(config_resolve(config, *world));
out:
    log_release(true);
    return status;
}

/* Runs a command on all ranks. A failure of one rank ends all ranks. */
static int run_on_world(const struct command *command, struct config *config, enum status usage,
                        int argc, char **argv)
{
    struct world *world = NULL;
    config->choose = auto_choose;
    config->recorder = TRACE_RECORDER;
    library_request(config->bench.mpi_algorithm);
    enum status status = open_watchdog(config);
    if (status != STATUS_OK) {
        log_release(true);
        return exit_code(status);
    }
    signal(SIGTERM, on_terminate);
    status = meet(config, usage, &world, &argc, &argv);
    CHECK(status != STATUS_OK || command);
    if (status == STATUS_OK && world->rank == 0)
        signal(SIGINT, command->on_interrupt);
    if (status == STATUS_OK)
        status = command->run(config, world);
    if (status != STATUS_OK && status != STATUS_STOPPED) {
        fflush(stdout); /* what was measured; the watchdog ends the process */
        watchdog_fail(watchdog, exit_code(status));
        if (world && world->size > 1) /* the watchdog could not be connected */
            world_abort(world, exit_code(status));
    } else {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the ranks have met */
        activity_set(world->activity, ACTIVITY_MAIN, ACTIVITY_FINISH, 0, 0);
    }
    world_close(&world);
    config_free(config);
    struct sigaction now; /* a signal that stop_fini ignores stays ignored */
    if (sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler == on_terminate)
        signal(SIGTERM, SIG_DFL);
    watchdog_close(&watchdog);
    return exit_code(status);
}

/* The first rank logs what is wrong with the command line and ends; the launcher then ends all
 * ranks. Other ranks do not know yet whether the first rank has the same error, so they continue
 * and try to meet it. */
static int run_command(const struct command *command, int argc, char **argv)
{
    struct config config = {0};
    bool helped = false;
    enum status status;
    if (launch_rank() > 0) {
        char rank_name[24];
        snprintf(rank_name, sizeof rank_name, "rank %d", launch_rank());
        log_set_name(rank_name);
        log_hold();
    }
    /* Parses before MPI starts, so that --help and bad usage need no MPI. */
    if (!command)
        status = no_such_command(argv[0]);
    else if (!is_built(command))
        status = left_out(command);
    else
        status = config_parse(command->options, argc, argv, &config, &helped);
    /* Only rank 0 checks the data: other ranks may be servers, which need no data. Not at a
     * rendezvous, where the other ranks would wait for this one. */
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): no_such_command has failed */
    if (status == STATUS_OK && !helped && command->options == CONFIG_TRAIN && launch_rank() == 0 &&
        !config.rendezvous)
        status = train_check_data(&config);
    if (status != STATUS_OK && (launch_rank() == 0 || config.rendezvous)) {
        log_release(true); /* at a rendezvous each rank logs its own errors */
        return exit_code(status);
    }
    if (helped)
        return 0;
    if (status == STATUS_OK && (config.rendezvous || command->apart))
        log_release(true); /* as above; no MPI brings these processes together */
    if (status == STATUS_OK && config.secure) {
        status = secure_open(config.secure);
        if (status != STATUS_OK)
            return exit_code(status);
    }
    if (status == STATUS_OK && command->apart) {
        signal(SIGTERM, command->on_interrupt);
        signal(SIGINT, command->on_interrupt);
        return exit_code(command->apart(&config));
    }
    if (status == STATUS_OK && (config.elastic.join || config.elastic.survives) && join_job)
        return exit_code(join_job(&config));
    return run_on_world(command, &config, status, argc, argv);
}

/* Opens descriptors below 3 that are closed. Otherwise the first socket would get such a
 * descriptor, and log lines would go into that socket. Standard output stays unwritable, so that
 * lost results are still an error. */
static void open_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 &&
            /* cppcheck-suppress leakReturnValNotUsed ; stays open as a standard stream */
            open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) < 0)
            return;
    }
}

static int run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    char help[] = "--help", *asked[] = {argv[0], help, help, NULL};
    if (strcmp(name, "help") == 0) { /* treat help COMMAND as COMMAND --help */
        if (argc > 2 && strcmp(argv[2], name) != 0)
            asked[1] = argv[2];
        name = asked[1];
        argc = 3;
        argv = asked;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(name, "--version") == 0) {
        printf("psring %s\n", PSRING_VERSION);
        return 0;
    }
    if (strcmp(name, "--manual") == 0 || strcmp(name, "--completion") == 0) {
        print_from_table(strcmp(name, "--manual") == 0 ? manual_print : manual_print_completion);
        return 0;
    }
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    const struct command *command = find_command(name);
    if (command && command->alone)
        return exit_code(command->alone(argc - 1, argv + 1));
    int code = run_command(command, argc - 1, argv + 1);
    secure_close();
    return code;
}

int main(int argc, char **argv)
{
    enum { DESCRIPTORS = 65536 }; /* MPI and ZeroMQ open more than psring can count */
    open_standard_streams();
    (void)descriptors_for(DESCRIPTORS);
    int code = run(argc, argv);
    bool succeeded = code == 0 || code == exit_code(STATUS_STOPPED);
    enum status printed = succeeded ? result_flush_stdout() : STATUS_OK;
    return printed == STATUS_OK ? code : exit_code(printed);
}
