#include "experiments/predict/forecast.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "common/base/text.h"
#include "experiments/config/backends.h"
#include "experiments/config/config_table.h"
#include "experiments/predict/crossover.h"

/* -------- ways to average --------------------------------------------------------------------- */

void predict_ways(const struct predict_cluster *cluster, struct predict_way *ways, size_t *count)
{
    int inside[] = {1, cluster->workers / 2, cluster->workers};
    int spare[] = {1, cluster->spare / 2, cluster->spare};
    *count = 0;
    ways[(*count)++] = (struct predict_way){.backend = "ring"};
    ways[(*count)++] = (struct predict_way){.backend = "rhd"};
    for (int i = 0, last = 0; i < 3; i++) {
        if (inside[i] > last)
            ways[(*count)++] = (struct predict_way){"ps", PLACEMENT_COLOCATED, last = inside[i]};
    }
    for (int i = 0, last = 0; i < 3; i++) {
        if (spare[i] <= cluster->spare && spare[i] > last)
            ways[(*count)++] = (struct predict_way){"ps", PLACEMENT_DEDICATED, last = spare[i]};
    }
    if (cluster->spare > 0)
        ways[(*count)++] = (struct predict_way){"ps", PLACEMENT_MIXED, cluster->spare};
}

void predict_way_words(const struct predict_way *way, char *text, size_t size)
{
    if (strcmp(way->backend, "ps") == 0)
        snprintf(text, size, "ps %s %d", config_placement_words[way->placement], way->servers);
    else
        snprintf(text, size, "%s", way->backend);
}

static const struct backend *backend_named(const char *name)
{
    int index = backend_find(name);
    return index >= 0 ? backend_get((size_t)index) : NULL;
}

bool predict_way_terms(const struct predict_model *model, const struct predict_way *way,
                       int workers, size_t count, enum compress compress,
                       struct predict_terms *terms)
{
    struct predict_shape shape = {.backend = backend_named(way->backend),
                                  .topology = {workers, way->servers, way->placement},
                                  .count = count,
                                  .nominal_bytes_per_s = model->nominal_bytes_per_s,
                                  .compress = compress,
                                  .one_machine = model->one_machine};
    if (!shape.backend || (way->placement == PLACEMENT_COLOCATED && way->servers > workers))
        return false;
    if (way->placement == PLACEMENT_MIXED)
        shape.topology.servers += workers; /* one in each */
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
    there.fit.constants.of[TERM_LATENCY] += cluster->added_latency_s;
    if (cluster->bytes_per_s <= 0)
        return there;
    double link_s = model->fit.constants.of[TERM_LINK];
    double fitted = model->nominal_bytes_per_s > 0 ? model->nominal_bytes_per_s : 1 / link_s;
    if (link_s > 0) {
        scale(&there.fit, TERM_LINK, fitted / cluster->bytes_per_s);
        scale(&there.fit, TERM_BURST, fitted / cluster->bytes_per_s);
        scale(&there.fit, TERM_FILL_BURST, fitted / cluster->bytes_per_s);
    } else { /* processors took longer throughout: of links nothing is known but their rate */
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
                     int servers, uint64_t bytes, char *text, size_t size)
{
    predict_outside_between(model, cluster, servers, bytes, bytes, text, size);
}

void predict_outside_between(const struct predict_model *model,
                             const struct predict_cluster *cluster, int servers, uint64_t least,
                             uint64_t most, char *text, size_t size)
{
    struct line line = line_in(text, size);
    const struct predict_range any = {0, model->servers.most};
    add_outside(&line, "workers fitted", model->workers, cluster->workers);
    add_outside(&line, "servers fitted", any, servers);
    add_outside(&line, "bytes fitted", model->bytes, (double)most);
    if (most >= model->bytes.least) /* else that is said */
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
    size_t count, best = 0, near = 0; /* `near`: the intervals that overlap the best way's */
    predict_ways(cluster, ways, &count);
    for (size_t w = 0; w < count; w++) {
        struct predict_terms terms;
        times[w] = (struct predict_interval){.seconds = INFINITY, .low = INFINITY};
        if (predict_way_terms(there, &ways[w], cluster->workers, bytes / sizeof(float),
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
        predict_outside(model, cluster, ways[w].servers, bytes, outside, sizeof outside);
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
