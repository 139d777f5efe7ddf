#include "common/data/loader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/thread.h"
#include "common/base/range.h"

enum { ALIGNMENT = 64, TOLD = 6 }; /* a timeline has rows for TOLD loaders */

struct loader_slot {
    struct loader_batch batch; /* points to the next two */
    float *images;
    uint8_t *labels;
    const uint32_t *samples; /* the sampler's; valid until its next epoch */
    bool ready;
};

struct loader {
    struct loader_options options;
    struct loader_slot *slots; /* (slot_count) */
    size_t slot_count;
    struct thread *threads; /* (started) */
    int started;
    _Atomic int numbered; /* threads that have begun */
    uint64_t epoch;

    pthread_mutex_t mutex;   /* guards the fields below, each slot's `ready`, and the sampler */
    pthread_cond_t may_make; /* a slot is free, or the threads must end */
    pthread_cond_t made;     /* a batch is ready, or there are no more */
    uint64_t begun;          /* batches begun in this epoch */
    uint64_t asked;          /* batches requested by the caller in this epoch */
    int making;              /* threads that are making a batch */
    bool running;            /* between loader_start and loader_pause */
    bool over;               /* the sampler has no more batches */
    bool ends;
};

/* -------- one batch --------------------------------------------------------------------------- */

static void make_image(const struct loader *loader, uint32_t sample, float *to)
{
    const struct loader_options *options = &loader->options;
    const uint8_t *from = options->split.images + (size_t)sample * DATASET_PIXELS;
    if (augments(&options->augmentation)) {
        struct augment_move move =
            augment_draw(&options->augmentation, options->seed, loader->epoch, sample);
        augment_image(&move, from, options->values, to);
        return;
    }
    for (size_t p = 0; p < DATASET_PIXELS; p++)
        to[p] = options->values[from[p]];
}

static void make(const struct loader *loader, struct loader_slot *slot, bool tells)
{
    if (tells)
        range_begin("load", &(struct range_about){.kind = RANGE_DATA});
    for (size_t i = 0; i < slot->batch.count; i++) {
        make_image(loader, slot->samples[i], slot->images + i * DATASET_PIXELS);
        slot->labels[i] = loader->options.split.labels[slot->samples[i]];
    }
    if (tells)
        range_end();
}

/* With the mutex held: assigns the sampler's next batch to the next slot. NULL: there is none. */
static struct loader_slot *begin(struct loader *loader)
{
    struct sampler *sampler = loader->options.sampler;
    struct loader_slot *slot = &loader->slots[loader->begun % loader->slot_count];
    slot->samples = sampler_next(sampler, &slot->batch.count);
    slot->batch.global_count = sampler->global_count;
    slot->ready = false;
    if (!slot->samples) {
        loader->over = true;
        return NULL;
    }
    CHECK(slot->batch.count <= loader->options.batch);
    loader->begun++;
    return slot;
}

/* -------- the threads ------------------------------------------------------------------------- */

static bool may_make(const struct loader *loader)
{
    return loader->running && !loader->over &&
           loader->begun < loader->asked + loader->options.depth;
}

