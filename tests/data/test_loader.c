/* Batches made by threads: the same batches in the same order, for any number of threads and
 * batches ahead. */
#include "common/data/loader.h"

#include <errno.h>
#include <pthread.h>

#include "tests/lib/capture.h"

enum { SAMPLES = 203, BATCH = 8, STEPS = SAMPLES / BATCH, VALUES = 256 };

static uint8_t images[SAMPLES * DATASET_PIXELS], labels[SAMPLES];
static float values[VALUES];

static int refused = -1; /* creating this thread and later ones fails; -1: none */
int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int __wrap_pthread_create(pthread_t *handle, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    if (refused >= 0 && refused-- == 0)
        return EAGAIN;
    return __real_pthread_create(handle, attributes, run, argument);
}

static bool no_memory; /* from now on, for batches */
void *__real_aligned_alloc(size_t, size_t);
void *__wrap_aligned_alloc(size_t, size_t);

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return no_memory ? NULL : __real_aligned_alloc(alignment, bytes);
}

static struct sampler open_sampler(bool joins)
{
    struct sampler sampler;
    for (size_t i = 0; i < sizeof images; i++)
        images[i] = (uint8_t)(i / DATASET_PIXELS * 13 + i % DATASET_PIXELS * 5);
    for (size_t i = 0; i < SAMPLES; i++)
        labels[i] = (uint8_t)(i % DATASET_CLASSES);
    for (int x = 0; x < VALUES; x++)
        values[x] = (float)x - 30;
    cr_assert_eq(sampler_init(&sampler, &(struct sampler_options){.samples = SAMPLES,
                                                                  .batch = BATCH,
                                                                  .world = 1,
                                                                  .seed = 5,
                                                                  .joins = joins}),
                 STATUS_OK);
    return sampler;
}

static struct loader_options options_of(struct sampler *sampler, int threads, size_t depth,
                                        bool moves)
{
    return (struct loader_options){.threads = threads,
                                   .depth = depth,
                                   .sampler = sampler,
                                   .split = {images, labels, SAMPLES},
                                   .values = values,
                                   .batch = BATCH,
                                   .augmentation = {moves ? 2 : 0, moves ? 10 : 0},
                                   .seed = 5};
}

static void start(struct loader *loader, struct sampler *sampler, uint64_t epoch, size_t step)
{
    loader_pause(loader);
    sampler_start_epoch(sampler, epoch, step);
    loader_start(loader, epoch);
}

/* The batch must be that of `step` in `epoch`, with each image moved as drawn for it. */
static void expect(const struct loader_batch *batch, const struct augmentation *augmentation,
                   uint64_t epoch, size_t step)
{
    static uint32_t order[SAMPLES];
    static uint64_t drawn = UINT64_MAX;
    float image[DATASET_PIXELS];
    size_t left = SAMPLES - step * BATCH, count = left < BATCH ? left : BATCH;
    if (drawn != epoch)
        sampler_permute(5, epoch, order, SAMPLES);
    drawn = epoch;
    cr_assert(batch && batch->count == count && batch->global_count == count);
    for (size_t i = 0; i < count; i++) {
        uint32_t sample = order[step * BATCH + i];
        struct augment_move move = augment_draw(augmentation, 5, epoch, sample);
        augment_image(&move, images + sample * DATASET_PIXELS, values, image);
        cr_assert_eq(batch->labels[i], labels[sample]);
        cr_assert_arr_eq(batch->images + i * DATASET_PIXELS, image, sizeof image,
                         "epoch %llu, step %zu, image %zu", (unsigned long long)epoch, step, i);
    }
}

Test(loader, gives_the_same_batches_however_many_make_them)
{
    static const struct {
        int threads;
        size_t depth;
    } by[] = {{0, 0}, {1, 1}, {1, 4}, {3, 1}, {3, 4}, {5, 40}};
    for (size_t b = 0; b < 2 * sizeof by / sizeof *by; b++) {
        struct sampler sampler = open_sampler(true);
        struct loader_options options =
            options_of(&sampler, by[b / 2].threads, by[b / 2].depth, b % 2);
        struct loader *loader;
        cr_assert_eq(loader_new(&loader, &options), STATUS_OK);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            size_t step = epoch == 1 ? 7 : 0; /* as after a resume */
            start(loader, &sampler, epoch, step);
            for (; step <= STEPS; step++) /* the last batch has the 3 remaining samples */
                expect(loader_next(loader), &options.augmentation, epoch, step);
            cr_assert(!loader_next(loader) && !loader_next(loader));
        }
        loader_free(&loader);
        cr_assert(!loader);
        sampler_fini(&sampler);
    }
}

/* Batches made ahead for a place that the run leaves must not appear at the next place. */
Test(loader, leaves_an_epoch_anywhere)
{
    struct sampler sampler = open_sampler(false);
    struct loader_options options = options_of(&sampler, 3, 4, true);
    struct loader *loader;
    cr_assert_eq(loader_new(&loader, &options), STATUS_OK);
    for (size_t left = 0; left < 40; left++) {
        start(loader, &sampler, left, left % 5);
        for (size_t step = left % 5; step < left % 5 + left % 7; step++)
            expect(loader_next(loader), &options.augmentation, left, step);
        if (left % 3 == 0) /* paused for a while, as in a test of the model */
            loader_pause(loader);
    }
    loader_free(&loader); /* in the middle of batches */
    sampler_fini(&sampler);
}

Test(loader, ends_before_it_was_started)
{
    struct sampler sampler = open_sampler(false);
    struct loader_options options = options_of(&sampler, 2, 2, false);
    struct loader *loader;
    cr_assert_eq(loader_new(&loader, &options), STATUS_OK);
    loader_free(&loader);
    loader_free(&loader);
    sampler_fini(&sampler);
}

Test(loader, a_thread_that_cannot_be_started_is_an_error)
{
    struct sampler sampler = open_sampler(false);
    struct loader_options options = options_of(&sampler, 3, 2, false);
    struct loader *loader;
    refused = 2;
    assert_refused(loader_new(&loader, &options), STATUS_IO, "psring-loader2 cannot be started");
    cr_assert(!loader);
    refused = -1;
    sampler_fini(&sampler);
}

Test(loader, rooms_without_memory_are_an_error)
{
    struct sampler sampler = open_sampler(false);
    struct loader_options options = options_of(&sampler, 1, 2, false);
    struct loader *loader;
    no_memory = true;
    assert_refused(loader_new(&loader, &options), STATUS_NO_MEMORY,
                   "use a smaller --prefetch-batches");
    cr_assert(!loader);
    no_memory = false;
    sampler_fini(&sampler);
}
