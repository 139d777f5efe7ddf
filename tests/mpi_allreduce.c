/*
 * Every backend over every transport, placement, world size and length: run under mpirun with 1 to
 * 8 ranks. Data depends on rank and index, every element is compared, then all ranks are compared
 * to the bit. Bytes are compared with the closed formulas, to the byte.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/comm/chunk.h"
#include "common/comm/comm.h"
#include "common/comm/reduce.h"
#include "common/net/world.h"
#include "ps/ps.h"
#include "ring/halving.h"
#include "ring/library.h"
#include "ring/ring.h"

enum { OPERATIONS = 3 };

static struct world *world;

/* Small integers: their sums are exact in float, in any order. */
static float element(int worker, size_t i, int operation)
{
    return (float)((i * 7 + (size_t)worker * 13 + (size_t)operation * 5 + 1) % 251) -
           (float)(worker * 3);
}

/* Not exact: shows the order of addition. */
static float rough(int worker, size_t i)
{
    return 1.0f / (float)(1 + (i * 31 + (size_t)worker * 17) % 1009);
}

struct shape {
    const struct backend *backend;
    enum transport_kind transport;
    int servers;
    enum placement placement;
    size_t segment_bytes;
};

/* Halving-doubling: while the workers are cut into 2 parts (or 3, 5, ...) and those again, a worker
 * gives away every chunk but its own, and is given those of its part by every other part; then all
 * that it was given it gives back, and the reverse. */
static size_t halving_elements(int workers, int rank, size_t count)
{
    size_t n = (size_t)workers, r = (size_t)rank, first = 0, size = n;
    size_t elements = count - chunk_of(count, n, r).count;
    while (size > 1) {
        size_t parts = 2;
        while (size % parts)
            parts++;
        size /= parts;
        first += (r - first) / size * size;
        for (size_t c = first; c < first + size; c++)
            elements += (parts - 1) * chunk_of(count, n, c).count;
    }
    return elements;
}

/* With mixed placement `shape->servers` are spare, beside one in each worker. */
static int servers_of(const struct shape *shape, int workers)
{
    return shape->servers + (shape->placement == PLACEMENT_MIXED ? workers : 0);
}

/* BytePS: of n workers and k spare servers, (n-k)/(n^2 + kn - 2k) for each server beside a worker;
 * the spare ones share the rest. */
static size_t shard_elements(const struct shape *shape, int workers, int server, size_t count)
{
    size_t n = (size_t)workers, k = (size_t)shape->servers, s = (size_t)server;
    if (shape->placement != PLACEMENT_MIXED)
        return chunk_of(count, k, s).count;
    size_t beside = k < n ? count * n * (n - k) / (n * n + k * n - 2 * k) : 0;
    return s < n ? chunk_of(beside, n, s).count : chunk_of(count - beside, k, s - n).count;
}

static uint64_t expected_worker_bytes(const struct shape *shape, int workers, int rank,
                                      size_t count, bool sent)
{
    uint64_t elements = 0;
    if (shape->backend == &backend_ring) {
        /* All chunks but one, twice: reduce-scatter omits chunk rank+1 (sent) or rank (received),
         * all-gather rank+2 or rank+1. */
        size_t n = (size_t)workers, r = (size_t)rank;
        if (workers == 1)
            return 0;
        size_t left_out[2] = {(r + 1) % n, (r + 2) % n};
        if (!sent) {
            left_out[0] = r;
            left_out[1] = (r + 1) % n;
        }
        elements = 2 * count - chunk_of(count, n, left_out[0]).count -
                   chunk_of(count, n, left_out[1]).count;
    } else if (shape->backend == &backend_rhd) {
        elements = halving_elements(workers, rank, count);
    } else {
        for (int s = 0; s < servers_of(shape, workers); s++) {
            bool local = shape->placement != PLACEMENT_DEDICATED && s == rank;
            elements += local ? 0 : shard_elements(shape, workers, s, count);
        }
    }
    return elements * sizeof(float);
}

static uint64_t expected_server_bytes(const struct shape *shape, int workers, int server,
                                      size_t count)
{
    size_t mine = shard_elements(shape, workers, server, count);
    bool beside = shape->placement != PLACEMENT_DEDICATED && server < workers;
    size_t peers = (size_t)workers - beside;
    return mine * peers * sizeof(float);
}

