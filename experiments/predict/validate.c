#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/csv.h"
#include "common/base/stats.h"
#include "common/base/status.h"
#include "common/base/util.h"
#include "experiments/config/config_table.h"
#include "common/net/cpu_watch.h"
#include "experiments/predict/predict.h"
#include "experiments/predict/rows.h"
#include "experiments/predict/training.h"

static const char *const use_names[] = {
    [PREDICT_FIT] = "fitted", [PREDICT_HOLD_OUT] = "held-out", [PREDICT_NOT_USED] = "not-used"};

/* The fitted model of a row, or NULL. */
static const struct predict_model *model_of(const struct predict_models *models,
                                            const struct predict_row *row)
{
    if (row->use == PREDICT_NOT_USED || row->model_index < 0)
        return NULL;
    const struct predict_model *model = &models->models[row->model_index];
    return model->fit.error_count > 0 ? model : NULL;
}

/* What follows the number of rows or cases of a statement. */
static const char *basis_of(size_t count)
{
    return count < STATS_INTERVAL_LEAST ? ", no verdict (fewer than 6)" : "";
}

static double error_of(const struct predict_row *row, struct predict_interval interval)
{
    return interval.seconds / row->median_s - 1;
}

static bool is_within(const struct predict_row *row, struct predict_interval interval)
{
    return row->median_s >= interval.low && row->median_s <= interval.high;
}

void predict_score_add(struct predict_score *score, const struct predict_row *row,
                       struct predict_interval interval)
{
    double off = fabs(error_of(row, interval));
    score->rows++;
    score->judged += predict_has_interval(interval);
    score->within += predict_has_interval(interval) && is_within(row, interval);
    score->sum_log += log1p(off);
    if (score->rows == 1 || off > score->worst) {
        score->worst = off;
        score->worst_row = row;
    }
}

double predict_score_mean(const struct predict_score *score)
{
    return score->rows > 0 ? expm1(score->sum_log / (double)score->rows) : (double)NAN;
}

/* -------- tables ------------------------------------------------------------------------------ */

static void print_constant(FILE *out, const char *name, double scale, const char *unit,
                           const struct predict_fit *fit, enum predict_term term)
{
    fprintf(out, "  %-34s %9.3g   [%.3g, %.3g] %s\n", name, fit->constants.of[term] * scale,
            fit->low.of[term] * scale, fit->high.of[term] * scale, unit);
}

void predict_print_constants(FILE *out, const struct predict_model *model)
{
    const struct predict_fit *fit = &model->fit;
    double b = fit->constants.of[TERM_LINK];
    fprintf(out, "\n%s over %s: %zu rows fitted%s, %zu held out\n", model->transport,
            model->network, model->fitted, model->pooled ? " with help from other transports" : "",
            model->held_out);
    if (fit->error_count > 0 && model->fitted < STATS_INTERVAL_LEAST)
        fprintf(out, "  fewer than %d rows of its own: no cell of the winner map rests on it\n",
                STATS_INTERVAL_LEAST);
    if (fit->error_count == 0) {
        fprintf(out, "  not fitted: a fit needs %d rows\n",
                model->pooled ? PREDICT_POOLED_LEAST : PREDICT_FIT_LEAST);
        return;
    }
    fprintf(out,
            "  %" PRIu64 " to %" PRIu64 " workers, %" PRIu64 " to %" PRIu64 " servers, %" PRIu64
            " to %" PRIu64 " bytes\n",
            model->workers.least, model->workers.most, model->servers.least, model->servers.most,
            model->bytes.least, model->bytes.most);
    print_constant(out, "a, latency of a message", 1e6, "us", fit, TERM_LATENCY);
    if (b > 0)
        fprintf(out, "  %-34s %9.4g   [%.4g, %.4g] MB/s\n", "B, a link, each way", 1e-6 / b,
                1e-6 / fit->high.of[TERM_LINK], 1e-6 / fit->low.of[TERM_LINK]);
    else
        fprintf(out, "  B, a link, each way                unknown: processors took longer\n");
    print_constant(out, "burst of a link", 1e-3 / (b > 0 ? b : 1), "KB", fit, TERM_BURST);
    print_constant(out, "fill burst of servers", 1e-3 / (b > 0 ? b : 1), "KB", fit,
                   TERM_FILL_BURST);
    print_constant(out, "g, adding", 1e9, "s/GB", fit, TERM_REDUCE);
    print_constant(out, "a message, in the busiest process", 1e6, "us", fit, TERM_MESSAGE);
    print_constant(out, model->one_machine ? "cores: any message" : "cores: a message", 1e6, "us",
                   fit, TERM_CPU_MESSAGE);
    print_constant(out, model->one_machine ? "cores: any byte sent" : "cores: a byte sent", 1e9,
                   "s/GB", fit, TERM_CPU_BYTE);
}

