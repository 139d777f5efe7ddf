#include "common/net/topology.h"

#include "common/base/check.h"

enum status topology_init(struct topology *topology, int world_size, int servers,
                          enum placement placement)
{
    int workers = placement == PLACEMENT_DEDICATED ? world_size - servers : world_size;
    if (workers < 1) {
        log_error("--servers %d: dedicated servers have processes of their own, and only %d "
                  "process%s started; start %d (1 worker + %d), or use --placement colocated",
                  servers, world_size, world_size == 1 ? " was" : "es were", servers + 1, servers);
        return STATUS_USAGE;
    }
    if (servers > workers && placement == PLACEMENT_COLOCATED) {
        log_error("--servers %d --placement colocated: at most one server a worker, and there are "
                  "%d workers",
                  servers, workers);
        return STATUS_USAGE;
    }
    *topology = (struct topology){workers, servers, placement};
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

int topology_rank(const struct topology *topology, int node)
{
    bool server = topology_role(topology, node) == NODE_SERVER;
    return server && topology->placement == PLACEMENT_COLOCATED ? node - topology->workers : node;
}

int topology_node(const struct topology *topology, int rank, enum node_role role)
{
    if (role == NODE_WORKER)
        return rank < topology->workers ? rank : -1;
    if (topology->placement == PLACEMENT_DEDICATED)
        return rank >= topology->workers ? rank : -1;
    return rank < topology->servers ? topology->workers + rank : -1;
}
