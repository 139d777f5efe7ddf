/* The cost model of the parameter server for every placement of servers, compared with cases
 * calculated by hand. */
#include "tests/lib/cost_lib.h"

Test(cost, ps_one_dedicated_server)
{
    for (int workers = 1; workers <= WORKERS_MAX; workers++) {
        struct subject shape = ps(workers, 1, PLACEMENT_DEDICATED, 7);
        for (int worker = 0; worker < workers; worker++)
            expect_traffic(shape, worker, 7, 7);
        expect_traffic(shape, workers, 7u * (uint64_t)workers, 7u * (uint64_t)workers);
    }
}

/* 10 elements on 3 servers are 4 3 3, and 1 element on 3 servers is 1 0 0. */
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

/* Worker 0 keeps server 0's shard, worker 1 server 1's. Worker 2 has no server in its process. */
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

/* Four workers, one spare server: of 18 elements each worker's server has 3, the spare server 6. */
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

    /* The count is a multiple of n^2 + kn - 2k, so nothing is rounded. A worker with its server
     * then carries as much as a spare server: 2n(n-1) of the n^2 + kn - 2k. */
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
    shape = ps(3, 6, PLACEMENT_MIXED, 12); /* enough spare servers: the others have no work */
    expect_traffic(shape, 0, 12, 12);
    expect_traffic(shape, 3, 0, 0);
    expect_traffic(shape, 6, 12, 12);
    shape = ps(3, 3, PLACEMENT_MIXED, 11); /* no spare server: as colocated; shards 4 4 3 */
    expect_traffic(shape, 2, 8, 8);
    expect_traffic(shape, 3, 8, 8);
}

/* As many colocated servers as workers: a worker with its server sends what a ring's rank sends. */
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

/* 1 MB over 1 MB/s. Each link carries 0.75 s of pushes and 0.75 s of answers. In four pieces, all
 * but the last push and its answers hide the latency of the first. */
Test(cost, ps_with_a_server_in_each_worker_hides_a_latency)
{
    const struct cost_link near = {1e-3, 1e6, 0}, far = {1, 1e6, 0};
    struct subject shape = ps(4, 4, PLACEMENT_COLOCATED, 250000);
    shape.shape.pipeline = 4;
    expect_close(time_s(&shape, &near), 1e-3 + 1.5);
    expect_close(time_s(&shape, &far), 2 + 0.75 * 1.25);
    shape.shape.topology.servers = 2; /* links are loaded unequally: nothing is hidden */
    expect_close(time_s(&shape, &near), 2e-3 + 2 + 1.0 / 4);
}

Test(cost, times_of_ps_on_shared_hosts)
{
    static const int server_beside[] = {0, 0, 2, 2}, server_apart[] = {0, 0, 0, 3},
                     spare_beside[] = {0, 0, 2, 2, 2};
    const size_t count = 250000;
    /* A server in each of four workers. Each host keeps half of what its two workers push. */
    struct subject shape = ps(4, 4, PLACEMENT_COLOCATED, count);
    expect_time_on(shape, NULL, 0.002 + 1.5);
    expect_time_on(shape, one_host, 0.002 + 1.5);
    expect_time_on(shape, two_by_two, 0.002 + 2);
    expect_time_on(shape, apart, 0.002 + 2);
    expect_time_on(shape, uneven, 0.002 + 1.5); /* the last worker's time is unchanged */
    /* One server, in the first of four workers. Two workers push from the other host, in pieces. */
    shape = ps(4, 1, PLACEMENT_COLOCATED, count);
    shape.shape.pipeline = 4;
    expect_time_on(shape, NULL, 0.002 + 3 * 1.25);
    expect_time_on(shape, two_by_two, 0.002 + 2 * 1.25);
    /* Three workers. The server is on a separate host, then on the third worker's host. */
    shape = ps(3, 1, PLACEMENT_DEDICATED, count);
    shape.shape.pipeline = 4;
    expect_time_on(shape, NULL, 0.002 + 3 * 1.25);
    expect_time_on(shape, server_apart, 0.002 + 3 * 1.25);
    expect_time_on(shape, server_beside, 0.002 + 2 * 1.25);
    /* Four workers with a server each, of 3/18 of M, and a spare server of 6/18 on the host of two
     * of them. These two push 6/18 each, the other two 12/18. */
    shape = ps(4, 5, PLACEMENT_MIXED, count);
    shape.shape.pipeline = 4;
    expect_time_on(shape, NULL, 0.002 + 24.0 / 18 * 1.25);
    expect_time_on(shape, spare_beside, 0.002 + 2 + (2 * 24.0 / 18 - 2) / 4);
}

/* Mixed placement, pipelined in four pieces. */
static struct subject pipelined(int workers, int servers, size_t count)
{
    struct subject subject = ps(workers, servers, PLACEMENT_MIXED, count);
    subject.shape.pipeline = 4;
    return subject;
}

/* 2n(n-1)/(n^2 + kn - 2k) M/B, and 1/K of it for the pipeline. */
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
    shape = pipelined(4, 4, count);                   /* k = 0: the bytes of the ring */
    expect_close(time_s(&shape, &link), 0.001 + 1.5); /* hides a latency */
    shape = pipelined(1, 2, count);
    expect_close(time_s(&shape, &link), 0.002 + 1.25);
    link.reduce_s_per_byte = 1e-8;
    shape = pipelined(4, 5, count); /* the spare server adds three more thirds of M */
    expect_close(time_s(&shape, &link), 0.002 + 24.0 / 18 * 1.25 + 0.01);
}
