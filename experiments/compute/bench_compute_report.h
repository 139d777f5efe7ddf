/* What bench --compute has measured, as a table, as CSV and as JSON. */
#ifndef PSRING_EXPERIMENTS_BENCH_COMPUTE_REPORT_H
#define PSRING_EXPERIMENTS_BENCH_COMPUTE_REPORT_H

#include <stdio.h>

#include "common/base/status.h"
#include "experiments/compute/bench_compute.h"

/* To stdout, and to --csv and --json where they are given. Errors: logged. */
enum status bench_compute_report(const struct config *config, const struct compute_result *result);

/* Lines that start with '#', then one for each layer, for their sum and for the whole step. */
void bench_compute_table(FILE *out, const struct compute_result *result);

/* Appends a row for each layer, then "sum" and "step"; a time or rate that is not known is empty.
 */
enum status bench_compute_csv(const char *path, const struct compute_result *result);

#endif
