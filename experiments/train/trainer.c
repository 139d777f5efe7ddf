/* Set-up of a training run: everything that a step needs is opened and allocated here. */
#include "experiments/train/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoint/checkpoint.h"
#include "common/comm/bucket_order.h"
#include "experiments/config/backends.h"
#include "experiments/train/train_csv.h"

enum {
    TEST_BATCH = 100,
    LOADER_DEPTH = 4,
    /* The images of an epoch where there is no data set (paced): MNIST's. */
    PACED_IMAGES = 60000,
};

/* Of MNIST's training images. */
static const float pixel_mean = 0.1307f, pixel_std = 0.3081f;

static enum status no_memory(const char *what)
{
    log_error("no memory for %s", what);
    return STATUS_NO_MEMORY;
}

/* -------- who plays what --------------------------------------------------------------------- */

static enum status choose_roles(struct trainer *t)
{
    enum status status = STATUS_OK;
    char name[32] = "";
    int rank = t->world->rank;
    TRY(topology_init(&t->topology, t->world->size, (int)t->config->servers, t->config->placement));
    t->is_server = topology_node(&t->topology, rank, NODE_WORKER) < 0;
    t->workers = t->config->virtual_workers > 0 ? (size_t)t->config->virtual_workers
                                                : (size_t)t->topology.workers;
    if (t->is_server)
        snprintf(name, sizeof name, "server %d", rank - t->topology.workers);
    else if (t->world->size > 1)
        snprintf(name, sizeof name, "worker %d", rank);
    log_set_name(name);
out:
    return status;
}

size_t trainer_rank(const struct trainer *t)
{
    return (size_t)topology_node(&t->topology, t->world->rank, NODE_WORKER);
}

/* -------- the device -------------------------------------------------------------------------- */

static enum status open_device(struct trainer *t)
{
    const struct config *config = t->config;
    struct device_options device;
    t->threads = config_threads(config, t->world);
    config_device_options(config, &device);
    device.threads = t->threads;
    if (t->is_server) /* sums what comes over the network, on the CPU */
        device.kind = DEVICE_CPU;
    return device_open(&t->device, &device);
}

/* Servers and paced workers need the net only for the sizes of its layers. */
static bool computes(const struct trainer *t)
{
    return !t->is_server && !t->config->paced;
}

static size_t batch_max(const struct trainer *t)
{
    size_t batch = (size_t)t->config->batch;
    if (!computes(t))
        return 1;
    return batch > TEST_BATCH ? batch : TEST_BATCH;
}

/* -------- data ------------------------------------------------------------------------------- */

static enum status open_loaders(struct trainer *t)
{
    enum status status = STATUS_OK;
    bool virtual = t->config->virtual_workers > 0;
    size_t batch = (size_t)t->config->batch;
    struct loader_options options = {
        .order = LOADER_SHUFFLED,
        .batch =
            virtual ? batch * t->workers : batch, /* one loader draws for all virtual workers */
        .world = virtual ? 1 : t->workers,
        .rank = trainer_rank(t),
        .seed = (uint64_t)t->config->seed,
        .mean = pixel_mean,
        .std = pixel_std,
        .samples_only = feed_is_resident(t->device),
        .depth = LOADER_DEPTH,
    };
    TRY(loader_new(&t->train_loader, &t->dataset->train, &options));
    options.order = LOADER_SEQUENTIAL;
    options.batch = TEST_BATCH;
    TRY(loader_new(&t->test_loader, &t->dataset->test, &options));
    t->steps_per_epoch = loader_steps(t->train_loader);
    TRY(feed_open(&t->feed, t->device, t->dataset, &options, batch_max(t)));
    TRY(loss_queue_open(&t->losses, t->device));
out:
    return status;
}

static enum status open_data(struct trainer *t)
{
    enum status status = STATUS_OK;
    uint64_t step_images = (uint64_t)t->config->batch * t->workers;
    if (t->config->paced) {
        t->steps_per_epoch = step_images < PACED_IMAGES ? PACED_IMAGES / step_images : 1;
    } else if (!t->config->data) {
        log_error(
            "no data set was named: give --data DIR (or set PSRING_DATA), a folder with the "
            "four files of MNIST; experiments/get_mnist.sh fetches them and prints the folder");
        return STATUS_USAGE;
    } else {
        TRY(dataset_open(&t->dataset, t->config->data));
        TRY(open_loaders(t));
    }
    t->total_steps = t->config->steps > 0 ? (uint64_t)t->config->steps
                                          : (uint64_t)t->config->epochs * t->steps_per_epoch;
out:
    return status;
}

