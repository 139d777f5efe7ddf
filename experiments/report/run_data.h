/* What a run has left in its folder, as the JSON that the page's scripts draw from. */
#ifndef PSRING_EXPERIMENTS_REPORT_RUN_DATA_H
#define PSRING_EXPERIMENTS_REPORT_RUN_DATA_H

#include <cjson/cJSON.h>

#include "common/base/status.h"

/*
 * *data, which the caller deletes:
 *
 *     {"network": "vcluster:200mbit", "link_bytes_per_s": 23.8e6 or null,
 *      "tables": {"bench": {"columns": ["backend", ...], "rows": [["ring", 4, null, ...], ...]},
 *                 "train", "consistency", "predict", "simulate": alike},
 *      "models": [["vgg16", 553430176], ...], gradients in bytes,
 *      "model": model.json as it is, "replays": replay.h's}
 *
 * There is a table for each CSV file, and the last two only where their files are. A field that is
 * a number is one; an empty one is null. Each run of psring bench probes the links for itself; so
 * that one probe that was disturbed does not shift its rows, efficiency and theory_time_us are
 * held against one rate, the median of the probes (on real machines and in clusters with a shape,
 * whose links may differ, of the runs on as many machines), as in summary.txt.
 *
 * STATUS_INPUT (logged): none of bench.csv, train.csv and consistency.csv is there, or one of them
 * is damaged. What else is damaged is left out, with a warning. STATUS_NO_MEMORY.
 */
enum status run_data_read(const char *dir, cJSON **data);

/* What a further file's reading has come to: STATUS_INPUT becomes a warning and STATUS_OK, as one
 * that a failed run has cut off costs its part of the report, not the page. */
enum status run_data_without(const char *dir, const char *name, enum status status);

/* "DIR/NAME", for the caller to free; NULL: no memory. */
char *run_data_path(const char *dir, const char *name);

/* The file's text, for the caller to free; NULL: there is none, or it is empty. Its length without
 * the 0 at its end goes to *length, which may be NULL. */
char *run_data_text(const char *dir, const char *name, size_t *length);

#endif
