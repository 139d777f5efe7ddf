/*
 * A timeline as psring has written it (timeline.h), read back: ranges by thread, messages with both
 * ends. It is read line by line, so that memory follows what is kept and not the text.
 */
#ifndef PSRING_EXPERIMENTS_TRACE_FILE_H
#define PSRING_EXPERIMENTS_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/obs/range.h"
#include "experiments/trace/bottleneck.h"

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

#endif
