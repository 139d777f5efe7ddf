/*
 * Input: the digit 0 and a model.json, or the digit 1 and a bench.csv for psring predict.
 * - An accepted model has sorted errors, and ranges whose ends are in order. The time that it
 *   predicts lies in the interval.
 * - Accepted rows have a time, and numbers within their limits. Few rows are not fitted, because a
 *   fit takes long. Each of them has a model and terms, or a reason why it is not used.
 */
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/base/status.h"
#include "experiments/predict/model.h"
#include "experiments/predict/rows.h"

enum { RANKS_MOST = 64 /* the formulas of thousands of ranks take seconds */ };

static void check_time(const struct predict_fit *fit, const struct predict_terms *terms)
{
    struct predict_interval time = predict_time(fit, terms);
    char text[PREDICT_INTERVAL_BYTES];
    CHECK(time.low >= 0 && time.low <= time.seconds && time.seconds <= time.high);
    CHECK(strlen(predict_interval_text(time, 1e3, 3, text)) < sizeof text);
}

static void check_range(struct predict_range range)
{
    CHECK(range.least <= range.most);
}

static void check_model(const struct predict_model *model)
{
    const struct predict_fit *fit = &model->fit;
    CHECK(fit->error_count > 0);
    for (size_t i = 1; i < fit->error_count; i++)
        CHECK(fit->errors[i - 1].seconds <= fit->errors[i].seconds);
    check_range(model->workers);
    check_range(model->servers);
    check_range(model->bytes);
    CHECK(model->rack_ranks >= 0 && model->rack_ranks <= PREDICT_WORKERS_MOST);
    CHECK(strlen(model->network) < sizeof model->network);
    for (int t = 0; t < PREDICT_TERMS; t++) {
        struct predict_terms terms = {.of = {0}};
        terms.of[t] = 1000;
        check_time(fit, &terms);
    }
}

static void check_models(const char *path)
{
    struct predict_models models;
    enum status status = predict_models_read(&models, path);
    CHECK(status == STATUS_OK || status == STATUS_INPUT);
    CHECK(status != STATUS_OK || models.count > 0);
    for (size_t m = 0; status == STATUS_OK && m < models.count; m++)
        check_model(&models.models[m]);
    predict_models_free(&models);
}

static void check_row(const struct predict_row *row)
{
    CHECK(row->workers >= 1 && row->workers <= PREDICT_WORKERS_MOST);
    CHECK(row->servers >= 0 && row->servers <= PREDICT_WORKERS_MOST);
    CHECK(row->hosts >= 0 && row->radix >= 0 && row->rack_ranks >= 0);
    CHECK(row->median_s > 0 && row->noise_s >= 0 && row->runs >= 1);
    CHECK(strlen(row->network) < sizeof row->network);
}

/* Chooses the rows of a fit and joins them. They are too few for a fit. */
static void check_choice(struct predict_rows *rows)
{
    struct predict_models models;
    size_t read = rows->count;
    CHECK(predict_models_fit(&models, rows, "auto", 1) == STATUS_INPUT);
    CHECK(rows->count > 0 && rows->count <= read);
    for (size_t i = 0; i < rows->count; i++) {
        const struct predict_row *row = &rows->rows[i];
        CHECK(row->model_index >= -1 && row->model_index < (int)models.count);
        CHECK((row->use == PREDICT_NOT_USED) == (row->why != NULL));
        CHECK(row->use == PREDICT_NOT_USED || row->model_index >= 0);
        for (int t = 0; t < PREDICT_TERMS; t++)
            CHECK(row->use == PREDICT_NOT_USED || isfinite(row->terms.of[t]));
    }
    predict_models_free(&models);
}

static void check_rows(const char *path)
{
    struct predict_rows rows = {0};
    enum status status = predict_rows_read(&rows, path);
    CHECK(status == STATUS_OK || status == STATUS_INPUT);
    bool quick = rows.count < PREDICT_FIT_LEAST;
    for (size_t i = 0; i < rows.count; i++) {
        const struct predict_row *row = &rows.rows[i];
        check_row(row);
        quick = quick && row->workers <= RANKS_MOST && row->servers <= RANKS_MOST;
    }
    if (status == STATUS_OK && rows.count > 0 && quick)
        check_choice(&rows);
    predict_rows_free(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    if (size == 0)
        return 0;
    fuzz_quiet();
    int fd = fuzz_file(data + 1, size - 1, path, sizeof path);
    if (data[0] % 2 == 0)
        check_models(path);
    else
        check_rows(path);
    close(fd);
    return 0;
}
