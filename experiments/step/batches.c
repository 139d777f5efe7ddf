#include "experiments/step/batches.h"

enum { BYTE_VALUES = UINT8_MAX + 1 };

/* A pixel x becomes (x / 255 - mean) / std, with those of MNIST's training images. */
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
    void *images, *labels, *samples;
    size_t most =
        options->train_batch > options->test_batch ? options->train_batch : options->test_batch;
    TRY(device_alloc(batches->device, "a batch of images",
                     options->gather_max * DATASET_PIXELS * sizeof *batches->images, &images));
    batches->images = images;
    TRY(device_alloc(batches->device, "a batch of labels", options->gather_max, &labels));
    batches->labels = labels;
    TRY(device_alloc(batches->device, "a batch of samples", most * sizeof *batches->samples,
                     &samples));
    batches->samples = samples;
out:
    return status;
}

static enum status upload_values(struct batches *batches)
{
    enum status status = STATUS_OK;
    float values[BYTE_VALUES];
    void *memory;
    for (int x = 0; x < BYTE_VALUES; x++)
        values[x] = ((float)x / 255.0f - pixel_mean) / pixel_std;
    TRY(device_alloc(batches->device, "what pixels become", sizeof values, &memory));
    batches->values = memory;
    device_upload(batches->device, batches->values, values, sizeof values);
    TRY(device_sync(batches->device));
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
    TRY(hold_split(batches, &dataset->train, BATCHES_TRAIN));
    TRY(hold_split(batches, &dataset->test, BATCHES_TEST));
out:
    return status;
}

void batches_close(struct batches *batches)
{
    if (!batches->device)
        return;
    for (int split = 0; split < BATCHES_SPLITS; split++) {
        sampler_fini(&batches->samplers[split]);
        device_free(batches->device, batches->copies[split]);
    }
    device_free(batches->device, batches->values);
    device_free(batches->device, batches->samples);
    device_free(batches->device, batches->images);
    device_free(batches->device, batches->labels);
    *batches = (struct batches){0};
}

size_t batches_steps(const struct batches *batches, enum batches_split split)
{
    return batches->samplers[split].steps;
}

void batches_start_epoch(struct batches *batches, enum batches_split split, uint64_t epoch,
                         size_t first_step)
{
    sampler_start_epoch(&batches->samplers[split], epoch, first_step);
}

void batches_start_rest(struct batches *batches, uint64_t epoch, size_t used)
{
    sampler_start_rest(&batches->samplers[BATCHES_TRAIN], epoch, used);
}

size_t batches_next(struct batches *batches, enum batches_split split)
{
    size_t count;
    const uint32_t *samples = sampler_next(&batches->samplers[split], &count);
    if (count > 0)
        device_upload(batches->device, batches->samples, samples, count * sizeof *samples);
    return count;
}

size_t batches_of_all(const struct batches *batches)
{
    return batches->samplers[BATCHES_TRAIN].of_all;
}

void batches_gather(struct batches *batches, enum batches_split split, size_t first, size_t count)
{
    batches->device->ops->gather(batches->device, &batches->resident[split], count,
                                 batches->samples + first, batches->images, batches->labels);
}
