/*
 * Who plays what. A *node* is one end of messages: workers are nodes 0..workers-1, servers are
 * nodes workers..workers+servers-1. A *rank* is a process. Dedicated servers have ranks of their
 * own, after the workers'; colocated servers are threads inside the first workers' processes.
 * Mixed: first a colocated server in every worker, then spare ones on ranks of their own. Pure
 * arithmetic.
 */
#ifndef PSRING_COMMON_NET_WORLD_TOPOLOGY_H
#define PSRING_COMMON_NET_WORLD_TOPOLOGY_H

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

#endif
