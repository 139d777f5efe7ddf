/*
 * Batches on their way to the device. The device holds the whole data set as bytes; a batch is
 * named by the numbers of its samples, and an operation of the device, batches_gather, turns their
 * bytes into normalised floats. It is the same on every device. Or training's batches are made on
 * the host, by a loader (common/data/loader.h): where threads are to do it, or images change.
 *
 *     batches_start_epoch(batches, BATCHES_TRAIN, epoch, 0);
 *     while ((count = batches_next(batches, BATCHES_TRAIN)) > 0) {
 *         batches_gather(batches, BATCHES_TRAIN, 0, count);
 *         step(batches->images, batches->labels, count);
 *     }
 *
 * What a batch costs: four bytes a sample to the device, and the gathering. On a CPU that is a
 * look-up for each pixel. Where device memory is the host's, the data set is read where it is; a
 * GPU gets a copy (55 MB for MNIST). An epoch's permutation is made on the host, once an epoch.
 * A loader's batch is used where it was made if device memory is the host's; to a GPU go its 3,137
 * bytes a sample.
 */
#ifndef PSRING_COMMON_DATA_BATCHES_H
#define PSRING_COMMON_DATA_BATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/range.h"
#include "common/base/status.h"
#include "common/data/augment.h"
#include "common/data/dataset.h"
#include "common/data/loader.h"
#include "common/data/sampler.h"
#include "common/device/device.h"

enum batches_split { BATCHES_TRAIN, BATCHES_TEST, BATCHES_SPLITS };

struct batches_options {
    size_t train_batch, train_world, train_rank; /* see sampler_options */
    size_t test_batch, test_world, test_rank;
    size_t gather_max; /* images that are gathered at a time at most */
    uint64_t seed;
    bool joins;                       /* see sampler_options */
    int loaders;                      /* threads that make training's batches; 0: none */
    size_t prefetch;                  /* batches that they make ahead */
    struct augmentation augmentation; /* of training's images */
};

struct batches {
    struct device *device;
    struct sampler samplers[BATCHES_SPLITS];
    size_t next_step; /* of the training epoch; what is loaded ahead does not count */
    struct gather resident[BATCHES_SPLITS]; /* device memory */
    void *copies[BATCHES_SPLITS]; /* the same memory, if it is the device's own; else NULL */
    float *values;                /* (256), device memory: what a pixel's byte becomes */
    uint32_t *samples;        /* (largest batch), an input of the device's: the batch named last */
    float *gathered;          /* (gather_max, 28, 28, 1), device memory */
    uint8_t *gathered_labels; /* (gather_max), device memory */

    /* Training: the time until a batch is there. The caller sets it to 0 where a step begins. Its
     * processor time is that of a loader without threads, which makes the batch in batches_next. */
    struct range_sum waited;

    struct loader *loader; /* NULL: the device gathers training's batches, too */
    bool loads_here;       /* the loader has no threads */
    float *host_values;    /* (256), the loader's */
    /* The loader's batch in device memory: the loader's own, or these copies. */
    struct loader_batch loaded;
    float *loaded_images;   /* (train_batch, 28, 28, 1); NULL: no copy is needed */
    uint8_t *loaded_labels; /* (train_batch) */

    const float *images;   /* (count, 28, 28, 1), device memory: of batches_gather */
    const uint8_t *labels; /* (count), device memory */
};

/* Borrows `device` and `dataset`. STATUS_USAGE (logged) if an epoch has not one whole step. Needs
 * batches_close whatever it returns. */
enum status batches_open(struct batches *batches, struct device *device,
                         const struct dataset *dataset, const struct batches_options *options);
void batches_close(struct batches *batches);

/* Steps of an epoch of this split. */
size_t batches_steps(const struct batches *batches, enum batches_split split);

/* Begins `epoch` at `first_step`: loaders do, too. */
void batches_start_epoch(struct batches *batches, enum batches_split split, uint64_t epoch,
                         size_t first_step);

/* Begins the rest of a training epoch behind `used` images; see sampler_start_rest. */
void batches_start_rest(struct batches *batches, uint64_t epoch, size_t used);

/* Loaders touch nothing, and tell of no range, until the next epoch is begun. */
void batches_pause(struct batches *batches);

/* Sets for the device (inputs.h) which samples come next, or waits for a loader's batch; returns
 * how many samples, 0 at the epoch's end and for a rank without a part of a joined step. A device
 * with memory of its own also gets the loader's batch. The upload may wait until the device has
 * taken earlier ones, and that wait is not one for data. */
size_t batches_next(struct batches *batches, enum batches_split split);

/* Training: the step of the epoch whose batch is next. */
size_t batches_next_step(const struct batches *batches);

/* Training: the images of all ranks in the step that batches_next has given. */
size_t batches_global_count(const struct batches *batches);

/* An operation of the device, if any: batches->images and labels become samples [first, first +
 * count) of the batch named last. */
void batches_gather(struct batches *batches, enum batches_split split, size_t first, size_t count);

#endif
