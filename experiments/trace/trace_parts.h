/*
 * Where the time of training steps went, by rank: a step's time is that of its parts and `other`,
 * and each part is what its ranges last without ranges of other parts that are nested in them. A
 * pure function of a timeline.
 */
#ifndef PSRING_EXPERIMENTS_TRACE_PARTS_H
#define PSRING_EXPERIMENTS_TRACE_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "experiments/trace/trace_file.h"

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
 * that rank's. As train.csv has them (step_times.h), but what lies between steps where an interval
 * ends (a test, a checkpoint) counts here. Returns the number of steps. */
size_t trace_medians(const struct trace_step *steps, size_t count, int rank,
                     double median_ms[TRACE_PARTS]);

#endif
