/*
 * A worker that computes FACTOR times as long as it has to: --straggler, as an old machine, or one
 * that something else runs on. It computes, and then sleeps for the rest before its gradients go
 * out, bucket by bucket.
 */
#ifndef PSRING_EXPERIMENTS_STRAGGLER_H
#define PSRING_EXPERIMENTS_STRAGGLER_H

#include <stdint.h>

#include "common/device/device.h"

struct straggler {
    double factor;      /* 1: no straggler, and all of this does nothing */
    int64_t since_ns;   /* when the present stretch of computing began, */
    int64_t blocked_ns; /* and how much of the step had then not been computing */
};

void straggler_init(struct straggler *straggler, double factor);

/* A step begins; no part of it has been blocked. */
void straggler_begin(struct straggler *straggler);

/* Waits for the device, then until computing would have come as far. `blocked_ns`: of the step,
 * spent waiting for others. */
void straggler_delay(struct straggler *straggler, struct device *device, int64_t blocked_ns);

#endif
