/* The model of cost against cases worked out by hand, and against a walk around the ring. */
#include "experiments/bench/cost.h"

#include <criterion/criterion.h>
#include <math.h>

enum { WORKERS_MAX = 8 };

static struct cost_shape ring(int workers, size_t count)
{
    return (struct cost_shape){COST_RING, {workers, 0, PLACEMENT_DEDICATED}, count, 4};
}

static struct cost_shape rhd(int workers, size_t count)
{
    return (struct cost_shape){COST_HALVING, {workers, 0, PLACEMENT_DEDICATED}, count, 4};
}

static struct cost_shape ps(int workers, int servers, enum placement placement, size_t count)
{
    return (struct cost_shape){COST_PS, {workers, servers, placement}, count, 4};
}

static void expect_traffic(struct cost_shape shape, int node, uint64_t sent_elements,
                           uint64_t received_elements)
{
    struct cost_traffic found = cost_node_traffic(&shape, node);
    cr_expect_eq(found.sent_bytes, 4 * sent_elements, "node %d sends %ju bytes, expected %ju", node,
                 (uintmax_t)found.sent_bytes, (uintmax_t)(4 * sent_elements));
    cr_expect_eq(found.received_bytes, 4 * received_elements,
                 "node %d receives %ju bytes, expected %ju", node, (uintmax_t)found.received_bytes,
                 (uintmax_t)(4 * received_elements));
}

static void expect_most(struct cost_shape shape, enum node_role role, uint64_t sent_elements,
                        uint64_t received_elements)
{
    struct cost_traffic found = cost_role_traffic(&shape, role);
    cr_expect_eq(found.sent_bytes, 4 * sent_elements);
    cr_expect_eq(found.received_bytes, 4 * received_elements);
}

Test(cost, algorithm_of_each_backend)
{
    cr_expect_eq(cost_algorithm_of("none"), COST_NOTHING);
    cr_expect_eq(cost_algorithm_of("ps"), COST_PS);
    cr_expect_eq(cost_algorithm_of("ring"), COST_RING);
    cr_expect_eq(cost_algorithm_of("nccl"), COST_RING);
    cr_expect_eq(cost_algorithm_of("rhd"), COST_HALVING);
    cr_expect_eq(cost_algorithm_of("mpi"), COST_LIBRARY);
}

/* 10 elements in 4 chunks: 3 3 2 2. Rank 0 sends all but chunk 1, then all but chunk 2: 20 - 5. */
Test(cost, ring_uneven)
{
    struct cost_shape shape = ring(4, 10);
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
    struct cost_shape shape = ring(5, 2);
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
        struct cost_shape shape = ring(workers, 840); /* divisible by 1..8 */
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
    struct cost_shape shape = rhd(4, 10);
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
    struct cost_shape shape = rhd(6, 8);
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
            expect_traffic(rhd(workers, 840), rank, expected, expected);
            expect_traffic(rhd(workers, 0), rank, 0, 0);
        }
    }
}

Test(cost, ps_one_dedicated_server)
{
    for (int workers = 1; workers <= WORKERS_MAX; workers++) {
        struct cost_shape shape = ps(workers, 1, PLACEMENT_DEDICATED, 7);
        for (int worker = 0; worker < workers; worker++)
            expect_traffic(shape, worker, 7, 7);
        expect_traffic(shape, workers, 7u * (uint64_t)workers, 7u * (uint64_t)workers);
    }
}

