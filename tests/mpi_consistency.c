/*
 * Servers that own the parameters, under mpirun, with workers that are late by chance: every answer
 * holds what the consistency in use promises, element by element, and nothing is lost. Clocks are
 * as many as the environment's PSRING_CLOCKS says, and then each trial is told; else a few.
 *
 * How it can be seen: element i belongs to worker i % W, who in step c adds to it what makes it
 * c + 1. So of whatever parameters come back, each element is its worker's clock.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/comm/updates/updates.h"
#include "ps/ps.h"
#include "tests/allreduce_lib.h"

enum { BUCKETS = 2, COUNT = 3000, CLOCKS_FEW = 150 };

static const size_t counts[BUCKETS] = {COUNT, 700};
static struct world *world;
static uint64_t clocks; /* of each trial */
static bool tells;

/* -------- what servers do --------------------------------------------------------------------- */

static float arrays[3][BUCKETS][COUNT]; /* gradients, parameters, and a state */

static float *array(void *context, size_t bucket, size_t which)
{
    (void)context;
    return arrays[which][bucket];
}

static void add(void *context, size_t bucket, struct chunk span, uint64_t step)
{
    (void)context;
    (void)step;
    for (size_t i = span.offset; i < span.offset + span.count; i++)
        arrays[COMM_PARAMETERS][bucket][i] += arrays[COMM_GRADIENTS][bucket][i];
}

static const struct comm_updater updater = {
    .array = array, .arrays = COMM_STATES + 1, .apply = add};

/* -------- what workers do --------------------------------------------------------------------- */

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

/* What worker 0 stores all can fetch. Then parameters are zero. */
static void check_arrays(struct comm *comm)
{
    static float data[COUNT];
    for (size_t which = COMM_PARAMETERS; which < updater.arrays; which++) {
        for (size_t b = 0; b < BUCKETS; b++) {
            for (size_t i = 0; i < counts[b]; i++)
                data[i] = element(which + b, i);
            if (comm_rank(comm) == 0)
                cr_assert_eq(comm_store(comm, b, which, data), STATUS_OK);
        }
    }
    cr_assert_eq(comm_barrier(comm), STATUS_OK);
    for (size_t which = COMM_PARAMETERS; which < updater.arrays; which++) {
        for (size_t b = 0; b < BUCKETS; b++) {
            memset(data, 0, sizeof data);
            cr_assert_eq(comm_fetch(comm, b, which, data), STATUS_OK);
            for (size_t i = 0; i < counts[b]; i++)
                cr_assert_eq(data[i], element(which + b, i));
        }
    }
    cr_assert_eq(comm_barrier(comm), STATUS_OK);
    memset(data, 0, sizeof data);
    for (size_t b = 0; b < BUCKETS && comm_rank(comm) == 0; b++)
        cr_assert_eq(comm_store(comm, b, COMM_PARAMETERS, data), STATUS_OK);
    cr_assert_eq(comm_barrier(comm), STATUS_OK);
}

static bool leaves_out(const struct consistency *consistency)
{
    return consistency->late_steps > 0 || consistency->backup_workers > 0;
}

/* Now and then, and the slow one always. Until it has been left out once it takes twice as long
 * every tenth step: how late is too late depends on how busy the machine is. */
static void be_late(const struct trial *trial, const struct comm *comm, uint64_t step)
{
    uint64_t chance = rng_mix64(step * 64 + (uint64_t)comm_rank(comm));
    bool slow = comm_rank(comm) == trial->slow;
    int64_t late_ns = (int64_t)(chance / 16 % 400) * 1000;
    if (slow && leaves_out(&trial->consistency) && comm_progress(comm)->left_out == 0)
        late_ns <<= step / 10 < 12 ? step / 10 : 12;
    if (slow || chance % 16 == 0)
        clock_sleep_until_ns(clock_now_ns() + late_ns);
}

/* What came back for step `step`, of a worker that had come to it with each step done. */
static void check_parameters(const struct trial *trial, const struct comm *comm, uint64_t step,
                             const float *data, size_t count)
{
    int workers = comm_workers(comm);
    const struct consistency *consistency = &trial->consistency;
    for (size_t i = 0; i < count; i++) {
        double clock = (double)data[i];
        if ((int)(i % (size_t)workers) == comm_rank(comm)) {
            cr_assert_eq(clock, (double)step + 1, "element %zu: %g after own step %llu", i, clock,
                         (unsigned long long)step);
        } else if (consistency->kind == CONSISTENCY_SSP && consistency->late_steps == 0) {
            cr_assert_geq(clock + (double)consistency->staleness, (double)step + 1,
                          "element %zu: %g, in step %llu", i, clock, (unsigned long long)step);
        }
    }
}

/* With backups all push ones, and W times the mean of those that were in time is added: so all
 * elements are W times the steps that are over. */
