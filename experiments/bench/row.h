/*
 * A row of the benchmark's results: the measurement of one size, the theory, and the output as CSV,
 * JSON and a line of the table. CSV and JSON share one list of fields. An unknown field is empty in
 * CSV, null in JSON and "-" in the table, never zero.
 */
#ifndef PSRING_EXPERIMENTS_BENCH_ROW_H
#define PSRING_EXPERIMENTS_BENCH_ROW_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/csv.h"
#include "common/base/stats.h"
#include "common/base/status.h"
#include "common/comm/cost.h"
#include "experiments/bench/measure.h"
#include "experiments/config/config.h"
#include "experiments/bench/baselines.h"

/* A step that exchanges a model's gradients (model_gradients.h). The row's compute_us_median and
 * exposed_us_median then describe such a step. */
struct bench_row_model {
    const char *name, *input; /* NULL: the row is of one vector */
    size_t buckets, tensors;
    double backward_us; /* of compute_us_median */
};

struct bench_row {
    const char *backend, *transport, *device, *network, *placement;
    int workers, servers;
    int hosts;                  /* hosts of the workers; 0: not known, counts as one per worker */
    int inter_host_hops;        /* pairs of ring neighbours on different hosts */
    uint64_t bytes;             /* of the message, as float32 */
    const char *compress;       /* "none", "fp16", "bf16" */
    int radix;                  /* of rhd; 0: another backend */
    const char *error_feedback; /* "on", "off"; "none" uncompressed */
    size_t element_bytes;       /* of an element on the wire: 4, or 2 compressed */
    uint64_t iters, warmup;     /* timed, and before them */
    uint64_t series_iters; /* of `iters` that followed each other without a barrier: the time is
                              that of such a series / series_iters. 1: a barrier before each */
    struct stats_summary time_us;
    double time_us_median_low, time_us_median_high; /* 95% interval of the median */
    bool overlap;                    /* measured a second time, while the caller computed */
    double compute_us_median;        /* how long it computed, time_us.median; 0 without overlap */
    double exposed_us_median;        /* added by the all-reduce; without overlap time_us.median */
    double link_bytes_per_s;         /* of one direction, measured or else nominal; 0: not known */
    double nominal_link_bytes_per_s; /* 0: not known */
    const char *link_source;         /* "probe" or "nominal"; NULL: not known */
    double cpu_busy;                 /* share of the machine's CPUs; -1: not known */
    double cpu_other;                /* share used by other processes; -1: not known */
    double cpu_s;                    /* of all ranks, over `iters`; see struct bench_measurement */

    /* Payload per operation, the maximum over ranks; not known for libraries' own algorithms. */
    bool bytes_known;
    struct cost_traffic worker, server;
    struct cost_traffic theory_worker, theory_server;
    struct cost_traffic rank, theory_rank; /* worker and colocated server together */

    int rack_ranks; /* as in comm_options; 0: no racks, or not counted */
    double oversubscribed;
    uint64_t uplink_bytes, theory_uplink_bytes; /* per operation, over the busiest uplink */

    double link_idle_us_median; /* idle time of the links between operations; 0: not known */
    double skew_ms;             /* largest delay of a rank's start (connect.h); 0: no skew */

    bool wire_known;              /* not on loopback */
    uint64_t wire_sent_bytes_max; /* per operation and host, by the kernel's count */
    uint64_t wrong;               /* elements that differ from the exact sum */
    const char *mpi_algorithm;    /* of MPI_Allreduce; NULL: another backend's row */
    const char *nccl_algorithm;   /* from NCCL's own log, "ring/simple"; NULL: not known */
    struct limits limits;         /* of the machine, if measured */
    bool library;                 /* through libpsring instead of a comm */
    struct bench_row_model model; /* the model whose gradients `bytes` counts */
    double theory_time_us;        /* cost_time_s without reduction; NAN: not known */
    double round_trip_s;          /* the longest between hosts (world.h); 0: not known */
};

/* Message bytes, as float32, over the median time. */
double bench_row_algbw(const struct bench_row *row);

