/* For tests of the rendezvous: ranks as processes of this machine, each with its exit code and its
 * output. Needs no MPI. */
#ifndef PSRING_TESTS_LIB_RANKS_H
#define PSRING_TESTS_LIB_RANKS_H

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/net/control.h"
#include "common/net/world.h"

enum { RANKS_MOST = 16, RANKS_LIMIT_S = 60 };

struct rank {
    int number, world_size;     /* like --rank and --world-size */
    int64_t startup_timeout_ms; /* 0: 30 s */
    const char *address;        /* NULL: the address of the others */
    uint64_t token;             /* of the rank's job */
    int64_t start_after_ms;
    /* Called when the rank has met the others; NULL: nothing. Returns the exit code. */
    int (*run)(struct world *world);

    pid_t process;
    FILE *said_file;
    int code; /* the exit code; -1: a signal */
    char said[4096];
    int lines;
};

/* A port of 127.0.0.1 that was free a moment ago. */
static inline int ranks_free_port(void)
{
    union address address = address_loopback();
    int listening;
    cr_assert_eq(stream_listen(&address, &listening), 0);
    cr_assert_eq(address_of_socket(listening, &address), 0);
    stream_close(&listening);
    return address_port(&address);
}

static inline _Noreturn void ranks_child(const struct rank *rank, const char *address)
{
    struct world *world;
    const struct world_options options = {
        .startup_timeout_ms = rank->startup_timeout_ms ? rank->startup_timeout_ms : 30000,
        .rendezvous = rank->address ? rank->address : address,
        .token = rank->token,
        .rank = rank->number,
        .size = rank->world_size,
    };
    alarm(RANKS_LIMIT_S);
    dup2(fileno(rank->said_file), STDERR_FILENO);
    clock_sleep_until_ns(clock_now_ns() + rank->start_after_ms * NS_PER_MS);
    enum status status = world_open(&world, NULL, NULL, &options);
    if (status != STATUS_OK)
        _exit(status == STATUS_USAGE ? 2 : 1);
    int code = rank->run ? rank->run(world) : 0;
    world_close(&world);
    _exit(code);
}

/* Starts all ranks without waiting for their ends. */
static inline void ranks_start(struct rank *ranks, size_t count, const char *address)
{
    for (size_t i = 0; i < count; i++) {
        ranks[i].said_file = tmpfile();
        cr_assert(ranks[i].said_file);
        ranks[i].process = fork();
        cr_assert(ranks[i].process >= 0);
        if (ranks[i].process == 0)
            ranks_child(&ranks[i], address);
    }
}

/* Waits for the end of each rank (which is bounded) and reads its output. */
static inline void ranks_wait(struct rank *ranks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int how;
        cr_assert_eq(waitpid(ranks[i].process, &how, 0), ranks[i].process);
        ranks[i].code = WIFEXITED(how) ? WEXITSTATUS(how) : -1;
        rewind(ranks[i].said_file);
        size_t length = fread(ranks[i].said, 1, sizeof ranks[i].said - 1, ranks[i].said_file);
        ranks[i].said[length] = '\0';
        fclose(ranks[i].said_file);
        ranks[i].lines = 0;
        for (const char *c = ranks[i].said; *c; c++)
            ranks[i].lines += *c == '\n';
    }
}

static inline void ranks_address(char text[64])
{
    snprintf(text, 64, "tcp://127.0.0.1:%d", ranks_free_port());
}

/* Runs all ranks at a new address. */
static inline void ranks_run(struct rank *ranks, size_t count)
{
    char address[64];
    ranks_address(address);
    ranks_start(ranks, count, address);
    ranks_wait(ranks, count);
}

/* Checks that each rank ended with `code` and printed one line, which contains `words`. */
static inline void ranks_all_say(const struct rank *ranks, size_t count, int code,
                                 const char *words)
{
    for (size_t i = 0; i < count; i++)
        cr_assert(ranks[i].code == code && ranks[i].lines == 1 && strstr(ranks[i].said, words),
                  "rank %d of %d: exit %d, expected %d, and one line with '%s'; it printed: %s",
                  ranks[i].number, ranks[i].world_size, ranks[i].code, code, words, ranks[i].said);
}

static inline void ranks_all_well(const struct rank *ranks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cr_assert(ranks[i].code == 0 && ranks[i].lines == 0, "rank %d: exit %d; it printed: %s",
                  ranks[i].number, ranks[i].code, ranks[i].said);
}

#endif
