/* A trace keeps ranges: order, nesting, threads, and the requested steps. It counts dropped events
 * when a buffer is full. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "experiments/trace/timeline.h"

static struct trace *trace;

static void start(size_t events, uint64_t first_step, uint64_t end_step)
{
    const struct trace_options options = {events, first_step, end_step};
    cr_assert_eq(trace_new(&trace, &options), STATUS_OK);
    range_at_step(0);
}

static void nest(uint64_t step)
{
    range_begin("step", &(struct range_about){.kind = RANGE_STEP, .number = step});
    range_detail_begin("forward", &(struct range_about){.kind = RANGE_COMPUTE});
    range_detail_end();
    range_end();
}

Test(trace, keeps_what_ends_in_its_order)
{
    struct range open = {0};
    start(10, 0, 1);
    range_open(&open, "bucket 3", &(struct range_about){.kind = RANGE_BUCKET, .bucket = 3});
    range_moment("receive", &(struct range_about){.kind = RANGE_RECEIVE, .number = 4});
    nest(7);
    range_begin("wait", &(struct range_about){.kind = RANGE_WAIT});
    range_moment("receive", &(struct range_about){.kind = RANGE_RECEIVE, .number = 5});
    range_end();
    range_close(&open);
    trace_stop(trace);
    nest(8); /* without a listener */
    const struct trace_thread *thread = &trace->threads[0];
    cr_assert(trace_threads(trace) == 1 && thread->count == 5 && trace_dropped(trace) == 0);
    cr_expect_str_eq(thread->name, "main");
    const struct trace_event *forward = thread->events, *step = forward + 1, *receive = step + 1,
                             *bucket = receive + 2;
    cr_expect_str_eq(forward->name, "forward");
    cr_expect(step->about.kind == RANGE_STEP && step->about.number == 7);
    cr_expect(step->begin_ns <= forward->begin_ns && forward->begin_ns <= forward->end_ns &&
              forward->end_ns <= step->end_ns);
    cr_expect(receive->begin_ns == receive->end_ns && receive->about.number == 5);
    cr_expect_str_eq(bucket->name, "bucket 3");
    cr_expect(bucket->about.bucket == 3 && bucket->begin_ns <= step->begin_ns &&
              bucket->end_ns >= receive->end_ns);
    trace_free(&trace);
    cr_expect_null(trace);
}

Test(trace, drops_and_counts_what_has_no_room)
{
    start(3, 0, 1);
    for (uint64_t i = 0; i < 5; i++)
        nest(i);
    cr_expect_eq(trace->threads[0].count, 3);
    cr_expect_eq(trace_dropped(trace), 7);
    cr_expect_eq(trace->threads[0].events[1].about.number, 0, "the first are kept");
    trace_free(&trace);
}

Test(trace, records_the_steps_asked_for)
{
    struct range open = {0};
    start(100, 2, 4);
    for (uint64_t step = 0; step < 6; step++) {
        range_begin("around", &(struct range_about){.kind = RANGE_ALLREDUCE});
        range_open(&open, "open", &(struct range_about){.kind = RANGE_BUCKET});
        range_at_step(step);
        nest(step);
        range_close(&open);
        range_end();
    }
    range_at_step(3); /* from a server that is behind: recording is over */
    nest(3);
    uint64_t steps = 0, first = 0, last = 0;
    for (size_t i = 0; i < trace->threads[0].count; i++) {
        const struct range_about *about = &trace->threads[0].events[i].about;
        if (about->kind != RANGE_STEP)
            continue;
        first = steps++ == 0 ? about->number : first;
        last = about->number;
    }
    cr_expect(steps == 2 && first == 2 && last == 3, "%d steps", (int)steps);
    for (size_t i = 0; i < trace->threads[0].count; i++)
        cr_expect_gt(trace->threads[0].events[i].begin_ns, 0);
    trace_free(&trace);
}

