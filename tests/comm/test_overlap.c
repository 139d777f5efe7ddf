/* Averaging on a separate thread: order, results, failures, and the end with work left. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>

#include "common/base/clock.h"
#include "common/comm/comm.h"
#include "common/comm/comm_parts.h"
#include "tests/lib/spawn.h"

enum { BUCKETS = 5, ROUNDS = 200 };

struct record {
    size_t order[BUCKETS * ROUNDS];
    _Atomic size_t calls;
    size_t failing; /* number of the call that fails, from 1; 0: none */
};

struct doubling_task {
    struct overlap_task task; /* first */
    size_t number;
    float data;
};

static enum status double_it(struct record *record, size_t bucket, float *data)
{
    record->order[record->calls] = bucket;
    size_t call = atomic_fetch_add(&record->calls, 1) + 1;
    if (call == record->failing)
        return STATUS_TIMEOUT;
    *data *= 2;
    return STATUS_OK;
}

static enum status double_task(void *context, struct overlap_task *task)
{
    struct doubling_task *doubling = (struct doubling_task *)task;
    return double_it(context, doubling->number, &doubling->data);
}

static struct doubling_task tasks[BUCKETS];

static void begin(struct overlap *overlap, struct record *record)
{
    overlap_init(overlap, double_task, record);
    cr_assert_eq(overlap_begin(overlap, "test"), STATUS_OK);
    for (size_t i = 0; i < BUCKETS; i++)
        tasks[i] = (struct doubling_task){.number = i, .data = (float)(i + 1)};
}

Test(overlap, tasks_are_done_in_the_order_of_starting)
{
    static struct record record;
    struct overlap overlap;
    begin(&overlap, &record);
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < BUCKETS; i++) {
            struct doubling_task *task = &tasks[(i * 3 + round) % BUCKETS];
            task->data = (float)(round + task->number);
            cr_assert_eq(overlap_start(&overlap, &task->task), STATUS_OK);
        }
        /* Waits in a different order than the tasks were started. */
        for (size_t i = 0; i < BUCKETS; i++) {
            cr_assert_eq(overlap_wait(&overlap, &tasks[i].task), STATUS_OK);
            cr_assert_eq(tasks[i].data, 2 * (float)(round + i));
        }
    }
    overlap_fini(&overlap);
    cr_assert_eq(record.calls, (size_t)BUCKETS * ROUNDS);
    for (size_t call = 0; call < (size_t)BUCKETS * ROUNDS; call++)
        cr_assert_eq(record.order[call], (call % BUCKETS * 3 + call / BUCKETS) % BUCKETS);
}

/* It runs on the calling thread, after all started tasks; also without a thread. */
Test(overlap, a_task_of_the_caller_comes_last)
{
    static struct record record;
    struct overlap overlap;
    begin(&overlap, &record);
    for (size_t i = 1; i < BUCKETS; i++)
        cr_assert_eq(overlap_start(&overlap, &tasks[i].task), STATUS_OK);
    cr_assert_eq(overlap_run(&overlap, &tasks[0].task), STATUS_OK);
    for (size_t i = 0; i < BUCKETS; i++)
        cr_expect(overlap_done(&overlap, &tasks[i].task));
    cr_expect_eq(record.order[BUCKETS - 1], 0);
    overlap_end(&overlap);
    overlap_fini(&overlap);

    overlap_init(&overlap, double_task, &record);
    cr_assert_eq(overlap_start(&overlap, &tasks[1].task), STATUS_OK);
    cr_expect(overlap_done(&overlap, &tasks[1].task) && tasks[1].data == 8);
    overlap_fini(&overlap);
}

Test(overlap, after_a_failure_nothing_is_begun)
{
    static struct record record = {.failing = 2};
    struct overlap overlap;
    begin(&overlap, &record);
    for (size_t i = 0; i < BUCKETS; i++)
        cr_assert_eq(overlap_start(&overlap, &tasks[i].task), STATUS_OK);
    cr_expect_eq(overlap_wait(&overlap, &tasks[0].task), STATUS_OK);
    for (size_t i = 1; i < BUCKETS; i++)
        cr_expect_eq(overlap_wait(&overlap, &tasks[i].task), STATUS_TIMEOUT);
    cr_expect_eq(overlap_run(&overlap, &tasks[0].task), STATUS_TIMEOUT);
    overlap_fini(&overlap);
    cr_expect_eq(record.calls, 2);
}

