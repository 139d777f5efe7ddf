#include "experiments/trace/timeline.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/status.h"

enum {
    PAGE_BYTES = 4096,
    TOUCHED = 1 << 14, /* events: 1 MiB per thread, enough for some hundred steps */
};

/* Each thread finds the trace and its buffer through these variables. See range_listener. */
static struct trace *current;
static _Thread_local struct trace *joined;
static _Thread_local struct trace_thread *buffer; /* buffer in `joined`; NULL: no buffer was left */

/* Called at the end of a thread. Another thread of its name may then continue its buffer. */
static void leave(void *own)
{
    struct trace_thread *thread = own;
    if (joined == current && current)
        atomic_store_explicit(&thread->ended, true, memory_order_release);
}

static pthread_key_t at_thread_end;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
    CHECK(pthread_key_create(&at_thread_end, leave) == 0);
}

/* Takes over the buffer of an ended thread of that name. Colocated servers pause and continue in
 * another thread. */
static struct trace_thread *take_over(const char *name)
{
    int started = atomic_load(&current->started);
    for (int t = 0; t < started && t < TRACE_THREADS; t++) {
        struct trace_thread *thread = &current->threads[t];
        bool ended = atomic_load_explicit(&thread->ended, memory_order_acquire);
        if (ended && strcmp(thread->name, name) == 0 &&
            atomic_compare_exchange_strong(&thread->ended, &ended, false)) {
            thread->depth = 0;
            return thread;
        }
    }
    return NULL;
}

static void join(void)
{
    char name[TRACE_NAME_BYTES];
    joined = current;
    pthread_getname_np(pthread_self(), name, sizeof name);
    buffer = take_over(name);
    if (!buffer) {
        int index = atomic_fetch_add(&current->started, 1);
        buffer = index < TRACE_THREADS ? &current->threads[index] : NULL;
        if (buffer)
            memcpy(buffer->name, name, sizeof name);
    }
    pthread_once(&key_once, make_key);
    pthread_setspecific(at_thread_end, buffer);
}

static struct trace_thread *own_buffer(void)
{
    if (joined != current)
        join();
    if (!buffer)
        atomic_fetch_add_explicit(&current->unrecorded, 1, memory_order_relaxed);
    return buffer;
}

/* Whether to record. The phase only advances, also if threads are at different steps. A range
 * therefore never ends without a recorded begin. */
static bool recording(void)
{
    return atomic_load_explicit(&current->phase, memory_order_relaxed) == TRACE_RECORDS;
}

static void keep(struct trace_thread *thread, const struct trace_event *event)
{
    if (thread->count < current->options.events)
        thread->events[thread->count++] = *event;
    else
        thread->dropped++;
}

/* -------- callbacks of the listener ----------------------------------------------------------- */

static void begin(const char *name, const struct range_about *about, int64_t now_ns)
{
    struct trace_thread *thread = recording() ? own_buffer() : NULL;
    if (!thread)
        return;
    if (thread->depth < TRACE_DEPTH)
        thread->begun[thread->depth] = (struct trace_event){
            .begin_ns = now_ns ? now_ns : clock_now_ns(), .name = name, .about = *about};
    thread->depth++;
}

/* A range that began before recording has no entry, so its end is ignored. */
static void end(int64_t now_ns)
{
    struct trace_thread *thread = recording() ? own_buffer() : NULL;
    if (!thread || thread->depth == 0)
        return;
    if (--thread->depth >= TRACE_DEPTH)
        return;
    struct trace_event *event = &thread->begun[thread->depth];
    event->end_ns = now_ns ? now_ns : clock_now_ns();
    keep(thread, event);
}

static void open_range(struct range *range)
{
    range->begin_ns = recording() ? clock_now_ns() : 0;
}

static void close_range(const struct range *range)
{
    struct trace_thread *thread = recording() ? own_buffer() : NULL;
    if (thread)
        keep(thread,
             &(struct trace_event){range->begin_ns, clock_now_ns(), range->name, range->about});
}

/* Records a moment. It needs an open range, because a timeline cannot show it elsewhere. */
static void moment(const char *name, const struct range_about *about)
{
    struct trace_thread *thread = recording() ? own_buffer() : NULL;
    if (!thread || thread->depth == 0)
        return;
    int64_t now_ns = clock_now_ns();
    keep(thread, &(struct trace_event){now_ns, now_ns, name, *about});
}

static void at_step(uint64_t step)
{
    const struct trace_options *options = &current->options;
    int waits = TRACE_WAITS;
    if (step >= options->end_step)
        atomic_store_explicit(&current->phase, TRACE_OVER, memory_order_relaxed);
    else if (step >= options->first_step)
        atomic_compare_exchange_strong(&current->phase, &waits, TRACE_RECORDS);
}

static const struct range_listener listener = {
    .begin = begin,
    .end = end,
    .open = open_range,
    .close = close_range,
    .moment = moment,
    .at_step = at_step,
};

/* -------- a trace's life ---------------------------------------------------------------------- */

/* Allocates events of one cache line each. Touches the first pages now, because a page fault costs
 * as much as 20 events. The remaining pages follow as they fill. */
static struct trace_event *new_events(size_t count)
{
    size_t bytes = (count + 1) * sizeof(struct trace_event), rest = bytes % PAGE_BYTES;
    bytes += rest > 0 ? PAGE_BYTES - rest : 0;
    struct trace_event *events = aligned_alloc(PAGE_BYTES, bytes);
    size_t touched = count < TOUCHED ? count : TOUCHED;
    if (events)
        memset(events, 0, touched * sizeof *events);
    return events;
}

enum status trace_new(struct trace **out, const struct trace_options *options)
{
    CHECK(!current);
    struct trace *trace = calloc(1, sizeof *trace);
    bool whole = trace != NULL;
    *out = NULL;
    for (int t = 0; whole && t < TRACE_THREADS; t++) {
        trace->threads[t].events = new_events(options->events);
        whole = trace->threads[t].events != NULL;
    }
    if (!whole) {
        log_error("timeline: no memory for %zu events of each of %d threads", options->events,
                  TRACE_THREADS);
        trace_free(&trace);
        return STATUS_NO_MEMORY;
    }
    trace->options = *options;
    atomic_init(&trace->phase, options->first_step == 0 ? TRACE_RECORDS : TRACE_WAITS);
    current = trace;
    join();
    strcpy(buffer->name, "main");
    atomic_store_explicit(&range_listener, &listener, memory_order_release);
    *out = trace;
    return STATUS_OK;
}

void trace_stop(struct trace *trace)
{
    if (current != trace)
        return;
    atomic_store_explicit(&range_listener, NULL, memory_order_release);
    current = NULL;
}

size_t trace_threads(const struct trace *trace)
{
    int started = atomic_load(&trace->started);
    return (size_t)(started < TRACE_THREADS ? started : TRACE_THREADS);
}

size_t trace_dropped(const struct trace *trace)
{
    size_t dropped = atomic_load(&trace->unrecorded);
    for (size_t t = 0; t < trace_threads(trace); t++)
        dropped += trace->threads[t].dropped;
    return dropped;
}

void trace_free(struct trace **out)
{
    struct trace *trace = *out;
    if (!trace)
        return;
    *out = NULL;
    trace_stop(trace);
    for (int t = 0; t < TRACE_THREADS; t++)
        free(trace->threads[t].events);
    free(trace);
}
