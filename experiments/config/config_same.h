/*
 * Whether all ranks were given the same command and options, where they must be. mpirun gives all
 * of them one command line; by rendezvous each has its own. A difference in one option would be met
 * as a message of the wrong length, in another one as a rank that waits for ever; of some, a seed
 * say, nothing would ever tell. Private to experiments/config.
 */
#ifndef PSRING_EXPERIMENTS_CONFIG_SAME_H
#define PSRING_EXPERIMENTS_CONFIG_SAME_H

#include "common/base/status.h"
#include "common/net/world/world.h"
#include "experiments/config/config.h"

/* Collective over the world. STATUS_USAGE, logged, on every rank whose options are not rank 0's. */
enum status config_same(const struct config *config, struct world *world);

/* Whether each rank may have its own value of this option. */
bool config_is_free(const char *name);

#endif
