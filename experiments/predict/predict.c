#include "experiments/predict/predict.h"

#include <math.h>
#include <string.h>

#include "common/base/status.h"
#include "experiments/predict/forecast.h"
#include "experiments/predict/model.h"
#include "experiments/predict/training.h"

const double predict_bucket_mb[PREDICT_BUCKET_SIZES] = {1, 2, 4, 8, 16, 25, 0};
static const double worth =
    0.02; /* fp16 rounds gradients, so it must save more than this share of a step */

/* The state of the search. */
struct advice_search {
    const struct predict_cluster *cluster;
    struct predict_training training;
    struct predict_advice advice;
    struct predict_choice plain[PREDICT_TOPOLOGIES]; /* fastest uncompressed way of each */
};

static void keep(struct predict_choice *kept, const struct predict_choice *choice, bool better)
{
    if (!kept->model || better)
        *kept = *choice;
}

static void compare(struct advice_search *search, const struct predict_choice *choice)
{
    struct predict_advice *best = &search->advice;
    if (choice->compress != COMPRESS_NONE) {
        keep(&best->compressed, choice, choice->epoch_s < best->compressed.epoch_s);
        return;
    }
    int topology = predict_topology(choice->way.backend);
    CHECK(topology < PREDICT_TOPOLOGIES);
    struct predict_choice *plain = &search->plain[topology];
    keep(plain, choice, choice->epoch_s < plain->epoch_s);
    keep(&best->fastest, choice, choice->epoch_s < best->fastest.epoch_s);
    keep(&best->cheapest, choice, choice->epoch_machine_s < best->cheapest.epoch_machine_s);
    best->found = true;
}

static void find_other(struct advice_search *search)
{
    struct predict_advice *best = &search->advice;
    for (int t = 0; best->found && t < PREDICT_TOPOLOGIES; t++) {
        if (search->plain[t].model && t != predict_topology(best->fastest.way.backend))
            keep(&best->other, &search->plain[t], search->plain[t].epoch_s < best->other.epoch_s);
    }
}

static void try_way(struct advice_search *search, const struct predict_model *model,
                    const struct predict_model *there, const struct predict_way *way,
                    const struct predict_step *step)
{
    const struct predict_training *training = &search->training;
    int workers = search->cluster->workers;
    bool beside = strcmp(way->backend, "ps") == 0 && way->placement != PLACEMENT_COLOCATED;
    struct predict_choice choice = {.model = model,
                                    .way = *way,
                                    .bucket_bytes = training->bucket_bytes,
                                    .least_bytes = predict_step_least(step),
                                    .most_bytes = predict_step_most(step),
                                    .compress = training->compress,
                                    .machines = workers + (beside ? way->servers : 0)};
    if (!predict_training_step(there, way, workers, NULL, step, training, &choice.step))
        return;
    choice.epoch_s = training->images / (training->batch * workers) * choice.step.seconds;
    choice.epoch_machine_s = choice.epoch_s * choice.machines;
    compare(search, &choice);
}

static void try_model(struct advice_search *search, const struct predict_model *model,
                      const struct predict_step *step)
{
    struct predict_model there = predict_model_on(model, search->cluster);
    struct predict_way ways[PREDICT_WAYS_MOST];
    size_t count;
    predict_ways(search->cluster, ways, &count);
    for (size_t w = 0; w < count; w++)
        try_way(search, model, &there, &ways[w], step);
}

enum status predict_advise(const struct predict_models *models, const char *network,
                           const struct predict_cluster *cluster,
                           const struct predict_training *training, struct predict_advice *advice)
{
    enum status status = STATUS_OK;
    struct advice_search search = {.cluster = cluster, .training = *training};
    for (size_t b = 0; b < PREDICT_BUCKET_SIZES; b++) {
        struct predict_step step;
        search.training.bucket_bytes = (size_t)(predict_bucket_mb[b] * 1048576);
        status = predict_step_open(&step, training->model, search.training.bucket_bytes);
        for (size_t m = 0; status == STATUS_OK && m < models->count; m++) {
            const struct predict_model *model = &models->models[m];
            if (strcmp(model->network, network) != 0 || !predict_is_transport(model))
                continue;
            search.training.compress = COMPRESS_NONE;
            try_model(&search, model, &step);
            search.training.compress = COMPRESS_FP16;
            try_model(&search, model, &step);
        }
        predict_step_free(&step);
        TRY(status);
    }
    find_other(&search);
    *advice = search.advice;
out:
    return status;
}