static void predict_row_words(const struct predict_row *row, char *text, size_t size)
{
    bool servers = row->servers > 0 || strcmp(row->placement, "mixed") == 0;
    snprintf(text, size, "%s%s%s", row->backend, *row->algorithm ? "-" : "", row->algorithm);
    if (servers)
        snprintf(text, size, "%s %s %d", row->backend, row->placement, row->servers);
    if (row->radix > 2)
        snprintf(text + strlen(text), size - strlen(text), " radix %d", row->radix);
    if (*row->compress && strcmp(row->compress, "none") != 0)
        snprintf(text + strlen(text), size - strlen(text), " %s", row->compress);
}

static void print_row(FILE *out, const struct predict_model *model, const struct predict_row *row,
                      struct predict_interval interval)
{
    char words[PREDICT_WAY_WORDS], between[PREDICT_INTERVAL_BYTES];
    predict_row_words(row, words, sizeof words);
    fprintf(out, "%-22s %-10.10s %3d %10" PRIu64 " %10.3f %10.3f  %s %+6.1f%%  %s%s\n", words,
            model->transport, row->workers, row->bytes, row->median_s * 1e3, interval.seconds * 1e3,
            predict_interval_text(interval, 1e3, 3, between), error_of(row, interval) * 100,
            use_names[row->use], is_within(row, interval) ? "" : ", outside");
}

static void print_score(FILE *out, const char *name, const struct predict_score *score)
{
    char words[PREDICT_WAY_WORDS];
    if (score->rows == 0) {
        fprintf(out, "%s: no rows\n", name);
        return;
    }
    predict_row_words(score->worst_row, words, sizeof words);
    fprintf(out,
            "%s: %zu rows%s, error %.2f%% (geometric mean), worst %.1f%% (%s, %d workers, %" PRIu64
            " bytes over %s), ",
            name, score->rows, basis_of(score->rows), 100 * predict_score_mean(score),
            100 * score->worst, words, score->worst_row->workers, score->worst_row->bytes,
            score->worst_row->transport);
    if (score->judged > 0)
        fprintf(out, "%zu of %zu (%.0f%%) within their 95%% interval\n", score->within,
                score->judged, 100.0 * (double)score->within / (double)score->judged);
    else
        fprintf(out, "no intervals: fewer than 19 errors\n");
}

/* Whether the processors limited the row, as the tables mark it. The time of such a row includes
 * the scheduler. */
static bool is_cpu_limited(const struct predict_row *row)
{
    const enum state state = predict_row_state(row);
    return state == STATE_LIMITED || state == STATE_DISTURBED;
}

/* Whether the row is of MPI_Allreduce. It is scored separately, because the messages of its
 * algorithms are unknown. */
static bool is_library(const struct predict_row *row)
{
    return strcmp(row->transport, "none") == 0;
}

/* Prints how far runs of one point differ, which is the lower limit for the error of any model. */
static void print_runs(FILE *out, const struct predict_models *models,
                       const struct predict_rows *rows)
{
    size_t points = 0, runs = 0;
    double squares = 0;
    const struct predict_row *worst = NULL;
    char words[PREDICT_WAY_WORDS];
    for (size_t i = 0; i < rows->count; i++) {
        const struct predict_row *row = &rows->rows[i];
        if (row->runs < 2 || !model_of(models, row))
            continue;
        points++;
        runs += (size_t)row->runs;
        squares += row->run_spread * row->run_spread;
        worst = worst && worst->run_spread >= row->run_spread ? worst : row;
    }
    if (!worst)
        return;
    predict_row_words(worst, words, sizeof words);
    fprintf(out,
            "of several runs: %zu rows, medians of %zu runs; runs of a row differ by %.1f%% "
            "(standard deviation, root mean square), most by %.1f%% (%s, %d workers, %" PRIu64
            " bytes over %s)\n",
            points, runs, 100 * sqrt(squares / (double)points), 100 * worst->run_spread, words,
            worst->workers, worst->bytes, worst->transport);
}

