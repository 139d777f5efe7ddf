#include "experiments/step/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/clock.h"
#include "common/comm/bucket.h"
#include "common/obs/range.h"

/* -------- set-up ----------------------------------------------------------------------------- */

static enum status plan_buckets(struct exchange *exchange, const struct bucket_limits *limits)
{
    enum status status = STATUS_OK;
    size_t layer_count = exchange->model.layer_count;
    const struct net_layer *layers = exchange->model.layers;
    size_t *counts = calloc(layer_count + 1, sizeof *counts);
    for (size_t l = 0; counts && l < layer_count; l++)
        counts[l] = layers[l].count;
    if (counts)
        exchange->count = bucket_plan(counts, layer_count, limits, NULL);
    exchange->buckets = calloc(exchange->count + 1, sizeof *exchange->buckets);
    exchange->counts = calloc(exchange->count + 1, sizeof *exchange->counts);
    exchange->pending = calloc(exchange->count + 1, sizeof *exchange->pending);
    if (!counts || !exchange->buckets || !exchange->counts || !exchange->pending) {
        log_error("no memory for the layout of buckets");
        status = STATUS_NO_MEMORY;
        goto out;
    }
    bucket_plan(counts, layer_count, limits, exchange->buckets);
    for (size_t b = 0; b < exchange->count; b++)
        exchange->counts[b] = exchange->buckets[b].count;
out:
    free(counts);
    return status;
}

static enum status order_buckets(struct exchange *exchange)
{
    size_t layer_count = exchange->model.layer_count;
    const struct net_layer *layers = exchange->model.layers;
    struct bucket_layer *costs = calloc(layer_count + 1, sizeof *costs);
    exchange->order = calloc(exchange->count, sizeof *exchange->order);
    if (!costs || !exchange->order) {
        free(costs);
        log_error("no memory for the order of buckets");
        return STATUS_NO_MEMORY;
    }
    for (size_t l = 0; l < layer_count; l++)
        costs[l] = (struct bucket_layer){.count = layers[l].count,
                                         .parts = layers[l].gradient_parts,
                                         .forward = layers[l].forward_flops,
                                         .backward = layers[l].backward_flops};
    bucket_order(exchange->buckets, exchange->count, costs, layer_count, exchange->order);
    free(costs);
    return STATUS_OK;
}

enum status exchange_open(struct exchange *exchange, const struct exchange_model *model,
                          struct optimizer *optimizer, const struct exchange_options *options)
{
    enum status status = STATUS_OK;
    struct comm_options *comm = options->comm;
    bool updates_here = !consistency_updates(&comm->consistency);
    *exchange = (struct exchange){.model = *model,
                                  .device = comm->device,
                                  .optimizer = optimizer,
                                  .updates_on_server = !updates_here};
    TRY(plan_buckets(exchange, &(struct bucket_limits){.bytes = options->bucket_bytes,
                                                       .cut = !options->whole_tensors}));
    if (options->updater) {
        options->updater->buckets = exchange->buckets;
        comm->updater = &options->updater->interface;
    }
    if (options->may_defer && updates_here && exchange->count > 1)
        TRY(order_buckets(exchange));
    for (size_t b = 0; b < exchange->count; b++) {
        if (exchange->counts[b] > comm->bucket_counts_max)
            comm->bucket_counts_max = exchange->counts[b];
    }
    TRY(comm_open(&exchange->comm, options->world, options->backend, comm));
    /* Until here ranks may be far apart: the first one reads the data for all, say. */
    options->world->timeout_ms = comm->timeout_ms;
    options->world->stall_warning_ms = comm->stall_warning_ms;
    const struct bucket *last = &exchange->buckets[0]; /* complete first, it ends the arena */
    const struct comm_layout layout = {
        .memory = exchange->model.gradients,
        .memory_count = last->first + last->count,
        .counts = exchange->counts,
        .buckets = exchange->count,
        .scale = options->scale,
        .overlap = exchange->count > 1, /* with one, nothing is left to compute meanwhile */
        .order = exchange->order,
    };
    TRY(comm_plan(exchange->comm, &layout));
    exchange->defers = exchange->order && comm_overlaps(exchange->comm);
out:
    return status;
}

void exchange_close(struct exchange *exchange)
{
    comm_close(&exchange->comm);
    free(exchange->buckets);
    free(exchange->counts);
    free(exchange->order);
    free(exchange->pending);
    *exchange = (struct exchange){0};
}

/* -------- a step ----------------------------------------------------------------------------- */

void exchange_begin(struct exchange *exchange)
{
    exchange->started = 0;
    exchange->status = STATUS_OK;
    exchange->blocked_ns = exchange->averaged_ns = 0;
}

