/* Recipes: well-known ways to train, each a name for the values of several options. */
#ifndef PSRING_EXPERIMENTS_RECIPES_H
#define PSRING_EXPERIMENTS_RECIPES_H

#include <stdbool.h>

#include "common/base/status.h"
#include "experiments/config/config.h"

struct config_table;

/*
 * Where config->recipe names one: sets its options, but for those that were given. "list" prints
 * all recipes to stdout and sets *listed. STATUS_USAGE (logged): there is none of that name.
 */
enum status recipes_apply(const struct config_table *table, struct config *config, bool *listed);

#endif
