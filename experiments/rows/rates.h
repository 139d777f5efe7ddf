/* One rate of the links for all rows of a run, and which rows something disturbed. */
#ifndef PSRING_EXPERIMENTS_ROWS_RATES_H
#define PSRING_EXPERIMENTS_ROWS_RATES_H

#include "experiments/rows/results.h"

/*
 * Each psring bench probes the links for itself. A disturbance of a second during one probe would
 * compare its rows with another theory than the rest. Therefore efficiency and theory of
 * all rows are scaled to the median of all probes. On real machines and in clusters with a shape
 * links differ, and the median is that of the runs on as many machines. Fills in `unsteady` of the
 * rows, and what the results say of the links. STATUS_NO_MEMORY is logged. O(rows^2).
 */
enum status rates_settle(struct results *results);

/* Whether the network has racks, or hosts with different rates (vcluster.sh --help). */
bool rates_has_shape(const char *network);

#endif
