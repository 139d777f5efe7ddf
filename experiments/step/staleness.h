/* How fresh the parameters were that workers got, where servers own them: from comm_progress. */
#ifndef PSRING_EXPERIMENTS_STEP_STALENESS_H
#define PSRING_EXPERIMENTS_STEP_STALENESS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/comm/comm_options.h"

struct staleness {
    double mean; /* steps of the slowest other worker that were missing */
    size_t most;
};

/* workers (count), or NULL: none. All their counters but the step, added. */
void staleness_sum(const struct comm_progress *workers, size_t count, struct comm_progress *sum);

struct staleness staleness_of(const struct comm_progress *progress);

/* workers (count): a line each to stdout, and what its words mean. `skips`: late workers leave
 * steps out by --late-steps, not because others' backups made them. */
void staleness_print(const struct comm_progress *workers, size_t count, bool skips);

#endif
