#include "experiments/report/run.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/csv.h"
#include "common/base/stats.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "models/published.h"

/* -------- files ------------------------------------------------------------------------------- */

char *run_data_path(const char *dir, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", dir, name) < 0) {
        log_error("psring report: out of memory");
        return NULL;
    }
    return path;
}

static bool there(const char *path)
{
    return access(path, F_OK) == 0;
}

char *run_data_text(const char *dir, const char *name, size_t *length)
{
    char *path = run_data_path(dir, name);
    char *text = path ? text_of_file(path, length) : NULL;
    free(path);
    return text;
}

FILE *run_open(const char *dir, const char *name)
{
    char *path = run_data_path(dir, name);
    FILE *file = path ? fopen(path, "w") : NULL;
    if (path && !file)
        log_error("%s: cannot be written: %s", path, strerror(errno));
    free(path);
    return file;
}

/* -------- tables ------------------------------------------------------------------------------ */

static cJSON *value_of(const char *field)
{
    char *end;
    double number = strtod(field, &end);
    if (*field == 0)
        return cJSON_CreateNull();
    return *end == 0 && isfinite(number) ? cJSON_CreateNumber(number) : cJSON_CreateString(field);
}

static cJSON *row_of(const struct csv_table *table, size_t row, const cJSON *columns)
{
    cJSON *values = cJSON_CreateArray();
    const cJSON *column;
    cJSON_ArrayForEach(column, columns)
    {
        cJSON_AddItemToArray(values, value_of(csv_table_field(table, row, column->valuestring)));
    }
    return values;
}

/* Adds all columns and rows of a file. */
static void add_table(cJSON *json, const char *name, const struct csv_table *table)
{
    cJSON *object = cJSON_AddObjectToObject(json, name);
    cJSON *columns = cJSON_AddArrayToObject(object, "columns");
    cJSON *rows = cJSON_AddArrayToObject(object, "rows");
    for (size_t c = 0; c < table->columns; c++)
        cJSON_AddItemToArray(columns, cJSON_CreateString(table->names[c]));
    for (size_t row = 0; row < table->rows; row++)
        cJSON_AddItemToArray(rows, row_of(table, row, columns));
}

void run_add_number(cJSON *object, const char *name, double value)
{
    cJSON_AddItemToObject(object, name,
                          isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull());
}

/* Adds the names of all series: {"1": "1 server", ...}. */
static void add_names(cJSON *data)
{
    cJSON *names = cJSON_AddObjectToObject(data, "names");
    for (int series = 1; series <= SERIES_LAST; series++) {
        char number[16];
        snprintf(number, sizeof number, "%d", series);
        cJSON_AddStringToObject(names, number, results_series_name(series));
    }
}

static void add_series(cJSON *object, const int *series)
{
    cJSON *array = cJSON_AddArrayToObject(object, "series");
    for (int s = 0; s < SERIES_MOST && series[s] > 0; s++)
        cJSON_AddItemToArray(array, cJSON_CreateNumber(series[s]));
}

/* Adds the points that the page draws: plain all-reduces of several workers. MPI_Allreduce is
 * represented by its fastest algorithm. */
static void add_points(cJSON *all, const struct results *results)
{
    cJSON *points = cJSON_AddArrayToObject(all, "bench");
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        if (!results_is_drawn(results, point))
            continue;
        cJSON *object = cJSON_CreateObject();
        cJSON_AddItemToArray(points, object);
        cJSON_AddStringToObject(object, "who", point->who);
        cJSON_AddStringToObject(object, "name", point->name);
        cJSON_AddStringToObject(object, "backend", point->row->backend);
        cJSON_AddStringToObject(object, "transport", point->row->transport);
        cJSON_AddStringToObject(object, "state", judge_word(point->time.state));
        cJSON_AddBoolToObject(object, "doubtful", !results_is_sound(point));
        cJSON_AddStringToObject(object, "unsteady", point->unsteady);
        add_series(object, point->series);
        run_add_number(object, "workers", point->workers);
        run_add_number(object, "bytes", (double)point->bytes);
        run_add_number(object, "starts", point->time.starts);
        run_add_number(object, "time_us_median", point->time.median_us);
        run_add_number(object, "time_us_median_low", point->time.low_us);
        run_add_number(object, "time_us_median_high", point->time.high_us);
        run_add_number(object, "theory_time_us", point->theory_us);
        run_add_number(object, "efficiency", point->efficiency);
        run_add_number(object, "worker_sent_bytes", point->worker_sent);
        run_add_number(object, "theory_worker_sent_bytes", point->worker_theory);
        run_add_number(object, "server_sent_bytes", point->server_sent);
        run_add_number(object, "theory_server_sent_bytes", point->server_theory);
    }
}

