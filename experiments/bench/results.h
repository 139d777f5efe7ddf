/*
 * The rows of bench.csv, read and classified once. Each row gets its table in the summary and the
 * name of its configuration. Rows of equal configuration are its starts. All rows share one rate of
 * the links. If links differ, only rows with the same number of machines do.
 *
 * A configuration is "ring", "rhd", "rhd radix R", "tree", "mpi ALGORITHM", or one with K servers:
 * "ps dedicated K", "ps colocated K" or "ps switch K". "ps mixed K" has a server in each worker and
 * K spare ones. A backend's own transport is the one in its first row. A row over another one, or
 * with compression, is a variant.
 */
#ifndef PSRING_EXPERIMENTS_BENCH_RESULTS_H
#define PSRING_EXPERIMENTS_BENCH_RESULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/csv.h"
#include "common/base/status.h"
#include "experiments/bench/judge.h"

enum part {
    PART_PLAIN,      /* one all-reduce between workers with a link each, over the backend's own
                      * transport, uncompressed */
    PART_VARIANT,    /* the same over another transport, or compressed */
    PART_SLOTS,      /* workers that share hosts */
    PART_PUBLISHED,  /* the gradients of a published model, in buckets */
    PART_GPU,        /* between GPUs, a worker each */
    PART_SHARED_GPU, /* ranks that share one GPU: sums count, times do not */
    PART_OTHER_WAY,  /* --skew or --back-to-back: sums count, times do not */
    PART_LEFT_OUT,   /* through libpsring, or of another network than the run's */
};

/* A row. Texts are the table's; a number that is not known is NAN. */
struct result_row {
    const char *backend, *transport, *device, *network, *placement, *algorithm, *compress,
        *interface;
    const char *feedback, *model, *nccl, *link_source;
    int workers, servers, hosts, inter_host_hops; /* 0: not known */
    uint64_t bytes;
    double iters, median_us, low_us, high_us, theory_us, efficiency, link, nominal_link;
    double cpu_busy, cpu_other, cpu_s_per_gb, wrong;
    double worker_sent, worker_theory, server_sent, server_theory;
    double buckets, compute_us, exposed_us, scaling, skew_ms, series_iters;
    int radix; /* of rhd; 0: not known, or none */
    enum state state;
    enum part part;
    size_t point;      /* of the results' points */
    char unsteady[64]; /* why its time is not reliable; empty: it is */
};

enum { SERIES_MOST = 4 };  /* series of one point */
enum { SERIES_LAST = 15 }; /* see results_series */

/* All starts of one configuration with one number of workers and one size. */
struct point {
    enum part part;
    char who[64];     /* the configuration; with several workers a host also ", 8 on 4 hosts" */
    char name[64];    /* the same for readers, see results_name */
    char variant[48]; /* "over zmq, fp16, no feedback"; empty: none */
    const struct result_row *row; /* its first one, for the texts */
    int workers, servers, machines;
    uint64_t bytes;
    struct measured time;
    double theory_us, efficiency, cpu_busy, cpu_other, cpu_s_per_gb, wrong;
    double worker_sent, worker_theory, server_sent, server_theory;
    double buckets, compute_us, exposed_us, scaling;
    char unsteady[64];
    int series[SERIES_MOST]; /* series in figures, see results_series; ends with 0 */
};

struct results {
    struct csv_table table;
    struct result_row *rows;
    size_t row_count;
    struct point *points;
    size_t point_count;
    const char *network;          /* "": no row */
    double rate;                  /* of all links; NAN: not probed, or links differ */
    double last_rate;             /* of the last row's group; NAN: no probe */
    double link_least, link_most; /* of all rows; NAN: none known */
    double nominal;               /* the last one given; NAN: none */
    size_t probed, unprobed;      /* rows whose link rate was probed, and the others */
    size_t other_ways;            /* rows of PART_OTHER_WAY */
    size_t elsewhere;             /* rows of PART_LEFT_OUT of another network */
    double wrong, elements;       /* wrong elements of all rows; checked elements of the rows whose
                                   * times are shown */
    enum state worst;             /* of all rows */
    int *workers;                 /* (worker_count) of PART_PLAIN, ascending */
    uint64_t *sizes;              /* (size_count) of PART_PLAIN, ascending */
    size_t worker_count, size_count;
};

/* csv_table_read of bench.csv or train.csv. Columns with names of earlier versions get their
 * present names. */
enum status results_read_table(struct csv_table *table, const char *path);

/* Reads `path`. STATUS_INPUT and STATUS_NO_MEMORY are logged. Needs results_free, also after an
 * error. O(rows x points). */
enum status results_read(struct results *results, const char *path);
void results_free(struct results *results);

/* The evidence of a row, for the judge, from a table of bench.csv's columns; one start. */
struct evidence results_evidence(const struct csv_table *table, size_t row);
/* The row as a start; without an interval if it has fewer than six iterations. */
struct start results_start(const struct csv_table *table, size_t row);

/* The configurations that tables and sentences compare. W is the number of workers. */
enum column {
    COLUMN_PS1,   /* one dedicated server */
    COLUMN_PSW,   /* W dedicated servers */
    COLUMN_IN1,   /* one server inside a worker */
    COLUMN_INW,   /* a server in each worker */
    COLUMN_MIXED, /* the same and W/2 on spare machines */
    COLUMN_RING,
    COLUMN_RHD,
    COLUMN_DIRECT, /* rhd of radix W: two steps. None for a prime W, because rhd has two, too */
    COLUMN_TREE,
    COLUMN_MPI, /* the fastest algorithm of MPI_Allreduce */
    COLUMNS,
};

