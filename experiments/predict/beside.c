#include "experiments/predict/beside.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/base/csv.h"
#include "experiments/measure/cpu.h"

static const char *const use_names[] = {
    [PREDICT_FIT] = "fitted", [PREDICT_HOLD_OUT] = "held-out", [PREDICT_NOT_USED] = "not-used"};

/* NULL: no fitted model describes it. */
static const struct predict_model *model_of(const struct predict_models *models,
                                            const struct predict_row *row)
{
    if (row->use == PREDICT_NOT_USED || row->model_index < 0)
        return NULL;
    const struct predict_model *model = &models->models[row->model_index];
    return model->fit.error_count > 0 ? model : NULL;
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
    if (!score->worst_row || off > score->worst) {
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
            model->network, model->fitted, model->pooled ? " with the other transports' help" : "",
            model->held_out);
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
    print_constant(out, "a, a message others wait for", 1e6, "us", fit, TERM_LATENCY);
    if (b > 0)
        fprintf(out, "  %-34s %9.4g   [%.4g, %.4g] MB/s\n", "B, a link, each way", 1e-6 / b,
                1e-6 / fit->high.of[TERM_LINK], 1e-6 / fit->low.of[TERM_LINK]);
    else
        fprintf(out,
                "  B, a link, each way                not to be told: processors took longer\n");
    print_constant(out, "let through at once by a link", 1e-3 / (b > 0 ? b : 1), "KB", fit,
                   TERM_BURST);
    print_constant(out, "the same, of servers' first and last", 1e-3 / (b > 0 ? b : 1), "KB", fit,
                   TERM_FILL_BURST);
    print_constant(out, "g, adding", 1e9, "s/GB", fit, TERM_REDUCE);
    print_constant(out, "a message, in the busiest process", 1e6, "us", fit, TERM_MESSAGE);
    print_constant(out, model->one_machine ? "cores: any message" : "cores: a message", 1e6, "us",
                   fit, TERM_CPU_MESSAGE);
    print_constant(out, model->one_machine ? "cores: any byte sent" : "cores: a byte sent", 1e9,
                   "s/GB", fit, TERM_CPU_BYTE);
}

void predict_row_words(const struct predict_row *row, char *text, size_t size)
{
    bool servers = row->servers > 0 || strcmp(row->placement, "mixed") == 0;
    snprintf(text, size, "%s%s%s", row->backend, *row->algorithm ? "-" : "", row->algorithm);
    if (servers)
        snprintf(text, size, "%s %s %d", row->backend, row->placement, row->servers);
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
            "%s: %zu rows, error %.2f%% (geometric mean), worst %.1f%% (%s, %d workers, %" PRIu64
            " bytes over %s), ",
            name, score->rows, 100 * predict_score_mean(score), 100 * score->worst, words,
            score->worst_row->workers, score->worst_row->bytes, score->worst_row->transport);
    if (score->judged > 0)
        fprintf(out, "%zu of %zu (%.0f%%) within their 95%% interval\n", score->within,
                score->judged, 100.0 * (double)score->within / (double)score->judged);
    else
        fprintf(out, "no intervals: fewer than 19 errors\n");
}

/* As the tables mark a row: its time tells of the scheduler, too. */
static bool is_cpu_limited(const struct predict_row *row)
{
    const enum state state = predict_row_state(row);
    return state == STATE_LIMITED || state == STATE_DISTURBED;
}

/* MPI_Allreduce apart: what its algorithms send is not known. */
static bool is_library(const struct predict_row *row)
{
    return strcmp(row->transport, "none") == 0;
}

/* What no model can know: how far runs of one point are from each other. */
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

/* How many rows are not used, for each of the reasons. */
static void print_not_used(FILE *out, const struct predict_models *models,
                           const struct predict_rows *rows)
{
    static const char unfitted[] = "too few like it were fitted";
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
    struct predict_score scores[2][2] = {0}, limited[2] = {0}; /* held out, by links and CPUs */
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
