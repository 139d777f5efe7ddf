/* The model of cost against cases worked out by hand, and against a walk around the ring. */
#include "common/comm/cost.h"

#include <criterion/criterion.h>
#include <math.h>

#include "experiments/config/backends.h"
#include "ps/ps_cost.h"
#include "ring/halving/doubling.h"
#include "ring/halving/halving_cost.h"
#include "ring/hierarchical/hierarchical_cost.h"
#include "ring/ring_cost.h"
#include "ring/vendor/library.h"
#include "ring/vendor/nccl.h"

enum { WORKERS_MAX = 8 };

/* A shape, and whose formula is meant. */
struct subject {
    const struct cost_formula *formula;
    struct cost_shape shape;
};

static struct subject subject_of(const struct cost_formula *formula, struct topology topology,
                                 size_t count)
{
    return (struct subject){
        formula,
        {.topology = topology, .count = count, .element_bytes = sizeof(float), .pipeline = 1}};
}

static struct subject ring(int workers, size_t count)
{
    return subject_of(&ring_cost, (struct topology){workers, 0, PLACEMENT_DEDICATED}, count);
}

static struct subject rhd(int workers, size_t count)
{
    return subject_of(&halving_cost, (struct topology){workers, 0, PLACEMENT_DEDICATED}, count);
}

/* Workers on the hosts that `hosts` says. */
static struct subject hierarchical(int workers, const int *hosts, enum reduce_order order,
                                   size_t count)
{
    struct subject subject = ring(workers, count);
    subject.formula = &hierarchical_cost;
    subject.shape.hosts = hosts;
    subject.shape.order = order;
    return subject;
}

static const int two_by_two[] = {0, 0, 2, 2}, apart[] = {0, 1, 0, 1}, one_host[] = {0, 0, 0, 0},
                 three_by_two[] = {0, 0, 2, 2, 4, 4}, uneven[] = {0, 0, 0, 3};

/* Cut into slices, so that it is halved however short it is. */
static struct subject halved(int workers, size_t count)
{
    struct subject subject = rhd(workers, count);
    subject.shape.pipeline = 2;
    return subject;
}

static struct subject ps(int workers, int servers, enum placement placement, size_t count)
{
    return subject_of(&ps_cost, (struct topology){workers, servers, placement}, count);
}

static struct cost_traffic node_traffic(const struct subject *subject, int node)
{
    return cost_node_traffic(subject->formula, &subject->shape, node);
}

static struct cost_traffic rank_traffic(const struct subject *subject)
{
    return cost_rank_traffic(subject->formula, &subject->shape, 1);
}

static double time_s(const struct subject *subject, const struct cost_link *link)
{
    return cost_time_s(subject->formula, &subject->shape, link);
}

static void expect_traffic(struct subject shape, int node, uint64_t sent_elements,
                           uint64_t received_elements)
{
    struct cost_traffic found = node_traffic(&shape, node);
    cr_expect_eq(found.sent_bytes, 4 * sent_elements, "node %d sends %ju bytes, expected %ju", node,
                 (uintmax_t)found.sent_bytes, (uintmax_t)(4 * sent_elements));
    cr_expect_eq(found.received_bytes, 4 * received_elements,
                 "node %d receives %ju bytes, expected %ju", node, (uintmax_t)found.received_bytes,
                 (uintmax_t)(4 * received_elements));
}

static void expect_most(struct subject shape, enum node_role role, uint64_t sent_elements,
                        uint64_t received_elements)
{
    struct cost_traffic found = cost_role_traffic(shape.formula, &shape.shape, 1, role);
    cr_expect_eq(found.sent_bytes, 4 * sent_elements);
    cr_expect_eq(found.received_bytes, 4 * received_elements);
}

/* Bytes are known of what our transports count, and of nothing else; then they are in the formula.
 */
Test(cost, known_where_bytes_are_counted)
{
    for (size_t i = 0; i < backend_count(); i++) {
        const struct backend *backend = backend_get(i);
        cr_expect_eq(cost_bytes_known(backend->cost), backend->counts_bytes, "%s", backend->name);
        if (backend->uses_transport)
            cr_expect(backend->counts_bytes, "%s", backend->name);
    }
    cr_expect_not(backend_nccl.counts_bytes);
    cr_expect_not(backend_mpi.counts_bytes);
}

