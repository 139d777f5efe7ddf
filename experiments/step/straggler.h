/*
 * How long a worker computes, beside what it has to: FACTOR times as long (--straggler), as an old
 * machine, or one that something else runs on; and a least time of a step (--compute real:MS), so
 * that workers that share too few cores compute for equally long. It computes, and then sleeps for
 * the rest before its gradients go out, bucket by bucket.
 */
#ifndef PSRING_EXPERIMENTS_STEP_STRAGGLER_H
#define PSRING_EXPERIMENTS_STEP_STRAGGLER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/device/device.h"

struct straggler {
    double factor;       /* 1, and a least time of 0: no straggler, and all of this does nothing */
    int64_t least_ns;    /* that a step computes, before it is multiplied */
    int64_t computed_ns; /* of the step */
    int64_t since_ns;    /* when the present stretch of computing began, */
    int64_t blocked_ns;  /* and how much of the step had then not been computing */
};

void straggler_init(struct straggler *straggler, double factor, double least_ms);

/* A step begins; no part of it has been blocked. */
void straggler_begin(struct straggler *straggler);

/* Waits for the device, then until computing would have come as far. `blocked_ns`: of the step,
 * spent waiting for others. `last`: the step has no more to compute. */
void straggler_delay(struct straggler *straggler, struct device *device, int64_t blocked_ns,
                     bool last);

#endif
