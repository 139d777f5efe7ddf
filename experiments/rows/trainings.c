#include "experiments/rows/trainings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"

static double number_of(const struct csv_table *table, size_t row, const char *name)
{
    const char *field = csv_table_field(table, row, name);
    char *end;
    double number = strtod(field, &end);
    return *field && *end == 0 && isfinite(number) ? number : (double)NAN;
}

static const char paced[] = "paced:";

static enum training_kind kind_of(const struct csv_table *table, size_t row)
{
    if (strcmp(csv_table_field(table, row, "network"), "time-slicing") == 0)
        return TRAINING_LEFT_OUT;
    if (strcmp(csv_table_field(table, row, "device"), "cuda") == 0)
        return TRAINING_GPU;
    if (strncmp(csv_table_field(table, row, "compute"), paced, sizeof paced - 1) == 0)
        return TRAINING_PACED;
    return *csv_table_field(table, row, "test_accuracy") ? TRAINING_REAL : TRAINING_LEFT_OUT;
}

static struct training read_row(const struct csv_table *table, size_t row)
{
    const double workers = number_of(table, row, "workers");
    const double servers = number_of(table, row, "servers"), most = 1e6;
    const char *compute = csv_table_field(table, row, "compute");
    struct training training = {
        .kind = kind_of(table, row),
        .row = row,
        .workers = workers > 0 && workers <= most ? (int)workers : 0,
        .images = number_of(table, row, "images"),
        .seconds = number_of(table, row, "seconds"),
        .images_per_s = number_of(table, row, "images_per_s"),
        .accuracy = number_of(table, row, "test_accuracy"),
        .loss = number_of(table, row, "test_loss"),
        .batch = number_of(table, row, "batch"),
    };
    const char *backend = csv_table_field(table, row, "backend");
    const char *placement = csv_table_field(table, row, "placement");
    const int server_count = servers > 0 && servers <= most ? (int)servers : 0;
    results_configuration(training.who, sizeof training.who, backend, placement, server_count, "");
    results_series(training.series, backend, placement, server_count, training.workers);
    training.paced_ms =
        training.kind == TRAINING_PACED ? strtod(compute + sizeof paced - 1, NULL) : (double)NAN;
    if (isnan(training.batch)) /* earlier versions had no such column */
        training.batch = training.images / number_of(table, row, "step") / training.workers;
    const char *rank = csv_table_field(table, row, "limit_rank");
    snprintf(training.limit, sizeof training.limit, "%s%s%s", csv_table_field(table, row, "limit"),
             *rank ? " " : "", rank);
    return training;
}

const struct training *trainings_find(const struct trainings *trainings, enum training_kind kind,
                                      const char *who, int workers)
{
    for (size_t t = 0; t < trainings->count; t++) {
        const struct training *training = &trainings->list[t];
        if (training->kind == kind && training->workers == workers &&
            strcmp(training->who, who) == 0)
            return training;
    }
    return NULL;
}

enum status trainings_read(struct trainings *trainings, const char *path)
{
    enum status status;
    *trainings = (struct trainings){0};
    TRY(csv_table_read(&trainings->table, path));
    trainings->list = calloc(trainings->table.rows + 1, sizeof *trainings->list);
    if (!trainings->list) {
        log_error("%s: out of memory for %zu rows", path, trainings->table.rows);
        status = STATUS_NO_MEMORY;
        goto out;
    }
    for (size_t row = 0; row < trainings->table.rows; row++) {
        struct training training = read_row(&trainings->table, row);
        const struct training *same =
            trainings_find(trainings, training.kind, training.who, training.workers);
        size_t at = same ? (size_t)(same - trainings->list) : trainings->count++;
        trainings->list[at] = training;
    }
out:
    return status;
}

void trainings_free(struct trainings *trainings)
{
    csv_table_free(&trainings->table);
    free(trainings->list);
    *trainings = (struct trainings){0};
}

enum agreement trainings_agree(const struct trainings *trainings, const struct training **one,
                               const struct training **two, const char **setting)
{
    static const char *const settings[] = {
        "images",    "model", "dataset",     "device",  "workers", "batch",    "seed",
        "optimizer", "lr",    "lr_schedule", "augment", "sync",    "compress", "optimizer_options",
        "bucket_mb"};
    const struct csv_table *table = &trainings->table;
    *one = *two = NULL;
    *setting = NULL;
    for (size_t t = 0; t < trainings->count && !*two; t++) {
        if (trainings->list[t].kind == TRAINING_REAL)
            *(*one ? two : one) = &trainings->list[t];
    }
    if (!*two)
        return AGREEMENT_NONE;
    const size_t first = (*one)->row, second = (*two)->row;
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
        if (strcmp(csv_table_field(table, first, settings[s]),
                   csv_table_field(table, second, settings[s])) != 0) {
            *setting = settings[s];
            return AGREEMENT_SETTINGS;
        }
    }
    const char *weights = csv_table_field(table, first, "weights_sha256");
    const char *others = csv_table_field(table, second, "weights_sha256");
    if (!*weights || !*others)
        return AGREEMENT_NONE;
    if (strcmp(weights, others) == 0)
        return AGREEMENT_BITS;
    const bool ordered = strcmp(csv_table_field(table, first, "reduce_order"), "ring") == 0 &&
                         strcmp(csv_table_field(table, second, "reduce_order"), "ring") == 0;
    return ordered ? AGREEMENT_WRONG : AGREEMENT_ROUNDING;
}