/* 10 elements in 4 chunks: 3 3 2 2. Rank 0 sends all but chunk 1, then all but chunk 2: 20 - 5. */
Test(cost, ring_uneven)
{
    struct subject shape = ring(4, 10);
    expect_traffic(shape, 0, 20 - 3 - 2, 20 - 3 - 3);
    expect_traffic(shape, 1, 20 - 2 - 2, 20 - 3 - 2);
    expect_traffic(shape, 2, 20 - 2 - 3, 20 - 2 - 2);
    expect_traffic(shape, 3, 20 - 3 - 3, 20 - 2 - 3);
    expect_most(shape, NODE_WORKER, 16, 16);
    expect_most(shape, NODE_SERVER, 0, 0);
}

/* 2 elements in 5 chunks: 1 1 0 0 0. */
Test(cost, ring_shorter_than_the_world)
{
    struct subject shape = ring(5, 2);
    expect_traffic(shape, 0, 4 - 1 - 0, 4 - 1 - 1);
    expect_traffic(shape, 1, 4, 3);
    expect_traffic(shape, 2, 4, 4);
    expect_traffic(shape, 3, 4 - 0 - 1, 4);
    expect_traffic(shape, 4, 4 - 1 - 1, 3);
    expect_most(shape, NODE_WORKER, 4, 4);
}

Test(cost, ring_even_is_the_bound_for_every_world)
{
    for (int workers = 1; workers <= WORKERS_MAX; workers++) {
        struct subject shape = ring(workers, 840); /* divisible by 1..8 */
        uint64_t expected = 2u * (uint64_t)(workers - 1) * 840 / (uint64_t)workers;
        for (int rank = 0; rank < workers; rank++)
            expect_traffic(shape, rank, expected, expected);
        expect_traffic(ring(workers, 0), 0, 0, 0);
    }
}

/*
 * Chunk c goes round from rank c, W-1 hops while it is summed, then W-1 hops on from the rank where
 * it was complete. Adding up the hops gives every rank's bytes by another way.
 */
Test(cost, ring_agrees_with_a_walk)
{
    for (int workers = 1; workers <= WORKERS_MAX; workers++) {
        for (size_t count = 0; count < 40; count++) {
            size_t sent[WORKERS_MAX] = {0}, received[WORKERS_MAX] = {0};
            for (int chunk = 0; chunk < workers; chunk++) {
                size_t length = count / workers + ((size_t)chunk < count % workers);
                int complete_at = (chunk + workers - 1) % workers;
                for (int hop = 0; hop < workers - 1; hop++) {
                    sent[(chunk + hop) % workers] += length;
                    received[(chunk + hop + 1) % workers] += length;
                    sent[(complete_at + hop) % workers] += length;
                    received[(complete_at + hop + 1) % workers] += length;
                }
            }
            for (int rank = 0; rank < workers; rank++)
                expect_traffic(ring(workers, count), rank, sent[rank], received[rank]);
        }
    }
}

/* 10 elements in 4 chunks, 3 3 2 2. Rank 0 gives 2 2, then 3; is given 3 3, then 3; and back. */
Test(cost, rhd_uneven)
{
    struct subject shape = halved(4, 10);
    expect_traffic(shape, 0, 7 + 9, 7 + 9);
    expect_traffic(shape, 1, 7 + 9, 7 + 9);
    expect_traffic(shape, 2, 8 + 6, 8 + 6);
    expect_traffic(shape, 3, 8 + 6, 8 + 6);
    expect_most(shape, NODE_WORKER, 16, 16);
    expect_most(shape, NODE_SERVER, 0, 0);
}

/* 8 elements in 6 chunks, 2 2 1 1 1 1: {0 1 2}, {3 4 5}, then three by three. 5 in 3 alone: 2 2 1.
 */
