/* The gradients of a step: servers that update, buckets and their starts, and a step that only
 * waits. */
#include "experiments/train/gradient_sync.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/range.h"
#include "common/base/status.h"
#include "common/comm/bucket.h"

/* -------- a server that updates --------------------------------------------------------------- */

static float *array_of(void *context, size_t bucket, size_t array)
{
    struct updater *updater = context;
    size_t states, first = updater->buckets[bucket].first;
    if (array == COMM_GRADIENTS)
        return updater->gradients + first;
    if (array == COMM_PARAMETERS)
        return updater->parameters + first;
    float *state = optimizer_state(updater->optimizer, &states);
    return state + (array - COMM_STATES) * updater->count + first;
}

/* Applies a push. `step` is the step of the worker that pushed. */
static void apply(void *context, size_t bucket, struct chunk span, uint64_t step)
{
    struct updater *updater = context;
    if (updater->optimizer)
        optimizer_step_range(updater->optimizer, updater->buckets[bucket].first + span.offset,
                             span.count, updater->parameters, updater->gradients,
                             (float)lr_at(&updater->lr, step) * updater->lr_factor);
}

/*
 * Learning-rate factor if `updates` partial updates replace one full update. Each partial update
 * has 1/updates of the gradient. SGD's step is proportional to the gradient. Adadelta's is not:
 * each partial step is as long as a full one. Adagrad divides by the root of the sum of squares,
 * and this sum is 1/updates of the full one.
 */
static float factor_of(enum optimizer_kind kind, size_t updates)
{
    switch (kind) {
    case OPTIMIZER_ADADELTA:
        return 1 / (float)updates;
    case OPTIMIZER_ADAGRAD:
        return 1 / sqrtf((float)updates);
    default:
        return 1;
    }
}

enum status updater_open(struct updater *updater, const struct updater_options *options)
{
    enum status status = STATUS_OK;
    struct optimizer_parameters parameters = options->optimizer;
    parameters.weight_decay /= (float)options->updates; /* every update adds it */
    const struct device_options device = {.kind = DEVICE_CPU, .threads = 1, .gpu = -1};
    size_t count = options->count, states = 0;
    *updater = (struct updater){
        .interface = {.context = updater, .array = array_of, .apply = apply},
        .count = count,
        .lr = options->lr,
        .lr_factor = factor_of(options->kind, options->updates),
        .gradients = calloc(count, sizeof *updater->gradients),
        .parameters = calloc(count, sizeof *updater->parameters),
    };
    if (!updater->gradients || !updater->parameters)
        return FAIL(STATUS_NO_MEMORY, "no memory for a server's parameters");
    TRY(device_open(&updater->device, &device));
    if (options->trains) {
        TRY(optimizer_new(&updater->optimizer, updater->device, options->kind, count, &parameters));
        optimizer_state(updater->optimizer, &states);
    }
    updater->interface.arrays = COMM_STATES + states / count;
out:
    return status;
}

void updater_close(struct updater *updater)
{
    optimizer_free(&updater->optimizer);
    device_close(&updater->device);
    free(updater->gradients);
    free(updater->parameters);
    *updater = (struct updater){0};
}

/* -------- set-up ------------------------------------------------------------------------------ */

enum status gradient_buckets(const struct net_layer *layers, size_t layer_count,
                             const struct bucket_limits *limits, struct bucket **buckets,
                             size_t *count, size_t **order)
{
    enum status status = STATUS_OK;
    size_t *counts = calloc(layer_count + 1, sizeof *counts);
    struct bucket_layer *costs = calloc(layer_count + 1, sizeof *costs);
    for (size_t l = 0; counts && costs && l < layer_count; l++) {
        counts[l] = layers[l].count;
        costs[l] = (struct bucket_layer){.count = layers[l].count,
                                         .parts = layers[l].gradient_parts,
                                         .forward = layers[l].forward_flops,
                                         .backward = layers[l].backward_flops};
    }
    *count = counts && costs ? bucket_plan(counts, layer_count, limits, NULL) : 0;
    *buckets = calloc(*count + 1, sizeof **buckets);
    *order = calloc(*count + 1, sizeof **order);
    if (!counts || !costs || !*buckets || !*order)
        TRY(FAIL(STATUS_NO_MEMORY, "no memory for the layout of buckets"));
    bucket_plan(counts, layer_count, limits, *buckets);
    bucket_order(*buckets, *count, costs, layer_count, *order);
out:
    free(counts);
    free(costs);
    return status;
}

