/*
 * Every backend over tcp and zmq, with every placement, world size and length. Data depends on rank
 * and index. Every element is compared, then all ranks bit by bit. Bytes equal the closed formulas
 * exactly.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/comm/comm.h"
#include "common/comm/reduce.h"
#include "common/net/world.h"
#include "ps/ps.h"
#include "ring/halving_schedule.h"
#include "ring/hierarchical.h"
#include "ring/ring.h"
#include "tests/lib/allreduce_lib.h"
#include "tests/lib/send_memory.h"
#include "tests/lib/spawn.h"

enum { OPERATIONS = 3 };

static _Thread_local struct world *world;

/* The contributions of all workers, to compute the expected result locally. */
static float **make_sources(int workers, size_t count)
{
    float **sources = calloc((size_t)workers, sizeof *sources);
    for (int w = 0; w < workers; w++) {
        sources[w] = calloc(count + 1, sizeof **sources);
        allreduce_fill_rough(sources[w], w, count);
    }
    return sources;
}

/* All workers get the same bits in every run, and the sum has the right size. */
static void check_same(struct comm *comm, float *data, size_t count, float scale)
{
    float *first = calloc(count + 1, sizeof *first);
    for (int run = 0; run < 2; run++) {
        allreduce_fill_rough(data, comm_rank(comm), count);
        allreduce_average(comm, 0, data);
        if (run == 0)
            memcpy(first, data, count * sizeof *data);
        rank_assert_same(data, first, count * sizeof *data);
    }
    for (size_t i = 0; i < count; i++) {
        double sum = allreduce_rough_sum(comm_workers(comm), i);
        rank_assert_near((double)data[i], sum * (double)scale, 1e-6 * sum);
    }
    allreduce_check_same(comm, data, count);
    free(first);
}

/* With the ring's order, ring and ps give the same bits as reduce_in_order. */
static void check_order(const struct shape *shape, struct comm *comm, float *data, size_t count,
                        float scale)
{
    int workers = comm_workers(comm), rank = comm_rank(comm);
    float **sources = make_sources(workers, count);
    float *expected = calloc(count + 1, sizeof *expected);
    reduce_in_order(expected, (const void *const *)sources, workers,
                    (struct reduce_span){.count = count, .total = count}, REDUCE_ORDER_RING, scale);
    memcpy(data, sources[rank], count * sizeof *data);
    allreduce_average(comm, 0, data);
    if (shape->backend->uses_transport)
        rank_assert_same(data, expected, count * sizeof *data);
    for (int w = 0; w < workers; w++)
        free(sources[w]);
    free(sources);
    free(expected);
}

/* Checks one plan of an open comm. */
static void check_plan(const struct shape *shape, struct comm *comm, size_t count, bool ordered)
{
    float scale = 0.5f; /* a power of two: scaling stays exact */
    const struct comm_layout layout = {.counts = &count, .buckets = 1, .scale = scale};
    rank_assert_ok(comm_plan(comm, &layout));
    if (comm_is_server(comm)) {
        rank_assert_ok(comm_serve(comm));
    } else {
        float *data = calloc(count + 1, sizeof *data);
        for (int operation = 0; operation < OPERATIONS - 1; operation++)
            allreduce_check_exact(comm, 0, data, count, scale, operation);
        if (ordered)
            check_order(shape, comm, data, count, scale);
        else
            check_same(comm, data, count, scale);
        free(data);
        rank_assert_ok(comm_finish(comm));
    }
    allreduce_check_bytes(shape, comm, world, count, ordered ? OPERATIONS : OPERATIONS + 1);
}

/* Connects once and plans every length. */
static void check_counts(const struct shape *shape, const size_t *counts, size_t count)
{
    struct comm *comm = NULL;
    bool in_tree = shape->backend == &backend_rhd || shape->backend == &backend_tree;
    bool ordered = !in_tree && !shape->any_order;
    struct allreduce_setup setup = allreduce_setup(shape, counts, count, 1);
    if (ordered)
        setup.options.reduce_order = REDUCE_ORDER_RING;
    rank_assert_ok(comm_open(&comm, world, shape->backend, &setup.options));
    send_memory_watch(comm);
    for (size_t c = 0; c < count; c++)
        check_plan(shape, comm, counts[c], ordered);
    comm_close(&comm);
}

