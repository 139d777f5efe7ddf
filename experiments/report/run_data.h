/* What a run has left in its folder, as the JSON that the page's scripts draw from. */
#ifndef PSRING_EXPERIMENTS_REPORT_RUN_DATA_H
#define PSRING_EXPERIMENTS_REPORT_RUN_DATA_H

#include <cjson/cJSON.h>

#include "common/base/status.h"
#include "experiments/report/run.h"

/*
 * *data, which the caller deletes:
 *
 *     {"state": "exact", "network": "vcluster:200mbit", "link_bytes_per_s": 23.8e6 or null,
 *      "tables": {"bench": [{"who", "series", "state", "starts", "workers", "bytes", ...}, ...],
 *                 "train": [{"series", "workers", "images_per_s", ...}, ...],
 *                 "consistency": consistency.h's,
 *                 "predict", "simulate": {"columns": ["backend", ...], "rows": [["ring", 4,
 * ...]]}}, "models": [["vgg16", 553430176], ...], gradients in bytes, "model": model.json,
 * "replays": replay.h's}
 *
 * "bench" has one entry for all starts of a configuration, as struct point. A part is there where
 * its file is. A run whose state is WRONG has only "consistency" and "models", so no time of an
 * all-reduce is on its page. A damaged further file is left out, with a warning.
 * STATUS_NO_MEMORY.
 */
enum status run_data_make(const struct run *run, cJSON **data);

/* What a further file's reading has come to: STATUS_INPUT becomes a warning and STATUS_OK, as one
 * that a failed run has cut off costs its part of the report, not the page. */
enum status run_data_without(const char *dir, const char *name, enum status status);

/* "DIR/NAME", for the caller to free; NULL: no memory. */
char *run_data_path(const char *dir, const char *name);

/* The file's text, for the caller to free; NULL: there is none, or it is empty. Its length without
 * the 0 at its end goes to *length, which may be NULL. */
char *run_data_text(const char *dir, const char *name, size_t *length);

#endif
