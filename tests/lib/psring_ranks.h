/* For tests of libpsring through its header alone: ranks as processes of this machine that meet at
 * an address. Needs no MPI. */
#ifndef PSRING_TESTS_LIB_PSRING_RANKS_H
#define PSRING_TESTS_LIB_PSRING_RANKS_H

#include <psring.h>

#include <arpa/inet.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

enum { RANKS_MOST = 8, LIMIT_S = 60 };

/* In a rank's process: prints a condition that does not hold, and ends the process. */
#define MUST(cond) ((cond) ? (void)0 : rank_failed(#cond, __LINE__))

static inline _Noreturn void rank_failed(const char *condition, int line)
{
    fprintf(stderr, "line %d: %s; psring_error: %s\n", line, condition, psring_error());
    _exit(1);
}

/* Whether the status is the expected one, and psring_error() contains the words. */
static inline bool said(enum psring_status status, enum psring_status expected, const char *words)
{
    bool right = status == expected && strstr(psring_error(), words);
    if (!right)
        fprintf(stderr, "found %s: '%s', expected %s: '%s'\n", psring_status_name(status),
                psring_error(), psring_status_name(expected), words);
    return right;
}

/* Ranks can play that they are on several hosts: the library asks for the host's name and gets the
 * played one. */
static int played_host;

int gethostname(char *name, size_t size)
{
    snprintf(name, size, "host%d", played_host);
    return 0;
}

struct job {
    struct psring_options options; /* except for rank and rendezvous */
    int locals;                    /* neighbouring ranks on each host; 0: all on one host */
    bool dealt_out;                /* ranks are dealt to the hosts in turn, like cards */
    void (*run)(const struct psring_options *options);
};

/* A port that the kernel chose. The socket stays bound until the test ends, so no other process
 * gets the port. Rank 0 can still listen there (SO_REUSEADDR). */
static inline int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    cr_assert(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    cr_assert(getsockname(fd, (struct sockaddr *)&address, &bytes) == 0);
    return ntohs(address.sin_port);
}

/* Starts the job on all ranks, each in a process. Criterion's checks work only in the test's
 * process: a forked process must use MUST. */
static inline void start_ranks(const struct job *job, pid_t processes[RANKS_MOST])
{
    char rendezvous[64];
    struct psring_options options = job->options;
    snprintf(rendezvous, sizeof rendezvous, "tcp://127.0.0.1:%d", free_port());
    options.rendezvous = rendezvous;
    for (options.rank = 0; options.rank < options.size; options.rank++) {
        processes[options.rank] = fork();
        if (processes[options.rank] != 0)
            continue;
        alarm(LIMIT_S);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a stopped process gets no alarm */
        played_host = job->locals == 0 ? 0
                      : job->dealt_out ? options.rank % (options.size / job->locals)
                                       : options.rank / job->locals;
        job->run(&options);
        _exit(0);
    }
}

/* All ranks must end with 0, except those in `killed` (bits), which must end by SIGKILL. */
static inline void wait_for_ranks(const struct job *job, const pid_t processes[RANKS_MOST],
                                  unsigned killed)
{
    for (int rank = 0; rank < job->options.size; rank++) {
        int how = 0;
        cr_assert_eq(waitpid(processes[rank], &how, 0), processes[rank]);
        if (killed >> rank & 1)
            cr_expect(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
        else
            cr_expect(WIFEXITED(how) && WEXITSTATUS(how) == 0, "rank %d of %d ended with %x", rank,
                      job->options.size, (unsigned)how);
    }
}

static inline void run_ranks(const struct job *job, unsigned killed)
{
    pid_t processes[RANKS_MOST];
    start_ranks(job, processes);
    wait_for_ranks(job, processes, killed);
}

static inline struct psring *begin(const struct psring_options *options)
{
    struct psring *world;
    MUST(psring_init(&world, options) == PSRING_OK);
    MUST(psring_rank(world) == options->rank && psring_size(world) == options->size);
    return world;
}

#endif
