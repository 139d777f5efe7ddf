#include "experiments/predict/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/config/config_table.h"
#include "experiments/fit/table.h"

/* -------- a step ------------------------------------------------------------------------------ */

/* Communication that takes `factor` times as long. `scaled` (bucket_count). */
static double scaled_step(const struct predict_step *step, double compute_s, double factor,
                          const struct predict_travel *travels, struct predict_travel *scaled,
                          double *scratch)
{
    for (size_t b = 0; b < step->bucket_count; b++)
        scaled[b] = (struct predict_travel){travels[b].seconds * factor,
                                            travels[b].saved_s * factor, travels[b].rest_s};
    return predict_step_time(step, compute_s, scaled, true, scratch);
}

/* One bucket behind the other leaves links no time to rest. */
static struct predict_travel travel_of(const struct predict_fit *fit,
                                       const struct predict_terms *terms)
{
    struct predict_terms seconds = predict_seconds(terms, &fit->constants);
    struct predict_travel travel = {.rest_s = -seconds.of[TERM_BURST]};
    double rested = predict_parts_of(&seconds).together;
    seconds.of[TERM_BURST] = 0;
    travel.seconds = predict_parts_of(&seconds).together;
    travel.saved_s = travel.seconds - rested;
    return travel;
}

enum status predict_buckets_step(const struct predict_fit *fit, const struct predict_step *step,
                                 const struct predict_terms *terms, double compute_s,
                                 struct predict_interval *seconds)
{
    struct predict_terms all = {0};
    size_t count = step->bucket_count;
    struct predict_travel *travels = malloc(2 * count * sizeof *travels);
    double *scratch = malloc(2 * count * sizeof *scratch);
    enum status status = travels && scratch ? STATUS_OK : STATUS_NO_MEMORY;
    if (status != STATUS_OK) {
        log_error("predict: no memory for %zu buckets", count);
        goto out;
    }
    for (size_t b = 0; b < count; b++) {
        travels[b] = travel_of(fit, &terms[b]);
        all.fill_bytes += terms[b].fill_bytes;
        for (int t = 0; t < PREDICT_TERMS; t++)
            all.of[t] += terms[b].of[t];
    }
    all.of[TERM_BURST] = fmax(all.of[TERM_BURST], -1); /* one behind the other: the first one's */
    struct predict_interval sum = predict_time(fit, &all);
    double low = sum.seconds > 0 ? sum.low / sum.seconds : 1;
    double high = sum.seconds > 0 ? sum.high / sum.seconds : 1;
    struct predict_travel *scaled = travels + count;
    *seconds =
        (struct predict_interval){scaled_step(step, compute_s, 1, travels, scaled, scratch),
                                  scaled_step(step, compute_s, low, travels, scaled, scratch),
                                  scaled_step(step, compute_s, high, travels, scaled, scratch)};
out:
    free(travels);
    free(scratch);
    return status;
}

bool predict_training_step(const struct predict_model *model, const struct predict_way *way,
                           int workers, const struct predict_step *step,
                           const struct predict_training *training,
                           struct predict_interval *seconds)
{
    struct predict_terms *terms = malloc(step->bucket_count * sizeof *terms);
    bool known = terms != NULL;
    for (size_t b = 0; known && b < step->bucket_count; b++)
        known = predict_way_terms(model, way, workers, step->buckets[b].count, training->compress,
                                  &terms[b]);
    known = known && predict_buckets_step(&model->fit, step, terms, training->compute_s, seconds) ==
                         STATUS_OK;
    free(terms);
    return known;
}

/* -------- what a cluster makes of it ---------------------------------------------------------- */

static void print_way(FILE *out, const struct predict_way *way,
                      const struct predict_cluster *cluster,
                      const struct predict_training *training, struct predict_interval step,
                      const char *outside)
{
    char words[32];
    double images = training->batch * cluster->workers; /* a step */
    double epoch_s = training->images / images * step.seconds;
    predict_way_words(way, words, sizeof words);
    fprintf(out, "%-20s %10.2f  [%.2f, %.2f] %10.2f %10.1f %7.1f%% %10.4g %10.4g%s%s%s\n", words,
            step.seconds * 1e3, step.low * 1e3, step.high * 1e3,
            (step.seconds - training->compute_s) * 1e3, images / step.seconds,
            100 * training->compute_s / step.seconds, epoch_s, epoch_s * training->epochs,
            *outside ? "  (outside: " : "", outside, *outside ? ")" : "");
}

