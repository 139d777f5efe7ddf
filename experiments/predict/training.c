#include "experiments/predict/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/util.h"
#include "common/comm/bucket.h"
#include "common/device/device.h"
#include "experiments/train/gradient_sync.h"
#include "models/cnn.h"
#include "models/published.h"

enum { STEPS_TO_SETTLE = 8 };

/* -------- the model --------------------------------------------------------------------------- */

static enum status unknown_model(const char *model)
{
    return FAIL(STATUS_USAGE,
                "--model %s: no such model; expected one of the published models of psring bench "
                "--help (--model-gradients) or of psring train --help (--model)",
                model);
}

/* The layers of a model of the zoo. Builds the net to ask for them. */
static enum status zoo_layers(struct predict_step *step, const char *model)
{
    enum status status;
    struct device *device = NULL;
    struct net *net = NULL;
    TRY(device_open(&device, &(struct device_options){.kind = DEVICE_CPU, .threads = 1}));
    TRY(net_new(&net, device, model, 1, 1));
    const struct net_layer *layers = net_layers(net, &step->layer_count);
    step->layers = malloc(step->layer_count * sizeof *layers);
    TRY(step->layers ? STATUS_OK : STATUS_NO_MEMORY);
    memcpy(step->layers, layers, step->layer_count * sizeof *layers);
    for (size_t l = 0; l < step->layer_count; l++)
        step->layers[l].name = ""; /* the net owned the name */
out:
    net_free(&net);
    device_close(&device);
    return status;
}

static enum status find_layers(struct predict_step *step, const char *model)
{
    for (int p = PUBLISHED_NONE + 1; published_names[p]; p++) {
        if (strcmp(published_names[p], model) == 0)
            return published_layers((enum published)p, &step->layers, &step->layer_count);
    }
    return cnn_find(model) ? zoo_layers(step, model) : unknown_model(model);
}

enum status predict_step_open(struct predict_step *step, const char *model, size_t bucket_bytes)
{
    enum status status;
    const struct bucket_limits limits = {.bytes = bucket_bytes, .cut = true};
    *step = (struct predict_step){0};
    TRY(find_layers(step, model));
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): predict_step_free frees the layers */
    TRY(gradient_buckets(step->layers, step->layer_count, &limits, &step->buckets,
                         &step->bucket_count, &step->order));
    for (size_t l = 0; l < step->layer_count; l++)
        step->bytes += step->layers[l].count * sizeof(float);
out:
    return status;
}

void predict_step_free(struct predict_step *step)
{
    free(step->layers);
    free(step->buckets);
    free(step->order);
    *step = (struct predict_step){0};
}

size_t predict_step_least(const struct predict_step *step)
{
    size_t least = step->bytes;
    for (size_t b = 0; b < step->bucket_count; b++)
        least = size_smaller(least, step->buckets[b].count * sizeof(float));
    return least;
}

size_t predict_step_most(const struct predict_step *step)
{
    size_t most = 0;
    for (size_t b = 0; b < step->bucket_count; b++)
        most = size_larger(most, step->buckets[b].count * sizeof(float));
    return most;
}

/* -------- a step ------------------------------------------------------------------------------ */

/* The simulated time. */
struct clock {
    const struct predict_step *step;
    double now, free;     /* now: of the computation; free: the network is idle from then on */
    double *ready, *done; /* (bucket_count) */
};

/* Waits until elements [first, end) are averaged, before they are read. */
static void need(struct clock *clock, size_t first, size_t end)
{
    for (size_t b = 0; b < clock->step->bucket_count; b++) {
        const struct bucket *bucket = &clock->step->buckets[b];
        if (bucket->first < end && first < bucket->first + bucket->count)
            clock->now = fmax(clock->now, clock->done[b]);
    }
}

/* Marks the buckets ready whose gradients, from `first` on, are final. */
static void complete(struct clock *clock, size_t first, size_t *started)
{
    while (*started < clock->step->bucket_count && first <= clock->step->buckets[*started].first)
        clock->ready[(*started)++] = clock->now;
}

static void pass(struct clock *clock, const struct net_layer *layer, double seconds,
                 size_t *started)
{
    size_t parts = layer->gradient_parts, end = layer->count;
    for (size_t part = parts; part-- > 0;) {
        size_t first = layer->count / parts * part;
        if (!started && layer->count > 0)
            need(clock, layer->first + first, layer->first + end);
        clock->now += seconds / (double)parts;
        if (started && layer->count > 0)
            complete(clock, layer->first + first, started);
        end = first;
    }
}

