/* The cost models of ring, rhd, tree and hierarchical, compared with cases calculated by hand and
 * with a walk around the ring. */
#include "ring/halving_schedule.h"
#include "tests/lib/cost_lib.h"

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
 * Chunk c starts at rank c. It makes W-1 hops while it is summed, then W-1 hops from the rank where
 * it is complete. The sum of the hops gives every rank's bytes in a second way.
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

/* 10 elements in 4 chunks, 3 3 2 2. Rank 0 sends 2 2, then 3, and receives 3 3, then 3. The
 * all-gather does the reverse. */
Test(cost, rhd_uneven)
{
    struct subject shape = halved(4, 10);
    expect_traffic(shape, 0, 7 + 9, 7 + 9);
    expect_traffic(shape, 2, 7 + 9, 7 + 9);
    expect_traffic(shape, 1, 8 + 6, 8 + 6);
    expect_traffic(shape, 3, 8 + 6, 8 + 6);
    expect_most(shape, NODE_WORKER, 16, 16);
    expect_most(shape, NODE_SERVER, 0, 0);
}

/* 8 elements in 6 chunks, 2 2 1 1 1 1. Step 1 exchanges between {0 2 4} and {1 3 5}, step 2 among
 * the three of a part. The last case: 5 elements on 3 workers, 2 2 1. */
Test(cost, rhd_of_other_factors)
{
    struct subject shape = rhd(6, 8);
    for (int rank = 0; rank < 6; rank += 2) {
        uint64_t own = rank < 4 ? 2 : 1, all = (8 - own) + (5 + 2 * own);
        expect_traffic(shape, rank, all, all);
        expect_traffic(shape, rank + 1, 7 + (3 + 2), 7 + (3 + 2));
    }
    shape = rhd(3, 5);
    expect_traffic(shape, 0, 3 + 2 * 2, 3 + 2 * 2);
    expect_traffic(shape, 2, 4 + 2 * 1, 4 + 2 * 1);
}

Test(cost, rhd_even_is_the_bound_for_every_world_and_radix)
{
    for (int workers = 1; workers <= WORKERS_MAX; workers++) {
        uint64_t expected = 2u * (uint64_t)(workers - 1) * 840 / (uint64_t)workers;
        for (int i = 0; i < workers * WORKERS_MAX; i++) {
            struct subject even = halved(workers, 840);
            even.shape.radix = i / workers + 1;
            expect_traffic(even, i % workers, expected, expected);
            expect_traffic(rhd(workers, 0), i % workers, 0, 0);
        }
    }
}

/* 10 elements in 4 chunks, 3 3 2 2. With radix 4 a worker sends all chunks but its own, then its
 * own to three others. A short vector does so, too: the exchange takes as few steps as doubling. */
Test(cost, rhd_direct)
{
    static const uint64_t own[] = {3, 3, 2, 2};
    struct subject shape = rhd(4, 10);
    shape.shape.radix = 4;
    for (int rank = 0; rank < 4; rank++)
        expect_traffic(shape, rank, 10 + 2 * own[rank], 10 + 2 * own[rank]);
    shape = rhd(8, 250000);
    shape.shape.radix = 8;
    expect_time_on(shape, NULL, 2e-3 + 1.75);
    shape.shape.radix = 4; /* 4 and 2 */
    expect_time_on(shape, NULL, 4e-3 + 1.75);
    shape = rhd(9, 250000);
    shape.shape.radix = 3;
    expect_time_on(shape, NULL, 4e-3 + 16.0 / 9);
}

/* 2, 4, 8 workers send a short vector whole in each of 1, 2, 3 steps. A longer one is halved. */
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

/* With segments shorter than the vector, or with compression, a short vector is halved, too. */
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

