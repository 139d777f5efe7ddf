/* What `psring serve` and `psring train --server` are told: for experiments/config. */
#ifndef PSRING_EXPERIMENTS_JOB_H
#define PSRING_EXPERIMENTS_JOB_H

#include "common/base/status.h"
#include "experiments/config/config.h"

/* Checks the addresses, and what an elastic job cannot be. Sets config->servers to how many servers
 * --server names. STATUS_USAGE: logged. */
enum status job_check(struct config *config);

#endif
