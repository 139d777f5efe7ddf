/* psring predict: forecasts, training steps and advice, from a model that was fitted to synthetic
 * measurements. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/predict/predict.h"
#include "experiments/predict/forecast.h"
#include "experiments/predict/training.h"
#include "tests/lib/capture.h"
#include "tests/lib/sweep_lib.h"

/* -------- what was not measured --------------------------------------------------------------- */

static void fit_sweep(struct predict_models *models, double noise)
{
    struct sweep sweep;
    make_sweep(&sweep, noise, 11);
    cr_assert(predict_models_fit(models, &sweep.rows, "none", 1) == STATUS_OK);
    predict_rows_free(&sweep.rows);
}

static double seconds_of(const struct predict_model *model, struct predict_way way, int workers,
                         size_t bytes)
{
    struct predict_terms terms;
    cr_assert(predict_way_terms(model, &way, workers, NULL, bytes / sizeof(float), COMPRESS_NONE,
                                &terms));
    return predict_time(&model->fit, &terms).seconds;
}

static const struct predict_way ring = {.backend = "ring"};

/* A table contains each way once. */
Test(predict, ways_differ)
{
    for (int workers = 2; workers <= 9; workers++) {
        for (int spare = 0; spare <= 9; spare++) {
            const struct predict_cluster cluster = {.workers = workers, .spare = spare};
            struct predict_way ways[PREDICT_WAYS_MOST];
            size_t count;
            predict_ways(&cluster, ways, &count);
            for (size_t a = 0; a < count; a++) {
                for (size_t b = 0; b < a; b++)
                    cr_expect(strcmp(ways[a].backend, ways[b].backend) != 0 ||
                              ways[a].placement != ways[b].placement ||
                              ways[a].servers != ways[b].servers || ways[a].radix != ways[b].radix);
            }
        }
    }
}

/* On links that are ten times as fast, the link term is a tenth. */
Test(predict, another_rate_scales_the_link)
{
    struct predict_models models;
    fit_sweep(&models, 0);
    const struct predict_model *model = &models.models[0];
    const struct predict_cluster fast = {.workers = 8, .bytes_per_s = 250e6}, /* 25e6 fitted */
        far = {.workers = 8, .added_latency_s = 1e-3};
    struct predict_model on_fast = predict_model_on(model, &fast);
    struct predict_model on_far = predict_model_on(model, &far);
    const struct predict_terms *constants = &model->fit.constants;
    cr_expect_float_eq(on_fast.fit.constants.of[TERM_LINK] * 10 / constants->of[TERM_LINK], 1,
                       1e-9);
    cr_expect(!on_fast.one_machine && model->one_machine);
    /* Long chunks and slices hide the latency of all steps but one. A short vector shows it in all
     * 2(W-1), and with halving-doubling in 6. What is shown is combined with the processors' time.
     */
    static const struct {
        struct predict_way way;
        uint64_t bytes;
        int shown;
    } cases[] = {{{.backend = "ring"}, 4 << 20, 1},
                 {{.backend = "ring"}, 4096, 14},
                 {{.backend = "rhd"}, 4 << 20, 1},
                 {{.backend = "rhd"}, 4096, 6},
                 {{.backend = "ps", .servers = 1}, 4 << 20, 2}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double more = seconds_of(&on_far, cases[c].way, 8, cases[c].bytes) -
                      seconds_of(model, cases[c].way, 8, cases[c].bytes);
        cr_expect(more > 0.9e-3 * cases[c].shown && more <= 1.0001e-3 * cases[c].shown,
                  "case %zu: %g s more", c, more);
    }
    predict_models_free(&models);
}

/* Over several operations a link carries at most its rate, even with bursts, and also if one
 * direction idles while a server receives pushes. If only the idle time limits it, it carries
 * exactly its rate. */
