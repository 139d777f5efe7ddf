/*
 * Records what ranges tell (range.h), for a timeline. Each thread writes to a buffer of its own, of
 * a fixed number of events, allocated beforehand: no lock, no allocation, no text. What comes when
 * a buffer is full is dropped and counted; so the first events are kept.
 *
 *     trace_new(&trace, &options)        no range is open
 *     ...                                range_begin, ... on any threads
 *     trace_stop(trace)                  the others have ended, or tell of nothing any more
 *     trace->threads[0 .. trace_threads(trace) - 1]
 *     trace_free(&trace)
 *
 * One trace at a time in a process. Cost: two readings of the clock and 64 bytes per range,
 * some 60 ns in all where one reading takes 24.
 */
#ifndef PSRING_COMMON_OBS_TRACE_H
#define PSRING_COMMON_OBS_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/obs/range.h"

enum { TRACE_THREADS = 16, TRACE_NAME_BYTES = 16, TRACE_DEPTH = 16 };

/* In the order in which they ended. A moment has begin_ns == end_ns. */
struct trace_event {
    int64_t begin_ns, end_ns; /* clock_now_ns */
    const char *name;
    struct range_about about;
};

struct trace_thread {
    char name[TRACE_NAME_BYTES]; /* as the system knows it; "main" for the one that called
                                    trace_new */
    struct trace_event *events;
    size_t count, dropped;
    size_t depth;       /* ranges that have begun; those beyond TRACE_DEPTH are not recorded */
    _Atomic bool ended; /* the thread; another one of the name may go on in this buffer */
    struct trace_event begun[TRACE_DEPTH];
};

struct trace_options {
    size_t events;                 /* room of each thread */
    uint64_t first_step, end_step; /* of range_at_step: recorded from the one, 0 being before any,
                                      to before the other */
};

/* By the thread that is furthest. */
enum trace_phase { TRACE_WAITS, TRACE_RECORDS, TRACE_OVER };

struct trace {
    struct trace_options options;
    struct trace_thread threads[TRACE_THREADS];
    _Atomic int started;       /* threads that have told of something */
    _Atomic int phase;         /* enum trace_phase */
    _Atomic size_t unrecorded; /* events of more threads than TRACE_THREADS */
};

/* Allocates, and listens; the caller's thread is the first. Errors: logged. */
enum status trace_new(struct trace **trace, const struct trace_options *options);

/* Nobody listens any more. */
void trace_stop(struct trace *trace);
size_t trace_threads(const struct trace *trace);
/* Of all threads. */
size_t trace_dropped(const struct trace *trace);

/* Stops, frees, sets *trace to NULL. */
void trace_free(struct trace **trace);

#endif
