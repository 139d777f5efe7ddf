/*
 * The parts of training steps, by rank. A step is the sum of its parts and `other`. The time of a
 * part is that of its ranges, without nested ranges of other parts. A pure function of a timeline.
 */
#ifndef PSRING_EXPERIMENTS_TRACE_TRACE_H
#define PSRING_EXPERIMENTS_TRACE_TRACE_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "experiments/trace/timeline.h"

enum trace_part {
    TRACE_PART_STEP, /* the whole step */
    TRACE_PART_COMPUTE,
    TRACE_PART_EXPOSED,
    TRACE_PART_DATA,
    TRACE_PART_OPTIMIZER,
    TRACE_PART_OTHER,
    TRACE_PART_REST, /* the step without EXPOSED and DATA: compute_ms of train.csv */
    TRACE_PART_COMM, /* time of averaging during the step, on any thread */
    TRACE_PART_CPU,  /* processor time of REST; negative: not recorded */
    TRACE_PARTS
};

struct trace_step {
    int rank;
    size_t range; /* index in trace_file.ranges */
    int64_t number, begin_ns, end_ns;
    int64_t ns[TRACE_PARTS];
};

/* Lists all steps of all ranks, sorted by rank and time. The caller frees *steps. STATUS_NO_MEMORY
 * is logged. */
enum status trace_steps(const struct trace_file *file, struct trace_step **steps, size_t *count);

/*
 * Medians over a rank's steps in ms, part by part. Returns the number of steps.
 * rank -1: over all ranks that are in one step (trace_file.in_step), as in train.csv. STEP is the
 * time from the last rank's end of a step to the last rank's end of the next. The other parts are
 * those of the busiest rank. EXPOSED is STEP minus its REST and DATA. Unlike train.csv, this
 * includes the time between steps at the end of an interval (a test, a checkpoint).
 */
size_t trace_medians(const struct trace_step *steps, size_t count, int rank,
                     double median_ms[TRACE_PARTS]);

/*
 * The critical path of a step. A walk from the end of the step back to its begin finds, for every
 * moment, the activity that everything else waited for:
 *
 * - A thread that waits for a message waited for its link since the send, and before that for its
 *   sender.
 * - A thread that waits for a bucket waited for its averaging.
 * - An idle averaging thread waited for the computation that completes the next bucket.
 *
 * A pure function of a timeline.
 */

enum trace_place {
    TRACE_PLACE_COMPUTE, /* forward, backward */
    TRACE_PLACE_DATA,
    TRACE_PLACE_OPTIMIZER,
    TRACE_PLACE_OTHER,  /* another activity of the training thread */
    TRACE_PLACE_WAKE,   /* from the event that a thread waited for until it continues */
    TRACE_PLACE_ADD,    /* an averaging thread adds or sends messages */
    TRACE_PLACE_SERVER, /* a server adds or sends messages */
    TRACE_PLACE_LINK,   /* a message travels from `rank` to `peer` */
    TRACE_PLACE_SENDS,  /* a rank waits until its sends are complete */
    TRACE_PLACES
};

/* One section of the path. */
struct trace_stretch {
    enum trace_place place;
    int rank, peer;
    int bucket;               /* -1: none, also for `step` */
    int64_t step;             /* step of the algorithm */
    char first[32], last[32]; /* COMPUTE: names of the first and the last layer */
    int64_t begin_ns, end_ns;
};

struct trace_path {
    struct trace_stretch *stretches; /* (count), by time */
    size_t count;
};

/* Finds the path of the step ranges[at] on its rank. The caller frees it with trace_path_free.
 * STATUS_NO_MEMORY is logged. */
enum status trace_path_find(const struct trace_file *file, size_t at, struct trace_path *path);
void trace_path_free(struct trace_path *path);

/* Prints critical paths. */

/* Prints to stdout the path of step `wanted` (from 1; 0: the step of median length), and the share
 * of each activity in the paths of all steps. These shares leave out the run's first step, which is
 * warm-up. Reorders `steps`. STATUS_USAGE (logged): no such step. */
enum status trace_print_paths(const struct trace_file *file, struct trace_step *steps, size_t count,
                              long long wanted);

/* `psring trace FILE`: prints the parts of steps by rank, and the critical path of a step. */

/* argv[0] is the name of the command. Errors, also STATUS_USAGE, are logged. */
enum status trace_command(int argc, char **argv);

/* The messages of one step of a timeline, reduced to a number that a page can replay. */

/*
 * Adds the averaging of one step to the array `replays`. Chooses among the steps with the most
 * messages the one of median length:
 *
 *     {"name": ..., "step": ..., "workers": [true, ...] by rank, "end_us": ...,
 *      "messages": [[from, to, begin_us, end_us, bytes, messages], ...]}
 *
 * Time 0 is the first send. A message travels from its send until its arrival. If the previous
 * message of the same pair of ranks arrives after the send, it travels from that arrival, because a
 * link keeps their order. With more than REPLAY_MESSAGES_MOST messages, consecutive messages of a
 * pair are merged. Adds nothing if no step was recorded on all workers. STATUS_INPUT (logged): not
 * a timeline.
 */
enum { REPLAY_MESSAGES_MOST = 1200 };
enum status replay_add(cJSON *replays, const char *name, const char *path);

#endif
