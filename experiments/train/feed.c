#include "experiments/train/feed.h"

static enum status allocate(struct feed *feed, size_t batch_max)
{
    enum status status = STATUS_OK;
    void *images, *labels, *samples;
    TRY(device_alloc(feed->device, "a batch of images", batch_max * DATASET_PIXELS * sizeof(float),
                     &images));
    feed->images = images;
    TRY(device_alloc(feed->device, "a batch of labels", batch_max, &labels));
    feed->labels = labels;
    if (feed_is_resident(feed->device)) {
        TRY(device_alloc(feed->device, "a batch of samples", batch_max * sizeof *feed->samples,
                         &samples));
        feed->samples = samples;
    }
out:
    return status;
}

static enum status copy_split(struct feed *feed, const struct dataset_split *split,
                              enum feed_split which)
{
    enum status status = STATUS_OK;
    size_t image_bytes = split->count * DATASET_PIXELS;
    TRY(device_alloc(feed->device, "the data set", image_bytes + split->count,
                     &feed->bytes[which]));
    uint8_t *images = feed->bytes[which], *labels = images + image_bytes;
    device_upload(feed->device, images, split->images, image_bytes);
    device_upload(feed->device, labels, split->labels, split->count);
    feed->resident[which] = (struct gather){
        .images = images, .labels = labels, .values = feed->values, .pixels = DATASET_PIXELS};
    TRY(device_sync(feed->device));
out:
    return status;
}

static enum status copy_dataset(struct feed *feed, const struct dataset *dataset,
                                const struct loader_options *options)
{
    enum status status = STATUS_OK;
    float values[LOADER_BYTE_VALUES];
    void *memory;
    TRY(device_alloc(feed->device, "what pixels become", sizeof values, &memory));
    feed->values = memory;
    loader_values(options, values);
    device_upload(feed->device, feed->values, values, sizeof values);
    TRY(copy_split(feed, &dataset->train, FEED_TRAIN));
    TRY(copy_split(feed, &dataset->test, FEED_TEST));
out:
    return status;
}

bool feed_is_resident(const struct device *device)
{
    return !device_memory_is_host(device);
}

enum status feed_open(struct feed *feed, struct device *device, const struct dataset *dataset,
                      const struct loader_options *options, size_t batch_max)
{
    enum status status = STATUS_OK;
    *feed = (struct feed){.device = device};
    TRY(allocate(feed, batch_max));
    if (feed->samples)
        TRY(copy_dataset(feed, dataset, options));
out:
    return status;
}

void feed_close(struct feed *feed)
{
    if (!feed->device)
        return;
    for (int split = 0; split < FEED_SPLITS; split++)
        device_free(feed->device, feed->bytes[split]);
    device_free(feed->device, feed->values);
    device_free(feed->device, feed->samples);
    device_free(feed->device, feed->images);
    device_free(feed->device, feed->labels);
    *feed = (struct feed){0};
}

void feed_put(struct feed *feed, const struct batch *batch, size_t first, size_t count)
{
    if (feed->samples) {
        device_upload(feed->device, feed->samples, batch->samples + first,
                      count * sizeof *feed->samples);
        return;
    }
    device_upload(feed->device, feed->images, batch->images + first * DATASET_PIXELS,
                  count * DATASET_PIXELS * sizeof *feed->images);
    device_upload(feed->device, feed->labels, batch->labels + first, count);
}

void feed_gather(struct feed *feed, enum feed_split split, size_t count)
{
    if (feed->samples)
        feed->device->ops->gather(feed->device, &feed->resident[split], count, feed->samples,
                                  feed->images, feed->labels);
}