static void begin_exposed(struct exchange *exchange, const char *name, size_t bucket)
{
    if (exchange->watch)
        cpu_watch_start(exchange->watch);
    exchange->entered_ns = clock_now_ns();
    exchange->ran_ns = comm_overlaps(exchange->comm) ? 0 : clock_thread_ns();
    range_begin_at(name, &(struct range_about){.kind = RANGE_EXPOSED, .bucket = (uint32_t)bucket},
                   exchange->entered_ns);
}

static void end_exposed(struct exchange *exchange)
{
    if (exchange->ran_ns > 0)
        exchange->averaged_ns += clock_thread_ns() - exchange->ran_ns;
    int64_t now_ns = clock_now_ns();
    exchange->blocked_ns += now_ns - exchange->entered_ns;
    range_end_at(now_ns);
    if (exchange->watch)
        cpu_watch_stop(exchange->watch);
}

static void begin_optimizer(void)
{
    range_begin("optimizer", &(struct range_about){.kind = RANGE_OPTIMIZER});
}

/* Buckets are complete that begin at `first` or beyond. */
static bool next_is_complete(const struct exchange *exchange, size_t first)
{
    return exchange->started < exchange->count &&
           first <= exchange->buckets[exchange->started].first;
}

/* Those that are complete together go on their way together. */
void exchange_start(void *context, size_t first, size_t count)
{
    struct exchange *exchange = context;
    (void)count;
    while (exchange->status == STATUS_OK && next_is_complete(exchange, first)) {
        size_t bucket = exchange->started++;
        CHECK(!exchange->pending[bucket]);
        exchange->pending[bucket] = true;
        begin_exposed(exchange, "start of a bucket", bucket);
        exchange->status = comm_start(exchange->comm, bucket,
                                      exchange->model.gradients + exchange->buckets[bucket].first);
        if (exchange->status == STATUS_OK && !next_is_complete(exchange, first))
            exchange->status = comm_flush(exchange->comm);
        end_exposed(exchange);
    }
}

void exchange_start_layers(struct exchange *exchange)
{
    const struct net_layer *layers = exchange->model.layers;
    for (size_t l = exchange->model.layer_count; l-- > 0;) {
        if (layers[l].count > 0)
            exchange_start(exchange, layers[l].first, layers[l].count);
    }
}

static enum status wait_for_bucket(struct exchange *exchange, size_t bucket)
{
    begin_exposed(exchange, "wait for a bucket", bucket);
    enum status status = comm_wait(exchange->comm, bucket);
    exchange->pending[bucket] = false;
    end_exposed(exchange);
    return status;
}

static enum status finish_bucket(struct exchange *exchange, size_t b)
{
    enum status status = STATUS_OK;
    const struct bucket *bucket = &exchange->buckets[b];
    TRY(wait_for_bucket(exchange, b));
    if (!exchange->optimizer)
        return STATUS_OK;
    begin_optimizer();
    optimizer_step_range(exchange->optimizer, bucket->first, bucket->count,
                         exchange->model.parameters, exchange->model.gradients,
                         exchange->pending_lr);
    range_end();
out:
    return status;
}

void exchange_need(void *context, size_t first, size_t count)
{
    struct exchange *exchange = context;
    for (size_t b = 0; b < exchange->count; b++) {
        const struct bucket *bucket = &exchange->buckets[b];
        if (exchange->status == STATUS_OK && exchange->pending[b] &&
            bucket->first < first + count && first < bucket->first + bucket->count)
            exchange->status = finish_bucket(exchange, b);
    }
}

/* They have come in the place of the gradients. */
static void take_parameters(struct exchange *exchange, const struct bucket *bucket)
{
    exchange->device->ops->copy(exchange->device, exchange->model.parameters + bucket->first,
                                exchange->model.gradients + bucket->first, bucket->count);
}

enum status exchange_end(struct exchange *exchange, float lr)
{
    enum status status = STATUS_OK;
    TRY(exchange->status);
    CHECK(exchange->started == exchange->count);
    exchange->pending_lr = lr;
    if (exchange->defers)
        return STATUS_OK;
    for (size_t b = 0; b < exchange->count; b++) {
        TRY(wait_for_bucket(exchange, b));
        if (exchange->optimizer && exchange->updates_on_server)
            take_parameters(exchange, &exchange->buckets[b]);
    }
    if (!exchange->optimizer || exchange->updates_on_server)
        return STATUS_OK;
    begin_optimizer();
    optimizer_step(exchange->optimizer, exchange->model.parameters, exchange->model.gradients, lr);
    range_end();
out:
    return status;
}

enum status exchange_finish(struct exchange *exchange)
{
    enum status status = STATUS_OK;
    for (size_t b = 0; b < exchange->count; b++) {
        if (exchange->pending[b])
            TRY(finish_bucket(exchange, b));
    }
out:
    return status;
}
