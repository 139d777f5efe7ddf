#include "experiments/predict/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"

/* -------- a step ------------------------------------------------------------------------------ */

/* Communication that takes `factor` times as long. `scaled` (bucket_count). */
static double scaled_step(const struct predict_step *step, double compute_s, double factor,
                          const struct predict_travel *travels, struct predict_travel *scaled,
                          double *scratch)
{
    for (size_t b = 0; b < step->bucket_count; b++)
        scaled[b] = (struct predict_travel){travels[b].seconds * factor,
                                            travels[b].saved_s * factor, travels[b].rest_s};
    return predict_step_time(step, compute_s, scaled, true, scratch);
}

/* One bucket behind the other leaves links no time to rest but what they have while servers
 * fill. */
static struct predict_travel travel_of(const struct predict_fit *fit,
                                       const struct predict_terms *terms)
{
    struct predict_terms seconds = predict_seconds(terms, &fit->constants);
    double rested = predict_parts_of(&seconds).together, burst_s = -seconds.of[TERM_BURST];
    double at_once_s = fmin(burst_s, predict_fill_s(terms, &fit->constants));
    struct predict_travel travel = {.rest_s = burst_s - at_once_s};
    seconds.of[TERM_BURST] = -at_once_s;
    travel.seconds = predict_parts_of(&seconds).together;
    travel.saved_s = travel.seconds - rested;
    return travel;
}

enum status predict_buckets_step(const struct predict_fit *fit, const struct predict_step *step,
                                 const struct predict_terms *terms, double compute_s,
                                 struct predict_interval *seconds)
{
    struct predict_terms all = {0};
    size_t count = step->bucket_count;
    struct predict_travel *travels = malloc(2 * count * sizeof *travels);
    double *scratch = malloc(2 * count * sizeof *scratch);
    enum status status = travels && scratch ? STATUS_OK : STATUS_NO_MEMORY;
    if (status != STATUS_OK) {
        log_error("predict: no memory for %zu buckets", count);
        goto out;
    }
    for (size_t b = 0; b < count; b++) {
        travels[b] = travel_of(fit, &terms[b]);
        all.fill_bytes += terms[b].fill_bytes;
        for (int t = 0; t < PREDICT_TERMS; t++)
            all.of[t] += terms[b].of[t];
    }
    all.of[TERM_BURST] = fmax(all.of[TERM_BURST], -1); /* one behind the other: the first one's */
    struct predict_interval sum = predict_time(fit, &all);
    double low = sum.seconds > 0 ? sum.low / sum.seconds : 1;
    double high = sum.seconds > 0 && predict_has_interval(sum) ? sum.high / sum.seconds : 1;
    struct predict_travel *scaled = travels + count;
    *seconds =
        (struct predict_interval){scaled_step(step, compute_s, 1, travels, scaled, scratch),
                                  scaled_step(step, compute_s, low, travels, scaled, scratch),
                                  scaled_step(step, compute_s, high, travels, scaled, scratch)};
    if (sum.seconds > 0 && !predict_has_interval(sum)) {
        seconds->low = 0;
        seconds->high = INFINITY;
    }
out:
    free(travels);
    free(scratch);
    return status;
}

bool predict_training_step(const struct predict_model *model, const struct predict_way *way,
                           int workers, const struct predict_step *step,
                           const struct predict_training *training,
                           struct predict_interval *seconds)
{
    struct predict_terms *terms = malloc(step->bucket_count * sizeof *terms);
    bool known = terms != NULL;
    for (size_t b = 0; known && b < step->bucket_count; b++)
        known = predict_way_terms(model, way, workers, step->buckets[b].count, training->compress,
                                  &terms[b]);
    known = known && predict_buckets_step(&model->fit, step, terms, training->compute_s, seconds) ==
                         STATUS_OK;
    free(terms);
    return known;
}

/* -------- what a cluster makes of it ---------------------------------------------------------- */

static void print_way(FILE *out, const struct predict_way *way,
                      const struct predict_cluster *cluster,
                      const struct predict_training *training, struct predict_interval step,
                      const char *outside)
{
    char words[32], between[PREDICT_INTERVAL_BYTES];
    double images = training->batch * cluster->workers; /* a step */
    double epoch_s = training->images / images * step.seconds;
    predict_way_words(way, words, sizeof words);
    fprintf(out, "%-20s %10.2f  %s %10.2f %10.1f %7.1f%% %10.4g %10.4g%s%s%s\n", words,
            step.seconds * 1e3, predict_interval_text(step, 1e3, 2, between),
            (step.seconds - training->compute_s) * 1e3, images / step.seconds,
            100 * training->compute_s / step.seconds, epoch_s, epoch_s * training->epochs,
            *outside ? "  (outside: " : "", outside, *outside ? ")" : "");
}

enum status predict_print_training(FILE *out, const struct predict_model *model,
                                   const struct predict_cluster *cluster,
                                   const struct predict_training *training)
{
    enum status status;
    struct predict_way ways[PREDICT_WAYS_MOST];
    struct predict_step step;
    struct predict_model there = predict_model_on(model, cluster);
    size_t count;
    TRY(predict_step_open(&step, training->model, training->bucket_bytes));
    predict_ways(cluster, ways, &count);
    fprintf(
        out,
        "\nTraining %s (%.1f MB of gradients in %zu bucket%s, --bucket-mb %g), %d workers of %g "
        "images in %g ms, %s as over %s\n%-20s %10s  %s\n",
        training->model, (double)step.bytes * 1e-6, step.bucket_count,
        step.bucket_count == 1 ? "" : "s", (double)training->bucket_bytes / 1048576,
        cluster->workers, training->batch, training->compute_s * 1e3, model->transport,
        model->network, "", "step ms",
        "[95%]   exposed ms   images/s   scaling    epoch s      all s");
    for (size_t w = 0; w < count; w++) {
        struct predict_interval seconds;
        char outside[256];
        predict_outside_between(model, cluster, ways[w].servers, predict_step_least(&step),
                                predict_step_most(&step), outside, sizeof outside);
        if (predict_training_step(&there, &ways[w], cluster->workers, &step, training, &seconds))
            print_way(out, &ways[w], cluster, training, seconds, outside);
    }
out:
    predict_step_free(&step);
    return status;
}
