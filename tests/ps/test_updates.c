/*
 * Servers that own the parameters, with workers that are late at random. Every answer has what the
 * consistency promises, element by element, and no push is lost. PSRING_TEST_LONG=1 takes more
 * clocks (steps).
 *
 * Element i belongs to worker i % W. In step c this worker adds what makes the element c + 1. Each
 * element of the returned parameters is therefore its worker's clock.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/comm/comm.h"
#include "ps/ps.h"
#include "tests/lib/allreduce_lib.h"
#include "tests/lib/spawn.h"

enum { BUCKETS = 2, COUNT = 3000, CLOCKS_FEW = 40, CLOCKS_MANY = 5000 };

static const size_t counts[BUCKETS] = {COUNT, 700};
static _Thread_local struct world *world;
static _Thread_local uint64_t clocks; /* steps of each trial */

/* -------- servers ----------------------------------------------------------------------------- */

/* One rank's gradients, parameters, and a state. */
struct arrays {
    float of[COMM_STATES + 1][BUCKETS][COUNT];
};

static float *array(void *context, size_t bucket, size_t which)
{
    struct arrays *arrays = context;
    return arrays->of[which][bucket];
}

static void add(void *context, size_t bucket, struct chunk span, uint64_t step)
{
    struct arrays *arrays = context;
    (void)step;
    for (size_t i = span.offset; i < span.offset + span.count; i++)
        arrays->of[COMM_PARAMETERS][bucket][i] += arrays->of[COMM_GRADIENTS][bucket][i];
}

static struct comm_updater updater_of(struct arrays *arrays)
{
    return (struct comm_updater){
        .context = arrays, .array = array, .arrays = COMM_STATES + 1, .apply = add};
}

/* -------- workers ----------------------------------------------------------------------------- */

struct trial {
    struct shape shape;
    struct consistency consistency;
    bool overlap;
    int slow; /* a worker that is always late; -1: none */
};

static float element(size_t which, size_t i)
{
    return (float)(which * 10000 + i);
}

/* All workers can fetch what worker 0 stores. At the end the parameters are zero. */
static void check_arrays(struct comm *comm)
{
    float data[COUNT];
    for (size_t which = COMM_PARAMETERS; which <= COMM_STATES; which++) {
        for (size_t b = 0; b < BUCKETS; b++) {
            for (size_t i = 0; i < counts[b]; i++)
                data[i] = element(which + b, i);
            if (comm_rank(comm) == 0)
                rank_assert_ok(comm_store(comm, b, which, data));
        }
    }
    rank_assert_ok(comm_barrier(comm));
    for (size_t which = COMM_PARAMETERS; which <= COMM_STATES; which++) {
        for (size_t b = 0; b < BUCKETS; b++) {
            memset(data, 0, sizeof data);
            rank_assert_ok(comm_fetch(comm, b, which, data));
            for (size_t i = 0; i < counts[b]; i++)
                rank_assert_eq(data[i], element(which + b, i));
        }
    }
    rank_assert_ok(comm_barrier(comm));
    memset(data, 0, sizeof data);
    for (size_t b = 0; b < BUCKETS && comm_rank(comm) == 0; b++)
        rank_assert_ok(comm_store(comm, b, COMM_PARAMETERS, data));
    rank_assert_ok(comm_barrier(comm));
}

static bool leaves_out(const struct consistency *consistency)
{
    return consistency->late_steps > 0 || consistency->backup_workers > 0;
}

/* Makes workers late at random, and the slow worker always. Until it has skipped a step, its delay
 * doubles every four steps, because the delay that counts as late depends on the machine's load. */
static void be_late(const struct trial *trial, const struct comm *comm, uint64_t step)
{
    uint64_t chance = rng_mix64(step * 64 + (uint64_t)comm_rank(comm));
    bool slow = comm_rank(comm) == trial->slow;
    int64_t late_ns = (int64_t)(chance / 16 % 400) * 1000;
    if (slow && leaves_out(&trial->consistency) && comm_progress(comm)->left_out == 0)
        late_ns <<= step / 4 < 12 ? step / 4 : 12;
    if (slow || chance % 16 == 0)
        clock_sleep_until_ns(clock_now_ns() + late_ns);
}

/* Checks the parameters returned for `step` to a worker that has done every step before it. */
static void check_parameters(const struct trial *trial, const struct comm *comm, uint64_t step,
                             const float *data, size_t count)
{
    int workers = comm_workers(comm);
    const struct consistency *consistency = &trial->consistency;
    for (size_t i = 0; i < count; i++) {
        double clock = (double)data[i];
        if ((int)(i % (size_t)workers) == comm_rank(comm)) {
            rank_assert_eq(clock, (double)step + 1, "element %zu: %g after own step %llu", i, clock,
                           (unsigned long long)step);
        } else if (consistency->kind == CONSISTENCY_SSP && consistency->late_steps == 0) {
            rank_assert(clock + (double)consistency->staleness >= (double)step + 1,
                        "element %zu: %g, in step %llu", i, clock, (unsigned long long)step);
        }
    }
}

/* With backups all workers push ones, and the server adds W times the mean of the pushes in time.
 * All elements are therefore W times the number of finished steps. */
static void check_steps(int workers, uint64_t step, const float *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float steps = data[i] / (float)workers;
        rank_assert(steps == (float)(uint64_t)steps && steps >= (float)(step + 1),
                    "element %zu: %g after step %llu", i, (double)data[i],
                    (unsigned long long)step);
    }
}

