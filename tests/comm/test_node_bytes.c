/*
 * The byte proof: the transport's count at every node, and over the uplinks of racks of two ranks,
 * equals the formula exactly. It covers every backend over tcp and zmq, every number of servers in
 * every placement, lengths that do not divide, and compression (with up to 5 ranks). There are 1 to
 * 8 workers, and at most as many servers. PSRING_TEST_LONG=1 takes every number of ranks up to 16.
 */
#include <criterion/criterion.h>
#include <stdint.h>

#include "experiments/bench/measure.h"
#include "ps/ps.h"
#include "ring/hierarchical.h"
#include "ring/ring.h"
#include "tests/lib/spawn.h"

enum { WORKERS_MOST = 8, COMPRESSING_MOST = 5, ITERS = 1, WARMUP = 1 };

static _Thread_local struct world *world;

static void check_role(const struct cost_formula *formula, const struct cost_shape *shape, int rank,
                       enum node_role role, struct cost_traffic found)
{
    int node = topology_node(&shape->topology, rank, role);
    struct cost_traffic expected = {0};
    if (node >= 0)
        expected = cost_node_traffic(formula, shape, node);
    rank_assert(
        found.sent_bytes == expected.sent_bytes && found.received_bytes == expected.received_bytes,
        "rank %d %s of %d workers and %d servers, %zu elements: sent %ju received %ju bytes, "
        "expected %ju and %ju",
        rank, role == NODE_WORKER ? "worker" : "server", shape->topology.workers,
        shape->topology.servers, shape->count, (uintmax_t)found.sent_bytes,
        (uintmax_t)found.received_bytes, (uintmax_t)expected.sent_bytes,
        (uintmax_t)expected.received_bytes);
}

static void check_count(struct bench_connection *connection, size_t count)
{
    struct bench_measurement measured;
    struct bench_plan plan = {.count = count, .iters = ITERS, .warmup = WARMUP};
    rank_assert_ok(bench_measure(&measured, connection, &plan));
    const struct cost_formula *formula = connection->backend->cost;
    struct cost_shape shape =
        cost_shape_of(formula, comm_topology(connection->comm), comm_hosts(connection->comm), count,
                      &connection->options);
    for (int rank = 0; rank < world->size; rank++) {
        check_role(formula, &shape, rank, NODE_WORKER, measured.ranks[rank].worker);
        check_role(formula, &shape, rank, NODE_SERVER, measured.ranks[rank].server);
    }
    struct cost_traffic rank_most = cost_rank_traffic(formula, &shape, 1);
    rank_assert_eq(measured.rank_most.sent_bytes, rank_most.sent_bytes);
    rank_assert_eq(measured.rank_most.received_bytes, rank_most.received_bytes);
    rank_assert_eq(measured.uplink_bytes, cost_uplink_bytes(formula, &shape, 1));
    rank_assert_eq(measured.wrong, 0);
    bench_measurement_free(&measured);
}

/* Lengths: 0, fewer elements than ranks, more but uneven, whole segments and a remainder. */
static void check_counts_in(enum reduce_order order, const struct backend *backend,
                            enum transport_kind transport, int servers, enum placement placement)
{
    static const size_t counts[] = {0, 5, 65537, 1003};
    struct bench_connection connection;
    struct comm_options options = {
        .transport = transport,
        .servers = servers,
        .placement = placement,
        .reduce_order = order,
        .rack_ranks = 2,
        .oversubscribed = 4,
        .timeout_ms = 20000,
    };
    bool compresses = world->size <= COMPRESSING_MOST && order == REDUCE_ORDER_ANY;
    enum compress last = compresses ? COMPRESS_BF16 : COMPRESS_NONE;
    for (enum compress compress = COMPRESS_NONE; compress <= last; compress++) {
        if (compress == COMPRESS_FP16 && !spawn_is_long())
            continue; /* as many bytes as bf16 */
        options.compress = compress;
        options.error_feedback = compress != COMPRESS_NONE;
        rank_assert_ok(bench_connect(&connection, world, backend, &options, 65537));
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            check_count(&connection, counts[c]);
        bench_disconnect(&connection);
    }
}

static void check_counts(const struct backend *backend, enum transport_kind transport, int servers,
                         enum placement placement)
{
    check_counts_in(REDUCE_ORDER_ANY, backend, transport, servers, placement);
}

/* Hosts with equal numbers of neighbouring workers; also in the ring's order. */
static void check_hosts(enum transport_kind transport)
{
    int *real = world->host_numbers, played[WORKERS_MOST];
    world->host_numbers = played;
    for (int locals = 1; locals <= world->size; locals++) {
        if (world->size % locals > 0)
            continue;
        for (int rank = 0; rank < world->size; rank++)
            played[rank] = rank / locals;
        check_counts(&backend_hierarchical, transport, 0, PLACEMENT_DEDICATED);
        check_counts_in(REDUCE_ORDER_RING, &backend_hierarchical, transport, 0,
                        PLACEMENT_DEDICATED);
    }
    world->host_numbers = real;
}

static void check_transport(enum transport_kind transport)
{
    int ranks = world->size;
    if (ranks <= WORKERS_MOST) {
        check_counts(&backend_ring, transport, 0, PLACEMENT_DEDICATED);
        check_counts(&backend_rhd, transport, 0, PLACEMENT_DEDICATED);
        check_counts(&backend_tree, transport, 0, PLACEMENT_DEDICATED);
        check_hosts(transport);
        for (int servers = 1; servers <= ranks; servers++)
            check_counts(&backend_ps, transport, servers, PLACEMENT_COLOCATED);
    }
    for (int servers = 1; servers <= ranks - servers; servers++) {
        if (ranks - servers <= WORKERS_MOST)
            check_counts(&backend_ps, transport, servers, PLACEMENT_DEDICATED);
    }
    for (int spare = 0; spare <= ranks - spare; spare++) {
        if (ranks - spare <= WORKERS_MOST)
            check_counts(&backend_ps, transport, spare, PLACEMENT_MIXED);
    }
}

static void every_node(struct world *of, void *context)
{
    const enum transport_kind *transport = context;
    world = of;
    check_transport(*transport);
}

Test(node_bytes, over_tcp)
{
    enum transport_kind transport = TRANSPORT_TCP;
    spawn_sizes(1, 16, every_node, &transport);
}

Test(node_bytes, over_zmq)
{
    enum transport_kind transport = TRANSPORT_ZMQ;
    spawn_sizes(1, spawn_is_long() ? 16 : 4, every_node, &transport);
}
