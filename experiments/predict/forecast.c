#include "experiments/predict/forecast.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/base/stats.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "experiments/config/backends.h"
#include "experiments/config/config_table.h"

/* -------- crossovers -------------------------------------------------------------------------- */

enum { DRAWS = 400 };

/* -------- draws ------------------------------------------------------------------------------- */

/* A standard normal random number (Box and Muller 1958). */
static double draw_normal(uint64_t seed, uint64_t draw, uint64_t at)
{
    struct rng_block block = rng_block(rng_key(seed, RNG_RESAMPLE, draw), at, 1);
    double radius = sqrt(-2 * log(1 - (double)rng_uniform(block.word[0])));
    double angle = 2 * 3.14159265358979323846 * (double)rng_uniform(block.word[1]);
    return radius * cos(angle);
}

/* Cholesky factor of the covariance. The covariance may be singular: a constant that is 0 in all
 * resamples has no variance. */
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
        double normal = draw_normal(seed, draw, (uint64_t)j);
        for (int i = j; i < PREDICT_TERMS; i++)
            constants.of[i] += factor[i][j] * normal;
    }
    for (int t = 0; t < PREDICT_TERMS; t++)
        constants.of[t] = fmax(constants.of[t], 0);
    return constants;
}

/* -------- which is faster --------------------------------------------------------------------- */

bool predict_compare(const struct predict_fit *fit, const struct predict_curves *curves,
                     enum predict_faster faster[PREDICT_POINTS_MOST])
{
    bool told = curves->count > 0;
    for (size_t i = 0; i < curves->count; i++) {
        struct predict_interval one = predict_time(fit, &curves->one[i]);
        struct predict_interval other = predict_time(fit, &curves->other[i]);
        told = told && predict_has_interval(one) && predict_has_interval(other);
        faster[i] = one.high < other.low   ? PREDICT_ONE_FASTER
                    : other.high < one.low ? PREDICT_OTHER_FASTER
                                           : PREDICT_NOT_TOLD;
    }
    return told;
}

static const struct predict_way ring = {.backend = "ring"};
static const struct predict_way one_server = {
    .backend = "ps", .placement = PLACEMENT_DEDICATED, .servers = 1};

/* "1.07 GB" */
static void print_bytes(FILE *out, double bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB"};
    size_t unit = 0;
    while (unit + 1 < sizeof units / sizeof *units && bytes >= 999.5) {
        bytes /= 1000;
        unit++;
    }
    fprintf(out, "%.3g %s", bytes, units[unit]);
}

static void print_number(FILE *out, double number)
{
    fprintf(out, "%.0f", number);
}

typedef void print_place(FILE *out, double place);

/* Prints the places from `first` to `end` - 1 as a range. */
static void print_range(FILE *out, const struct predict_curves *curves, size_t first, size_t end,
                        print_place *print)
{
    print(out, curves->x[first]);
    if (end > first + 1) {
        fprintf(out, " to ");
        print(out, curves->x[end - 1]);
    }
}

/* Prints every range of neighbouring places of one kind, separated by commas. Returns false if
 * there is none. */
static bool print_ranges(FILE *out, const struct predict_curves *curves,
                         const enum predict_faster *faster, enum predict_faster kind,
                         const char *before, print_place *print)
{
    bool found = false;
    for (size_t i = 0, end; i < curves->count; i = end) {
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): all are known */
        for (end = i; end < curves->count && faster[end] == faster[i];)
            end++;
        if (faster[i] != kind)
            continue;
        fprintf(out, "%s", found ? ", " : before);
        print_range(out, curves, i, end, print);
        found = true;
    }
    return found;
}

/* "compared at 1 to 8: ps faster at 5 to 8; the ring faster at 1 to 3; undecided at 4" */
static void print_comparison(FILE *out, const struct predict_fit *fit,
                             const struct predict_curves *curves, const char *one,
                             const char *other, print_place *print)
{
    enum predict_faster faster[PREDICT_POINTS_MOST];
    char before[80];
    bool told = predict_compare(fit, curves, faster);
    if (!told) {
        fprintf(out, "not compared: too few errors are known\n");
        return;
    }
    fprintf(out, "compared at ");
    print_range(out, curves, 0, curves->count, print);
    snprintf(before, sizeof before, ": %s faster at ", one);
    bool any = print_ranges(out, curves, faster, PREDICT_ONE_FASTER, before, print);
    snprintf(before, sizeof before, "%s %s faster at ", any ? ";" : ":", other);
    any = print_ranges(out, curves, faster, PREDICT_OTHER_FASTER, before, print) || any;
    print_ranges(out, curves, faster, PREDICT_NOT_TOLD, any ? "; undecided at " : ": undecided at ",
                 print);
    fprintf(out, "\n");
}

