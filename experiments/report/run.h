/* The trainings of consistency.csv (run_consistency.sh): by mode, all workers alike or one slow. */
#ifndef PSRING_EXPERIMENTS_REPORT_RUN_H
#define PSRING_EXPERIMENTS_REPORT_RUN_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/base/csv.h"
#include "common/base/status.h"
#include "experiments/bench/results.h"

/* All runs of one mode, one a seed. A run that did not reach its target took INFINITY. */
struct mode {
    const char *name, *straggler; /* the table's; "none", or "RANK:FACTOR" */
    int runs, reached;
    double *seconds;                                                     /* (runs), ascending */
    double images_per_s, staleness, staleness_most, lost, accuracy_most; /* medians but for _most;
                                                                          * NAN: not known */
};

struct consistency_run {
    struct csv_table table;
    struct mode *modes; /* in the order of their first rows */
    size_t count;
    double compute_ms; /* the most that a step of workers that are alike computed; NAN: not known */
};

/* STATUS_INPUT and STATUS_NO_MEMORY are logged. Needs consistency_free, also after an error. */
enum status consistency_read(struct consistency_run *consistency, const char *path);
void consistency_free(struct consistency_run *consistency);

/* The tables, and which mode was first. It counts runs that ended, not seeds that were asked for.
 * `provenance`, which may be NULL, names the runs that failed and whether this was a quick look. */
void consistency_print(const struct consistency_run *consistency, const cJSON *provenance,
                       FILE *out);

/* For plots/consistency.gp: modes.txt and consistency_facts.gp in the folder `dir`. */
enum status consistency_write_figure(const struct consistency_run *consistency, const char *dir);

/* For the page: [{"mode", "straggler", "runs", "reached", "seconds" (null: never), "dots": seconds
 * of the runs that reached it, "images_per_s", "target"}, ...]. */
cJSON *consistency_json(const struct consistency_run *consistency);

/* All that a run has left in its folder, read and judged once, for the summary, the page and the
 * figures. */

struct run {
    const char *dir; /* borrowed */
    bool has_results, has_trainings, has_consistency;
    struct results results;
    struct trainings trainings;
    struct consistency_run consistency;
    cJSON *provenance; /* NULL: no provenance.json, or a damaged one (logged) */
    int cores;         /* 0: not known */
    int failed;        /* measurements that failed */
    /* Configurations that needed more machines, "CONFIGURATION WORKERS MACHINES;...", or too much
     * time, "CONFIGURATION WORKERS MODEL SECONDS;..." or "... NUMBERGB"; "": nothing. */
    const char *left_out, *too_long;
    int machine_count;
    enum agreement agreement; /* of the trainings */
    const struct training *one, *two;
    const char *setting;
    enum state state;
};

/* STATUS_INPUT (logged): none of bench.csv, train.csv and consistency.csv, or one is damaged. Needs
 * run_free whatever it returns. `dir` must outlive the run. */
enum status run_read(struct run *run, const char *dir);
void run_free(struct run *run);

/* The name of the run's network; "": not known. */
const char *run_network(const struct run *run);

/* What a run has left in its folder, as the JSON that the page's scripts draw from. */

/* Adds to the array `replays` what a page can play of the timeline at `path` (experiments/trace).
 * STATUS_INPUT (logged): no timeline. */
typedef enum status run_replay(cJSON *replays, const char *name, const char *path);

/*
 * *data, which the caller deletes:
 *
 *     {"state": "exact", "network": "vcluster:200mbit", "link_bytes_per_s": 23.8e6 or null,
 *      "tables": {"bench": [{"who", "series", "state", "starts", "workers", "bytes", ...}, ...],
 *                 "train": [{"series", "workers", "images_per_s", ...}, ...],
 *                 "consistency": consistency.c's,
 *                 "predict", "simulate": {"columns": ["backend", ...], "rows": [["ring", 4,
 * ...]]}}, "models": [["vgg16", 553430176], ...], gradients in bytes, "model": model.json,
 * "replays": what `replay` adds}
 *
 * "bench" has one entry for all starts of a configuration, as struct point. A part is there where
 * its file is. A run whose state is WRONG has only "consistency" and "models", so no time of an
 * all-reduce is on its page. A damaged further file is left out, with a warning.
 * STATUS_NO_MEMORY. `replay` may be NULL: then timelines are left out, with a warning.
 */
enum status run_data_make(const struct run *run, run_replay *replay, cJSON **data);

/* "DIR/NAME", for the caller to free; NULL: no memory. */
char *run_data_path(const char *dir, const char *name);

/* The file's text, for the caller to free; NULL: there is none, or it is empty. Its length without
 * the 0 at its end goes to *length, which may be NULL. */
char *run_data_text(const char *dir, const char *name, size_t *length);

/* "DIR/NAME", to be written; NULL is logged. */
FILE *run_open(const char *dir, const char *name);

/* Null for a number that is not finite. */
void run_add_number(cJSON *object, const char *name, double value);

#endif
