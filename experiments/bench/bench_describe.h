/* From a measurement to a row of results: what was measured, beside theory. */
#ifndef PSRING_EXPERIMENTS_BENCH_DESCRIBE_H
#define PSRING_EXPERIMENTS_BENCH_DESCRIBE_H

#include "common/base/status.h"
#include "experiments/bench/bench_measure.h"
#include "experiments/bench/bench_row.h"
#include "experiments/config/config.h"
#include "experiments/measure/limits.h"

/* What measurements are held against: bytes/s of a link, 0 where not known. */
struct bench_link {
    double nominal, probed;
    struct limits machine;
};

/* The row of what was measured as `plan` says. Sorts the measurement's times. Errors: logged. */
enum status bench_describe(struct bench_row *row, const struct config *config,
                           const struct bench_link *link, const struct bench_connection *connection,
                           const struct bench_plan *plan, struct bench_measurement *measured);

#endif
