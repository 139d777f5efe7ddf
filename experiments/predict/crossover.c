#include "experiments/predict/crossover.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/base/stats.h"

enum { DRAWS = 400 };

/* -------- draws ------------------------------------------------------------------------------- */

/* Two independent numbers of a standard normal distribution (Box and Muller 1958), and two uniform
 * ones. */
static void draw_numbers(uint64_t seed, uint64_t draw, uint64_t at, double normal[2],
                         double uniform[2])
{
    struct rng_block block = rng_block(rng_key(seed, RNG_RESAMPLE, draw), at, 1);
    double radius = sqrt(-2 * log(1 - (double)rng_uniform(block.word[0])));
    double angle = 2 * 3.14159265358979323846 * (double)rng_uniform(block.word[1]);
    normal[0] = radius * cos(angle);
    normal[1] = radius * sin(angle);
    uniform[0] = (double)rng_uniform(block.word[2]);
    uniform[1] = (double)rng_uniform(block.word[3]);
}

/* Of the covariance, which may be singular: a constant that is 0 in all resamples has none. */
static void decompose(const struct predict_fit *fit, double factor[PREDICT_TERMS][PREDICT_TERMS])
{
    for (int i = 0; i < PREDICT_TERMS; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = fit->covariance[i][j];
            for (int k = 0; k < j; k++)
                sum -= factor[i][k] * factor[j][k];
            if (i == j)
                factor[i][j] = sqrt(fmax(sum, 0));
            else
                factor[i][j] =
                    factor[j][j] > 1e-12 * sqrt(fit->covariance[j][j]) ? sum / factor[j][j] : 0;
        }
    }
}

static struct predict_terms draw_constants(const struct predict_fit *fit,
                                           double factor[PREDICT_TERMS][PREDICT_TERMS],
                                           uint64_t seed, uint64_t draw)
{
    struct predict_terms constants = fit->constants;
    for (int j = 0; j < PREDICT_TERMS; j++) {
        double normal[2], uniform[2];
        draw_numbers(seed, draw, (uint64_t)j, normal, uniform);
        for (int i = j; i < PREDICT_TERMS; i++)
            constants.of[i] += factor[i][j] * normal[0];
    }
    for (int t = 0; t < PREDICT_TERMS; t++)
        constants.of[t] = fmax(constants.of[t], 0);
    return constants;
}

/* log(measured / predicted), as of a row of about that time. */
static double draw_error(const struct predict_fit *fit, double seconds, double uniform)
{
    size_t first, count = predict_errors_near(fit, seconds, &first);
    if (count == 0)
        return 0;
    double place = uniform * 2 * (double)count;
    double error = fit->errors[first + (size_t)place % count].error;
    return place < (double)count ? error : -error;
}

static double time_of(const struct predict_terms *terms, const struct predict_terms *constants)
{
    struct predict_terms seconds = predict_seconds(terms, constants);
    return predict_parts_of(&seconds).together;
}

/* -------- crossings --------------------------------------------------------------------------- */

/* `bias`: log of how much slower `one` is than predicted, against `other`. */
static double cross(const struct predict_curves *curves, const struct predict_terms *constants,
                    double bias)
{
    double before = 0;
    for (size_t i = 0; i < curves->count; i++) {
        double now =
            log(time_of(&curves->one[i], constants) / time_of(&curves->other[i], constants)) + bias;
        if (now > 0 && i == 0)
            return -INFINITY;
        if (now > 0) {
            double share = before / (before - now); /* both: towards 0 */
            return curves->x[i - 1] * pow(curves->x[i] / curves->x[i - 1], share);
        }
        before = now;
    }
    return INFINITY;
}

struct predict_crossing predict_cross(const struct predict_fit *fit,
                                      const struct predict_curves *curves, uint64_t seed)
{
    double factor[PREDICT_TERMS][PREDICT_TERMS] = {{0}}, values[DRAWS];
    struct predict_crossing crossing = {.at = cross(curves, &fit->constants, 0)};
    decompose(fit, factor);
    size_t middle = 0;
    while (middle + 1 < curves->count && curves->x[middle] < crossing.at)
        middle++;
    double seconds = time_of(&curves->one[middle], &fit->constants);
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        double normal[2], uniform[2];
        struct predict_terms constants = draw_constants(fit, factor, seed, draw);
        draw_numbers(seed, draw, PREDICT_TERMS, normal, uniform);
        values[draw] =
            cross(curves, &constants,
                  draw_error(fit, seconds, uniform[0]) - draw_error(fit, seconds, uniform[1]));
    }
    stats_sort(values, DRAWS);
    crossing.low = fmin(values[DRAWS / 40], crossing.at);
    crossing.high = fmax(values[DRAWS - 1 - DRAWS / 40], crossing.at);
    return crossing;
}

/* -------- which ------------------------------------------------------------------------------- */

static const struct predict_way ring = {.backend = "ring"};
static const struct predict_way one_server = {"ps", PLACEMENT_DEDICATED, 1};

/* "everywhere", "nowhere", or the number. */
/* How to say it: "up to 23 KB", "at every size", "at no size". */
struct words {
    const char *before, *unit, *always, *never;
    double scale;
};

