/*
 * Internal to common/net: what a bootstrap gives a world. world.c holds what all worlds share; a
 * bootstrap brings the ranks together and carries their collective calls.
 */
#ifndef PSRING_COMMON_NET_WORLD_IMPL_H
#define PSRING_COMMON_NET_WORLD_IMPL_H

#include "common/net/world.h"

/* A collective call: what each rank gives (`in`) and gets (`out`), `bytes` bytes unless stated. */
enum world_call {
    WORLD_BARRIER,   /* nothing */
    WORLD_BROADCAST, /* the root's `in`; `in` and `out` are the same */
    WORLD_GATHER,    /* all get all, by index */
    WORLD_COLLECT,   /* the root gets all, by index */
    WORLD_SCATTER,   /* the root gives to all, by index */
};

/* All but close and abort are collective over `group` (NULL: the world) and bounded by
 * world_patience_ms. Errors are logged, with the rank that is missing where that is known. */
struct world_ops {
    bool in_one_process; /* all ranks are, and have no sockets: a simulation */
    enum status (*call)(struct world *world, const struct group *group, enum world_call call,
                        const void *in, void *out, size_t bytes);
    /* (optional) MPI_Allreduce. */
    enum status (*allreduce_float)(struct world *world, const struct group *group, float *data,
                                   size_t count);
    /* Collective over the world. `group` is NULL on a rank whose color is below 0; else sets
     * group->impl, if it needs one. */
    enum status (*group_open)(struct world *world, struct group *group, int color);
    void (*group_close)(struct group *group);
    /* (optional) This process's end of the connection to `rank`, which rank 0 has to all ranks and
     * the others to rank 0. 0 or an errno value. */
    int (*own_address)(const struct world *world, int rank, union address *address);
    /* (optional) world_fail. */
    void (*fail)(struct world *world, enum status status, const char *why);
    /* (optional) world_close_in_child. */
    void (*close_in_child)(const struct world *world);
    /* (optional) Ends the other ranks; world.c ends this one. */
    void (*abort)(struct world *world, int exit_code);
    /* Frees world->impl. Also after an open that failed. */
    void (*close)(struct world *world);
};

enum { WORLD_LOOK_MS = 200 }; /* between two questions whether to give up, or to warn */

/* How long a collective call may take; 0: for ever, because somebody watches and ends what takes
 * too long. */
static inline int64_t world_patience_ms(const struct world *world)
{
    return world->activity ? 0 : world->timeout_ms;
}

/*
 * Connects ranks to the first of each group (reach.c): `root` is that of this rank, or -1. A root
 * sets sockets[rank] (by rank) of those that are to connect to LISTENER_AWAITED, and listens at
 * `at`; NULL: nowhere. Each of the others gets sockets[root] where that is below 0. Within
 * world->timeout_ms. Collective over the world.
 */
enum status world_connect_to_root(struct world *world, int root, const union address *at,
                                  int *sockets);

/* Sets world->address (reach.c). Collective. */
enum status world_find_address(struct world *world, const char *subnet);

/*
 * Each sets world->ops first (so that `close` frees what a failed open leaves), then impl, rank,
 * size and concurrent.
 */
enum status world_mpi_open(struct world *world, int *argc, char ***argv,
                           const struct world_options *options);
/* options->rendezvous NULL: a world of one. */
enum status world_rendezvous_open(struct world *world, const struct world_options *options);

#ifdef PSRING_HAVE_MPI

/* What the MPI transport needs of a world that MPI has brought together. */

#include <mpi.h>

/* The communicator of a world that MPI has brought together (world_is_mpi): a duplicate of
 * MPI_COMM_WORLD, or what was given, that returns errors. */
MPI_Comm world_mpi_comm(const struct world *world);

/* Logs MPI's own text for `code` unless it is MPI_SUCCESS. `what` names the call. */
enum status status_from_mpi(int code, const char *what);

#endif

#endif
