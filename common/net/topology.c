#include "common/net/topology.h"

#include <stdlib.h>

#include "common/base/status.h"

enum status topology_init(struct topology *topology, int world_size, int servers,
                          enum placement placement)
{
    int workers = placement == PLACEMENT_COLOCATED ? world_size : world_size - servers;
    if (workers < 1)
        return FAIL(STATUS_USAGE,
                    "--servers %d: dedicated servers have processes of their own, and only %d "
                    "process%s started; start %d (1 worker + %d), or use --placement colocated",
                    servers, world_size, world_size == 1 ? " was" : "es were", servers + 1,
                    servers);
    if (servers > workers && placement == PLACEMENT_COLOCATED)
        return FAIL(STATUS_USAGE,
                    "--servers %d --placement colocated: at most one server per worker, found %d "
                    "worker%s",
                    servers, workers, workers == 1 ? "" : "s");
    int all = placement == PLACEMENT_MIXED ? workers + servers : servers;
    *topology = (struct topology){workers, all, placement};
    return STATUS_OK;
}

int topology_nodes(const struct topology *topology)
{
    return topology->workers + topology->servers;
}

enum node_role topology_role(const struct topology *topology, int node)
{
    CHECK(node >= 0 && node < topology_nodes(topology));
    return node < topology->workers ? NODE_WORKER : NODE_SERVER;
}

int topology_spare(const struct topology *topology)
{
    switch (topology->placement) {
    case PLACEMENT_DEDICATED:
    case PLACEMENT_SWITCH:
        return topology->servers;
    case PLACEMENT_MIXED:
        return topology->servers - topology->workers;
    case PLACEMENT_COLOCATED:
        break;
    }
    return 0;
}

/* The number of servers inside workers: the first servers. */
static int colocated(const struct topology *topology)
{
    return topology->servers - topology_spare(topology);
}

int topology_rank(const struct topology *topology, int node)
{
    if (topology_role(topology, node) == NODE_WORKER)
        return node;
    int server = node - topology->workers, inside = colocated(topology);
    return server < inside ? server : topology->workers + server - inside;
}

int topology_rack(const struct topology *topology, int rack_ranks, int node)
{
    bool in_switch = topology->placement == PLACEMENT_SWITCH && node >= topology->workers;
    return in_switch ? -1 : topology_rank(topology, node) / rack_ranks;
}

int topology_node(const struct topology *topology, int rank, enum node_role role)
{
    int workers = topology->workers, inside = colocated(topology);
    if (role == NODE_WORKER)
        return rank < workers ? rank : -1;
    if (rank >= workers)
        return rank + inside;
    return rank < inside ? workers + rank : -1;
}

enum status group_from_colors(struct group **out, const int *colors, int world_size, int rank)
{
    int size = 0;
    *out = NULL;
    CHECK(rank >= 0 && rank < world_size);
    if (colors[rank] < 0)
        return STATUS_OK;
    for (int i = 0; i < world_size; i++)
        size += colors[i] == colors[rank];
    struct list {
        struct group group;
        int ranks[];
    } *list = calloc(1, sizeof *list + (size_t)size * sizeof *list->ranks);
    if (!list)
        return FAIL(STATUS_NO_MEMORY, "group: no memory for %d ranks", size);
    struct group *group = &list->group;
    group->ranks = list->ranks;
    for (int i = 0; i < world_size; i++) {
        if (colors[i] != colors[rank])
            continue;
        if (i == rank)
            group->rank = group->size;
        list->ranks[group->size++] = i;
    }
    *out = group;
    return STATUS_OK;
}

void group_free(struct group **group)
{
    if (!*group)
        return;
    CHECK(!(*group)->impl);
    free(*group);
    *group = NULL;
}