Test(cost, rhd_of_other_factors)
{
    struct subject shape = rhd(6, 8);
    for (int rank = 0; rank < 3; rank++) {
        uint64_t own = rank < 2 ? 2 : 1, all = (8 - own) + (5 + 2 * own);
        expect_traffic(shape, rank, all, all);
        expect_traffic(shape, rank + 3, 7 + (3 + 2), 7 + (3 + 2));
    }
    shape = rhd(3, 5);
    expect_traffic(shape, 0, 3 + 2 * 2, 3 + 2 * 2);
    expect_traffic(shape, 2, 4 + 2 * 1, 4 + 2 * 1);
}

Test(cost, rhd_even_is_the_bound_for_every_world)
{
    for (int workers = 1; workers <= WORKERS_MAX; workers++) {
        uint64_t expected = 2u * (uint64_t)(workers - 1) * 840 / (uint64_t)workers;
        for (int rank = 0; rank < workers; rank++) {
            expect_traffic(halved(workers, 840), rank, expected, expected);
            expect_traffic(rhd(workers, 0), rank, 0, 0);
        }
    }
}

/* 2, 4, 8 workers: all of a short vector in each of 1, 2, 3 steps; else as ever. */
Test(cost, rhd_short)
{
    const size_t most = DOUBLING_BYTES_MAX / sizeof(float);
    for (int steps = 1; steps <= 3; steps++) {
        for (int rank = 0; rank < 1 << steps; rank++) {
            expect_traffic(rhd(1 << steps, 10), rank, 10u * (uint64_t)steps, 10u * (uint64_t)steps);
            expect_traffic(rhd(1 << steps, 0), rank, 0, 0);
        }
    }
    expect_traffic(rhd(1, 10), 0, 0, 0);
    expect_traffic(rhd(4, most), 0, 2 * most, 2 * most);
    expect_traffic(rhd(4, most + 4), 0, 3 * (most / 2 + 2), 3 * (most / 2 + 2));
}

/* A segment that is too short for the vector, or compression, and it is halved. */
Test(cost, rhd_short_but_halved)
{
    const struct topology four = {.workers = 4};
    struct comm_options options = {0};
    struct cost_shape shape = cost_shape_of(&halving_cost, &four, NULL, 16, &options);
    cr_expect_eq(cost_node_traffic(&halving_cost, &shape, 0).sent_bytes, 2 * 16 * 4);
    options.segment_bytes = 16;
    shape = cost_shape_of(&halving_cost, &four, NULL, 16, &options);
    cr_expect_eq(cost_node_traffic(&halving_cost, &shape, 0).sent_bytes, 24 * 4);
    options = (struct comm_options){.compress = COMPRESS_BF16};
    shape = cost_shape_of(&halving_cost, &four, NULL, 16, &options);
    cr_expect_eq(cost_node_traffic(&halving_cost, &shape, 0).sent_bytes, 24 * 2);
}

Test(cost, ps_one_dedicated_server)
{
    for (int workers = 1; workers <= WORKERS_MAX; workers++) {
        struct subject shape = ps(workers, 1, PLACEMENT_DEDICATED, 7);
        for (int worker = 0; worker < workers; worker++)
            expect_traffic(shape, worker, 7, 7);
        expect_traffic(shape, workers, 7u * (uint64_t)workers, 7u * (uint64_t)workers);
    }
}

/* 10 elements on 3 servers: 4 3 3; and 1 element on 3: 1 0 0. */
Test(cost, ps_shards_uneven)
{
    struct subject shape = ps(2, 3, PLACEMENT_DEDICATED, 10);
    expect_traffic(shape, 1, 10, 10);
    expect_traffic(shape, 2, 8, 8);
    expect_traffic(shape, 3, 6, 6);
    expect_traffic(shape, 4, 6, 6);
    expect_most(shape, NODE_WORKER, 10, 10);
    expect_most(shape, NODE_SERVER, 8, 8);
    expect_traffic(ps(2, 3, PLACEMENT_DEDICATED, 1), 2, 2, 2);
    expect_traffic(ps(2, 3, PLACEMENT_DEDICATED, 1), 4, 0, 0);
    expect_most(ps(2, 3, PLACEMENT_DEDICATED, 0), NODE_SERVER, 0, 0);
}

