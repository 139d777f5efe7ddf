/* Set-up of a training run: everything that a step needs is opened and allocated here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sha256.h"
#include "common/base/util.h"
#include "common/checkpoint/checkpoint.h"
#include "common/data/batches.h"
#include "common/data/idx.h"
#include "experiments/config/backends.h"
#include "experiments/config/learning.h"
#include "experiments/train/train.h"
#include "experiments/train/trainer.h"

enum { TEST_BATCH = 100 };

/* -------- set-up ------------------------------------------------------------------------------ */

static bool trainer_computes(const struct trainer *t)
{
    return !t->is_server && !t->config->train.paced;
}

/* Images of a training or a test batch. */
static size_t batch_max(const struct trainer *t)
{
    return size_larger((size_t)t->config->batch, TEST_BATCH);
}

uint64_t trainer_step_images(const struct trainer *t)
{
    uint64_t batch = (uint64_t)t->config->batch;
    return t->config->train.virtual_workers > 0 ? batch * t->workers : batch;
}

bool trainer_joins(const struct trainer *t)
{
    return t->config->train.last_batch == CONFIG_LAST_BATCH_PARTIAL;
}

size_t trainer_prefetch(const struct trainer *t)
{
    const struct config *config = t->config;
    return (size_t)(config->train.prefetch_batches > 0 ? config->train.prefetch_batches
                                                       : 2 * config->train.data_threads);
}

static enum status open_batches(struct trainer *t)
{
    enum status status = STATUS_OK;
    bool virtual = t->config->train.virtual_workers > 0;
    size_t world = virtual ? 1 : t->workers; /* one process draws for all virtual workers */
    bool shares = !t->config->train.no_shard;
    t->dataset = t->generation ? t->generation->dataset : NULL;
    if (!t->dataset)
        TRY(dataset_open(&t->dataset, t->config->data));
    TRY(batches_open(&t->batches, t->device, t->dataset,
                     &(struct batches_options){.train_batch = trainer_step_images(t),
                                               .train_world = shares ? world : 1,
                                               .train_rank = shares ? t->rank : 0,
                                               .test_batch = TEST_BATCH,
                                               .test_world = world,
                                               .test_rank = t->rank,
                                               .gather_max = batch_max(t),
                                               .seed = (uint64_t)t->config->seed,
                                               .joins = trainer_joins(t),
                                               .loaders = (int)t->config->train.data_threads,
                                               .prefetch = trainer_prefetch(t),
                                               .augmentation = t->config->train.augmentation}));
    t->steps_per_epoch = batches_steps(&t->batches, BATCHES_TRAIN);
    if (device_steps_ahead(t->device) > 0)
        TRY(loss_queue_open(&t->losses, t->device));
out:
    return status;
}

/* A paced run loads data only if --data is given. */
enum status train_check_data(const struct config *config)
{
    bool makes = config->train.data_threads > 0 || augments(&config->train.augmentation);
    if (config->data || (config->train.paced && !makes))
        return STATUS_OK;
    if (config->train.paced)
        log_error("--%s: --compute %s loads images only from a --data DIR; add that, or leave it "
                  "out",
                  config->train.data_threads > 0 ? "data-threads" : "augment",
                  config->train.compute);
    else
        log_error(
            "no data set was named: give --data DIR (or set PSRING_DATA), a folder with the four "
            "files of MNIST; experiments/get_mnist.sh downloads them and prints the folder");
    return STATUS_USAGE;
}

/* Needs no other rank. Sets the steps per epoch, the steps of the run and the learning-rate
 * schedule. */
static enum status trainer_open_data(struct trainer *t)
{
    enum status status = STATUS_OK;
    uint64_t step_images = (uint64_t)t->config->batch * t->workers;
    TRY(train_check_data(t->config));
    if (t->config->data)
        TRY(open_batches(t));
    else
        t->steps_per_epoch =
            step_images < TRAINER_PACED_IMAGES ? TRAINER_PACED_IMAGES / step_images : 1;
    uint64_t epochs = learning_epochs(t->config, t->workers);
    t->total_steps = t->schedule_steps = (uint64_t)t->config->train.steps;
    if (t->config->train.steps == 0) {
        t->total_steps = trainer_epoch_begin(t, epochs);
        t->schedule_steps = epochs * t->steps_per_epoch;
    }
    if (!t->config->train.paced)
        TRY(learning_schedule(t->config, t->workers, t->steps_per_epoch, t->schedule_steps,
                              &t->lr));
out:
    return status;
}

/* -------- roles ------------------------------------------------------------------------------- */

static enum status choose_roles(struct trainer *t)
{
    enum status status = STATUS_OK;
    char name[32] = "";
    int rank = t->world->rank;
    TRY(topology_init(&t->topology, t->world->size, (int)t->config->servers, t->config->placement));
    int node = topology_node(&t->topology, rank, NODE_WORKER);
    t->is_server = node < 0;
    t->rank = (size_t)node;
    t->workers = t->config->train.virtual_workers > 0 ? (size_t)t->config->train.virtual_workers
                                                      : (size_t)t->topology.workers;
    if (t->is_server)
        snprintf(name, sizeof name, "server %d", rank - t->topology.workers);
    else if (t->world->size > 1)
        snprintf(name, sizeof name, "worker %d", rank);
    log_set_name(name);
out:
    return status;
}

