/* The data of a run: its set, and the batch of each step. */
#include "experiments/train/trainer.h"

#include "common/base/clock.h"
#include "common/obs/range.h"
#include "experiments/config/learning.h"
#include "experiments/train/train.h"

enum {
    TEST_BATCH = 100,
};

/* -------- set-up ------------------------------------------------------------------------------ */

bool trainer_computes(const struct trainer *t)
{
    return !t->is_server && !t->config->paced;
}

size_t trainer_batch_max(const struct trainer *t)
{
    size_t batch = (size_t)t->config->batch;
    if (!trainer_computes(t))
        return 1;
    return batch > TEST_BATCH ? batch : TEST_BATCH;
}

uint64_t trainer_step_images(const struct trainer *t)
{
    uint64_t batch = (uint64_t)t->config->batch;
    return t->config->virtual_workers > 0 ? batch * t->workers : batch;
}

bool trainer_joins(const struct trainer *t)
{
    return t->config->last_batch == CONFIG_LAST_BATCH_JOIN;
}

size_t trainer_prefetch(const struct trainer *t)
{
    const struct config *config = t->config;
    return (size_t)(config->prefetch > 0 ? config->prefetch : 2 * config->loaders);
}

static enum status open_batches(struct trainer *t)
{
    enum status status = STATUS_OK;
    bool virtual = t->config->virtual_workers > 0;
    size_t world = virtual ? 1 : t->workers; /* one process draws for all virtual workers */
    bool shares = !t->config->unsharded;
    size_t batch = (size_t)t->config->batch;
    t->dataset = t->generation ? t->generation->dataset : NULL;
    if (!t->dataset)
        TRY(dataset_open(&t->dataset, t->config->data));
    TRY(batches_open(
        &t->batches, t->device, t->dataset,
        &(struct batches_options){.train_batch = trainer_step_images(t),
                                  .train_world = shares ? world : 1,
                                  .train_rank = shares ? trainer_rank(t) : 0,
                                  .test_batch = TEST_BATCH,
                                  .test_world = world,
                                  .test_rank = trainer_rank(t),
                                  .gather_max = batch > TEST_BATCH ? batch : TEST_BATCH,
                                  .seed = (uint64_t)t->config->seed,
                                  .joins = trainer_joins(t),
                                  .loaders = (int)t->config->loaders,
                                  .prefetch = trainer_prefetch(t),
                                  .augmentation = t->config->augmentation}));
    t->steps_per_epoch = batches_steps(&t->batches, BATCHES_TRAIN);
    TRY(loss_queue_open(&t->losses, t->device));
out:
    return status;
}

/* Paced, data are loaded only where they are named. */
enum status train_check_data(const struct config *config)
{
    bool makes = config->loaders > 0 || augments(&config->augmentation);
    if (config->data || (config->paced && !makes))
        return STATUS_OK;
    if (config->paced)
        log_error("--%s: --compute %s loads images only from a --data DIR; add that, or leave it "
                  "out",
                  config->loaders > 0 ? "data-threads" : "augment", config->compute);
    else
        log_error("no data set was named: give --data DIR (or set PSRING_DATA), a folder with the "
                  "four files of MNIST; experiments/get_mnist.sh fetches them and prints it");
    return STATUS_USAGE;
}

enum status trainer_open_data(struct trainer *t)
{
    enum status status = STATUS_OK;
    uint64_t step_images = (uint64_t)t->config->batch * t->workers;
    TRY(train_check_data(t->config));
    if (t->config->data)
        TRY(open_batches(t));
    else
        t->steps_per_epoch =
            step_images < TRAINER_PACED_IMAGES ? TRAINER_PACED_IMAGES / step_images : 1;
    t->total_steps = t->config->steps > 0
                         ? (uint64_t)t->config->steps
                         : trainer_epoch_begin(t, learning_epochs(t->config, t->workers));
    if (!t->config->paced)
        TRY(learning_schedule(t->config, t->workers, t->steps_per_epoch, trainer_schedule_steps(t),
                              &t->lr));
out:
    return status;
}

/* -------- a step ------------------------------------------------------------------------------ */

static void end_data(struct trainer *t, int64_t start_ns)
{
    int64_t now_ns = clock_now_ns();
    t->data_ns += now_ns - start_ns;
    range_end_at(now_ns);
}

size_t trainer_next_batch(struct trainer *t)
{
    /* A look-up by the device costs less than to ask. */
    bool loads = t->config->loaders == 0 && augments(&t->config->augmentation);
    int64_t start_ns = clock_now_ns(), ran_ns = loads ? clock_thread_ns() : 0;
    range_begin_at("next batch", &(struct range_about){.kind = RANGE_DATA}, start_ns);
    size_t count = batches_next(&t->batches, BATCHES_TRAIN);
    t->loaded_ns += loads ? clock_thread_ns() - ran_ns : 0;
    end_data(t, start_ns);
    batches_upload(
        &t->batches); /* a device that is still at earlier ones is not waited for as data */
    return count;
}

void trainer_gather(struct trainer *t, size_t first, size_t count)
{
    int64_t start_ns = clock_now_ns();
    range_begin_at("data", &(struct range_about){.kind = RANGE_DATA}, start_ns);
    batches_gather(&t->batches, BATCHES_TRAIN, first, count);
    end_data(t, start_ns);
}