/* Worker 0 keeps server 0's shard, worker 1 server 1's; worker 2 has no server beside it. */
Test(cost, ps_colocated_keeps_its_own_shard)
{
    struct subject shape = ps(3, 2, PLACEMENT_COLOCATED, 9); /* shards 5 4 */
    expect_traffic(shape, 0, 4, 4);
    expect_traffic(shape, 1, 5, 5);
    expect_traffic(shape, 2, 9, 9);
    expect_traffic(shape, 3, 10, 10);
    expect_traffic(shape, 4, 8, 8);
    expect_most(shape, NODE_WORKER, 9, 9);
    expect_most(shape, NODE_SERVER, 10, 10);
    expect_most(ps(1, 1, PLACEMENT_COLOCATED, 9), NODE_WORKER, 0, 0);
    expect_most(ps(1, 1, PLACEMENT_COLOCATED, 9), NODE_SERVER, 0, 0);
}

/* Four workers, one spare server: of 18 elements each worker's server has 3, the spare one 6. */
Test(cost, ps_mixed_loads_every_link_alike)
{
    struct subject shape = ps(4, 5, PLACEMENT_MIXED, 18);
    for (int worker = 0; worker < 4; worker++) {
        expect_traffic(shape, worker, 15, 15);
        expect_traffic(shape, 4 + worker, 9, 9);
    }
    expect_traffic(shape, 8, 24, 24);
    expect_most(shape, NODE_WORKER, 15, 15);
    expect_most(shape, NODE_SERVER, 24, 24);
    cr_expect_eq(rank_traffic(&shape).sent_bytes, 24 * sizeof(float));

    /* A multiple of n^2 + kn - 2k elements: no rounding, so worker and server beside it carry what
     * a spare one carries, 2n(n-1) of the n^2 + kn - 2k. */
    for (size_t n = 2; n <= WORKERS_MAX; n++) {
        for (size_t k = 1; k < n; k++) {
            size_t all = n * n + k * n - 2 * k;
            shape = ps((int)n, (int)(n + k), PLACEMENT_MIXED, 10 * all);
            size_t expected = 10 * 2 * n * (n - 1);
            expect_traffic(shape, (int)(2 * n), expected, expected);
            cr_expect_eq(node_traffic(&shape, 0).sent_bytes +
                             node_traffic(&shape, (int)n).sent_bytes,
                         expected * sizeof(float));
            cr_expect_eq(rank_traffic(&shape).received_bytes, expected * sizeof(float));
        }
    }
    shape = ps(3, 6, PLACEMENT_MIXED, 12); /* enough spare ones: the others have nothing to do */
    expect_traffic(shape, 0, 12, 12);
    expect_traffic(shape, 3, 0, 0);
    expect_traffic(shape, 6, 12, 12);
    shape = ps(3, 3, PLACEMENT_MIXED, 11); /* none: as colocated; shards 4 4 3 */
    expect_traffic(shape, 2, 8, 8);
    expect_traffic(shape, 3, 8, 8);
}

Test(cost, ranks)
{
    struct subject shape = ps(3, 2, PLACEMENT_COLOCATED, 9);
    cr_expect_eq(rank_traffic(&shape).sent_bytes, 14 * sizeof(float)); /* 4+10 5+8 9 */
    shape = ps(3, 2, PLACEMENT_DEDICATED, 9);
    cr_expect_eq(rank_traffic(&shape).sent_bytes, 15 * sizeof(float));
    shape = ring(3, 9);
    cr_expect_eq(rank_traffic(&shape).sent_bytes, 12 * sizeof(float));
}

/* As many colocated servers as workers: a host sends, worker and server together, as in a ring. */
Test(cost, ps_fully_colocated_moves_what_the_ring_moves)
{
    for (int workers = 1; workers <= WORKERS_MAX; workers++) {
        struct subject colocated = ps(workers, workers, PLACEMENT_COLOCATED, 840);
        struct subject around = ring(workers, 840);
        for (int rank = 0; rank < workers; rank++) {
            cr_expect_eq(node_traffic(&colocated, rank).sent_bytes +
                             node_traffic(&colocated, workers + rank).sent_bytes,
                         node_traffic(&around, rank).sent_bytes);
        }
    }
}