/* NULL: not measured. */
const struct point *results_find(const struct results *results, enum part part, const char *who,
                                 const char *variant, int workers, uint64_t bytes);
const struct point *results_column(const struct results *results, enum column column, int workers,
                                   uint64_t bytes);
/* The column's configuration over a transport, which may be its own. */
const struct point *results_over(const struct results *results, enum column column,
                                 const char *transport, int workers, uint64_t bytes);
/* The name of a column's configuration with this number of workers, cut to `size`. */
void results_column_name(enum column column, int workers, char *text, size_t size);

/* Its name for readers is the same for all numbers of workers: "W servers". */
const char *results_column_title(enum column column);

/* The gradient of keras-cnn if it was measured with this number of workers, else the largest size.
 */
enum { RESULTS_MODEL_BYTES = 4799528 };
uint64_t results_focus(const struct results *results, int workers);

/* The number of workers for the comparison of transports: the largest with rows of another
 * transport, else the largest of all. 0: none. */
int results_compared_workers(const struct results *results);

/* Whether figures draw the point: plain, several workers, a time that may be shown; from the
 * algorithms of MPI_Allreduce only the fastest. */
bool results_is_drawn(const struct results *results, const struct point *point);

/* Whether the time shows the network: steady, and neither CPU-limited nor disturbed. Figures mark
 * the other points. */
bool results_is_sound(const struct point *point);

/* The transport in the first row of a backend; NULL: no row. */
const char *results_transport(const struct results *results, const char *backend);

/* Writes "ps dedicated 1", "mpi ring", "rhd radix 4", "ring". `radix`: 0 omits it. */
void results_configuration(char *text, size_t size, const char *backend, const char *placement,
                           int servers, int radix, const char *algorithm);

/* Writes the name of a configuration for the summary, the page and the figures: "W servers",
 * "W in workers", "MPI_Allreduce (ring)". `who` is a configuration as at the top of this file, also
 * with ", 8 on 4 hosts". A configuration of a series has the name of its first series. */
void results_name(char *text, size_t size, const char *who, int workers);
/* NULL: there is no such series. */
const char *results_series_name(int series);

/*
 * The series of a configuration in figures, at most SERIES_MOST, ended by 0. The numbers are:
 *
 *     1 to 4   1, 2, W/2 and W dedicated servers
 *     5 to 8   the same inside workers
 *     9        servers in all workers, and W/2 spare ones
 *     10       the ring
 *     11       halving-doubling
 *     12       MPI_Allreduce
 *     13       the double binary tree
 *     14       one server in the switch
 *     15       halving-doubling of radix W
 *
 * If several apply, the first one counts as the configuration's series. `radix`: of rhd; 0 is 2.
 */
void results_series(int *series, const char *backend, const char *placement, int servers, int radix,
                    int workers);

/* Whether the network has racks, or hosts with different rates (vcluster.sh --help). */
bool rates_has_shape(const char *network);

/* The trainings of train.csv, classified once: the last row of each counts. */

enum training_kind {
    TRAINING_PACED, /* a timed wait instead of computation */
    TRAINING_REAL,  /* on processors, with an accuracy */
    TRAINING_GPU,
    TRAINING_LEFT_OUT, /* ranks that share a GPU, rows without an accuracy, and paced trainings
                          whose settings differ from the first paced one's */
};

/* Texts are the table's. A number that is not known is NAN. */
struct training {
    enum training_kind kind;
    size_t row; /* of the table: the last one */
    char who[64];
    int workers;
    int series[SERIES_MOST]; /* see results_series */
    double paced_ms, batch, images, seconds, images_per_s, accuracy, loss;
    char limit[48]; /* what limits it, as psring train reported; "": not known */
};

struct trainings {
    struct csv_table table;
    struct training *list; /* in the order of their first rows */
    size_t count;
    size_t paced_left_out;
};

/* Reads `path`; STATUS_INPUT and STATUS_NO_MEMORY are logged. Needs trainings_free. */
enum status trainings_read(struct trainings *trainings, const char *path);
void trainings_free(struct trainings *trainings);

/* NULL: there is none. */
const struct training *trainings_find(const struct trainings *trainings, enum training_kind kind,
                                      const char *who, int workers);

/* Writes `who` and the settings that differ from other trainings of the same `who` and number of
 * workers, as in "ring, lenet, zmq". Cut to `size`. */
void trainings_name(const struct trainings *trainings, const struct training *training, char *name,
                    size_t size);

/* Ordered: a run with several pairs has the last agreement in this list. */
enum agreement {
    AGREEMENT_NONE,     /* fewer than two real trainings, or their weights are not known */
    AGREEMENT_SETTINGS, /* they differ in a setting, so their weights are not compared */
    AGREEMENT_BITS,     /* the same weights, bit for bit */
    AGREEMENT_ROUNDING, /* the order of the sums was free, and their weights differ */
    AGREEMENT_WRONG,    /* the same order of the same sums, but different weights */
};

/* Compares each real training with each other one. `one` and `two` become the first pair with the
 * returned agreement, or NULL with fewer than two trainings. `setting`: the column that differs
 * (AGREEMENT_SETTINGS). NULL: another setting differs, or they are not all known. */
enum agreement trainings_agree(const struct trainings *trainings, const struct training **one,
                               const struct training **two, const char **setting);

#endif