/* Travel time after the network was idle for `idle_s`. */
static double travel_s(const struct predict_travel *travel, double idle_s)
{
    double share = travel->rest_s > 0 ? fmin(idle_s / travel->rest_s, 1) : 1;
    return travel->seconds - share * travel->saved_s;
}

static void run_step(struct clock *clock, double s_per_flop, const struct predict_travel *travels,
                     bool defers)
{
    const struct predict_step *step = clock->step;
    size_t started = 0;
    for (size_t l = 0; l < step->layer_count; l++)
        pass(clock, &step->layers[l], step->layers[l].forward_flops * s_per_flop, NULL);
    for (size_t l = step->layer_count; l-- > 0;)
        pass(clock, &step->layers[l], step->layers[l].backward_flops * s_per_flop, &started);
    for (size_t i = 0; i < step->bucket_count; i++) {
        size_t b = defers ? step->order[i] : i;
        double begin = fmax(clock->free, clock->ready[b]);
        clock->free = begin + travel_s(&travels[b], begin - clock->free);
        clock->done[b] = clock->free;
    }
    if (!defers)
        clock->now = fmax(clock->now, clock->free);
}

double predict_step_time(const struct predict_step *step, double compute_s,
                         const struct predict_travel *travels, bool defers, double *scratch)
{
    double flops = 0, before = 0;
    struct clock clock = {.step = step, .ready = scratch, .done = scratch + step->bucket_count};
    for (size_t b = 0; b < 2 * step->bucket_count; b++)
        scratch[b] = 0;
    for (size_t l = 0; l < step->layer_count; l++)
        flops += step->layers[l].forward_flops + step->layers[l].backward_flops;
    for (int s = 0; s < STEPS_TO_SETTLE; s++) {
        before = clock.now;
        run_step(&clock, compute_s / flops, travels, defers && step->bucket_count > 1);
    }
    return clock.now - before;
}

/* -------- a step ------------------------------------------------------------------------------ */

/* A step with communication that takes `factor` times as long. `scaled` (bucket_count). */
static double scaled_step(const struct predict_step *step, double compute_s, double factor,
                          const struct predict_travel *travels, struct predict_travel *scaled,
                          double *scratch)
{
    for (size_t b = 0; b < step->bucket_count; b++)
        scaled[b] = (struct predict_travel){travels[b].seconds * factor,
                                            travels[b].saved_s * factor, travels[b].rest_s};
    return predict_step_time(step, compute_s, scaled, true, scratch);
}

/* The travel time of a bucket. Consecutive buckets leave the links idle only while servers fill. */
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

/* A step in which bucket b has terms[b]. STATUS_NO_MEMORY is logged. */
static enum status buckets_step(const struct predict_fit *fit, const struct predict_step *step,
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
        all.distance_s += terms[b].distance_s;
        for (int t = 0; t < PREDICT_TERMS; t++)
            all.of[t] += terms[b].of[t];
    }
    all.of[TERM_BURST] =
        fmax(all.of[TERM_BURST], -1); /* consecutive buckets: only the first has a burst */
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
                           int workers, const int *hosts, const struct predict_step *step,
                           const struct predict_training *training,
                           struct predict_interval *seconds)
{
    struct predict_terms *terms = malloc(step->bucket_count * sizeof *terms);
    bool known = terms != NULL;
    for (size_t b = 0; known && b < step->bucket_count; b++) {
        if (b > 0 && step->buckets[b].count == step->buckets[b - 1].count)
            terms[b] = terms[b - 1];
        else
            known = predict_way_terms(model, way, workers, hosts, step->buckets[b].count,
                                      training->compress, &terms[b]);
    }
    known =
        known && buckets_step(&model->fit, step, terms, training->compute_s, seconds) == STATUS_OK;
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
    double images = training->batch * cluster->workers; /* per step */
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
        predict_outside(model, cluster, ways[w].servers, predict_step_least(&step),
                        predict_step_most(&step), outside, sizeof outside);
        if (predict_training_step(&there, &ways[w], cluster->workers, NULL, &step, training,
                                  &seconds))
            print_way(out, &ways[w], cluster, training, seconds, outside);
    }
out:
    predict_step_free(&step);
    return status;
}