/* 10 elements in 4 chunks, 3 3 2 2: local number 0 has 3 and 2 of them, 1 the others, as well. */
Test(cost, hierarchical_uneven_chunks)
{
    struct subject shape = hierarchical(4, two_by_two, REDUCE_ORDER_ANY, 10);
    for (int worker = 0; worker < 4; worker++) /* both chunks, once to the other host each */
        expect_traffic(shape, worker, 3 + 2, 3 + 2);
    shape = hierarchical(4, apart, REDUCE_ORDER_ANY, 10);
    for (int worker = 0; worker < 4; worker++)
        expect_traffic(shape, worker, 3 + 2, 3 + 2);
    /* 20 in 6 chunks, 4 4 3 3 3 3: 4 3 3 and 4 3 3. The ring's, 2 P less two neighbouring ones. */
    shape = hierarchical(6, three_by_two, REDUCE_ORDER_ANY, 20);
    expect_traffic(shape, 0, 20 - 3 - 3, 20 - 4 - 3);
    expect_traffic(shape, 3, 20 - 3 - 4, 20 - 3 - 3);
    expect_traffic(shape, 4, 20 - 4 - 3, 20 - 3 - 4);
    /* In order, the second local number's chunks go one hop on. */
    shape = hierarchical(6, three_by_two, REDUCE_ORDER_RING, 20);
    expect_traffic(shape, 0, 20 - 3 - 3, 20 - 4 - 3);
    expect_traffic(shape, 1, 20 - 3, 20 - 4);
    expect_traffic(shape, 5, 20 - 4, 20 - 3);
}

Test(cost, hierarchical_on_one_host_or_one_worker_a_host)
{
    struct subject shape = hierarchical(4, one_host, REDUCE_ORDER_RING, 10);
    expect_traffic(shape, 2, 0, 0);
    for (enum reduce_order order = REDUCE_ORDER_ANY; order <= REDUCE_ORDER_RING; order++) {
        shape = hierarchical(4, NULL, order, 10);
        struct subject around = ring(4, 10);
        for (int worker = 0; worker < 4; worker++) {
            struct cost_traffic expected = node_traffic(&around, worker);
            expect_traffic(shape, worker, expected.sent_bytes / 4, expected.received_bytes / 4);
        }
    }
    expect_traffic(hierarchical(4, uneven, REDUCE_ORDER_ANY, 10), 0, 0, 0);
}

Test(cost, hosts_and_neighbours)
{
    static const struct {
        const int *hosts;
        int count, neighbours_apart;
    } cases[] = {{two_by_two, 2, 2}, {apart, 2, 4}, {one_host, 1, 0}, {uneven, 2, 2}, {NULL, 4, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cost_shape shape = hierarchical(4, cases[i].hosts, REDUCE_ORDER_ANY, 0).shape;
        cr_expect_eq(cost_hosts(&shape), cases[i].count);
        cr_expect_eq(cost_neighbours_apart(&shape), cases[i].neighbours_apart);
    }
}

/* What one node sends another receives. */
Test(cost, sums_balance)
{
    struct subject shapes[] = {ring(7, 23),
                               rhd(7, 23),
                               rhd(8, 23),
                               hierarchical(6, three_by_two, REDUCE_ORDER_ANY, 23),
                               hierarchical(6, three_by_two, REDUCE_ORDER_RING, 23),
                               ps(4, 3, PLACEMENT_DEDICATED, 23),
                               ps(6, 4, PLACEMENT_COLOCATED, 23),
                               ps(6, 9, PLACEMENT_MIXED, 23)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        uint64_t sent = 0, received = 0;
        for (int node = 0; node < topology_nodes(&shapes[i].shape.topology); node++) {
            sent += node_traffic(&shapes[i], node).sent_bytes;
            received += node_traffic(&shapes[i], node).received_bytes;
        }
        cr_expect_eq(sent, received);
        cr_expect_gt(sent, 0);
    }
}

/* Elements of 2 bytes: half of everything, to the byte, at every node; and half the time. */
Test(cost, compressed)
{
    struct subject shapes[] = {ring(7, 23),
                               rhd(7, 23),
                               halved(8, 23),
                               hierarchical(4, apart, REDUCE_ORDER_ANY, 23),
                               ps(4, 3, PLACEMENT_DEDICATED, 23),
                               ps(6, 4, PLACEMENT_COLOCATED, 23)};
    struct cost_link link = {.bytes_per_s = 1e6};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct subject half = shapes[i];
        half.shape.element_bytes = 2;
        for (int node = 0; node < topology_nodes(&half.shape.topology); node++) {
            struct cost_traffic whole = node_traffic(&shapes[i], node);
            struct cost_traffic found = node_traffic(&half, node);
            cr_expect_eq(2 * found.sent_bytes, whole.sent_bytes);
            cr_expect_eq(2 * found.received_bytes, whole.received_bytes);
            cr_expect_gt(found.sent_bytes, 0);
        }
        cr_expect_eq(2 * time_s(&half, &link), time_s(&shapes[i], &link));
    }
}

