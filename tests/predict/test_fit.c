/* psring predict --fit: the fit finds the constants of synthetic measurements, intervals have their
 * coverage, and a bad bench.csv or model.json is refused with one line. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/predict/predict.h"
#include "experiments/predict/model.h"
#include "tests/lib/capture.h"
#include "tests/lib/sweep_lib.h"

static char folder[] = "/tmp/test_fit.XXXXXX";
static char bench[64], model_json[64];

static void make_folder(void)
{
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(bench, sizeof bench, "%s/bench.csv", folder);
    snprintf(model_json, sizeof model_json, "%s/model.json", folder);
}

static void remove_folder(void)
{
    unlink(bench);
    unlink(model_json);
    rmdir(folder);
}

TestSuite(fit, .init = make_folder, .fini = remove_folder);

static struct predict_score score_of(const struct predict_models *models,
                                     const struct predict_rows *rows, enum predict_use use)
{
    struct predict_score score = {0};
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->rows[i].use == use)
            predict_score_add(&score, &rows->rows[i],
                              predict_time(&models->models[0].fit, &rows->rows[i].terms));
    }
    return score;
}

/* -------- the fit ----------------------------------------------------------------------------- */

static void expect_constants(struct sweep *sweep, double distance_s)
{
    struct predict_models models;
    cr_assert(predict_models_fit(&models, &sweep->rows, "none", 1) == STATUS_OK);
    cr_assert(models.count == 1);
    cr_expect_float_eq(models.models[0].distance_s, distance_s, 1e-9);
    for (int t = 0; t < PREDICT_TERMS; t++)
        cr_expect_float_eq(models.models[0].fit.constants.of[t] / truth.of[t], 1, 1e-3, "%s: %g",
                           predict_term_names[t], models.models[0].fit.constants.of[t]);
    predict_models_free(&models);
    predict_rows_free(&sweep->rows);
}

Test(fit, gives_constants_back)
{
    struct sweep sweep;
    make_sweep(&sweep, 0, 1);
    expect_constants(&sweep, 0);
}

/* A measured round trip is no constant: the times contain what it costs each way. */
Test(fit, gives_constants_back_at_a_distance)
{
    struct sweep sweep;
    make_sweep(&sweep, 0, 1);
    for (size_t i = 0; i < sweep.rows.count; i++) {
        struct predict_row *row = &sweep.rows.rows[i];
        double near_s = row->median_s;
        row->round_trip_us = 20e3;
        row->median_s = parts_of(row).together;
        cr_assert(row->median_s > near_s);
    }
    expect_constants(&sweep, 0.01);
}

/* In rows that links limited, times hardly depend on the work of the cores. The busy time of the
 * cores shows it. */
Test(fit, takes_the_cores_from_how_long_they_were_busy)
{
    const double noise = 0.02;
    double off[2]; /* relative error of the processor time in rows that the cores would limit */
    for (int known = 0; known < 2; known++) {
        struct sweep sweep;
        struct predict_models models;
        make_sweep(&sweep, noise, 5);
        size_t kept = 0, count = sweep.rows.count;
        double sum = 0, rows = 0;
        for (size_t i = 0; i < count; i++) {
            struct predict_row row = sweep.rows.rows[i];
            struct predict_parts parts = parts_of(&row);
            if (parts.processors > 0.3 * parts.network)
                continue;
            row.cpu_busy = known ? parts.processors / row.median_s * (i % 2 ? 1.1 : 0.9) : 0;
            sweep.rows.rows[kept++] = row;
        }
        cr_assert(kept > 100 && kept < count);
        sweep.rows.count = kept;
        cr_assert(predict_models_fit(&models, &sweep.rows, "none", 1) == STATUS_OK);
        predict_rows_free(&sweep.rows);

        make_sweep(&sweep, noise, 5);
        for (size_t i = 0; i < sweep.rows.count; i++) {
            struct predict_parts parts = parts_of(&sweep.rows.rows[i]);
            if (parts.processors <= 0.3 * parts.network)
                continue;
            struct predict_terms terms = terms_of(&sweep.rows.rows[i]);
            struct predict_terms seconds = predict_seconds(&terms, &models.models[0].fit.constants);
            sum += fabs(predict_parts_of(&seconds).processors / parts.processors - 1);
            rows++;
        }
        off[known] = sum / rows;
        predict_models_free(&models);
        predict_rows_free(&sweep.rows);
    }
    cr_expect(off[1] < 0.03 && off[1] < off[0] / 2, "%g, from times alone %g", off[1], off[0]);
}