static void check_bytes(const struct shape *shape, struct comm *comm, size_t count, int operations)
{
    struct comm_counters counters;
    comm_counters(comm, &counters);
    int workers = comm_workers(comm);
    uint64_t times = (uint64_t)operations;
    if (!shape->backend->uses_transport)
        return;
    if (!comm_is_server(comm)) {
        int rank = comm_rank(comm);
        cr_assert_eq(counters.worker.sent_bytes,
                     times * expected_worker_bytes(shape, workers, rank, count, true));
        cr_assert_eq(counters.worker.received_bytes,
                     times * expected_worker_bytes(shape, workers, rank, count, false));
    }
    int server = shape->placement == PLACEMENT_DEDICATED ? world->rank - workers : world->rank;
    if (shape->backend->uses_servers && server >= 0 && server < servers_of(shape, workers)) {
        uint64_t bytes = times * expected_server_bytes(shape, workers, server, count);
        cr_assert_eq(counters.server.sent_bytes, bytes);
        cr_assert_eq(counters.server.received_bytes, bytes);
    }
}

/* The contributions of all workers, to compute the expected result here. */
static float **make_sources(int workers, size_t count)
{
    float **sources = calloc((size_t)workers, sizeof *sources);
    for (int w = 0; w < workers; w++) {
        sources[w] = calloc(count + 1, sizeof **sources);
        for (size_t i = 0; i < count; i++)
            sources[w][i] = rough(w, i);
    }
    return sources;
}

static void check_exact(struct comm *comm, float *data, size_t count, float scale, int operation)
{
    int workers = comm_workers(comm), rank = comm_rank(comm);
    for (size_t i = 0; i < count; i++)
        data[i] = element(rank, i, operation);
    cr_assert_eq(comm_start(comm, 0, data), STATUS_OK);
    cr_assert_eq(comm_wait(comm, 0), STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (int w = 0; w < workers; w++)
            sum += element(w, i, operation);
        cr_assert_eq(data[i], sum * scale, "worker %d element %zu of %zu: %g, expected %g", rank, i,
                     count, (double)data[i], (double)(sum * scale));
    }
}

/* The same bits on all workers, in every run, and a sum of the right size. */
static void check_same(struct comm *comm, float *data, size_t count, float scale)
{
    int workers = comm_workers(comm), rank = comm_rank(comm);
    size_t bytes = count * sizeof *data;
    float *first = calloc(count + 1, sizeof *first);
    for (int run = 0; run < 2; run++) {
        for (size_t i = 0; i < count; i++)
            data[i] = rough(rank, i);
        cr_assert_eq(comm_start(comm, 0, data), STATUS_OK);
        cr_assert_eq(comm_wait(comm, 0), STATUS_OK);
        if (run == 0)
            memcpy(first, data, bytes);
        cr_assert_arr_eq(data, first, bytes);
    }
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (int w = 0; w < workers; w++)
            sum += (double)rough(w, i);
        cr_assert_float_eq((double)data[i], sum * (double)scale, 1e-6 * sum);
    }
    cr_assert_eq(comm_broadcast(comm, first, count), STATUS_OK); /* worker 0's */
    cr_assert_arr_eq(data, first, bytes);
    free(first);
}

/* With the ring's order, ring and ps give the very bits of reduce_in_order. */
static void check_order(const struct shape *shape, struct comm *comm, float *data, size_t count,
                        float scale)
{
    int workers = comm_workers(comm), rank = comm_rank(comm);
    float **sources = make_sources(workers, count);
    float *expected = calloc(count + 1, sizeof *expected);
    reduce_in_order(expected, (const void *const *)sources, workers,
                    (struct reduce_span){.count = count, .total = count}, REDUCE_ORDER_RING, scale);
    memcpy(data, sources[rank], count * sizeof *data);
    cr_assert_eq(comm_start(comm, 0, data), STATUS_OK);
    cr_assert_eq(comm_wait(comm, 0), STATUS_OK);
    if (shape->backend->uses_transport)
        cr_assert_arr_eq(data, expected, count * sizeof *data);
    for (int w = 0; w < workers; w++)
        free(sources[w]);
    free(sources);
    free(expected);
}

static void check_shape(const struct shape *shape, size_t count)
{
    struct comm *comm = NULL;
    bool ordered = shape->backend != &backend_rhd; /* adds in a tree */
    float scale = 0.5f;                            /* a power of two: scaling stays exact */
    struct comm_options options = {
        .transport = shape->transport,
        .servers = shape->servers,
        .placement = shape->placement,
        .reduce_order = ordered ? REDUCE_ORDER_RING : REDUCE_ORDER_ANY,
        .scale = scale,
        .bucket_counts = &count,
        .buckets = 1,
        .segment_bytes = shape->segment_bytes,
        .timeout_ms = 20000,
    };
    cr_assert_eq(comm_open(&comm, world, shape->backend, &options), STATUS_OK);
    if (comm_is_server(comm)) {
        cr_assert_eq(comm_serve(comm), STATUS_OK);
    } else {
        float *data = calloc(count + 1, sizeof *data);
        for (int operation = 0; operation < OPERATIONS - 1; operation++)
            check_exact(comm, data, count, scale, operation);
        if (ordered)
            check_order(shape, comm, data, count, scale);
        else
            check_same(comm, data, count, scale);
        free(data);
        cr_assert_eq(comm_finish(comm), STATUS_OK);
    }
    check_bytes(shape, comm, count, ordered ? OPERATIONS : OPERATIONS + 1);
    comm_close(&comm);
}

