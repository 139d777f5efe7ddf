/* --sync, --backup-workers and --straggler: who waits for whom, and for how long. */
#ifndef PSRING_EXPERIMENTS_SYNC_H
#define PSRING_EXPERIMENTS_SYNC_H

#include "common/base/status.h"
#include "common/net/world/topology.h"
#include "experiments/config/config.h"

/* After --compute has been read. Sets config->consistency and straggler_*. STATUS_USAGE: logged. */
enum status sync_parse(struct config *config);

/* That there are the workers which they name. STATUS_USAGE: logged. */
enum status sync_check_world(const struct config *config, const struct topology *topology);

#endif