/* Prints the number of unused rows for each reason. */
static void print_not_used(FILE *out, const struct predict_models *models,
                           const struct predict_rows *rows)
{
    static const char unfitted[] = "too few similar rows were fitted";
    const char *reasons[PREDICT_REASONS_MOST];
    size_t counts[PREDICT_REASONS_MOST] = {0}, known = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct predict_row *row = &rows->rows[i];
        const char *why = row->use == PREDICT_NOT_USED ? row->why : unfitted;
        size_t r = 0;
        if (model_of(models, row))
            continue;
        while (r < known && reasons[r] != why)
            r++;
        if (r == PREDICT_REASONS_MOST)
            continue;
        if (r == known)
            reasons[known++] = why;
        counts[r]++;
    }
    for (size_t r = 0; r < known; r++)
        fprintf(out, "not used: %zu rows: %s\n", counts[r], reasons[r]);
}

void predict_print_beside(FILE *out, const struct predict_models *models,
                          const struct predict_rows *rows)
{
    static const char *const names[2][2] = {{"fitted", "fitted, MPI_Allreduce"},
                                            {"held out", "held out, MPI_Allreduce"}};
    struct predict_score scores[2][2] = {0},
                         limited[2] = {0}; /* held out: limited by links, by CPUs */
    fprintf(out, "\n%-22s %-10s %3s %10s %10s %10s  %s\n", "", "over", "W", "bytes", "measured",
            "predicted", "ms, with 95% interval");
    for (size_t i = 0; i < rows->count; i++) {
        const struct predict_row *row = &rows->rows[i];
        const struct predict_model *model = model_of(models, row);
        if (!model)
            continue;
        struct predict_interval interval = predict_time(&model->fit, &row->terms);
        bool held = row->use == PREDICT_HOLD_OUT;
        predict_score_add(&scores[held][is_library(row)], row, interval);
        if (held && !is_library(row))
            predict_score_add(&limited[is_cpu_limited(row)], row, interval);
        print_row(out, model, row, interval);
    }
    fprintf(out, "\n");
    for (int held = 0; held < 2; held++) {
        print_score(out, names[held][0], &scores[held][0]);
        if (scores[held][1].rows > 0)
            print_score(out, names[held][1], &scores[held][1]);
    }
    if (limited[1].rows > 0) {
        char name[64];
        snprintf(name, sizeof name, "held out, CPUs busy up to %.0f%%", 100 * CPU_SHARE_LIMITED);
        print_score(out, name, &limited[0]);
        print_score(out, "held out, CPUs busier than that", &limited[1]);
    }
    print_runs(out, models, rows);
    print_not_used(out, models, rows);
}

/* -------- predict.csv ------------------------------------------------------------------------- */

