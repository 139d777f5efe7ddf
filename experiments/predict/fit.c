#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/base/stats.h"
#include "common/base/status.h"
#include "common/base/util.h"
#include "experiments/predict/model.h"
#include "experiments/predict/terms.h"

/*
 * Weighted linear least squares with no negative constant. Tries all subsets of nonzero constants,
 * which is exact. (Lawson and Hanson 1974, "Solving least squares problems", chapter 23, describes
 * the problem.)
 */

/* Normal equations. {0}: empty. */
struct normal {
    double matrix[PREDICT_TERMS][PREDICT_TERMS], right[PREDICT_TERMS];
};

enum { SUBSETS = 1 << PREDICT_TERMS };

static void normal_add(struct normal *normal, const struct predict_terms *terms, double measured,
                       double weight)
{
    for (int t = 0; t < PREDICT_TERMS; t++) {
        normal->right[t] += weight * terms->of[t] * measured;
        for (int u = 0; u < PREDICT_TERMS; u++)
            normal->matrix[t][u] += weight * terms->of[t] * terms->of[u];
    }
}

/* Solves for the terms in `subset` alone, by Cholesky decomposition. Returns false if they are not
 * independent or a constant would be negative. */
static bool solve_subset(const struct normal *normal, unsigned subset, double x[PREDICT_TERMS])
{
    const double singular = 1e-9;
    double factor[PREDICT_TERMS][PREDICT_TERMS], y[PREDICT_TERMS];
    int terms[PREDICT_TERMS], n = 0;
    for (int t = 0; t < PREDICT_TERMS; t++) {
        x[t] = 0;
        if (subset >> t & 1)
            terms[n++] = t;
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            /* cppcheck-suppress uninitvar ; the loop fills the first n elements */
            double sum = normal->matrix[terms[i]][terms[j]];
            for (int k = 0; k < j; k++)
                sum -= factor[i][k] * factor[j][k];
            if (i == j && sum <= singular)
                return false;
            factor[i][j] = i == j ? sqrt(sum) : sum / factor[j][j];
        }
    }
    for (int i = 0; i < n; i++) {
        y[i] = normal->right[terms[i]];
        for (int k = 0; k < i; k++)
            y[i] -= factor[i][k] * y[k];
        y[i] /= factor[i][i];
    }
    for (int i = n - 1; i >= 0; i--) {
        double sum = y[i];
        for (int k = i + 1; k < n; k++)
            sum -= factor[k][i] * x[terms[k]];
        x[terms[i]] = sum / factor[i][i];
        if (x[terms[i]] < 0)
            return false;
    }
    return true;
}

/* The best solution of all subsets. Scales the matrix to ones on its diagonal. */
static struct predict_terms normal_solve(const struct normal *unscaled)
{
    struct normal normal = {0};
    struct predict_terms best = {0};
    const double as_good = 1e-9; /* of two indistinguishable terms, keep the first */
    double scale[PREDICT_TERMS], most = 0;
    for (int t = 0; t < PREDICT_TERMS; t++) {
        double square = unscaled->matrix[t][t];
        scale[t] = square > 0 ? 1 / sqrt(square) : 0;
    }
    for (int t = 0; t < PREDICT_TERMS; t++) {
        normal.right[t] = unscaled->right[t] * scale[t];
        for (int u = 0; u < PREDICT_TERMS; u++)
            normal.matrix[t][u] = unscaled->matrix[t][u] * scale[t] * scale[u];
    }
    for (unsigned subset = 1; subset < SUBSETS; subset++) {
        double x[PREDICT_TERMS], gain = 0;
        if (!solve_subset(&normal, subset, x))
            continue;
        for (int t = 0; t < PREDICT_TERMS; t++)
            gain += x[t] * normal.right[t];
        if (gain <= most * (1 + as_good))
            continue;
        most = gain;
        for (int t = 0; t < PREDICT_TERMS; t++)
            best.of[t] = x[t] * scale[t];
    }
    return best;
}

/* A 95% interval leaves out one error in twenty, so NEAR_LEAST = 20 errors show it. */
enum { RESAMPLES = 400, ROUNDS = 20, NEAR_LEAST = 20, NEAR_MOST = 1024, FOLDS = 10 };

static const double model_error = 0.01; /* of a time: deviation of a row without noise */
static const double alike_error = 0.1;  /* of a burst: difference between two directions */
static const double processors_error =
    0.2; /* of the busy time, as messages and bytes describe it */