/* Compares sizes from 64 bytes to 1 GB, 8 per octave. */
static void cross_by_size(FILE *out, const struct predict_model *model, int workers)
{
    const double least = 64, step = 1.0 / 8;
    struct predict_curves curves = {0};
    for (double octave = 0; octave <= 24 && curves.count < PREDICT_POINTS_MOST; octave += step) {
        size_t count = (size_t)(least * exp2(octave)) / sizeof(float), at = curves.count;
        curves.x[at] = (double)(count * sizeof(float));
        if (predict_way_terms(model, &one_server, workers, NULL, count, COMPRESS_NONE,
                              &curves.one[at]) &&
            predict_way_terms(model, &ring, workers, NULL, count, COMPRESS_NONE, &curves.other[at]))
            curves.count++;
    }
    fprintf(out, "one server on a spare machine and the ring, sizes ");
    print_comparison(out, &model->fit, &curves, "the server", "the ring", print_bytes);
}

static void cross_by_servers(FILE *out, const struct predict_model *model, int workers,
                             enum placement placement, uint64_t bytes)
{
    struct predict_curves curves = {0};
    int stride = 1 + (workers - 1) / PREDICT_POINTS_MOST;
    for (int servers = 1; servers <= workers; servers += stride) {
        const struct predict_way way = {
            .backend = "ps", .placement = placement, .servers = servers};
        size_t at = curves.count;
        curves.x[at] = servers;
        if (predict_way_terms(model, &way, workers, NULL, bytes / sizeof(float), COMPRESS_NONE,
                              &curves.one[at]) &&
            predict_way_terms(model, &ring, workers, NULL, bytes / sizeof(float), COMPRESS_NONE,
                              &curves.other[at]))
            curves.count++;
    }
    fprintf(out, "%10" PRIu64 " bytes: ps %s and the ring, numbers of servers", bytes,
            placement == PLACEMENT_MIXED ? "mixed" : "dedicated");
    if (stride > 1)
        fprintf(out, " (every %d)", stride);
    fprintf(out, " ");
    print_comparison(out, &model->fit, &curves, "ps", "the ring", print_number);
}

/* The link rate at which the all-reduce takes twice as long as over an infinitely fast link. A
 * faster link saves less than half of the time. */
static double rate_of(const struct predict_terms *terms, const struct predict_terms *constants)
{
    struct predict_terms seconds = predict_seconds(terms, constants);
    seconds.of[TERM_LINK] = seconds.of[TERM_BURST] = seconds.of[TERM_FILL_BURST] = 0;
    struct predict_parts rest = predict_parts_of(&seconds);
    double link = predict_other_part(2 * rest.together, rest.processors) - rest.network;
    return link > 0 ? terms->of[TERM_LINK] / link : (double)INFINITY;
}

/* INFINITY: the processor terms are 0, so a faster link always saves half. */
static void print_rate_value(FILE *out, double bytes_per_s)
{
    if (isfinite(bytes_per_s))
        fprintf(out, "%.3g Gbit/s on", bytes_per_s * 8e-9);
    else
        fprintf(out, "no rate on");
}