/* -------- the device -------------------------------------------------------------------------- */

static enum status open_device(struct trainer *t)
{
    const struct config *config = t->config;
    struct device_options device;
    t->threads = config_threads(config, t->world);
    config_device_options(config, &device);
    device.threads = t->threads;
    if (t->is_server) /* a server sums received data on the CPU */
        device.kind = DEVICE_CPU;
    return device_open(&t->device, &device);
}

/* -------- the model --------------------------------------------------------------------------- */

static enum status open_model(struct trainer *t)
{
    enum status status = STATUS_OK;
    const struct config *config = t->config;
    /* Servers and paced workers need the net only for the sizes of its layers. */
    TRY(net_new(&t->net, t->device, config_model_name(config),
                trainer_computes(t) ? batch_max(t) : 1, (uint64_t)config->seed));
    size_t parameters = net_parameter_count(t->net), states = 0;
    if (trainer_computes(t)) {
        struct optimizer_parameters optimizer = learning_optimizer(config);
        optimizer_describe(config->learning.optimizer, &optimizer, t->optimizer_text);
        TRY(net_optimizer_new(&t->optimizer, t->net, config->learning.optimizer, &optimizer));
        optimizer_state(t->optimizer, &states);
    }
    t->host = malloc(size_larger(parameters, states) * sizeof *t->host);
    if (!t->host) {
        log_error("no memory for a copy of the parameters");
        status = STATUS_NO_MEMORY;
    }
out:
    return status;
}

/* Fills the gradients of a paced run. They have real size but no meaning; values differ between
 * ranks and places. */
static enum status fill_paced_gradients(struct trainer *t)
{
    size_t count = net_parameter_count(t->net);
    for (size_t i = 0; i < count; i++)
        t->host[i] = 1e-3f * (float)((i * 7 + t->rank * 13) % 1009) - 0.5f;
    device_upload(t->device, net_gradients(t->net), t->host, count * sizeof *t->host);
    return device_sync(t->device);
}

/* -------- files ------------------------------------------------------------------------------- */

static enum status prepare_checkpoint(struct trainer *t)
{
    enum status status = STATUS_OK;
    size_t others;
    TRY(checkpoint_prepare(t->config->train.checkpoint));
    TRY(checkpoint_count(t->config->train.checkpoint, config_model_name(t->config), &others));
    if (t->config->train.resume)
        TRY(train_load(t));
    else if (others > 0)
        log_warn("--checkpoint %s: the folder has checkpoints of an earlier run; this run starts "
                 "from the beginning and will replace them (--resume continues from them)",
                 t->config->train.checkpoint);
out:
    return status;
}

/* -------- the whole --------------------------------------------------------------------------- */

/* Opens everything that needs no other rank. */
static enum status open_local(struct trainer *t)
{
    enum status status = STATUS_OK;
    TRY(choose_roles(t));
    TRY(open_device(t));
    if (!t->is_server)
        TRY(trainer_open_data(t));
    TRY(open_model(t));
    if (t->is_server)
        return STATUS_OK;
    if (t->config->train.virtual_workers > 0)
        TRY(train_virtual_open(t));
    if (t->config->train.paced)
        TRY(fill_paced_gradients(t));
    if (t->generation)
        TRY(generation_restore(t));
    uint64_t interval = t->steps_per_epoch < t->total_steps ? t->steps_per_epoch : t->total_steps;
    TRY(train_report_open(t, interval));
    if (t->rank == 0 && t->config->train.checkpoint)
        TRY(prepare_checkpoint(t));
    bool slow = (int)t->rank == t->config->train.straggler_rank;
    straggler_init(&t->straggler, slow ? t->config->train.straggler_factor : 1,
                   t->config->train.real_ms);
    t->step_once = t->config->train.virtual_workers > 0 ? train_step_virtual
                   : t->config->train.paced             ? train_step_paced
                                                        : train_step_real;
out:
    return status;
}

static enum status open_updater(struct trainer *t)
{
    const struct config *config = t->config;
    bool each = consistency_applies_each(&config->consistency);
    return updater_open(&t->updater,
                        &(struct updater_options){.count = net_parameter_count(t->net),
                                                  .trains = !config->train.paced,
                                                  .kind = config->learning.optimizer,
                                                  .optimizer = learning_optimizer(config),
                                                  .lr = t->lr,
                                                  .updates = each ? t->workers : 1});
}

