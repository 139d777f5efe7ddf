/*
 * The processes that run together: their number, this process's rank, and which ranks share a
 * machine. They meet in one of two ways, by MPI (mpirun, srun, or one process alone) or at a
 * rendezvous. For a rendezvous all ranks are given rank 0's address, and need no launcher.
 * Collective calls here are for set-up and for gathering results. Gradients use
 * common/net/transport.
 *
 * Threads: created, used and freed by the main thread. All calls block without keeping a CPU busy,
 * because the ranks of an experiment often outnumber the cores. MPI's calls test, yield, then
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
struct reunion; /* shrink.c */

struct world {
    int rank;
    int size;
    int local_rank; /* among the ranks of this host: the same name and the same kernel */
    int local_size;
    int machine;      /* number of the running kernel, across its hosts: the lowest rank on it */
    int cores;        /* on which this process may run */
    int sharing_cpus; /* ranks, including this one and those of other hosts' names, that may run on
                       * one of its cores */
    bool concurrent;  /* several threads may call MPI at once (MPI_THREAD_MULTIPLE) */
    uint64_t run_id;  /* the same on all ranks, different in every run; secret (message.h) */
    char host[WORLD_HOST_BYTES];     /* the name of this host */
    char (*hosts)[WORLD_HOST_BYTES]; /* the names of all ranks' hosts, by rank */
    union address *address; /* at which other ranks reach this one; see world_choose_address */
    int *host_numbers;      /* by rank: the lowest rank on its host */
    /* The longest round trip between rank 0 and another host: the least that TCP has seen on a
     * connection, without the queues of later traffic. Equal on all ranks. 0: one host. */
    double round_trip_s;
    /* Collective calls fail after this time; 0: never. Initially the start-up's time-out. */
    int64_t timeout_ms;
    bool failed;                      /* world_fail was called */
    bool elastic;                     /* another world can follow without a rank that fails */
    int64_t stall_warning_ms;         /* without a watchdog, warn about longer waits; 0: never */
    bool (*cancelled)(void *context); /* from world_options */
    void *cancel_context;
    struct activity *activity; /* what this process is doing; NULL: no watchdog reads it, and calls
                                * time out themselves */
    const struct world_ops *ops;
    struct world_impl *impl;
    struct reunion *reunion; /* NULL: this world cannot shrink */
};

struct world_options {
    const char *subnet; /* the interface or network for MPI, unless its launcher names one; NULL:
                         * MPI chooses, and the ranks find addresses by which they reach each
                         * other */
    int64_t startup_timeout_ms; /* until all ranks have met; 0: none */
    const char *rendezvous;     /* "tcp://HOST:PORT", where rank 0 listens; NULL: MPI */
    uint64_t token;             /* with `rendezvous`: the job's token, the same on all ranks */
    int rank, size;             /* of this process and of the world; with `rendezvous` only */
    int listening;              /* rank 0: a listening socket of `rendezvous`, taken. 0: none */
    bool (*cancelled)(void *context); /* with `rendezvous`: asked now and then, while no rank sends
                                       * anything, whether to stop waiting (STATUS_TRANSPORT, not
                                       * logged); NULL: never stop */
    void *cancel_context;
    bool embedded;        /* libpsring: sets no environment variables of the program */
    bool elastic;         /* the caller opens another world without a rank that fails alone */
    bool shrinks;         /* with `rendezvous`: world_shrink may follow */
    const char *job;      /* with `shrinks`: options that all workers have in common, below 4,096
                           * bytes; newcomers with the same may join. NULL: nobody can */
    uint64_t join_after;  /* of world_join */
    bool alone;           /* no MPI and no rendezvous: a world of one */
    const void *mpi_comm; /* with MPI: an MPI_Comm, whose ranks are the world. NULL: all */
};

/* Whether a call that waits for other ranks must stop waiting. */
bool world_cancelled(const struct world *world);
/* The same, as a listener or stream_wait asks it. */
bool world_looks(void *world);

/* listener_let_in for this world's ranks (sockets: (count)), within its time-out. Meanwhile it asks
 * world_cancelled. */
int world_let_in(struct world *world, struct listener *listener, int *sockets, int count);

/* Fails on all ranks if one of them cannot open `more` file descriptors, which its process needs.
 * Raises the soft limit if necessary. Collective. STATUS_UNSUPPORTED names the rank. If
 * another world can follow, ranks that have enough get STATUS_TRANSPORT, because they continue. */
enum status world_check_descriptors(struct world *world, int more);

/*
 * The address at which this rank listens for other ranks. `subnet` (--subnet): see address_choose.
 * Without it, 127.0.0.1 if all ranks are on one host. Otherwise rank 0 takes the address by which
 * other ranks reached it. Another rank takes the address from which it reached rank 0. Errors:
 * logged.
 */
enum status world_choose_address(const struct world *world, const char *subnet,
                                 union address *address);

/* Brings the ranks together. MPI may be initialised already. argc and argv are main's (both may be
 * NULL); `options` NULL: none. */
enum status world_open(struct world **world, int *argc, char ***argv,
                       const struct world_options *options);

/* Finalises MPI if world_open has initialised it, or closes the connections. Collective. Frees
 * *world and sets it to NULL. */
void world_close(struct world **world);

/* For a process that continues after an error. This rank makes no further collective call. Ranks
 * that wait for it in a collective call get an error; with MPI they wait for their time-out. Only
 * world_close may follow; it waits for no rank. */
void world_fail(struct world *world, enum status status, const char *why);