/* Whether simulate.sh calls a row WRONG for its sums or its bytes. */
static bool is_wrong_simulation(const struct csv_table *table, size_t row)
{
    static const char *const sent[][2] = {{"worker_sent_bytes", "theory_worker_sent_bytes"},
                                          {"server_sent_bytes", "theory_server_sent_bytes"}};
    bool wrong = csv_table_number(table, row, "wrong") > 0;
    for (size_t s = 0; s < sizeof sent / sizeof *sent; s++)
        wrong = wrong || fabs(csv_table_number(table, row, sent[s][0]) -
                              csv_table_number(table, row, sent[s][1])) > 0; /* NaN: not known */
    return wrong;
}

/* Adds simulate.csv. It has the columns of bench.csv, and one network per platform. */
static void add_simulated(cJSON *all, const struct csv_table *table)
{
    static const char *const columns[] = {"network",        "workers",        "bytes",
                                          "time_us_median", "theory_time_us", NULL};
    cJSON *list = cJSON_AddArrayToObject(all, "simulate");
    size_t wrong = 0;
    for (size_t row = 0; row < table->rows; row++) {
        if (is_wrong_simulation(table, row)) {
            wrong++;
            continue;
        }
        cJSON *object = cJSON_CreateObject();
        int series[SERIES_MOST];
        results_series(series, csv_table_field(table, row, "backend"),
                       csv_table_field(table, row, "placement"),
                       atoi(csv_table_field(table, row, "servers")),
                       atoi(csv_table_field(table, row, "radix")),
                       atoi(csv_table_field(table, row, "workers")));
        cJSON_AddItemToArray(list, object);
        add_series(object, series);
        for (int c = 0; columns[c]; c++)
            cJSON_AddItemToObject(object, columns[c],
                                  value_of(csv_table_field(table, row, columns[c])));
    }
    if (wrong > 0)
        log_warn("simulate.csv: %zu row%s left out, because sums are WRONG or bytes differ from "
                 "theory; see simulate-summary.txt",
                 wrong, wrong == 1 ? "" : "s");
}

static void add_trainings(cJSON *all, const struct trainings *trainings)
{
    static const char *const columns[] = {"step_ms_median", "compute_ms_median",
                                          "exposed_comm_ms_median", NULL};
    cJSON *list = cJSON_AddArrayToObject(all, "train");
    for (size_t t = 0; t < trainings->count; t++) {
        const struct training *training = &trainings->list[t];
        cJSON *object;
        if (training->kind != TRAINING_PACED)
            continue;
        cJSON_AddItemToArray(list, object = cJSON_CreateObject());
        add_series(object, training->series);
        run_add_number(object, "workers", training->workers);
        run_add_number(object, "paced_ms", training->paced_ms);
        run_add_number(object, "batch", training->batch);
        run_add_number(object, "images_per_s", training->images_per_s);
        for (int c = 0; columns[c]; c++)
            cJSON_AddItemToObject(
                object, columns[c],
                value_of(csv_table_field(&trainings->table, training->row, columns[c])));
    }
}

/* -------- the rest ---------------------------------------------------------------------------- */

static void add_model(cJSON *models, const char *name, double bytes)
{
    cJSON *pair = cJSON_CreateArray();
    cJSON_AddItemToArray(pair, cJSON_CreateString(name));
    cJSON_AddItemToArray(pair, cJSON_CreateNumber(bytes));
    cJSON_AddItemToArray(models, pair);
}

static enum status add_models(cJSON *data)
{
    const double keras_cnn_bytes = 1199882 * sizeof(float); /* its parameters: models/README.md */
    cJSON *models = cJSON_AddArrayToObject(data, "models");
    add_model(models, "keras-cnn", keras_cnn_bytes);
    for (int m = PUBLISHED_NONE + 1; published_names[m]; m++) {
        struct net_layer *layers = NULL;
        size_t count = 0;
        double bytes = 0;
        enum status status = published_layers((enum published)m, &layers, &count);
        if (status != STATUS_OK)
            return status;
        for (size_t l = 0; l < count; l++) /* shared parameters are counted once */
            bytes = fmax(bytes, (double)(layers[l].first + layers[l].count) * sizeof(float));
        free(layers);
        add_model(models, published_names[m], bytes);
    }
    return STATUS_OK;
}