static void check_lengths(const struct shape *shape)
{
    static const size_t counts[] = {0, 1, 2, 3, 5, 7, 8, 64, 1000, 65537, 262147};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        check_shape(shape, counts[c]);
}

static struct comm_options options_of(const struct shape *shape, const size_t *count,
                                      int64_t timeout_ms)
{
    return (struct comm_options){.transport = shape->transport,
                                 .servers = shape->servers,
                                 .placement = shape->placement,
                                 .scale = 1,
                                 .bucket_counts = count,
                                 .buckets = 1,
                                 .timeout_ms = timeout_ms};
}

/*
 * Short messages over and over: whoever sleeps must be woken by every event. A lost one shows as a
 * full second of waiting, which nothing else here takes.
 */
static void check_no_wakeup_is_lost(void)
{
    enum { ROUNDS = 1500 };
    static const size_t count = 1000;
    struct shape ring = {&backend_ring, TRANSPORT_ZMQ, 0, PLACEMENT_DEDICATED, 0};
    struct comm_options options = options_of(&ring, &count, 20000);
    struct comm *comm = NULL;
    static float data[1000];
    int seconds_lost = 0;
    cr_assert_eq(comm_open(&comm, world, ring.backend, &options), STATUS_OK);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_ns = clock_now_ns();
        cr_assert_eq(comm_start(comm, 0, data), STATUS_OK);
        cr_assert_eq(comm_wait(comm, 0), STATUS_OK);
        seconds_lost += clock_now_ns() - start_ns > 9 * NS_PER_S / 10;
    }
    cr_assert_eq(seconds_lost, 0);
    cr_assert_eq(comm_finish(comm), STATUS_OK);
    comm_close(&comm);
}

/* A worker that says goodbye early does not time out while another one takes longer. */
static void check_uneven_finish(enum transport_kind transport)
{
    static const size_t count = 1000;
    struct shape ps = {&backend_ps, transport, world->size, PLACEMENT_COLOCATED, 0};
    struct comm_options options = options_of(&ps, &count, 500);
    struct comm *comm = NULL;
    static float data[1000];
    cr_assert_eq(comm_open(&comm, world, ps.backend, &options), STATUS_OK);
    cr_assert_eq(comm_start(comm, 0, data), STATUS_OK);
    cr_assert_eq(comm_wait(comm, 0), STATUS_OK);
    if (world->rank == world->size - 1)
        clock_sleep_until_ns(clock_now_ns() + NS_PER_S);
    cr_assert_eq(comm_finish(comm), STATUS_OK);
    comm_close(&comm);
}

static void check_segmented(const struct backend *backend, enum transport_kind transport,
                            size_t segment_bytes)
{
    struct shape shape = {backend, transport, 0, PLACEMENT_DEDICATED, segment_bytes};
    if (segment_bytes == 4) /* one element a message: few of them */
        for (size_t count = 0; count < 40; count += 13)
            check_shape(&shape, count);
    else
        check_lengths(&shape);
}

static void check_refusal(void)
{
    struct comm *comm = NULL;
    size_t count = 8;
    struct comm_options options = {.transport = TRANSPORT_MPI,
                                   .reduce_order = REDUCE_ORDER_RING,
                                   .scale = 1,
                                   .bucket_counts = &count,
                                   .buckets = 1,
                                   .timeout_ms = 20000};
    cr_assert_eq(comm_open(&comm, world, &backend_rhd, &options), STATUS_UNSUPPORTED);
    cr_assert_null(comm);
}