/* The burst is found even if links were hardly idle before some rows. */
Test(fit, gives_a_burst_back_that_was_cut)
{
    struct sweep sweep;
    struct predict_models models;
    make_sweep(&sweep, 0, 1);
    for (size_t i = 0; i < sweep.rows.count; i++) {
        if (i % 3 > 0)
            rest(&sweep.rows.rows[i], 1e-4 + 1e-9 * (double)sweep.rows.rows[i].bytes);
    }
    cr_assert(predict_models_fit(&models, &sweep.rows, "none", 1) == STATUS_OK);
    for (int t = 0; t < PREDICT_TERMS; t++)
        cr_expect_float_eq(models.models[0].fit.constants.of[t] / truth.of[t], 1, 1e-2, "%s: %g",
                           predict_term_names[t], models.models[0].fit.constants.of[t]);
    predict_models_free(&models);
    predict_rows_free(&sweep.rows);
}

/* With noise, the interval of each constant contains the truth in most sweeps. */
Test(fit, intervals_hold_constants)
{
    enum { SWEEPS = 6 };
    int held = 0, held_of[PREDICT_TERMS] = {0};
    for (uint64_t seed = 1; seed <= SWEEPS; seed++) {
        struct sweep sweep;
        struct predict_models models;
        make_sweep(&sweep, 0.02, seed);
        cr_assert(predict_models_fit(&models, &sweep.rows,
                                     "workers=3,workers=4,workers=5,workers=7,"
                                     "bytes=262144",
                                     seed) == STATUS_OK);
        const struct predict_fit *fit = &models.models[0].fit;
        for (int t = 0; t < PREDICT_TERMS; t++) {
            held_of[t] += truth.of[t] >= fit->low.of[t] && truth.of[t] <= fit->high.of[t];
            cr_expect(fit->low.of[t] <= fit->constants.of[t] &&
                      fit->constants.of[t] <= fit->high.of[t]);
        }
        cr_expect_float_eq(fit->constants.of[TERM_LINK] / truth.of[TERM_LINK], 1, 0.02);
        predict_models_free(&models);
        predict_rows_free(&sweep.rows);
    }
    for (int t = 0; t < PREDICT_TERMS; t++) {
        held += held_of[t];
        cr_expect(held_of[t] >= SWEEPS / 2, "%s: %d of %d", predict_term_names[t], held_of[t],
                  SWEEPS);
    }
    cr_expect(held >= 40, "%d of %d intervals hold the truth", held, SWEEPS * PREDICT_TERMS);
}

/* 90 to 99% of the rows that were not fitted lie in their 95% interval. */
Test(fit, coverage_holds)
{
    enum { SWEEPS = 4 };
    size_t rows = 0, within = 0;
    for (uint64_t seed = 1; seed <= SWEEPS; seed++) {
        struct sweep sweep;
        struct predict_models models;
        make_sweep(&sweep, 0.02, 100 + seed);
        cr_assert(predict_models_fit(&models, &sweep.rows, "auto", seed) == STATUS_OK);
        struct predict_score score = score_of(&models, &sweep.rows, PREDICT_HOLD_OUT);
        cr_expect(score.rows > 150 && models.models[0].fitted > 100);
        cr_expect(predict_score_mean(&score) < 0.025, "%g", predict_score_mean(&score));
        rows += score.rows;
        within += score.within;
        predict_models_free(&models);
        predict_rows_free(&sweep.rows);
    }
    double share = (double)within / (double)rows;
    cr_expect(share >= 0.9 && share <= 0.99, "%zu of %zu within", within, rows);
}

