#include "experiments/predict/rows.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/stats.h"
#include "common/base/status.h"
#include "common/base/util.h"
#include "experiments/bench/results.h"

const char *table_field(const struct table_reader *table, const char *name)
{
    return csv_table_field(table->file, table->row, name);
}

enum status table_number(const struct table_reader *table, const char *name, double least,
                         double absent, double *value)
{
    const char *text = table_field(table, name);
    char *end;
    *value = absent;
    if (!*text)
        return STATUS_OK;
    *value = strtod(text, &end);
    if (*end == 0 && isfinite(*value) && *value >= least && *value < 1e18)
        return STATUS_OK;
    return FAIL(
        STATUS_INPUT,
        "%s: line %zu: %s: found '%s', expected a number of at least %g; remove the row, or "
        "measure again",
        table->path, table->line, name, text, least);
}

enum status table_count(const struct table_reader *table, const char *name, int least, int most,
                        int absent, int *value)
{
    double number;
    enum status status = table_number(table, name, least, absent, &number);
    if (status != STATUS_OK)
        return status;
    *value = number <= most ? (int)number : most;
    if (number <= most && number == *value)
        return STATUS_OK;
    return FAIL(
        STATUS_INPUT,
        "%s: line %zu: %s: found '%s', out of range: expected a whole number from %d to %d; "
        "remove the row, or measure again",
        table->path, table->line, name, table_field(table, name), least, most);
}

enum status table_word(const struct table_reader *table, const char *name, char *into, size_t size)
{
    const char *text = table_field(table, name);
    if ((size_t)snprintf(into, size, "%s", text) < size)
        return STATUS_OK;
    return FAIL(STATUS_INPUT,
                "%s: line %zu: %s: found '%s', expected at most %zu characters; remove the row",
                table->path, table->line, name, text, size - 1);
}

/* The path of the file. The caller frees it. */
static char *path_of_table(const char *path, const char *name)
{
    struct stat found;
    bool folder = stat(path, &found) == 0 && S_ISDIR(found.st_mode);
    size_t size = strlen(path) + strlen(name) + 2;
    char *whole = malloc(size);
    if (whole)
        snprintf(whole, size, "%s%s%s", path, folder ? "/" : "", folder ? name : "");
    return whole;
}

enum status table_read(const char *path, const char *name, const char *expected,
                       const char *const *needed, table_take *take, void *context)
{
    enum status status;
    struct csv_table file = {0};
    char *whole = path_of_table(path, name);
    struct table_reader table = {.path = whole, .file = &file};
    TRY(whole ? STATUS_OK : STATUS_NO_MEMORY);
    TRY(results_read_table(&file, whole));
    for (; *needed; needed++) {
        if (!csv_table_has(&file, *needed))
            TRY(FAIL(STATUS_INPUT, "%s: no column %s; expected %s", whole, *needed, expected));
    }
    for (; table.row < file.rows; table.row++) {
        table.line = table.row + 2;
        TRY(take(context, &table));
    }
out:
    csv_table_free(&file);
    free(whole);
    return status;
}

enum status table_each_file(const char *files, enum status (*take)(void *context, const char *path),
                            void *context)
{
    enum status status = STATUS_OK;
    char *save = NULL, *list = strdup(files);
    TRY(list ? STATUS_OK : STATUS_NO_MEMORY);
    for (char *path = strtok_r(list, ",", &save); path; path = strtok_r(NULL, ",", &save))
        TRY(take(context, path));
out:
    free(list);
    return status;
}

/* -------- a row ------------------------------------------------------------------------------- */

/* Reads the median and its standard error. The error comes from the median's 95% interval. Without
 * one, it comes from the range between the fastest iteration and the 95th percentile. */
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
    TRY(table_number(table, "link_idle_us_median", 0, 0, &rest));
    row->median_s = median * 1e-6;
    row->rest_s = rest * 1e-6;
    row->noise_s = (high > low ? (high - low) / (2 * 1.96) : spread) * 1e-6;
out:
    return status;
}

/* The columns that identify a point: rows that agree in all columns without .differs are runs of
 * one point. */