/* Buckets of different lengths, one of them empty, taken from last to first. */
static void check_buckets(enum transport_kind transport)
{
    static const size_t counts[] = {5, 0, 30011, 64};
    enum { BUCKETS = sizeof counts / sizeof *counts };
    struct comm *comm = NULL;
    struct comm_options options = {.transport = transport,
                                   .scale = 1,
                                   .bucket_counts = counts,
                                   .buckets = BUCKETS,
                                   .segment_bytes = 2000,
                                   .timeout_ms = 20000};
    cr_assert_eq(comm_open(&comm, world, &backend_rhd, &options), STATUS_OK);
    float *data = calloc(30011, sizeof *data);
    for (int operation = 0; operation < OPERATIONS; operation++) {
        for (size_t b = BUCKETS; b-- > 0;) {
            for (size_t i = 0; i < counts[b]; i++)
                data[i] = element(world->rank, i, operation);
            cr_assert_eq(comm_start(comm, b, data), STATUS_OK);
            cr_assert_eq(comm_wait(comm, b), STATUS_OK);
            for (size_t i = 0; i < counts[b]; i++) {
                float sum = 0;
                for (int w = 0; w < world->size; w++)
                    sum += element(w, i, operation);
                cr_assert_eq(data[i], sum);
            }
        }
    }
    free(data);
    cr_assert_eq(comm_finish(comm), STATUS_OK);
    comm_close(&comm);
}

/* A backend that is still at work when it is closed, unless somebody waits for it. */
struct slow {
    bool begun, finished;
};

static enum status slow_open(void **self, const struct comm_site *site)
{
    (void)site;
    *self = calloc(1, sizeof(struct slow));
    return *self ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status slow_allreduce(void *self, size_t bucket, float *data)
{
    struct slow *slow = self;
    slow->begun = true;
    clock_sleep_until_ns(clock_now_ns() + 50 * NS_PER_MS);
    data[bucket] = 1;
    slow->finished = true;
    return STATUS_OK;
}

static void slow_close(void *self)
{
    struct slow *slow = self;
    cr_expect(slow->begun && slow->finished, "closed while a bucket was averaged");
    free(slow);
}

/* After an error a comm is closed with buckets under way: their memory is the caller's again. */
static void check_close_in_the_middle(void)
{
    static const struct backend slow = {
        .name = "slow", .open = slow_open, .allreduce = slow_allreduce, .close = slow_close};
    static const size_t count = 1;
    float data = 0;
    struct shape shape = {&slow, TRANSPORT_MPI, 0, PLACEMENT_DEDICATED, 0};
    struct comm_options options = options_of(&shape, &count, 20000);
    options.overlap = true;
    struct comm *comm;
    cr_assert_eq(comm_open(&comm, world, &slow, &options), STATUS_OK);
    cr_assert_eq(comm_start(comm, 0, &data), STATUS_OK);
    comm_close(&comm);
    cr_expect_eq(data, 1);
}

/*
 * Two threads of a process inside Open MPI: whichever of them makes progress writes to the other's
 * receive buffers, under locks that ThreadSanitizer does not see. It would blame the reader, which
 * is ours.
 */
static bool can_judge(enum transport_kind transport)
{
#ifdef __SANITIZE_THREAD__
    return transport != TRANSPORT_MPI;
#else
    (void)transport;
    return true;
#endif
}

Test(mpi_allreduce, all_shapes)
{
    cr_assert_eq(world_open(&world, NULL, NULL, NULL), STATUS_OK);
    for (enum transport_kind t = TRANSPORT_ZMQ; t <= TRANSPORT_MPI; t++) {
        static const size_t segments[] = {0, 4, 1000};
        for (size_t s = 0; s < sizeof segments / sizeof *segments; s++) {
            check_segmented(&backend_ring, t, segments[s]);
            check_segmented(&backend_rhd, t, segments[s]);
        }
        check_buckets(t);
        for (int servers = 1; servers <= world->size; servers++) {
            struct shape ps = {&backend_ps, t, servers, PLACEMENT_COLOCATED, 0};
            if (can_judge(t) && (servers == 1 || servers == world->size))
                check_lengths(&ps);
            ps.placement = PLACEMENT_DEDICATED;
            if (servers < world->size && servers <= 2)
                check_lengths(&ps);
        }
        for (int spare = 0; can_judge(t) && spare < world->size; spare++) {
            struct shape mixed = {&backend_ps, t, spare, PLACEMENT_MIXED, 0};
            if (world->size <= 5 || spare == 2) /* with few workers, more spare servers than them */
                check_lengths(&mixed);
        }
    }
    check_refusal();
    if (world->concurrent)
        check_close_in_the_middle();
    check_no_wakeup_is_lost();
    check_uneven_finish(TRANSPORT_ZMQ);
    if (can_judge(TRANSPORT_MPI))
        check_uneven_finish(TRANSPORT_MPI);
    struct shape library = {&backend_mpi, TRANSPORT_MPI, 0, PLACEMENT_DEDICATED, 0};
    check_lengths(&library);
    world_close(&world);
}