Test(overlap, what_was_started_is_finished_before_the_end)
{
    static struct record record;
    struct overlap overlap;
    begin(&overlap, &record);
    for (size_t i = 0; i < BUCKETS; i++)
        cr_assert_eq(overlap_start(&overlap, &tasks[i].task), STATUS_OK);
    overlap_fini(&overlap);
    for (size_t i = 0; i < BUCKETS; i++)
        cr_expect_eq(tasks[i].data, 2 * (float)(i + 1));
}

static enum status take_a_while(void *context, struct overlap_task *task)
{
    int64_t *took_ns = context, start_ns = clock_now_ns();
    (void)task;
    clock_sleep_until_ns(start_ns + 2 * NS_PER_MS);
    *took_ns = clock_now_ns() - start_ns;
    return STATUS_OK;
}

/* The busy time is at least the work's time, and at most the time from its start to its end. */
Test(overlap, busy_time_is_the_time_of_the_work)
{
    struct overlap overlap;
    struct overlap_task task;
    int64_t took_ns = 0, start_ns = clock_now_ns();
    overlap_init(&overlap, take_a_while, &took_ns);
    cr_assert_eq(overlap_begin(&overlap, "test"), STATUS_OK);
    cr_expect_eq(overlap_busy_ns(&overlap), 0);
    cr_assert_eq(overlap_start(&overlap, &task), STATUS_OK);
    cr_assert_eq(overlap_wait(&overlap, &task), STATUS_OK);
    cr_expect_geq(overlap_busy_ns(&overlap), took_ns);
    cr_expect_leq(overlap_busy_ns(&overlap), clock_now_ns() - start_ns);
    overlap_fini(&overlap);
}

/* -------- buckets of a comm ------------------------------------------------------------------- */

static struct record averaged;

static enum status record_open(void **self, const struct backend_env *site)
{
    *self = without_const(site);
    return STATUS_OK;
}

static enum status record_allreduce(void *self, size_t bucket, void *data)
{
    (void)self;
    return double_it(&averaged, bucket, data);
}

static const struct backend backend_record = {
    .name = "record", .uses_transport = true, .open = record_open, .allreduce = record_allreduce};

static void open_buckets(struct comm **comm, struct world *world, const size_t *order)
{
    static const size_t counts[BUCKETS] = {1, 1, 1, 1, 1};
    const struct comm_options options = {
        .transport = TRANSPORT_TCP, .bucket_counts_max = 1, .timeout_ms = 1000};
    const struct comm_layout layout = {
        .counts = counts, .buckets = BUCKETS, .scale = 1, .overlap = true, .order = order};
    rank_assert_ok(comm_open(comm, world, &backend_record, &options));
    rank_assert_ok(comm_plan(*comm, &layout));
    rank_assert(comm_overlaps(*comm));
}

static void average_in_order(struct world *world, void *context)
{
    const size_t *order = context;
    struct comm *comm;
    float data[BUCKETS];
    open_buckets(&comm, world, order);
    for (size_t round = 0; round < ROUNDS - 1; round++) {
        for (size_t b = 0; b < BUCKETS; b++) {
            data[b] = (float)(round + b);
            rank_assert_ok(comm_start(comm, b, &data[b]));
        }
        for (size_t b = 0; b < BUCKETS; b++) {
            rank_assert_ok(comm_wait(comm, b));
            rank_assert(data[b] == 2 * (float)(round + b));
        }
    }
    rank_assert_ok(comm_start(comm, 2, &data[2]));
    rank_assert_ok(comm_start(comm, 0, &data[0]));
    rank_assert_ok(comm_finish(comm));
    comm_close(&comm);
}

/* A round's buckets start in the given order, one round after the other. The last round is not
 * whole. */
Test(overlap, a_given_order_is_kept)
{
    static size_t order[BUCKETS] = {1, 4, 0, 3, 2};
    spawn(1, average_in_order, order);
    size_t calls = (size_t)BUCKETS * (ROUNDS - 1);
    cr_assert_eq(averaged.calls, calls + 2);
    for (size_t call = 0; call < calls; call++)
        cr_assert_eq(averaged.order[call], order[call % BUCKETS]);
    cr_assert_eq(averaged.order[calls], 0);
    cr_assert_eq(averaged.order[calls + 1], 2);
}

static void start_past_the_end(struct world *world, void *context)
{
    struct comm *comm;
    float data = 0;
    open_buckets(&comm, world, context);
    (void)comm_start(comm, BUCKETS, &data);
}

Test(overlap, no_bucket_past_the_end, .signal = SIGABRT)
{
    spawn(1, start_past_the_end, NULL);
}