/* The ceil(0.95 (n + 1))-th smallest of n errors; none for too few errors. */
Test(fit, the_conformal_error_is_one_of_the_errors)
{
    cr_expect_eq(predict_conformal_rank(0), 0);
    cr_expect_eq(predict_conformal_rank(18), 0);
    cr_expect_eq(predict_conformal_rank(19), 19);
    cr_expect_eq(predict_conformal_rank(20), 20);
    cr_expect_eq(predict_conformal_rank(38), 38);
    cr_expect_eq(predict_conformal_rank(39), 38);
    cr_expect_eq(predict_conformal_rank(100), 96);
    cr_expect_eq(predict_conformal_rank(1024), 974);

    /* A time of 1 s for every message, and errors of 1, 2, 3 ... hundredths. */
    struct predict_error errors[39];
    const struct predict_terms terms = {.of = {[TERM_LATENCY] = 1}};
    struct predict_fit fit = {.constants = {.of = {[TERM_LATENCY] = 1}}, .errors = errors};
    char text[PREDICT_INTERVAL_BYTES];
    for (int i = 0; i < 39; i++)
        errors[i] = (struct predict_error){.seconds = 1, .error = (i + 1) / 100.0};
    fit.error_count = 19;
    struct predict_interval interval = predict_time(&fit, &terms);
    cr_expect_float_eq(interval.high, exp(0.19), 1e-9);
    cr_expect_float_eq(interval.low, exp(-0.19), 1e-9);
    cr_expect_str_eq(predict_interval_text(interval, 1e3, 1, text), "[827.0, 1209.2]");
    fit.error_count = 18;
    interval = predict_time(&fit, &terms);
    cr_expect(!predict_has_interval(interval) && interval.low == 0);
    cr_expect_str_eq(predict_interval_text(interval, 1e3, 1, text), "[no interval]");
}

Test(fit, an_outlier_changes_little)
{
    struct sweep sweep;
    struct predict_models models;
    make_sweep(&sweep, 0.01, 7);
    for (size_t i = 0; i < sweep.rows.count; i += 25)
        sweep.rows.rows[i].median_s *= 5;
    cr_assert(predict_models_fit(&models, &sweep.rows, "none", 1) == STATUS_OK);
    cr_expect_float_eq(models.models[0].fit.constants.of[TERM_LINK] / truth.of[TERM_LINK], 1, 0.01);
    predict_models_free(&models);
    predict_rows_free(&sweep.rows);
}

Test(fit, same_seed_same_intervals)
{
    struct sweep sweep;
    struct predict_models one, other;
    make_sweep(&sweep, 0.02, 3);
    cr_assert(predict_models_fit(&one, &sweep.rows, "auto", 5) == STATUS_OK);
    cr_assert(predict_models_fit(&other, &sweep.rows, "auto", 5) == STATUS_OK);
    cr_expect(memcmp(&one.models[0].fit.low, &other.models[0].fit.low,
                     sizeof one.models[0].fit.low) == 0);
    predict_models_free(&one);
    predict_models_free(&other);
    predict_rows_free(&sweep.rows);
}

Test(fit, model_file_keeps_predictions)
{
    struct sweep sweep;
    struct predict_models fitted, read;
    make_sweep(&sweep, 0.02, 3);
    cr_assert(predict_models_fit(&fitted, &sweep.rows, "auto", 5) == STATUS_OK);
    FILE *unread = fopen("/dev/null", "w");
    cr_assert(unread && predict_print_regret(unread, &fitted, &sweep.rows) == STATUS_OK);
    fclose(unread);
    cr_assert(predict_models_write(&fitted, model_json) == STATUS_OK);
    cr_assert(predict_models_read(&read, model_json) == STATUS_OK);
    cr_assert(read.count == 1);
    cr_expect(read.choice.cases > 50 && read.choice.cases == fitted.choice.cases);
    cr_expect_float_eq(read.choice.mean, fitted.choice.mean, 1e-12);
    cr_expect_float_eq(read.choice.worst, fitted.choice.worst, 1e-12);
    cr_expect(read.models[0].workers.most == 8 && read.models[0].bytes.least == 65536);
    for (size_t i = 0; i < sweep.rows.count; i++) {
        struct predict_interval a = predict_time(&fitted.models[0].fit, &sweep.rows.rows[i].terms);
        struct predict_interval b = predict_time(&read.models[0].fit, &sweep.rows.rows[i].terms);
        cr_expect(fabs(a.seconds / b.seconds - 1) < 1e-9 && fabs(a.high / b.high - 1) < 1e-6);
    }
    predict_models_free(&fitted);
    predict_models_free(&read);
    predict_rows_free(&sweep.rows);
}

