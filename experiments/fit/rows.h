/*
 * Rows of bench.csv, as the fit reads them: what was measured, of what shape, with which scatter.
 * Columns are found by their names; those that are not known stay empty in the file.
 */
#ifndef PSRING_EXPERIMENTS_FIT_ROWS_H
#define PSRING_EXPERIMENTS_FIT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "experiments/fit/terms.h"
#include "experiments/rows/judge.h"

/* PREDICT_WORD: room for CONFIG_NETWORK_BYTES and more. */
enum { PREDICT_WORD = 80, PREDICT_REASONS_MOST = 16, PREDICT_WORKERS_MOST = 65536 };

/* What a row is for. */
enum predict_use {
    PREDICT_FIT,      /* the constants follow from it */
    PREDICT_HOLD_OUT, /* predicted without being fitted */
    PREDICT_NOT_USED, /* not an all-reduce of one vector between hosts whose formula is known */
};

struct predict_row {
    char backend[PREDICT_WORD], transport[PREDICT_WORD], network[PREDICT_WORD];
    char device[PREDICT_WORD], error_feedback[PREDICT_WORD];
    char placement[PREDICT_WORD], algorithm[PREDICT_WORD], compress[PREDICT_WORD];
    char api[PREDICT_WORD], model[PREDICT_WORD];
    char nccl[PREDICT_WORD]; /* NCCL's algorithm, "ring/simple"; empty: another's row, or not known
                              */
    int workers, servers;    /* as --servers: with mixed placement the spare ones */
    int hosts, neighbours_apart; /* 0: each worker has its own host */
    uint64_t bytes;              /* of the message, as float32 */
    double median_s, noise_s;    /* the median, and its standard error */
    double rest_s;               /* between operations (median); 0: not known */
    int runs;                    /* of which it is the median (runs.h); 1: it is one run's */
    double run_spread;           /* their standard deviation, as a share of it; 0: one run */
    double nominal_bytes_per_s;  /* that the run was told; 0: not known */
    uint64_t wrong;
    double skew_ms;   /* its ranks started up to so much apart */
    double cpu_busy;  /* share of the machine's CPUs; 0: not known */
    double cpu_other; /* of them, that other processes had; 0: not known */
    enum predict_use use;
    const char *why; /* it is not used; else NULL */
    /* struct predict_model that it belongs to, also where other work kept it from being fitted; -1:
     * none */
    int model_index;
    struct predict_terms terms; /* where it belongs to one */
};

struct predict_rows {
    struct predict_row *rows;
    size_t count, room;
};

/* The judge's state of the row, the same as in the summary. */
enum state predict_row_state(const struct predict_row *row);

/* Adds the rows of `path`, or of bench.csv in that folder. STATUS_INPUT, logged with the line: no
 * bench.csv, or a field that is no number or out of range. */
enum status predict_rows_read(struct predict_rows *rows, const char *path);
void predict_rows_free(struct predict_rows *rows);

/*
 * Marks what is held out: `spec` is "auto", "none", or conditions with commas between, of which a
 * row meets at least one: workers=N, servers=N, bytes=N, placement=WORD. auto: every second of the
 * numbers of workers and of the sizes that have a smaller and a larger neighbour. STATUS_USAGE is
 * logged.
 */
enum status predict_hold_out(struct predict_rows *rows, const char *spec);

#endif