Test(cost, unknown)
{
    static const struct cost_formula unknown = {0};
    const struct cost_link link = {.bytes_per_s = 1e6};
    struct subject shape = ring(4, 10);
    cr_expect(cost_bytes_known(shape.formula));
    shape.formula = &unknown;
    cr_expect_not(cost_bytes_known(shape.formula));
    expect_most(shape, NODE_WORKER, 0, 0);
    cr_expect(isnan(time_s(&shape, &link)));
    shape.formula = &cost_of_nothing;
    cr_expect(cost_bytes_known(shape.formula));
    expect_most(shape, NODE_WORKER, 0, 0);
    cr_expect_eq(time_s(&shape, &link), 0);
}

/* Reduce-scatter and all-gather: together the ring; in rows and columns, 2(N-1)/N of each length.
 */
Test(cost, phases_of_the_ring)
{
    struct subject shape = ring(4, 10);
    for (int rank = 0; rank < 4; rank++) {
        struct cost_traffic all = node_traffic(&shape, rank);
        struct cost_traffic scatter = ring_cost_reduce_scatter(&shape.shape, rank);
        struct cost_traffic gather = ring_cost_all_gather(&shape.shape, rank);
        cr_expect_eq(scatter.sent_bytes + gather.sent_bytes, all.sent_bytes);
        cr_expect_eq(scatter.received_bytes + gather.received_bytes, all.received_bytes);
    }
    cr_expect_eq(ring_cost_reduce_scatter(&shape.shape, 0).sent_bytes, 4 * (10 - 3));
    cr_expect_eq(ring_cost_all_gather(&shape.shape, 0).sent_bytes, 4 * (10 - 2));
}

static void expect_close(double found, double expected)
{
    cr_expect(fabs(found - expected) <= 1e-12 * fabs(expected), "found %.15g, expected %.15g",
              found, expected);
}