/* A transport with few rows uses the links of the other transports of its network. */
Test(fit, few_rows_are_helped)
{
    struct sweep sweep;
    struct predict_models models;
    make_sweep(&sweep, 0.01, 9);
    size_t few = 0;
    for (size_t i = 0; i < sweep.rows.count; i += 140)
        few += (size_t)snprintf(sweep.rows.rows[i].transport, PREDICT_WORD, "tcp") == 3;
    cr_assert(few >= PREDICT_POOLED_LEAST && few < PREDICT_FIT_LEAST);
    cr_assert(predict_models_fit(&models, &sweep.rows, "none", 1) == STATUS_OK);
    cr_assert(models.count == 2);
    const struct predict_model *tcp =
        &models.models[strcmp(models.models[1].transport, "tcp") == 0];
    cr_expect(tcp->pooled && tcp->fitted == few);
    cr_expect_float_eq(tcp->fit.constants.of[TERM_LINK] / truth.of[TERM_LINK], 1, 0.02);
    cr_expect_float_eq(tcp->fit.constants.of[TERM_BURST] / truth.of[TERM_BURST], 1, 0.2);
    predict_models_free(&models);
    predict_rows_free(&sweep.rows);
}

/* Exception: its own rows know how long the cores were busy, so they determine the cost of its
 * messages. */
Test(fit, own_cores_are_not_others)
{
    const double times = 8; /* how much more its messages cost the cores */
    struct sweep sweep;
    struct predict_models models;
    make_sweep(&sweep, 0.01, 9);
    for (size_t i = 0; i < sweep.rows.count; i++) {
        struct predict_row *row = &sweep.rows.rows[i];
        if (i % 140 > 0) {
            snprintf(row->transport, PREDICT_WORD, "tcp");
            continue;
        }
        struct predict_terms terms = terms_of(row), dear = truth;
        dear.of[TERM_CPU_MESSAGE] *= times;
        struct predict_terms seconds = predict_seconds(&terms, &dear);
        row->median_s = predict_parts_of(&seconds).together;
        row->cpu_busy = predict_parts_of(&seconds).processors / row->median_s;
    }
    cr_assert(predict_models_fit(&models, &sweep.rows, "none", 1) == STATUS_OK);
    cr_assert(models.count == 2);
    const struct predict_model *zmq =
        &models.models[strcmp(models.models[1].transport, "zmq") == 0];
    double fitted = zmq->fit.constants.of[TERM_CPU_MESSAGE];
    cr_expect(zmq->pooled);
    cr_expect_float_eq(fitted / (times * truth.of[TERM_CPU_MESSAGE]), 1, 0.1, "%g", fitted);
    predict_models_free(&models);
    predict_rows_free(&sweep.rows);
}

/* Two transports have one row less than a fit needs. Neither has enough rows to help the other, and
 * its own rows count only once. */
Test(fit, own_rows_are_no_help)
{
    struct sweep sweep;
    struct predict_models models;
    make_sweep(&sweep, 0.01, 9);
    for (size_t i = 0; i < sweep.rows.count; i++) {
        struct predict_row *row = &sweep.rows.rows[i];
        size_t one = i % 40, of = i / 40;
        snprintf(row->transport, PREDICT_WORD, "%s", one == 0 ? "tcp" : one == 1 ? "mpi" : "zmq");
        if (of >= PREDICT_FIT_LEAST - 1 || one > 1)
            row->wrong = 1; /* not used */
    }
    cr_expect(predict_models_fit(&models, &sweep.rows, "none", 1) == STATUS_INPUT);
    predict_models_free(&models);
    predict_rows_free(&sweep.rows);
}

