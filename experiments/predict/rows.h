/* Reads result files: CSV with a header (RFC 4180). Finds columns by name. */
#ifndef PSRING_EXPERIMENTS_PREDICT_ROWS_H
#define PSRING_EXPERIMENTS_PREDICT_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/csv.h"
#include "common/base/status.h"
#include "experiments/predict/terms.h"
#include "experiments/bench/judge.h"

/* The current row of a file. */
struct table_reader {
    const char *path;
    const struct csv_table *file;
    size_t row, line; /* row from 0; line from 1, with the header */
};

/* Receives one row. A result other than STATUS_OK stops the reading. */
typedef enum status table_take(void *context, const struct table_reader *table);

/*
 * Calls `take` for each row of `path`, or of the file `name` in it if `path` is a folder.
 * STATUS_INPUT (logged): a column of `needed` (ends with NULL) is missing, or a line has a
 * different number of fields. `expected` describes the expected file in the error.
 */
enum status table_read(const char *path, const char *name, const char *expected,
                       const char *const *needed, table_take *take, void *context);

/* Calls `take` for each file of a list separated by commas. */
enum status table_each_file(const char *files, enum status (*take)(void *context, const char *path),
                            void *context);

/* The field of a column; "" if there is no such column. */
const char *table_field(const struct table_reader *table, const char *name);

/* The field as a number of at least `least`; `absent` if it is empty. STATUS_INPUT is logged. */
enum status table_number(const struct table_reader *table, const char *name, double least,
                         double absent, double *value);

/* The field as a whole number from `least` to `most`. */
enum status table_count(const struct table_reader *table, const char *name, int least, int most,
                        int absent, int *value);

/* Copies the field. STATUS_INPUT (logged): it is longer than `size` - 1. */
enum status table_word(const struct table_reader *table, const char *name, char *into, size_t size);

/*
 * Rows of bench.csv for the fit: the shape, the measured time, and its noise. Columns are found by
 * name, and unknown columns are ignored. A missing column reads as empty.
 */

/* PREDICT_WORD: bytes of a word; CONFIG_NETWORK_BYTES fits. */
enum { PREDICT_WORD = 80, PREDICT_REASONS_MOST = 16, PREDICT_WORKERS_MOST = 4096 };

/* The use of a row. */
enum predict_use {
    PREDICT_FIT,      /* fitted */
    PREDICT_HOLD_OUT, /* predicted, not fitted */
    PREDICT_NOT_USED, /* no all-reduce of one vector between hosts with a known formula */
};

struct predict_row {
    char backend[PREDICT_WORD], transport[PREDICT_WORD], network[PREDICT_WORD];
    char device[PREDICT_WORD], error_feedback[PREDICT_WORD];
    char placement[PREDICT_WORD], algorithm[PREDICT_WORD], compress[PREDICT_WORD];
    char interface[PREDICT_WORD], model[PREDICT_WORD];
    char nccl[PREDICT_WORD]; /* NCCL's algorithm, "ring/simple"; empty: other backend, or unknown */
    int workers, servers;    /* as --servers; mixed placement: the spare ones */
    int radix;               /* of rhd; 0: 2 */
    int hosts, inter_host_hops; /* 0: one host each */
    uint64_t bytes;             /* message size as float32 */
    double median_s, noise_s;   /* median and its standard error */
    double rest_s;              /* idle time between operations (median); 0: unknown */
    int runs;                   /* the row is the median of this many runs (below) */
    double run_spread;          /* standard deviation of the runs / median; 0: one run */
    double nominal_bytes_per_s; /* --link-rate of the run; 0: unknown */
    double round_trip_us;       /* between hosts, as measured; 0: unknown */
    int rack_ranks;             /* as in comm_options; 0: no racks */
    double oversubscribed;
    uint64_t wrong;
    double skew_ms;      /* ranks started up to this far apart */
    double series_iters; /* operations without a barrier between; 0 or 1: one before each */
    double cpu_busy;     /* busy share of the machine's CPUs; 0: unknown */
    double cpu_other;    /* share that other processes used; 0: unknown */
    enum predict_use use;
    const char *why; /* reason for PREDICT_NOT_USED; else NULL */
    /* Index of its struct predict_model, also if other work kept the row out of the fit. -1: none.
     */
    int model_index;
    struct predict_terms terms; /* only with a model */
};

struct predict_rows {
    struct predict_row *rows;
    size_t count, room;
};

/* The judge's state of the row; the summary uses the same. */
enum state predict_row_state(const struct predict_row *row);

/* Adds the rows of `path`, or of bench.csv in that folder. STATUS_INPUT (logged with the line): no
 * bench.csv, or a field that is not a number or out of range. */
enum status predict_rows_read(struct predict_rows *rows, const char *path);
void predict_rows_free(struct predict_rows *rows);

/*
 * Marks the held-out rows. `spec` is "auto", "none", or conditions separated by commas: workers=N,
 * servers=N, bytes=N, placement=WORD. A row is held out if it meets at least one condition. auto:
 * every second number of workers and size that has a smaller and a larger neighbour. STATUS_USAGE
 * is logged.
 */
enum status predict_hold_out(struct predict_rows *rows, const char *spec);

/*
 * Runs of one point: rows of bench.csv that differ only in their measurements. On few cores,
 * processes wait for each other. Which ones wait differs more between starts than between
 * operations. The interval of one run's median is therefore too narrow (Hunold and Carpen-Amarie
 * 2016, "Reproducible MPI benchmarking is still not as easy as you think": the start of mpirun is a
 * factor of the experiment). A point combines all its runs.
 */

/*
 * Joins the PREDICT_FIT rows of each point into the first of them; the order is kept. The time, the
 * idle time and the CPU shares become medians. The standard error is that of a median of `runs`
 * values. Their scatter is the standard deviation between the times, or the runs' own standard
 * error if that is larger. `runs` counts the rows; `run_spread` is their standard deviation / time.
 * Other rows stay unchanged. STATUS_NO_MEMORY is logged.
 */
enum status predict_rows_join(struct predict_rows *rows);

#endif
