/*
 * The critical path of a step: from its end back to its begin, at every moment what the rest had to
 * wait for. Whoever waits for a message has waited for its link, from when it was handed over, and
 * before that for its sender; whoever waits for a bucket, for its averaging; an averaging thread
 * that has nothing to do, for the computation that completes the next bucket. A pure function of a
 * timeline.
 */
#ifndef PSRING_EXPERIMENTS_TRACE_PATH_H
#define PSRING_EXPERIMENTS_TRACE_PATH_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "experiments/trace/trace_file.h"

enum trace_place {
    TRACE_PLACE_COMPUTE, /* forward, backward */
    TRACE_PLACE_DATA,
    TRACE_PLACE_OPTIMIZER,
    TRACE_PLACE_OTHER,  /* of the training thread */
    TRACE_PLACE_WAKE,   /* from when a thread had what it waited for until it went on */
    TRACE_PLACE_ADD,    /* an averaging thread adds, or hands messages over */
    TRACE_PLACE_SERVER, /* a server does */
    TRACE_PLACE_LINK,   /* a message is on its way from `rank` to `peer` */
    TRACE_PLACE_SENDS,  /* a rank waits until what it sent is gone */
    TRACE_PLACES
};

/* A stretch of the path. */
struct trace_stretch {
    enum trace_place place;
    int rank, peer;
    int bucket;               /* -1: of none, as the next */
    int64_t step;             /* of the algorithm */
    char first[32], last[32]; /* COMPUTE: the layers' names, earliest and latest */
    int64_t begin_ns, end_ns;
};

struct trace_path {
    struct trace_stretch *stretches; /* from the begin on */
    size_t count;
};

/* Of the step that ranges[at] is, on its rank. Caller frees with trace_path_free.
 * STATUS_NO_MEMORY is logged. */
enum status trace_path_find(const struct trace_file *file, size_t at, struct trace_path *path);
void trace_path_free(struct trace_path *path);

#endif