/* -------- in words ---------------------------------------------------------------------------- */

static void print_choice(FILE *out, const char *name, const struct predict_choice *choice,
                         const struct predict_training *training, double cost_per_hour)
{
    char words[32], buckets[32] = "one bucket", between[PREDICT_INTERVAL_BYTES];
    double scale = choice->epoch_s / choice->step.seconds;
    int decimals = choice->epoch_s < 1 ? 4 : choice->epoch_s < 100 ? 2 : 0;
    predict_way_words(&choice->way, words, sizeof words);
    if (choice->bucket_bytes > 0)
        snprintf(buckets, sizeof buckets, "buckets of %g MB",
                 (double)choice->bucket_bytes / 1048576);
    fprintf(out, "  %-10s %s over %s, %s%s: an epoch in %.4g s %s, all in %.4g s", name, words,
            choice->model->transport, buckets, choice->compress == COMPRESS_FP16 ? ", fp16" : "",
            choice->epoch_s, predict_interval_text(choice->step, scale, decimals, between),
            choice->epoch_s * training->epochs);
    if (cost_per_hour > 0)
        fprintf(out, "; %d machines, %.4g an epoch, %.4g in all", choice->machines,
                choice->epoch_machine_s / 3600 * cost_per_hour,
                choice->epoch_machine_s / 3600 * cost_per_hour * training->epochs);
    fprintf(out, "\n");
}

/* Prints how much slower the other topology is, and whether the model can tell them apart. */
static void print_other(FILE *out, const struct predict_choice *fastest,
                        const struct predict_choice *other, const struct predict_training *training,
                        double cost_per_hour)
{
    if (!other->model)
        return;
    print_choice(out, "else", other, training, cost_per_hour);
    bool apart = fastest->step.high < other->step.low;
    fprintf(out, "             %.1f%% longer; %s\n",
            100 * (other->step.seconds / fastest->step.seconds - 1),
            apart ? "their intervals do not overlap"
                  : "their intervals overlap: the model cannot tell which is faster");
}

static void print_basis(FILE *out, const struct predict_choice *choice,
                        const struct predict_cluster *cluster)
{
    char outside[256];
    const struct predict_model *model = choice->model;
    predict_outside(model, cluster, choice->way.servers, choice->least_bytes, choice->most_bytes,
                    outside, sizeof outside);
    fprintf(out, "  based on   %zu rows over %s and %s%s%s\n", model->fitted, model->network,
            model->transport, *outside ? "; outside what was fitted: " : "", outside);
}

static void print_fp16(FILE *out, const struct predict_advice *advice,
                       const struct predict_training *training, double cost_per_hour)
{
    double saved = 1 - advice->compressed.step.seconds / advice->fastest.step.seconds;
    if (saved <= worth) {
        fprintf(out, "  fp16       not worth it: it would save %.1f%% of a step\n",
                100 * fmax(saved, 0));
        return;
    }
    print_choice(out, "fp16", &advice->compressed, training, cost_per_hour);
    fprintf(
        out,
        "             saves %.1f%% of a step if the accuracy permits; without the time to round "
        "numbers\n",
        100 * saved);
}

static void print_advice(FILE *out, const struct predict_advice *advice, const char *network,
                         const struct predict_cluster *cluster,
                         const struct predict_training *training, double cost_per_hour)
{
    const struct predict_choice *fastest = &advice->fastest;
    double exposed = 1 - training->compute_s / fastest->step.seconds;
    fprintf(out, "\nAdvice for %s on %d workers and %d spare machine%s, from %s:\n",
            training->model, cluster->workers, cluster->spare, cluster->spare == 1 ? "" : "s",
            network);
    bool apart = !advice->other.model || fastest->step.high < advice->other.step.low;
    print_choice(out, apart ? "fastest" : "chosen", fastest, training, cost_per_hour);
    print_other(out, fastest, &advice->other, training, cost_per_hour);
    if (advice->cheapest.machines < fastest->machines)
        print_choice(out, "cheapest", &advice->cheapest, training, cost_per_hour);
    print_fp16(out, advice, training, cost_per_hour);
    fprintf(out, "  network    %.1f%% of a step is exposed communication%s\n",
            100 * fmax(exposed, 0), exposed < worth ? ": a faster network would not help" : "");
    fprintf(out, "  buckets    tried: ");
    for (size_t b = 0; predict_bucket_mb[b] > 0; b++)
        fprintf(out, "%s%g", b > 0 ? ", " : "", predict_bucket_mb[b]);
    fprintf(out, " MB and one bucket; the training table has --bucket-mb %g only\n",
            (double)training->bucket_bytes / 1048576);
    print_basis(out, fastest, cluster);
}

