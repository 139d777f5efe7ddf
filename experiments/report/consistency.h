/* The trainings of consistency.csv (run_consistency.sh): by mode, all workers alike or one slow. */
#ifndef PSRING_EXPERIMENTS_REPORT_CONSISTENCY_H
#define PSRING_EXPERIMENTS_REPORT_CONSISTENCY_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "common/base/csv.h"
#include "common/base/status.h"

/* All runs of one mode, one a seed. A run that did not reach its target took INFINITY. */
struct mode {
    const char *name, *straggler; /* the table's; "none", or "RANK:FACTOR" */
    int runs, reached;
    double *seconds;                                                     /* (runs), ascending */
    double images_per_s, staleness, staleness_most, lost, accuracy_most; /* medians but for _most;
                                                                          * NAN: not known */
};

struct consistency {
    struct csv_table table;
    struct mode *modes; /* in the order of their first rows */
    size_t count;
    double compute_ms; /* the most that a step of workers that are alike computed; NAN: not known */
};

/* STATUS_INPUT and STATUS_NO_MEMORY are logged. Needs consistency_free, also after an error. */
enum status consistency_read(struct consistency *consistency, const char *path);
void consistency_free(struct consistency *consistency);

/* The tables, and which mode was first. It counts runs that ended, not seeds that were asked for.
 * `provenance`, which may be NULL, names the runs that failed and whether this was a quick look. */
void consistency_print(const struct consistency *consistency, const cJSON *provenance, FILE *out);

/* For plots/consistency.gp: modes.txt and consistency_facts.gp in the folder `dir`. */
enum status consistency_write_figure(const struct consistency *consistency, const char *dir);

/* For the page: [{"mode", "straggler", "runs", "reached", "seconds" (null: never), "dots": seconds
 * of the runs that reached it, "images_per_s", "target"}, ...]. */
cJSON *consistency_json(const struct consistency *consistency);

#endif
