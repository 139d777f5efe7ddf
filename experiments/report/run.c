#include "experiments/report/run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/status.h"
#include "experiments/report/run_data.h"

/* Whether DIR/NAME is there; its path goes to *path, for the caller to free. */
static enum status find(const char *dir, const char *name, char **path, bool *found)
{
    *path = run_data_path(dir, name);
    *found = *path && access(*path, F_OK) == 0;
    return *path ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status read_tables(struct run *run)
{
    enum status status;
    char *bench = NULL, *train = NULL, *consistency = NULL;
    TRY(find(run->dir, "bench.csv", &bench, &run->has_results));
    TRY(find(run->dir, "train.csv", &train, &run->has_trainings));
    TRY(find(run->dir, "consistency.csv", &consistency, &run->has_consistency));
    if (run->has_results)
        TRY(results_read(&run->results, bench));
    if (run->has_trainings)
        TRY(trainings_read(&run->trainings, train));
    if (run->has_consistency)
        TRY(consistency_read(&run->consistency, consistency));
    if (!run->has_results && !run->has_trainings && !run->has_consistency) {
        log_error("%s: has no bench.csv, train.csv or consistency.csv, which a run leaves there",
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

static enum status read_provenance(struct run *run)
{
    char *text = run_data_text(run->dir, "provenance.json", NULL);
    cJSON *object = text ? cJSON_Parse(text) : NULL;
    const bool damaged = text && !cJSON_IsObject(object);
    free(text);
    if (damaged) {
        cJSON_Delete(object);
        object = NULL;
    }
    run->provenance = object;
    run->cores = number_in(object, "cores");
    run->failed = number_in(object, "failed_measurements") + /* of run_consistency.sh: a list */
                  cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(object, "failed"));
    run->machine_count = number_in(object, "machine_count");
    run->left_out = text_in(object, "left_out");
    run->too_long = text_in(object, "too_long");
    return run_data_without(run->dir, "provenance.json", damaged ? STATUS_INPUT : STATUS_OK);
}

enum status run_read(struct run *run, const char *dir)
{
    enum status status;
    *run = (struct run){.dir = dir, .left_out = "", .too_long = ""};
    TRY(read_tables(run));
    TRY(read_provenance(run));
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