/* Handles the status of an additional file. A damaged file costs its part of the report, not the
 * page: STATUS_INPUT becomes a warning and STATUS_OK. */
static enum status run_data_without(const char *dir, const char *name, enum status status)
{
    if (status != STATUS_INPUT)
        return status;
    log_warn("%s/%s: damaged or cut off; the report is without its part", dir, name);
    return STATUS_OK;
}

/* Reads DIR/NAME as an object, which the caller deletes. NULL: no such file, or a damaged one (a
 * warning). */
static cJSON *read_object(const char *dir, const char *name)
{
    char *text = run_data_text(dir, name, NULL);
    cJSON *object = text ? cJSON_Parse(text) : NULL;
    if (text && !cJSON_IsObject(object)) {
        (void)run_data_without(dir, name, STATUS_INPUT);
        cJSON_Delete(object);
        object = NULL;
    }
    free(text);
    return object;
}

static enum status add_replay(cJSON *replays, run_replay *replay, const char *dir, const char *name,
                              const char *file)
{
    char *path = run_data_path(dir, file);
    enum status status = path ? STATUS_OK : STATUS_NO_MEMORY;
    if (path && there(path) && replay)
        status = replay(replays, name, path);
    else if (path && there(path))
        log_warn("%s is not on the page: this build cannot read timelines (PSRING_TRACE=OFF)",
                 path);
    free(path);
    return run_data_without(dir, file, status);
}

static enum status add_replays(cJSON *data, run_replay *replay, const char *dir)
{
    enum status status;
    cJSON *replays = cJSON_CreateArray();
    TRY(add_replay(replays, replay, dir, results_column_title(COLUMN_RING), "trace-ring.json"));
    TRY(add_replay(replays, replay, dir, results_column_title(COLUMN_PS1), "trace-ps.json"));
out:
    if (status == STATUS_OK && cJSON_GetArraySize(replays) > 0)
        cJSON_AddItemToObject(data, "replays", replays);
    else
        cJSON_Delete(replays);
    return status;
}

/* Adds a file that was computed from measurements. The page works without it. */
static enum status add_further(cJSON *all, const char *dir, const char *name, const char *file)
{
    enum status status = STATUS_OK;
    struct csv_table table = {0};
    char *path = run_data_path(dir, file);
    if (!path)
        return STATUS_NO_MEMORY;
    if (there(path) && (status = results_read_table(&table, path)) == STATUS_OK) {
        if (strcmp(name, "simulate") == 0)
            add_simulated(all, &table);
        else
            add_table(all, name, &table);
    }
    csv_table_free(&table);
    free(path);
    return run_data_without(dir, file, status);
}

enum status run_data_make(const struct run *run, run_replay *replay, cJSON **data)
{
    enum status status;
    const char *network = run_network(run);
    *data = cJSON_CreateObject();
    TRY(*data ? STATUS_OK : STATUS_NO_MEMORY);
    cJSON *all = cJSON_AddObjectToObject(*data, "tables");
    cJSON_AddStringToObject(*data, "state", judge_word(run->state));
    if (*network)
        cJSON_AddStringToObject(*data, "network", network);
    run_add_number(*data, "link_bytes_per_s",
                   run->has_results ? run->results.last_rate : (double)NAN);
    TRY(add_models(*data));
    add_names(*data);
    if (run->state == STATE_WRONG) /* its times, and values computed from them, are not shown */
        goto out;
    if (run->has_consistency)
        cJSON_AddItemToObject(all, "consistency", consistency_json(&run->consistency));
    if (run->has_results)
        add_points(all, &run->results);
    if (run->has_trainings)
        add_trainings(all, &run->trainings);
    TRY(add_further(all, run->dir, "predict", "predict.csv"));
    TRY(add_further(all, run->dir, "simulate", "simulate.csv"));
    cJSON *model = read_object(run->dir, "model.json");
    if (model)
        cJSON_AddItemToObject(*data, "model", model);
    TRY(add_replays(*data, replay, run->dir));
out:
    if (status != STATUS_OK) {
        cJSON_Delete(*data);
        *data = NULL;
    }
    return status;
}

