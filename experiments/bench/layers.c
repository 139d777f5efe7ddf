/* bench --layers: the time and the rate of every layer, forward and backward. */
#include "experiments/bench/bench.h"

#include <cblas.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/base/status.h"
#include "common/base/clock.h"
#include "common/base/csv.h"
#include "common/base/util.h"
#include "common/base/rng.h"
#include "common/base/stats.h"
#include "common/data/dataset.h"
#include "common/device/cpu/team.h"
#include "common/device/device.h"
#include "experiments/bench/info.h"
#include "models/net.h"
#include "models/optim.h"

/* -------- matrix products --------------------------------------------------------------------- */

/*
 * The rate at which this machine multiplies matrices. Computation is compared with it, because
 * nearly all of a CNN's work is matrix products. A CPU device has set CBLAS to one thread, so this
 * file divides the rows of the product between threads.
 */
enum { SGEMM_EDGE = 2048 };

struct sgemm {
    struct team *team;
    float *a, *b, *c; /* (SGEMM_EDGE, SGEMM_EDGE) */
    int parts;        /* of the product in progress */
};

static void sgemm_free(struct sgemm **sgemm)
{
    struct sgemm *s = *sgemm;
    *sgemm = NULL;
    if (!s)
        return;
    team_free(&s->team);
    free(s->a);
    free(s->b);
    free(s->c);
    free(s);
}

static enum status sgemm_new(struct sgemm **out_sgemm, int threads)
{
    enum status status = STATUS_OK;
    const size_t count = (size_t)SGEMM_EDGE * SGEMM_EDGE;
    struct sgemm *sgemm = calloc(1, sizeof *sgemm);
    if (sgemm) {
        sgemm->a = memory_array(count * sizeof *sgemm->a);
        sgemm->b = memory_array(count * sizeof *sgemm->b);
        sgemm->c = memory_array(count * sizeof *sgemm->c);
    }
    if (!sgemm || !sgemm->a || !sgemm->b || !sgemm->c)
        TRY(FAIL(STATUS_NO_MEMORY, "sgemm: no memory for three matrices of %zu bytes",
                 count * sizeof(float)));
    for (size_t i = 0; i < count; i++) {
        sgemm->a[i] = (float)(i % 7) - 3;
        sgemm->b[i] = (float)(i % 5) - 2;
    }
    TRY(team_new(&sgemm->team, threads));
out:
    if (status != STATUS_OK)
        sgemm_free(&sgemm);
    *out_sgemm = sgemm;
    return status;
}

/* Rows [from, to) of the product. */
static void multiply_part(void *context, size_t part, int thread)
{
    struct sgemm *s = context;
    int from = (int)part * SGEMM_EDGE / s->parts, to = ((int)part + 1) * SGEMM_EDGE / s->parts;
    (void)thread;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, to - from, SGEMM_EDGE, SGEMM_EDGE, 1.0f,
                s->a + (size_t)from * SGEMM_EDGE, SGEMM_EDGE, s->b, SGEMM_EDGE, 0.0f,
                s->c + (size_t)from * SGEMM_EDGE, SGEMM_EDGE);
}

static double sgemm_rate(struct sgemm *sgemm, int threads)
{
    const double flops = 2.0 * SGEMM_EDGE * SGEMM_EDGE * SGEMM_EDGE;
    CHECK(threads == 1 || threads == team_threads(sgemm->team));
    sgemm->parts = threads;
    int64_t start_ns = clock_now_ns();
    team_run(sgemm->team, (size_t)threads, multiply_part, sgemm);
    return flops / ((double)(clock_now_ns() - start_ns) * 1e-9);
}

/* -------- results ----------------------------------------------------------------------------- */

/* The whole step as a line, with the operations and bytes of its parts. */
static struct compute_line whole_step(const struct compute_result *result)
{
    const struct compute_pass *forward = &result->sum.forward, *backward = &result->sum.backward;
    return (struct compute_line){.name = "step",
                                 .forward = {.ms = result->step_ms,
                                             .flops = forward->flops + backward->flops,
                                             .bytes = forward->bytes + backward->bytes}};
}

/* -------- the table --------------------------------------------------------------------------- */

static void print_pass(FILE *out, const struct compute_result *result,
                       const struct compute_pass *pass)
{
    double of_sgemm = compute_of_sgemm(result, pass->flops, pass->ms);
    fprintf(out, " %9.3f %10.2f %9.2f", pass->ms, pass->flops * 1e-6, pass->bytes * 1e-6);
    if (isfinite(of_sgemm))
        fprintf(out, " %8.2f", of_sgemm);
    else
        fprintf(out, " %8s", "-");
}

static void print_line(FILE *out, const struct compute_result *result,
                       const struct compute_line *line)
{
    fprintf(out, " %-10s", line->name);
    print_pass(out, result, &line->forward);
    print_pass(out, result, &line->backward);
    fprintf(out, "\n");
}

