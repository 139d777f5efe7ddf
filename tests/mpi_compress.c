/*
 * Compressed all-reduces: every backend that compresses, over both transports, under mpirun. Sums
 * that 16 bits can hold are exact; all workers end with the same bits; over many operations error
 * feedback leaves no more behind than one rounding; bytes are half of those without, at every node.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/comm/comm.h"
#include "common/net/world.h"
#include "ps/ps.h"
#include "ring/halving.h"
#include "ring/ring.h"

enum { OPERATIONS = 12 };

static const float scale = 0.5f; /* a power of two: scaling stays exact */

static struct world *world;

struct shape {
    const struct backend *backend;
    enum transport_kind transport;
    int servers;
    enum placement placement;
    size_t segment_bytes;
    enum compress compress;
    bool feedback;
};

/* Small integers: with up to 8 workers all their sums are at most 256, which bf16 can hold. */
static float whole(int worker, size_t i, int operation)
{
    return (float)((i * 7 + (size_t)worker * 13 + (size_t)operation * 5 + 1) % 63) - 31;
}

/* Numbers that neither type can hold; the same in every operation. */
static float rough(int worker, size_t i)
{
    return 1.0f / (float)(1 + (i * 31 + (size_t)worker * 17) % 1009);
}

static void average(struct comm *comm, float *data)
{
    cr_assert_eq(comm_start(comm, 0, data), STATUS_OK);
    cr_assert_eq(comm_wait(comm, 0), STATUS_OK);
}

static void check_same_bits(struct comm *comm, const float *data, size_t count)
{
    float *first = calloc(count + 1, sizeof *first);
    memcpy(first, data, count * sizeof *first);
    cr_assert_eq(comm_broadcast(comm, first, count), STATUS_OK); /* worker 0's */
    cr_assert_arr_eq(data, first, count * sizeof *first);
    free(first);
}

static void check_exact(struct comm *comm, float *data, size_t count, int operation)
{
    int workers = comm_workers(comm), rank = comm_rank(comm);
    for (size_t i = 0; i < count; i++)
        data[i] = whole(rank, i, operation);
    average(comm, data);
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (int w = 0; w < workers; w++)
            sum += whole(w, i, operation);
        cr_assert_eq(data[i], sum * scale, "worker %d element %zu of %zu: %g, expected %g", rank, i,
                     count, (double)data[i], (double)(sum * scale));
    }
}

/*
 * The same rough numbers in every operation. Every node rounds an element at most once an
 * operation, by at most half a unit in the last place, so what W + 1 nodes keep back is bounded;
 * with feedback that is all that is ever missing, without it about as much again each time.
 */
static void check_rounding(const struct shape *shape, struct comm *comm, float *data, size_t count)
{
    int workers = comm_workers(comm), rank = comm_rank(comm);
    double half_unit = shape->compress == COMPRESS_NONE   ? 0x1p-24
                       : shape->compress == COMPRESS_FP16 ? 0x1p-11
                                                          : 0x1p-8;
    double *total = calloc(count + 1, sizeof *total);
    float *before = calloc(count + 1, sizeof *before);
    size_t beyond = 0;
    for (int operation = 0; operation < OPERATIONS; operation++) {
        for (size_t i = 0; i < count; i++)
            data[i] = rough(rank, i);
        average(comm, data);
        for (size_t i = 0; i < count; i++)
            total[i] += (double)data[i];
        if (!shape->feedback && operation > 0)
            cr_assert_arr_eq(data, before, count * sizeof *data);
        memcpy(before, data, count * sizeof *data);
    }
    check_same_bits(comm, data, count);
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (int w = 0; w < workers; w++)
            sum += (double)rough(w, i);
        double once = (workers + 1) * half_unit * sum * (double)scale * 1.02;
        double missing = fabs(OPERATIONS * sum * (double)scale - total[i]);
        double adding = OPERATIONS * workers * 0x1p-24 * sum; /* float32's own rounding */
        cr_assert_leq(missing, (shape->feedback ? 1 : OPERATIONS) * once + adding);
        beyond += missing > once + adding;
    }
    bool rounds = shape->compress != COMPRESS_NONE && (workers > 1 || shape->servers > 0);
    if (rounds && !shape->feedback && count >= 1000)
        cr_assert_gt(beyond, 0); /* so the bound with feedback can tell the difference */
    free(total);
    free(before);
}