static enum status plan_buckets(struct gradient_sync *sync, const struct bucket_limits *limits)
{
    enum status status;
    TRY(gradient_buckets(sync->model.layers, sync->model.layer_count, limits, &sync->buckets,
                         &sync->count, &sync->order));
    sync->counts = calloc(sync->count, sizeof *sync->counts);
    sync->pending = calloc(sync->count, sizeof *sync->pending);
    if (!sync->counts || !sync->pending)
        TRY(FAIL(STATUS_NO_MEMORY, "no memory for %zu buckets", sync->count));
    sync->model_count = sync->buckets[0].first + sync->buckets[0].count; /* it ends the arena */
    for (size_t b = 0; b < sync->count; b++)
        sync->counts[b] = sync->buckets[b].count;
out:
    return status;
}

enum status gradient_sync_open(struct gradient_sync *sync, const struct gradient_sync_model *model,
                               struct optimizer *optimizer,
                               const struct gradient_sync_options *options)
{
    enum status status = STATUS_OK;
    struct comm_options comm = *options->comm;
    bool updates_here = !consistency_updates(&comm.consistency);
    *sync = (struct gradient_sync){.model = *model,
                                   .device = comm.device,
                                   .optimizer = optimizer,
                                   .updates_on_server = !updates_here};
    TRY(plan_buckets(sync, &(struct bucket_limits){.bytes = options->bucket_bytes,
                                                   .cut = !options->whole_tensors}));
    if (options->updater) {
        options->updater->buckets = sync->buckets;
        comm.updater = &options->updater->interface;
    }
    if (!options->may_defer || !updates_here || sync->count == 1) {
        free(sync->order); /* buckets travel as started */
        sync->order = NULL;
    }
    for (size_t b = 0; b < sync->count; b++) {
        if (sync->counts[b] > comm.bucket_counts_max)
            comm.bucket_counts_max = sync->counts[b];
    }
    TRY(comm_open(&sync->comm, options->world, options->backend, &comm));
    const struct comm_layout layout = {
        .memory = sync->model.gradients,
        .memory_count = sync->model_count,
        .counts = sync->counts,
        .buckets = sync->count,
        .scale = options->scale,
        .overlap = sync->count > 1, /* with one bucket, no computation is left to overlap with */
        .order = sync->order,
    };
    TRY(comm_plan(sync->comm, &layout));
    sync->overlaps = comm_overlaps(sync->comm);
    sync->defers = sync->order && sync->overlaps;
out:
    return status;
}

void gradient_sync_close(struct gradient_sync *sync)
{
    comm_close(&sync->comm);
    free(sync->buckets);
    free(sync->counts);
    free(sync->order);
    free(sync->pending);
    *sync = (struct gradient_sync){0};
}

/* -------- a step ------------------------------------------------------------------------------ */

void gradient_sync_begin(struct gradient_sync *sync)
{
    sync->started = 0;
    sync->status = STATUS_OK;
    sync->exposed = (struct range_sum){0};
}

static void begin_exposed(struct gradient_sync *sync, const char *name, size_t bucket)
{
    if (sync->watch)
        cpu_watch_start(sync->watch);
    range_sum_begin(&sync->exposed, name,
                    &(struct range_about){.kind = RANGE_EXPOSED, .bucket = (uint32_t)bucket},
                    !sync->overlaps);
}

static void end_exposed(struct gradient_sync *sync)
{
    range_sum_end(&sync->exposed);
    if (sync->watch)
        cpu_watch_stop(sync->watch);
}

/* A bucket is complete if it begins at `first` or later. Buckets that are complete together are
 * sent together. */
void gradient_sync_start(void *context, size_t first, size_t count)
{
    struct gradient_sync *sync = context;
    size_t end = sync->started;
    (void)count;
    while (end < sync->count && first <= sync->buckets[end].first)
        end++;
    while (sync->status == STATUS_OK && sync->started < end) {
        size_t b = sync->started++;
        CHECK(!sync->pending[b]);
        sync->pending[b] = true;
        begin_exposed(sync, "start of a bucket", b);
        sync->status = comm_start(sync->comm, b, sync->model.gradients + sync->buckets[b].first);
        if (sync->status == STATUS_OK && sync->started == end)
            sync->status = comm_flush(sync->comm);
        end_exposed(sync);
    }
}

void gradient_sync_start_layers(struct gradient_sync *sync)
{
    const struct net_layer *layers = sync->model.layers;
    for (size_t l = sync->model.layer_count; l-- > 0;) {
        if (layers[l].count > 0)
            gradient_sync_start(sync, layers[l].first, layers[l].count);
    }
}