/* 10 elements on 3 servers: 4 3 3; and 1 element on 3: 1 0 0. */
Test(cost, ps_shards_uneven)
{
    struct cost_shape shape = ps(2, 3, PLACEMENT_DEDICATED, 10);
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
    struct cost_shape shape = ps(3, 2, PLACEMENT_COLOCATED, 9); /* shards 5 4 */
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
    struct cost_shape shape = ps(4, 5, PLACEMENT_MIXED, 18);
    for (int worker = 0; worker < 4; worker++) {
        expect_traffic(shape, worker, 15, 15);
        expect_traffic(shape, 4 + worker, 9, 9);
    }
    expect_traffic(shape, 8, 24, 24);
    expect_most(shape, NODE_WORKER, 15, 15);
    expect_most(shape, NODE_SERVER, 24, 24);
    cr_expect_eq(cost_rank_traffic(&shape).sent_bytes, 24 * sizeof(float));

    /* A multiple of n^2 + kn - 2k elements: no rounding, so worker and server beside it carry what
     * a spare one carries, 2n(n-1) of the n^2 + kn - 2k. */
    for (size_t n = 2; n <= WORKERS_MAX; n++) {
        for (size_t k = 1; k < n; k++) {
            size_t all = n * n + k * n - 2 * k;
            shape = ps((int)n, (int)(n + k), PLACEMENT_MIXED, 10 * all);
            size_t expected = 10 * 2 * n * (n - 1);
            expect_traffic(shape, (int)(2 * n), expected, expected);
            cr_expect_eq(cost_node_traffic(&shape, 0).sent_bytes +
                             cost_node_traffic(&shape, (int)n).sent_bytes,
                         expected * sizeof(float));
            cr_expect_eq(cost_rank_traffic(&shape).received_bytes, expected * sizeof(float));
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
    struct cost_shape shape = ps(3, 2, PLACEMENT_COLOCATED, 9);
    cr_expect_eq(cost_rank_traffic(&shape).sent_bytes, 14 * sizeof(float)); /* 4+10 5+8 9 */
    shape = ps(3, 2, PLACEMENT_DEDICATED, 9);
    cr_expect_eq(cost_rank_traffic(&shape).sent_bytes, 15 * sizeof(float));
    shape = ring(3, 9);
    cr_expect_eq(cost_rank_traffic(&shape).sent_bytes, 12 * sizeof(float));
}

/* As many colocated servers as workers: a host sends, worker and server together, as in a ring. */
Test(cost, ps_fully_colocated_moves_what_the_ring_moves)
{
    for (int workers = 1; workers <= WORKERS_MAX; workers++) {
        struct cost_shape colocated = ps(workers, workers, PLACEMENT_COLOCATED, 840);
        struct cost_shape around = ring(workers, 840);
        for (int rank = 0; rank < workers; rank++) {
            cr_expect_eq(cost_node_traffic(&colocated, rank).sent_bytes +
                             cost_node_traffic(&colocated, workers + rank).sent_bytes,
                         cost_node_traffic(&around, rank).sent_bytes);
        }
    }
}

/* What one node sends another receives. */
Test(cost, sums_balance)
{
    struct cost_shape shapes[] = {ring(7, 23),
                                  rhd(7, 23),
                                  rhd(8, 23),
                                  ps(4, 3, PLACEMENT_DEDICATED, 23),
                                  ps(6, 4, PLACEMENT_COLOCATED, 23),
                                  ps(6, 9, PLACEMENT_MIXED, 23)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        uint64_t sent = 0, received = 0;
        for (int node = 0; node < topology_nodes(&shapes[i].topology); node++) {
            sent += cost_node_traffic(&shapes[i], node).sent_bytes;
            received += cost_node_traffic(&shapes[i], node).received_bytes;
        }
        cr_expect_eq(sent, received);
        cr_expect_gt(sent, 0);
    }
}

/* Elements of 2 bytes: half of everything, to the byte, at every node; and half the time. */
Test(cost, compressed)
{
    struct cost_shape shapes[] = {ring(7, 23), rhd(7, 23), rhd(8, 23),
                                  ps(4, 3, PLACEMENT_DEDICATED, 23),
                                  ps(6, 4, PLACEMENT_COLOCATED, 23)};
    struct cost_link link = {0, 1e6, 0, 4};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct cost_shape half = shapes[i];
        half.element_bytes = 2;
        for (int node = 0; node < topology_nodes(&half.topology); node++) {
            struct cost_traffic whole = cost_node_traffic(&shapes[i], node);
            struct cost_traffic found = cost_node_traffic(&half, node);
            cr_expect_eq(2 * found.sent_bytes, whole.sent_bytes);
            cr_expect_eq(2 * found.received_bytes, whole.received_bytes);
            cr_expect_gt(found.sent_bytes, 0);
        }
        cr_expect_eq(2 * cost_time_s(&half, &link), cost_time_s(&shapes[i], &link));
    }
}

Test(cost, unknown_bytes)
{
    struct cost_shape shape = ring(4, 10);
    cr_expect(cost_bytes_known(&shape));
    shape.algorithm = COST_LIBRARY;
    cr_expect_not(cost_bytes_known(&shape));
    expect_most(shape, NODE_WORKER, 0, 0);
    struct cost_link link = {0, 1e6, 0, 1};
    cr_expect(isnan(cost_time_s(&shape, &link)));
    shape.algorithm = COST_NOTHING;
    cr_expect(cost_bytes_known(&shape));
    expect_most(shape, NODE_WORKER, 0, 0);
    cr_expect_eq(cost_time_s(&shape, &link), 0);
}

static void expect_close(double found, double expected)
{
    cr_expect(fabs(found - expected) <= 1e-12 * fabs(expected), "found %.15g, expected %.15g",
              found, expected);
}

/* 1 MB over 1 MB/s, a = 1 ms, g = 10 ns: the terms read off one by one. */
Test(cost, times)
{
    struct cost_link link = {1e-3, 1e6, 1e-8, 1};
    const size_t count = 250000;
    struct cost_shape shape = ring(4, count);
    expect_close(cost_time_s(&shape, &link), 0.006 + 1.5 + 0.0075);
    shape = ring(1, count);
    expect_close(cost_time_s(&shape, &link), 0);

    shape = rhd(4, count); /* the ring's but for the steps: 4, not 6 */
    expect_close(cost_time_s(&shape, &link), 0.004 + 1.5 + 0.0075);
    shape = rhd(5, count); /* a prime: all at once */
    expect_close(cost_time_s(&shape, &link), 0.002 + 1.6 + 0.008);
    shape = rhd(12, count); /* 2 2 3 */
    expect_close(cost_time_s(&shape, &link), 0.006 + 22.0 / 12 + 11e-2 / 12);
    shape = rhd(1, count);
    expect_close(cost_time_s(&shape, &link), 0);

    shape = ps(4, 1, PLACEMENT_DEDICATED, count);
    expect_close(cost_time_s(&shape, &link), 0.002 + 8 + 0.03);
    link.pipeline_chunks = 4;
    expect_close(cost_time_s(&shape, &link), 0.002 + 5 + 0.03);
    shape = ps(4, 8, PLACEMENT_DEDICATED, count); /* spare servers: the worker's link counts */
    expect_close(cost_time_s(&shape, &link), 0.002 + 1.25 + 0.00375);

    shape = ps(4, 4, PLACEMENT_COLOCATED, count); /* the ring's bytes, whatever K */
    expect_close(cost_time_s(&shape, &link), 0.002 + 1.5 + 0.0075);
    shape = ps(4, 1, PLACEMENT_COLOCATED, count); /* p = 3, q = 3 */
    expect_close(cost_time_s(&shape, &link), 0.002 + 3 * 1.25 + 0.03);
    shape = ps(1, 1, PLACEMENT_COLOCATED, count);
    expect_close(cost_time_s(&shape, &link), 0);
}

/* 2n(n-1)/(n^2 + kn - 2k) M/B and the pipeline's 1/K of it. */
Test(cost, time_of_mixed_placement)
{
    struct cost_link link = {1e-3, 1e6, 0, 4};
    const size_t count = 250000;
    struct cost_shape shape = ps(4, 5, PLACEMENT_MIXED, count);
    expect_close(cost_time_s(&shape, &link), 0.002 + 24.0 / 18 * 1.25);
    shape = ps(4, 6, PLACEMENT_MIXED, count);
    expect_close(cost_time_s(&shape, &link), 0.002 + 24.0 / 20 * 1.25);
    shape = ps(4, 8, PLACEMENT_MIXED, count); /* k = n: M/B, as dedicated with S = W */
    expect_close(cost_time_s(&shape, &link), 0.002 + 1.25);
    shape = ps(4, 11, PLACEMENT_MIXED, count);
    expect_close(cost_time_s(&shape, &link), 0.002 + 1.25);
    shape = ps(4, 4, PLACEMENT_MIXED, count); /* k = 0: the ring's bytes */
    expect_close(cost_time_s(&shape, &link), 0.002 + 1.5);
    shape = ps(1, 2, PLACEMENT_MIXED, count);
    expect_close(cost_time_s(&shape, &link), 0.002 + 1.25);
    link.reduce_s_per_byte = 1e-8;
    shape = ps(4, 5, PLACEMENT_MIXED, count); /* the spare server adds three more thirds of M */
    expect_close(cost_time_s(&shape, &link), 0.002 + 24.0 / 18 * 1.25 + 0.01);
}

Test(cost, bound)
{
    expect_close(cost_bound_s(1, 250000, 1e6), 0);
    expect_close(cost_bound_s(2, 250000, 1e6), 1);
    expect_close(cost_bound_s(4, 1199882, 23.875e6), 1.5 * 4799528 / 23.875e6);
    expect_close(cost_bound_s(4, 0, 1e6), 0);
}
