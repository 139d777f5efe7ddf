/* Averaging on a thread of its own: order, results, failures, and ending with work left. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>

#include "common/base/clock.h"
#include "common/comm/comm_impl.h"

enum { BUCKETS = 5, ROUNDS = 200 };

struct record {
    size_t order[BUCKETS * ROUNDS];
    _Atomic size_t calls;
    size_t failing; /* the call that fails, from 1; 0: none */
};

static enum status double_it(void *context, size_t bucket, float *data)
{
    struct record *record = context;
    record->order[record->calls] = bucket;
    size_t call = atomic_fetch_add(&record->calls, 1) + 1;
    if (call == record->failing)
        return STATUS_TIMEOUT;
    *data *= 2;
    return STATUS_OK;
}

Test(overlap, buckets_are_done_in_the_order_of_starting)
{
    static struct record record;
    struct overlap *overlap = NULL;
    float data[BUCKETS];
    cr_assert_eq(overlap_new(&overlap, double_it, &record, BUCKETS, NULL), STATUS_OK);
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < BUCKETS; i++) {
            size_t bucket = (i * 3 + round) % BUCKETS;
            data[bucket] = (float)(round + bucket);
            overlap_start(overlap, bucket, &data[bucket]);
        }
        /* Waited for in another order than started. */
        for (size_t bucket = 0; bucket < BUCKETS; bucket++) {
            cr_assert_eq(overlap_wait(overlap, bucket), STATUS_OK);
            cr_assert_eq(data[bucket], 2 * (float)(round + bucket));
        }
    }
    overlap_free(&overlap);
    cr_assert_null(overlap);
    cr_assert_eq(record.calls, (size_t)BUCKETS * ROUNDS);
    for (size_t call = 0; call < (size_t)BUCKETS * ROUNDS; call++)
        cr_assert_eq(record.order[call], (call % BUCKETS * 3 + call / BUCKETS) % BUCKETS);
}

/* Started from the first to the last, a round of them at a time; the last round is not whole. */
Test(overlap, a_given_order_is_kept)
{
    static const size_t order[BUCKETS] = {1, 4, 0, 3, 2};
    static struct record record;
    struct overlap *overlap = NULL;
    float data[BUCKETS];
    cr_assert_eq(overlap_new(&overlap, double_it, &record, BUCKETS, order), STATUS_OK);
    for (size_t round = 0; round < ROUNDS - 1; round++) {
        for (size_t bucket = 0; bucket < BUCKETS; bucket++) {
            data[bucket] = (float)(round + bucket);
            overlap_start(overlap, bucket, &data[bucket]);
        }
        for (size_t bucket = 0; bucket < BUCKETS; bucket++) {
            cr_assert_eq(overlap_wait(overlap, bucket), STATUS_OK);
            cr_assert_eq(data[bucket], 2 * (float)(round + bucket));
        }
    }
    overlap_start(overlap, 2, &data[2]);
    overlap_start(overlap, 0, &data[0]);
    overlap_free(&overlap);
    size_t calls = (size_t)BUCKETS * (ROUNDS - 1);
    cr_assert_eq(record.calls, calls + 2);
    for (size_t call = 0; call < calls; call++)
        cr_assert_eq(record.order[call], order[call % BUCKETS]);
    cr_assert_eq(record.order[calls], 0);
    cr_assert_eq(record.order[calls + 1], 2);
}

Test(overlap, after_a_failure_nothing_is_begun)
{
    static struct record record = {.failing = 2};
    struct overlap *overlap = NULL;
    float data[BUCKETS] = {1, 1, 1, 1, 1};
    cr_assert_eq(overlap_new(&overlap, double_it, &record, BUCKETS, NULL), STATUS_OK);
    for (size_t bucket = 0; bucket < BUCKETS; bucket++)
        overlap_start(overlap, bucket, &data[bucket]);
    cr_expect_eq(overlap_wait(overlap, 0), STATUS_OK);
    for (size_t bucket = 1; bucket < BUCKETS; bucket++)
        cr_expect_eq(overlap_wait(overlap, bucket), STATUS_TIMEOUT);
    overlap_free(&overlap);
    cr_expect_eq(record.calls, 2);
}

Test(overlap, what_was_started_is_finished_before_the_end)
{
    static struct record record;
    struct overlap *overlap = NULL;
    float data[BUCKETS] = {1, 2, 3, 4, 5};
    cr_assert_eq(overlap_new(&overlap, double_it, &record, BUCKETS, NULL), STATUS_OK);
    for (size_t bucket = 0; bucket < BUCKETS; bucket++)
        overlap_start(overlap, bucket, &data[bucket]);
    overlap_free(&overlap);
    for (size_t bucket = 0; bucket < BUCKETS; bucket++)
        cr_expect_eq(data[bucket], 2 * (float)(bucket + 1));
}

Test(overlap, no_bucket_past_the_end, .signal = SIGABRT)
{
    static struct record record;
    struct overlap *overlap = NULL;
    float data = 0;
    cr_assert_eq(overlap_new(&overlap, double_it, &record, BUCKETS, NULL), STATUS_OK);
    overlap_start(overlap, BUCKETS, &data);
}

static enum status take_a_while(void *context, size_t bucket, float *data)
{
    int64_t *took_ns = context, start_ns = clock_now_ns();
    (void)bucket, (void)data;
    clock_sleep_until_ns(start_ns + 2 * NS_PER_MS);
    *took_ns = clock_now_ns() - start_ns;
    return STATUS_OK;
}

/* As long as the work itself found, and no longer than from its start to its end. */
Test(overlap, busy_time_is_the_time_of_the_work)
{
    struct overlap *overlap = NULL;
    int64_t took_ns = 0, start_ns = clock_now_ns();
    float data = 0;
    cr_assert_eq(overlap_new(&overlap, take_a_while, &took_ns, 1, NULL), STATUS_OK);
    cr_expect_eq(overlap_busy_ns(overlap), 0);
    overlap_start(overlap, 0, &data);
    cr_assert_eq(overlap_wait(overlap, 0), STATUS_OK);
    cr_expect_geq(overlap_busy_ns(overlap), took_ns);
    cr_expect_leq(overlap_busy_ns(overlap), clock_now_ns() - start_ns);
    overlap_free(&overlap);
}