enum status predict_print_training(FILE *out, const struct predict_model *model,
                                   const struct predict_cluster *cluster,
                                   const struct predict_training *training)
{
    enum status status;
    struct predict_way ways[PREDICT_WAYS_MOST];
    struct predict_step step;
    struct predict_model there = predict_model_on(model, cluster);
    size_t count;
    TRY(predict_step_open(&step, training->model, training->bucket_bytes));
    predict_ways(cluster, ways, &count);
    fprintf(
        out,
        "\nTraining %s (%.1f MB of gradients in %zu bucket%s, --bucket-mb %g), %d workers of %g "
        "images in %g ms, %s as over %s\n%-20s %10s  %s\n",
        training->model, (double)step.bytes * 1e-6, step.bucket_count,
        step.bucket_count == 1 ? "" : "s", (double)training->bucket_bytes / 1048576,
        cluster->workers, training->batch, training->compute_s * 1e3, model->transport,
        model->network, "", "step ms",
        "[95%]   exposed ms   images/s   scaling    epoch s      all s");
    for (size_t w = 0; w < count; w++) {
        struct predict_interval seconds;
        char outside[256];
        predict_outside_between(model, cluster, ways[w].servers, predict_step_least(&step),
                                predict_step_most(&step), outside, sizeof outside);
        if (predict_training_step(&there, &ways[w], cluster->workers, &step, training, &seconds))
            print_way(out, &ways[w], cluster, training, seconds, outside);
    }
out:
    predict_step_free(&step);
    return status;
}

/* -------- beside train.csv -------------------------------------------------------------------- */

struct trained {
    FILE *out;
    const struct predict_models *models;
    struct predict_score score;
    size_t not_used;
};

/* "paced:MS"; 0: another kind. */
static double paced_s(const char *text)
{
    return strncmp(text, "paced:", 6) == 0 ? strtod(text + 6, NULL) * 1e-3 : 0;
}

/* How far the fitted rate is from that one. */
static double off(const struct predict_model *model, double bytes_per_s)
{
    double fitted = model->nominal_bytes_per_s;
    return fitted > 0 ? fabs(log(fitted / bytes_per_s)) : (double)INFINITY;
}

/* The model of a row's network and transport; else that of a virtual cluster of the nearest rate,
 * of which `cluster` says then, so that predict_model_on makes it this one's. */
static const struct predict_model *find_model(const struct trained *trained,
                                              const struct table_reader *table,
                                              double nominal_bytes_per_s,
                                              struct predict_cluster *cluster)
{
    const struct predict_model *other = NULL;
    const char *network = table_field(table, "network");
    for (size_t m = 0; m < trained->models->count; m++) {
        const struct predict_model *model = &trained->models->models[m];
        if (model->fit.error_count == 0 ||
            strcmp(model->transport, table_field(table, "transport")) != 0)
            continue;
        if (strcmp(model->network, network) == 0)
            return model;
        if (nominal_bytes_per_s > 0 && predict_networks_alike(model->network, network) &&
            (!other || off(model, nominal_bytes_per_s) < off(other, nominal_bytes_per_s)))
            other = model;
    }
    if (other)
        cluster->bytes_per_s = nominal_bytes_per_s;
    return other;
}

static bool find_way(const struct table_reader *table, int servers, struct predict_way *way)
{
    static const char *const backends[] = {"ring", "rhd", "ps"};
    const char *placement = table_field(table, "placement");
    *way = (struct predict_way){.servers = servers};
    for (size_t b = 0; b < sizeof backends / sizeof *backends; b++) {
        if (strcmp(table_field(table, "backend"), backends[b]) == 0)
            way->backend = backends[b];
    }
    for (int p = 0; config_placement_words[p]; p++) {
        if (strcmp(placement, config_placement_words[p]) == 0)
            way->placement = (enum placement)p;
    }
    return way->backend != NULL && strcmp(table_field(table, "sync"), "bsp") == 0;
}