static struct comm_counters run(const struct shape *shape, size_t count)
{
    struct comm *comm = NULL;
    struct comm_counters counters;
    struct comm_options options = {
        .transport = shape->transport,
        .servers = shape->servers,
        .placement = shape->placement,
        .scale = scale,
        .bucket_counts = &count,
        .buckets = 1,
        .segment_bytes = shape->segment_bytes,
        .compress = shape->compress,
        .error_feedback = shape->feedback,
        .timeout_ms = 20000,
    };
    cr_assert_eq(comm_open(&comm, world, shape->backend, &options), STATUS_OK);
    if (comm_is_server(comm)) {
        cr_assert_eq(comm_serve(comm), STATUS_OK);
    } else {
        float *data = calloc(count + 1, sizeof *data);
        for (int operation = 0; operation < 3; operation++)
            check_exact(comm, data, count, operation);
        check_rounding(shape, comm, data, count);
        free(data);
        cr_assert_eq(comm_finish(comm), STATUS_OK);
    }
    comm_counters(comm, &counters);
    comm_close(&comm);
    return counters;
}

static void check_half(const struct transport_counters *found,
                       const struct transport_counters *plain)
{
    cr_assert_eq(2 * found->sent_bytes, plain->sent_bytes);
    cr_assert_eq(2 * found->received_bytes, plain->received_bytes);
}

static void check_shape(const struct shape *shape)
{
    static const size_t counts[] = {0, 3, 1000, 20011};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        struct comm_counters plain = run(shape, counts[c]);
        for (enum compress compress = COMPRESS_FP16; compress <= COMPRESS_BF16; compress++) {
            for (int feedback = 0; feedback < 2; feedback++) {
                struct shape compressed = *shape;
                compressed.compress = compress;
                compressed.feedback = feedback;
                struct comm_counters found = run(&compressed, counts[c]);
                check_half(&found.worker, &plain.worker);
                check_half(&found.server, &plain.server);
            }
        }
    }
}

/* A colocated server over MPI: see can_judge in mpi_allreduce.c. */
static bool can_judge(const struct shape *shape)
{
#ifdef __SANITIZE_THREAD__
    return shape->transport != TRANSPORT_MPI || shape->placement == PLACEMENT_DEDICATED;
#else
    (void)shape;
    return true;
#endif
}

/* Buckets have residuals of their own: one that is all zeros stays so beside one that is not. */
static void check_buckets(enum transport_kind transport)
{
    static const size_t counts[] = {300, 300};
    static float data[2][300];
    struct comm *comm = NULL;
    struct comm_options options = {.transport = transport,
                                   .scale = scale,
                                   .bucket_counts = counts,
                                   .buckets = 2,
                                   .compress = COMPRESS_BF16,
                                   .error_feedback = true,
                                   .timeout_ms = 20000};
    cr_assert_eq(comm_open(&comm, world, &backend_ring, &options), STATUS_OK);
    for (int operation = 0; operation < OPERATIONS; operation++) {
        for (size_t i = 0; i < 300; i++) {
            data[0][i] = rough(comm_rank(comm), i);
            data[1][i] = 0;
        }
        for (size_t b = 0; b < 2; b++)
            cr_assert_eq(comm_start(comm, b, data[b]), STATUS_OK);
        for (size_t b = 0; b < 2; b++)
            cr_assert_eq(comm_wait(comm, b), STATUS_OK);
        for (size_t i = 0; i < 300; i++)
            cr_assert_eq(data[1][i], 0);
    }
    cr_assert_eq(comm_finish(comm), STATUS_OK);
    comm_close(&comm);
}

Test(mpi_compress, all_shapes)
{
    cr_assert_eq(world_open(&world, NULL, NULL, NULL), STATUS_OK);
    int size = world->size;
    for (enum transport_kind t = TRANSPORT_ZMQ; t <= TRANSPORT_MPI; t++) {
        struct shape shapes[] = {
            {.backend = &backend_ring},
            {.backend = &backend_ring, .segment_bytes = 1000},
            {.backend = &backend_rhd},
            {.backend = &backend_rhd, .segment_bytes = 1000},
            {.backend = &backend_ps, .servers = 1, .placement = PLACEMENT_COLOCATED},
            {.backend = &backend_ps, .servers = size, .placement = PLACEMENT_COLOCATED},
            {.backend = &backend_ps, .servers = 1, .placement = PLACEMENT_DEDICATED},
            {.backend = &backend_ps, .servers = 2, .placement = PLACEMENT_DEDICATED},
        };
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            shapes[s].transport = t;
            bool fits = shapes[s].placement == PLACEMENT_COLOCATED || shapes[s].servers < size;
            if (fits && can_judge(&shapes[s]))
                check_shape(&shapes[s]);
        }
        check_buckets(t);
    }
    world_close(&world);
}
