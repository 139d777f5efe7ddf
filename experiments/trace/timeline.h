/*
 * Records ranges (range.h) for a timeline. Each thread has its own buffer with a fixed number of
 * events, allocated beforehand, so recording takes no lock, no allocation and no formatting. A full
 * buffer keeps its events; later events are dropped and counted.
 *
 *     trace_new(&trace, &options)        no range is open
 *     ...                                range_begin, ... on any threads
 *     trace_stop(trace)                  the other threads have ended or record nothing
 *     trace->threads[0 .. trace_threads(trace) - 1]
 *     trace_free(&trace)
 *
 * One trace at a time per process. Cost per range: two clock readings and 64 bytes, about 60 ns if
 * a reading takes 24.
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

/* Events, in the order of their ends. A moment has begin_ns == end_ns. */
struct trace_event {
    int64_t begin_ns, end_ns; /* clock_now_ns */
    const char *name;
    struct range_about about;
};

struct trace_thread {
    char name[TRACE_NAME_BYTES]; /* name in the system; "main" for the thread that called trace_new
                                  */
    struct trace_event *events;
    size_t count, dropped;
    size_t depth; /* open ranges; those beyond TRACE_DEPTH are not recorded */
    _Atomic bool
        ended; /* the thread has ended; another thread of that name may continue this buffer */
    struct trace_event begun[TRACE_DEPTH];
};

struct trace_options {
    size_t events; /* capacity per thread */
    /* Records from range_at_step(first_step), or at once if that is 0, to range_at_step(end_step).
     */
    uint64_t first_step, end_step;
};

/* Set by the thread that is furthest ahead. */
enum trace_phase { TRACE_WAITS, TRACE_RECORDS, TRACE_OVER };

struct trace {
    struct trace_options options;
    struct trace_thread threads[TRACE_THREADS];
    _Atomic int started;       /* threads that have recorded something */
    _Atomic int phase;         /* enum trace_phase */
    _Atomic size_t unrecorded; /* events of more threads than TRACE_THREADS */
};

/* Allocates a trace and registers the listener. The caller's thread is the first. Errors: logged.
 */
enum status trace_new(struct trace **trace, const struct trace_options *options);

/* Removes the listener. */
void trace_stop(struct trace *trace);
size_t trace_threads(const struct trace *trace);
/* Dropped events of all threads. */
size_t trace_dropped(const struct trace *trace);

/* Stops, frees, sets *trace to NULL. */
void trace_free(struct trace **trace);

/*
 * --timeline FILE: rank 0 writes the events of all ranks to one file for https://ui.perfetto.dev
 * and `psring trace`. The format is Chrome's ("Trace Event Format", Duvall and Chatterjee, as
 * Perfetto reads it), one event per line:
 *
 *     process   a rank
 *     thread    a thread of it; one row per bucket; rows for the chunks on their way to a server
 *     flow      a message, from its send to its receive
 *     counter   bytes per second sent and received; messages that wait
 *
 * Times are in rank 0's clock. The clock offsets are measured at the start and at the end, and
 * interpolated in between (see below). The file contains the offsets and their errors.
 */

/* Value of config->recorder. */
extern const struct timeline_recorder timeline_recorder;

/*
 * Offsets between the ranks' clocks (clock_now_ns: each host has its own zero and rate).
 *
 * No rank leaves a barrier before all ranks have entered it. Let e and l be the times at which a
 * rank enters and leaves, by its own clock. Let o be the offset of rank r, added to r's times to
 * get rank 0's:
 *
 *     e_0 <= l_r + o      hence o >= e_0 - l_r      tight when rank 0 enters last
 *     e_r + o <= l_0      hence o <= l_0 - e_r      tight when rank r enters last
 *
 * In each round another rank enters late on purpose. The largest lower bound and the smallest upper
 * bound of all rounds are kept, and the offset is their middle. Its error is at most half of the
 * distance between the bounds plus half of the clock drift since the first round (100 ppm at most).
 * The distance comes from message latency and the sleep of a polling process. This is the estimate
 * of ping-pong (Cristian 1989, "Probabilistic clock synchronization"), for all ranks at once.
 *
 * Ranks on one kernel (world->machine) share one clock, unless the measurement excludes that. On
 * rank 0's machine the offset is then 0; on other machines each rank uses the bounds of all ranks
 * there.
 */