static void print_place(FILE *out, double place, const struct words *words)
{
    if (isfinite(place))
        fprintf(out, "%s %.3g %s", words->before, place * words->scale, words->unit);
    else
        fprintf(out, "%s", place > 0 ? words->always : words->never);
}

static void print_crossing(FILE *out, struct predict_crossing crossing, const struct words *words)
{
    print_place(out, crossing.at, words);
    fprintf(out, "   [");
    print_place(out, crossing.low, words);
    fprintf(out, "; ");
    print_place(out, crossing.high, words);
    fprintf(out, "]\n");
}

/* From 64 bytes to 1 GB, 8 an octave. */
static void cross_by_size(FILE *out, const struct predict_model *model, int workers, uint64_t seed)
{
    const double least = 64, step = 1.0 / 8;
    struct predict_curves curves = {0};
    for (double octave = 0; octave <= 24 && curves.count < PREDICT_POINTS_MOST; octave += step) {
        size_t count = (size_t)(least * exp2(octave)) / sizeof(float), at = curves.count;
        curves.x[at] = (double)(count * sizeof(float));
        if (predict_way_terms(model, &one_server, workers, count, COMPRESS_NONE, &curves.one[at]) &&
            predict_way_terms(model, &ring, workers, count, COMPRESS_NONE, &curves.other[at]))
            curves.count++;
    }
    static const struct words words = {"up to", "kB", "at every size", "at no size", 1e-3};
    fprintf(out, "one server on a spare machine is faster than the ring ");
    print_crossing(out, predict_cross(&model->fit, &curves, seed), &words);
}

static void cross_by_servers(FILE *out, const struct predict_model *model, int workers,
                             enum placement placement, uint64_t bytes, uint64_t seed)
{
    struct predict_curves curves = {0};
    int stride = 1 + (workers - 1) / PREDICT_POINTS_MOST;
    for (int servers = 1; servers <= workers; servers += stride) {
        const struct predict_way way = {"ps", placement, servers};
        size_t at = curves.count;
        curves.x[at] = servers;
        if (predict_way_terms(model, &ring, workers, bytes / sizeof(float), COMPRESS_NONE,
                              &curves.one[at]) &&
            predict_way_terms(model, &way, workers, bytes / sizeof(float), COMPRESS_NONE,
                              &curves.other[at]))
            curves.count++;
    }
    static const struct words words = {"with up to", "servers", "with any number of servers",
                                       "with no number of servers", 1};
    fprintf(out, "%10" PRIu64 " bytes: the ring is faster than ps %s ", bytes,
            placement == PLACEMENT_MIXED ? "mixed" : "dedicated");
    print_crossing(out, predict_cross(&model->fit, &curves, seed), &words);
}

/* The rate at which all takes twice as long as with a link that takes no time, so that a faster one
 * saves less than half. */
static double rate_of(const struct predict_terms *terms, const struct predict_terms *constants)
{
    struct predict_terms seconds = predict_seconds(terms, constants);
    seconds.of[TERM_LINK] = seconds.of[TERM_BURST] = seconds.of[TERM_FILL_BURST] = 0;
    struct predict_parts rest = predict_parts_of(&seconds);
    double link = predict_other_part(2 * rest.together, rest.processors) - rest.network;
    return link > 0 ? terms->of[TERM_LINK] / link : (double)INFINITY;
}

static void print_rate(FILE *out, const struct predict_model *model, int workers, uint64_t bytes,
                       uint64_t seed)
{
    double factor[PREDICT_TERMS][PREDICT_TERMS] = {{0}}, values[DRAWS];
    struct predict_terms terms;
    if (!predict_way_terms(model, &ring, workers, bytes / sizeof(float), COMPRESS_NONE, &terms))
        return;
    decompose(&model->fit, factor);
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        struct predict_terms constants = draw_constants(&model->fit, factor, seed, draw);
        values[draw] = rate_of(&terms, &constants);
    }
    stats_sort(values, DRAWS);
    static const struct words words = {"from", "Gbit/s on", "at every rate", "at no rate", 8e-9};
    fprintf(out, "%10" PRIu64 " bytes: faster links save less than half of the ring's time ",
            bytes);
    print_crossing(out,
                   (struct predict_crossing){rate_of(&terms, &model->fit.constants),
                                             values[DRAWS / 40], values[DRAWS - 1 - DRAWS / 40]},
                   &words);
}

void predict_print_crossovers(FILE *out, const struct predict_model *model,
                              const struct predict_cluster *cluster, const uint64_t *sizes,
                              size_t size_count, uint64_t seed)
{
    fprintf(out, "\nCrossovers, %d workers, with 95%% interval:\n", cluster->workers);
    cross_by_size(out, model, cluster->workers, seed);
    for (size_t s = 0; s < size_count; s++) {
        if (sizes[s] < sizeof(float))
            continue;
        cross_by_servers(out, model, cluster->workers, PLACEMENT_DEDICATED, sizes[s], seed);
        cross_by_servers(out, model, cluster->workers, PLACEMENT_MIXED, sizes[s], seed);
        print_rate(out, model, cluster->workers, sizes[s], seed);
    }
}
