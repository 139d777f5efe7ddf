/* How a run learns, from its options: optimizer, learning rate, images per step, number of
 * steps. */
#ifndef PSRING_EXPERIMENTS_CONFIG_LEARNING_H
#define PSRING_EXPERIMENTS_CONFIG_LEARNING_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "experiments/config/config.h"
#include "models/lr.h"
#include "models/optim.h"

enum { LEARNING_WARMUP_NOT_GIVEN = -1 }; /* config.warmup_epochs */

struct config_table;

/* Checks that the options go together and that the optimizer uses the given ones. STATUS_USAGE:
 * logged. */
enum status learning_check(const struct config *config, const struct config_table *table);

/* Divides --global-batch among the workers of a world of `world_size`, and sets config->batch.
 * STATUS_USAGE (logged) if the division leaves a remainder. */
enum status learning_share_batch(struct config *config, int world_size);

/* --epochs; with --epochs-divided the workers' share, rounded up. */
uint64_t learning_epochs(const struct config *config, size_t workers);

struct optimizer_parameters learning_optimizer(const struct config *config);

/* STATUS_USAGE (logged) if the warm-up outlasts the --epochs of the run. */
enum status learning_schedule(const struct config *config, size_t workers, uint64_t steps_per_epoch,
                              uint64_t total_steps, struct lr_schedule *schedule);

#endif
