/* The benchmark's results as a table for people, one line a size, like nccl-tests'. */
#ifndef PSRING_EXPERIMENTS_BENCH_TABLE_H
#define PSRING_EXPERIMENTS_BENCH_TABLE_H

#include <stdio.h>

#include "experiments/bench/bench_row.h"

/* What was run, from the first row, and the names of the columns; lines start with '#'. */
void bench_table_head(FILE *out, const struct bench_row *row);

/* The first line of it alone: from here on it is another backend or transport. */
void bench_table_run(FILE *out, const struct bench_row *row);

void bench_table_line(FILE *out, const struct bench_row *row);

/* How a sweep went. */
struct bench_verdict {
    size_t rows;        /* sizes measured */
    size_t rows_known;  /* of them, those at which bytes are known */
    size_t rows_differ; /* of them, those at which bytes counted are not what theory says */
    uint64_t wrong;     /* elements, over all sizes */

    double required;      /* efficiency of every row; 0: nothing is required */
    size_t rows_required; /* rows that this was required of */
    size_t rows_unknown;  /* of them, those whose efficiency is not known */
    size_t rows_below;    /* of them, those whose efficiency is lower */
    double lowest;        /* efficiency of these, and at which size */
    uint64_t lowest_bytes;
};

/* Counts the row against a required efficiency; nothing where that is 0. */
void bench_verdict_require(struct bench_verdict *verdict, double efficiency,
                           const struct bench_row *row);

/* Logs why rows miss the required efficiency, if any do. */
void bench_verdict_log_missed(const struct bench_verdict *verdict);

/* STATUS_PROTOCOL where elements are wrong or bytes differ; else STATUS_MISSED where a row misses
 * the required efficiency. */
enum status bench_verdict_status(const struct bench_verdict *verdict);

/* The last line of the table. */
void bench_table_foot(FILE *out, const struct bench_verdict *verdict);

#endif