/* Lengths: no element, fewer than ranks, some more, several segments in each chunk (many with a
 * given segment length), and a short vector after a long one. */
static void check_lengths(const struct shape *shape)
{
    static const size_t all[] = {0, 1, 2, 3, 5, 262147, 7, 8, 64, 1000, 65537};
    static const size_t few[] = {0, 1, 131101, 7, 1000};
    static const size_t few_in_segments[] = {0, 3, 20011, 1000};
    if (spawn_is_long())
        check_counts(shape, all, sizeof all / sizeof *all);
    else if (shape->segment_bytes > 0)
        check_counts(shape, few_in_segments, sizeof few_in_segments / sizeof *few_in_segments);
    else
        check_counts(shape, few, sizeof few / sizeof *few);
}

/* Two workers exchange a short vector in one message and longer ones in pieces. The messages of
 * long vectors are slices of two pieces. */
static void check_pair(enum transport_kind transport)
{
    enum { PIECE = 98304 };
    static const size_t counts[] = {1, PIECE, PIECE + 1, 8 * PIECE, 8 * PIECE + 1, 10 * PIECE + 1};
    static const size_t messages[] = {1, 1, 2, 8, 10, 12};
    struct shape ring = {.backend = &backend_ring, .transport = transport};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        struct allreduce_setup setup = allreduce_setup(&ring, &counts[c], 1, 1);
        struct comm_counters moved;
        struct comm *comm = NULL;
        float *data = calloc(counts[c], sizeof *data);
        allreduce_open(&comm, world, &ring, &setup);
        allreduce_average(comm, 0, data);
        rank_assert_ok(comm_finish(comm));
        comm_counters(comm, &moved);
        rank_assert_eq(moved.worker.sent_messages, messages[c], "%zu: %zu messages", counts[c],
                       (size_t)moved.worker.sent_messages);
        comm_close(&comm);
        free(data);
    }
}

/* Averages rough numbers by halving-doubling. Returns the number of messages sent by this rank. */
static size_t average_rough(enum transport_kind transport, size_t segment_bytes, float *data,
                            size_t count)
{
    struct shape rhd = {
        .backend = &backend_rhd, .transport = transport, .segment_bytes = segment_bytes};
    struct allreduce_setup setup = allreduce_setup(&rhd, &count, 1, 1.0f / 3);
    struct comm_counters moved;
    struct comm *comm = NULL;
    allreduce_open(&comm, world, &rhd, &setup);
    allreduce_fill_rough(data, comm_rank(comm), count);
    allreduce_average(comm, 0, data);
    allreduce_check_same(comm, data, count);
    rank_assert_ok(comm_finish(comm));
    comm_counters(comm, &moved);
    comm_close(&comm);
    return moved.worker.sent_messages;
}

/* 2, 4 and 8 workers exchange a short vector whole, in half as many messages as a longer one. The
 * bits equal those of halving, which a run with segments of one element uses. */
static void check_doubling(enum transport_kind transport)
{
    enum { SHORT = DOUBLING_BYTES_MAX / sizeof(float) };
    static _Thread_local float doubled[SHORT + 1], halved[SHORT + 1];
    size_t steps = world->size == 2 ? 1 : world->size == 4 ? 2 : 3;
    rank_assert_eq(average_rough(transport, 0, doubled, 1), steps);
    rank_assert_eq(average_rough(transport, 0, doubled, SHORT), steps);
    rank_assert(average_rough(transport, 4, halved, SHORT) > 2 * steps);
    rank_assert_same(doubled, halved, SHORT * sizeof *halved);
    rank_assert_eq(average_rough(transport, 0, halved, SHORT + 1), 2 * steps);
}

