/*
 * Where the time of training steps went, by rank: a step's time is that of its parts and `other`,
 * and each part is what its ranges last without ranges of other parts that are nested in them. A
 * pure function of a timeline.
 */
#ifndef PSRING_EXPERIMENTS_TRACE_TRACE_H
#define PSRING_EXPERIMENTS_TRACE_TRACE_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "experiments/trace/timeline.h"

enum trace_part {
    TRACE_PART_STEP, /* the whole */
    TRACE_PART_COMPUTE,
    TRACE_PART_EXPOSED,
    TRACE_PART_DATA,
    TRACE_PART_OPTIMIZER,
    TRACE_PART_OTHER,
    TRACE_PART_REST, /* the step without EXPOSED and DATA: compute_ms of train.csv */
    TRACE_PART_COMM, /* meanwhile the rank averaged, on whichever thread */
    TRACE_PART_CPU,  /* of REST, on a processor; negative: not recorded */
    TRACE_PARTS
};

struct trace_step {
    int rank;
    size_t range; /* which of the file's ranges it is */
    int64_t number, begin_ns, end_ns;
    int64_t ns[TRACE_PARTS];
};

/* All steps of all ranks, by rank and time; caller frees. STATUS_NO_MEMORY is logged. */
enum status trace_steps(const struct trace_file *file, struct trace_step **steps, size_t *count);

/* In ms: the medians over a rank's steps, part by part. rank -1: of all ranks that are in
 * one step (trace_file.in_step): STEP is from when the last rank has ended a step to when the last
 * has ended the next, EXPOSED what that is beyond the busiest rank's REST and DATA; other parts are
 * that rank's. As train.csv has them, but what lies between steps where an interval
 * ends (a test, a checkpoint) counts here. Returns the number of steps. */
size_t trace_medians(const struct trace_step *steps, size_t count, int rank,
                     double median_ms[TRACE_PARTS]);

/*
 * The critical path of a step: from its end back to its begin, at every moment what the rest had to
 * wait for. Whoever waits for a message has waited for its link, from when it was handed over, and
 * before that for its sender; whoever waits for a bucket, for its averaging; an averaging thread
 * that has nothing to do, for the computation that completes the next bucket. A pure function of a
 * timeline.
 */

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

/* The critical paths of steps, in words. */

/* To stdout: the path of step `wanted`, from 1 (0: of the one of median length), and what share of
 * all steps' paths, but that of the run's first, which warms up, went through what. Sorts `steps`
 * anew. STATUS_USAGE (logged): there is no such step. */
enum status trace_print_paths(const struct trace_file *file, struct trace_step *steps, size_t count,
                              long long wanted);

/* What limited a run, by its timeline. */

/* `psring trace FILE`: where the time of a run went, by rank, and the critical path of a step. */

/* argv[0] is the command's name. Errors: logged; STATUS_USAGE among them. */
enum status trace_command(int argc, char **argv);

/* A timeline's messages of one step, few enough to be played on a page. */

/*
 * Adds to the array `replays` what the averaging of one of the file's steps looks like, of
 * those with the most messages the one of median length:
 *
 *     {"name": ..., "step": ..., "workers": [true, ...] by rank, "end_us": ...,
 *      "messages": [[from, to, begin_us, end_us, bytes, messages], ...]}
 *
 * The clock is 0 when its first message is handed over. A message is on its way from then, or from
 * when the one before it from the same rank to the same has arrived, if that was later, until it
 * has arrived: a link carries them in order. Neighbouring messages of a pair count as one where
 * there are more than REPLAY_MESSAGES_MOST. Nothing is added where no worker has a whole step.
 * STATUS_INPUT (logged): no timeline.
 */
enum { REPLAY_MESSAGES_MOST = 1200 };
enum status replay_add(cJSON *replays, const char *name, const char *path);

#endif