/* -------- a robust fit ------------------------------------------------------------------------ */

static double predicted(const struct predict_terms *terms, const struct predict_terms *constants)
{
    struct predict_terms seconds = predict_seconds(terms, constants);
    return predict_parts_of(&seconds).together;
}

/* Standard deviation of a row's time, including the model's error. */
static double deviation(const struct predict_sample *sample)
{
    return hypot(sample->noise_s, model_error * sample->seconds);
}

/* The input of a fit, except the multiplicities. */
struct problem {
    const struct predict_sample *samples;
    size_t count;
    const struct predict_fit *pooled; /* NULL: no other samples */
    double *scratch;                  /* (count) */
};

/* Whether any sample that counts knows how long the cores were busy. */
static bool knows_processors(const struct problem *problem, const unsigned *multiplicity)
{
    for (size_t i = 0; i < problem->count; i++) {
        if (multiplicity[i] > 0 && problem->samples[i].processors_s > 0)
            return true;
    }
    return false;
}

/* Adds each constant of the pooled fit as one more measurement. Its deviation is how much
 * transports can differ in it. For the processor constants it is very large if samples know better,
 * because a message of one transport may cost ten times that of another. */
static void add_pooled(struct normal *normal, const struct problem *problem,
                       const unsigned *multiplicity, const struct predict_terms *constants)
{
    const double hardly = 10; /* deviation, as a multiple of the larger of both */
    const struct predict_fit *pooled = problem->pooled;
    bool watched = knows_processors(problem, multiplicity);
    static const double deviations[PREDICT_TERMS] = {
        [TERM_LATENCY] = 1, [TERM_LINK] = 0.01, [TERM_FILL_BURST] = 0.3, [TERM_BURST] = 0.1,
        [TERM_REDUCE] = 1,  [TERM_MESSAGE] = 1, [TERM_CPU_MESSAGE] = 1,  [TERM_CPU_BYTE] = 1};
    for (int t = 0; pooled && t < PREDICT_TERMS; t++) {
        double value = pooled->constants.of[t], sigma = deviations[t] * value;
        if (t >= TERM_PROCESSORS && watched)
            sigma = hardly * fmax(value, constants->of[t]);
        if (sigma > 0) {
            normal->matrix[t][t] += 1 / (sigma * sigma);
            normal->right[t] += value / (sigma * sigma);
        }
    }
}

/* Adds that both bursts are alike: each direction of a link has its own token bucket, of the same
 * size. Adds nothing if no row has a fill phase. */
static void add_alike(struct normal *normal, const struct problem *problem,
                      const struct predict_terms *constants)
{
    const struct predict_terms difference = {.of = {[TERM_BURST] = 1, [TERM_FILL_BURST] = -1}};
    double sigma = alike_error * fmax(constants->of[TERM_BURST], constants->of[TERM_FILL_BURST]);
    bool both = false;
    for (size_t i = 0; i < problem->count; i++)
        both = both || problem->samples[i].terms.fill_bytes > 0;
    if (both && sigma > 0)
        normal_add(normal, &difference, 0, 1 / (sigma * sigma));
}

/* Adds the busy time of the cores, if known, as a measurement of the processor constants. */
static void add_processors(struct normal *normal, const struct predict_sample *sample,
                           const struct predict_terms *constants, double multiplicity, double huber)
{
    struct predict_terms linear = {0};
    double sigma = processors_error * sample->processors_s, predicted_s = 0;
    if (!(sigma > 0))
        return;
    for (int t = TERM_PROCESSORS; t < PREDICT_TERMS; t++) {
        linear.of[t] = sample->terms.of[t];
        predicted_s += linear.of[t] * constants->of[t];
    }
    double off = fabs(sample->processors_s - predicted_s) / sigma;
    normal_add(normal, &linear, sample->processors_s,
               multiplicity / (sigma * sigma) * fmin(1, huber / off));
}

/*
 * Initial constants: the processor constants at half of their upper bound, because no row takes
 * less than its processor time. The remainder of each row is network time, which the first round
 * fits.
 */
static struct predict_terms begin(const struct problem *problem, const unsigned *multiplicity)
{
    struct predict_terms constants = {0};
    for (int t = TERM_PROCESSORS; t < PREDICT_TERMS; t++) {
        double most = INFINITY;
        for (size_t i = 0; i < problem->count; i++) {
            if (multiplicity[i] > 0)
                most = fmin(most, problem->samples[i].seconds / problem->samples[i].terms.of[t]);
        }
        constants.of[t] = isfinite(most) ? most / 2 : 0;
    }
    return constants;
}

