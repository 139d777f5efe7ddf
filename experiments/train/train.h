/* psring train: data-parallel training, the same program on every rank. */
#ifndef PSRING_EXPERIMENTS_TRAIN_TRAIN_H
#define PSRING_EXPERIMENTS_TRAIN_TRAIN_H

#include "common/base/status.h"
#include "common/net/world.h"
#include "experiments/config/config.h"

/*
 * Trains as `config` says; every rank of `world` calls it, dedicated servers included. Rank 0
 * reports: a progress line on a terminal, else a line per epoch on stdout; then accuracy, the
 * weights' SHA-256 (checked to be the same on all workers) and the median times. An error has been
 * logged by one rank. STATUS_USAGE is met by all ranks alike; after any other error the other ranks
 * must be ended (world_abort), because they wait. STATUS_DIVERGED if the loss leaves the finite
 * numbers. STATUS_STOPPED, on all ranks, if a signal has ended the run early and its state is saved
 * (stop.h).
 */
enum status train_run(struct config *config, struct world *world);

/* That images have a folder where the run needs them. Needs no world. STATUS_USAGE: logged. */
enum status train_check_data(const struct config *config);

struct generation;

/* The same for one generation of an elastic job: see generation.h. STATUS_STOPPED: somebody joins
 * or leaves, and training goes on in the next one. */
enum status train_generation(struct config *config, struct world *world,
                             struct generation *generation);

#endif
