#include "experiments/fit/rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "experiments/fit/table.h"

/* -------- a row ------------------------------------------------------------------------------- */

/* The standard error of a median: from its own 95% interval where there is one, else from the
 * iterations between the fastest and the 95th percentile. */
static enum status read_times(const struct table_reader *table, struct predict_row *row)
{
    enum status status;
    double median, least, p95, iters, low, high, rest;
    TRY(table_number(table, "time_us_median", 1e-3, 0, &median));
    TRY(table_number(table, "time_us_min", 0, median, &least));
    TRY(table_number(table, "time_us_p95", 0, median, &p95));
    TRY(table_number(table, "iters", 1, 1, &iters));
    TRY(table_number(table, "time_us_median_low", 0, 0, &low));
    TRY(table_number(table, "time_us_median_high", 0, 0, &high));
    double spread = fmax(p95 - least, 0) / (4 * sqrt(iters));
    TRY(table_number(table, "rest_us_median", 0, 0, &rest));
    row->median_s = median * 1e-6;
    row->rest_s = rest * 1e-6;
    row->noise_s = (high > low ? (high - low) / (2 * 1.96) : spread) * 1e-6;
out:
    return status;
}

static enum status read_words(const struct table_reader *table, struct predict_row *row)
{
    enum status status;
    TRY(table_word(table, "backend", row->backend, sizeof row->backend));
    TRY(table_word(table, "transport", row->transport, sizeof row->transport));
    TRY(table_word(table, "network", row->network, sizeof row->network));
    TRY(table_word(table, "device", row->device, sizeof row->device));
    TRY(table_word(table, "error_feedback", row->error_feedback, sizeof row->error_feedback));
    TRY(table_word(table, "placement", row->placement, sizeof row->placement));
    TRY(table_word(table, "mpi_algorithm", row->algorithm, sizeof row->algorithm));
    TRY(table_word(table, "nccl_algorithm", row->nccl, sizeof row->nccl));
    TRY(table_word(table, "compress", row->compress, sizeof row->compress));
    TRY(table_word(table, "api", row->api, sizeof row->api));
    TRY(table_word(table, "model_gradients", row->model, sizeof row->model));
out:
    return status;
}

static enum status read_row(const struct table_reader *table, struct predict_row *row)
{
    enum status status;
    double bytes, wrong;
    const int most = PREDICT_WORKERS_MOST;
    *row = (struct predict_row){.runs = 1, .model_index = -1};
    TRY(read_words(table, row));
    TRY(table_count(table, "workers", 1, most, 0, &row->workers));
    TRY(table_count(table, "servers", 0, most, 0, &row->servers));
    TRY(table_count(table, "hosts", 1, most, 0, &row->hosts));
    TRY(table_count(table, "neighbours_apart", 0, most, 0, &row->neighbours_apart));
    TRY(table_number(table, "bytes", 0, 0, &bytes));
    TRY(table_number(table, "wrong", 0, 0, &wrong));
    TRY(table_number(table, "skew_ms", 0, 0, &row->skew_ms));
    TRY(table_number(table, "nominal_link_bytes_per_s", 0, 0, &row->nominal_bytes_per_s));
    TRY(table_number(table, "cpu_busy", 0, 0, &row->cpu_busy));
    TRY(table_number(table, "cpu_other", 0, 0, &row->cpu_other));
    TRY(read_times(table, row));
    if (row->workers < 1 || row->median_s <= 0) {
        log_error("%s: line %zu: workers or time_us_median is missing; the row is broken: take it "
                  "out, or measure again",
                  table->path, table->line);
        return STATUS_INPUT;
    }
    row->bytes = (uint64_t)bytes;
    row->wrong = (uint64_t)wrong;
out:
    return status;
}

static enum status add(struct predict_rows *rows, const struct predict_row *row)
{
    if (rows->count == rows->room) {
        size_t room = rows->room ? 2 * rows->room : 256;
        struct predict_row *more = realloc(rows->rows, room * sizeof *more);
        if (!more) {
            log_error("predict: no memory for %zu rows", room);
            return STATUS_NO_MEMORY;
        }
        rows->rows = more;
        rows->room = room;
    }
    rows->rows[rows->count++] = *row;
    return STATUS_OK;
}

/* -------- a file ------------------------------------------------------------------------------ */

static enum status take_row(void *context, const struct table_reader *table)
{
    struct predict_row row;
    enum status status = read_row(table, &row);
    return status == STATUS_OK ? add(context, &row) : status;
}

enum status predict_rows_read(struct predict_rows *rows, const char *path)
{
    static const char *const needed[] = {"backend", "transport",      "network",
                                         "workers", "servers",        "placement",
                                         "bytes",   "time_us_median", NULL};
    return table_read(path, "bench.csv",
                      "a bench.csv, as psring bench --csv and run_scaling.sh write it", needed,
                      take_row, rows);
}

void predict_rows_free(struct predict_rows *rows)
{
    free(rows->rows);
    *rows = (struct predict_rows){0};
}