Test(predict, bursts_are_within_the_rate)
{
    struct sweep sweep;
    int at_the_rate = 0, faster_after_long = 0;
    make_sweep(&sweep, 0, 1);
    for (size_t i = 0; i < sweep.rows.count; i++) {
        struct predict_row row = sweep.rows.rows[i];
        row.rest_s = 2e-4;
        struct predict_terms terms = terms_of(&row), often = predict_seconds(&terms, &truth);
        terms.rest_s = 0;
        struct predict_terms seldom = predict_seconds(&terms, &truth);
        double both_ways = (terms.of[TERM_LINK] - terms.fill_bytes) * truth.of[TERM_LINK];
        double links = often.of[TERM_LINK] + often.of[TERM_BURST] + often.of[TERM_FILL_BURST];
        if (both_ways < row.rest_s) /* less than the link can carry in that time */
            continue;
        cr_expect_geq(links + row.rest_s, both_ways * (1 - 1e-9), "%s %s %d %d %llu: %g",
                      row.backend, row.placement, row.workers, row.servers,
                      (unsigned long long)row.bytes, links);
        bool fills = terms.fill_bytes * truth.of[TERM_LINK] > truth.of[TERM_FILL_BURST];
        at_the_rate += fills && links + row.rest_s < both_ways * (1 + 1e-9);
        faster_after_long += seldom.of[TERM_BURST] < often.of[TERM_BURST];
    }
    cr_expect_gt(at_the_rate, 10);
    cr_expect_gt(faster_after_long, at_the_rate);
    predict_rows_free(&sweep.rows);
}

Test(predict, says_what_is_outside)
{
    struct predict_models models;
    char text[256];
    fit_sweep(&models, 0);
    const struct predict_cluster inside = {.workers = 8},
                                 outside = {.workers = 64, .bytes_per_s = 3.125e9};
    predict_outside(&models.models[0], &inside, 4, 1 << 20, 1 << 20, text, sizeof text);
    cr_expect_str_eq(text, "");
    predict_outside(&models.models[0], &outside, 4, 1000, 1000, text, sizeof text);
    cr_expect(strstr(text, "8 times the most workers fitted (8)") &&
                  strstr(text, "below the fewest bytes fitted (65536)") &&
                  strstr(text, "125 times the rate fitted"),
              "%s", text);
    predict_models_free(&models);
}

/* A way is faster if the times differ by more than the errors. Between both ranges the comparison
 * is undecided. The places need no order by time. */
Test(predict, what_is_faster_is_compared_place_by_place)
{
    struct predict_models models;
    fit_sweep(&models, 0.01);
    const struct predict_model *model = &models.models[0];
    static const int servers[] = {1, 8, 2, 7, 3, 6, 4, 5};
    enum { PLACES = sizeof servers / sizeof *servers };
    struct predict_curves curves = {0};
    enum predict_faster faster[PREDICT_POINTS_MOST];
    size_t told[3] = {0};
    for (int i = 0; i < PLACES; i++) {
        const struct predict_way way = {
            .backend = "ps", .placement = PLACEMENT_DEDICATED, .servers = servers[i]};
        curves.x[curves.count] = i + 1;
        cr_assert(predict_way_terms(model, &way, 8, NULL, 1 << 22, COMPRESS_NONE,
                                    &curves.one[curves.count]));
        cr_assert(predict_way_terms(model, &ring, 8, NULL, 1 << 22, COMPRESS_NONE,
                                    &curves.other[curves.count++]));
    }
    cr_assert(predict_compare(&model->fit, &curves, faster));
    double ring_s = seconds_of(model, ring, 8, 16 << 20);
    for (int i = 0; i < PLACES; i++) {
        const struct predict_way way = {
            .backend = "ps", .placement = PLACEMENT_DEDICATED, .servers = servers[i]};
        double ratio = seconds_of(model, way, 8, 16 << 20) / ring_s;
        told[faster[i]]++;
        cr_expect(faster[i] != PREDICT_ONE_FASTER || ratio < 1, "%d servers: %g", servers[i],
                  ratio);
        cr_expect(faster[i] != PREDICT_OTHER_FASTER || ratio > 1, "%d servers: %g", servers[i],
                  ratio);
        cr_expect(fabs(ratio - 1) < 0.2 || faster[i] != PREDICT_NOT_TOLD, "%d servers: %g",
                  servers[i], ratio);
    }
    cr_expect(told[PREDICT_ONE_FASTER] >= 2 && told[PREDICT_OTHER_FASTER] >= 2);

    /* Equal times: neither is faster. */
    memcpy(curves.other, curves.one, sizeof curves.other);
    cr_assert(predict_compare(&model->fit, &curves, faster));
    for (int i = 0; i < PLACES; i++)
        cr_expect_eq(faster[i], PREDICT_NOT_TOLD);
    predict_models_free(&models);
}

