/*
 * The processes that run together: how many, which one this is, which share a machine. Two ways to
 * bring them together: MPI (mpirun, srun, or one process alone), and a rendezvous: all are told
 * where rank 0 listens, and need no launcher. Collective calls here are for set-up and for
 * gathering results; gradients go through common/net/transport.
 *
 * Threads: created, used and freed by the main thread. All calls block, and leave the CPU to
 * others, because the ranks of an experiment often outnumber the cores: MPI's test, yield, then
 * sleep; those of a rendezvous wait in poll(2).
 */
#ifndef PSRING_COMMON_NET_WORLD_H
#define PSRING_COMMON_NET_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/activity.h"
#include "common/net/topology.h"

enum { WORLD_HOST_BYTES = 64 };

union address; /* common/net/address.h */
struct listener;

struct world {
    int rank;
    int size;
    int local_rank; /* among the ranks of this host: of its name, on one kernel */
    int local_size;
    int machine; /* the running kernel's number, whatever hosts it plays: the lowest rank on it */
    int cores;   /* that this process may run on */
    int sharing_cpus; /* ranks, this one included, that may run on one of them, on whatever host
                         name */
    bool concurrent;  /* several threads may call MPI at once (MPI_THREAD_MULTIPLE) */
    uint64_t run_id;  /* the same on all ranks, different in every run */
    char host[WORLD_HOST_BYTES];     /* the name of this one */
    char (*hosts)[WORLD_HOST_BYTES]; /* of all ranks, by rank */
    union address *address; /* by which other ranks reach this one; see world_choose_address */
    int *host_numbers;      /* by rank: equal on one host, where it is the lowest rank */
    /* Collective calls fail after so long; 0: never. At first the start-up's. */
    int64_t timeout_ms;
    bool failed;              /* world_fail was called */
    int64_t stall_warning_ms; /* where no watchdog watches, such a wait is warned of; 0: is not */
    bool (*cancelled)(void *context); /* of world_options */
    void *cancel_context;
    struct activity *activity; /* what this process is doing; NULL: nobody asks (../watchdog), and
                                * calls time out by themselves */
    const struct world_ops *ops;
    struct world_impl *impl;
};

struct world_options {
    const char *subnet; /* the interface or network that MPI is to use, unless its launcher names
                           one; NULL: MPI chooses, and the ranks find addresses by which they
                           reach each other */
    int64_t startup_timeout_ms; /* of all ranks coming together; 0: none */
    const char *rendezvous;     /* "tcp://HOST:PORT", where rank 0 listens; NULL: by MPI */
    uint64_t token;             /* with `rendezvous`: of the job, alike on all ranks */
    int rank, size;             /* of this process, of the world; with `rendezvous` only */
    int listening;              /* rank 0: a socket that listens at `rendezvous`, taken; 0: none */
    bool (*cancelled)(void *context); /* with `rendezvous`: asked now and then, while nothing comes
                                       * from another rank, whether to wait no longer
                                       * (STATUS_TRANSPORT, not logged); NULL: no */
    void *cancel_context;
    bool embedded;        /* libpsring: sets no environment variable of its host */
    bool alone;           /* neither: a world of one */
    const void *mpi_comm; /* by MPI: an MPI_Comm, whose ranks are the world; NULL: all */
};

/* Whether whoever waits for other ranks is to wait no longer. */
bool world_cancelled(const struct world *world);

/* listener_let_in of this world's ranks (sockets: (count)), within its time-out; asks
 * world_cancelled meanwhile. */
int world_let_in(const struct world *world, struct listener *listener, int *sockets, int count);

/* Fails on all ranks alike where one of them cannot open `more` file descriptors, which its process
 * needs. Collective; raises the soft limit where it has to. STATUS_UNSUPPORTED names the rank. */
enum status world_check_descriptors(struct world *world, int more);

/*
 * The address at which this rank listens for other ranks. `subnet` (--subnet): see
 * address_choose. Without it, 127.0.0.1 if all ranks are on one host. Else rank 0 takes the address
 * by which it was reached, and another rank the one by which it reached rank 0. Errors: logged.
 */
enum status world_choose_address(const struct world *world, const char *subnet,
                                 union address *address);

/* Brings the ranks together; by MPI also where that has been initialised before. argc and argv are
 * main's (both may be NULL); `options` NULL: none. */
enum status world_open(struct world **world, int *argc, char ***argv,
                       const struct world_options *options);

/* Finalises MPI if world_open has initialised it, or closes the connections. Collective. Frees
 * *world and sets it to NULL. */
void world_close(struct world **world);

/* For a process that lives on after an error. This rank makes no further collective call. Ranks
 * that wait for it in one get an error; by MPI they wait for their time-out. Only world_close may
 * follow, and waits for no rank. */
void world_fail(struct world *world, enum status status, const char *why);

/* In a child of fork(): closes the connections that it has inherited, without a word to the other
 * ends. Those of MPI stay. */
void world_close_in_child(const struct world *world);

/* Ends this process with `exit_code`, at once, and by MPI every other one. For a rank that cannot
 * go on. */
_Noreturn void world_abort(struct world *world, int exit_code);

/* Name and version of the MPI library into `text`; false: this build has none, and no world that
 * MPI opens. */
bool world_mpi_version(char *text, size_t size);

/* MPI has brought the ranks together, so that its calls can be used. */
bool world_is_mpi(const struct world *world);

/* True where ranks with so many threads each outnumber the cores that they share: waiting must then
 * give up the CPU. */
bool world_crowded(const struct world *world, int threads);

/*
 * Makes groups (topology.h). Collective over the world: ranks of one color >= 0 form a group; a
 * rank with a color below 0 (GROUP_NONE) joins none and gets NULL. Ranks keep their order.
 */
enum status world_group_new(struct group **group, struct world *world, int color);
/* Frees *group and sets it to NULL. Collective over the group: all of its ranks call it. */
void world_group_free(struct group **group, struct world *world);

/* The following are collective over the group; group == NULL: over the whole world. */
enum status world_barrier(struct world *world, const struct group *group);
/* Rank 0's `bytes` bytes at `data` to everyone. */
enum status world_broadcast(struct world *world, const struct group *group, void *data,
                            size_t bytes);
/* Every rank's `bytes` bytes into `all` (size * bytes, by rank) on every rank. */
enum status world_gather(struct world *world, const struct group *group, const void *mine,
                         size_t bytes, void *all);
/* The same, but on rank 0 alone: elsewhere `all` is not looked at, and may be NULL. */
enum status world_collect(struct world *world, const struct group *group, const void *mine,
                          size_t bytes, void *all);
/* The way back: of `all` on rank 0, each rank's `bytes` bytes into its `mine`. */
enum status world_scatter(struct world *world, const struct group *group, const void *all,
                          size_t bytes, void *mine);
/* Elementwise sum in double / maximum, on every rank, in place; gathers all values. */
enum status world_sum(struct world *world, const struct group *group, double *values, size_t count);
enum status world_max(struct world *world, const struct group *group, double *values, size_t count);
/* Elementwise float sum in place through MPI_Allreduce: the library's baseline, not ours. Blocks as
 * MPI does. At most INT_MAX elements. Only where world_is_mpi, and in a group. May run on another
 * thread than the calls above. */
enum status world_allreduce_float(struct world *world, const struct group *group, float *data,
                                  size_t count);

/* Waiting that backs off: spins, then yields, then sleeps up to 100 us; where ranks outnumber cores
 * it sleeps at once, up to 200 us. Start from zero. */
struct backoff {
    uint32_t rounds;
};
void backoff_wait(struct backoff *backoff, bool crowded);

#endif