/* Repeats short all-reduces. Returns how many of them took a second on this rank. */
static double count_slow_rounds(struct comm *comm)
{
    enum { ROUNDS = 1500 };
    static _Thread_local float data[1000];
    double slow = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_ns = clock_now_ns();
        allreduce_average(comm, 0, data);
        slow += clock_now_ns() - start_ns > 9 * NS_PER_S / 10;
    }
    return slow;
}

/*
 * Every event must wake a sleeping thread. A lost event shows as a full second of waiting. On a
 * machine that is busy with other work this may happen too, but not every time.
 */
static void check_no_wakeup_is_lost(enum transport_kind transport)
{
    enum { TRIES = 3 };
    static const size_t count = 1000;
    struct shape ring = {.backend = &backend_ring, .transport = transport};
    struct allreduce_setup setup = allreduce_setup(&ring, &count, 1, 1);
    struct comm *comm = NULL;
    double slow = 1;
    allreduce_open(&comm, world, &ring, &setup);
    for (int try = 0; try < TRIES && slow > 0; try++) {
        slow = count_slow_rounds(comm);
        rank_assert_ok(world_max(world, NULL, &slow, 1));
    }
    rank_assert_eq(slow, 0);
    rank_assert_ok(comm_finish(comm));
    comm_close(&comm);
}

/* A worker that sends its goodbye early does not time out while another worker takes longer. */
static void check_uneven_finish(enum transport_kind transport)
{
    static const size_t count = 1000;
    struct shape ps = {.backend = &backend_ps,
                       .transport = transport,
                       .servers = world->size,
                       .placement = PLACEMENT_COLOCATED};
    struct allreduce_setup setup = allreduce_setup(&ps, &count, 1, 1);
    setup.options.timeout_ms = 2000;
    struct comm *comm = NULL;
    static _Thread_local float data[1000];
    allreduce_open(&comm, world, &ps, &setup);
    allreduce_average(comm, 0, data);
    if (world->rank == world->size - 1)
        clock_sleep_until_ns(clock_now_ns() + 3 * NS_PER_S);
    rank_assert_ok(comm_finish(comm));
    comm_close(&comm);
}

static void check_segmented(const struct backend *backend, enum transport_kind transport,
                            size_t segment_bytes)
{
    struct shape shape = {
        .backend = backend, .transport = transport, .segment_bytes = segment_bytes};
    static const size_t few[] = {0, 13, 26, 39};
    if (segment_bytes == 4) /* one element a message: few of them */
        check_counts(&shape, few, sizeof few / sizeof *few);
    else
        check_lengths(&shape);
}

/* All hosts with equal numbers of ranks: neighbours, or ranks dealt out in turn. Also with the
 * ring's order of addition, if it is possible. */
static void check_hosts(enum transport_kind transport, size_t segment_bytes)
{
    for (int locals = 1; locals <= world->size; locals++) {
        for (int way = 0; world->size % locals == 0 && way < 3; way++) {
            struct shape shape = {.backend = &backend_hierarchical,
                                  .transport = transport,
                                  .segment_bytes = segment_bytes,
                                  .locals = locals,
                                  .dealt_out = way == 2,
                                  .any_order = way > 0};
            if (way == 2 && (locals == 1 || locals == world->size))
                continue; /* the same as neighbours */
            if (segment_bytes > 0 && way != 1 && !spawn_is_long())
                continue; /* segments do not change a rank's host */
            allreduce_play_hosts(world, &shape);
            check_lengths(&shape);
        }
    }
}

/* Refused: hosts with unequal numbers of ranks, and the ring's order on ranks that are dealt out or
 * compress. */