static const char *forecast(const struct predict_model *model,
                            const struct predict_cluster *cluster, uint64_t bytes)
{
    static char text[8192];
    memset(text, 0, sizeof text);
    FILE *file = fmemopen(text, sizeof text - 1, "w");
    cr_assert(file);
    predict_print_forecast(file, model, cluster, &bytes, 1, 1);
    fclose(file);
    return text;
}

static size_t count_of(const char *text, const char *words)
{
    size_t found = 0;
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
        found++;
    return found;
}

/* The table has servers that are faster and slower than the ring, as ranges of the compared
 * numbers. A way is the fastest only if its interval overlaps no other. */
Test(predict, a_forecast_claims_what_it_compared)
{
    struct predict_models models;
    fit_sweep(&models, 0.01);
    struct predict_model *model = &models.models[0];
    const struct predict_cluster cluster = {.workers = 8, .spare = 5};
    const char *text = forecast(model, &cluster, 16 << 20);
    cr_expect_eq(count_of(text, "  fastest"), 1, "%s", text);
    cr_expect_eq(count_of(text, "intervals overlap"), 0, "%s", text);
    cr_expect(strstr(text, "16777216 bytes: ps dedicated and the ring, numbers of servers compared "
                           "at 1 to 8: ps faster at "),
              "%s", text);
    cr_expect(strstr(text, "the ring faster at 1 to "), "%s", text);
    cr_expect(strstr(text, "sizes compared at 64 bytes to 1.07 GB: "), "%s", text);
    cr_expect(!strstr(text, "any number") && !strstr(text, "no number") &&
                  !strstr(text, "every size") && !strstr(text, "no size"),
              "%s", text);

    for (size_t e = 0; e < model->fit.error_count; e++)
        model->fit.errors[e].error =
            0.7; /* measurements differ from the prediction by a factor of two */
    text = forecast(model, &cluster, 16 << 20);
    cr_expect_eq(count_of(text, "  fastest"), 0, "%s", text);
    cr_expect_geq(count_of(text, "among the fastest (intervals overlap)"), 2, "%s", text);
    cr_expect(strstr(text, "numbers of servers compared at 1 to 8: "), "%s", text);
    cr_expect(strstr(text, "undecided at "), "%s", text);

    model->fit.error_count = 18;
    text = forecast(model, &cluster, 16 << 20);
    cr_expect(strstr(text, "[no interval]  among the fastest"), "%s", text);
    cr_expect(strstr(text, "numbers of servers not compared: too few errors are known"), "%s",
              text);
    predict_models_free(&models);
}

/* More bytes, more workers per server or a slower link never make it faster. */
Test(predict, is_monotonic)
{
    struct predict_models models;
    fit_sweep(&models, 0);
    const struct predict_model *model = &models.models[0];
    const struct predict_way ways[] = {
        ring,
        {.backend = "rhd"},
        {.backend = "tree"},
        {.backend = "ps", .servers = 2},
        {.backend = "ps", .placement = PLACEMENT_MIXED, .servers = 2}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        double before = 0;
        for (size_t bytes = 1 << 18; bytes <= 64 << 20; bytes *= 2) {
            double now = seconds_of(model, ways[w], 4, bytes);
            cr_expect(now >= before, "%s: %zu bytes", ways[w].backend, bytes);
            before = now;
        }
    }
    for (int workers = 2; workers < 64; workers++)
        cr_expect(seconds_of(model, ways[2], workers + 1, 4 << 20) >
                  seconds_of(model, ways[2], workers, 4 << 20));
    predict_models_free(&models);
}

/* -------- training steps ---------------------------------------------------------------------- */

/* One bucket cannot hide: a step is computation plus its whole travel time. */
Test(predict, one_bucket_is_exposed)
{
    struct predict_step step;
    struct predict_travel travel = {0.2, 0, 0};
    double scratch[2];
    cr_assert(predict_step_open(&step, "keras-cnn", 0) == STATUS_OK);
    cr_expect(step.bucket_count == 1 && step.bytes == 4799528);
    cr_expect_float_eq(predict_step_time(&step, 0.1, &travel, true, scratch), 0.3, 1e-9);
    travel = (struct predict_travel){0.2, 0.05, 0.1}; /* links idle during computation */
    cr_expect_float_eq(predict_step_time(&step, 0.1, &travel, true, scratch), 0.25, 1e-9);
    travel.rest_s = 0.2;
    cr_expect_float_eq(predict_step_time(&step, 0.1, &travel, true, scratch), 0.275, 1e-9);
    predict_step_free(&step);
}

