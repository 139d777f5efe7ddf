#include "experiments/compute/bench_compute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/stats.h"
#include "common/data/dataset.h"
#include "common/device/device.h"
#include "experiments/compute/bench_compute_report.h"
#include "experiments/measure/sgemm.h"
#include "models/net.h"
#include "models/optim.h"

enum { STEPS = 20, CLASSES = 10, PASSES = 2 /* forward, backward */ };

/* What a step needs, and the times of its parts. */
struct bench {
    struct world *world;
    struct device *device;
    struct net *net;
    struct optimizer *optimizer;
    struct sgemm *sgemm; /* NULL: not a CPU */
    float *images;       /* device memory, (batch, pixels) */
    uint8_t *labels;     /* device memory, (batch) */
    int threads;
    size_t batch, steps, lines;
    uint64_t step;

    double *times_ms;   /* (lines, PASSES, steps) */
    double *steps_ms;   /* (steps): whole ones */
    double *sgemm_rate; /* (2, steps): one thread, all */
    size_t round;       /* in progress */
    int64_t last_ns;    /* when the part before ended */
};

static double ms_since(int64_t start_ns)
{
    return (double)(clock_now_ns() - start_ns) / (double)NS_PER_MS;
}

double compute_of_sgemm(const struct compute_result *result, double flops, double ms)
{
    if (flops <= 0 || ms <= 0 || result->sgemm_all <= 0)
        return (double)NAN;
    return flops / (ms * 1e-3) / result->sgemm_all;
}

/* -------- steps ------------------------------------------------------------------------------- */

/* The part that has just been issued ends now. */
static void note(void *context, size_t line, bool backward)
{
    struct bench *bench = context;
    CHECK(line < bench->lines);
    device_sync(bench->device); /* a failure stays with the device: the step's end reports it */
    bench->times_ms[(line * PASSES + backward) * bench->steps + bench->round] =
        ms_since(bench->last_ns);
    bench->last_ns = clock_now_ns();
}

/* Forward, backward, optimizer. `watched`: with the times of the layers, else as training does. */
static enum status run_step(struct bench *bench, bool watched)
{
    enum status status;
    struct net_loss loss;
    struct net_step step = {.training = true, .seed = 1, .step = bench->step++};
    net_watch(bench->net, watched ? note : NULL, bench);
    bench->last_ns = clock_now_ns();
    TRY(net_forward(bench->net, bench->images, bench->labels, bench->batch, &step, &loss));
    bench->last_ns = clock_now_ns();
    TRY(net_backward(bench->net, NULL, NULL));
    optimizer_step(bench->optimizer, net_parameters(bench->net), net_gradients(bench->net), 1e-3f);
    if (watched)
        note(bench, bench->lines - 1, true);
    TRY(device_sync(bench->device));
out:
    return status;
}

/* In turn, so that a spell in which the machine is slower or faster meets all of them. */
static enum status run_rounds(struct bench *bench, int64_t warmup)
{
    enum status status;
    for (int64_t i = 0; i < warmup; i++)
        TRY(run_step(bench, false));
    for (bench->round = 0; bench->round < bench->steps; bench->round++) {
        TRY(world_barrier(bench->world, NULL));
        if (bench->sgemm) {
            bench->sgemm_rate[bench->round] = sgemm_rate(bench->sgemm, 1);
            bench->sgemm_rate[bench->steps + bench->round] =
                bench->threads == 1 ? bench->sgemm_rate[bench->round]
                                    : sgemm_rate(bench->sgemm, bench->threads);
        }
        TRY(world_barrier(bench->world, NULL));
        TRY(run_step(bench, true));
        TRY(world_barrier(bench->world, NULL));
        int64_t start_ns = clock_now_ns();
        TRY(run_step(bench, false));
        bench->steps_ms[bench->round] = ms_since(start_ns);
    }
out:
    return status;
}

/* -------- set-up ------------------------------------------------------------------------------ */

/* Pixels as they look to a net, and labels in turn: what they are does not change the times. */
static enum status fill_batch(struct bench *bench)
{
    enum status status;
    const size_t pixels = bench->batch * DATASET_PIXELS;
    void *images = NULL, *labels = NULL;
    float *host_images = malloc(pixels * sizeof *host_images);
    uint8_t *host_labels = malloc(bench->batch);
    TRY(host_images && host_labels ? STATUS_OK : STATUS_NO_MEMORY);
    for (size_t i = 0; i < pixels; i++) {
        struct rng_block block = rng_block(rng_key(1, RNG_INIT, 1), i / 4, 0);
        host_images[i] = rng_uniform(block.word[i % 4]);
    }
    for (size_t i = 0; i < bench->batch; i++)
        host_labels[i] = (uint8_t)(i % CLASSES);
    TRY(device_alloc(bench->device, "a batch of images", pixels * sizeof(float), &images));
    bench->images = images;
    TRY(device_alloc(bench->device, "a batch of labels", bench->batch, &labels));
    bench->labels = labels;
    device_upload(bench->device, images, host_images, pixels * sizeof(float));
    device_upload(bench->device, labels, host_labels, bench->batch);
    status = device_sync(bench->device);
out:
    free(host_images);
    free(host_labels);
    return status;
}

