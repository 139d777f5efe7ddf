/* The cost models of all backends, compared with cases calculated by hand. */
#include "experiments/config/backends.h"
#include "ps/shard.h"
#include "ring/baselines/baselines.h"
#include "ring/halving_schedule.h"
#include "ring/schedule.h"
#include "tests/lib/cost_lib.h"

/* A formula has bytes if and only if the backend's bytes are counted, as psring's transports do. */
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

Test(cost, ranks)
{
    struct subject shape = ps(3, 2, PLACEMENT_COLOCATED, 9);
    cr_expect_eq(rank_traffic(&shape).sent_bytes, 14 * sizeof(float)); /* 4+10 5+8 9 */
    shape = ps(3, 2, PLACEMENT_DEDICATED, 9);
    cr_expect_eq(rank_traffic(&shape).sent_bytes, 15 * sizeof(float));
    shape = ring(3, 9);
    cr_expect_eq(rank_traffic(&shape).sent_bytes, 12 * sizeof(float));
}

Test(cost, hosts_and_neighbours)
{
    static const struct {
        const int *hosts;
        int count, inter_host_hops;
    } cases[] = {{two_by_two, 2, 2}, {apart, 2, 4}, {one_host, 1, 0}, {uneven, 2, 2}, {NULL, 4, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cost_shape shape = hierarchical(4, cases[i].hosts, REDUCE_ORDER_ANY, 0).shape;
        cr_expect_eq(cost_hosts(&shape), cases[i].count);
        cr_expect_eq(cost_inter_host_hops(&shape), cases[i].inter_host_hops);
    }
}

/* The bytes that all nodes send equal the bytes that all nodes receive. */
Test(cost, sums_balance)
{
    struct subject shapes[] = {ring(7, 23),
                               rhd(7, 23),
                               rhd(8, 23),
                               tree(7, 23),
                               tree(8, 23),
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

struct flow_sums {
    struct cost_traffic of[2 * WORKERS_MAX];
};

static void add_flow(void *context, int from, int to, uint64_t bytes)
{
    struct flow_sums *sums = context;
    cr_assert_neq(from, to);
    sums->of[from].sent_bytes += bytes;
    sums->of[to].received_bytes += bytes;
}

/* The flows of every node add up to its traffic. */
Test(cost, flows)
{
    struct subject direct = halved(8, 23);
    direct.shape.radix = 8;
    struct subject shapes[] = {ring(7, 23),
                               ring(1, 23),
                               rhd(7, 23),
                               rhd(8, 23), /* not halved */
                               halved(8, 23),
                               halved(6, 23),
                               direct,
                               tree(7, 23),
                               tree(8, 1),
                               hierarchical(6, three_by_two, REDUCE_ORDER_ANY, 23),
                               hierarchical(4, apart, REDUCE_ORDER_RING, 23),
                               hierarchical(4, one_host, REDUCE_ORDER_ANY, 23),
                               ps(4, 3, PLACEMENT_DEDICATED, 23),
                               ps(6, 4, PLACEMENT_COLOCATED, 23),
                               ps(6, 9, PLACEMENT_MIXED, 23),
                               ps(4, 2, PLACEMENT_SWITCH, 23)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct flow_sums sums = {0};
        shapes[i].formula->flows(&shapes[i].shape, add_flow, &sums);
        for (int node = 0; node < topology_nodes(&shapes[i].shape.topology); node++) {
            struct cost_traffic expected = node_traffic(&shapes[i], node);
            cr_expect_eq(sums.of[node].sent_bytes, expected.sent_bytes, "shape %zu", i);
            cr_expect_eq(sums.of[node].received_bytes, expected.received_bytes, "shape %zu", i);
        }
    }
}

/* Two racks of four, and uplinks a fourth as fast as a rack's links together: as fast as one. */
Test(cost, racks)
{
    const struct {
        struct subject subject;
        uint64_t uplink_elements;
        double slower;
    } cases[] = {
        {ring(8, 64), 112, 1},  /* one of a rack's workers sends over it */
        {halved(8, 64), 64, 1}, /* the last cut: 8 + 8 elements of each worker */
        {tree(8, 64), 128, 1},  /* two edges in a tree */
        {ps(8, 1, PLACEMENT_SWITCH, 64), 256, 4},
        {ps(8, 8, PLACEMENT_COLOCATED, 64), 256, 256.0 / 112},
        {ring(4, 64), 0, 1}, /* one rack */
    };
    const struct cost_link link = {.bytes_per_s = 1e6};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct subject in_racks = cases[i].subject;
        in_racks.shape.rack_ranks = 4;
        in_racks.shape.oversubscribed = 4;
        uint64_t bytes = cost_uplink_bytes(in_racks.formula, &in_racks.shape, 1);
        cr_expect_eq(bytes, 4 * cases[i].uplink_elements, "case %zu: %ju", i, (uintmax_t)bytes);
        expect_close(time_s(&in_racks, &link), cases[i].slower * time_s(&cases[i].subject, &link));
        /* All on one host: each rank counts as having a link, as without racks. */
        const int together[16] = {0};
        in_racks.shape.hosts = together;
        expect_close(time_s(&in_racks, &link), cases[i].slower * time_s(&cases[i].subject, &link));
    }
}

/* Elements of 2 bytes: exactly half the bytes at every node, and half the time. */
Test(cost, compressed)
{
    struct subject shapes[] = {ring(7, 23),
                               rhd(7, 23),
                               halved(8, 23),
                               tree(7, 23),
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

/* 1 MB over 1 MB/s, a = 1 ms, g = 10 ns: the terms in order. */
Test(cost, times)
{
    struct cost_link link = {1e-3, 1e6, 1e-8};
    const size_t count = 250000;
    struct subject shape = ring(4, count);
    expect_close(time_s(&shape, &link), 0.006 + 1.5 + 0.0075);
    shape = ring(1, count);
    expect_close(time_s(&shape, &link), 0);

    shape = ring(2, count); /* few pieces: one step, unless compressed */
    expect_close(time_s(&shape, &link), 0.001 + 1 + 0.01);
    shape.shape.element_bytes = 2;
    expect_close(time_s(&shape, &link), 0.002 + 0.5 + 0.0025);
    shape = ring(2, count);
    shape.shape.pipeline = 10; /* 2 x 5 pieces: the second step hides its latency */
    expect_close(time_s(&shape, &link), 0.001 + 1 + 0.005);

    /* Both hosts' links: one of a host's workers sends on its link, then both do. */
    shape = ring(4, count);
    shape.shape.hosts = two_by_two;
    expect_close(time_s(&shape, &link), 0.006 + 1.5 + 0.0075);
    shape.shape.hosts = apart;
    expect_close(time_s(&shape, &link), 0.006 + 3 + 0.0075);
    shape.shape.hosts = one_host;
    expect_close(time_s(&shape, &link), 0.006 + 1.5 + 0.0075);

    /* Two workers, except for the additions. A host's two rings hide each other's latency. */
    shape = hierarchical(4, two_by_two, REDUCE_ORDER_ANY, count);
    expect_close(time_s(&shape, &link), 0.001 + 1 + 0.0075);
    shape = hierarchical(4, apart, REDUCE_ORDER_ANY, count);
    expect_close(time_s(&shape, &link), 0.001 + 1 + 0.0075);
    shape = hierarchical(4, two_by_two, REDUCE_ORDER_RING, count); /* half of it one hop more */
    expect_close(time_s(&shape, &link), 0.001 + 1.25 + 0.0075);
    shape = hierarchical(4, one_host, REDUCE_ORDER_RING, count);
    expect_close(time_s(&shape, &link), 0.0075);
    shape = hierarchical(4, NULL, REDUCE_ORDER_RING, count);
    expect_close(time_s(&shape, &link), 0.006 + 1.5 + 0.0075);
    shape = hierarchical(4, uneven, REDUCE_ORDER_ANY, count);
    cr_expect(isnan(time_s(&shape, &link)));
    shape = hierarchical(2, NULL, REDUCE_ORDER_ANY, count); /* the ring: one step if short */
    expect_close(time_s(&shape, &link), 0.001 + 1 + 0.01);
    shape.shape.pipeline = 10;
    expect_close(time_s(&shape, &link), 0.001 + 1 + 0.005);

    shape = rhd(4, count); /* the ring's time, but 4 steps, not 6 */
    expect_close(time_s(&shape, &link), 0.004 + 1.5 + 0.0075);
    shape = rhd(5, count); /* a prime: one exchange with all */
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

    shape = ps(4, 1, PLACEMENT_SWITCH, count); /* no link of its own */
    shape.shape.pipeline = 4;
    expect_close(time_s(&shape, &link), 0.002 + 1.25 + 0.03);
    expect_traffic(shape, 4, 4 * count, 4 * count);
    shape.shape.hosts = two_by_two_and_one; /* two workers share a link */
    expect_close(time_s(&shape, &link), 0.002 + 2.5 + 0.03);

    shape = ps(4, 4, PLACEMENT_COLOCATED, count); /* the ring's bytes, whatever K */
    expect_close(time_s(&shape, &link), 0.002 + 1.5 + 0.0075);
    shape = ps(4, 1, PLACEMENT_COLOCATED, count); /* p = 3, q = 3 */
    shape.shape.pipeline = 4;
    expect_close(time_s(&shape, &link), 0.002 + 3 * 1.25 + 0.03);
    shape = ps(1, 1, PLACEMENT_COLOCATED, count);
    expect_close(time_s(&shape, &link), 0);
}

/* Steps of 250 ms in segments of 25 ms. They hide a latency of less than 225 ms; of a longer one,
 * each step but the last shows the rest. Without distance the time is that of the bytes. */
Test(cost, segments_hide_distance)
{
    static const int pairs[] = {0, 0, 2, 2, 4, 4, 6, 6};
    static const struct {
        double latency_s, shown_s; /* by each of 5 steps */
    } cases[] = {{0, 0}, {0.1, 0}, {0.225, 0}, {0.3, 0.075}, {3, 2.775}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct cost_link link = {cases[c].latency_s, 1e6, 0};
        struct subject shape = ring(4, 250000);
        shape.shape.pipeline = 10;
        expect_close(time_s(&shape, &link), 1.5 + link.latency_s + 5 * cases[c].shown_s);
        shape = hierarchical(8, pairs, REDUCE_ORDER_ANY, 250000);
        shape.shape.pipeline = 5; /* of each of two rings */
        expect_close(time_s(&shape, &link), 1.5 + link.latency_s + 5 * cases[c].shown_s);
    }
}

/* The server's link needs 4.04 s for 100 pieces. Under a window that is too short for the distance,
 * it waits after every window but the last. */
Test(cost, a_short_window_lets_links_wait)
{
    const struct cost_link near = {0.01, 1e6, 0}, far = {1, 1e6, 0};
    struct subject shape = ps(4, 1, PLACEMENT_DEDICATED, 250000);
    shape.shape.pipeline = 100;
    double links_s = 4 * 1.01, piece_s = links_s / 100;
    expect_close(time_s(&shape, &far), 2 + links_s);
    shape.shape.window = 2;
    expect_close(time_s(&shape, &near), 0.02 + links_s);
    expect_close(time_s(&shape, &far), 2 + links_s + 49 * (2 - piece_s));
    shape.shape.window = 60; /* holds 2.4 s of the link */
    expect_close(time_s(&shape, &far), 2 + links_s);
    shape.shape.window = 100;
    expect_close(time_s(&shape, &(struct cost_link){100, 1e6, 0}), 200 + links_s);
}

Test(cost, bound)
{
    expect_close(cost_bound_s(1, 250000, 1e6), 0);
    expect_close(cost_bound_s(2, 250000, 1e6), 1);
    expect_close(cost_bound_s(4, 1199882, 23.875e6), 1.5 * 4799528 / 23.875e6);
    expect_close(cost_bound_s(4, 0, 1e6), 0);
}

/* -------- messages ---------------------------------------------------------------------------- */

static void count_sends(struct cost_messages *messages, size_t sends)
{
    messages->all += (double)sends;
    messages->busiest = fmax(messages->busiest, (double)sends);
}

static void expect_messages(const struct subject *subject, const struct comm_options *options,
                            struct cost_messages expected)
{
    const struct cost_shape *shape = &subject->shape;
    struct cost_messages found =
        subject->formula->messages(&shape->topology, NULL, shape->count, options);
    cr_expect(found.busiest == expected.busiest && found.all == expected.all,
              "%d workers, radix %d, %zu: %g and %g, expected %g and %g", shape->topology.workers,
              options->radix, shape->count, found.busiest, found.all, expected.busiest,
              expected.all);
}

static void expect_halving_messages(int workers, size_t count, const struct comm_options *options)
{
    const struct subject halved = rhd(workers, count);
    const size_t segment_bytes = halving_segment_bytes(workers, count, options);
    struct cost_messages expected = {0};
    for (int rank = 0; rank < workers; rank++) {
        struct halving_schedule halving;
        size_t sends = 0;
        cr_assert(halving_schedule_init(&halving, workers, options->radix, rank, count,
                                        segment_bytes, HALVING_SLICES_UNDER_WAY) == STATUS_OK);
        for (size_t e = 0; e < halving.exchange_count; e++)
            sends += halving.exchanges[e].send_count;
        if (doubling_is_short(workers, options->radix, halving.slices, count * sizeof(float)))
            sends = (size_t)doubling_steps(workers);
        count_sends(&expected, sends);
        halving_schedule_fini(&halving);
    }
    expect_messages(&halved, options, expected);
}

static void expect_ring_messages(int workers, size_t count, const struct comm_options *options)
{
    const struct subject around = ring(workers, count);
    struct cost_messages expected = {0};
    for (int rank = 0; rank < workers; rank++) {
        struct schedule schedule;
        size_t sends = 0;
        schedule_init(&schedule, workers, rank, count,
                      schedule_segment_bytes(workers, count, options, NULL), NULL);
        for (size_t item = 0; item < schedule_items(&schedule); item++)
            sends += schedule_send(&schedule, item).count > 0;
        count_sends(&expected, sends);
    }
    expect_messages(&around, options, expected);
}

/* The messages are those of halving's lists and the ring's items, also if the vector has fewer
 * elements than there are workers. */
Test(cost, messages_are_those_of_the_schedules)
{
    static const size_t counts[] = {0,  1,  2,  3,  5,  7,  8,   11,    15,     16,
                                    17, 31, 33, 47, 64, 70, 100, 16384, 262144, 1199882};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (int workers = 1; workers <= 16; workers++) {
            struct comm_options options = {.segment_bytes = counts[c] < 100 ? 8 : 0};
            for (; options.radix <= workers; options.radix++)
                expect_halving_messages(workers, counts[c], &options);
            if (workers != 2)
                expect_ring_messages(workers, counts[c], &options);
            options = (struct comm_options){0};
            expect_halving_messages(workers, counts[c], &options);
            if (workers != 2)
                expect_ring_messages(workers, counts[c], &options);
        }
    }
    const struct comm_options halves = {.compress = COMPRESS_BF16, .segment_bytes = 8};
    expect_ring_messages(2, 47, &halves);
}

/* Nine pieces are five slices of two pieces. The last of these slices may have one element. */
Test(cost, messages_of_two_workers)
{
    const struct comm_options options = {.segment_bytes = 8};
    const struct {
        size_t count;
        double each;
    } cases[] = {{0, 0}, {1, 1}, {2, 1}, {16, 8}, {18, 10}, {20, 10}, {22, 12}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct subject two = ring(2, cases[c].count);
        expect_messages(&two, &options, (struct cost_messages){cases[c].each, 2 * cases[c].each});
    }
    const struct comm_options elements = {.segment_bytes = 4};
    const struct subject two = ring(2, 9);
    expect_messages(&two, &elements, (struct cost_messages){9, 18});
}

/* Each worker's chunks for each server, and back. */
Test(cost, messages_of_servers)
{
    static const size_t counts[] = {100, 16384, 262144, 1199882};
    const struct comm_options options = {0};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (int workers = 2; workers <= 9; workers++) {
            for (int servers = 1; servers <= workers; servers++) {
                const struct topology ps = {workers, servers, PLACEMENT_DEDICATED};
                struct shard_plan plan = shard_plan(&ps, counts[c], &options);
                double chunks = 0;
                for (int s = 0; s < servers; s++)
                    chunks += (double)shard_chunks(&plan, counts[c], s);
                struct cost_messages messages = ps_cost.messages(&ps, NULL, counts[c], &options);
                cr_expect(messages.all == 2 * workers * chunks);
                cr_expect(messages.busiest >= messages.all / (2 * (workers + servers)));
            }
        }
    }
}
