#include "common/data/loader.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/check.h"
#include "common/base/thread.h"
#include "common/data/sampler.h"

/*
 * The ring: batch number k of an epoch lives in slot k % depth. Batches [taken, filled) wait for
 * the consumer; it holds batch taken - 1 from one loader_next to the next call.
 */
struct loader {
    /* Written by loader_new only. */
    struct dataset_split split;
    struct loader_options options;
    struct sampler_range shard; /* LOADER_SEQUENTIAL: this rank's share */
    size_t steps;               /* in an epoch */
    float normalised[LOADER_BYTE_VALUES];
    float *images;     /* (depth, batch, 28, 28) */
    uint8_t *labels;   /* (depth, batch) */
    uint32_t *samples; /* (depth, batch) */
    size_t *counts;    /* (depth): samples in each slot */
    struct thread thread;

    /* The loader's thread's own. */
    uint32_t *order; /* (split.count): the permutation of the epoch being filled */

    /* Shared, under `lock`. */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* any field below */
    bool stopping;
    bool holding;     /* the consumer has batch taken - 1 */
    uint64_t request; /* number of epochs started; a new value cancels what is being filled */
    uint64_t epoch;   /* of the latest request */
    size_t filled, taken;
};

/* Samples of batch `step`, and where they stand in `order` or in the split. */
static struct sampler_range range_of(const struct loader *loader, size_t step)
{
    const struct loader_options *options = &loader->options;
    if (options->order == LOADER_SHUFFLED)
        return sampler_slice(options->world, options->rank, options->batch, step);
    size_t done = step * options->batch, left = loader->shard.count - done;
    return (struct sampler_range){loader->shard.first + done,
                                  left < options->batch ? left : options->batch};
}

static void fill_slot(struct loader *loader, size_t step)
{
    size_t slot = step % loader->options.depth;
    struct sampler_range range = range_of(loader, step);
    uint32_t *samples = loader->samples + slot * loader->options.batch; // (B)
    for (size_t i = 0; i < range.count; i++) {
        size_t at = range.first + i;
        samples[i] = loader->options.order == LOADER_SHUFFLED ? loader->order[at] : (uint32_t)at;
    }
    loader->counts[slot] = range.count;
    if (loader->options.samples_only)
        return;
    float *images = loader->images + slot * loader->options.batch * DATASET_PIXELS; // (B, 28, 28)
    uint8_t *labels = loader->labels + slot * loader->options.batch;                // (B)
    for (size_t i = 0; i < range.count; i++) {
        size_t sample = samples[i];
        const uint8_t *from = loader->split.images + sample * DATASET_PIXELS;
        for (size_t p = 0; p < DATASET_PIXELS; p++)
            images[i * DATASET_PIXELS + p] = loader->normalised[from[p]];
        labels[i] = loader->split.labels[sample];
    }
}

/* May another batch be filled? One slot stays free: the consumer may hold it. Needs the lock. */
static bool has_room(const struct loader *loader)
{
    size_t in_use = loader->filled - loader->taken + (loader->holding ? 1 : 0);
    return loader->filled < loader->steps && in_use < loader->options.depth;
}