/* The parts at the current constants. In the first round the network constants are 0, so its part
 * is the remainder of the measured time. */
static struct predict_parts parts_at(const struct predict_sample *sample,
                                     const struct predict_terms *seconds, bool first)
{
    struct predict_parts parts = predict_parts_of(seconds);
    if (first) {
        parts.together = fmax(sample->seconds, parts.processors);
        parts.network = predict_other_part(parts.together, parts.processors);
    }
    return parts;
}

/* Moves to the solution. Changes the processor constants by at most a factor of two, because
 * linearisation overshoots where they hardly count yet. */
static void step_to(struct predict_terms *constants, const struct predict_terms *solved)
{
    for (int t = 0; t < PREDICT_TERMS; t++) {
        double before = constants->of[t], after = solved->of[t];
        constants->of[t] = t < TERM_PROCESSORS ? after : fmin(fmax(after, before / 2), before * 2);
    }
}

/* Fits the constants. `multiplicity` (count): how often each sample counts. */
static struct predict_terms fit_constants(const struct problem *problem,
                                          const unsigned *multiplicity)
{
    const struct predict_sample *samples = problem->samples;
    size_t count = problem->count;
    double *scratch = problem->scratch;
    const double huber = 1.345, normal_mad = 0.6745;
    struct predict_terms constants = begin(problem, multiplicity);
    double scale = INFINITY; /* of a residual, in deviations; first round: no outliers */
    for (int round = 0; round < ROUNDS; round++) {
        struct normal normal = {0};
        add_pooled(&normal, problem, multiplicity, &constants);
        add_alike(&normal, problem, &constants);
        for (size_t i = 0; i < count; i++) {
            const struct predict_sample *sample = &samples[i];
            struct predict_terms seconds = predict_seconds(&sample->terms, &constants);
            struct predict_parts parts = parts_at(sample, &seconds, round == 0);
            struct predict_terms linear =
                predict_linear_at(&sample->terms, &constants, predict_weights_of(parts));
            double sigma = deviation(sample);
            double off = fabs(sample->seconds - parts.together) / sigma;
            double weight = multiplicity[i] / (sigma * sigma);
            if (off > huber * scale)
                weight *= huber * scale / off;
            normal_add(&normal, &linear, sample->seconds - linear.distance_s, weight);
            add_processors(&normal, sample, &constants, multiplicity[i], huber);
        }
        struct predict_terms solved = normal_solve(&normal);
        step_to(&constants, &solved);
        size_t used = 0;
        for (size_t i = 0; i < count; i++) {
            double off = fabs(samples[i].seconds - predicted(&samples[i].terms, &constants));
            if (multiplicity[i] > 0)
                scratch[used++] = off / deviation(&samples[i]);
        }
        scale = used > 0 ? fmax(stats_median(scratch, used) / normal_mad, 1e-6) : 1;
    }
    return constants;
}

/* -------- intervals --------------------------------------------------------------------------- */

/* A resample without the rows that show a constant may have any value of it. Values farther
 * from the constant's 95% interval than the interval is wide are cut to that distance: 5.9 standard
 * deviations of a normal distribution. Changes `resampled`. */
static void add_covariance(struct predict_fit *fit, struct predict_terms *resampled)
{
    double mean[PREDICT_TERMS] = {0};
    for (int r = 0; r < RESAMPLES; r++) {
        for (int t = 0; t < PREDICT_TERMS; t++) {
            double low = fit->low.of[t], high = fit->high.of[t], *value = &resampled[r].of[t];
            *value = fmin(fmax(*value, low - (high - low)), high + (high - low));
            mean[t] += *value / RESAMPLES;
        }
    }
    for (int r = 0; r < RESAMPLES; r++) {
        for (int t = 0; t < PREDICT_TERMS; t++) {
            for (int u = 0; u < PREDICT_TERMS; u++)
                fit->covariance[t][u] += (resampled[r].of[t] - mean[t]) *
                                         (resampled[r].of[u] - mean[u]) / (RESAMPLES - 1);
        }
    }
}

