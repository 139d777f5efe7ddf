/*
 * Batches for the device. The device holds the whole data set as bytes. A batch is a list of sample
 * numbers, and an operation of the device, batches_gather, turns their bytes into normalised
 * floats. It is the same on every device. Alternatively a loader (common/data/loader.h) makes
 * training's batches on the host: with threads (`loaders`), or if images are augmented.
 *
 *     batches_start_epoch(batches, BATCHES_TRAIN, epoch, 0);
 *     while ((count = batches_next(batches, BATCHES_TRAIN)) > 0) {
 *         batches_gather(batches, BATCHES_TRAIN, 0, count);
 *         step(batches->images, batches->labels, count);
 *     }
 *
 * Cost of a batch: four bytes per sample to the device, and the gathering, which on a CPU is a
 * look-up for each pixel. If device memory is the host's, the data set is read in place; a GPU gets
 * a copy (55 MB for MNIST). The host computes the permutation once per epoch. A loader's batch is
 * used in place if device memory is the host's; a GPU gets its 3,137 bytes per sample.
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
#include "common/device/inputs.h"

enum batches_split { BATCHES_TRAIN, BATCHES_TEST, BATCHES_SPLITS };

struct batches_options {
    size_t train_batch, train_world, train_rank; /* see sampler_options */
    size_t test_batch, test_world, test_rank;
    size_t gather_max; /* the most images to gather at a time */
    uint64_t seed;
    bool joins;                       /* see sampler_options */
    int loaders;                      /* threads that make training's batches; 0: none */
    size_t prefetch;                  /* batches that they make ahead */
    struct augmentation augmentation; /* for training's images */
};

struct batches {
    struct device *device;
    struct sampler samplers[BATCHES_SPLITS];
    size_t next_step;    /* training: number in the epoch, without batches loaded ahead */
    size_t global_count; /* training: images of all ranks in the step of the last batches_next */
    struct gather resident[BATCHES_SPLITS]; /* device memory */
    void *copies[BATCHES_SPLITS]; /* owned memory of `resident`; NULL if it is the host's */
    float *values;                /* (256), device memory: the normalised value of each byte */
    struct device_input samples;  /* uint32_t (largest batch): the current batch */
    float *gathered;              /* (gather_max, 28, 28, 1), device memory */
    uint8_t *gathered_labels;     /* (gather_max), device memory */

    /* Training: the time until a batch is ready. The caller sets it to 0 at the start of a step. It
     * includes processor time if the loader has no threads, because batches_next then makes the
     * batch. */
    struct range_sum waited;

    struct loader *loader; /* NULL: the device gathers training's batches, too */
    bool loads_here;       /* the loader has no threads */
    float *host_values;    /* (256), for the loader */
    /* The loader's batch in device memory: the loader's own memory, or these copies. */
    struct loader_batch loaded;
    float *loaded_images;   /* (train_batch, 28, 28, 1); NULL: no copy is needed */
    uint8_t *loaded_labels; /* (train_batch) */

    const float *images;   /* (count, 28, 28, 1), device memory: result of batches_gather */
    const uint8_t *labels; /* (count), device memory */
};

/* Borrows `device` and `dataset`. STATUS_USAGE (logged) if an epoch has not one whole step. Call
 * batches_close after an error, too. */
enum status batches_open(struct batches *batches, struct device *device,
                         const struct dataset *dataset, const struct batches_options *options);
void batches_close(struct batches *batches);

/* Steps of an epoch of this split. */
size_t batches_steps(const struct batches *batches, enum batches_split split);

/* Begins `epoch` at `first_step`. Loaders also begin. */
void batches_start_epoch(struct batches *batches, enum batches_split split, uint64_t epoch,
                         size_t first_step);

/* Begins the remainder of a training epoch after `used` images; see sampler_start_rest. */
void batches_start_rest(struct batches *batches, uint64_t epoch, size_t used);

/* Until the next epoch begins, loaders make no batch and report no range. */
void batches_pause(struct batches *batches);

/* Sets the next samples for the device (inputs.h), or waits for a loader's batch. Returns their
 * number: 0 at the end of the epoch, and for a rank without a part of a joined step. A device with
 * separate memory also gets the loader's batch. That upload may wait until the device has taken
 * earlier ones; this wait does not count as a wait for data. */
size_t batches_next(struct batches *batches, enum batches_split split);

/* Sets batches->images and labels to samples [first, first + count) of the current batch, by an
 * operation of the device if necessary. */
void batches_gather(struct batches *batches, enum batches_split split, size_t first, size_t count);

#endif