static const struct row_column {
    const char *name;
    enum { WORD, COUNT, NUMBER } kind; /* char[PREDICT_WORD], int, double */
    size_t offset;
    int least;    /* COUNT */
    bool differs; /* between runs of one point */
} columns[] = {
#define AT(member) .offset = offsetof(struct predict_row, member)
    {"backend", WORD, AT(backend)},
    {"transport", WORD, AT(transport)},
    {"network", WORD, AT(network)},
    {"device", WORD, AT(device)},
    {"error_feedback", WORD, AT(error_feedback)},
    {"placement", WORD, AT(placement)},
    {"mpi_algorithm", WORD, AT(algorithm)},
    {"nccl_algorithm", WORD, AT(nccl)},
    {"compress", WORD, AT(compress)},
    {"interface", WORD, AT(interface)},
    {"model_gradients", WORD, AT(model)},
    {"workers", COUNT, AT(workers), .least = 1},
    {"servers", COUNT, AT(servers)},
    {"radix", COUNT, AT(radix)},
    {"hosts", COUNT, AT(hosts), .least = 1},
    {"rack_ranks", COUNT, AT(rack_ranks)},
    {"oversubscribed", NUMBER, AT(oversubscribed)},
    {"inter_host_hops", COUNT, AT(inter_host_hops)},
    {"skew_ms", NUMBER, AT(skew_ms), .differs = true},
    {"series_iters", NUMBER, AT(series_iters), .differs = true},
    {"nominal_link_bytes_per_s", NUMBER, AT(nominal_bytes_per_s)},
    {"link_rtt_us", NUMBER, AT(round_trip_us), .differs = true},
    {"cpu_busy", NUMBER, AT(cpu_busy), .differs = true},
    {"cpu_other", NUMBER, AT(cpu_other), .differs = true},
};

enum { ROW_COLUMNS = sizeof columns / sizeof *columns };

static enum status read_row(const struct table_reader *table, struct predict_row *row)
{
    enum status status = STATUS_OK;
    double bytes, wrong;
    *row = (struct predict_row){.runs = 1, .model_index = -1};
    for (size_t c = 0; c < ROW_COLUMNS; c++) {
        const struct row_column *column = &columns[c];
        void *at = (char *)row + column->offset;
        if (column->kind == WORD)
            status = table_word(table, column->name, at, PREDICT_WORD);
        else if (column->kind == COUNT)
            status = table_count(table, column->name, column->least, PREDICT_WORKERS_MOST, 0, at);
        else
            status = table_number(table, column->name, 0, 0, at);
        TRY(status);
    }
    TRY(table_number(table, "bytes", 0, 0, &bytes));
    TRY(table_number(table, "wrong", 0, 0, &wrong));
    TRY(read_times(table, row));
    if (row->workers < 1 || row->median_s <= 0)
        return FAIL(STATUS_INPUT,
                    "%s: line %zu: workers or time_us_median is missing; remove the row, or "
                    "measure again",
                    table->path, table->line);
    row->bytes = (uint64_t)bytes;
    row->wrong = (uint64_t)wrong;
out:
    return status;
}

