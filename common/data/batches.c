#include "common/data/batches.h"

#include <stdlib.h>
#include <string.h>

enum { BYTE_VALUES = UINT8_MAX + 1 };

/* A pixel x becomes (x / 255 - mean) / std, with mean and deviation of MNIST's training images. */
static const float pixel_mean = 0.1307f, pixel_std = 0.3081f;

static enum status open_samplers(struct batches *batches, const struct dataset *dataset,
                                 const struct batches_options *options)
{
    enum status status = STATUS_OK;
    TRY(sampler_init(&batches->samplers[BATCHES_TRAIN],
                     &(struct sampler_options){.order = SAMPLER_SHUFFLED,
                                               .samples = dataset->train.count,
                                               .batch = options->train_batch,
                                               .world = options->train_world,
                                               .rank = options->train_rank,
                                               .seed = options->seed,
                                               .joins = options->joins}));
    TRY(sampler_init(&batches->samplers[BATCHES_TEST],
                     &(struct sampler_options){.order = SAMPLER_SEQUENTIAL,
                                               .samples = dataset->test.count,
                                               .batch = options->test_batch,
                                               .world = options->test_world,
                                               .rank = options->test_rank}));
out:
    return status;
}

static enum status allocate(struct batches *batches, const struct batches_options *options)
{
    enum status status = STATUS_OK;
    void *images, *labels;
    size_t most = size_larger(options->train_batch, options->test_batch);
    TRY(device_alloc(batches->device, "a batch of images",
                     options->gather_max * DATASET_PIXELS * sizeof *batches->gathered, &images));
    batches->gathered = images;
    TRY(device_alloc(batches->device, "a batch of labels", options->gather_max, &labels));
    batches->gathered_labels = labels;
    TRY(device_input_new(batches->device, "a batch of samples", most * sizeof(uint32_t),
                         &batches->samples));
out:
    return status;
}

static enum status upload_values(struct batches *batches)
{
    enum status status = STATUS_OK;
    size_t bytes = BYTE_VALUES * sizeof(float);
    void *memory;
    float *values = batches->host_values = malloc(bytes);
    if (!values)
        return FAIL(STATUS_NO_MEMORY, "no memory for the values of pixels");
    for (int x = 0; x < BYTE_VALUES; x++)
        values[x] = ((float)x / 255.0f - pixel_mean) / pixel_std;
    TRY(device_alloc(batches->device, "the values of pixels", bytes, &memory));
    batches->values = memory;
    device_upload(batches->device, batches->values, values, bytes);
    TRY(device_sync(batches->device));
out:
    return status;
}

/* A step that a device repeats reads its batch at the recorded address, hence one copy. */
static enum status open_loader(struct batches *batches, const struct dataset *dataset,
                               const struct batches_options *options)
{
    enum status status = STATUS_OK;
    void *images, *labels;
    if (options->loaders == 0 && !augments(&options->augmentation))
        return STATUS_OK;
    batches->loads_here = options->loaders == 0;
    TRY(loader_new(&batches->loader,
                   &(struct loader_options){.threads = options->loaders,
                                            .depth = options->prefetch,
                                            .sampler = &batches->samplers[BATCHES_TRAIN],
                                            .split = dataset->train,
                                            .values = batches->host_values,
                                            .batch = options->train_batch,
                                            .augmentation = options->augmentation,
                                            .seed = options->seed}));
    if (device_memory_is_host(batches->device))
        return STATUS_OK;
    TRY(device_alloc(batches->device, "a loaded batch of images",
                     options->train_batch * DATASET_PIXELS * sizeof(float), &images));
    batches->loaded_images = images;
    TRY(device_alloc(batches->device, "a loaded batch of labels", options->train_batch, &labels));
    batches->loaded_labels = labels;
out:
    return status;
}

static enum status hold_split(struct batches *batches, const struct dataset_split *split,
                              enum batches_split which)
{
    enum status status = STATUS_OK;
    struct gather *resident = &batches->resident[which];
    size_t image_bytes = split->count * DATASET_PIXELS;
    *resident = (struct gather){.images = split->images,
                                .labels = split->labels,
                                .values = batches->values,
                                .pixels = DATASET_PIXELS};
    if (device_memory_is_host(batches->device))
        return STATUS_OK;
    TRY(device_alloc(batches->device, "the data set", image_bytes + split->count,
                     &batches->copies[which]));
    uint8_t *images = batches->copies[which], *labels = images + image_bytes;
    device_upload(batches->device, images, split->images, image_bytes);
    device_upload(batches->device, labels, split->labels, split->count);
    resident->images = images;
    resident->labels = labels;
    TRY(device_sync(batches->device));
out:
    return status;
}

