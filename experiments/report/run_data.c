#include "experiments/report/run_data.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/csv_table.h"
#include "common/base/log.h"
#include "experiments/report/link_rate.h"
#include "experiments/report/replay.h"
#include "models/published.h"

/* -------- files ---------------------------------------------------------------------------------
 */

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
    return path && access(path, F_OK) == 0;
}

char *run_data_text(const char *dir, const char *name, size_t *length)
{
    char *path = run_data_path(dir, name), *text = NULL;
    size_t room = 0;
    FILE *file = path ? fopen(path, "r") : NULL;
    ssize_t read = file ? getdelim(&text, &room, '\0', file) : -1;
    if (file)
        fclose(file);
    free(path);
    if (read <= 0) {
        free(text);
        return NULL;
    }
    if (length)
        *length = (size_t)read;
    return text;
}

/* -------- tables --------------------------------------------------------------------------------
 */

/* Of bench.csv and train.csv the page draws these; of the others, all. */
static const char *const bench_columns[] = {"backend",
                                            "transport",
                                            "device",
                                            "network",
                                            "workers",
                                            "servers",
                                            "placement",
                                            "bytes",
                                            "time_us_median",
                                            "time_us_median_low",
                                            "time_us_median_high",
                                            "theory_time_us",
                                            "efficiency",
                                            "worker_sent_bytes",
                                            "theory_worker_sent_bytes",
                                            "server_sent_bytes",
                                            "theory_server_sent_bytes",
                                            "cpu_busy",
                                            "cpu_other",
                                            "mpi_algorithm",
                                            "compress",
                                            "hosts",
                                            "api",
                                            "model_gradients",
                                            NULL};
static const char *const train_columns[] = {"backend",
                                            "transport",
                                            "device",
                                            "network",
                                            "compute",
                                            "workers",
                                            "servers",
                                            "placement",
                                            "model",
                                            "step",
                                            "seconds",
                                            "images_per_s",
                                            "step_ms_median",
                                            "compute_ms_median",
                                            "comm_ms_median",
                                            "exposed_comm_ms_median",
                                            "test_accuracy",
                                            "batch",
                                            NULL};

static const struct {
    const char *name, *file;
    const char *const *columns; /* NULL: all */
    bool further;               /* computed of what was measured: a report may do without */
} tables[] = {{"bench", "bench.csv", bench_columns, false},
              {"train", "train.csv", train_columns, false},
              {"consistency", "consistency.csv", NULL, false},
              {"predict", "predict.csv", NULL, true},
              {"simulate", "simulate.csv", NULL, true}};

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

static void add_table(cJSON *json, const char *name, const struct csv_table *table,
                      const char *const *wanted)
{
    cJSON *object = cJSON_AddObjectToObject(json, name);
    cJSON *columns = cJSON_AddArrayToObject(object, "columns");
    cJSON *rows = cJSON_AddArrayToObject(object, "rows");
    for (size_t c = 0; !wanted && c < table->columns; c++)
        cJSON_AddItemToArray(columns, cJSON_CreateString(table->names[c]));
    for (; wanted && *wanted; wanted++)
        cJSON_AddItemToArray(columns, cJSON_CreateString(*wanted));
    for (size_t row = 0; row < table->rows; row++)
        cJSON_AddItemToArray(rows, row_of(table, row, columns));
}

/* -------- the rest ------------------------------------------------------------------------------
 */

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

enum status run_data_without(const char *dir, const char *name, enum status status)
{
    if (status != STATUS_INPUT)
        return status;
    log_warn("%s/%s: damaged or cut off; the report is without what it would show", dir, name);
    return STATUS_OK;
}

static enum status add_fit(cJSON *data, const char *dir)
{
    char *text = run_data_text(dir, "model.json", NULL);
    cJSON *model = text ? cJSON_Parse(text) : NULL;
    bool damaged = text && !cJSON_IsObject(model);
    free(text);
    if (model && !damaged)
        cJSON_AddItemToObject(data, "model", model);
    else
        cJSON_Delete(model);
    return run_data_without(dir, "model.json", damaged ? STATUS_INPUT : STATUS_OK);
}

static enum status add_replay(cJSON *replays, const char *dir, const char *name, const char *file)
{
    char *path = run_data_path(dir, file);
    enum status status = !path         ? STATUS_NO_MEMORY
                         : there(path) ? replay_add(replays, name, path)
                                       : STATUS_OK;
    free(path);
    return run_data_without(dir, file, status);
}

static enum status add_replays(cJSON *data, const char *dir)
{
    enum status status;
    cJSON *replays = cJSON_CreateArray();
    TRY(add_replay(replays, dir, "ring", "trace-ring.json"));
    TRY(add_replay(replays, dir, "one server", "trace-ps.json"));
out:
    if (status == STATUS_OK && cJSON_GetArraySize(replays) > 0)
        cJSON_AddItemToObject(data, "replays", replays);
    else
        cJSON_Delete(replays);
    return status;
}

static enum status add_file(cJSON *data, cJSON *all, size_t t, const char *path)
{
    struct csv_table table = {0};
    enum status status = csv_table_read(&table, path);
    if (status != STATUS_OK)
        goto out;
    add_table(all, tables[t].name, &table, tables[t].columns);
    if (t == 0)
        TRY(link_rate_settle(data, cJSON_GetObjectItem(all, "bench"), &table));
    const char *network = table.rows > 0 ? csv_table_field(&table, 0, "network") : "";
    if (*network && !cJSON_HasObjectItem(data, "network"))
        cJSON_AddStringToObject(data, "network", network);
out:
    csv_table_free(&table);
    return status;
}

static enum status add_tables(cJSON *data, const char *dir)
{
    enum status status = STATUS_OK;
    cJSON *all = cJSON_AddObjectToObject(data, "tables");
    for (size_t t = 0; status == STATUS_OK && t < sizeof tables / sizeof *tables; t++) {
        char *path = run_data_path(dir, tables[t].file);
        if (!path)
            status = STATUS_NO_MEMORY;
        else if (there(path))
            status = add_file(data, all, t, path);
        if (tables[t].further)
            status = run_data_without(dir, tables[t].file, status);
        free(path);
    }
    if (status == STATUS_OK && !cJSON_HasObjectItem(all, "bench") &&
        !cJSON_HasObjectItem(all, "train") && !cJSON_HasObjectItem(all, "consistency")) {
        log_error("%s: has no bench.csv, train.csv or consistency.csv, which a run leaves there",
                  dir);
        status = STATUS_INPUT;
    }
    return status;
}

enum status run_data_read(const char *dir, cJSON **data)
{
    enum status status;
    *data = cJSON_CreateObject();
    TRY(*data ? STATUS_OK : STATUS_NO_MEMORY);
    TRY(add_tables(*data, dir));
    TRY(add_models(*data));
    TRY(add_fit(*data, dir));
    TRY(add_replays(*data, dir));
out:
    if (status != STATUS_OK) {
        cJSON_Delete(*data);
        *data = NULL;
    }
    return status;
}