/* Rows without information are left out, with the reason. */
Test(fit, leaves_out_what_tells_nothing)
{
    struct sweep sweep;
    struct predict_models models;
    make_sweep(&sweep, 0.01, 2);
    struct predict_row *rows = sweep.rows.rows;
    rows[7].cpu_busy = rows[0].cpu_busy = 0.99; /* one row is limited by psring itself */
    rows[0].cpu_other = 0.5;
    rows[1].wrong = 1;
    rows[2].workers = 1;
    snprintf(rows[4].model, PREDICT_WORD, "vgg16");
    snprintf(rows[5].network, PREDICT_WORD, "time-slicing");
    snprintf(rows[6].backend, PREDICT_WORD, "another");
    snprintf(rows[8].network, PREDICT_WORD, "vcluster:200mbit/racks:4x100mbit");
    snprintf(rows[9].backend, PREDICT_WORD, "nccl");
    snprintf(rows[10].backend, PREDICT_WORD, "nccl");
    snprintf(rows[10].nccl, PREDICT_WORD, "tree/simple");
    snprintf(rows[11].device, PREDICT_WORD, "cuda");
    cr_assert(predict_models_fit(&models, &sweep.rows, "none", 1) == STATUS_OK);
    for (int i = 0; i < 7; i++)
        cr_expect(i == 3 || (rows[i].use == PREDICT_NOT_USED && rows[i].why), "row %d", i);
    cr_expect(rows[7].use == PREDICT_FIT && !rows[7].why);
    cr_expect(rows[8].use == PREDICT_NOT_USED);
    cr_expect_str_eq(rows[8].why, "its links have different rates");
    cr_expect_str_eq(rows[0].why, "the machine was busy with other work");
    cr_expect(rows[9].use == PREDICT_NOT_USED && rows[10].use == PREDICT_NOT_USED);
    cr_expect_str_eq(rows[9].why, "NCCL's algorithm is not known");
    cr_expect_str_eq(rows[10].why, "NCCL used another algorithm than the ring");
    cr_expect(rows[11].use == PREDICT_NOT_USED && rows[11].why);
    predict_models_free(&models);
    predict_rows_free(&sweep.rows);
}

/* -------- regret ------------------------------------------------------------------------------ */

/* A row of four workers that the model of predict_regret predicts to take `predicted_s`. */
static struct predict_row case_row(const char *backend, const char *placement, int servers,
                                   double predicted_s, double measured_s)
{
    struct predict_row row = {.runs = 1,
                              .workers = 4,
                              .servers = servers,
                              .bytes = 1024,
                              .median_s = measured_s,
                              .use = PREDICT_HOLD_OUT,
                              .terms = {.of = {[TERM_LATENCY] = predicted_s}}};
    snprintf(row.backend, sizeof row.backend, "%s", backend);
    snprintf(row.placement, sizeof row.placement, "%s", placement);
    snprintf(row.transport, sizeof row.transport, "%s",
             strcmp(backend, "mpi") == 0 ? "none" : "tcp");
    return row;
}

/* With four machines the model chooses rhd, which is 20% slower than the ring (measured twice: 1
 * and 1.21). With six machines it rightly chooses servers on spare machines, although busy CPUs
 * kept their row out of the fit. A server in the switch is never a choice. */
Test(fit, regret_is_of_what_there_are_machines_for)
{
    struct predict_error error = {1, 0.01};
    struct predict_model model = {
        .fit = {.constants = {.of = {[TERM_LATENCY] = 1}}, .errors = &error, .error_count = 1}};
    const struct predict_models models = {.models = &model, .count = 1};
    struct predict_row list[] = {
        case_row("ring", "none", 0, 2, 1),         case_row("rhd", "none", 0, 1.5, 1.32),
        case_row("ring", "none", 0, 2, 1.21),      case_row("mpi", "none", 0, 0.1, 0.2),
        case_row("ps", "dedicated", 2, 0.5, 0.75), case_row("ps", "colocated", 2, 3, 2),
        case_row("ps", "switch", 1, 0.4, 0.5),     case_row("rhd", "none", 0, 2.5, 5)};
    struct predict_rows rows = {.rows = list, .count = sizeof list / sizeof *list};
    struct predict_regret regret;
    list[4].use = PREDICT_NOT_USED;
    list[7].radix = 4; /* another way than rhd of radix 2 */
    cr_assert(predict_regret_of(&regret, &models, &rows, PREDICT_HOLD_OUT, NULL, NULL) ==
              STATUS_OK);
    cr_expect(regret.cases == 2 && regret.fastest == 1 && regret.near == 1 && regret.far == 1);
    cr_expect_float_eq(predict_decision_regret(&regret.worst), 0.2, 1e-9);
    cr_expect(regret.worst.machines == 4);
    cr_expect_str_eq(regret.worst.chosen->backend, "rhd");
    cr_expect_float_eq(predict_regret_mean(&regret), sqrt(1.2) - 1, 1e-9);
    cr_assert(predict_regret_of(&regret, &models, &rows, PREDICT_HOLD_OUT, "ring", NULL) ==
              STATUS_OK);
    cr_expect_float_eq(predict_decision_regret(&regret.worst), 1.1 / 0.75 - 1, 1e-9);
    list[0].use = PREDICT_FIT; /* the case is then neither held out nor fitted */
    cr_assert(predict_regret_of(&regret, &models, &rows, PREDICT_HOLD_OUT, NULL, NULL) ==
              STATUS_OK);
    cr_expect(regret.cases == 0);
}