enum status batches_open(struct batches *batches, struct device *device,
                         const struct dataset *dataset, const struct batches_options *options)
{
    enum status status = STATUS_OK;
    *batches = (struct batches){.device = device};
    TRY(open_samplers(batches, dataset, options));
    TRY(allocate(batches, options));
    TRY(upload_values(batches));
    TRY(open_loader(batches, dataset, options));
    if (!batches->loader)
        TRY(hold_split(batches, &dataset->train, BATCHES_TRAIN));
    TRY(hold_split(batches, &dataset->test, BATCHES_TEST));
out:
    return status;
}

void batches_close(struct batches *batches)
{
    if (!batches->device)
        return;
    loader_free(&batches->loader);
    for (int split = 0; split < BATCHES_SPLITS; split++) {
        sampler_fini(&batches->samplers[split]);
        device_free(batches->device, batches->copies[split]);
    }
    device_free(batches->device, batches->values);
    device_free(batches->device, batches->gathered);
    device_free(batches->device, batches->gathered_labels);
    device_free(batches->device, batches->loaded_images);
    device_free(batches->device, batches->loaded_labels);
    free(batches->host_values);
    *batches = (struct batches){0};
}

size_t batches_steps(const struct batches *batches, enum batches_split split)
{
    return batches->samplers[split].steps;
}

void batches_pause(struct batches *batches)
{
    if (batches->loader)
        loader_pause(batches->loader);
}

void batches_start_epoch(struct batches *batches, enum batches_split split, uint64_t epoch,
                         size_t first_step)
{
    bool loads = batches->loader && split == BATCHES_TRAIN;
    if (loads)
        loader_pause(batches->loader);
    if (split == BATCHES_TRAIN)
        batches->next_step = first_step;
    sampler_start_epoch(&batches->samplers[split], epoch, first_step);
    if (loads)
        loader_start(batches->loader, epoch);
}

void batches_start_rest(struct batches *batches, uint64_t epoch, size_t used)
{
    batches_pause(batches);
    sampler_start_rest(&batches->samplers[BATCHES_TRAIN], epoch, used);
    if (batches->loader)
        loader_start(batches->loader, epoch);
}

/* The loader's next batch, in place. */
static size_t next_loaded(struct batches *batches)
{
    const struct loader_batch *batch = loader_next(batches->loader);
    batches->loaded = batch ? *batch : (struct loader_batch){0};
    return batches->loaded.count;
}

static void upload_loaded(struct batches *batches)
{
    struct device *device = batches->device;
    const struct loader_batch *batch = &batches->loaded;
    device_upload(device, batches->loaded_images, batch->images,
                  batch->count * DATASET_PIXELS * sizeof *batch->images);
    device_upload(device, batches->loaded_labels, batch->labels, batch->count);
    batches->loaded.images = batches->loaded_images;
    batches->loaded.labels = batches->loaded_labels;
}

size_t batches_next(struct batches *batches, enum batches_split split)
{
    const bool training = split == BATCHES_TRAIN;
    size_t count;
    if (training) {
        batches->next_step++;
        range_sum_begin(&batches->waited, "next batch", &(struct range_about){.kind = RANGE_DATA},
                        batches->loads_here);
    }
    if (training && batches->loader) {
        count = next_loaded(batches);
    } else {
        const uint32_t *samples = sampler_next(&batches->samplers[split], &count);
        if (count > 0)
            memcpy(batches->samples.host, samples, count * sizeof *samples);
    }
    if (training) {
        range_sum_end(&batches->waited);
        batches->global_count =
            batches->loader ? batches->loaded.global_count : batches->samplers[split].global_count;
    }
    if (training && batches->loaded_images && count > 0)
        upload_loaded(batches);
    return count;
}

void batches_gather(struct batches *batches, enum batches_split split, size_t first, size_t count)
{
    const bool training = split == BATCHES_TRAIN;
    if (training)
        range_sum_begin(&batches->waited, "data", &(struct range_about){.kind = RANGE_DATA}, false);
    if (training && batches->loader) {
        batches->images = batches->loaded.images + first * DATASET_PIXELS;
        batches->labels = batches->loaded.labels + first;
    } else {
        const uint32_t *samples = batches->samples.memory;
        batches->device->ops->gather(batches->device, &batches->resident[split], count,
                                     samples + first, batches->gathered, batches->gathered_labels);
        batches->images = batches->gathered;
        batches->labels = batches->gathered_labels;
    }
    if (training)
        range_sum_end(&batches->waited);
}