static enum status open_exchange(struct trainer *t)
{
    enum status status = STATUS_OK;
    struct comm_options options;
    struct gradient_sync_model model = {.gradients = net_gradients(t->net),
                                        .parameters = net_parameters(t->net)};
    model.layers = net_layers(t->net, &model.layer_count);
    config_comm_options(t->config, t->backend, &options);
    options.device = t->device;
    bool updates = consistency_updates(&options.consistency) &&
                   topology_node(&t->topology, t->world->rank, NODE_SERVER) >= 0;
    if (updates)
        TRY(open_updater(t));
    TRY(gradient_sync_open(
        &t->sync, &model, t->optimizer,
        &(struct gradient_sync_options){
            .world = t->world,
            .backend = t->backend,
            .comm = &options,
            .updater = updates ? &t->updater : NULL,
            .scale = 1.0f / (float)t->workers,
            .bucket_bytes = (size_t)(t->config->bucket_mb * 1048576),
            .whole_tensors = optimizer_needs_whole_tensors(t->config->learning.optimizer),
            /* In an elastic job a failed step must not be applied in part: see generation.h. */
            .may_defer = !t->backend->single_process && !t->generation &&
                         device_memory_is_host(t->device)}));
    if (t->sync.defers)
        net_before_forward(t->net, gradient_sync_need, &t->sync);
out:
    return status;
}

/* A rank's result of opening: its status, and the sum of its data. */
struct opened {
    int32_t status;
    struct lr_schedule lr; /* rank 0's: servers have no data set, so no last step */
    char data_sha256[SHA256_HEX_SIZE];
};

/* If rank 0 cannot open something, the other ranks usually cannot either: all end with its status.
 * In an elastic job rank 0 ends alone, and the other workers meet again without it. */
static enum status check_opened(const struct trainer *t, enum status own, enum status first)
{
    if (own != STATUS_OK || first == STATUS_OK)
        return own;
    return t->generation ? STATUS_TRANSPORT : first;
}

/* All workers need the same data: each draws its part of one shuffled set. */
static enum status check_data(const struct trainer *t, const char *own, const char *first)
{
    if (t->is_server || strcmp(own, first) == 0)
        return STATUS_OK;
    if (!own[0] || !first[0])
        return FAIL(STATUS_USAGE,
                    "--data is given to rank %d and not to rank %d; give it to all or to none",
                    own[0] ? t->world->rank : 0, own[0] ? 0 : t->world->rank);
    return FAIL(STATUS_INPUT,
                "--data %s: rank %d has other files there than rank 0; copy the files of one rank "
                "to all hosts, or name the right folder",
                t->config->data, t->world->rank);
}

/* Call before other threads wait for messages, so that the timeline has all that they do. */
static enum status open_timeline(struct trainer *t)
{
    const struct config *config = t->config;
    if (!config->train.timeline)
        return STATUS_OK;
    return config->recorder->open(
        &t->timeline, t->world,
        &(struct timeline_options){.file = config->train.timeline,
                                   .first_step = config->train.timeline_first,
                                   .end_step = config->train.timeline_end,
                                   .topology = &t->topology,
                                   .in_step = !consistency_updates(&config->consistency)});
}

enum status trainer_open(struct trainer *t, const struct config *config, struct world *world,
                         struct generation *generation)
{
    enum status status = STATUS_OK;
    *t = (struct trainer){.config = config,
                          .world = world,
                          .backend = config_backend(config),
                          .generation = generation,
                          .report.usage = DEVICE_USAGE_UNKNOWN};
    if (generation)
        generation_start(t);
    else
        stop_init(&t->stop, config->train.checkpoint != NULL);

    /* All ranks open at the same time. If several fail, only rank 0 logs the error. In an elastic
     * job each rank logs its own error and ends alone. */
    bool holds = world->rank != 0 && !generation;
    if (holds)
        log_hold();
    struct opened own = {.status = open_local(t)};
    own.lr = t->lr;
    if (own.status == STATUS_OK)
        own.status = dataset_sum(t->dataset, own.data_sha256);
    memcpy(t->data_sha256, own.data_sha256, sizeof t->data_sha256);
    struct opened first = own;
    status = world_broadcast(world, NULL, &first, sizeof first);
    if (holds)
        log_release(first.status == STATUS_OK);
    TRY(status);
    TRY(check_opened(t, (enum status)own.status, (enum status)first.status));
    TRY(check_data(t, own.data_sha256, first.data_sha256));
    t->lr = first.lr;
    TRY(open_timeline(t));
    TRY(open_exchange(t));
    if (generation)
        generation_watch(t);
out:
    return status;
}

void trainer_close(struct trainer *t)
{
    if (t->generation)
        generation_end(t);
    gradient_sync_close(&t->sync);
    updater_close(&t->updater);
    train_report_close(t); /* its thread adds ranges to the timeline */
    if (t->timeline)
        t->config->recorder->close(&t->timeline);
    loss_queue_close(&t->losses);
    batches_close(&t->batches);
    if (!t->generation)
        dataset_free(&t->dataset);
    train_virtual_close(t);
    optimizer_free(&t->optimizer);
    net_free(&t->net);
    device_close(&t->device);
    checkpoint_free(&t->resumed);
    free(t->host);
    if (!t->generation)
        stop_fini(&t->stop);
}
