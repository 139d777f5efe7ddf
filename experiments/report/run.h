/* All that a run has left in its folder, read and judged once, for the summary, the page and the
 * figures. */
#ifndef PSRING_EXPERIMENTS_REPORT_RUN_H
#define PSRING_EXPERIMENTS_REPORT_RUN_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "common/base/status.h"
#include "experiments/report/consistency.h"
#include "experiments/rows/results.h"
#include "experiments/rows/trainings.h"

struct run {
    const char *dir; /* borrowed */
    bool has_results, has_trainings, has_consistency;
    struct results results;
    struct trainings trainings;
    struct consistency consistency;
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

#endif