static void *run(void *argument)
{
    struct loader *loader = argument;
    uint64_t current = 0; /* the request that `order` belongs to */
    pthread_mutex_lock(&loader->lock);
    while (!loader->stopping) {
        uint64_t request = loader->request, epoch = loader->epoch;
        size_t step = loader->filled;
        bool new_order = request != current && loader->options.order == LOADER_SHUFFLED;
        if (request == 0 || !has_room(loader)) {
            pthread_cond_wait(&loader->changed, &loader->lock);
            continue;
        }
        pthread_mutex_unlock(&loader->lock);
        if (new_order)
            sampler_permute(loader->options.seed, epoch, loader->order, loader->split.count);
        fill_slot(loader, step);
        current = request;
        pthread_mutex_lock(&loader->lock);
        if (loader->request == request) { /* else: another epoch was started meanwhile */
            loader->filled++;
            pthread_cond_broadcast(&loader->changed);
        }
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

static enum status allocate(struct loader *loader)
{
    const struct loader_options *options = &loader->options;
    size_t slot_bytes = 0, ring_bytes = 0;
    if (__builtin_mul_overflow(options->batch, DATASET_PIXELS * sizeof(float), &slot_bytes) ||
        __builtin_mul_overflow(slot_bytes, options->depth, &ring_bytes))
        goto no_memory;
    if (!options->samples_only) {
        loader->images = malloc(ring_bytes);
        loader->labels = malloc(options->depth * options->batch);
        if (!loader->images || !loader->labels)
            goto no_memory;
    }
    loader->samples = calloc(options->depth * options->batch, sizeof *loader->samples);
    loader->counts = calloc(options->depth, sizeof *loader->counts);
    if (options->order == LOADER_SHUFFLED) {
        loader->order = malloc(loader->split.count * sizeof *loader->order);
        if (!loader->order)
            goto no_memory;
    }
    if (loader->samples && loader->counts)
        return STATUS_OK;
no_memory:
    log_error("no memory for %zu batches of %zu images; lower --batch", options->depth,
              options->batch);
    return STATUS_NO_MEMORY;
}

static enum status count_steps(struct loader *loader)
{
    const struct loader_options *options = &loader->options;
    if (options->order == LOADER_SHUFFLED)
        return sampler_steps(loader->split.count, options->world, options->batch, &loader->steps);
    loader->shard = sampler_shard(loader->split.count, options->world, options->rank);
    loader->steps =
        loader->shard.count / options->batch + (loader->shard.count % options->batch > 0 ? 1 : 0);
    return STATUS_OK;
}

static void free_memory(struct loader *loader)
{
    free(loader->images);
    free(loader->labels);
    free(loader->samples);
    free(loader->counts);
    free(loader->order);
    free(loader);
}

void loader_values(const struct loader_options *options, float values[LOADER_BYTE_VALUES])
{
    for (int x = 0; x < LOADER_BYTE_VALUES; x++)
        values[x] = ((float)x / 255.0f - options->mean) / options->std;
}

enum status loader_new(struct loader **out_loader, const struct dataset_split *split,
                       const struct loader_options *options)
{
    enum status status = STATUS_OK;
    CHECK(options->batch > 0 && options->rank < options->world && options->depth >= 2);
    CHECK(options->std > 0);
    *out_loader = NULL;
    struct loader *loader = calloc(1, sizeof *loader);
    if (!loader) {
        log_error("no memory for a data loader");
        return STATUS_NO_MEMORY;
    }
    loader->split = *split;
    loader->options = *options;
    loader_values(options, loader->normalised);
    TRY(count_steps(loader));
    TRY(allocate(loader));
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->changed, NULL);
    status = thread_start(&loader->thread, "psring-loader", run, loader);
    if (status != STATUS_OK) {
        pthread_cond_destroy(&loader->changed);
        pthread_mutex_destroy(&loader->lock);
        goto out;
    }
    *out_loader = loader;
    loader = NULL;
out:
    if (loader)
        free_memory(loader);
    return status;
}

void loader_free(struct loader **out_loader)
{
    struct loader *loader = *out_loader;
    if (!loader)
        return;
    pthread_mutex_lock(&loader->lock);
    loader->stopping = true;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
    thread_join(&loader->thread);
    pthread_cond_destroy(&loader->changed);
    pthread_mutex_destroy(&loader->lock);
    free_memory(loader);
    *out_loader = NULL;
}

size_t loader_steps(const struct loader *loader)
{
    return loader->steps;
}

void loader_start_epoch(struct loader *loader, uint64_t epoch)
{
    loader_start_epoch_at(loader, epoch, 0);
}

void loader_start_epoch_at(struct loader *loader, uint64_t epoch, size_t first_step)
{
    CHECK(first_step <= loader->steps);
    pthread_mutex_lock(&loader->lock);
    loader->request++;
    loader->epoch = epoch;
    loader->filled = loader->taken = first_step;
    loader->holding = false;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
}

bool loader_next(struct loader *loader, struct batch *batch)
{
    pthread_mutex_lock(&loader->lock);
    if (loader->holding) {
        loader->holding = false;
        pthread_cond_broadcast(&loader->changed);
    }
    bool more = loader->request > 0 && loader->taken < loader->steps;
    while (more && loader->filled == loader->taken)
        pthread_cond_wait(&loader->changed, &loader->lock);
    if (more) {
        size_t slot = loader->taken++ % loader->options.depth;
        loader->holding = true;
        *batch = (struct batch){
            .count = loader->counts[slot],
            .samples = loader->samples + slot * loader->options.batch,
        };
        if (!loader->options.samples_only) {
            batch->images = loader->images + slot * loader->options.batch * DATASET_PIXELS;
            batch->labels = loader->labels + slot * loader->options.batch;
        }
    }
    pthread_mutex_unlock(&loader->lock);
    return more;
}
