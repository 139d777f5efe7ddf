#include "experiments/predict/predict.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "experiments/predict/beside.h"
#include "experiments/fit/model.h"
#include "experiments/predict/regret.h"
#include "experiments/predict/advice.h"
#include "experiments/predict/forecast.h"
#include "experiments/predict/trained.h"
#include "experiments/predict/training.h"

static enum status read_files(struct predict_rows *rows, const char *files)
{
    enum status status = STATUS_OK;
    char *save = NULL, *list = strdup(files);
    TRY(list ? STATUS_OK : STATUS_NO_MEMORY);
    for (char *path = strtok_r(list, ",", &save); path; path = strtok_r(NULL, ",", &save))
        TRY(predict_rows_read(rows, path));
out:
    free(list);
    return status;
}

static enum status fit(const struct config *config, struct predict_models *models)
{
    enum status status;
    struct predict_rows rows = {0};
    TRY(read_files(&rows, config->fit));
    TRY(predict_models_fit(models, &rows, config->hold_out, (uint64_t)config->seed));
    for (size_t m = 0; m < models->count; m++)
        predict_print_constants(stdout, &models->models[m]);
    predict_print_beside(stdout, models, &rows);
    TRY(predict_print_regret(stdout, models, &rows));
    if (config->csv)
        TRY(predict_write_beside(config->csv, models, &rows));
    if (config->cost_model)
        TRY(predict_models_write(models, config->cost_model));
out:
    predict_rows_free(&rows);
    return status;
}

static enum status forecast(const struct config *config, const struct predict_models *models)
{
    enum status status = STATUS_OK;
    size_t transports = 0;
    const struct predict_training training = {.model = config->trains,
                                              .compute_s = config->compute_ms * 1e-3,
                                              .batch = (double)config->batch,
                                              .images = config->images,
                                              .epochs = (double)config->epochs,
                                              .bucket_bytes =
                                                  (size_t)(config->bucket_mb * (1 << 20))};
    const struct predict_cluster cluster = {.workers = (int)config->workers,
                                            .spare = (int)config->spare,
                                            .bytes_per_s = config->rate / 8,
                                            .added_latency_s = config->latency};
    for (size_t m = 0; m < models->count; m++) {
        const struct predict_model *model = &models->models[m];
        if (!predict_is_transport(model))
            continue;
        transports++;
        predict_print_forecast(stdout, model, &cluster, config->size_list, config->size_count,
                               (uint64_t)config->seed);
        if (config->trains)
            TRY(predict_print_training(stdout, model, &cluster, &training));
    }
    if (transports == 0) {
        log_error("predict: what was fitted is of none of psring's transports, and says nothing of "
                  "how psring averages; fit rows of ring, rhd or ps (--fit FILE,...)");
        status = STATUS_INPUT;
        goto out;
    }
    if (config->trains)
        TRY(predict_print_advice(stdout, models, &cluster, &training, config->cost_per_hour));
out:
    return status;
}

enum status predict_command(struct config *config)
{
    enum status status;
    struct predict_models models = {0};
    if (config->fit)
        TRY(fit(config, &models));
    else
        TRY(predict_models_read(&models, config->cost_model));
    if (config->trained)
        TRY(predict_print_trained(stdout, &models, config->trained));
    if (config->workers > 0)
        TRY(forecast(config, &models));
out:
    predict_models_free(&models);
    return status;
}