static void print_rate(FILE *out, const struct predict_model *model, int workers, uint64_t bytes,
                       uint64_t seed)
{
    double factor[PREDICT_TERMS][PREDICT_TERMS] = {{0}}, values[DRAWS];
    struct predict_terms terms;
    if (!predict_way_terms(model, &ring, workers, NULL, bytes / sizeof(float), COMPRESS_NONE,
                           &terms))
        return;
    decompose(&model->fit, factor);
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        struct predict_terms constants = draw_constants(&model->fit, factor, seed, draw);
        values[draw] = rate_of(&terms, &constants);
    }
    stats_sort(values, DRAWS);
    double at = rate_of(&terms, &model->fit.constants);
    fprintf(out, "%10" PRIu64 " bytes: faster links save less than half of the ring's time from ",
            bytes);
    print_rate_value(out, at);
    fprintf(out, "   [");
    print_rate_value(out, fmin(values[DRAWS / 40], at));
    fprintf(out, "; ");
    print_rate_value(out, fmax(values[DRAWS - 1 - DRAWS / 40], at));
    fprintf(out, "]\n");
}

/* Prints where the ring and servers cross, as ranges: one server by size, and at each size servers
 * on spare machines by their number. Then prints the rate from which a faster link saves less than
 * half of the ring's time. */
static void predict_print_crossovers(FILE *out, const struct predict_model *model,
                                     const struct predict_cluster *cluster, const uint64_t *sizes,
                                     size_t size_count, uint64_t seed)
{
    fprintf(out, "\nCrossovers, %d workers; faster: 95%% intervals do not overlap:\n",
            cluster->workers);
    cross_by_size(out, model, cluster->workers);
    for (size_t s = 0; s < size_count; s++) {
        if (sizes[s] < sizeof(float))
            continue;
        cross_by_servers(out, model, cluster->workers, PLACEMENT_DEDICATED, sizes[s]);
        cross_by_servers(out, model, cluster->workers, PLACEMENT_MIXED, sizes[s]);
        print_rate(out, model, cluster->workers, sizes[s], seed);
    }
}

/* -------- ways to average --------------------------------------------------------------------- */

const char *const predict_topologies[PREDICT_TOPOLOGIES] = {"ring", "rhd", "tree", "ps"};

int predict_topology(const char *backend)
{
    int topology = 0;
    while (topology < PREDICT_TOPOLOGIES && strcmp(backend, predict_topologies[topology]) != 0)
        topology++;
    return topology;
}

/* The list under construction. */
struct ways {
    struct predict_way *ways;
    size_t count;
};

static void add_way(struct ways *list, struct predict_way way)
{
    CHECK(list->count < PREDICT_WAYS_MOST);
    list->ways[list->count++] = way;
}

static void add_halving(struct ways *list, int workers)
{
    const int radices[] = {2, 4, 16, workers};
    for (int i = 0, last = 0; i < 4; i++) {
        if (i == 0 || (radices[i] > last && radices[i] <= workers))
            add_way(list, (struct predict_way){.backend = "rhd", .radix = last = radices[i]});
    }
}

static void add_inside(struct ways *list, const struct predict_cluster *cluster)
{
    const int workers = cluster->workers;
    int first = cluster->inside > 0 ? cluster->inside : 1;
    int last = cluster->inside > 0 ? cluster->inside : workers;
    for (int servers = first; servers <= last; servers++) {
        bool power = (servers & (servers - 1)) == 0;
        if (power || servers == last || servers == workers / 2)
            add_way(list, (struct predict_way){.backend = "ps",
                                               .placement = PLACEMENT_COLOCATED,
                                               .servers = servers});
    }
}

static void add_spare(struct ways *list, int spare)
{
    const int numbers[] = {1, spare / 2, spare};
    for (int i = 0, last = 0; spare > 0 && i < 3; i++) {
        if (numbers[i] > last)
            add_way(list, (struct predict_way){.backend = "ps",
                                               .placement = PLACEMENT_DEDICATED,
                                               .servers = last = numbers[i]});
    }
    if (spare > 0)
        add_way(list, (struct predict_way){
                          .backend = "ps", .placement = PLACEMENT_MIXED, .servers = spare});
}

void predict_ways(const struct predict_cluster *cluster, struct predict_way *ways, size_t *count)
{
    struct ways list = {.ways = ways};
    add_way(&list, (struct predict_way){.backend = "ring"});
    add_halving(&list, cluster->workers);
    add_way(&list, (struct predict_way){.backend = "tree"});
    if (cluster->shares_hosts)
        add_way(&list, (struct predict_way){.backend = "hierarchical"});
    add_inside(&list, cluster);
    add_spare(&list, cluster->spare);
    if (cluster->in_switch > 0)
        add_way(&list, (struct predict_way){.backend = "ps",
                                            .placement = PLACEMENT_SWITCH,
                                            .servers = cluster->in_switch});
    *count = list.count;
}