/* 1 MB over 1 MB/s, a = 1 ms, g = 10 ns: the terms read off one by one. */
Test(cost, times)
{
    struct cost_link link = {1e-3, 1e6, 1e-8};
    const size_t count = 250000;
    struct subject shape = ring(4, count);
    expect_close(time_s(&shape, &link), 0.006 + 1.5 + 0.0075);
    shape = ring(1, count);
    expect_close(time_s(&shape, &link), 0);

    shape = ring(2, count); /* in few pieces: in one step, unless compressed */
    expect_close(time_s(&shape, &link), 0.001 + 1 + 0.01);
    shape.shape.element_bytes = 2;
    expect_close(time_s(&shape, &link), 0.002 + 0.5 + 0.0025);
    shape = ring(2, count);
    shape.shape.pipeline = 9;
    expect_close(time_s(&shape, &link), 0.002 + 1 + 0.005);

    /* Both hosts' links, each with what one of its workers sends, and with what both do. */
    shape = ring(4, count);
    shape.shape.hosts = two_by_two;
    expect_close(time_s(&shape, &link), 0.006 + 1.5 + 0.0075);
    shape.shape.hosts = apart;
    expect_close(time_s(&shape, &link), 0.006 + 3 + 0.0075);
    shape.shape.hosts = one_host;
    expect_close(time_s(&shape, &link), 0.006 + 1.5 + 0.0075);

    shape = hierarchical(4, two_by_two, REDUCE_ORDER_ANY, count); /* as two workers, but to add */
    expect_close(time_s(&shape, &link), 0.002 + 1 + 0.0075);
    shape = hierarchical(4, apart, REDUCE_ORDER_ANY, count);
    expect_close(time_s(&shape, &link), 0.002 + 1 + 0.0075);
    shape = hierarchical(4, two_by_two, REDUCE_ORDER_RING, count); /* half of it one hop more */
    expect_close(time_s(&shape, &link), 0.003 + 1.25 + 0.0075);
    shape = hierarchical(4, one_host, REDUCE_ORDER_RING, count);
    expect_close(time_s(&shape, &link), 0.0075);
    shape = hierarchical(4, NULL, REDUCE_ORDER_RING, count);
    expect_close(time_s(&shape, &link), 0.006 + 1.5 + 0.0075);
    shape = hierarchical(4, uneven, REDUCE_ORDER_ANY, count);
    cr_expect(isnan(time_s(&shape, &link)));
    shape = hierarchical(2, NULL, REDUCE_ORDER_ANY, count); /* the ring, so in one step if short */
    expect_close(time_s(&shape, &link), 0.001 + 1 + 0.01);
    shape.shape.pipeline = 9;
    expect_close(time_s(&shape, &link), 0.002 + 1 + 0.005);

    shape = rhd(4, count); /* the ring's but for the steps: 4, not 6 */
    expect_close(time_s(&shape, &link), 0.004 + 1.5 + 0.0075);
    shape = rhd(5, count); /* a prime: all at once */
    expect_close(time_s(&shape, &link), 0.002 + 1.6 + 0.008);
    shape = rhd(12, count); /* 2 2 3 */
    expect_close(time_s(&shape, &link), 0.006 + 22.0 / 12 + 11e-2 / 12);
    shape = rhd(1, count);
    expect_close(time_s(&shape, &link), 0);
    shape = rhd(8, 250); /* short: 3 steps of 1 KB */
    expect_close(time_s(&shape, &link), 3 * (0.001 + 0.001 + 1e-5));

    shape = ps(4, 1, PLACEMENT_DEDICATED, count);
    expect_close(time_s(&shape, &link), 0.002 + 8 + 0.03);
    shape.shape.pipeline = 4;
    expect_close(time_s(&shape, &link), 0.002 + 5 + 0.03);
    shape = ps(4, 8, PLACEMENT_DEDICATED, count); /* spare servers: the worker's link counts */
    shape.shape.pipeline = 4;
    expect_close(time_s(&shape, &link), 0.002 + 1.25 + 0.00375);

    shape = ps(4, 4, PLACEMENT_COLOCATED, count); /* the ring's bytes, whatever K */
    expect_close(time_s(&shape, &link), 0.002 + 1.5 + 0.0075);
    shape = ps(4, 1, PLACEMENT_COLOCATED, count); /* p = 3, q = 3 */
    shape.shape.pipeline = 4;
    expect_close(time_s(&shape, &link), 0.002 + 3 * 1.25 + 0.03);
    shape = ps(1, 1, PLACEMENT_COLOCATED, count);
    expect_close(time_s(&shape, &link), 0);
}

static void expect_time_on(struct subject subject, const int *hosts, double expected_s)
{
    const struct cost_link link = {1e-3, 1e6, 0};
    subject.shape.hosts = hosts;
    expect_close(time_s(&subject, &link), expected_s);
}

/* What the busiest host's link carries, 1 MB over 1 MB/s and a = 1 ms; one host has no link. */
Test(cost, times_of_rhd_on_shared_hosts)
{
    const size_t count = 250000;
    expect_time_on(rhd(4, count), NULL, 0.004 + 1.5);
    expect_time_on(rhd(4, count), one_host, 0.004 + 1.5);
    expect_time_on(rhd(4, count), two_by_two, 0.004 + 2); /* both halve across, quarter within */
    expect_time_on(rhd(4, count), apart, 0.004 + 1);      /* halve within, quarter across */
    expect_time_on(rhd(4, count), uneven, 0.004 + 1.5);   /* the last one, all that it moves */
    /* 2 3: two workers halve across and exchange thirds of halves with one and with two of three */
    expect_time_on(rhd(6, count), three_by_two, 0.004 + 2 * (1 + 4.0 / 6));
}