/* A step takes at least the computation and at least the travel time, and at most their sum. Waits
 * that are deferred to the next forward pass never make it longer. */
Test(predict, a_step_is_between_its_parts)
{
    static const char *const models[] = {"keras-cnn", "resnet50", "vgg16", "gpt2"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        struct predict_step step;
        cr_assert(predict_step_open(&step, models[m], 4 << 20) == STATUS_OK);
        struct predict_travel *travels = calloc(step.bucket_count, sizeof *travels);
        double *scratch = calloc(2 * step.bucket_count, sizeof *scratch);
        for (double rate = 1e8; rate < 1e11; rate *= 4) {
            double travel_s = 0, compute_s = 0.1;
            for (size_t b = 0; b < step.bucket_count; b++)
                travel_s += travels[b].seconds =
                    (double)step.buckets[b].count * sizeof(float) / rate;
            double waits = predict_step_time(&step, compute_s, travels, false, scratch);
            double defers = predict_step_time(&step, compute_s, travels, true, scratch);
            cr_expect(defers >= fmax(compute_s, travel_s) * (1 - 1e-9), "%s", models[m]);
            cr_expect(waits <= (compute_s + travel_s) * (1 + 1e-9), "%s", models[m]);
            cr_expect(defers <= waits * (1 + 1e-9), "%s at %g: %g, %g", models[m], rate, defers,
                      waits);
        }
        free(travels);
        free(scratch);
        predict_step_free(&step);
    }
}

Test(predict, refuses_an_unknown_model)
{
    struct predict_step step;
    assert_refused(predict_step_open(&step, "alexnet", 0), STATUS_USAGE, "no such model");
    predict_step_free(&step);
}

/* -------- advice ------------------------------------------------------------------------------ */

static struct predict_advice advice_of(const struct predict_models *models,
                                       struct predict_cluster cluster, double compute_s)
{
    struct predict_advice advice;
    const struct predict_training training = {
        .model = "keras-cnn", .compute_s = compute_s, .batch = 64, .images = 60000, .epochs = 1};
    cr_assert(predict_advise(models, "vcluster:200mbit", &cluster, &training, &advice) ==
              STATUS_OK);
    cr_assert(advice.found);
    return advice;
}

/* The advice needs only existing machines. As many spare machines as workers are the fastest, but
 * cost more. */
Test(predict, advice_counts_machines)
{
    struct predict_models models;
    fit_sweep(&models, 0.01);
    struct predict_advice alone = advice_of(&models, (struct predict_cluster){.workers = 8}, 0.1);
    cr_expect(alone.fastest.machines == 8 && alone.cheapest.machines == 8);
    struct predict_advice spare =
        advice_of(&models, (struct predict_cluster){.workers = 8, .spare = 8}, 0.1);
    cr_expect(strcmp(spare.fastest.way.backend, "ps") == 0 && spare.fastest.machines > 8);
    cr_expect(spare.fastest.epoch_s < alone.fastest.epoch_s);
    cr_expect(spare.cheapest.epoch_machine_s <= spare.fastest.epoch_machine_s);
    cr_expect(spare.other.model && strcmp(spare.other.way.backend, "ps") != 0);
    cr_expect(spare.compressed.step.seconds < spare.fastest.step.seconds);
    predict_models_free(&models);
}

/* With long computation and fast links, a step is its computation, and fp16 saves nothing. */
Test(predict, advice_knows_when_the_network_is_no_matter)
{
    struct predict_models models;
    fit_sweep(&models, 0.01);
    struct predict_advice advice =
        advice_of(&models, (struct predict_cluster){.workers = 8, .bytes_per_s = 12.5e9}, 10);
    cr_expect(advice.fastest.step.seconds < 10 * 1.01);
    cr_expect(advice.compressed.step.seconds > advice.fastest.step.seconds * 0.99);
    struct predict_advice absent;
    const struct predict_cluster cluster = {.workers = 8};
    const struct predict_training training = {
        .model = "keras-cnn", .compute_s = 1, .batch = 64, .images = 60000, .epochs = 1};
    cr_assert(predict_advise(&models, "elsewhere", &cluster, &training, &absent) == STATUS_OK);
    cr_expect(!absent.found);
    predict_models_free(&models);
}
