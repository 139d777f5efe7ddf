/* --backend auto: private to experiments/config. Who chooses is not: config.choose. */
#ifndef PSRING_EXPERIMENTS_CONFIG_AUTOMATIC_H
#define PSRING_EXPERIMENTS_CONFIG_AUTOMATIC_H

#include "experiments/config/config.h"

/* Whether it and --cost-model go together, and with the device. STATUS_USAGE: logged. */
enum status automatic_check(const struct config *config);

/* Collective. Chooses, and puts the first pick in its place; nothing where a backend was named. */
enum status automatic_settle(struct config *config, struct world *world);

#endif
