/* Nodes, ranks and roles, for every world size and placement. */
#include <criterion/criterion.h>

#include "common/net/topology.h"

Test(topology, nodes_and_ranks_agree)
{
    for (int size = 1; size <= 9; size++) {
        for (int servers = 0; servers <= size; servers++) {
            for (enum placement p = PLACEMENT_DEDICATED; p <= PLACEMENT_MIXED; p++) {
                struct topology topology;
                if (p != PLACEMENT_COLOCATED && servers == size)
                    continue;
                cr_assert_eq(topology_init(&topology, size, servers, p), STATUS_OK);
                int workers = p == PLACEMENT_COLOCATED ? size : size - servers;
                cr_assert_eq(topology.workers, workers);
                cr_assert_eq(topology.servers, p == PLACEMENT_MIXED ? size : servers);
                cr_assert_eq(topology_nodes(&topology), workers + topology.servers);
                cr_assert_eq(topology_spare(&topology), p == PLACEMENT_COLOCATED ? 0 : servers);
                for (int node = 0; node < topology_nodes(&topology); node++) {
                    enum node_role role = topology_role(&topology, node);
                    int rank = topology_rank(&topology, node);
                    cr_assert(rank >= 0 && rank < size);
                    cr_assert_eq(topology_node(&topology, rank, role), node);
                }
                int hosted = 0;
                for (int rank = 0; rank < size; rank++)
                    hosted += (topology_node(&topology, rank, NODE_WORKER) >= 0) +
                              (topology_node(&topology, rank, NODE_SERVER) >= 0);
                cr_assert_eq(hosted, topology_nodes(&topology));
            }
        }
    }
}

Test(topology, no_room_is_refused)
{
    struct topology topology;
    cr_expect_eq(topology_init(&topology, 2, 2, PLACEMENT_DEDICATED), STATUS_USAGE);
    cr_expect_eq(topology_init(&topology, 1, 1, PLACEMENT_DEDICATED), STATUS_USAGE);
    cr_expect_eq(topology_init(&topology, 2, 3, PLACEMENT_COLOCATED), STATUS_USAGE);
    cr_expect_eq(topology_init(&topology, 2, 2, PLACEMENT_MIXED), STATUS_USAGE);
}