/* Counts the rows of one transport and use. `transport` NULL: of all. */
static size_t count_used(const struct csv_table *table, const char *transport, const char *use)
{
    size_t count = 0;
    for (size_t row = 0; row < table->rows; row++)
        count += strcmp(csv_table_field(table, row, "use"), use) == 0 &&
                 (!transport || strcmp(csv_table_field(table, row, "transport"), transport) == 0);
    return count;
}

void run_basis(const struct run *run, char *text, size_t size)
{
    static const char *const transports[] = {"tcp", "zmq", "mpi"};
    struct line line = line_in(text, size);
    struct csv_table table = {0};
    char *path = run_data_path(run->dir, "predict.csv");
    bool few = false;
    size_t known = 0;
    if (path && there(path) && results_read_table(&table, path) == STATUS_OK && table.rows > 0) {
        line_add(&line, "Fitted rows:");
        for (size_t t = 0; t < sizeof transports / sizeof *transports; t++) {
            const size_t count = count_used(&table, transports[t], "fitted");
            few = few || (count > 0 && count < STATS_INTERVAL_LEAST);
            if (count > 0)
                line_add(&line, "%s %s %zu", known++ > 0 ? "," : "", transports[t], count);
        }
        const size_t held = count_used(&table, NULL, "held-out");
        few = few || held < STATS_INTERVAL_LEAST;
        line_add(&line, "%s. Held out, only predicted: %zu.%s", known > 0 ? "" : " none", held,
                 few ? " No verdict rests on fewer than 6 rows." : "");
    }
    csv_table_free(&table);
    free(path);
}

/* -------- the run ----------------------------------------------------------------------------- */

static enum status read_tables(struct run *run)
{
    enum status status = STATUS_NO_MEMORY;
    char *bench = run_data_path(run->dir, "bench.csv");
    char *train = run_data_path(run->dir, "train.csv");
    char *consistency = run_data_path(run->dir, "consistency.csv");
    if (!bench || !train || !consistency)
        goto out;
    status = STATUS_OK;
    if ((run->has_results = there(bench)))
        TRY(results_read(&run->results, bench));
    if ((run->has_trainings = there(train)))
        TRY(trainings_read(&run->trainings, train));
    if ((run->has_consistency = there(consistency)))
        TRY(consistency_read(&run->consistency, consistency));
    if (!run->has_results && !run->has_trainings && !run->has_consistency) {
        log_error(
            "%s: has no bench.csv, train.csv or consistency.csv; expected the folder of a run",
            run->dir);
        status = STATUS_INPUT;
    }
out:
    free(bench);
    free(train);
    free(consistency);
    return status;
}

static int number_in(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) && item->valuedouble > 0 && item->valuedouble < 1e9
               ? (int)item->valuedouble
               : 0;
}

static const char *text_in(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static void read_provenance(struct run *run)
{
    const cJSON *object = run->provenance = read_object(run->dir, "provenance.json");
    run->cores = number_in(object, "cores");
    run->failed = number_in(object, "failed_measurements") + /* a list from run_consistency.sh */
                  cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(object, "failed"));
    run->machine_count = number_in(object, "machine_count");
    run->left_out = text_in(object, "left_out");
    run->too_long = text_in(object, "too_long");
}

enum status run_read(struct run *run, const char *dir)
{
    enum status status;
    *run = (struct run){.dir = dir, .left_out = "", .too_long = ""};
    TRY(read_tables(run));
    read_provenance(run);
    run->agreement = trainings_agree(&run->trainings, &run->one, &run->two, &run->setting);
    run->state = judge_run(&(struct run_evidence){
        .worst_row = run->results.worst,
        .trainings_differ = run->agreement == AGREEMENT_WRONG,
        .failed = run->failed,
    });
out:
    return status;
}

void run_free(struct run *run)
{
    results_free(&run->results);
    trainings_free(&run->trainings);
    consistency_free(&run->consistency);
    cJSON_Delete(run->provenance);
    *run = (struct run){0};
}

const char *run_network(const struct run *run)
{
    if (run->has_results && run->results.row_count > 0)
        return run->results.network;
    if (run->has_trainings && run->trainings.table.rows > 0)
        return csv_table_field(&run->trainings.table, 0, "network");
    return run->has_consistency && run->consistency.table.rows > 0
               ? csv_table_field(&run->consistency.table, 0, "network")
               : "";
}
