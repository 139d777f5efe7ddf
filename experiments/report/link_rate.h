/* One rate of the links for all rows of a run, as its summary.txt has it. */
#ifndef PSRING_EXPERIMENTS_REPORT_LINK_RATE_H
#define PSRING_EXPERIMENTS_REPORT_LINK_RATE_H

#include <cjson/cJSON.h>

#include "common/base/csv_table.h"
#include "common/base/status.h"

/*
 * Each run of psring bench probes the links for itself. Scales efficiency and theory_time_us of
 * `bench`, which is the table's JSON (run_data.h), to the median of all probes: on real machines
 * and in clusters with a shape, whose links may differ, of the runs on as many machines. Adds to
 * `data` "link_bytes_per_s", null where nothing was probed. STATUS_NO_MEMORY is logged.
 * O(rows log rows).
 */
enum status link_rate_settle(cJSON *data, cJSON *bench, const struct csv_table *table);

#endif