Test(trace, ignores_what_is_too_deep)
{
    start(100, 0, 1);
    for (int depth = 0; depth < TRACE_DEPTH + 3; depth++)
        range_begin("deep", &(struct range_about){.kind = RANGE_COMPUTE});
    for (int depth = 0; depth < TRACE_DEPTH + 3; depth++)
        range_end();
    range_end(); /* without a range */
    cr_expect_eq(trace->threads[0].count, TRACE_DEPTH);
    nest(0);
    cr_expect_eq(trace->threads[0].count, TRACE_DEPTH + 2);
    trace_free(&trace);
}

/* A server in the same process is a step behind. It does not end recording that the worker has
 * begun. */
Test(trace, begins_and_ends_once)
{
    start(100, 3, 5);
    range_at_step(3);
    range_begin("step", &(struct range_about){.kind = RANGE_STEP, .number = 3});
    range_at_step(2);
    range_begin("inside", &(struct range_about){.kind = RANGE_COMPUTE});
    range_end();
    range_end();
    range_at_step(5);
    range_at_step(4);
    nest(4);
    const struct trace_thread *thread = &trace->threads[0];
    cr_assert_eq(thread->count, 2);
    cr_expect_str_eq(thread->events[0].name, "inside");
    cr_expect_str_eq(thread->events[1].name, "step");
    trace_free(&trace);
}

enum { THREADS = TRACE_THREADS + 2, TIMES = 500 };

static pthread_barrier_t all_told; /* a buffer becomes free when its thread ends */

static void *tell(void *argument)
{
    const int *number = argument;
    for (int i = 0; i < TIMES; i++) {
        range_begin("told", &(struct range_about){.kind = RANGE_WAIT, .peer = *number});
        range_end();
    }
    pthread_barrier_wait(&all_told);
    return NULL;
}

/* Like the threads of servers, which pause. */
Test(trace, threads_one_after_the_other_share_a_buffer)
{
    start(THREADS * TIMES, 0, 1);
    cr_assert_eq(pthread_barrier_init(&all_told, NULL, 1), 0);
    for (int t = 0; t < THREADS; t++) {
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, tell, &t), 0);
        pthread_join(thread, NULL);
    }
    cr_expect_eq(trace_threads(trace), 2);
    cr_expect_eq(trace->threads[1].count, THREADS * TIMES);
    cr_expect_eq(trace->threads[1].events[THREADS * TIMES - 1].about.peer, THREADS - 1);
    cr_expect_eq(trace_dropped(trace), 0);
    trace_free(&trace);
}

Test(trace, has_a_buffer_for_each_thread)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    start(TIMES, 0, 1);
    cr_assert_eq(pthread_barrier_init(&all_told, NULL, THREADS), 0);
    for (int t = 0; t < THREADS; t++) {
        numbers[t] = t;
        cr_assert_eq(pthread_create(&threads[t], NULL, tell, &numbers[t]), 0);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    cr_assert_eq(trace_threads(trace), TRACE_THREADS);
    for (int t = 1; t < TRACE_THREADS; t++) {
        const struct trace_thread *thread = &trace->threads[t];
        cr_expect_eq(thread->count, TIMES);
        for (size_t i = 0; i < thread->count; i++)
            cr_expect_eq(thread->events[i].about.peer, thread->events[0].about.peer);
    }
    /* The first buffer belongs to the main thread. The remaining threads have no buffer, so both
     * calls of each range are dropped. */
    cr_expect_geq(trace_dropped(trace), (THREADS - TRACE_THREADS + 1) * TIMES);
    trace_free(&trace);
}

Test(trace, tells_nobody_by_itself)
{
    cr_expect_null(range_listens());
    nest(0);
    range_at_step(3);
    struct range open;
    range_open(&open, "open", &(struct range_about){.kind = RANGE_BUCKET});
    cr_expect_eq(open.begin_ns, 0);
    range_close(&open);
}