/* -------- what is held out -------------------------------------------------------------------- */

static uint64_t workers_of(const struct predict_row *row)
{
    return (uint64_t)row->workers;
}

static uint64_t servers_of(const struct predict_row *row)
{
    return (uint64_t)row->servers;
}

static uint64_t bytes_of(const struct predict_row *row)
{
    return row->bytes;
}

typedef uint64_t number_of(const struct predict_row *row);

/* How many different numbers below the row's own the rows that could be fitted have; *last: none is
 * above. */
static size_t place_of(const struct predict_rows *rows, const struct predict_row *row,
                       number_of *of, bool *last)
{
    size_t place = 0;
    uint64_t below = 0;
    *last = true;
    for (;;) { /* the next larger number than `below`, until the row's own */
        uint64_t next = UINT64_MAX;
        for (size_t i = 0; i < rows->count; i++) {
            uint64_t n = of(&rows->rows[i]);
            if (rows->rows[i].use == PREDICT_NOT_USED)
                continue;
            *last = *last && n <= of(row);
            if (n < next && (place == 0 || n > below))
                next = n;
        }
        if (next >= of(row))
            return place;
        below = next;
        place++;
    }
}

static bool is_between(const struct predict_rows *rows, const struct predict_row *row,
                       number_of *of)
{
    bool last;
    size_t place = place_of(rows, row, of, &last);
    return place % 2 == 1 && !last;
}

static enum status bad_condition(const char *spec, const char *condition)
{
    log_error("--hold-out %s: found '%s', expected auto, none, or workers=N, servers=N, bytes=N, "
              "placement=WORD with commas between",
              spec, condition);
    return STATUS_USAGE;
}

/* Of a condition: whether `row` meets it. *found: whether any did. */
static void hold_out_if(struct predict_row *row, bool meets, bool *found)
{
    *found = *found || meets;
    if (meets && row->use == PREDICT_FIT)
        row->use = PREDICT_HOLD_OUT;
}

static enum status found_any(const char *spec, const char *condition, bool found)
{
    if (found)
        return STATUS_OK;
    log_error("--hold-out %s: found '%s', which no row has; expected what some rows have, auto or "
              "none",
              spec, condition);
    return STATUS_USAGE;
}

static enum status mark(struct predict_rows *rows, const char *spec, const char *condition)
{
    bool found = false;
    static const struct {
        const char *key;
        number_of *of;
    } keys[] = {{"workers=", workers_of}, {"servers=", servers_of}, {"bytes=", bytes_of}};
    static const char placement[] = "placement=";
    if (strncmp(condition, placement, sizeof placement - 1) == 0) {
        for (size_t i = 0; i < rows->count; i++) {
            struct predict_row *row = &rows->rows[i];
            bool meets = strcmp(row->placement, condition + sizeof placement - 1) == 0;
            hold_out_if(row, meets, &found);
        }
        return found_any(spec, condition, found);
    }
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        size_t length = strlen(keys[k].key);
        if (strncmp(condition, keys[k].key, length) != 0)
            continue;
        char *end;
        errno = 0;
        uint64_t wanted = strtoull(condition + length, &end, 10);
        if (end == condition + length || *end || errno || condition[length] == '-')
            return bad_condition(spec, condition);
        for (size_t i = 0; i < rows->count; i++) {
            struct predict_row *row = &rows->rows[i];
            hold_out_if(row, keys[k].of(row) == wanted, &found);
        }
        return found_any(spec, condition, found);
    }
    return bad_condition(spec, condition);
}

/* Every second number of workers and size that lie between others; of workers only where that
 * leaves half of the rows: a sweep may have most of its sizes with one number of them. */
static void hold_out_between(struct predict_rows *rows)
{
    size_t usable = 0, of_workers = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct predict_row *row = &rows->rows[i];
        usable += row->use == PREDICT_FIT;
        of_workers += row->use == PREDICT_FIT && is_between(rows, row, workers_of);
    }
    bool workers = 2 * of_workers <= usable;
    for (size_t i = 0; i < rows->count; i++) {
        struct predict_row *row = &rows->rows[i];
        if (row->use == PREDICT_FIT &&
            ((workers && is_between(rows, row, workers_of)) || is_between(rows, row, bytes_of)))
            row->use = PREDICT_HOLD_OUT;
    }
}

enum status predict_hold_out(struct predict_rows *rows, const char *spec)
{
    enum status status = STATUS_OK;
    char *save = NULL, *conditions = NULL;
    if (strcmp(spec, "none") == 0)
        return STATUS_OK;
    if (strcmp(spec, "auto") == 0) {
        hold_out_between(rows);
        return STATUS_OK;
    }
    conditions = strdup(spec);
    TRY(conditions ? STATUS_OK : STATUS_NO_MEMORY);
    if (!strtok_r(conditions, ",", &save))
        status = bad_condition(spec, spec);
    for (char *next = conditions; status == STATUS_OK && next; next = strtok_r(NULL, ",", &save))
        status = mark(rows, spec, next);
out:
    free(conditions);
    return status;
}