void bench_compute_table(FILE *out, const struct compute_result *result)
{
    struct compute_line step = whole_step(result);
    fprintf(out,
            "# psring bench --layers: %s, batch %zu, device %s, %d thread%s, %d rank%s at once\n",
            result->model, result->batch, result->device, result->threads,
            result->threads == 1 ? "" : "s", result->ranks, result->ranks == 1 ? "" : "s");
    if (result->sgemm_one > 0)
        fprintf(out, "# sgemm, 2048 x 2048 x 2048: %.1f GFLOP/s on one thread, %.1f on %d\n",
                result->sgemm_one * 1e-9, result->sgemm_all * 1e-9, result->threads);
    fprintf(out,
            "# medians of %zu steps, rank 0's; of sgemm: FLOPs over time, over that rate; MB: each "
            "tensor read or written\n# once, the least that has to move. sum: of the lines above; "
            "step: timed as a whole, forward, backward\n# and optimizer in the first four columns, "
            "the slowest rank's.\n#\n",
            result->steps);
    fprintf(out, "#%-10s %39s %39s\n", "", "forward", "backward");
    fprintf(out, "#%-10s %9s %10s %9s %8s %9s %10s %9s %8s\n", "layer", "ms", "MFLOP", "MB",
            "of sgemm", "ms", "MFLOP", "MB", "of sgemm");
    for (size_t i = 0; i < result->count; i++)
        print_line(out, result, &result->lines[i]);
    print_line(out, result, &result->sum);
    fprintf(out, " %-10s", step.name);
    print_pass(out, result, &step.forward);
    fprintf(out, "\n# %.1f images/s, all ranks together\n", result->images_per_s);
}

/* -------- CSV --------------------------------------------------------------------------------- */

static double known(double value)
{
    return value > 0 ? value : (double)NAN;
}

/* The columns, in order. */
static void list_fields(const struct compute_result *result, const struct compute_line *line,
                        double images_per_s, struct fields *fields)
{
    const struct compute_pass *forward = &line->forward, *backward = &line->backward;
    fields_start(fields);
    fields_text(fields, "model", result->model);
    fields_text(fields, "device", result->device);
    fields_uint(fields, "ranks", (uint64_t)result->ranks);
    fields_uint(fields, "threads", (uint64_t)result->threads);
    fields_uint(fields, "batch", result->batch);
    fields_uint(fields, "steps", result->steps);
    fields_text(fields, "layer", line->name);
    fields_double(fields, "forward_ms", known(forward->ms));
    fields_double(fields, "forward_flops", known(forward->flops));
    fields_double(fields, "forward_bytes", known(forward->bytes));
    fields_double(fields, "forward_of_sgemm",
                  compute_of_sgemm(result, forward->flops, forward->ms));
    fields_double(fields, "backward_ms", known(backward->ms));
    fields_double(fields, "backward_flops", known(backward->flops));
    fields_double(fields, "backward_bytes", known(backward->bytes));
    fields_double(fields, "backward_of_sgemm",
                  compute_of_sgemm(result, backward->flops, backward->ms));
    fields_double(fields, "sgemm_flops_per_s", known(result->sgemm_one));
    fields_double(fields, "sgemm_threads_flops_per_s", known(result->sgemm_all));
    fields_double(fields, "images_per_s", images_per_s);
}

static enum status csv_line(struct csv *csv, const struct compute_result *result,
                            const struct compute_line *line, double images_per_s)
{
    struct fields fields;
    list_fields(result, line, images_per_s, &fields);
    return fields_csv_write(&fields, csv);
}

enum status bench_compute_csv(const char *path, const struct compute_result *result)
{
    enum status status;
    struct csv *csv = NULL;
    struct fields fields;
    struct compute_line step = whole_step(result);
    list_fields(result, &step, result->images_per_s, &fields);
    TRY(fields_csv_open(&fields, &csv, path));
    for (size_t i = 0; i < result->count; i++)
        TRY(csv_line(csv, result, &result->lines[i], (double)NAN));
    TRY(csv_line(csv, result, &result->sum, (double)NAN));
    TRY(fields_csv_write(&fields, csv));
    TRY(csv_close(&csv));
out:
    csv_close(&csv);
    return status;
}

/* -------- JSON -------------------------------------------------------------------------------- */

/* A number that is not known is NAN, which cJSON prints as null. */
static bool add_pass_json(cJSON *line, const char *name, const struct compute_result *result,
                          const struct compute_pass *pass)
{
    cJSON *object = cJSON_AddObjectToObject(line, name);
    return object && cJSON_AddNumberToObject(object, "ms", known(pass->ms)) &&
           cJSON_AddNumberToObject(object, "flops", known(pass->flops)) &&
           cJSON_AddNumberToObject(object, "bytes", known(pass->bytes)) &&
           cJSON_AddNumberToObject(object, "of_sgemm",
                                   compute_of_sgemm(result, pass->flops, pass->ms));
}

