/*
 * Compressed all-reduces: every backend that compresses, over tcp and zmq. Sums that 16 bits can
 * hold are exact. All workers end with the same bits. Over many operations error feedback loses no
 * more than one rounding. Every node moves half the bytes.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/comm/comm.h"
#include "common/net/world.h"
#include "ps/ps.h"
#include "ring/hierarchical.h"
#include "ring/ring.h"
#include "tests/lib/allreduce_lib.h"
#include "tests/lib/spawn.h"

enum { EXACT = 3, OPERATIONS = 12 };

static const float scale = 0.5f; /* a power of two: scaling stays exact */

static _Thread_local struct world *world;

/*
 * Every operation has the same rough numbers. Every node rounds an element at most once an
 * operation, by at most half a unit in the last place. The W + 1 nodes therefore hold back a
 * bounded amount. With feedback, no more than this bound is ever missing. Without feedback, each
 * operation loses about as much again.
 */
static void check_rounding(const struct shape *shape, struct comm *comm, float *data, size_t count)
{
    int workers = comm_workers(comm);
    double half_unit = shape->compress == COMPRESS_FP16 ? 0x1p-11 : 0x1p-8;
    double *total = calloc(count + 1, sizeof *total);
    float *before = calloc(count + 1, sizeof *before);
    size_t beyond = 0;
    for (int operation = 0; operation < OPERATIONS; operation++) {
        allreduce_fill_rough(data, comm_rank(comm), count);
        allreduce_average(comm, 0, data);
        for (size_t i = 0; i < count; i++)
            total[i] += (double)data[i];
        if (!shape->feedback && operation > 0)
            rank_assert_same(data, before, count * sizeof *data);
        memcpy(before, data, count * sizeof *data);
    }
    allreduce_check_same(comm, data, count);
    for (size_t i = 0; i < count; i++) {
        double sum = allreduce_rough_sum(workers, i);
        double once = (workers + 1) * half_unit * sum * (double)scale * 1.02;
        double missing = fabs(OPERATIONS * sum * (double)scale - total[i]);
        double adding = OPERATIONS * workers * 0x1p-24 * sum; /* float32's own rounding */
        rank_assert(missing <= (shape->feedback ? 1 : OPERATIONS) * once + adding);
        beyond += missing > once + adding;
    }
    int talking = shape->locals > 0 ? workers / shape->locals : workers; /* 1: nothing is sent */
    bool rounds = talking > 1 || shape->servers > 0;
    if (rounds && !shape->feedback && count >= 1000)
        rank_assert(beyond > 0); /* so the bound distinguishes feedback from none */
    free(total);
    free(before);
}

/* Checks one plan of an open comm. */
static void check_plan(const struct shape *shape, struct comm *comm, size_t count)
{
    const struct comm_layout layout = {.counts = &count, .buckets = 1, .scale = scale};
    rank_assert_ok(comm_plan(comm, &layout));
    if (comm_is_server(comm)) {
        rank_assert_ok(comm_serve(comm));
    } else {
        float *data = calloc(count + 1, sizeof *data);
        for (int operation = 0; operation < EXACT; operation++)
            allreduce_check_exact(comm, 0, data, count, scale, operation);
        check_rounding(shape, comm, data, count);
        free(data);
        rank_assert_ok(comm_finish(comm));
    }
    allreduce_check_bytes(shape, comm, world, count, EXACT + OPERATIONS);
}

/* Connects once and plans every length. */
static void check_counts(const struct shape *shape)
{
    static const size_t counts[] = {0, 3, 20011, 1000};
    enum { COUNTS = sizeof counts / sizeof *counts };
    struct comm *comm = NULL;
    struct allreduce_setup setup = allreduce_setup(shape, counts, COUNTS, scale);
    rank_assert_ok(comm_open(&comm, world, shape->backend, &setup.options));
    for (size_t c = 0; c < COUNTS; c++)
        check_plan(shape, comm, counts[c]);
    comm_close(&comm);
}

static void check_shape(const struct shape *shape)
{
    for (enum compress compress = COMPRESS_FP16; compress <= COMPRESS_BF16; compress++) {
        bool both = compress == COMPRESS_BF16 || spawn_is_long(); /* fp16 uses the same path */
        for (int feedback = !both; feedback < 2; feedback++) {
            struct shape compressed = *shape;
            compressed.compress = compress;
            compressed.feedback = feedback;
            check_counts(&compressed);
        }
    }
}

/* Each bucket has its own residual: a bucket of zeros stays zero next to one that is not. */
static void check_buckets(enum transport_kind transport)
{
    static const size_t counts[] = {300, 300};
    static _Thread_local float data[2][300];
    struct comm *comm = NULL;
    struct shape ring = {.backend = &backend_ring,
                         .transport = transport,
                         .compress = COMPRESS_BF16,
                         .feedback = true};
    struct allreduce_setup setup = allreduce_setup(&ring, counts, 2, scale);
    allreduce_open(&comm, world, &ring, &setup);
    for (int operation = 0; operation < OPERATIONS; operation++) {
        allreduce_fill_rough(data[0], comm_rank(comm), 300);
        memset(data[1], 0, sizeof data[1]);
        for (size_t b = 0; b < 2; b++)
            rank_assert_ok(comm_start(comm, b, data[b]));
        for (size_t b = 0; b < 2; b++)
            rank_assert_ok(comm_wait(comm, b));
        for (size_t i = 0; i < 300; i++)
            rank_assert_eq(data[1][i], 0);
    }
    rank_assert_ok(comm_finish(comm));
    comm_close(&comm);
}

static void all_shapes(struct world *of, void *context)
{
    const enum transport_kind *transport = context;
    int size = of->size;
    struct shape shapes[] = {
        {.backend = &backend_ring},
        {.backend = &backend_ring, .segment_bytes = 1000},
        {.backend = &backend_rhd},
        {.backend = &backend_rhd, .segment_bytes = 1000},
        {.backend = &backend_tree, .segment_bytes = 1000},
        {.backend = &backend_hierarchical, .locals = size % 2 ? size : 2, .any_order = true},
        {.backend = &backend_hierarchical, .locals = 1, .any_order = true},
        {.backend = &backend_ps, .servers = 1, .placement = PLACEMENT_COLOCATED},
        {.backend = &backend_ps, .servers = size, .placement = PLACEMENT_COLOCATED},
        {.backend = &backend_ps, .servers = 1, .placement = PLACEMENT_DEDICATED},
        {.backend = &backend_ps, .servers = 2, .placement = PLACEMENT_DEDICATED},
    };
    world = of;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        shapes[s].transport = *transport;
        bool fits = shapes[s].placement == PLACEMENT_COLOCATED || shapes[s].servers < size;
        if (shapes[s].locals > 0)
            allreduce_play_hosts(world, &shapes[s]);
        if (fits)
            check_shape(&shapes[s]);
    }
    check_buckets(*transport);
}

Test(compressed, over_tcp)
{
    enum transport_kind transport = TRANSPORT_TCP;
    spawn_sizes(1, 5, all_shapes, &transport);
}

Test(compressed, over_zmq)
{
    enum transport_kind transport = TRANSPORT_ZMQ;
    spawn_sizes(1, 5, all_shapes, &transport);
}
