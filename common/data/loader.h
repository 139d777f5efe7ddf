/*
 * Batches of normalised images, prepared ahead by a thread of the loader's own.
 *
 * The thread gathers samples, converts bytes to floats and fills a ring of `depth` buffers, all
 * allocated by loader_new: no step allocates. One consumer thread calls all functions below; the
 * loader's thread touches only the buffers that the consumer does not hold.
 *
 *     TRY(loader_new(&loader, &dataset->train, &options));
 *     for each epoch:
 *         loader_start_epoch(loader, epoch);
 *         while (loader_next(loader, &batch))
 *             step(batch.images, batch.labels, batch.count);
 *     loader_free(&loader);
 */
#ifndef PSRING_COMMON_DATA_LOADER_H
#define PSRING_COMMON_DATA_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/data/dataset.h"

enum loader_order {
    LOADER_SHUFFLED,   /* training: a new permutation every epoch, whole batches only (sampler.h) */
    LOADER_SEQUENTIAL, /* testing: this rank's contiguous share; the last batch may be shorter */
};

struct loader_options {
    enum loader_order order;
    size_t batch;       /* samples a step on this rank, > 0 */
    size_t world, rank; /* rank < world. One process playing N workers: world 1, batch N x B */
    uint64_t seed;      /* of the permutations; the same on every rank */
    float mean, std;    /* a pixel x becomes (x / 255 - mean) / std; std > 0 */
    bool samples_only;  /* batches name their samples only: for devices that hold the data set */
    size_t depth;       /* buffers in the ring, >= 2: one held by the consumer, the others ahead */
};

/* One step's samples. Borrowed from the loader until its next call of any kind. */
struct batch {
    const float *images;     /* (count, 1, 28, 28); NULL with samples_only, as labels */
    const uint8_t *labels;   /* (count), 0 to 9 */
    size_t count;            /* options.batch, or less in the last batch of LOADER_SEQUENTIAL */
    const uint32_t *samples; /* (count): their positions in the split */
};

/* What a pixel becomes, for each value of the byte, with the mean and std of `options`. */
enum { LOADER_BYTE_VALUES = 256 };
void loader_values(const struct loader_options *options, float values[LOADER_BYTE_VALUES]);

struct loader;

/*
 * Allocates the ring and starts the thread; the split is borrowed until loader_free. STATUS_USAGE
 * (logged) if an epoch has not one whole step, STATUS_NO_MEMORY.
 */
enum status loader_new(struct loader **loader, const struct dataset_split *split,
                       const struct loader_options *options);

/* Ends the thread, whatever it is doing, and frees. May be called at any moment. */
void loader_free(struct loader **loader);

/* Steps in an epoch on this rank; 0 is possible for an empty share of LOADER_SEQUENTIAL. */
size_t loader_steps(const struct loader *loader);

/* Begins `epoch` at its first step, also when another epoch is not at its end yet. */
void loader_start_epoch(struct loader *loader, uint64_t epoch);

/* The same from step `first_step` on, to resume inside an epoch. first_step <= loader_steps(). */
void loader_start_epoch_at(struct loader *loader, uint64_t epoch, size_t first_step);

/* The next batch; waits for it if need be. False: the epoch has ended (or none was started). */
bool loader_next(struct loader *loader, struct batch *batch);

#endif