/* Prints the advice for each fitted network. `cost_per_hour` is that of a machine; 0: unknown.
 * training->bucket_bytes is the bucket size of the table above; the advice names it. */
static enum status predict_print_advice(FILE *out, const struct predict_models *models,
                                        const struct predict_cluster *cluster,
                                        const struct predict_training *training,
                                        double cost_per_hour)
{
    enum status status = STATUS_OK;
    for (size_t m = 0; m < models->count; m++) {
        const char *network = models->models[m].network;
        struct predict_advice advice;
        if (!predict_is_first(models, m))
            continue;
        TRY(predict_advise(models, network, cluster, training, &advice));
        if (advice.found)
            print_advice(out, &advice, network, cluster, training, cost_per_hour);
    }
out:
    return status;
}

static enum status read_rows(void *rows, const char *path)
{
    return predict_rows_read(rows, path);
}

static enum status fit(const struct config *config, struct predict_models *models)
{
    enum status status;
    struct predict_rows rows = {0};
    TRY(table_each_file(config->predict.fit, read_rows, &rows));
    TRY(predict_models_fit(models, &rows, config->predict.hold_out, (uint64_t)config->seed));
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

static enum status write_map(const struct config *config, const struct predict_models *models)
{
    const struct predict_cluster cluster = {.bytes_per_s = config->predict.rate / 8,
                                            .rack_ranks = config->rack_ranks,
                                            .oversubscribed = config->oversubscribed};
    return predict_write_map(config->predict.map, models, &cluster);
}

static enum status forecast(const struct config *config, const struct predict_models *models)
{
    enum status status = STATUS_OK;
    size_t transports = 0;
    const struct predict_training training = {.model = config->predict.trains,
                                              .compute_s = config->compute_ms * 1e-3,
                                              .batch = (double)config->batch,
                                              .images = config->predict.images,
                                              .epochs = (double)config->epochs,
                                              .bucket_bytes =
                                                  (size_t)(config->bucket_mb * (1 << 20))};
    const struct predict_cluster cluster = {.workers = (int)config->predict.workers,
                                            .spare = (int)config->predict.spare,
                                            .bytes_per_s = config->predict.rate / 8,
                                            .added_latency_s = config->predict.latency,
                                            .rack_ranks = config->rack_ranks,
                                            .oversubscribed = config->oversubscribed};
    for (size_t m = 0; m < models->count; m++) {
        const struct predict_model *model = &models->models[m];
        if (!predict_is_transport(model))
            continue;
        transports++;
        predict_print_forecast(stdout, model, &cluster, config->size_list, config->size_count,
                               (uint64_t)config->seed);
        if (config->predict.trains)
            TRY(predict_print_training(stdout, model, &cluster, &training));
    }
    if (transports == 0)
        TRY(FAIL(
            STATUS_INPUT,
            "predict: no fitted model is of a psring transport, so psring's times are unknown; fit "
            "rows of ring, rhd, tree or ps (--fit FILE,...)"));
    if (config->predict.trains)
        TRY(predict_print_advice(stdout, models, &cluster, &training,
                                 config->predict.cost_per_hour));
out:
    return status;
}

enum status predict_command(struct config *config)
{
    enum status status;
    struct predict_models models = {0};
    if (config->predict.fit)
        TRY(fit(config, &models));
    else
        TRY(predict_models_read(&models, config->cost_model));
    if (config->predict.trained)
        TRY(predict_print_trained(stdout, &models, config->predict.trained));
    if (config->predict.workers > 0)
        TRY(forecast(config, &models));
    if (config->predict.map)
        TRY(write_map(config, &models));
out:
    predict_models_free(&models);
    return status;
}
