/*
 * How batches come to the device. One whose memory is the host's gets each batch as the loader
 * prepared it; one with memory of its own holds the whole data set, and is told which samples make
 * up the next batch.
 */
#ifndef PSRING_EXPERIMENTS_FEED_H
#define PSRING_EXPERIMENTS_FEED_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/data/dataset.h"
#include "common/data/loader.h"
#include "common/device/device.h"

enum feed_split { FEED_TRAIN, FEED_TEST, FEED_SPLITS };

struct feed {
    struct device *device;
    float *images;                       /* (batch_max, 28, 28, 1), device memory: the batch */
    uint8_t *labels;                     /* (batch_max), device memory */
    uint32_t *samples;                   /* (batch_max), device memory; NULL: nothing is resident */
    struct gather resident[FEED_SPLITS]; /* device memory */
    void *bytes[FEED_SPLITS];            /* what they point to: images, then labels */
    float *values;                       /* (256), device memory */
};

/* Whether loaders for the device should name samples only (loader_options.samples_only). */
bool feed_is_resident(const struct device *device);

/* Borrows `device`. For batches of up to `batch_max` images. With a resident data set, copies it to
 * the device; `options` say what a pixel becomes. */
enum status feed_open(struct feed *feed, struct device *device, const struct dataset *dataset,
                      const struct loader_options *options, size_t batch_max);
void feed_close(struct feed *feed);

/* Images [first, first + count) of a batch of this split: on return the batch may be given back. */
void feed_put(struct feed *feed, const struct batch *batch, size_t first, size_t count);

/* An operation of the device: feed->images and feed->labels become what feed_put named. */
void feed_gather(struct feed *feed, enum feed_split split, size_t count);

#endif