/*
 * algbw x 2(W-1)/W: the rate at which a bandwidth-optimal algorithm would have used every link.
 * Compare it with the link's rate. Zero for one worker. Source: nccl-tests, doc/PERFORMANCE.md.
 */
double bench_row_busbw(const struct bench_row *row);

/*
 * The least time of any all-reduce among the workers alone, over the median time. This equals busbw
 * over the link's rate. If workers share hosts, the links belong to the hosts, and the bound is
 * that of as many workers as hosts. The efficiency can exceed 1 if dedicated servers add links, or
 * if a host has several links. NAN if the link's rate is not known, or nothing has to move. With
 * compression the least time is that of the compressed bytes: the efficiency describes the use of
 * the link, and algbw the benefit for the float32 vector.
 */
double bench_row_efficiency(const struct bench_row *row);

/* Processor seconds of all ranks per GB (1e9 bytes) of messages (bytes x iters): the cost of
 * communication to computation. NAN if nothing was sent. */
double bench_row_cpu_s_per_gb(const struct bench_row *row);

/* The share of the all-reduce's time that computation hid, 0 to 1; 0 without overlap. */
double bench_row_hidden(const struct bench_row *row);

/* Whether the CPUs were too busy for the time to describe the network: "" (they were not),
 * "CPU-limited", or "busy with other work" if other processes caused it. */
const char *bench_row_cpu_verdict(const struct bench_row *row);

/* Whether counted bytes equal theory to the byte; true if bytes are not known. */
bool bench_row_bytes_agree(const struct bench_row *row);

/* Rows are appended to `path`. Errors: logged. */
enum status bench_csv_open(struct csv **csv, const char *path);
enum status bench_csv_write(struct csv *csv, const struct bench_row *row);

/* An object with the CSV's columns as members; the caller deletes it. NULL: out of memory. */
cJSON *bench_row_json(const struct bench_row *row);

/* Making a row of results from a measurement. */

/* The references of a measurement: bytes/s of a link (0: not known), and the machine's limits. */
struct bench_link {
    double nominal, probed;
    struct limits machine;
};

/* Fills in the row of one measurement. Sorts the measurement's times. Errors: logged. */
enum status bench_describe(struct bench_row *row, const struct config *config,
                           const struct bench_link *link, const struct bench_connection *connection,
                           const struct bench_plan *plan, struct bench_measurement *measured);

/* The benchmark's results as a table for people, one line a size, like nccl-tests'. */

/* Prints the settings, from the first row, and the names of the columns; lines start with '#'. */
void bench_table_head(FILE *out, const struct bench_row *row);

/* Prints the first line of the head alone, before rows of another backend or transport. */
void bench_table_run(FILE *out, const struct bench_row *row);

void bench_table_line(FILE *out, const struct bench_row *row);

/* How a sweep went. */
struct bench_verdict {
    size_t rows;        /* sizes measured */
    size_t rows_known;  /* of them, with known bytes */
    size_t rows_differ; /* of them, with counted bytes that differ from theory */
    uint64_t wrong;     /* elements, over all sizes */

    double required;      /* efficiency that every row needs; 0: nothing is required */
    size_t rows_required; /* rows with this requirement */
    size_t rows_unknown;  /* of them, with unknown efficiency */
    size_t rows_below;    /* of them, with lower efficiency */
    double lowest;        /* lowest efficiency of these, and its size */
    uint64_t lowest_bytes;
};

/* Counts the row, without its wrong elements. Compares it with a required efficiency unless that is
 * 0. */
void bench_verdict_add(struct bench_verdict *verdict, double efficiency,
                       const struct bench_row *row);

/* Logs why rows miss the required efficiency, if any do. */
void bench_verdict_log_missed(const struct bench_verdict *verdict);

/* STATUS_PROTOCOL if elements are wrong or bytes differ; else STATUS_MISSED if a row misses the
 * required efficiency. */
enum status bench_verdict_status(const struct bench_verdict *verdict);

/* The last line of the table. */
void bench_table_foot(FILE *out, const struct bench_verdict *verdict);

#endif
