/* The trainings of train.csv, classified once: the last row of each counts. */
#ifndef PSRING_EXPERIMENTS_ROWS_TRAININGS_H
#define PSRING_EXPERIMENTS_ROWS_TRAININGS_H

#include <stdbool.h>

#include "common/base/csv.h"
#include "common/base/status.h"
#include "experiments/rows/results.h"

enum training_kind {
    TRAINING_PACED, /* a timed wait instead of computation */
    TRAINING_REAL,  /* on processors, with an accuracy */
    TRAINING_GPU,
    TRAINING_LEFT_OUT, /* ranks that take turns on a GPU, and what has no accuracy */
};

/* Texts are the table's. A number that is not known is NAN. */
struct training {
    enum training_kind kind;
    size_t row; /* of the table: the last one */
    char who[64];
    int workers;
    int series[SERIES_MOST]; /* see results_series */
    double paced_ms, batch, images, seconds, images_per_s, accuracy, loss;
    char limit[48]; /* what limits it, as it has found itself; "": not known */
};

struct trainings {
    struct csv_table table;
    struct training *list; /* in the order of their first rows */
    size_t count;
};

/* Reads `path`; STATUS_INPUT and STATUS_NO_MEMORY are logged. Needs trainings_free. */
enum status trainings_read(struct trainings *trainings, const char *path);
void trainings_free(struct trainings *trainings);

/* NULL: there is none. */
const struct training *trainings_find(const struct trainings *trainings, enum training_kind kind,
                                      const char *who, int workers);

enum agreement {
    AGREEMENT_NONE,     /* fewer than two real trainings, or their weights are not known */
    AGREEMENT_SETTINGS, /* they differ in a setting, so their weights are not compared */
    AGREEMENT_ROUNDING, /* the order of the sums was free, and their weights differ */
    AGREEMENT_BITS,     /* the same weights, bit for bit */
    AGREEMENT_WRONG,    /* the same order of the same sums, and other weights */
};

/* Compares the first two real trainings. `setting`: the column that differs (AGREEMENT_SETTINGS),
 * else NULL. */
enum agreement trainings_agree(const struct trainings *trainings, const struct training **one,
                               const struct training **two, const char **setting);

#endif
