/* What one option's type and range cannot say: values with a form of their own, and combinations.
 */
#ifndef PSRING_EXPERIMENTS_CONFIG_CHECK_H
#define PSRING_EXPERIMENTS_CONFIG_CHECK_H

#include "common/base/status.h"
#include "experiments/config/config.h"

/* Checks the options of config->command and fills the fields that follow from others (paced,
 * servers). STATUS_USAGE has been logged: option, found, expected, what to do. */
enum status config_check(struct config *config);

/* Do the options suit that many processes? STATUS_USAGE has been logged. */
enum status config_check_world(const struct config *config, int world_size);

#endif