void predict_way_words(const struct predict_way *way, char *text, size_t size)
{
    if (strcmp(way->backend, "ps") == 0)
        snprintf(text, size, "ps %s %d", config_placement_words[way->placement], way->servers);
    else if (way->radix > 2)
        snprintf(text, size, "%s radix %d", way->backend, way->radix);
    else
        snprintf(text, size, "%s", way->backend);
}

/* Returns false if the way is impossible. */
static bool shape_of(const struct predict_way *way, int workers, const int *hosts, size_t count,
                     struct predict_shape *shape)
{
    *shape = (struct predict_shape){.backend = predict_backend(way->backend),
                                    .topology = {workers, way->servers, way->placement},
                                    .count = count,
                                    .hosts = hosts,
                                    .radix = way->radix,
                                    .uplink_delay = way->uplink_delay};
    if (!shape->backend || (way->placement == PLACEMENT_COLOCATED && way->servers > workers))
        return false;
    if (way->placement == PLACEMENT_MIXED)
        shape->topology.servers += workers; /* one server in each worker */
    return true;
}

void predict_way_set_racks(struct predict_way *way, int workers, const int *hosts, int rack_ranks,
                           double oversubscribed)
{
    const size_t count = 1 << 20; /* long: longer vectors load the links alike */
    struct predict_shape shape;
    if (shape_of(way, workers, hosts, count, &shape))
        way->uplink_delay = predict_uplink_delay(&shape, rack_ranks, oversubscribed);
}

bool predict_way_terms(const struct predict_model *model, const struct predict_way *way,
                       int workers, const int *hosts, size_t count, enum compress compress,
                       struct predict_terms *terms)
{
    struct predict_shape shape;
    if (!shape_of(way, workers, hosts, count, &shape))
        return false;
    shape.nominal_bytes_per_s = model->nominal_bytes_per_s;
    shape.compress = compress;
    shape.one_machine = model->one_machine;
    shape.distance_s = model->distance_s;
    shape.latency_s = model->fit.constants.of[TERM_LATENCY];
    shape.link_s_per_byte = model->fit.constants.of[TERM_LINK];
    if (shape.uplink_delay == 0 && model->rack_ranks > 0)
        shape.uplink_delay = predict_uplink_delay(&shape, model->rack_ranks, model->oversubscribed);
    return predict_terms_of(&shape, terms);
}

/* -------- another cluster --------------------------------------------------------------------- */

static void scale(struct predict_fit *fit, enum predict_term term, double factor)
{
    fit->constants.of[term] *= factor;
    fit->low.of[term] *= factor;
    fit->high.of[term] *= factor;
    for (int t = 0; t < PREDICT_TERMS; t++) {
        fit->covariance[term][t] *= factor;
        fit->covariance[t][term] *= factor;
    }
}

struct predict_model predict_model_on(const struct predict_model *model,
                                      const struct predict_cluster *cluster)
{
    struct predict_model there = *model;
    there.distance_s += cluster->added_latency_s;
    if (cluster->rack_ranks > 0) {
        there.rack_ranks = cluster->rack_ranks;
        there.oversubscribed = cluster->oversubscribed;
    }
    if (cluster->bytes_per_s <= 0)
        return there;
    double link_s = model->fit.constants.of[TERM_LINK];
    double fitted = model->nominal_bytes_per_s > 0 ? model->nominal_bytes_per_s : 1 / link_s;
    if (link_s > 0) {
        scale(&there.fit, TERM_LINK, fitted / cluster->bytes_per_s);
        scale(&there.fit, TERM_BURST, fitted / cluster->bytes_per_s);
        scale(&there.fit, TERM_FILL_BURST, fitted / cluster->bytes_per_s);
    } else { /* processors dominated all fitted rows: only the nominal rate of the links is known */
        there.fit.constants.of[TERM_LINK] = 1 / cluster->bytes_per_s;
    }
    there.nominal_bytes_per_s = cluster->bytes_per_s;
    there.one_machine = model->one_machine && cluster->shares_cores;
    return there;
}