/* Times that follow the model cause no regret. */
Test(fit, exact_times_leave_no_regret)
{
    struct sweep sweep;
    struct predict_models models;
    struct predict_regret regret, ring;
    make_sweep(&sweep, 0, 1);
    cr_assert(predict_models_fit(&models, &sweep.rows, "auto", 1) == STATUS_OK);
    cr_assert(predict_regret_of(&regret, &models, &sweep.rows, PREDICT_HOLD_OUT, NULL, NULL) ==
              STATUS_OK);
    cr_expect(regret.cases > 50 && regret.near == regret.cases && regret.far == 0);
    cr_assert(predict_regret_of(&ring, &models, &sweep.rows, PREDICT_HOLD_OUT, "ring", NULL) ==
              STATUS_OK);
    cr_expect(ring.cases == regret.cases && ring.far > 0);
    predict_models_free(&models);
    predict_rows_free(&sweep.rows);
}

/* -------- several runs of one point ------------------------------------------------------------
 */

/* Three runs of each point, one of which takes 1.5 times as long. The medians are the times. */
Test(fit, runs_of_a_point_are_their_median)
{
    struct sweep sweep;
    struct predict_models once, models;
    make_sweep(&sweep, 0, 1);
    const size_t points = sweep.rows.count;
    cr_assert(predict_models_fit(&once, &sweep.rows, "auto", 1) == STATUS_OK);
    struct predict_score exact = score_of(&once, &sweep.rows, PREDICT_HOLD_OUT);
    predict_models_free(&once);
    predict_rows_free(&sweep.rows);

    make_sweep(&sweep, 0, 1);
    cr_assert(3 * points <= sweep.rows.room);
    for (size_t i = 0; i < points; i++) {
        struct predict_row *row = &sweep.rows.rows[i];
        sweep.rows.rows[points + i] = sweep.rows.rows[2 * points + i] = *row;
        sweep.rows.rows[(i % 3) * points + i].median_s *= 1.5;
    }
    struct predict_row *disturbed = &sweep.rows.rows[2 * points];
    disturbed->cpu_busy = 1; /* by other processes: not a run of this point */
    disturbed->cpu_other = 0.9;
    sweep.rows.count = 3 * points;
    cr_assert(predict_models_fit(&models, &sweep.rows, "auto", 1) == STATUS_OK);
    cr_assert(sweep.rows.count == points + 1, "%zu rows of %zu points", sweep.rows.count, points);
    cr_expect(sweep.rows.rows[0].runs == 2 && sweep.rows.rows[1].runs == 3);
    cr_expect(sweep.rows.rows[1].run_spread > 0.25 && sweep.rows.rows[1].run_spread < 0.3, "%g",
              sweep.rows.rows[1].run_spread);
    struct predict_score score = score_of(&models, &sweep.rows, PREDICT_HOLD_OUT);
    cr_expect(score.rows == exact.rows && predict_score_mean(&score) < 0.005, "%zu rows, %g",
              score.rows, predict_score_mean(&score));
    predict_models_free(&models);
    predict_rows_free(&sweep.rows);
}