static void check_steps(int workers, uint64_t step, const float *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float steps = data[i] / (float)workers;
        cr_assert(steps == (float)(uint64_t)steps && steps >= (float)(step + 1),
                  "element %zu: %g after step %llu", i, (double)data[i], (unsigned long long)step);
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
    static float data[BUCKETS][COUNT];
    uint64_t pushed = 0; /* own clock, as the last push left it */
    bool backups = trial->consistency.backup_workers > 0;
    cr_assert_eq(comm_begin_steps(comm, 0, clocks), STATUS_OK);
    for (uint64_t step = 0; step < clocks; step = comm_progress(comm)->step) {
        be_late(trial, comm, step);
        for (size_t b = 0; b < BUCKETS; b++) {
            fill(trial, comm, data[b], counts[b], step, pushed);
            cr_assert_eq(comm_start(comm, b, data[b]), STATUS_OK);
        }
        pushed = step + 1;
        for (size_t b = 0; b < BUCKETS; b++) {
            cr_assert_eq(comm_wait(comm, b), STATUS_OK);
            if (backups)
                check_steps(comm_workers(comm), step, data[b], counts[b]);
            else
                check_parameters(trial, comm, step, data[b], counts[b]);
        }
    }
}

/* After the last step: all see the same, which is all that was pushed. */
static void check_end(const struct trial *trial, struct comm *comm)
{
    static float data[COUNT];
    const struct comm_progress *progress = comm_progress(comm);
    double sums[3] = {(double)progress->done, (double)progress->left_out, progress->dropped};
    cr_assert_eq(comm_barrier(comm), STATUS_OK);
    for (size_t b = 0; b < BUCKETS; b++) {
        cr_assert_eq(comm_fetch(comm, b, COMM_PARAMETERS, data), STATUS_OK);
        allreduce_check_same(comm, data, counts[b]);
        for (size_t i = 0; i < counts[b] && trial->consistency.backup_workers > 0; i++)
            cr_assert_eq(data[i], (float)(clocks * (uint64_t)comm_workers(comm)));
    }
    cr_assert_eq(world_sum(world, comm_group(comm), sums, 3), STATUS_OK);
    cr_assert_eq(sums[0] + sums[1], (double)(clocks * (uint64_t)comm_workers(comm)));
    if (trial->consistency.backup_workers == 0)
        cr_assert_eq(sums[2], 0);
    if (trial->consistency.kind == CONSISTENCY_SSP) {
        for (size_t lacks = trial->consistency.staleness + 1; lacks <= COMM_STALENESS_MOST; lacks++)
            cr_assert_eq(progress->staleness[lacks], 0);
    }
    if (!leaves_out(&trial->consistency))
        cr_assert_eq(sums[1], 0);
    else if (trial->slow >= 0)
        cr_assert_gt(sums[1], 0, "the slow worker was never late");
}

/* A line for each trial that has passed. */
static void tell(const struct trial *trial, const struct comm *comm)
{
    static const char *const kinds[] = {"bsp", "ssp", "async"};
    const struct consistency *consistency = &trial->consistency;
    const struct comm_progress *progress = comm_progress(comm);
    size_t most = COMM_STALENESS_MOST;
    while (most > 0 && progress->staleness[most] == 0)
        most--;
    if (!tells || comm_rank(comm) != 0)
        return;
    printf("%s:%llu, %d backups, leaves out from %llu, %s, %s, worker %d slow: %llu clocks; worker "
           "0 did %llu and lacked %zu steps at most\n",
           kinds[consistency->kind], (unsigned long long)consistency->staleness,
           consistency->backup_workers, (unsigned long long)consistency->late_steps,
           transport_kind_name(trial->shape.transport),
           trial->shape.placement == PLACEMENT_COLOCATED ? "colocated" : "dedicated", trial->slow,
           (unsigned long long)clocks, (unsigned long long)progress->done, most);
    fflush(stdout);
}

static void run(const struct trial *trial)
{
    struct comm *comm;
    struct allreduce_setup setup = allreduce_setup(&trial->shape, counts, BUCKETS, 1);
    memset(arrays, 0, sizeof arrays);
    setup.options.window = 3;
    setup.options.consistency = trial->consistency;
    setup.options.updater = &updater;
    setup.layout.overlap = trial->overlap;
    allreduce_open(&comm, world, &trial->shape, &setup);
    if (comm_is_server(comm)) {
        cr_assert_eq(comm_serve(comm), STATUS_OK);
    } else {
        check_arrays(comm);
        work(trial, comm);
        check_end(trial, comm);
        cr_assert_eq(comm_finish(comm), STATUS_OK);
        tell(trial, comm);
    }
    comm_close(&comm);
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

Test(mpi_consistency, answers_are_what_is_promised)
{
    const char *asked = getenv("PSRING_CLOCKS");
    clocks = asked ? strtoull(asked, NULL, 10) : CLOCKS_FEW;
    tells = asked;
    cr_assert_eq(world_open(&world, NULL, NULL, NULL), STATUS_OK);
    for (enum transport_kind t = TRANSPORT_ZMQ; t < TRANSPORT_KINDS; t++) {
        struct trial trial = {.shape = {.backend = &backend_ps, .transport = t, .servers = 1},
                              .overlap = true};
        if (world->size > 1 && allreduce_can_judge(&trial.shape))
            run_kinds(trial);
        trial.overlap = false;
        trial.shape.servers = world->size;
        trial.shape.placement = PLACEMENT_COLOCATED;
        if (allreduce_can_judge(&trial.shape))
            run_kinds(trial);
    }
    world_close(&world);
}