static void bootstrap(struct predict_fit *fit, const struct problem *problem, uint64_t seed,
                      unsigned *multiplicity)
{
    size_t count = problem->count;
    struct predict_terms resampled[RESAMPLES];
    double values[RESAMPLES];
    for (uint64_t r = 0; r < RESAMPLES; r++) {
        struct rng_key key = rng_key(seed, RNG_RESAMPLE, r);
        memset(multiplicity, 0, count * sizeof *multiplicity);
        for (size_t i = 0; i < count; i++)
            multiplicity[rng_below(rng_block(key, i, 0).word[0], (uint32_t)count)]++;
        resampled[r] = fit_constants(problem, multiplicity);
    }
    for (int t = 0; t < PREDICT_TERMS; t++) {
        for (int r = 0; r < RESAMPLES; r++)
            values[r] = resampled[r].of[t];
        stats_sort(values, RESAMPLES);
        fit->low.of[t] = fmin(stats_quantile(values, RESAMPLES, 0.025), fit->constants.of[t]);
        fit->high.of[t] = fmax(stats_quantile(values, RESAMPLES, 0.975), fit->constants.of[t]);
    }
    add_covariance(fit, resampled);
}

/* The group with which a sample is left out. */
typedef uint64_t group_of(const struct predict_sample *samples, size_t i);

static uint64_t by_workers(const struct predict_sample *samples, size_t i)
{
    return samples[i].workers;
}

static uint64_t by_bytes(const struct predict_sample *samples, size_t i)
{
    return samples[i].bytes;
}

static uint64_t by_fold(const struct predict_sample *samples, size_t i)
{
    (void)samples;
    return 1 + i % FOLDS;
}

