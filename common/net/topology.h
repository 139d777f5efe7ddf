/*
 * The roles of ranks. A *node* is one end of messages: workers are nodes 0..workers-1, servers are
 * nodes workers..workers+servers-1. A *rank* is a process. Dedicated servers have their own ranks,
 * after the workers' ranks. Servers in the switch are dedicated servers where the workers' links
 * meet, so that no link of their own limits them. Colocated servers are threads inside the first
 * workers' processes. Mixed: every worker has a colocated server, and spare servers have their own
 * ranks. Pure arithmetic.
 */
#ifndef PSRING_COMMON_NET_TOPOLOGY_H
#define PSRING_COMMON_NET_TOPOLOGY_H

#include "common/base/status.h"

enum placement { PLACEMENT_DEDICATED, PLACEMENT_COLOCATED, PLACEMENT_MIXED, PLACEMENT_SWITCH };
enum node_role { NODE_WORKER, NODE_SERVER };

struct topology {
    int workers;
    int servers; /* all of them */
    enum placement placement;
};

/* From the world size and --servers: the number of spare servers with mixed placement, else of all
 * servers. servers == 0 for backends without servers. Errors are logged. */
enum status topology_init(struct topology *topology, int world_size, int servers,
                          enum placement placement);

int topology_nodes(const struct topology *topology);
enum node_role topology_role(const struct topology *topology, int node);

/* The number of servers with their own ranks; they are the last servers. */
int topology_spare(const struct topology *topology);

/* The rank whose process hosts `node`. */
int topology_rank(const struct topology *topology, int node);

/* The rack of `node`, if each `rack_ranks` neighbouring ranks are a rack. -1: a server in the
 * switch, which is in none. */
int topology_rack(const struct topology *topology, int rack_ranks, int node);

/* The node with that role in the process of `rank`, or -1. */
int topology_node(const struct topology *topology, int rank, enum node_role role);

/*
 * A group: some of the world's ranks, in ascending order. Collective calls run in a group
 * (world.h). Worker w is rank w and node w, so the ranks of a workers' group are also nodes of the
 * transport.
 */

struct group {
    int size;
    int rank;                /* this process's index in `ranks`, or -1 */
    const int *ranks;        /* world ranks, ascending; `size` of them */
    struct group_impl *impl; /* for the world's collective calls; NULL in a mere list */
};

enum { GROUP_NONE = -1 }; /* the color of a rank that joins no group */

/*
 * Makes the group of `rank` from the colors of all ranks of a world: ranks with the same color >= 0
 * form a group. A rank with a color below 0 gets NULL. No messages. The caller frees `group` with
 * group_free. STATUS_NO_MEMORY is logged.
 */
enum status group_from_colors(struct group **group, const int *colors, int world_size, int rank);

/* Frees a group that has no collective calls (impl == NULL) and sets *group to NULL. A group of
 * world_group_new is freed with world_group_free. */
void group_free(struct group **group);

#endif