/* -------- the model -------------------------------------------------------------------------- */

static enum status open_model(struct trainer *t)
{
    enum status status = STATUS_OK;
    const struct config *config = t->config;
    TRY(net_new(&t->net, t->device, config_model_name(config), batch_max(t),
                (uint64_t)config->seed));
    size_t parameters = net_parameter_count(t->net), states = 0;
    double peak = config->lr > 0
                      ? config->lr
                      : lr_default(config->optimizer, (size_t)config->batch * t->workers);
    t->lr = lr_schedule_default(peak, t->total_steps);
    if (computes(t)) {
        TRY(optimizer_new(&t->optimizer, t->device, config->optimizer, parameters, NULL));
        optimizer_state(t->optimizer, &states);
    }
    t->host = malloc((parameters > states ? parameters : states) * sizeof *t->host);
    if (!t->host)
        return no_memory("a copy of the parameters");
out:
    return status;
}

static enum status plan_buckets(struct trainer *t)
{
    enum status status = STATUS_OK;
    size_t layer_count;
    const struct net_layer *layers = net_layers(t->net, &layer_count);
    struct bucket_limits limits = {.bytes = (size_t)(t->config->bucket_mb * 1048576),
                                   .cut = !t->backend->updates_on_server};
    size_t *counts = calloc(layer_count + 1, sizeof *counts);
    for (size_t l = 0; counts && l < layer_count; l++)
        counts[l] = layers[l].count;
    if (counts)
        t->bucket_count = bucket_plan(counts, layer_count, &limits, NULL);
    t->buckets = calloc(t->bucket_count, sizeof *t->buckets);
    t->bucket_counts = calloc(t->bucket_count, sizeof *t->bucket_counts);
    t->pending = calloc(t->bucket_count, sizeof *t->pending);
    if (!counts || !t->buckets || !t->bucket_counts || !t->pending) {
        status = no_memory("the layout of buckets");
        goto out;
    }
    bucket_plan(counts, layer_count, &limits, t->buckets);
    for (size_t b = 0; b < t->bucket_count; b++)
        t->bucket_counts[b] = t->buckets[b].count;
out:
    free(counts);
    return status;
}

static enum status order_buckets(struct trainer *t)
{
    size_t layer_count;
    const struct net_layer *layers = net_layers(t->net, &layer_count);
    struct bucket_layer *costs = calloc(layer_count + 1, sizeof *costs);
    t->bucket_order = calloc(t->bucket_count, sizeof *t->bucket_order);
    if (!costs || !t->bucket_order) {
        free(costs);
        return no_memory("the order of buckets");
    }
    for (size_t l = 0; l < layer_count; l++)
        costs[l] = (struct bucket_layer){.count = layers[l].count,
                                         .parts = layers[l].gradient_parts,
                                         .forward = layers[l].forward_flops,
                                         .backward = layers[l].backward_flops};
    bucket_order(t->buckets, t->bucket_count, costs, layer_count, t->bucket_order);
    free(costs);
    return STATUS_OK;
}

/* What a paced run exchanges: of real size, of no meaning, another number at every rank and place.
 */
static enum status fill_paced_gradients(struct trainer *t)
{
    size_t count = net_parameter_count(t->net);
    for (size_t i = 0; i < count; i++)
        t->host[i] = 1e-3f * (float)((i * 7 + trainer_rank(t) * 13) % 1009) - 0.5f;
    device_upload(t->device, net_gradients(t->net), t->host, count * sizeof *t->host);
    return device_sync(t->device);
}

static enum status open_virtual_workers(struct trainer *t)
{
    t->virtual_gradients = calloc(t->workers * net_parameter_count(t->net), sizeof(float));
    t->virtual_sources = calloc(t->workers, sizeof *t->virtual_sources);
    if (!t->virtual_gradients || !t->virtual_sources)
        return no_memory("the gradients of all virtual workers");
    return STATUS_OK;
}

/* -------- files and lines -------------------------------------------------------------------- */