static void check_hosts_refused(void)
{
    struct comm *comm = NULL;
    size_t count = 8;
    struct shape shape = {
        .backend = &backend_hierarchical, .transport = TRANSPORT_TCP, .locals = 2};
    struct allreduce_setup setup = allreduce_setup(&shape, &count, 1, 1);
    if (world->size % 2 == 1 && world->size > 1) {
        allreduce_play_hosts(world, &shape);
        rank_assert_eq(comm_open(&comm, world, &backend_hierarchical, &setup.options),
                       STATUS_USAGE);
        rank_assert(!comm);
    } else if (world->size > 2) {
        shape.dealt_out = true;
        setup.options.reduce_order = REDUCE_ORDER_RING;
        allreduce_play_hosts(world, &shape);
        rank_assert_eq(comm_open(&comm, world, &backend_hierarchical, &setup.options),
                       STATUS_USAGE);
        rank_assert(!comm);
    }
    shape = (struct shape){.locals = world->size};
    setup.options.reduce_order = REDUCE_ORDER_RING;
    setup.options.compress = COMPRESS_FP16;
    allreduce_play_hosts(world, &shape);
    rank_assert_eq(comm_open(&comm, world, &backend_hierarchical, &setup.options),
                   STATUS_UNSUPPORTED);
    rank_assert(!comm);
}

static void check_refusal(void)
{
    struct comm *comm = NULL;
    size_t count = 8;
    static const struct backend *const in_trees[] = {&backend_rhd, &backend_tree};
    for (size_t b = 0; b < sizeof in_trees / sizeof *in_trees; b++) {
        struct shape shape = {.backend = in_trees[b], .transport = TRANSPORT_TCP};
        struct allreduce_setup setup = allreduce_setup(&shape, &count, 1, 1);
        setup.options.reduce_order = REDUCE_ORDER_RING;
        rank_assert_eq(comm_open(&comm, world, in_trees[b], &setup.options), STATUS_UNSUPPORTED);
        rank_assert(!comm);
    }
}

/* Buckets of different lengths, one of them empty, started from last to first. */
static void check_buckets(const struct shape *shape)
{
    static const size_t counts[] = {5, 0, 30011, 64, 20011};
    enum { BUCKETS = sizeof counts / sizeof *counts };
    struct comm *comm = NULL;
    struct allreduce_setup setup = allreduce_setup(shape, counts, BUCKETS, 1);
    allreduce_open(&comm, world, shape, &setup);
    float *data = calloc(30011, sizeof *data);
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (size_t b = BUCKETS; b-- > 0;)
            allreduce_check_exact(comm, b, data, counts[b], 1, operation);
    free(data);
    rank_assert_ok(comm_finish(comm));
    comm_close(&comm);
}

/* A backend that is still at work when it is closed, unless its caller waits. */
struct slow {
    bool begun, finished;
};