static void list_fields(const struct predict_row *row, struct predict_interval interval,
                        const struct predict_terms *seconds, struct fields *fields)
{
    static const char *const columns[PREDICT_TERMS] = {"latency_us",     "link_us",    "burst_us",
                                                       "fill_burst_us",  "reduce_us",  "message_us",
                                                       "cpu_message_us", "cpu_byte_us"};
    fields_start(fields);
    fields_text(fields, "backend", row->backend);
    fields_text(fields, "transport", row->transport);
    fields_text(fields, "mpi_algorithm", row->algorithm);
    fields_text(fields, "network", row->network);
    fields_text(fields, "compress", row->compress);
    fields_uint(fields, "workers", (uint64_t)row->workers);
    fields_uint(fields, "servers", (uint64_t)row->servers);
    fields_text(fields, "placement", row->placement);
    fields_uint_if(fields, "radix", row->radix > 0, (uint64_t)row->radix);
    fields_uint_if(fields, "hosts", row->hosts > 0, (uint64_t)row->hosts);
    fields_uint(fields, "bytes", row->bytes);
    fields_text(fields, "use", use_names[row->use]);
    fields_double(fields, "measured_us", row->median_s * 1e6);
    fields_double(fields, "predicted_us", interval.seconds * 1e6);
    bool known = predict_has_interval(interval);
    fields_double(fields, "predicted_us_low", known ? interval.low * 1e6 : (double)NAN);
    fields_double(fields, "predicted_us_high", known ? interval.high * 1e6 : (double)NAN);
    fields_double(fields, "error", error_of(row, interval));
    fields_uint_if(fields, "within", known, is_within(row, interval));
    for (int t = 0; t < PREDICT_TERMS; t++)
        fields_double(fields, columns[t], seconds->of[t] * 1e6);
    fields_double(fields, "cpu_busy", row->cpu_busy > 0 ? row->cpu_busy : (double)NAN);
    fields_uint(fields, "runs", (uint64_t)row->runs);
    fields_double(fields, "run_spread", row->runs > 1 ? row->run_spread : (double)NAN);
}

enum status predict_write_beside(const char *path, const struct predict_models *models,
                                 const struct predict_rows *rows)
{
    enum status status, closed;
    struct fields fields;
    struct csv *csv = NULL;
    list_fields(&(struct predict_row){0}, (struct predict_interval){0}, &(struct predict_terms){0},
                &fields);
    TRY(fields_csv_open(&fields, &csv, path));
    for (size_t i = 0; i < rows->count; i++) {
        const struct predict_row *row = &rows->rows[i];
        const struct predict_model *model = model_of(models, row);
        if (!model)
            continue;
        struct predict_terms seconds = predict_seconds(&row->terms, &model->fit.constants);
        list_fields(row, predict_time(&model->fit, &row->terms), &seconds, &fields);
        TRY(fields_csv_write(&fields, csv));
    }
out:
    closed = csv ? csv_close(&csv) : STATUS_OK;
    return status != STATUS_OK ? status : closed;
}

/* -------- a case ------------------------------------------------------------------------------ */

/* A measured way of a case, with one row or several. */
struct candidate {
    const struct predict_row *row; /* its first row */
    double predicted_s, sum_log;   /* sum over runs of log(measured seconds) */
    int runs;
};

struct candidates {
    struct candidate *list; /* space for all rows */
    size_t count;
    bool other_use; /* a candidate has another use than the requested one */
};

/* Machines of the workers and of the servers outside workers. */
static int machines_of(const struct predict_row *row)
{
    bool beside = strcmp(row->placement, "dedicated") == 0 || strcmp(row->placement, "mixed") == 0;
    return row->workers + (beside ? row->servers : 0);
}

/* Whether psring can choose the way of this row, and a fitted model describes it. A server in the
 * switch is no choice: psring uses one only if --placement asks for it. */
static bool is_candidate(const struct predict_models *models, const struct predict_row *row)
{
    return row->model_index >= 0 && models->models[row->model_index].fit.error_count > 0 &&
           !is_library(row) && strcmp(row->placement, "switch") != 0;
}

static bool same_but_machines(const struct predict_row *a, const struct predict_row *b)
{
    return a->workers == b->workers && a->bytes == b->bytes && a->hosts == b->hosts &&
           a->inter_host_hops == b->inter_host_hops &&
           a->nominal_bytes_per_s == b->nominal_bytes_per_s &&
           strcmp(a->network, b->network) == 0 && strcmp(a->compress, b->compress) == 0;
}

/* 0: 2, which earlier versions did not write. */
static int larger_radix(const struct predict_row *row)
{
    return row->radix > 2 ? row->radix : 0;
}

static bool same_way(const struct predict_row *a, const struct predict_row *b)
{
    return a->servers == b->servers && strcmp(a->backend, b->backend) == 0 &&
           strcmp(a->transport, b->transport) == 0 && strcmp(a->placement, b->placement) == 0 &&
           strcmp(a->device, b->device) == 0 && larger_radix(a) == larger_radix(b);
}