static enum status open_outputs(struct trainer *t)
{
    enum status status = STATUS_OK;
    const struct config *config = t->config;
    if (config->checkpoint) {
        TRY(checkpoint_prepare(config->checkpoint));
        if (asprintf(&t->checkpoint_path, "%s/%s.checkpoint", config->checkpoint,
                     config_model_name(config)) < 0) {
            t->checkpoint_path = NULL;
            return no_memory("the name of the checkpoint");
        }
    }
    if (config->metrics)
        TRY(train_csv_open(&t->metrics, config->metrics, CSV_APPEND));
out:
    return status;
}

static void start_progress(struct trainer *t)
{
    uint64_t steps = t->steps_per_epoch < t->total_steps ? t->steps_per_epoch : t->total_steps;
    progress_init(&t->progress, &(struct progress_options){
                                    .stream = stderr,
                                    .rank = trainer_rank(t),
                                    .epochs = (t->total_steps + steps - 1) / steps,
                                    .steps_per_epoch = steps,
                                    .images_per_step = (uint64_t)t->config->batch * t->workers,
                                });
}

/* -------- the whole -------------------------------------------------------------------------- */

/* Everything that needs no other rank. */
static enum status open_local(struct trainer *t)
{
    enum status status = STATUS_OK;
    TRY(choose_roles(t));
    TRY(open_device(t));
    if (!t->is_server)
        TRY(open_data(t));
    TRY(open_model(t));
    TRY(plan_buckets(t));
    if (train_may_defer(t))
        TRY(order_buckets(t));
    if (t->config->virtual_workers > 0)
        TRY(open_virtual_workers(t));
    if (t->is_server)
        return STATUS_OK;
    if (t->config->paced)
        TRY(fill_paced_gradients(t));
    if (trainer_rank(t) == 0) {
        TRY(open_outputs(t));
        if (t->config->resume)
            TRY(train_load(t));
    }
    uint64_t interval = t->steps_per_epoch < t->total_steps ? t->steps_per_epoch : t->total_steps;
    TRY(step_times_init(&t->times, (size_t)interval));
    start_progress(t);
    t->step_once = t->config->virtual_workers > 0 ? train_step_virtual
                   : t->config->paced             ? train_step_paced
                                                  : train_step_real;
out:
    return status;
}

enum status trainer_open(struct trainer *t, const struct config *config, struct world *world)
{
    enum status status = STATUS_OK;
    struct comm_options options;
    *t = (struct trainer){.config = config,
                          .world = world,
                          .backend = backend_get(config->backend),
                          .usage = DEVICE_USAGE_UNKNOWN};

    /* A wrong option or folder is wrong on all ranks: rank 0 alone finds and says it. */
    int32_t first = STATUS_OK;
    if (world->rank == 0)
        first = open_local(t);
    TRY(world_broadcast(world, NULL, &first, sizeof first));
    if (first != STATUS_OK && first != STATUS_USAGE && world->rank != 0)
        world_barrier(world, NULL); /* rank 0 ends all ranks: one of them is enough */
    TRY((enum status)first);
    if (world->rank != 0)
        TRY(open_local(t));

    config_comm_options(config, t->backend, &options);
    options.scale = 1.0f / (float)t->workers;
    options.bucket_counts = t->bucket_counts;
    options.buckets = t->bucket_count;
    options.device = t->device;
    options.overlap = t->bucket_count > 1; /* with one, nothing is left to compute meanwhile */
    options.bucket_order = t->bucket_order;
    TRY(comm_open(&t->comm, world, t->backend, &options));
    t->defers = t->bucket_order && comm_overlaps(t->comm);
    if (t->defers)
        net_before_forward(t->net, train_need, t);
out:
    return status;
}

void trainer_close(struct trainer *t)
{
    comm_close(&t->comm);
    csv_close(&t->metrics);
    step_times_fini(&t->times);
    loader_free(&t->train_loader);
    loader_free(&t->test_loader);
    dataset_free(&t->dataset);
    loss_queue_close(&t->losses);
    feed_close(&t->feed);
    optimizer_free(&t->optimizer);
    net_free(&t->net);
    device_close(&t->device);
    free(t->checkpoint_path);
    free(t->host);
    free(t->buckets);
    free(t->bucket_counts);
    free(t->bucket_order);
    free(t->pending);
    free(t->virtual_gradients);
    free(t->virtual_sources);
}
