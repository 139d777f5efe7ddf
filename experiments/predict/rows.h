/* Reads files of results: CSV with a header (RFC 4180), whose columns are found by their names. */
#ifndef PSRING_EXPERIMENTS_PREDICT_ROWS_H
#define PSRING_EXPERIMENTS_PREDICT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/csv.h"
#include "common/base/status.h"
#include "experiments/predict/terms.h"
#include "experiments/bench/judge.h"

/* At a row of its file. */
struct table_reader {
    const char *path;
    const struct csv_table *file;
    size_t row, line; /* from 0, and from 1 with the header */
};

/* Takes a row; what it returns but STATUS_OK ends the reading. */
typedef enum status table_take(void *context, const struct table_reader *table);

/*
 * Hands all rows of `path`, or of `name` in it, where it is a folder, to `take`. Has a column of
 * `needed` (ended by NULL) no place in the header, or a line another number of fields:
 * STATUS_INPUT, logged; `expected` says what the file should be.
 */
enum status table_read(const char *path, const char *name, const char *expected,
                       const char *const *needed, table_take *take, void *context);

/* Calls `take` for each of these files, with commas between. */
enum status table_each_file(const char *files, enum status (*take)(void *context, const char *path),
                            void *context);

/* A field of the row; "" where there is no such column. */
const char *table_field(const struct table_reader *table, const char *name);

/* The same as a number of `least` at least; `absent` where it is empty. STATUS_INPUT is logged. */
enum status table_number(const struct table_reader *table, const char *name, double least,
                         double absent, double *value);

/* The same of a number that is `most` at most, as a count. */
enum status table_count(const struct table_reader *table, const char *name, int least, int most,
                        int absent, int *value);

/* The same copied. STATUS_INPUT (logged): it has no room. */
enum status table_word(const struct table_reader *table, const char *name, char *into, size_t size);

/*
 * Rows of bench.csv, as the fit reads them: what was measured, of what shape, with which scatter.
 * Columns are found by their names; those that are not known stay empty in the file.
 */

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
    char interface[PREDICT_WORD], model[PREDICT_WORD];
    char nccl[PREDICT_WORD]; /* NCCL's algorithm, "ring/simple"; empty: another's row, or not known
                              */
    int workers, servers;    /* as --servers: with mixed placement the spare ones */
    int hosts, inter_host_hops; /* 0: each worker has its own host */
    uint64_t bytes;             /* of the message, as float32 */
    double median_s, noise_s;   /* the median, and its standard error */
    double rest_s;              /* between operations (median); 0: not known */
    int runs;                   /* of which it is the median (below); 1: it is one run's */
    double run_spread;          /* their standard deviation, as a share of it; 0: one run */
    double nominal_bytes_per_s; /* that the run was told; 0: not known */
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

/*
 * Runs of one point: rows of bench.csv that differ in their times only. Where processes meet on few
 * cores, which of them wait for which differs from start to start more than from operation to
 * operation, so that the interval of one run's median says too little (Hunold and Carpen-Amarie
 * 2016, "Reproducible MPI benchmarking is still not as easy as you think": the start of mpirun is a
 * factor of the experiment). A point is what its runs are together.
 */

/*
 * Joins the rows of use PREDICT_FIT of which all is the same but what was measured into the first
 * of them, in their order: its time, its rest and its shares of CPUs are their medians; its
 * standard error is that of the median of so many, which scatter as their times do, or as each has
 * of its own if that is more; `runs` counts them, and `run_spread` is their standard deviation as a
 * share of the time. Other rows stay as they are. STATUS_NO_MEMORY is logged.
 */
enum status predict_rows_join(struct predict_rows *rows);

#endif