static bool add_line_json(cJSON *lines, const struct compute_result *result,
                          const struct compute_line *line)
{
    cJSON *object = cJSON_CreateObject();
    return object && cJSON_AddItemToArray(lines, object) &&
           cJSON_AddStringToObject(object, "name", line->name) &&
           add_pass_json(object, "forward", result, &line->forward) &&
           add_pass_json(object, "backward", result, &line->backward);
}

static enum status write_json(const struct config *config, const struct compute_result *result)
{
    cJSON *document = info_json(config);
    struct compute_line step = whole_step(result);
    bool whole = cJSON_AddItemToObject(document, "config", result_config_json(config));
    cJSON *compute = cJSON_AddObjectToObject(document, "compute");
    whole =
        whole && cJSON_AddNumberToObject(compute, "threads", result->threads) &&
        cJSON_AddNumberToObject(compute, "ranks", result->ranks) &&
        cJSON_AddNumberToObject(compute, "steps", (double)result->steps) &&
        cJSON_AddNumberToObject(compute, "sgemm_flops_per_s", known(result->sgemm_one)) &&
        cJSON_AddNumberToObject(compute, "sgemm_threads_flops_per_s", known(result->sgemm_all)) &&
        cJSON_AddNumberToObject(compute, "images_per_s", result->images_per_s) &&
        add_pass_json(compute, "step", result, &step.forward);
    cJSON *layers = cJSON_AddArrayToObject(compute, "layers");
    for (size_t i = 0; whole && i < result->count; i++)
        whole = add_line_json(layers, result, &result->lines[i]);
    enum status status = result_write_json(config->json, whole && layers ? document : NULL);
    cJSON_Delete(document);
    return status;
}

/* Writes to stdout, and to --csv and --json if they are given. Errors: logged. */
static enum status bench_compute_report(const struct config *config,
                                        const struct compute_result *result)
{
    enum status status = STATUS_OK;
    bench_compute_table(stdout, result);
    if (config->csv)
        TRY(bench_compute_csv(config->csv, result));
    if (config->json)
        TRY(write_json(config, result));
out:
    return status;
}

/* -------- the measurement --------------------------------------------------------------------- */

enum { STEPS = 20, CLASSES = 10, PASSES = 2 /* forward, backward */ };

/* The state of a step, and the times of its parts. */
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
    int64_t last_ns;    /* end of the previous part */
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

/* Ends the part that was just issued. */
static void note(void *context, size_t line, bool backward)
{
    struct bench *bench = context;
    CHECK(line < bench->lines);
    device_sync(bench->device); /* the device keeps a failure; the step's end reports it */
    bench->times_ms[(line * PASSES + backward) * bench->steps + bench->round] =
        ms_since(bench->last_ns);
    bench->last_ns = clock_now_ns();
}

/* Forward, backward, optimizer. `watched`: record the times of the layers; else as in training. */
static enum status run_step(struct bench *bench, bool watched)
{
    enum status status;
    struct loss_sum loss;
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

/* Alternates between the measurements, so that a slow phase of the machine affects all of them. */
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

/* Fills in plausible pixels and cyclic labels. Their values do not change the times. */
static enum status fill_batch(struct bench *bench)
{
    enum status status;
    const size_t pixels = bench->batch * DATASET_PIXELS;
    void *images = NULL, *labels = NULL;
    float *host_images = malloc(pixels * sizeof *host_images);
    uint8_t *host_labels = malloc(bench->batch);
    if (!host_images || !host_labels)
        TRY(FAIL(STATUS_NO_MEMORY, "a batch of %zu images: out of memory", bench->batch));
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
    bench->steps = config->bench.iters > 0 ? (size_t)config->bench.iters : STEPS;
    TRY(device_open(&bench->device, &options));
    TRY(net_new(&bench->net, bench->device, config_model_name(config), bench->batch, 1));
    TRY(net_optimizer_new(&bench->optimizer, bench->net, config->learning.optimizer, NULL));
    TRY(fill_batch(bench));
    if (config->device == DEVICE_CPU)
        TRY(sgemm_new(&bench->sgemm, bench->threads));
    net_layers(bench->net, &layers);
    bench->lines = layers + 2;
    bench->times_ms = calloc(bench->lines * PASSES * bench->steps, sizeof *bench->times_ms);
    bench->steps_ms = calloc(bench->steps, sizeof *bench->steps_ms);
    bench->sgemm_rate = calloc(2 * bench->steps, sizeof *bench->sgemm_rate);
    if (!bench->times_ms || !bench->steps_ms || !bench->sgemm_rate) {
        log_error("bench --layers: no memory for the times of %zu steps", bench->steps);
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
    if (layer->count == 0) /* without parameters it does not read x again */
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
    result.threads = bench.threads;
    result.batch = bench.batch;
    result.steps = bench.steps;
    result.count = bench.lines;
    result.lines = calloc(bench.lines, sizeof *result.lines);
    if (!result.lines)
        TRY(FAIL(STATUS_NO_MEMORY, "bench --layers: no memory for %zu lines", bench.lines));
    TRY(run_rounds(&bench, config->bench.warmup));
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
