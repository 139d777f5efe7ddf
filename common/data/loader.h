/*
 * Training batches made on the host. Threads make them ahead. Without threads the caller makes each
 * batch when it asks for it.
 *
 *     loader_new(&loader, &options)
 *     loader_pause(loader);  sampler_start_epoch(sampler, ...);  loader_start(loader, epoch);
 *     while ((batch = loader_next(loader)))    train on batch->images, which stays until the next
 *     loader_free(&loader)
 *
 * Batches are made in `depth` + 1 slots in a circle: one for the batch that the caller has, the
 * others for the following batches. A thread takes the sampler's next batch and the next slot
 * together. Batch k is therefore in slot k mod (depth + 1), whichever thread makes it. The caller
 * waits for one slot after the other. A batch is a function of its samples, the seed and the epoch.
 * The number of threads and the depth therefore change when a batch is ready, but not its contents.
 *
 *     depth 2, two threads          slot 0      slot 1      slot 2
 *     the caller has batch 3        3           4 ready     5 being made
 *     the caller asks again         6 is taken  4           5
 *
 * Between loader_pause and loader_start no thread uses the sampler or the slots. Threads end with
 * loader_free. Like loader_pause, it waits for batches that are being made, at most one per thread.
 */
#ifndef PSRING_COMMON_DATA_LOADER_H
#define PSRING_COMMON_DATA_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/data/augment.h"
#include "common/data/dataset.h"
#include "common/data/sampler.h"

enum { LOADER_THREADS_MOST = 64, LOADER_DEPTH_MOST = 1024 };

struct loader_options {
    int threads;                /* 0: the caller makes each batch; at most LOADER_THREADS_MOST */
    size_t depth;               /* batches ahead, >= 1; unused without threads */
    struct sampler *sampler;    /* borrowed; SAMPLER_SHUFFLED */
    struct dataset_split split; /* its memory is borrowed */
    const float *values;        /* (256), borrowed, host memory: the value of each byte */
    size_t batch;               /* the most samples of a batch */
    struct augmentation augmentation;
    uint64_t seed; /* for the augmentation */
};

struct loader_batch {
    const float *images;   /* (count, 28, 28), host memory, aligned to 64 bytes */
    const uint8_t *labels; /* (count) */
    size_t count;          /* 0 if the rank has no part of a joined step */
    size_t global_count;   /* samples of all ranks in it */
};

struct loader;

/* Allocates all slots and starts the threads, which wait for loader_start. Errors, logged:
 * STATUS_NO_MEMORY, or the reason why a thread cannot start. */
enum status loader_new(struct loader **loader, const struct loader_options *options);
void loader_free(struct loader **loader);

/* Drops the batches made ahead. Until loader_start the sampler belongs to the caller. */
void loader_pause(struct loader *loader);

/* Makes batches from the sampler's position on. */
void loader_start(struct loader *loader, uint64_t epoch);

/* Waits for the next batch; NULL at the sampler's end. It is valid until the next call of
 * loader_next or loader_pause. */
const struct loader_batch *loader_next(struct loader *loader);

#endif