static void add_candidate(struct candidates *candidates, const struct predict_models *models,
                          const struct predict_row *row)
{
    struct candidate *c = candidates->list, *end = c + candidates->count;
    while (c < end && !same_way(c->row, row))
        c++;
    if (c == end) {
        const struct predict_fit *fit = &models->models[row->model_index].fit;
        *c = (struct candidate){.row = row, .predicted_s = predict_time(fit, &row->terms).seconds};
        candidates->count++;
    }
    c->sum_log += row->runs * log(row->median_s);
    c->runs += row->runs;
}

/* Collects the candidates of the case in which row `first` uses the most machines. Returns false if
 * an earlier row has the same case. */
static bool collect(struct candidates *candidates, const struct predict_models *models,
                    const struct predict_rows *rows, size_t first, enum predict_use use)
{
    const struct predict_row *of = &rows->rows[first];
    *candidates = (struct candidates){.list = candidates->list};
    for (size_t i = 0; i < rows->count; i++) {
        const struct predict_row *row = &rows->rows[i];
        if (!is_candidate(models, row) || !same_but_machines(row, of) ||
            machines_of(row) > machines_of(of))
            continue;
        if (i < first && machines_of(row) == machines_of(of))
            return false;
        candidates->other_use =
            candidates->other_use || (row->use != use && row->use != PREDICT_NOT_USED);
        add_candidate(candidates, models, row);
    }
    return true;
}

static double measured(const struct candidate *candidate)
{
    return exp(candidate->sum_log / candidate->runs);
}

/* Chooses by predicted time. Returns false if there is nothing to choose from. */
static bool decide(const struct candidates *candidates, const char *backend,
                   struct predict_decision *decision)
{
    const struct candidate *chosen = NULL, *fastest = NULL;
    for (size_t i = 0; i < candidates->count; i++) {
        const struct candidate *c = &candidates->list[i];
        if (!fastest || measured(c) < measured(fastest))
            fastest = c;
        if (backend && strcmp(c->row->backend, backend) != 0)
            continue;
        if (!chosen || c->predicted_s < chosen->predicted_s)
            chosen = c;
    }
    if (!chosen || candidates->count < 2)
        return false;
    *decision = (struct predict_decision){.chosen = chosen->row,
                                          .fastest = fastest->row,
                                          .chosen_s = measured(chosen),
                                          .fastest_s = measured(fastest)};
    return true;
}

double predict_decision_regret(const struct predict_decision *decision)
{
    return decision->chosen_s / decision->fastest_s - 1;
}

/* -------- all of them ------------------------------------------------------------------------- */

static void add(struct predict_regret *regret, const struct predict_decision *decision)
{
    double share = predict_decision_regret(decision);
    regret->fastest += decision->chosen == decision->fastest;
    regret->near += share <= PREDICT_REGRET_NEAR;
    regret->far += share > PREDICT_REGRET_FAR;
    regret->sum_log += log1p(share);
    if (regret->cases++ == 0 || share > predict_decision_regret(&regret->worst))
        regret->worst = *decision;
}

double predict_regret_mean(const struct predict_regret *regret)
{
    return regret->cases > 0 ? expm1(regret->sum_log / (double)regret->cases) : (double)NAN;
}

static void print_decision(FILE *out, const struct predict_decision *decision)
{
    char chosen[PREDICT_WAY_WORDS], fastest[PREDICT_WAY_WORDS];
    const struct predict_row *row = decision->chosen;
    predict_row_words(row, chosen, sizeof chosen);
    predict_row_words(decision->fastest, fastest, sizeof fastest);
    fprintf(out,
            "%.1f%%: %d workers, %d machines, %" PRIu64
            " bytes over %s: %s over %s %.3f ms, %s over %s %.3f ms\n",
            100 * predict_decision_regret(decision), row->workers, decision->machines, row->bytes,
            row->network, chosen, row->transport, decision->chosen_s * 1e3, fastest,
            decision->fastest->transport, decision->fastest_s * 1e3);
}

