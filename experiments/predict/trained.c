#include "experiments/predict/trained.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/stats.h"
#include "experiments/config/config_table.h"
#include "experiments/fit/table.h"
#include "experiments/predict/beside.h"
#include "experiments/predict/training.h"

/* -------- a row ------------------------------------------------------------------------------- */

/* A row of train.csv that a model describes. */
struct step_row {
    char network[PREDICT_WORD], trains[PREDICT_WORD]; /* trains: the model that is trained */
    const struct predict_model *model;
    struct predict_cluster cluster;
    struct predict_way way;
    double compute_s;
    size_t bucket_bytes;
    double step_s;
};

struct trained {
    const struct predict_models *models;
    struct step_row *rows;
    size_t count, room, not_used;
    size_t measured; /* rows, of which these are medians */
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

static enum status add(struct trained *trained, const struct step_row *row)
{
    if (trained->count == trained->room) {
        size_t room = trained->room ? 2 * trained->room : 64;
        struct step_row *more = realloc(trained->rows, room * sizeof *more);
        if (!more) {
            log_error("predict: no memory for %zu rows of steps", room);
            return STATUS_NO_MEMORY;
        }
        trained->rows = more;
        trained->room = room;
    }
    trained->rows[trained->count++] = *row;
    return STATUS_OK;
}

static enum status take_trained(void *context, const struct table_reader *table)
{
    enum status status;
    struct trained *trained = context;
    const double bucket_mb_most = 1e6;
    struct step_row row = {.cluster = {.shares_cores = true},
                           .compute_s = paced_s(table_field(table, "compute"))};
    int servers;
    double step_ms, bucket_mb, nominal;
    TRY(table_word(table, "network", row.network, sizeof row.network));
    TRY(table_word(table, "model", row.trains, sizeof row.trains));
    TRY(table_number(table, "nominal_link_bytes_per_s", 0, 0, &nominal));
    row.model = find_model(trained, table, nominal, &row.cluster);
    TRY(table_count(table, "workers", 1, PREDICT_WORKERS_MOST, 0, &row.cluster.workers));
    TRY(table_count(table, "servers", 0, PREDICT_WORKERS_MOST, 0, &servers));
    TRY(table_number(table, "step_ms_median", 0, 0, &step_ms));
    TRY(table_number(table, "bucket_mb", 0, 4, &bucket_mb));
    const char *compress = table_field(table, "compress");
    const char *straggler = table_field(table, "straggler");
    double backups;
    TRY(table_number(table, "backup_workers", 0, 0, &backups));
    bool plain = (!*compress || strcmp(compress, "none") == 0) &&
                 (!*straggler || strcmp(straggler, "none") == 0) && !(backups > 0);
    if (!row.model || !(row.compute_s > 0) || row.cluster.workers < 2 || step_ms <= 0 || !plain ||
        !find_way(table, servers, &row.way)) {
        trained->not_used++;
        return STATUS_OK;
    }
    row.bucket_bytes = (size_t)(fmin(bucket_mb, bucket_mb_most) * (1 << 20));
    row.step_s = step_ms * 1e-3;
    TRY(add(trained, &row));
out:
    return status;
}

/* -------- its runs ---------------------------------------------------------------------------- */

static bool is_same_point(const struct step_row *a, const struct step_row *b)
{
    return a->model == b->model && strcmp(a->network, b->network) == 0 &&
           strcmp(a->trains, b->trains) == 0 && a->cluster.workers == b->cluster.workers &&
           a->way.backend == b->way.backend && a->way.placement == b->way.placement &&
           a->way.servers == b->way.servers && a->bucket_bytes == b->bucket_bytes &&
           fabs(a->compute_s - b->compute_s) < 1e-9;
}

/* Into the first run of each point, in their order. */
static enum status join_runs(struct trained *trained)
{
    size_t kept = 0;
    double *seconds = malloc((trained->count + 1) * sizeof *seconds);
    trained->measured = trained->count;
    if (!seconds) {
        log_error("predict: no memory to join %zu rows of steps", trained->count);
        return STATUS_NO_MEMORY;
    }
    while (kept < trained->count) { /* runs of this point: out of the rest, which closes up */
        struct step_row *row = &trained->rows[kept++];
        size_t runs = 0, rest = kept;
        seconds[runs++] = row->step_s;
        for (size_t i = kept; i < trained->count; i++) {
            if (is_same_point(row, &trained->rows[i]))
                seconds[runs++] = trained->rows[i].step_s;
            else
                trained->rows[rest++] = trained->rows[i];
        }
        trained->count = rest;
        row->step_s = stats_median(seconds, runs);
    }
    free(seconds);
    return STATUS_OK;
}

/* -------- beside what is predicted ------------------------------------------------------------ */

static enum status print_row(FILE *out, struct trained *trained, const struct step_row *row,
                             struct predict_score *score)
{
    enum status status;
    struct predict_step step;
    struct predict_interval seconds;
    const struct predict_training training = {
        .model = row->trains, .compute_s = row->compute_s, .bucket_bytes = row->bucket_bytes};
    const struct predict_model there = predict_model_on(row->model, &row->cluster);
    const int workers = row->cluster.workers;
    char words[32], outside[256], between[PREDICT_INTERVAL_BYTES];
    TRY(predict_step_open(&step, training.model, training.bucket_bytes));
    if (predict_training_step(&there, &row->way, workers, &step, &training, &seconds)) {
        struct predict_row measured = {.median_s = row->step_s};
        predict_score_add(score, &measured, seconds);
        predict_way_words(&row->way, words, sizeof words);
        predict_outside_between(row->model, &row->cluster, row->way.servers,
                                predict_step_least(&step), predict_step_most(&step), outside,
                                sizeof outside);
        fprintf(out, "%-20s %-4s %-18s %-10s %3d %10.2f %10.2f  %s %+6.1f%%%s%s%s\n", words,
                row->model->transport, row->network, row->trains, workers, row->step_s * 1e3,
                seconds.seconds * 1e3, predict_interval_text(seconds, 1e3, 2, between),
                (seconds.seconds / row->step_s - 1) * 100, *outside ? "  (outside: " : "", outside,
                *outside ? ")" : "");
    } else {
        trained->not_used++;
    }
out:
    predict_step_free(&step);
    return status;
}

enum status predict_print_trained(FILE *out, const struct predict_models *models, const char *files)
{
    static const char *const needed[] = {"backend",        "transport", "network",   "compute",
                                         "workers",        "servers",   "placement", "model",
                                         "step_ms_median", "sync",      NULL};
    enum status status = STATUS_OK;
    struct trained trained = {.models = models};
    struct predict_score score = {0};
    char *save = NULL, *list = strdup(files);
    TRY(list ? STATUS_OK : STATUS_NO_MEMORY);
    for (char *path = strtok_r(list, ",", &save); path; path = strtok_r(NULL, ",", &save))
        TRY(table_read(path, "train.csv",
                       "a train.csv, as psring train --metrics and run_scaling.sh write it", needed,
                       take_trained, &trained));
    TRY(join_runs(&trained));
    fprintf(out, "\nSteps of --compute paced\n%-20s %-4s %-18s %-10s %3s %10s %10s\n", "", "over",
            "network", "model", "W", "measured", "predicted ms, with 95% interval");
    for (size_t i = 0; i < trained.count; i++)
        TRY(print_row(out, &trained, &trained.rows[i], &score));
    char medians[40] = "";
    if (trained.measured > trained.count)
        snprintf(medians, sizeof medians, ", medians of %zu", trained.measured);
    if (score.rows > 0)
        fprintf(out,
                "steps: %zu rows%s, error %.2f%% (geometric mean), worst %.1f%%, %zu within; %zu "
                "not used\n",
                score.rows, medians, 100 * predict_score_mean(&score), 100 * score.worst,
                score.within, trained.not_used);
    else
        fprintf(out,
                "steps: no row of several workers that a fitted model describes; %zu not used\n",
                trained.not_used);
out:
    free(trained.rows);
    free(list);
    return status;
}
