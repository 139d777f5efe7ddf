/*
 * Internal to common/net: the interface between a world and its bootstrap. world.c holds the common
 * part of all worlds. A bootstrap brings the ranks together and carries out their collective calls.
 */
#ifndef PSRING_COMMON_NET_WORLD_IMPL_H
#define PSRING_COMMON_NET_WORLD_IMPL_H

#include "common/net/world.h"

/* A collective call: each rank gives `in` and gets `out`, `bytes` bytes unless stated. */
enum world_call {
    WORLD_BARRIER,   /* nothing */
    WORLD_BROADCAST, /* the root's `in`; `in` and `out` are the same */
    WORLD_GATHER,    /* all ranks get all, by index */
    WORLD_COLLECT,   /* the root gets all, by index */
    WORLD_SCATTER,   /* the root gives to all, by index */
};

/* All but close and abort are collective over `group` (NULL: the world) and bounded by
 * world_patience_ms. Errors are logged and name the missing rank if it is known. */
struct world_ops {
    bool in_one_process; /* all ranks are in one process without sockets: a simulation */
    enum status (*call)(struct world *world, const struct group *group, enum world_call call,
                        const void *in, void *out, size_t bytes);
    /* (optional) MPI_Allreduce. */
    enum status (*allreduce_float)(struct world *world, const struct group *group, float *data,
                                   size_t count);
    /* Collective over the world. `group` is NULL on a rank whose color is below 0. Otherwise sets
     * group->impl if the group needs it. */
    enum status (*group_open)(struct world *world, struct group *group, int color);
    void (*group_close)(struct group *group);
    /* (optional) The TCP connection to `rank`; below 0: none. Rank 0 has one to all ranks, and the
     * others have one to rank 0. Borrowed. */
    int (*socket_to)(const struct world *world, int rank);
    /* (optional) world_fail. */
    void (*fail)(struct world *world, enum status status, const char *why);
    /* (optional) world_close_in_child. */
    void (*close_in_child)(const struct world *world);
    /* (optional) Ends the other ranks; world.c ends this one. */
    void (*abort)(struct world *world, int exit_code);
    /* Frees world->impl. Also called after a failed open. */
    void (*close)(struct world *world);
};

enum { WORLD_LOOK_MS = 200 }; /* between two checks whether to give up, or to warn */

/* The time-out of a collective call. 0: none, because a watchdog ends a call that takes too
 * long. */
static inline int64_t world_patience_ms(const struct world *world)
{
    return world->activity ? 0 : world->timeout_ms;
}

/*
 * Connects ranks to the first rank of each group (reach.c). `root` is the root of this rank's
 * group, or -1. A root sets sockets[rank] to LISTENER_AWAITED for each rank that is to connect, and
 * listens at `at`; NULL: it does not listen. Each other rank gets sockets[root] if it is below 0.
 * Within world->timeout_ms. Collective over the world.
 */
enum status world_connect_to_root(struct world *world, int root, const union address *at,
                                  int *sockets);

/* Sets world->address and world->round_trip_s (reach.c). Collective. */
enum status world_find_address(struct world *world, const char *subnet);

/*
 * Each sets world->ops first (so that `close` frees the remains of a failed open), then impl, rank,
 * size and concurrent.
 */
enum status world_mpi_open(struct world *world, int *argc, char ***argv,
                           const struct world_options *options);
/* options->rendezvous NULL: a world of one. */
enum status world_rendezvous_open(struct world *world, const struct world_options *options);
/* The same, but the ranks have met. `sockets` (size) is as after rendezvous_meet; taken unless
 * memory lacks. */
enum status world_rendezvous_adopt(struct world *world, int rank, int size, const int *sockets);

/* For world->cancelled: whether a rank has closed its connection. */
bool world_rendezvous_broken(void *world);

/* After one of these: who shares a host, the run id, the addresses. Collective. */
enum status world_settle(struct world *world, const char *subnet);

/* The socket at which survivors meet (shrink.c), and with options->job the door for newcomers: sets
 * world->reunion. Collective. */
enum status reunion_open(struct world *world, const struct world_options *options);
void reunion_close(struct reunion **reunion);
void reunion_close_in_child(const struct reunion *reunion);

#ifdef PSRING_HAVE_MPI

/* For the MPI transport, in a world that MPI has brought together. */

#include <mpi.h>

/* The communicator of such a world (world_is_mpi): a duplicate of MPI_COMM_WORLD or of the given
 * one. It returns errors. */
MPI_Comm world_mpi_comm(const struct world *world);

/* Logs MPI's own text for `code` unless it is MPI_SUCCESS. `what` names the call. */
enum status status_from_mpi(int code, const char *what);

#endif

#endif