/* The times at which one rank entered and left a barrier, by its own clock. */
struct clock_passage {
    int64_t entered_ns, left_ns;
};

struct clock_offset {
    int64_t at_ns;     /* time of validity, in this rank's clock */
    int64_t offset_ns; /* offset_ns + this rank's time = rank 0's time */
    int64_t error_ns;  /* largest error of offset_ns */
};

/*
 * The offset of rank `own`, from the passages (size, rounds) of all ranks. machines (size): ranks
 * with equal numbers should share one clock.
 */
struct clock_offset clock_offset_of(const struct clock_passage *all, const int *machines, int size,
                                    size_t rounds, int own);

/* Measures the offset of this rank. Collective over the world. About ten rounds per rank, at least
 * half a millisecond each. Errors: logged. */
enum status clock_offset_measure(struct world *world, struct clock_offset *offset);

/* Converts a time of this rank to rank 0's clock. Interpolates between the offsets before and
 * after, because the distance of clocks with steady rates is linear in time. */
int64_t clock_offset_apply(const struct clock_offset *before, const struct clock_offset *after,
                           int64_t ns);

/*
 * Reads a timeline of psring: ranges by thread, messages with both ends. Reads line by line, so the
 * memory depends on the kept events, not on the text.
 */

/* The category of each kind of range in the file. If two kinds share a word, the reader takes the
 * first. */
extern const char *const trace_categories[RANGE_KINDS];

/* Counter: processor time of the computation in a step. */
#define TRACE_CPU_NAME "computed on a processor"

enum { TRACE_TEXT_BYTES = 80 };

struct trace_rank {
    char name[TRACE_TEXT_BYTES]; /* "rank 1 (worker) on a" */
    bool worker;
    int64_t clock_error_ns; /* largest error of its times against rank 0's clock */
    uint64_t dropped;
};

/* A range of a thread. The ranges of a thread nest. */
struct trace_range {
    int rank, row;
    int64_t begin_ns, end_ns;
    enum range_kind kind;
    char name[32];
    int64_t step; /* STEP; BUCKET, ALLREDUCE: training step; TRANSFER: step of the algorithm; CPU:
                     its ns */
    int bucket, peer_rank; /* peer_rank: TRANSFER: sender; WAIT_HOST: awaited rank */
    int64_t parent;        /* index of the innermost enclosing range; -1: none */
};

/* A message. rank -1: that end was not recorded. */
struct trace_message {
    uint64_t id;
    int from, from_row, to, to_row;
    int64_t sent_ns, received_ns;
    uint64_t bytes;
};

struct trace_file {
    struct trace_rank *ranks;
    int rank_count;
    bool in_step;                  /* workers synchronise in every step */
    bool has_facts;                /* `facts` is valid */
    struct bottleneck_facts facts; /* without ranks */
    char backend[32];              /* facts.backend */
    struct trace_range *ranges;    /* sorted by rank, row, begin; outer ranges first */
    size_t range_count;
    struct trace_message *messages; /* sorted by receiver: rank, row, time */
    size_t message_count;
};

/* Reads a file. STATUS_INPUT (logged): not written by psring, or incomplete. */
enum status trace_file_read(struct trace_file *file, const char *path);
void trace_file_free(struct trace_file *file);

/* First row of buckets. Rows of threads come before it. */
enum { TRACE_ROW_BUCKET = 100 };

/* The ranges [*first, *end) of a row. */
void trace_file_row(const struct trace_file *file, int rank, int row, size_t *first, size_t *end);

/* Counts messages that were received before they were sent, by rank 0's clock. *beyond: by more
 * than the clock errors of both ranks. *pairs: messages with both ends. */
size_t trace_file_disordered(const struct trace_file *file, size_t *beyond, size_t *pairs);

/*
 * The facts about a run's bottleneck that only the run knows: cores, their busy share, and
 * averaging times by the model of cost. The timeline contains them for `psring trace`.
 */

#define TRACE_FACTS_NAME "psring_run"

/* Writes the facts as one event line, without facts->ranks. */
void trace_facts_write(FILE *out, const struct bottleneck_facts *facts);

#endif
