/*
 * A step that waits as long as computing would take, and exchanges for real: layer by layer, in
 * proportion to their operations, so that buckets are complete, and needed, when they would be.
 * The gradients are those that the caller has set once: from the first average on they are the
 * same on all ranks and stay what they are, but for rounding.
 */
#ifndef PSRING_EXPERIMENTS_STEP_PACE_H
#define PSRING_EXPERIMENTS_STEP_PACE_H

#include "common/base/status.h"
#include "experiments/step/exchange.h"

/* One step, from exchange_begin to exchange_end; forward and backward together take `step_ms`, and
 * whatever the exchange adds. */
enum status pace_step(struct exchange *exchange, double step_ms);

#endif
