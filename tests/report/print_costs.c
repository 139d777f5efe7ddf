/* Prints times by the formulas of common/comm/cost.h as JSON, to compare with those of the page. */
#include <stdio.h>

#include "ps/ps.h"
#include "ring/ring.h"

static const struct cost_link links[] = {
    {100e-6, 23.8e6, 0}, {50e-3, 23.8e6, 0}, {3e-6, 12.5e9, 0.2e-9}, {400e-6, 12.5e9, 0}};
static const size_t counts[] = {1199882, 138357544}; /* float32 */

/* The page knows no windows but the tree's. */
static void print(const char *name, const struct cost_formula *formula, struct topology topology,
                  size_t pipeline, int radix)
{
    static const char *comma = "";
    for (size_t l = 0; l < sizeof links / sizeof *links; l++) {
        const struct comm_options options = {.link_bytes_per_s = links[l].bytes_per_s,
                                             .round_trip_s = 2 * links[l].latency_s};
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            const struct cost_shape shape = {
                .topology = topology,
                .count = counts[c],
                .element_bytes = sizeof(float),
                .pipeline = pipeline,
                .radix = radix,
                .window =
                    formula == &tree_cost ? tree_cost.window(&topology, counts[c], &options) : 0};
            printf("%s{\"name\":\"%s\",\"workers\":%d,\"servers\":%d,\"spare\":%d,\"bytes\":%zu,"
                   "\"pipeline\":%zu,\"radix\":%d,\"latency_s\":%.9g,\"bytes_per_s\":%.9g,"
                   "\"reduce_s_per_byte\":%.9g,\"seconds\":%.17g}",
                   comma, name, topology.workers, topology.servers,
                   topology.servers > 0 ? topology_spare(&topology) : 0, counts[c] * sizeof(float),
                   pipeline, radix, links[l].latency_s, links[l].bytes_per_s,
                   links[l].reduce_s_per_byte, cost_time_s(formula, &shape, &links[l]));
            comma = ",\n";
        }
    }
}

int main(void)
{
    printf("[");
    for (int w = 2; w <= 12; w++) {
        print("ring", &ring_cost, (struct topology){w, 0, PLACEMENT_DEDICATED}, 10, 0);
        print("ring", &ring_cost, (struct topology){w, 0, PLACEMENT_DEDICATED}, 64, 0);
        print("rhd", &halving_cost, (struct topology){w, 0, PLACEMENT_DEDICATED}, 1, 2);
        print("rhd", &halving_cost, (struct topology){w, 0, PLACEMENT_DEDICATED}, 64, 2);
        for (int radix = 3; radix <= w; radix++)
            print("rhd", &halving_cost, (struct topology){w, 0, PLACEMENT_DEDICATED}, 64, radix);
        print("tree", &tree_cost, (struct topology){w, 0, PLACEMENT_DEDICATED}, 1, 0);
        print("tree", &tree_cost, (struct topology){w, 0, PLACEMENT_DEDICATED}, 64, 0);
        for (int s = 1; s <= w; s++) {
            print("ps", &ps_cost, (struct topology){w, s, PLACEMENT_DEDICATED}, 32, 0);
            print("ps", &ps_cost, (struct topology){w, s, PLACEMENT_COLOCATED}, 8, 0);
            print("ps", &ps_cost, (struct topology){w, w + s, PLACEMENT_MIXED}, 32, 0);
        }
    }
    printf("]\n");
    return 0;
}