enum status predict_regret_of(struct predict_regret *regret, const struct predict_models *models,
                              const struct predict_rows *rows, enum predict_use use,
                              const char *backend, FILE *out)
{
    struct candidates candidates = {.list = malloc((rows->count + 1) * sizeof *candidates.list)};
    *regret = (struct predict_regret){0};
    if (!candidates.list)
        return FAIL(STATUS_NO_MEMORY, "predict: no memory to choose among %zu rows", rows->count);
    for (size_t i = 0; i < rows->count; i++) {
        struct predict_decision decision;
        if (!is_candidate(models, &rows->rows[i]) || !collect(&candidates, models, rows, i, use) ||
            candidates.other_use || !decide(&candidates, backend, &decision))
            continue;
        decision.machines = machines_of(&rows->rows[i]);
        add(regret, &decision);
        if (out && predict_decision_regret(&decision) > PREDICT_REGRET_NEAR) {
            fprintf(out, "  ");
            print_decision(out, &decision);
        }
    }
    free(candidates.list);
    return STATUS_OK;
}

static enum status print_use(FILE *out, const char *name, const struct predict_models *models,
                             const struct predict_rows *rows, enum predict_use use,
                             struct predict_held_out *total)
{
    enum status status;
    struct predict_regret regret, ring;
    TRY(predict_regret_of(&regret, models, rows, use, NULL, NULL));
    TRY(predict_regret_of(&ring, models, rows, use, "ring", NULL));
    *total = (struct predict_held_out){0};
    if (regret.cases > 0)
        *total = (struct predict_held_out){regret.cases, predict_regret_mean(&regret),
                                           predict_decision_regret(&regret.worst)};
    if (regret.cases == 0) {
        fprintf(out, "choice, %s: no size at which several ways were measured\n", name);
        return STATUS_OK;
    }
    fprintf(out,
            "choice, %s: %zu cases%s, %.2f%% slower than the fastest measured (geometric mean), "
            "worst %.1f%%; the fastest itself in %zu, at most %.0f%% slower in %zu, more than "
            "%.0f%% in %zu\n",
            name, regret.cases, basis_of(regret.cases), 100 * predict_regret_mean(&regret),
            100 * predict_decision_regret(&regret.worst), regret.fastest, 100 * PREDICT_REGRET_NEAR,
            regret.near, 100 * PREDICT_REGRET_FAR, regret.far);
    if (ring.cases > 0)
        fprintf(out, "  always the ring: %zu cases%s, %.2f%% slower, worst %.1f%%\n", ring.cases,
                basis_of(ring.cases), 100 * predict_regret_mean(&ring),
                100 * predict_decision_regret(&ring.worst));
    TRY(predict_regret_of(&regret, models, rows, use, NULL, out));
out:
    return status;
}

enum status predict_print_regret(FILE *out, struct predict_models *models,
                                 const struct predict_rows *rows)
{
    enum status status;
    struct predict_held_out fitted;
    fprintf(out, "\nChosen by the model, compared with the fastest measured, by network, workers, "
                 "machines and size:\n");
    TRY(print_use(out, "held out", models, rows, PREDICT_HOLD_OUT, &models->choice));
    TRY(print_use(out, "fitted", models, rows, PREDICT_FIT, &fitted));
out:
    return status;
}

/* -------- a row ------------------------------------------------------------------------------- */

/* A row of train.csv described by a model. */
struct step_row {
    char network[PREDICT_WORD], trains[PREDICT_WORD]; /* trains: name of the trained model */
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
    size_t measured; /* rows read; `rows` holds medians of them */
};

/* Seconds of "paced:MS"; 0 for another kind. */
static double paced_s(const char *text)
{
    return strncmp(text, "paced:", 6) == 0 ? strtod(text + 6, NULL) * 1e-3 : 0;
}

/* Distance of the fitted rate from `bytes_per_s`. */
static double off(const struct predict_model *model, double bytes_per_s)
{
    double fitted = model->nominal_bytes_per_s;
    return fitted > 0 ? fabs(log(fitted / bytes_per_s)) : (double)INFINITY;
}