static enum status slow_open(void **self, const struct backend_env *site)
{
    (void)site;
    *self = calloc(1, sizeof(struct slow));
    return *self ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status slow_allreduce(void *self, size_t bucket, void *data)
{
    struct slow *slow = self;
    slow->begun = true;
    clock_sleep_until_ns(clock_now_ns() + 50 * NS_PER_MS);
    ((float *)data)[bucket] = 1;
    slow->finished = true;
    return STATUS_OK;
}

static void slow_close(void *self)
{
    struct slow *slow = self;
    rank_assert(slow->begun && slow->finished, "closed while a bucket was averaged");
    free(slow);
}

/* After an error a comm is closed with buckets under way. Then the caller owns their memory. */
static void check_close_in_the_middle(void)
{
    static const struct backend slow = {
        .name = "slow", .open = slow_open, .allreduce = slow_allreduce, .close = slow_close};
    static const size_t count = 1;
    float data = 0;
    struct shape shape = {.backend = &slow, .transport = TRANSPORT_TCP};
    struct allreduce_setup setup = allreduce_setup(&shape, &count, 1, 1);
    setup.layout.overlap = true;
    struct comm *comm;
    allreduce_open(&comm, world, &shape, &setup);
    rank_assert_ok(comm_start(comm, 0, &data));
    comm_close(&comm);
    rank_assert_eq(data, 1);
}

/* -------- all tests --------------------------------------------------------------------------- */

static void check_servers(enum transport_kind transport)
{
    for (int servers = 1; servers <= world->size; servers++) {
        struct shape ps = {.backend = &backend_ps,
                           .transport = transport,
                           .servers = servers,
                           .placement = PLACEMENT_COLOCATED};
        if (servers == 1 || servers == world->size)
            check_lengths(&ps);
        ps.placement = PLACEMENT_DEDICATED;
        if (servers < world->size && servers <= 2)
            check_lengths(&ps);
    }
    for (int spare = 0; spare < world->size; spare++) {
        struct shape mixed = {.backend = &backend_ps,
                              .transport = transport,
                              .servers = spare,
                              .placement = PLACEMENT_MIXED};
        if (world->size <= 5 || spare == 2) /* with few workers, more spare servers than workers */
            check_lengths(&mixed);
    }
}

static void check_collectives(enum transport_kind transport)
{
    static const size_t segments[] = {0, 4, 1000};
    struct shape shape = {.backend = &backend_rhd, .transport = transport, .segment_bytes = 2000};
    for (size_t s = 0; s < sizeof segments / sizeof *segments; s++) {
        check_segmented(&backend_ring, transport, segments[s]);
        check_segmented(&backend_rhd, transport, segments[s]);
    }
    check_buckets(&shape);
    if (world->size == 2 || world->size == 4 || world->size == 8)
        check_doubling(transport);
    if (world->size == 2)
        check_pair(transport);
}

static void check_hierarchies(enum transport_kind transport)
{
    struct shape shared = {.backend = &backend_hierarchical,
                           .transport = transport,
                           .locals = world->size % 2 ? world->size : 2};
    check_hosts(transport, 0);
    check_hosts(transport, 1000);
    allreduce_play_hosts(world, &shared);
    check_buckets(&shared);
    check_hosts_refused();
}

/* Lengths around the bounds of halves and segments, with segments of 64 elements. The longest has
 * more segments than a leaf may have under way. */
static void check_trees(enum transport_kind transport)
{
    static const size_t counts[] = {0, 1, 2, 3, 127, 128, 129, 255, 256, 257, 64 * 27 + 1};
    struct shape tree = {.backend = &backend_tree, .transport = transport, .segment_bytes = 256};
    check_counts(&tree, counts, sizeof counts / sizeof *counts);
    check_buckets(&tree);
    tree.segment_bytes = 0;
    if (world->size == 5 || world->size == 8)
        check_lengths(&tree);
}

/* Averages whole numbers, then rough ones. `averages`: of this rank, of the latter. */
static void average_at(double round_trip_s, struct shape *shape, float *averages, size_t count)
{
    struct comm *comm = NULL;
    struct allreduce_setup setup = allreduce_setup(shape, &count, 1, 1.0f / 3);
    setup.options.link_bytes_per_s = 1e6; /* holds some slices, not all */
    world->round_trip_s = round_trip_s;
    allreduce_open(&comm, world, shape, &setup);
    allreduce_check_exact(comm, 0, averages, count, 1.0f / 3, 0);
    allreduce_fill_rough(averages, comm_rank(comm), count);
    allreduce_average(comm, 0, averages);
    allreduce_check_same(comm, averages, count);
    rank_assert_ok(comm_finish(comm));
    allreduce_check_bytes(shape, comm, world, count, 2);
    comm_close(&comm);
}

/* More slices, or segments, are under way between distant workers. Sums are exact, bytes too, and
 * all bits are those of near workers. */
static void check_distance(enum transport_kind transport)
{
    static const size_t counts[] = {0, 1, 7, 1000, 20011};
    enum { COUNTS = sizeof counts / sizeof *counts, MOST = 20011 };
    static const struct backend *const backends[] = {&backend_rhd, &backend_tree};
    static const double far_s = 10e-3;
    float *near = calloc(MOST, sizeof *near), *far = calloc(MOST, sizeof *far);
    for (size_t b = 0; b < sizeof backends / sizeof *backends; b++) {
        struct shape shape = {.backend = backends[b], .transport = transport, .segment_bytes = 400};
        for (size_t c = 0; c < COUNTS; c++) {
            average_at(0, &shape, near, counts[c]);
            average_at(far_s, &shape, far, counts[c]);
            rank_assert_same(near, far, counts[c] * sizeof *near);
        }
    }
    free(near);
    free(far);
}

/* Radices that cut the workers in another way than 2. With 16 all exchange directly. The segments
 * have 64 elements, so the longest vector is cut into slices. */
static void check_radices(enum transport_kind transport)
{
    static const size_t counts[] = {0, 1, 3, 15, 16, 17, 100, 5003};
    static const int radices[] = {3, 4, 6, 8, 16};
    int before = 2;
    for (size_t r = 0; r < sizeof radices / sizeof *radices; r++) {
        if (halving_parts(world->size, radices[r]) == before && world->size > 1)
            continue;
        before = halving_parts(world->size, radices[r]);
        struct shape shape = {.backend = &backend_rhd,
                              .transport = transport,
                              .segment_bytes = 256,
                              .radix = radices[r]};
        check_counts(&shape, counts, sizeof counts / sizeof *counts);
        if (radices[r] == 4)
            check_buckets(&shape);
    }
}

/* Checks that need one world size only. */
static void check_once(enum transport_kind transport)
{
    check_refusal();
    check_close_in_the_middle();
    check_no_wakeup_is_lost(transport);
    check_uneven_finish(transport);
}

struct part {
    enum transport_kind transport;
    void (*check)(enum transport_kind transport);
};

static void run(struct world *of, void *context)
{
    const struct part *part = context;
    world = of;
    part->check(part->transport);
}

static void check_sizes(enum transport_kind transport, void (*check)(enum transport_kind transport))
{
    struct part part = {transport, check};
    spawn_sizes(1, 8, run, &part);
}

Test(allreduce, ring_and_halving_over_tcp)
{
    check_sizes(TRANSPORT_TCP, check_collectives);
}

Test(allreduce, ring_and_halving_over_zmq)
{
    check_sizes(TRANSPORT_ZMQ, check_collectives);
}

/* Every number of workers has other trees and other factors. */
static void check_every_size(enum transport_kind transport,
                             void (*check)(enum transport_kind transport))
{
    struct part part = {transport, check};
    for (int workers = 1; workers <= SPAWN_RANKS_MOST; workers++)
        spawn(workers, run, &part);
}

Test(allreduce, trees_over_tcp)
{
    check_every_size(TRANSPORT_TCP, check_trees);
}

Test(allreduce, trees_over_zmq)
{
    check_every_size(TRANSPORT_ZMQ, check_trees);
}

Test(allreduce, distant_over_tcp)
{
    check_every_size(TRANSPORT_TCP, check_distance);
}

Test(allreduce, distant_over_zmq)
{
    check_sizes(TRANSPORT_ZMQ, check_distance);
}

Test(allreduce, radices_over_tcp)
{
    check_every_size(TRANSPORT_TCP, check_radices);
}

Test(allreduce, radices_over_zmq)
{
    check_sizes(TRANSPORT_ZMQ, check_radices);
}

Test(allreduce, hierarchical_over_tcp)
{
    check_sizes(TRANSPORT_TCP, check_hierarchies);
}

Test(allreduce, hierarchical_over_zmq)
{
    check_sizes(TRANSPORT_ZMQ, check_hierarchies);
}

Test(allreduce, servers_over_tcp)
{
    check_sizes(TRANSPORT_TCP, check_servers);
}

Test(allreduce, servers_over_zmq)
{
    check_sizes(TRANSPORT_ZMQ, check_servers);
}

Test(allreduce, once_over_tcp)
{
    struct part part = {TRANSPORT_TCP, check_once};
    spawn(3, run, &part);
}

Test(allreduce, once_over_zmq)
{
    struct part part = {TRANSPORT_ZMQ, check_once};
    spawn(3, run, &part);
}