/*
 * After world_fail: makes a world of the ranks that are left, in the same order. All of them call
 * it. It leaves out a member that dies meanwhile. A rank has ended if its host refuses a connection
 * to it. The call also leaves out ranks that do not come within timeout_ms. Then at least half of
 * the ranks must come, because the silent ones may do the same. `why`: with which status
 * `failed` failed. After STATUS_TIMEOUT a rank was silent already, so a short wait is enough.
 * STATUS_STOPPED: all have agreed to meet. Returns STATUS_TIMEOUT: too few have come.
 * STATUS_TRANSPORT: the others have continued without this rank. STATUS_UNSUPPORTED: an MPI world,
 * or one opened without `shrinks`. Logged. Cost: six messages per rank, and one more for every 0.2
 * s of waiting; `failed` keeps nothing but its memory.
 */
enum status world_shrink(struct world **world, struct world *failed, enum status why,
                         int64_t timeout_ms);
/*
 * The others may exclude a rank that is silent for timeout_ms: it was stopped, or computed for too
 * long. They may have ended before it asks them. Then world_shrink must know whether this rank was
 * silent. world_acts says that it is not. Any thread calls it in each wait for messages and between
 * two steps. world_has_met says that a call or an all-reduce of all ranks has ended. This rank
 * began it after the last such call. The third one after a silence shows that no rank had left.
 */
void world_acts(const struct world *world);
void world_has_met(const struct world *world);

/*
 * Newcomers (shrink_join.c). Each rank of a world with a `job` listens for them at a *door*.
 *
 * world_newcomers answers those that have knocked, once it knows whether it can reach them. A call
 * waits for this for at most 10 ms. It returns the step after which the first of them wants to
 * enter. UINT64_MAX: none. `step` have been done so far. `most` workers are the limit, beyond which
 * it refuses newcomers. 0: no limit. After an agreed step all ranks call world_fail and
 * world_shrink. Up to four of those that want to enter by then get the last ranks of the new world.
 * world_door: where newcomers can knock. False: nowhere.
 *
 * world_join enters such a world as a newcomer. It uses these of the options: rendezvous (a
 * door), token, job, startup_timeout_ms, and join_after. That is the step after which it enters,
 * for which it waits without limit. STATUS_USAGE: refused. STATUS_TIMEOUT: not let in. Logged.
 */
uint64_t world_newcomers(struct world *world, uint64_t step, int most);
bool world_door(const struct world *world, union address *door);
enum status world_join(struct world **world, const struct world_options *options);

/* The rank in the first world, or the number that a newcomer got; -1: the world cannot shrink. */
int world_identity(const struct world *world, int rank);

/* `shrunk`, which came from world_shrink, has failed before it was used: `failed` may shrink
 * again. */
void world_shrink_again(struct world *failed, struct world *shrunk);

/* In a child of fork(): closes the inherited connections without any message to the other ends.
 * MPI's connections stay. */
void world_close_in_child(const struct world *world);

/* Ends this process with `exit_code` at once; with MPI, also every other process. For a rank that
 * cannot continue. */
_Noreturn void world_abort(struct world *world, int exit_code);

/* Writes name and version of the MPI library into `text`. False: this build has no MPI, so that MPI
 * can open no world. */
bool world_mpi_version(char *text, size_t size);

/* Whether MPI has brought the ranks together; then its calls can be used. */
bool world_is_mpi(const struct world *world);

/* True if ranks with this number of threads each outnumber the cores that they share. A wait must
 * then give up the CPU. */
bool world_crowded(const struct world *world, int threads);

/*
 * Makes groups (topology.h). Collective over the world: ranks with the same color >= 0 form a
 * group. A rank with a color below 0 (GROUP_NONE) joins none and gets NULL. Ranks keep their order.
 */
enum status world_group_new(struct group **group, struct world *world, int color);
/* Frees *group and sets it to NULL. Collective over the group: all of its ranks call it. */
void world_group_free(struct group **group, struct world *world);

/* The following are collective over the group; group == NULL: over the whole world. */
enum status world_barrier(struct world *world, const struct group *group);
/* Sends rank 0's `bytes` bytes at `data` to all ranks. */
enum status world_broadcast(struct world *world, const struct group *group, void *data,
                            size_t bytes);
/* Gathers every rank's `bytes` bytes in `all` (size * bytes, by rank) on every rank. */
enum status world_gather(struct world *world, const struct group *group, const void *mine,
                         size_t bytes, void *all);
/* The same, but only on rank 0: the other ranks' `all` is not used, and may be NULL. */
enum status world_collect(struct world *world, const struct group *group, const void *mine,
                          size_t bytes, void *all);
/* The inverse: sends each rank its `bytes` bytes of rank 0's `all`, into `mine`. */
enum status world_scatter(struct world *world, const struct group *group, const void *all,
                          size_t bytes, void *mine);
/* Elementwise sum in double / maximum, on every rank, in place. Gathers all values. */
enum status world_sum(struct world *world, const struct group *group, double *values, size_t count);
enum status world_max(struct world *world, const struct group *group, double *values, size_t count);
/* Elementwise float sum in place through MPI_Allreduce: the library's baseline, not psring's own
 * algorithm. Blocks as MPI does. At most INT_MAX elements. Only if world_is_mpi, and in a group.
 * May run on another thread than the calls above. */
enum status world_allreduce_float(struct world *world, const struct group *group, float *data,
                                  size_t count);

/* A wait that backs off: spins, then yields, then sleeps up to 100 us. If ranks outnumber cores it
 * sleeps at once, up to 200 us. Start from zero. */
struct backoff {
    uint32_t rounds;
};
void backoff_wait(struct backoff *backoff, bool crowded);

#endif