static int compare_errors(const void *one, const void *other)
{
    const struct predict_error *a = one, *b = other;
    return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

static void add_error(struct predict_fit *fit, const struct predict_sample *sample,
                      const struct predict_terms *constants)
{
    double seconds = predicted(&sample->terms, constants);
    if (seconds > 0)
        fit->errors[fit->error_count++] =
            (struct predict_error){seconds, fabs(log(sample->seconds / seconds))};
}

/* Leaves out each group in turn, fits the remaining samples, and predicts the group. Without
 * `ends`, skips the groups at both ends: there the fit would have to extrapolate, and a prediction
 * warns about that. */
static void cross_validate(struct predict_fit *fit, const struct problem *problem, group_of *group,
                           bool ends, unsigned *multiplicity)
{
    const struct predict_sample *samples = problem->samples;
    size_t count = problem->count, least = problem->pooled ? 1 : PREDICT_FIT_LEAST;
    for (size_t first = 0; first < count; first++) {
        uint64_t number = group(samples, first);
        size_t below = 0, above = 0, seen = 0;
        for (size_t i = 0; i < count; i++) {
            multiplicity[i] = group(samples, i) != number;
            below += group(samples, i) < number;
            above += group(samples, i) > number;
            seen += i < first && !multiplicity[i];
        }
        if (seen > 0 || below + above < least || (!ends && (!below || !above)))
            continue;
        struct predict_terms constants = fit_constants(problem, multiplicity);
        for (size_t i = 0; i < count; i++) {
            if (multiplicity[i] == 0)
                add_error(fit, &samples[i], &constants);
        }
    }
}

/* Fills the errors of left-out samples. If there are too few samples to leave any out, uses the
 * errors of fitted ones. With a pooled fit, adds as many of its errors as a quantile needs. */
static void fill_errors(struct predict_fit *fit, const struct problem *problem,
                        unsigned *multiplicity)
{
    const struct predict_fit *pooled = problem->pooled;
    cross_validate(fit, problem, by_workers, false, multiplicity);
    cross_validate(fit, problem, by_bytes, false, multiplicity);
    cross_validate(fit, problem, by_fold, true, multiplicity);
    for (size_t i = 0; i < problem->count && fit->error_count < problem->count; i++)
        add_error(fit, &problem->samples[i], &fit->constants);
    const size_t own = fit->error_count, wanted = own < NEAR_LEAST ? NEAR_LEAST - own : 0;
    const size_t taken = pooled ? size_smaller(wanted, pooled->error_count) : 0;
    for (size_t i = 0; i < taken; i++) /* evenly over short and long times */
        fit->errors[fit->error_count++] =
            pooled->errors[(2 * i + 1) * pooled->error_count / (2 * taken)];
    qsort(fit->errors, fit->error_count, sizeof *fit->errors, compare_errors);
}

/* -------- the interface ----------------------------------------------------------------------- */

enum status predict_fit(struct predict_fit *fit, const struct predict_sample *samples, size_t count,
                        const struct predict_fit *pooled, uint64_t seed)
{
    enum status status = STATUS_NO_MEMORY;
    CHECK(count >= (pooled ? PREDICT_POOLED_LEAST : PREDICT_FIT_LEAST));
    unsigned *multiplicity = malloc(count * sizeof *multiplicity);
    double *scratch = malloc(count * sizeof *scratch);
    *fit = (struct predict_fit){.errors = malloc((3 * count + NEAR_LEAST) * sizeof *fit->errors)};
    const struct problem problem = {samples, count, pooled, scratch};
    if (!multiplicity || !scratch || !fit->errors) {
        log_error("predict: no memory to fit %zu rows", count);
        goto out;
    }
    for (size_t i = 0; i < count; i++)
        multiplicity[i] = 1;
    fit->constants = fit_constants(&problem, multiplicity);
    bootstrap(fit, &problem, seed, multiplicity);
    fill_errors(fit, &problem, multiplicity);
    status = STATUS_OK;
out:
    free(multiplicity);
    free(scratch);
    return status;
}

void predict_fit_free(struct predict_fit *fit)
{
    free(fit->errors);
    *fit = (struct predict_fit){0};
}

/* Finds the errors at the times nearest to `seconds`. Returns their number; they start at
 * fit->errors[*first]. */
static size_t predict_errors_near(const struct predict_fit *fit, double seconds, size_t *first)
{
    size_t wanted = size_larger(NEAR_LEAST, fit->error_count / 3);
    wanted = size_smaller(size_smaller(wanted, NEAR_MOST), fit->error_count);
    size_t end = 0;
    while (end < fit->error_count && fit->errors[end].seconds < seconds)
        end++;
    *first = end; /* *first .. end-1, extended on the nearer side */
    while (end - *first < wanted) {
        bool down =
            end == fit->error_count || (*first > 0 && seconds / fit->errors[*first - 1].seconds <
                                                          fit->errors[end].seconds / seconds);
        if (down)
            --*first;
        else
            end++;
    }
    return wanted;
}

size_t predict_conformal_rank(size_t count)
{
    size_t rank = (95 * (count + 1) + 99) / 100; /* rounded up */
    return rank <= count ? rank : 0;
}

/* The bound of 95% of the errors at the times nearest to `seconds`. INFINITY: too few errors. */
static double error_near(const struct predict_fit *fit, double seconds)
{
    double values[NEAR_MOST];
    size_t first, count = predict_errors_near(fit, seconds, &first);
    size_t rank = predict_conformal_rank(count);
    if (rank == 0)
        return INFINITY;
    for (size_t i = 0; i < count; i++)
        values[i] = fit->errors[first + i].error;
    stats_sort(values, count);
    return values[rank - 1];
}

bool predict_has_interval(struct predict_interval interval)
{
    return isfinite(interval.high);
}

const char *predict_interval_text(struct predict_interval interval, double scale, int decimals,
                                  char text[PREDICT_INTERVAL_BYTES])
{
    if (predict_has_interval(interval))
        snprintf(text, PREDICT_INTERVAL_BYTES, "[%.*f, %.*f]", decimals, interval.low * scale,
                 decimals, interval.high * scale);
    else
        snprintf(text, PREDICT_INTERVAL_BYTES, "[no interval]");
    return text;
}

struct predict_interval predict_time(const struct predict_fit *fit,
                                     const struct predict_terms *terms)
{
    struct predict_terms each = predict_seconds(terms, &fit->constants);
    struct predict_parts parts = predict_parts_of(&each);
    struct predict_terms slope =
        predict_linear_at(terms, &fit->constants, predict_weights_of(parts));
    double seconds = parts.together, variance = 0;
    if (seconds <= 0)
        return (struct predict_interval){0};
    for (int t = 0; t < PREDICT_TERMS; t++) {
        for (int u = 0; u < PREDICT_TERMS; u++)
            variance += slope.of[t] * slope.of[u] * fit->covariance[t][u];
    }
    double constants = 1.96 * sqrt(fmax(variance, 0)), error = error_near(fit, seconds);
    double above = hypot(seconds * expm1(error), constants);
    double below = hypot(-seconds * expm1(-error), constants);
    return (struct predict_interval){seconds, fmax(seconds - below, 0), seconds + above};
}
