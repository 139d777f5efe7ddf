/* The rows of train.csv, as trainings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/csv.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "experiments/bench/results.h"

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

static struct training read_training(const struct csv_table *table, size_t row)
{
    const double workers = csv_table_number(table, row, "workers");
    const double servers = csv_table_number(table, row, "servers"), most = 1e6;
    const char *compute = csv_table_field(table, row, "compute");
    struct training training = {
        .kind = kind_of(table, row),
        .row = row,
        .workers = workers > 0 && workers <= most ? (int)workers : 0,
        .images = csv_table_number(table, row, "images"),
        .seconds = csv_table_number(table, row, "seconds"),
        .images_per_s = csv_table_number(table, row, "images_per_s"),
        .accuracy = csv_table_number(table, row, "test_accuracy"),
        .loss = csv_table_number(table, row, "test_loss"),
        .batch = csv_table_number(table, row, "batch"),
    };
    const char *backend = csv_table_field(table, row, "backend");
    const char *placement = csv_table_field(table, row, "placement");
    const int server_count = servers > 0 && servers <= most ? (int)servers : 0;
    results_configuration(training.who, sizeof training.who, backend, placement, server_count, 0,
                          "");
    results_series(training.series, backend, placement, server_count, 0, training.workers);
    training.paced_ms =
        training.kind == TRAINING_PACED ? strtod(compute + sizeof paced - 1, NULL) : (double)NAN;
    if (isnan(training.batch)) /* earlier versions had no such column */
        training.batch = training.images / csv_table_number(table, row, "step") / training.workers;
    const char *rank = csv_table_field(table, row, "bottleneck_rank");
    snprintf(training.limit, sizeof training.limit, "%s%s%s",
             csv_table_field(table, row, "bottleneck"), *rank ? " " : "", rank);
    return training;
}

/* The last row of each training counts. Rows belong to one training if these columns, the kind,
 * `who` and the number of workers are equal. */
static const char *const names[] = {"model",   "compute",   "transport",      "sync",  "compress",
                                    "network", "straggler", "backup_workers", "batch", "seed"};
enum { NAMES = sizeof names / sizeof *names, TRANSPORT = 2, STRAGGLER = 6, BATCH = 8 };

static bool has_same(const struct csv_table *table, const char *name, size_t row, size_t other)
{
    return strcmp(csv_table_field(table, row, name), csv_table_field(table, other, name)) == 0;
}

static bool is_same_setup(const struct training *one, const struct training *two)
{
    return one->kind == two->kind && one->workers == two->workers &&
           strcmp(one->who, two->who) == 0;
}

static bool is_same_training(const struct csv_table *table, const struct training *one,
                             const struct training *two)
{
    bool same = is_same_setup(one, two);
    for (int n = 0; same && n < NAMES; n++)
        same = has_same(table, names[n], one->row, two->row);
    return same;
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

void trainings_name(const struct trainings *trainings, const struct training *training, char *name,
                    size_t size)
{
    struct line line = line_in(name, size);
    char who[64];
    results_name(who, sizeof who, training->who, training->workers);
    line_add(&line, "%s", who);
    for (int n = 0; n < NAMES; n++) {
        bool differs = false;
        for (size_t t = 0; t < trainings->count; t++)
            differs = differs || (is_same_setup(&trainings->list[t], training) &&
                                  !has_same(&trainings->table, names[n], training->row,
                                            trainings->list[t].row));
        if (differs) /* a number says too little without its name */
            line_add(&line, ", %s%s%s", n < STRAGGLER ? "" : names[n], n < STRAGGLER ? "" : " ",
                     csv_table_field(&trainings->table, training->row, names[n]));
    }
}

/* A table or a figure has one value for each `who` and number of workers, and one length of the
 * computation: those like the first paced training. Transports may differ, as defaults do, and
 * batches, if all workers share one. */
static void hide_other_paced(struct trainings *trainings)
{
    const struct training *first = NULL;
    for (size_t t = 0; t < trainings->count; t++) {
        struct training *training = &trainings->list[t];
        if (training->kind != TRAINING_PACED)
            continue;
        first = first ? first : training;
        bool shown =
            trainings_find(trainings, TRAINING_PACED, training->who, training->workers) == training;
        for (int n = 0; shown && n < NAMES; n++)
            shown = n == TRANSPORT || n >= BATCH ||
                    has_same(&trainings->table, names[n], first->row, training->row);
        if (shown)
            continue;
        training->kind = TRAINING_LEFT_OUT;
        trainings->paced_left_out++;
    }
}

enum status trainings_read(struct trainings *trainings, const char *path)
{
    enum status status;
    *trainings = (struct trainings){0};
    TRY(results_read_table(&trainings->table, path));
    trainings->list = calloc(trainings->table.rows + 1, sizeof *trainings->list);
    if (!trainings->list)
        TRY(FAIL(STATUS_NO_MEMORY, "%s: out of memory for %zu rows", path, trainings->table.rows));
    for (size_t row = 0; row < trainings->table.rows; row++) {
        struct training training = read_training(&trainings->table, row);
        size_t at = 0;
        while (at < trainings->count &&
               !is_same_training(&trainings->table, &trainings->list[at], &training))
            at++;
        trainings->count += at == trainings->count;
        trainings->list[at] = training;
    }
    hide_other_paced(trainings);
out:
    return status;
}

void trainings_free(struct trainings *trainings)
{
    csv_table_free(&trainings->table);
    free(trainings->list);
    *trainings = (struct trainings){0};
}

/* Compares two real trainings. Some settings have no column, but all are in settings_sha256. */
static enum agreement agreement_of(const struct csv_table *table, size_t first, size_t second,
                                   const char **setting)
{
    static const char *const settings[] = {
        "images",          "model",         "dataset",   "device",   "workers",
        "batch",           "seed",          "optimizer", "lr",       "lr_schedule",
        "lr_warmup_steps", "augment",       "sync",      "compress", "optimizer_options",
        "bucket_mb",       "backup_workers"};
    *setting = NULL;
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
        if (!has_same(table, settings[s], first, second)) {
            *setting = settings[s];
            return AGREEMENT_SETTINGS;
        }
    }
    if (!*csv_table_field(table, first, "weights_sha256") ||
        !*csv_table_field(table, second, "weights_sha256"))
        return AGREEMENT_NONE;
    if (has_same(table, "weights_sha256", first, second))
        return AGREEMENT_BITS;
    if (!*csv_table_field(table, first, "settings_sha256") ||
        !has_same(table, "settings_sha256", first, second))
        return AGREEMENT_SETTINGS;
    const bool ordered = strcmp(csv_table_field(table, first, "reduce_order"), "ring") == 0 &&
                         strcmp(csv_table_field(table, second, "reduce_order"), "ring") == 0;
    return ordered ? AGREEMENT_WRONG : AGREEMENT_ROUNDING;
}

enum agreement trainings_agree(const struct trainings *trainings, const struct training **one,
                               const struct training **two, const char **setting)
{
    enum agreement found = AGREEMENT_NONE;
    *one = *two = NULL;
    *setting = NULL;
    for (size_t t = 0; t < trainings->count; t++) {
        for (size_t u = t + 1; u < trainings->count; u++) {
            const struct training *first = &trainings->list[t], *second = &trainings->list[u];
            const char *differs;
            if (first->kind != TRAINING_REAL || second->kind != TRAINING_REAL)
                continue;
            const enum agreement agreement =
                agreement_of(&trainings->table, first->row, second->row, &differs);
            if (*two && agreement <= found)
                continue;
            found = agreement;
            *one = first;
            *two = second;
            *setting = differs;
        }
    }
    return found;
}
