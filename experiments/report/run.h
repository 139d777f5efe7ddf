/* The trainings of consistency.csv (run_consistency.sh): by mode, with equal workers or one slow
 * worker. */
#ifndef PSRING_EXPERIMENTS_REPORT_RUN_H
#define PSRING_EXPERIMENTS_REPORT_RUN_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/base/csv.h"
#include "common/base/status.h"
#include "experiments/bench/results.h"

/* All runs of one mode, one per seed. A run that missed its target took INFINITY. */
struct mode {
    const char *name, *straggler; /* borrowed from the table; straggler: "none" or "RANK:FACTOR" */
    int runs, reached;
    double *seconds; /* (runs), ascending */
    double images_per_s, staleness, staleness_most, lost,
        accuracy_most; /* medians, except _most; NAN: unknown */
};

struct consistency_run {
    struct csv_table table;
    struct mode *modes; /* in order of their first rows */
    size_t count;
    double compute_ms; /* longest computation of a step of equal workers; NAN: unknown */
};

/* STATUS_INPUT and STATUS_NO_MEMORY are logged. Needs consistency_free, also after an error. */
enum status consistency_read(struct consistency_run *consistency, const char *path);
void consistency_free(struct consistency_run *consistency);

/* Prints the tables, and the fastest mode. Counts completed runs, not requested seeds.
 * `provenance`, which may be NULL, names the failed runs and states whether the run was quick. */
void consistency_print(const struct consistency_run *consistency, const cJSON *provenance,
                       FILE *out);

/* For plots/consistency.gp: writes modes.txt and consistency_facts.gp into the folder `dir`. */
enum status consistency_write_figure(const struct consistency_run *consistency, const char *dir);

/* For the page: [{"mode", "straggler", "runs", "reached", "seconds" (null: never), "dots": seconds
 * of the runs that reached the target, "images_per_s", "target"}, ...]. */
cJSON *consistency_json(const struct consistency_run *consistency);

/* All results in the folder of a run, read and judged once, for the summary, the page and the
 * figures. */

struct run {
    const char *dir; /* borrowed */
    bool has_results, has_trainings, has_consistency;
    struct results results;
    struct trainings trainings;
    struct consistency_run consistency;
    cJSON *provenance; /* NULL: no provenance.json, or a damaged one (logged) */
    int cores;         /* 0: unknown */
    int failed;        /* measurements that failed */
    /* Configurations that need more machines: "CONFIGURATION WORKERS MACHINES;...". Configurations
     * that need too much time or memory: "CONFIGURATION WORKERS MODEL SECONDS;..." or "...
     * NUMBERGB". "": none. */
    const char *left_out, *too_long;
    int machine_count;
    enum agreement agreement; /* of the trainings */
    const struct training *one, *two;
    const char *setting;
    enum state state;
};

/* Reads a run. STATUS_INPUT (logged): none of bench.csv, train.csv and consistency.csv exists, or
 * one is damaged. Always needs run_free. `dir` must outlive the run. */
enum status run_read(struct run *run, const char *dir);
void run_free(struct run *run);

/* The name of the run's network; "": unknown. */
const char *run_network(const struct run *run);

/* Writes on how many rows the fitted model rests, from predict.csv: "Fitted rows: tcp 14, zmq 3.
 * Held out, only predicted: 5. ..." "": no such file, or a damaged one. */
void run_basis(const struct run *run, char *text, size_t size);

/* The JSON from which the page's scripts draw. */

/* Adds a replay of the timeline at `path` to the array `replays` (experiments/trace). STATUS_INPUT
 * (logged): not a timeline. */
typedef enum status run_replay(cJSON *replays, const char *name, const char *path);

/*
 * Makes *data, which the caller deletes:
 *
 *     {"state": "exact", "network": "vcluster:200mbit", "link_bytes_per_s": 23.8e6 or null,
 *      "tables": {"bench": [{"who", "name", "series", "state", "starts", "workers", "bytes", ...},
 * ...], "train": [{"series", "workers", "images_per_s", ...}, ...], "consistency": see
 * consistency_json, "predict", "simulate": {"columns": ["backend", ...], "rows": [["ring", 4],
 * ...]}}, "names": {"1": "1 server", ...} by series,
 *      "models": [["vgg16", 553430176], ...], gradients in bytes, "model": model.json,
 *      "replays": those of `replay`}
 *
 * "bench" has one entry for all starts of a configuration, like struct point. A part exists if its
 * file exists. A run whose state is WRONG has only "models", so its page shows no time of an
 * all-reduce. A damaged additional file is left out, with a warning. If `replay` is NULL, timelines
 * are left out, with a warning. Error: STATUS_NO_MEMORY.
 */
enum status run_data_make(const struct run *run, run_replay *replay, cJSON **data);

/* Returns "DIR/NAME"; the caller frees it. NULL: no memory. */
char *run_data_path(const char *dir, const char *name);

/* Returns the text of a file; the caller frees it. NULL: no such file, or an empty one. *length,
 * which may be NULL, is its length without the final 0. */
char *run_data_text(const char *dir, const char *name, size_t *length);

/* Opens "DIR/NAME" for writing. NULL is logged. */
FILE *run_open(const char *dir, const char *name);

/* Adds a number, or null if it is not finite. */
void run_add_number(cJSON *object, const char *name, double value);

#endif