/* 10 elements in 4 chunks, 3 3 2 2. Local rank 0 has chunks of 3 and 2, and so has local rank 1. */
Test(cost, hierarchical_uneven_chunks)
{
    struct subject shape = hierarchical(4, two_by_two, REDUCE_ORDER_ANY, 10);
    for (int worker = 0; worker < 4; worker++) /* each of its chunks once to the other host */
        expect_traffic(shape, worker, 3 + 2, 3 + 2);
    shape = hierarchical(4, apart, REDUCE_ORDER_ANY, 10);
    for (int worker = 0; worker < 4; worker++)
        expect_traffic(shape, worker, 3 + 2, 3 + 2);
    /* 20 in 6 chunks, 4 4 3 3 3 3: 4 3 3 and 4 3 3. As in the ring: 2 P less two neighbours. */
    shape = hierarchical(6, three_by_two, REDUCE_ORDER_ANY, 20);
    expect_traffic(shape, 0, 20 - 3 - 3, 20 - 4 - 3);
    expect_traffic(shape, 3, 20 - 3 - 4, 20 - 3 - 3);
    expect_traffic(shape, 4, 20 - 4 - 3, 20 - 3 - 4);
    /* In the ring's order the chunks of the second local rank make one more hop. */
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

/* Two steps between two hosts. In order the second worker of a host makes one more. */
Test(cost, hierarchical_messages)
{
    const struct topology four = {.workers = 4}, six = {.workers = 6};
    struct comm_options options = {.segment_bytes = 16};
    struct cost_messages messages = hierarchical_cost.messages(&four, two_by_two, 16, &options);
    cr_expect(messages.busiest == 2 && messages.all == 4 * 2);
    messages = hierarchical_cost.messages(&four, two_by_two, 32, &options); /* two segments */
    cr_expect(messages.busiest == 4 && messages.all == 4 * 4);
    messages = hierarchical_cost.messages(&six, three_by_two, 24, &options);
    cr_expect(messages.busiest == 4 && messages.all == 6 * 4);
    messages = hierarchical_cost.messages(&four, one_host, 16, &options);
    cr_expect(messages.busiest == 0 && messages.all == 0);
    options.reduce_order = REDUCE_ORDER_RING;
    messages = hierarchical_cost.messages(&four, two_by_two, 16, &options);
    cr_expect(messages.busiest == 3 && messages.all == 2 * 2 + 2 * 3);
}

/* For `hosts` hosts of `locals` workers, dealt out. */
static void expect_hierarchical_messages(int hosts, int locals, size_t count,
                                         const struct comm_options *options)
{
    int on[5 * 4], workers = hosts * locals;
    struct cost_messages expected = {0};
    for (int worker = 0; worker < workers; worker++) {
        const bool returns = options->reduce_order == REDUCE_ORDER_RING && worker / hosts > 0;
        const struct schedule_part part = {locals, worker / hosts, returns};
        struct schedule schedule;
        size_t sends = 0;
        on[worker] = worker % hosts;
        schedule_init(&schedule, hosts, on[worker], count,
                      schedule_segment_bytes(hosts, count, options, &part), &part);
        for (size_t item = 0; item < schedule_items(&schedule); item++)
            sends += schedule_send(&schedule, item).count > 0;
        expected.all += (double)sends;
        expected.busiest = fmax(expected.busiest, (double)sends);
    }
    const struct topology topology = {.workers = workers};
    struct cost_messages found = hierarchical_cost.messages(&topology, on, count, options);
    cr_expect(found.busiest == expected.busiest && found.all == expected.all,
              "%d x %d, %zu: %g and %g, expected %g and %g", hosts, locals, count, found.busiest,
              found.all, expected.busiest, expected.all);
}

Test(cost, hierarchical_messages_are_those_of_the_schedules)
{
    for (int hosts = 2; hosts <= 5; hosts++) {
        for (int locals = 2; locals <= 4; locals++) {
            for (size_t count = 0; count <= 60; count += 1 + count / 12) {
                struct comm_options options = {.segment_bytes = 4 * (count % 4)};
                expect_hierarchical_messages(hosts, locals, count, &options);
                options.reduce_order = REDUCE_ORDER_RING;
                expect_hierarchical_messages(hosts, locals, count, &options);
            }
        }
    }
}

/* While a chunk of one worker is on its way, the link carries the other worker's. */
Test(cost, hierarchical_time_of_a_short_vector)
{
    struct subject shape = hierarchical(4, two_by_two, REDUCE_ORDER_ANY, 100);
    expect_time_on(shape, two_by_two, 2 * 0.0002 + 0.001 + (0.001 + 0.0001 - 0.0002));
    shape = hierarchical(4, two_by_two, REDUCE_ORDER_ANY, 250000);
    expect_time_on(shape, two_by_two, 2 * 0.5 + 0.001);
}

/* Ten elements in chunks of 3, 3, 2, 2. Rank 0 sends all but chunk 1, then all but chunk 2. */
Test(cost, bytes_of_a_ring_with_uneven_chunks)
{
    struct subject shape = ring(4, 10);
    const struct cost_traffic traffic = node_traffic(&shape, 0);
    cr_expect_eq(traffic.sent_bytes, 4 * (10 - 3 + 10 - 2));
    cr_expect_eq(traffic.received_bytes, 4 * (10 - 3 + 10 - 3));
}

/* The time on the busiest host's link: 1 MB over 1 MB/s, a = 1 ms. A single host has no link. */
Test(cost, times_of_rhd_on_shared_hosts)
{
    const size_t count = 250000;
    expect_time_on(rhd(4, count), NULL, 0.004 + 1.5);
    expect_time_on(rhd(4, count), one_host, 0.004 + 1.5);
    expect_time_on(rhd(4, count), two_by_two, 0.004 + 1); /* halves within, both: quarters across */
    expect_time_on(rhd(4, count), apart, 0.004 + 2);      /* both: halves across, quarters within */
    expect_time_on(rhd(4, count), uneven, 0.004 + 1.5);   /* the last worker: all its bytes */
    /* 2 3: a host's two workers halve within. Then each exchanges thirds of its half with both
     * other hosts. */
    expect_time_on(rhd(6, count), three_by_two, 0.004 + 2 * 4.0 / 6);
}

/*
 * 1 MB over 1 MB/s, a = 0.1 s. Eight workers take steps of 500, 250, 125, 125, 250, 500 ms. With
 * ten slices, a slice of a step and its latency take 150, 125, 112.5 ms, so every step but the last
 * hides its latency. With a = 0.2 s they take 250, 225, 212.5 ms, and the two short steps wait 87.5
 * ms each. One slice pays every latency.
 */
Test(cost, times_of_rhd_at_a_distance)
{
    const struct cost_link far = {0.1, 1e6, 0}, farther = {0.2, 1e6, 1e-8};
    struct subject shape = rhd(8, 250000);
    expect_close(time_s(&shape, &far), 1.75 + 6 * 0.1);
    shape.shape.pipeline = 10;
    expect_close(time_s(&shape, &far), 1.75 + 0.1);
    expect_close(time_s(&shape, &farther), 1.75 + 0.2 + 2 * 0.0875 + 0.00875);
    shape.shape.topology.workers = 3; /* two steps of 2/3 s */
    expect_close(time_s(&shape, &far), 4.0 / 3 + 0.1);
}

/* The time of 1 MB over 1 MB/s, a = 1 ms: steps, the busiest link, and the filling of the trees. */
static void expect_tree_time(int workers, size_t segments, const int *hosts, double expected_s)
{
    struct subject shape = tree(workers, 250000);
    shape.shape.pipeline = segments;
    shape.shape.window = 10;
    expect_time_on(shape, hosts, expected_s);
}

Test(cost, times_of_tree)
{
    const struct cost_link adding = {1e-3, 1e6, 1e-8};
    expect_tree_time(1, 1, NULL, 0);
    expect_tree_time(2, 10, NULL, 0.002 + 1);
    expect_tree_time(3, 10, NULL, 0.002 + (9 * 1.5 + 2) / 10);
    expect_tree_time(4, 10, NULL, 0.004 + (9 * 2 + 3) / 10.0);
    expect_tree_time(7, 10, NULL, 0.004 + (9 * 2 + 4) / 10.0); /* a full tree */
    expect_tree_time(8, 1, NULL, 0.006 + 5);
    expect_tree_time(8, 100, NULL, 0.006 + (99 * 2 + 5) / 100.0);
    expect_tree_time(8, 10000, NULL, 0.006 + 2.0003 + 9999 * 0.0008); /* distant */
    expect_tree_time(4, 10, one_host, 0.004 + (9 * 2 + 3) / 10.0);
    expect_tree_time(4, 10, two_by_two, 0.004 + (9 * 2 + 3) / 10.0); /* two edges of each tree */
    expect_tree_time(4, 10, uneven, 0.004 + (9 + 3) / 10.0);         /* worker 3: an edge of each */
    struct subject shape = tree(2, 250000);
    expect_close(time_s(&shape, &adding), 0.002 + 1 + 0.005);
    shape = tree(8, 250000);
    shape.shape.pipeline = 10000;
    shape.shape.window = 6 * 6 + TREE_SEGMENTS_UNDER_WAY; /* a stride of 6: 1 ms in 1.2 ms */
    expect_close(time_s(&shape, &(struct cost_link){1e-3, 1e6, 0}), 0.006 + 2.0003);
    shape.shape.pipeline = 5; /* fewer than the stride: all leave at once */
    expect_close(time_s(&shape, &(struct cost_link){1, 1e6, 0}), 6 + (4 * 2 + 5) / 5.0);
    shape = tree(8, 250000);
    expect_close(time_s(&shape, &adding), 0.006 + 5 + 0.01);
}

/* At a distance the windows of formulas are those of the schedules: the tree's stall ends. */
Test(cost, windows_of_tree_cover_the_distance)
{
    const struct topology four = {.workers = 4};
    struct comm_options options = {.link_bytes_per_s = 25e6};
    cr_expect_eq(tree_cost.window(&four, 1199882, &options), 4 + TREE_SEGMENTS_UNDER_WAY);
    options.round_trip_s = 50e-3;
    size_t stride = tree_stride(4, 1199882, &options);
    cr_expect_eq(tree_cost.window(&four, 1199882, &options), 4 * stride + TREE_SEGMENTS_UNDER_WAY);
    const struct cost_link link = {.latency_s = 25e-3, .bytes_per_s = 25e6};
    struct cost_shape shape = cost_shape_of(&tree_cost, &four, NULL, 1199882, &options);
    double with_window_s = cost_time_s(&tree_cost, &shape, &link);
    shape.window = 0;
    expect_close(with_window_s, cost_time_s(&tree_cost, &shape, &link));
}

Test(cost, messages_of_tree_are_those_of_its_lists)
{
    static const size_t counts[] = {0, 1, 100, 16384, 1199882};
    const struct comm_options options = {0};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (int workers = 1; workers <= 9; workers++) {
            const struct topology topology = {.workers = workers};
            size_t most = 0, all = 0;
            for (int rank = 0; rank < workers; rank++) {
                struct halving_schedule list;
                size_t sends = 0;
                cr_assert_eq(tree_schedule_init(&list, workers, rank, counts[c], 0, c + 1),
                             STATUS_OK);
                for (size_t e = 0; e < list.exchange_count; e++)
                    sends += list.exchanges[e].send_count;
                cr_expect_eq(list.receives, sends);
                halving_schedule_fini(&list);
                most = size_larger(most, sends);
                all += sends;
            }
            struct cost_messages messages =
                tree_cost.messages(&topology, NULL, counts[c], &options);
            cr_expect(messages.busiest == (double)most && messages.all == (double)all);
        }
    }
}