static enum status wait_for_bucket(struct gradient_sync *sync, size_t b)
{
    begin_exposed(sync, "wait for a bucket", b);
    enum status status = comm_wait(sync->comm, b);
    sync->pending[b] = false;
    end_exposed(sync);
    return status;
}

/* Turns elements [first, first + count) of the gradients into parameters. */
static void update(struct gradient_sync *sync, size_t first, size_t count)
{
    range_begin("optimizer", &(struct range_about){.kind = RANGE_OPTIMIZER});
    optimizer_step_range(sync->optimizer, first, count, sync->model.parameters,
                         sync->model.gradients, sync->pending_lr);
    range_end();
}

void gradient_sync_need(void *context, size_t first, size_t count)
{
    struct gradient_sync *sync = context;
    for (size_t b = 0; b < sync->count && sync->status == STATUS_OK; b++) {
        const struct bucket *bucket = &sync->buckets[b];
        if (!sync->pending[b] || bucket->first >= first + count ||
            first >= bucket->first + bucket->count)
            continue;
        sync->status = wait_for_bucket(sync, b);
        if (sync->status == STATUS_OK && sync->optimizer)
            update(sync, bucket->first, bucket->count);
    }
}

enum status gradient_sync_end(struct gradient_sync *sync, float lr)
{
    enum status status = STATUS_OK;
    TRY(sync->status);
    CHECK(sync->started == sync->count);
    sync->pending_lr = lr;
    if (sync->defers)
        return STATUS_OK;
    for (size_t b = 0; b < sync->count; b++) {
        const struct bucket *bucket = &sync->buckets[b];
        TRY(wait_for_bucket(sync, b));
        if (sync->optimizer && sync->updates_on_server) /* parameters came instead of gradients */
            sync->device->ops->copy(sync->device, sync->model.parameters + bucket->first,
                                    sync->model.gradients + bucket->first, bucket->count);
    }
    if (sync->optimizer && !sync->updates_on_server)
        update(sync, 0, sync->model_count);
out:
    return status;
}

enum status gradient_sync_finish(struct gradient_sync *sync)
{
    gradient_sync_need(sync, 0, sync->model_count);
    return sync->status;
}

/* -------- a step that only waits -------------------------------------------------------------- */

enum pass { FORWARD, BACKWARD };

/* Waits for the time of a layer's pass, part by part. A forward part first needs its parameters. A
 * backward part makes its gradient final. *deadline_ns: the end of the previous pass before the
 * call, the end of this pass after it. */
static void pace_layer(struct gradient_sync *sync, const struct net_layer *layer, enum pass pass,
                       double pass_ns, double *deadline_ns)
{
    size_t parts = layer->gradient_parts, end = layer->count;
    range_begin(layer->name, &(struct range_about){.kind = RANGE_COMPUTE});
    for (size_t part = parts; part-- > 0;) {
        int64_t blocked_ns = sync->exposed.ns;
        size_t first = layer->count / parts * part;
        if (pass == FORWARD && layer->count > 0)
            gradient_sync_need(sync, layer->first + first, end - first);
        *deadline_ns += pass_ns / (double)parts + (double)(sync->exposed.ns - blocked_ns);
        clock_sleep_until_ns((int64_t)*deadline_ns);
        blocked_ns = sync->exposed.ns;
        if (pass == BACKWARD && layer->count > 0)
            gradient_sync_start(sync, layer->first + first, end - first);
        *deadline_ns += (double)(sync->exposed.ns - blocked_ns); /* not computing time */
        end = first;
    }
    range_end();
}

enum status pace_step(struct gradient_sync *sync, double step_ms)
{
    const struct gradient_sync_model *model = &sync->model;
    double flops = 0, deadline_ns = (double)clock_now_ns();
    for (size_t l = 0; l < model->layer_count; l++)
        flops += model->layers[l].forward_flops + model->layers[l].backward_flops;
    double ns_per_flop = step_ms * (double)NS_PER_MS / flops;
    gradient_sync_begin(sync);
    for (size_t l = 0; l < model->layer_count; l++)
        pace_layer(sync, &model->layers[l], FORWARD, model->layers[l].forward_flops * ns_per_flop,
                   &deadline_ns);
    for (size_t l = model->layer_count; l-- > 0;)
        pace_layer(sync, &model->layers[l], BACKWARD, model->layers[l].backward_flops * ns_per_flop,
                   &deadline_ns);
    return gradient_sync_end(sync, 0);
}
