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
#ifndef PSRING_EXPERIMENTS_TRACE_TIMELINE_H
#define PSRING_EXPERIMENTS_TRACE_TIMELINE_H

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/range.h"
#include "common/base/status.h"
#include "common/net/topology.h"
#include "common/net/world.h"
#include "experiments/train/bottleneck.h"
#include "experiments/train/train.h"

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

/*
 * --timeline FILE: what all ranks recorded (experiments/trace/timeline.h), in one file on rank
 * 0, for https://ui.perfetto.dev and `psring trace`. The format is Chrome's ("Trace Event Format",
 * Duvall and Chatterjee, as Perfetto reads it), one event a line:
 *
 *     process   a rank
 *     thread    a thread of it; a row each bucket; rows for the chunks on their way to a server
 *     flow      a message, from its send to its receive
 *     counter   bytes a second handed over and come in; messages that wait
 *
 * Times are rank 0's: the clocks' offsets are measured at the start and at the end, in between they
 * are interpolated (experiments/trace/timeline.h); they and their errors stand in the file.
 */

/* For config->recorder. */
extern const struct timeline_recorder timeline_recorder;

/*
 * How far the clocks of the ranks are apart (clock_now_ns: each host's has its own zero and rate).
 *
 * Nobody leaves a barrier before everybody has entered it. So with e and l for the times at which
 * ranks enter and leave, by their own clocks, and offset o of rank r's (to be added to r's times to
 * get rank 0's):
 *
 *     e_0 <= l_r + o      hence o >= e_0 - l_r      tight when rank 0 enters last
 *     e_r + o <= l_0      hence o <= l_0 - e_r      tight when rank r does
 *
 * In every round another rank is late on purpose; over all rounds the largest lower and the least
 * upper bound are kept. The offset is halfway between them, and cannot be further off than half of
 * what lies between (messages' latency, and how long a process sleeps between two looks) and of
 * what the clocks may have drifted since the first round, which is at most 100 in a million. That
 * is ping-pong's estimate (Cristian 1989, "Probabilistic clock synchronization"), for all ranks at
 * once.
 *
 * Ranks on one running kernel (world->machine) have one clock, unless what was measured rules that
 * out: with rank 0's the offset is 0, and elsewhere the bounds of all of them are one's.
 */

/* When one rank entered and left a barrier, by its own clock. */
struct clock_passage {
    int64_t entered_ns, left_ns;
};

struct clock_offset {
    int64_t at_ns;     /* this rank's time to which it belongs */
    int64_t offset_ns; /* added to this rank's times gives rank 0's */
    int64_t error_ns;  /* it is at most so far off */
};

/*
 * Of rank `own`, from the passages of all ranks (size, rounds). machines: (size) equal numbers, one
 * clock, they say.
 */
struct clock_offset clock_offset_of(const struct clock_passage *all, const int *machines, int size,
                                    size_t rounds, int own);

/* Collective over the world: this rank's. Some ten rounds a rank, half a millisecond each at least.
 * Errors: logged. */
enum status clock_offset_measure(struct world *world, struct clock_offset *offset);

/* A time of this rank's on rank 0's clock, from what was measured before and after: clocks that run
 * at steady rates are apart linearly in time. */
int64_t clock_offset_apply(const struct clock_offset *before, const struct clock_offset *after,
                           int64_t ns);

/*
 * A timeline as psring has written it (timeline.h), read back: ranges by thread, messages with both
 * ends. It is read line by line, so that memory follows what is kept and not the text.
 */

/* The words for kinds of ranges in the file. A word of two kinds stands for the first. */
extern const char *const trace_categories[RANGE_KINDS];

/* The counter of how long steps have computed on a processor. */
#define TRACE_CPU_NAME "computed on a processor"

enum { TRACE_TEXT_BYTES = 80 };

struct trace_rank {
    char name[TRACE_TEXT_BYTES]; /* "rank 1 (worker) on a" */
    bool worker;
    int64_t clock_error_ns; /* its times may be so far off rank 0's */
    uint64_t dropped;
};

/* One of a thread's; those of a thread nest. */
struct trace_range {
    int rank, row;
    int64_t begin_ns, end_ns;
    enum range_kind kind;
    char name[32];
    int64_t
        step; /* STEP; BUCKET, ALLREDUCE: of training; TRANSFER: of the algorithm; CPU: its ns */
    int bucket, peer_rank; /* TRANSFER: from; WAIT_HOST: for */
    int64_t parent;        /* which of the ranges it is in, the innermost; -1: none */
};

/* A message: one end is missing (rank -1) where that was not recorded. */
struct trace_message {
    uint64_t id;
    int from, from_row, to, to_row;
    int64_t sent_ns, received_ns;
    uint64_t bytes;
};

struct trace_file {
    struct trace_rank *ranks;
    int rank_count;
    bool in_step;                  /* all workers are in one step, or wait for it */
    bool has_facts;                /* the file has the facts of the run's bottleneck */
    struct bottleneck_facts facts; /* without ranks */
    char backend[32];              /* facts.backend */
    struct trace_range *ranges;    /* by rank, row, begin; what encloses comes first */
    size_t range_count;
    struct trace_message *messages; /* by receiver: rank, row, time */
    size_t message_count;
};

/* STATUS_INPUT (logged) if it is none of psring's, or not whole. */
enum status trace_file_read(struct trace_file *file, const char *path);
void trace_file_free(struct trace_file *file);

/* The rows of buckets; those of threads come before. */
enum { TRACE_ROW_BUCKET = 100 };

/* The ranges of a row: ranges [*first, *end). */
void trace_file_row(const struct trace_file *file, int rank, int row, size_t *first, size_t *end);

/* Messages that were received before they were sent, by this clock; *beyond: by more than the
 * errors of both ranks' clocks. *pairs: of how many. */
size_t trace_file_disordered(const struct trace_file *file, size_t *beyond, size_t *pairs);

/*
 * The facts of a run's bottleneck that only the run knows: cores, their busy share, and the times
 * of averaging by the model of cost. The timeline holds them, and `psring trace` judges by them.
 */

#define TRACE_FACTS_NAME "psring_run"

/* An event of the file, a line; without facts->ranks. */
void trace_facts_write(FILE *out, const struct bottleneck_facts *facts);

#endif