static void fill(const struct trial *trial, const struct comm *comm, float *data, size_t count,
                 uint64_t step, uint64_t pushed)
{
    int workers = comm_workers(comm);
    bool backups = trial->consistency.backup_workers > 0;
    for (size_t i = 0; i < count; i++) {
        bool own = (int)(i % (size_t)workers) == comm_rank(comm);
        data[i] = backups ? 1 : own ? (float)(step + 1 - pushed) : 0;
    }
}

static void work(const struct trial *trial, struct comm *comm)
{
    float data[BUCKETS][COUNT];
    uint64_t pushed = 0; /* own clock after the last push */
    bool backups = trial->consistency.backup_workers > 0;
    rank_assert_ok(comm_begin_steps(comm, 0, clocks));
    for (uint64_t step = 0; step < clocks; step = comm_progress(comm)->step) {
        be_late(trial, comm, step);
        for (size_t b = 0; b < BUCKETS; b++) {
            fill(trial, comm, data[b], counts[b], step, pushed);
            rank_assert_ok(comm_start(comm, b, data[b]));
        }
        pushed = step + 1;
        for (size_t b = 0; b < BUCKETS; b++) {
            rank_assert_ok(comm_wait(comm, b));
            if (backups)
                check_steps(comm_workers(comm), step, data[b], counts[b]);
            else
                check_parameters(trial, comm, step, data[b], counts[b]);
        }
    }
}

/* After the last step all workers see the same parameters, the sum of all pushes. */
static void check_end(const struct trial *trial, struct comm *comm)
{
    float data[COUNT];
    const struct comm_progress *progress = comm_progress(comm);
    double sums[3] = {(double)progress->done, (double)progress->left_out, progress->dropped};
    rank_assert_ok(comm_barrier(comm));
    for (size_t b = 0; b < BUCKETS; b++) {
        rank_assert_ok(comm_fetch(comm, b, COMM_PARAMETERS, data));
        allreduce_check_same(comm, data, counts[b]);
        for (size_t i = 0; i < counts[b] && trial->consistency.backup_workers > 0; i++)
            rank_assert_eq(data[i], (float)(clocks * (uint64_t)comm_workers(comm)));
    }
    rank_assert_ok(world_sum(world, comm_group(comm), sums, 3));
    rank_assert_eq(sums[0] + sums[1], (double)(clocks * (uint64_t)comm_workers(comm)));
    if (trial->consistency.backup_workers == 0)
        rank_assert_eq(sums[2], 0);
    if (trial->consistency.kind == CONSISTENCY_SSP) {
        for (size_t lacks = trial->consistency.staleness + 1; lacks <= COMM_STALENESS_MOST; lacks++)
            rank_assert_eq(progress->staleness[lacks], 0);
    }
    if (!leaves_out(&trial->consistency))
        rank_assert_eq(sums[1], 0);
    else if (trial->slow >= 0)
        rank_assert(sums[1] > 0, "the slow worker was never late");
}

static void run(const struct trial *trial)
{
    struct comm *comm;
    struct allreduce_setup setup = allreduce_setup(&trial->shape, counts, BUCKETS, 1);
    struct arrays *arrays = calloc(1, sizeof *arrays);
    struct comm_updater updater = updater_of(arrays);
    setup.options.window = 3;
    setup.options.consistency = trial->consistency;
    setup.options.updater = &updater;
    setup.layout.overlap = trial->overlap;
    allreduce_open(&comm, world, &trial->shape, &setup);
    if (comm_is_server(comm)) {
        rank_assert_ok(comm_serve(comm));
    } else {
        check_arrays(comm);
        work(trial, comm);
        check_end(trial, comm);
        rank_assert_ok(comm_finish(comm));
    }
    comm_close(&comm);
    free(arrays);
}

static void run_kinds(struct trial trial)
{
    static const struct consistency kinds[] = {
        {.kind = CONSISTENCY_SSP, .staleness = 0},
        {.kind = CONSISTENCY_SSP, .staleness = 3},
        {.kind = CONSISTENCY_SSP, .staleness = 3, .late_steps = 3},
        {.kind = CONSISTENCY_ASYNC},
        {.kind = CONSISTENCY_ASYNC, .late_steps = 8},
        {.kind = CONSISTENCY_BSP, .backup_workers = 1},
    };
    int workers =
        world->size - (trial.shape.placement == PLACEMENT_DEDICATED) * trial.shape.servers;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        trial.consistency = kinds[k];
        if (workers <= trial.consistency.backup_workers)
            continue;
        trial.slow = workers > 2 ? workers - 1 : -1;
        run(&trial);
        trial.slow = -1;
        run(&trial);
    }
}

static void all_kinds(struct world *of, void *context)
{
    const enum transport_kind *transport = context;
    struct trial trial = {.shape = {.backend = &backend_ps, .transport = *transport, .servers = 1},
                          .overlap = true};
    world = of;
    clocks = spawn_is_long() ? CLOCKS_MANY : CLOCKS_FEW;
    run_kinds(trial);
    trial.overlap = false;
    trial.shape.servers = world->size;
    trial.shape.placement = PLACEMENT_COLOCATED;
    run_kinds(trial);
}

Test(updates, over_tcp)
{
    enum transport_kind transport = TRANSPORT_TCP;
    spawn(2, all_kinds, &transport);
    spawn(4, all_kinds, &transport);
}

Test(updates, over_zmq)
{
    enum transport_kind transport = TRANSPORT_ZMQ;
    spawn(2, all_kinds, &transport);
    spawn(4, all_kinds, &transport);
}
