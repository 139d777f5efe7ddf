/*
 * A step that waits as long as computing would take, and exchanges for real: layer by layer, in
 * proportion to their operations, so that buckets are complete, and needed, when they would be.
 * The gradients are those that the caller has set once: from the first average on they are the
 * same on all ranks and stay what they are, but for rounding.
 */
#ifndef PSRING_EXPERIMENTS_TRAIN_PACE_H
#define PSRING_EXPERIMENTS_TRAIN_PACE_H

#include "common/base/status.h"
#include "experiments/train/gradient_sync.h"

/* One step, from gradient_sync_begin to gradient_sync_end; forward and backward together take
 * `step_ms`, and whatever the exchange adds. */
enum status pace_step(struct gradient_sync *sync, double step_ms);

#endif