/* -------- bad files --------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

#define HEADER "backend,transport,network,workers,servers,placement,bytes,time_us_median\n"

static void refuse_bench(const char *text, const char *words)
{
    struct predict_rows rows = {0};
    write_file(bench, text);
    assert_refused(predict_rows_read(&rows, bench), STATUS_INPUT, words);
    predict_rows_free(&rows);
}

Test(fit, refuses_bad_bench)
{
    refuse_bench("", "empty");
    refuse_bench("a,b,c\n1,2,3\n", "no column backend");
    refuse_bench(HEADER "ring,zmq,n,4,0,none,65536\n", "7 fields, expected 8");
    refuse_bench(HEADER "ring,zmq,n,4,0,none,65536,abc\n", "line 2: time_us_median: found 'abc'");
    refuse_bench(HEADER "ring,zmq,n,-4,0,none,65536,10\n", "workers: found '-4'");
    refuse_bench(HEADER "ring,zmq,n,4,0,none,65536,nan\n", "time_us_median");
    refuse_bench(HEADER "ring,zmq,n,1e9,0,none,65536,10\n", "workers: found '1e9', out of range");
    refuse_bench(HEADER "ring,zmq,n,4097,0,none,65536,10\n", "workers: found '4097', out of range");
    refuse_bench(HEADER "ring,zmq,n,2.5,0,none,65536,10\n", "workers: found '2.5', out of range");
    refuse_bench("hosts," HEADER "1e17,ring,zmq,n,4,0,none,65536,10\n", "hosts: found '1e17'");
    refuse_bench(HEADER "ring,zmq,n,,0,none,65536,10\n", "workers or time_us_median is missing");
    char text[256];
    snprintf(text, sizeof text, HEADER "ring,zmq,%081d,4,0,none,65536,10\n", 0);
    refuse_bench(text, "network: found '000");
    struct predict_rows rows = {0};
    assert_refused(predict_rows_read(&rows, "/nowhere/bench.csv"), STATUS_INPUT, "No such file");
}

Test(fit, refuses_bad_model)
{
    struct predict_models models;
    static const char *const texts[] = {
        "",
        "[1,2",
        "{}",
        "{\"format\": \"psring-model-2\"}",
        "{\"format\": \"psring-model-2\", \"models\": []}",
        "{\"format\": \"psring-model-2\", \"models\": [{\"network\": \"n\"}]}",
        "{\"format\": \"psring-model-2\", \"models\": [3]}",
        "{\"format\": \"psring-model-2\", \"choice_held_out\": {\"cases\": 1}, \"models\": [3]}",
        "{\"format\": \"other\", \"models\": []}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_file(model_json, texts[i]);
        assert_refused(predict_models_read(&models, model_json), STATUS_INPUT, "model.json");
        predict_models_free(&models);
    }
}

Test(fit, reads_quotes_and_unknown)
{
    struct predict_rows rows = {0};
    write_file(bench, "extra,\"backend\",transport,network,workers,servers,placement,bytes,"
                      "time_us_median\n"
                      "\"a, \"\"b\"\"\",ring,zmq,n,4,0,none,65536,1000\n");
    cr_assert(predict_rows_read(&rows, bench) == STATUS_OK);
    cr_assert(rows.count == 1);
    cr_expect_str_eq(rows.rows[0].backend, "ring");
    cr_expect(rows.rows[0].workers == 4 && rows.rows[0].bytes == 65536);
    cr_expect_float_eq(rows.rows[0].median_s, 1e-3, 1e-12);
    predict_rows_free(&rows);
}

Test(fit, holds_out_what_it_is_told)
{
    struct sweep sweep;
    struct predict_models models;
    make_sweep(&sweep, 0, 1);
    cr_assert(predict_models_fit(&models, &sweep.rows, "workers=8,placement=mixed", 1) ==
              STATUS_OK);
    for (size_t i = 0; i < sweep.rows.count; i++) {
        const struct predict_row *row = &sweep.rows.rows[i];
        bool out = row->workers == 8 || strcmp(row->placement, "mixed") == 0;
        cr_assert(row->use == (out ? PREDICT_HOLD_OUT : PREDICT_FIT));
    }
    predict_models_free(&models);
    assert_refused(predict_models_fit(&models, &sweep.rows, "hosts=3", 1), STATUS_USAGE,
                   "found 'hosts=3'");
    predict_models_free(&models);
    assert_refused(predict_models_fit(&models, &sweep.rows, "workers=x", 1), STATUS_USAGE,
                   "found 'workers=x'");
    predict_models_free(&models);
    assert_refused(predict_models_fit(&models, &sweep.rows, "workers=8,placement=far", 1),
                   STATUS_USAGE, "'placement=far', which no row has");
    predict_models_free(&models);
    predict_rows_free(&sweep.rows);
}
