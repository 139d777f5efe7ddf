#include "experiments/predict/regret.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/predict/beside.h"

/* -------- a case ------------------------------------------------------------------------------ */

/* A way that was measured, once or more often. */
struct candidate {
    const struct predict_row *row; /* the first */
    double predicted_s, sum_log;   /* of the measured seconds */
    int runs;
};

struct candidates {
    struct candidate *list; /* room for all rows */
    size_t count;
    bool other_use; /* one of them has another use than is asked for */
};

/* Workers', and those of servers beside them. */
static int machines_of(const struct predict_row *row)
{
    bool beside = strcmp(row->placement, "dedicated") == 0 || strcmp(row->placement, "mixed") == 0;
    return row->workers + (beside ? row->servers : 0);
}

/* Something that psring can be told to do, and that a model describes. */
static bool is_candidate(const struct predict_models *models, const struct predict_row *row)
{
    return row->model_index >= 0 && models->models[row->model_index].fit.error_count > 0 &&
           strcmp(row->transport, "none") != 0;
}

static bool same_but_machines(const struct predict_row *a, const struct predict_row *b)
{
    return a->workers == b->workers && a->bytes == b->bytes && a->hosts == b->hosts &&
           a->neighbours_apart == b->neighbours_apart &&
           a->nominal_bytes_per_s == b->nominal_bytes_per_s &&
           strcmp(a->network, b->network) == 0 && strcmp(a->compress, b->compress) == 0;
}

static bool same_way(const struct predict_row *a, const struct predict_row *b)
{
    return a->servers == b->servers && strcmp(a->backend, b->backend) == 0 &&
           strcmp(a->transport, b->transport) == 0 && strcmp(a->placement, b->placement) == 0 &&
           strcmp(a->device, b->device) == 0;
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

/* Those of the case that has row `first` with the most machines. false: an earlier row has had it.
 */
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

/* false: there is nothing to choose from. */
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
    if (!candidates.list) {
        log_error("predict: no memory to choose among %zu rows", rows->count);
        return STATUS_NO_MEMORY;
    }
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
            "choice, %s: %zu cases, %.2f%% slower than the fastest measured (geometric mean), "
            "worst %.1f%%; the fastest itself in %zu, at most %.0f%% slower in %zu, more than "
            "%.0f%% in %zu\n",
            name, regret.cases, 100 * predict_regret_mean(&regret),
            100 * predict_decision_regret(&regret.worst), regret.fastest, 100 * PREDICT_REGRET_NEAR,
            regret.near, 100 * PREDICT_REGRET_FAR, regret.far);
    if (ring.cases > 0)
        fprintf(out, "  always the ring: %zu cases, %.2f%% slower, worst %.1f%%\n", ring.cases,
                100 * predict_regret_mean(&ring), 100 * predict_decision_regret(&ring.worst));
    TRY(predict_regret_of(&regret, models, rows, use, NULL, out));
out:
    return status;
}

enum status predict_print_regret(FILE *out, struct predict_models *models,
                                 const struct predict_rows *rows)
{
    enum status status;
    struct predict_held_out fitted;
    fprintf(out, "\nThe fastest by the model beside the fastest measured, by network, workers, "
                 "machines and size:\n");
    TRY(print_use(out, "held out", models, rows, PREDICT_HOLD_OUT, &models->choice));
    TRY(print_use(out, "fitted", models, rows, PREDICT_FIT, &fitted));
out:
    return status;
}
