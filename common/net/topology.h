/*
 * Who plays what. A *node* is one end of messages: workers are nodes 0..workers-1, servers are
 * nodes workers..workers+servers-1. A *rank* is a process. Dedicated servers have ranks of their
 * own, after the workers'; colocated servers are threads inside the first workers' processes.
 * Mixed: first a colocated server in every worker, then spare ones on ranks of their own. Pure
 * arithmetic.
 */
#ifndef PSRING_COMMON_NET_TOPOLOGY_H
#define PSRING_COMMON_NET_TOPOLOGY_H

#include <stdbool.h>

#include "common/base/status.h"

enum placement { PLACEMENT_DEDICATED, PLACEMENT_COLOCATED, PLACEMENT_MIXED };
enum node_role { NODE_WORKER, NODE_SERVER };

struct topology {
    int workers;
    int servers; /* all of them */
    enum placement placement;
};

/* From the world size and --servers: with mixed placement that many spare servers, else all.
 * servers == 0 for backends without any. Errors are logged. */
enum status topology_init(struct topology *topology, int world_size, int servers,
                          enum placement placement);

int topology_nodes(const struct topology *topology);
enum node_role topology_role(const struct topology *topology, int node);

/* Servers with ranks of their own; they are the last ones. */
int topology_spare(const struct topology *topology);

/* The rank whose process hosts `node`. */
int topology_rank(const struct topology *topology, int node);

/* The node of that role hosted by `rank`, or -1. */
int topology_node(const struct topology *topology, int rank, enum node_role role);

/*
 * A group: some of the world's ranks, in ascending order. Collective calls run in one (world.h).
 * Worker w is rank w and node w, so the ranks of a workers' group are also nodes of the transport.
 */

struct group {
    int size;
    int rank;                /* this process's index in `ranks`, or -1 */
    const int *ranks;        /* world ranks, ascending; `size` of them */
    struct group_impl *impl; /* what the world's collective calls need; NULL in a mere list */
};

enum { GROUP_NONE = -1 }; /* the color of a rank that joins no group */

/*
 * Makes the group of `rank` from the colors of all ranks of a world: those of one color >= 0 are
 * together. A rank with a color below 0 gets NULL. No messages; `group` is the caller's, see
 * group_free. STATUS_NO_MEMORY is logged.
 */
enum status group_from_colors(struct group **group, const int *colors, int world_size, int rank);

/* Frees a group that no collective call can use (impl == NULL) and sets *group to NULL. Groups of
 * world_group_new end with world_group_free. */
void group_free(struct group **group);

#endif