Test(cost, times_of_ps_on_shared_hosts)
{
    static const int server_beside[] = {0, 0, 2, 2}, server_apart[] = {0, 0, 0, 3},
                     spare_beside[] = {0, 0, 2, 2, 2};
    const size_t count = 250000;
    /* A server in each of four workers: a host keeps half of what each of its two has to push. */
    struct subject shape = ps(4, 4, PLACEMENT_COLOCATED, count);
    expect_time_on(shape, NULL, 0.002 + 1.5);
    expect_time_on(shape, one_host, 0.002 + 1.5);
    expect_time_on(shape, two_by_two, 0.002 + 2);
    expect_time_on(shape, apart, 0.002 + 2);
    expect_time_on(shape, uneven, 0.002 + 1.5); /* the last one's is as ever */
    /* One in the first of four: two workers push to it from elsewhere, in four pieces. */
    shape = ps(4, 1, PLACEMENT_COLOCATED, count);
    shape.shape.pipeline = 4;
    expect_time_on(shape, NULL, 0.002 + 3 * 1.25);
    expect_time_on(shape, two_by_two, 0.002 + 2 * 1.25);
    /* Three workers, the server on a host of its own, and beside the third. */
    shape = ps(3, 1, PLACEMENT_DEDICATED, count);
    shape.shape.pipeline = 4;
    expect_time_on(shape, NULL, 0.002 + 3 * 1.25);
    expect_time_on(shape, server_apart, 0.002 + 3 * 1.25);
    expect_time_on(shape, server_beside, 0.002 + 2 * 1.25);
    /* Four with a server in each, of 3/18 of M, and a spare one of 6/18 beside two of them: these
     * push 6/18 each, the other two 12/18. */
    shape = ps(4, 5, PLACEMENT_MIXED, count);
    shape.shape.pipeline = 4;
    expect_time_on(shape, NULL, 0.002 + 24.0 / 18 * 1.25);
    expect_time_on(shape, spare_beside, 0.002 + 2 + (2 * 24.0 / 18 - 2) / 4);
}

/* With mixed placement, in four pieces. */
static struct subject pipelined(int workers, int servers, size_t count)
{
    struct subject subject = ps(workers, servers, PLACEMENT_MIXED, count);
    subject.shape.pipeline = 4;
    return subject;
}

/* 2n(n-1)/(n^2 + kn - 2k) M/B and the pipeline's 1/K of it. */
Test(cost, time_of_mixed_placement)
{
    struct cost_link link = {1e-3, 1e6, 0};
    const size_t count = 250000;
    struct subject shape = pipelined(4, 5, count);
    expect_close(time_s(&shape, &link), 0.002 + 24.0 / 18 * 1.25);
    shape = pipelined(4, 6, count);
    expect_close(time_s(&shape, &link), 0.002 + 24.0 / 20 * 1.25);
    shape = pipelined(4, 8, count); /* k = n: M/B, as dedicated with S = W */
    expect_close(time_s(&shape, &link), 0.002 + 1.25);
    shape = pipelined(4, 11, count);
    expect_close(time_s(&shape, &link), 0.002 + 1.25);
    shape = pipelined(4, 4, count); /* k = 0: the ring's bytes */
    expect_close(time_s(&shape, &link), 0.002 + 1.5);
    shape = pipelined(1, 2, count);
    expect_close(time_s(&shape, &link), 0.002 + 1.25);
    link.reduce_s_per_byte = 1e-8;
    shape = pipelined(4, 5, count); /* the spare server adds three more thirds of M */
    expect_close(time_s(&shape, &link), 0.002 + 24.0 / 18 * 1.25 + 0.01);
}

Test(cost, bound)
{
    expect_close(cost_bound_s(1, 250000, 1e6), 0);
    expect_close(cost_bound_s(2, 250000, 1e6), 1);
    expect_close(cost_bound_s(4, 1199882, 23.875e6), 1.5 * 4799528 / 23.875e6);
    expect_close(cost_bound_s(4, 0, 1e6), 0);
}