static enum status add(struct predict_rows *rows, const struct predict_row *row)
{
    struct predict_row *grown =
        memory_grow(rows->rows, &rows->room, rows->count, sizeof *grown, "rows to predict");
    if (!grown)
        return STATUS_NO_MEMORY;
    rows->rows = grown;
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

/* Counts the distinct numbers below the row's own, among rows that could be fitted. *last: no
 * number is above. */
static size_t place_of(const struct predict_rows *rows, const struct predict_row *row,
                       number_of *of, bool *last)
{
    size_t place = 0;
    uint64_t below = 0;
    *last = true;
    for (;;) { /* find the next number above `below`, up to the row's own */
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
    return FAIL(STATUS_USAGE,
                "--hold-out %s: found '%s', expected auto, none, or workers=N, servers=N, bytes=N, "
                "placement=WORD with commas between",
                spec, condition);
}

/* Marks a fitted row that meets a condition. *found: at least one row met it. */
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
    return FAIL(
        STATUS_USAGE,
        "--hold-out %s: found '%s', which no row has; expected values of some rows, auto or none",
        spec, condition);
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

/* Holds out every second number of workers and size that lies between others. Holds out numbers of
 * workers only if half of the rows remain: in a sweep, most sizes may be measured with one number
 * of workers. */
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

static bool is_same_point(const struct predict_row *a, const struct predict_row *b)
{
    for (size_t c = 0; c < ROW_COLUMNS; c++) {
        const void *one = (const char *)a + columns[c].offset;
        const void *other = (const char *)b + columns[c].offset;
        bool same = columns[c].kind == WORD    ? strcmp(one, other) == 0
                    : columns[c].kind == COUNT ? *(const int *)one == *(const int *)other
                                               : *(const double *)one == *(const double *)other;
        if (!same && !columns[c].differs)
            return false;
    }
    return a->bytes == b->bytes;
}

/* The median of one field, over the `runs` rows in which it is known (not 0). 0 if no row knows it.
 */
static double median_of(const struct predict_row *const *points, size_t runs, size_t field,
                        double *scratch)
{
    size_t known = 0;
    for (size_t i = 0; i < runs; i++) {
        double value;
        memcpy(&value, (const char *)points[i] + field, sizeof value);
        if (value > 0)
            scratch[known++] = value;
    }
    return known > 0 ? stats_median(scratch, known) : 0;
}

/* Standard deviation of the times. */
static double deviation_of(const struct predict_row *const *points, size_t runs)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < runs; i++)
        mean += points[i]->median_s / (double)runs;
    for (size_t i = 0; i < runs; i++)
        squares += (points[i]->median_s - mean) * (points[i]->median_s - mean);
    return sqrt(squares / (double)(runs - 1));
}

static struct predict_row joined(const struct predict_row *const *points, size_t runs,
                                 double *scratch)
{
    struct predict_row row = *points[0];
    double deviation = deviation_of(points, runs);
    row.runs = (int)runs;
    row.median_s = median_of(points, runs, offsetof(struct predict_row, median_s), scratch);
    row.rest_s = median_of(points, runs, offsetof(struct predict_row, rest_s), scratch);
    row.cpu_busy = median_of(points, runs, offsetof(struct predict_row, cpu_busy), scratch);
    row.cpu_other = median_of(points, runs, offsetof(struct predict_row, cpu_other), scratch);
    double own = median_of(points, runs, offsetof(struct predict_row, noise_s), scratch);
    /* The median of two is their mean. For more, its error is sqrt(pi/2) of the mean's. */
    row.noise_s = (runs > 2 ? 1.2533 : 1) * fmax(own, deviation) / sqrt((double)runs);
    row.run_spread = deviation / row.median_s;
    row.terms.rest_s = row.rest_s;
    return row;
}

enum status predict_rows_join(struct predict_rows *rows)
{
    enum status status = STATUS_OK;
    size_t kept = 0;
    const struct predict_row **points = malloc((rows->count + 1) * sizeof *points);
    double *scratch = malloc((rows->count + 1) * sizeof *scratch);
    bool *taken = calloc(rows->count + 1, sizeof *taken);
    if (!points || !scratch || !taken)
        TRY(FAIL(STATUS_NO_MEMORY, "predict: no memory to join %zu rows", rows->count));
    for (size_t i = 0; i < rows->count;
         i++) { /* kept rows end before i, so later runs are intact */
        size_t runs = 0;
        if (taken[i])
            continue;
        for (size_t j = i; rows->rows[i].use == PREDICT_FIT && j < rows->count; j++) {
            if (taken[j] || rows->rows[j].use != PREDICT_FIT ||
                !is_same_point(&rows->rows[i], &rows->rows[j]))
                continue;
            taken[j] = true;
            points[runs++] = &rows->rows[j];
        }
        struct predict_row row = rows->rows[i];
        if (runs > 1)
            row = joined(points, runs, scratch);
        rows->rows[kept++] = row;
    }
    rows->count = kept;
out:
    free(points);
    free(scratch);
    free(taken);
    return status;
}
