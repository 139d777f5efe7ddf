/*
 * Whether all ranks of a training run were given the same options, where they must be. mpirun gives
 * all of them one command line; by rendezvous each has its own. Many a difference would be met as a
 * wrong message; of some, a seed say, nothing would ever tell.
 */
#ifndef PSRING_EXPERIMENTS_CONFIG_SAME_H
#define PSRING_EXPERIMENTS_CONFIG_SAME_H

#include "common/base/status.h"
#include "common/net/world/world.h"
#include "experiments/config/config.h"

/* Collective over the world. STATUS_USAGE, logged, on every rank whose options are not rank 0's. */
enum status config_same(const struct config *config, struct world *world);

#endif