static void *run(void *argument)
{
    struct loader *loader = argument;
    bool tells = atomic_fetch_add(&loader->numbered, 1) < TOLD;
    pthread_mutex_lock(&loader->mutex);
    while (!loader->ends) {
        if (!may_make(loader)) {
            pthread_cond_wait(&loader->may_make, &loader->mutex);
            continue;
        }
        struct loader_slot *slot = begin(loader);
        if (slot) {
            loader->making++;
            pthread_mutex_unlock(&loader->mutex);
            make(loader, slot, tells);
            pthread_mutex_lock(&loader->mutex);
            slot->ready = true;
            loader->making--;
        }
        pthread_cond_signal(&loader->made);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* -------- the caller -------------------------------------------------------------------------- */

/* Waits for a batch that a thread makes. */
static struct loader_slot *wait_for(struct loader *loader, uint64_t number)
{
    struct loader_slot *slot = &loader->slots[number % loader->slot_count];
    pthread_cond_broadcast(&loader->may_make);
    while (number >= loader->begun ? !loader->over : !slot->ready)
        pthread_cond_wait(&loader->made, &loader->mutex);
    return number < loader->begun ? slot : NULL;
}

const struct loader_batch *loader_next(struct loader *loader)
{
    CHECK(loader->running);
    pthread_mutex_lock(&loader->mutex);
    uint64_t number = loader->asked++;
    struct loader_slot *slot = loader->started > 0 ? wait_for(loader, number) : begin(loader);
    pthread_mutex_unlock(&loader->mutex);
    if (slot && loader->started == 0)
        make(loader, slot, true);
    return slot ? &slot->batch : NULL;
}

void loader_pause(struct loader *loader)
{
    pthread_mutex_lock(&loader->mutex);
    loader->running = false;
    while (loader->making > 0)
        pthread_cond_wait(&loader->made, &loader->mutex);
    pthread_mutex_unlock(&loader->mutex);
}

void loader_start(struct loader *loader, uint64_t epoch)
{
    pthread_mutex_lock(&loader->mutex);
    CHECK(!loader->running);
    loader->epoch = epoch;
    loader->begun = loader->asked = 0;
    loader->over = false;
    loader->running = true;
    pthread_cond_broadcast(&loader->may_make);
    pthread_mutex_unlock(&loader->mutex);
}

/* -------- creating and freeing ---------------------------------------------------------------- */

/* Touches the memory, so that a lack of it shows before training begins. */
static enum status allocate(struct loader *loader)
{
    const struct loader_options *options = &loader->options;
    size_t image_bytes = DATASET_PIXELS * sizeof(float); /* a multiple of the alignment */
    _Static_assert(DATASET_PIXELS * sizeof(float) % ALIGNMENT == 0, "slots' images are aligned");
    loader->slots = calloc(loader->slot_count, sizeof *loader->slots);
    loader->threads = calloc((size_t)options->threads + 1, sizeof *loader->threads);
    bool whole = loader->slots && loader->threads;
    for (size_t i = 0; whole && i < loader->slot_count; i++) {
        struct loader_slot *slot = &loader->slots[i];
        slot->images = aligned_alloc(ALIGNMENT, options->batch * image_bytes);
        slot->labels = malloc(options->batch);
        whole = slot->images && slot->labels;
        if (whole)
            memset(slot->images, 0, options->batch * image_bytes);
        slot->batch.images = slot->images;
        slot->batch.labels = slot->labels;
    }
    if (whole)
        return STATUS_OK;
    return FAIL(STATUS_NO_MEMORY,
                "no memory to load %zu batches of %zu images ahead; use a smaller "
                "--prefetch-batches or --batch",
                loader->slot_count, options->batch);
}

enum status loader_new(struct loader **out, const struct loader_options *options)
{
    enum status status = STATUS_OK;
    struct loader *loader = *out = calloc(1, sizeof *loader);
    CHECK(options->threads <= LOADER_THREADS_MOST && options->depth <= LOADER_DEPTH_MOST);
    CHECK(options->threads == 0 || options->depth > 0);
    if (!loader)
        return FAIL(STATUS_NO_MEMORY, "no memory for a loader of batches");
    loader->options = *options;
    loader->slot_count = options->threads > 0 ? options->depth + 1 : 1;
    pthread_mutex_init(&loader->mutex, NULL);
    pthread_cond_init(&loader->may_make, NULL);
    pthread_cond_init(&loader->made, NULL);
    TRY(allocate(loader));
    for (int i = 0; i < options->threads; i++) {
        char name[THREAD_NAME_MAX + 1];
        snprintf(name, sizeof name, "psring-loader%d", i % 100);
        TRY(thread_start(&loader->threads[i], name, run, loader));
        loader->started++;
    }
out:
    if (status != STATUS_OK)
        loader_free(out);
    return status;
}

void loader_free(struct loader **out)
{
    struct loader *loader = *out;
    if (!loader)
        return;
    *out = NULL;
    pthread_mutex_lock(&loader->mutex);
    loader->ends = true;
    pthread_cond_broadcast(&loader->may_make);
    pthread_mutex_unlock(&loader->mutex);
    for (int i = 0; i < loader->started; i++)
        thread_join(&loader->threads[i]);
    for (size_t i = 0; loader->slots && i < loader->slot_count; i++) {
        free(loader->slots[i].images);
        free(loader->slots[i].labels);
    }
    pthread_cond_destroy(&loader->may_make);
    pthread_cond_destroy(&loader->made);
    pthread_mutex_destroy(&loader->mutex);
    free(loader->slots);
    free(loader->threads);
    free(loader);
}