static enum status print_trained_row(struct trained *trained, const struct table_reader *table,
                                     const struct predict_model *model,
                                     const struct predict_way *way,
                                     const struct predict_cluster *cluster,
                                     const struct predict_training *training, double measured_s)
{
    enum status status;
    struct predict_step step;
    struct predict_interval seconds;
    const struct predict_model there = predict_model_on(model, cluster);
    char words[32], outside[256];
    TRY(predict_step_open(&step, training->model, training->bucket_bytes));
    if (predict_training_step(&there, way, cluster->workers, &step, training, &seconds)) {
        struct predict_row row = {.median_s = measured_s};
        predict_score_add(&trained->score, &row, seconds);
        predict_way_words(way, words, sizeof words);
        predict_outside_between(model, cluster, way->servers, predict_step_least(&step),
                                predict_step_most(&step), outside, sizeof outside);
        fprintf(trained->out,
                "%-20s %-4s %-18s %-10s %3d %10.2f %10.2f  [%.2f, %.2f] %+6.1f%%%s%s%s\n", words,
                table_field(table, "transport"), table_field(table, "network"), training->model,
                cluster->workers, measured_s * 1e3, seconds.seconds * 1e3, seconds.low * 1e3,
                seconds.high * 1e3, (seconds.seconds / measured_s - 1) * 100,
                *outside ? "  (outside: " : "", outside, *outside ? ")" : "");
    }
out:
    predict_step_free(&step);
    return status;
}

static enum status take_trained(void *context, const struct table_reader *table)
{
    enum status status;
    struct trained *trained = context;
    struct predict_way way;
    const double bucket_mb_most = 1e6;
    struct predict_cluster cluster = {.shares_cores = true};
    int servers;
    double step_ms, bucket_mb, nominal;
    double compute_s = paced_s(table_field(table, "compute"));
    TRY(table_number(table, "nominal_link_bytes_per_s", 0, 0, &nominal));
    const struct predict_model *model = find_model(trained, table, nominal, &cluster);
    TRY(table_count(table, "workers", 1, PREDICT_WORKERS_MOST, 0, &cluster.workers));
    TRY(table_count(table, "servers", 0, PREDICT_WORKERS_MOST, 0, &servers));
    TRY(table_number(table, "step_ms_median", 0, 0, &step_ms));
    TRY(table_number(table, "bucket_mb", 0, 4, &bucket_mb));
    const char *compress = table_field(table, "compress");
    bool plain = !*compress || strcmp(compress, "none") == 0;
    if (!model || !(compute_s > 0) || cluster.workers < 2 || step_ms <= 0 || !plain ||
        !find_way(table, servers, &way)) {
        trained->not_used++;
        return STATUS_OK;
    }
    const struct predict_training training = {
        .model = table_field(table, "model"),
        .compute_s = compute_s,
        .bucket_bytes = (size_t)(fmin(bucket_mb, bucket_mb_most) * (1 << 20))};
    TRY(print_trained_row(trained, table, model, &way, &cluster, &training, step_ms * 1e-3));
out:
    return status;
}

enum status predict_print_trained(FILE *out, const struct predict_models *models, const char *files)
{
    static const char *const needed[] = {"backend",        "transport", "network",   "compute",
                                         "workers",        "servers",   "placement", "model",
                                         "step_ms_median", "sync",      NULL};
    enum status status = STATUS_OK;
    struct trained trained = {.out = out, .models = models};
    char *save = NULL, *list = strdup(files);
    TRY(list ? STATUS_OK : STATUS_NO_MEMORY);
    fprintf(out, "\nSteps of --compute paced\n%-20s %-4s %-18s %-10s %3s %10s %10s\n", "", "over",
            "network", "model", "W", "measured", "predicted ms, with 95% interval");
    for (char *path = strtok_r(list, ",", &save); path; path = strtok_r(NULL, ",", &save))
        TRY(table_read(path, "train.csv",
                       "a train.csv, as psring train --metrics and run_scaling.sh write it", needed,
                       take_trained, &trained));
    if (trained.score.rows > 0)
        fprintf(out,
                "steps: %zu rows, error %.2f%% (geometric mean), worst %.1f%%, %zu within; %zu not "
                "used\n",
                trained.score.rows, 100 * predict_score_mean(&trained.score),
                100 * trained.score.worst, trained.score.within, trained.not_used);
    else
        fprintf(out,
                "steps: no row of several workers that a fitted model describes; %zu not used\n",
                trained.not_used);
out:
    free(list);
    return status;
}