static void add_outside(struct line *line, const char *what, struct predict_range range,
                        double number)
{
    const char *comma = line->used > 0 ? ", " : "";
    if (number > (double)range.most)
        line_add(line, "%s%.3g times the most %s (%" PRIu64 ")", comma,
                 number / (double)(range.most > 0 ? range.most : 1), what, range.most);
    else if (number < (double)range.least)
        line_add(line, "%sbelow the fewest %s (%" PRIu64 ")", comma, what, range.least);
}

void predict_outside(const struct predict_model *model, const struct predict_cluster *cluster,
                     int servers, uint64_t least, uint64_t most, char *text, size_t size)
{
    struct line line = line_in(text, size);
    const struct predict_range any = {0, model->servers.most};
    add_outside(&line, "workers fitted", model->workers, cluster->workers);
    add_outside(&line, "servers fitted", any, servers);
    add_outside(&line, "bytes fitted", model->bytes, (double)most);
    if (most >= model->bytes.least) /* otherwise reported above */
        add_outside(&line, "bytes fitted", (struct predict_range){model->bytes.least, UINT64_MAX},
                    (double)least);
    if (cluster->bytes_per_s > 0 && model->nominal_bytes_per_s > 0 &&
        fabs(cluster->bytes_per_s / model->nominal_bytes_per_s - 1) > 1e-6)
        line_add(&line, "%s%.3g times the rate fitted", line.used > 0 ? ", " : "",
                 cluster->bytes_per_s / model->nominal_bytes_per_s);
}

/* -------- the table --------------------------------------------------------------------------- */

static void print_size(FILE *out, const struct predict_model *model,
                       const struct predict_model *there, const struct predict_cluster *cluster,
                       uint64_t bytes)
{
    struct predict_way ways[PREDICT_WAYS_MOST];
    struct predict_interval times[PREDICT_WAYS_MOST];
    size_t count, best = 0, near = 0; /* near: intervals that overlap that of the best way */
    predict_ways(cluster, ways, &count);
    for (size_t w = 0; w < count; w++) {
        struct predict_terms terms;
        times[w] = (struct predict_interval){.seconds = INFINITY, .low = INFINITY};
        if (predict_way_terms(there, &ways[w], cluster->workers, NULL, bytes / sizeof(float),
                              COMPRESS_NONE, &terms))
            times[w] = predict_time(&there->fit, &terms);
        best = times[w].seconds < times[best].seconds ? w : best;
    }
    for (size_t w = 0; w < count; w++)
        near += times[w].low <= times[best].high && isfinite(times[w].seconds);
    for (size_t w = 0; w < count; w++) {
        char words[32], outside[256], between[PREDICT_INTERVAL_BYTES];
        const char *mark = near > 1 ? "  among the fastest (intervals overlap)" : "  fastest";
        predict_way_words(&ways[w], words, sizeof words);
        predict_outside(model, cluster, ways[w].servers, bytes, bytes, outside, sizeof outside);
        if (isfinite(times[w].seconds))
            fprintf(out, "%12" PRIu64 "  %-20s %12.3f  %s%s%s%s%s\n", bytes, words,
                    times[w].seconds * 1e3, predict_interval_text(times[w], 1e3, 3, between),
                    times[w].low <= times[best].high ? mark : "", *outside ? "  (outside: " : "",
                    outside, *outside ? ")" : "");
    }
}

void predict_print_forecast(FILE *out, const struct predict_model *model,
                            const struct predict_cluster *cluster, const uint64_t *sizes,
                            size_t size_count, uint64_t seed)
{
    struct predict_model there = predict_model_on(model, cluster);
    fprintf(out, "\n%d workers, %s as over %s", cluster->workers, model->transport, model->network);
    if (cluster->bytes_per_s > 0)
        fprintf(out, ", but links of %.4g Gbit/s and a machine for each process",
                cluster->bytes_per_s * 8e-9);
    fprintf(out, ": ms, with 95%% interval\n");
    for (size_t s = 0; s < size_count; s++) {
        if (sizes[s] >= sizeof(float))
            print_size(out, model, &there, cluster, sizes[s]);
    }
    predict_print_crossovers(out, &there, cluster, sizes, size_count, seed);
}