/* The model of a row's network and transport. If there is none, the model of the virtual cluster
 * with the nearest rate; `cluster` then has the row's rate, and predict_model_on scales the model
 * to it. */
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
    const int topology = predict_topology(table_field(table, "backend"));
    const char *placement = table_field(table, "placement");
    *way = (struct predict_way){.servers = servers};
    if (topology < PREDICT_TOPOLOGIES)
        way->backend = predict_topologies[topology];
    for (int p = 0; config_placement_words[p]; p++) {
        if (strcmp(placement, config_placement_words[p]) == 0)
            way->placement = (enum placement)p;
    }
    return way->backend != NULL && strcmp(table_field(table, "sync"), "bsp") == 0;
}

static enum status add_trained(struct trained *trained, const struct step_row *row)
{
    struct step_row *grown =
        memory_grow(trained->rows, &trained->room, trained->count, sizeof *grown, "rows of steps");
    if (!grown)
        return STATUS_NO_MEMORY;
    trained->rows = grown;
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
    bool plain = strcmp(table_field(table, "device"), "cuda") != 0 &&
                 (!*compress || strcmp(compress, "none") == 0) &&
                 (!*straggler || strcmp(straggler, "none") == 0) && !(backups > 0);
    if (!row.model || !(row.compute_s > 0) || row.cluster.workers < 2 || step_ms <= 0 || !plain ||
        !find_way(table, servers, &row.way)) {
        trained->not_used++;
        return STATUS_OK;
    }
    row.bucket_bytes = (size_t)(fmin(bucket_mb, bucket_mb_most) * (1 << 20));
    row.step_s = step_ms * 1e-3;
    TRY(add_trained(trained, &row));
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

/* Joins the runs of each point into its first row; the order is kept. */
static enum status join_runs(struct trained *trained)
{
    size_t kept = 0;
    double *seconds = malloc((trained->count + 1) * sizeof *seconds);
    trained->measured = trained->count;
    if (!seconds)
        return FAIL(STATUS_NO_MEMORY, "predict: no memory to join %zu rows of steps",
                    trained->count);
    while (kept < trained->count) { /* take the runs of this point out of the remaining rows, and
                                       close the gaps */
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

/* -------- compared with predictions ----------------------------------------------------------- */

static enum status print_step_row(FILE *out, struct trained *trained, const struct step_row *row,
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
    if (predict_training_step(&there, &row->way, workers, NULL, &step, &training, &seconds)) {
        struct predict_row measured = {.median_s = row->step_s};
        predict_score_add(score, &measured, seconds);
        score->worst_row = NULL; /* `measured` ends here */
        predict_way_words(&row->way, words, sizeof words);
        predict_outside(row->model, &row->cluster, row->way.servers, predict_step_least(&step),
                        predict_step_most(&step), outside, sizeof outside);
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

static enum status read_trained(void *trained, const char *path)
{
    static const char *const needed[] = {"backend",        "transport", "network",   "compute",
                                         "workers",        "servers",   "placement", "model",
                                         "step_ms_median", "sync",      NULL};
    return table_read(path, "train.csv",
                      "a train.csv, as psring train --metrics and run_scaling.sh write it", needed,
                      take_trained, trained);
}

enum status predict_print_trained(FILE *out, const struct predict_models *models, const char *files)
{
    enum status status;
    struct trained trained = {.models = models};
    struct predict_score score = {0};
    TRY(table_each_file(files, read_trained, &trained));
    TRY(join_runs(&trained));
    fprintf(out, "\nSteps of --compute paced\n%-20s %-4s %-18s %-10s %3s %10s %10s\n", "", "over",
            "network", "model", "W", "measured", "predicted ms, with 95% interval");
    for (size_t i = 0; i < trained.count; i++)
        TRY(print_step_row(out, &trained, &trained.rows[i], &score));
    char medians[40] = "";
    if (trained.measured > trained.count)
        snprintf(medians, sizeof medians, ", medians of %zu", trained.measured);
    if (score.rows > 0)
        fprintf(out,
                "steps: %zu rows%s%s, error %.2f%% (geometric mean), worst %.1f%%, %zu within; %zu "
                "not used\n",
                score.rows, medians, basis_of(score.rows), 100 * predict_score_mean(&score),
                100 * score.worst, score.within, trained.not_used);
    else
        fprintf(out, "steps: no row with several workers and a fitted model; %zu not used\n",
                trained.not_used);
out:
    free(trained.rows);
    return status;
}