static enum status open_bench(struct bench *bench, const struct config *config)
{
    enum status status;
    struct device_options options;
    size_t layers;
    config_device_options(config, &options);
    bench->threads = options.threads = config_threads(config, bench->world);
    bench->batch = (size_t)config->batch;
    bench->steps = config->iters > 0 ? (size_t)config->iters : STEPS;
    TRY(device_open(&bench->device, &options));
    TRY(net_new(&bench->net, bench->device, config_model_name(config), bench->batch, 1));
    TRY(net_optimizer_new(&bench->optimizer, bench->net, config->optimizer, NULL));
    TRY(fill_batch(bench));
    if (config->device == DEVICE_CPU)
        TRY(sgemm_new(&bench->sgemm, bench->threads));
    net_layers(bench->net, &layers);
    bench->lines = layers + 2;
    bench->times_ms = calloc(bench->lines * PASSES * bench->steps, sizeof *bench->times_ms);
    bench->steps_ms = calloc(bench->steps, sizeof *bench->steps_ms);
    bench->sgemm_rate = calloc(2 * bench->steps, sizeof *bench->sgemm_rate);
    if (!bench->times_ms || !bench->steps_ms || !bench->sgemm_rate) {
        log_error("bench --compute: no memory for the times of %zu steps", bench->steps);
        status = STATUS_NO_MEMORY;
    }
out:
    return status;
}

static void close_bench(struct bench *bench)
{
    sgemm_free(&bench->sgemm);
    if (bench->device) {
        device_free(bench->device, bench->images);
        device_free(bench->device, bench->labels);
    }
    optimizer_free(&bench->optimizer);
    net_free(&bench->net);
    device_close(&bench->device);
    free(bench->times_ms);
    free(bench->steps_ms);
    free(bench->sgemm_rate);
}

/* -------- what follows ------------------------------------------------------------------------ */

static void add_pass(struct compute_pass *sum, const struct compute_pass *pass)
{
    sum->ms += pass->ms;
    sum->flops += pass->flops;
    sum->bytes += pass->bytes;
}

/* Reads x and the parameters, writes y; backward reads x, dy and the weights, writes the gradients
 * and, but for the first layer, dx. */
static void describe_layer(struct compute_line *line, const struct net_layer *layer, size_t batch,
                           bool first)
{
    double images = (double)batch, in = images * (double)layer->in_count,
           out = images * (double)layer->out_count, parameters = (double)layer->count;
    line->name = layer->name;
    line->forward.flops = images * layer->forward_flops;
    line->backward.flops = images * layer->backward_flops;
    line->forward.bytes = sizeof(float) * (in + parameters + out);
    line->backward.bytes = sizeof(float) * (in + out + 2 * parameters + (first ? 0 : in));
    if (layer->count == 0) /* what has no parameters does not read x again */
        line->backward.bytes = sizeof(float) * (out + in);
}

/* Reads gradients, reads and writes parameters and its own state. */
static double optimizer_bytes(const struct bench *bench)
{
    size_t states;
    optimizer_state(bench->optimizer, &states);
    return sizeof(float) * (3.0 * (double)net_parameter_count(bench->net) + 2.0 * (double)states);
}

static void evaluate(struct bench *bench, struct compute_result *result)
{
    size_t layers;
    const struct net_layer *table = net_layers(bench->net, &layers);
    for (size_t i = 0; i < bench->lines; i++) {
        struct compute_line *line = &result->lines[i];
        if (i < layers)
            describe_layer(line, &table[i], bench->batch, i == 0);
        else
            line->name = i == layers ? "loss" : "optimizer";
        if (i == bench->lines - 1)
            line->backward.bytes = optimizer_bytes(bench);
        double *times = bench->times_ms + i * PASSES * bench->steps;
        line->forward.ms = stats_median(times, bench->steps);
        line->backward.ms = stats_median(times + bench->steps, bench->steps);
        add_pass(&result->sum.forward, &line->forward);
        add_pass(&result->sum.backward, &line->backward);
    }
    result->sum.name = "sum";
    result->step_ms = stats_median(bench->steps_ms, bench->steps);
    if (bench->sgemm) {
        result->sgemm_one = stats_median(bench->sgemm_rate, bench->steps);
        result->sgemm_all = stats_median(bench->sgemm_rate + bench->steps, bench->steps);
    }
}

enum status bench_compute_run(struct config *config, struct world *world)
{
    enum status status;
    struct bench bench = {.world = world};
    struct compute_result result = {.model = config_model_name(config),
                                    .device = config_device_name(config),
                                    .ranks = world->size};
    TRY(open_bench(&bench, config));
    result.convolutions = device_convolutions(bench.device);
    result.threads = bench.threads;
    result.batch = bench.batch;
    result.steps = bench.steps;
    result.count = bench.lines;
    result.lines = calloc(bench.lines, sizeof *result.lines);
    if (!result.lines) {
        log_error("bench --compute: no memory for %zu lines", bench.lines);
        status = STATUS_NO_MEMORY;
        goto out;
    }
    TRY(run_rounds(&bench, config->warmup));
    evaluate(&bench, &result);
    TRY(world_max(world, NULL, &result.step_ms, 1));
    result.images_per_s = (double)(result.batch * (size_t)result.ranks) / (result.step_ms * 1e-3);
    if (world->rank == 0)
        TRY(bench_compute_report(config, &result));
out:
    free(result.lines);
    close_bench(&bench);
    return status;
}
