#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/data/loader.h"
#include "common/data/sampler.h"
#include "tests/capture.h"

enum { SAMPLES = 101, BATCH = 4 };

static uint8_t split_images[SAMPLES * DATASET_PIXELS];
static uint8_t split_labels[SAMPLES];

/* Pixels depend on image and place; the first two give the image away. */
static struct dataset_split make_split(void)
{
    static bool made = false; /* not twice: a loader's thread may be reading by then */
    for (size_t i = 0; i < SAMPLES && !made; i++) {
        for (size_t p = 0; p < DATASET_PIXELS; p++)
            split_images[i * DATASET_PIXELS + p] = (uint8_t)(i * 13 + p * 5);
        split_images[i * DATASET_PIXELS] = (uint8_t)i;
        split_labels[i] = (uint8_t)(i % DATASET_CLASSES);
    }
    made = true;
    return (struct dataset_split){split_images, split_labels, SAMPLES};
}

static struct loader_options shuffled(size_t world, size_t rank, size_t batch)
{
    return (struct loader_options){.order = LOADER_SHUFFLED,
                                   .batch = batch,
                                   .world = world,
                                   .rank = rank,
                                   .seed = 42,
                                   .mean = 0.25f,
                                   .std = 0.5f,
                                   .depth = 3};
}

static struct loader *open_loader(const struct loader_options *options)
{
    struct dataset_split split = make_split();
    struct loader *loader;
    cr_assert(loader_new(&loader, &split, options) == STATUS_OK);
    return loader;
}

/* Image i of the batch must be `sample`, every pixel normalised. */
static void expect_sample(const struct batch *batch, size_t i, size_t sample)
{
    const float *image = batch->images + i * DATASET_PIXELS;
    cr_assert(batch->labels[i] == split_labels[sample]);
    for (size_t p = 0; p < DATASET_PIXELS; p++) {
        float x = split_images[sample * DATASET_PIXELS + p];
        cr_assert(image[p] == (x / 255.0f - 0.25f) / 0.5f);
    }
}

/* For devices that hold the data set: the same samples, by number alone. */
Test(loader, samples_only_names_the_same_samples)
{
    static const enum loader_order orders[] = {LOADER_SHUFFLED, LOADER_SEQUENTIAL};
    for (int o = 0; o < 2; o++) {
        struct loader_options options = shuffled(2, 1, BATCH);
        options.order = orders[o];
        struct loader *whole = open_loader(&options);
        options.samples_only = true;
        struct loader *names = open_loader(&options);
        struct batch batch, named;
        loader_start_epoch_at(whole, 1, 3);
        loader_start_epoch_at(names, 1, 3);
        while (loader_next(whole, &batch)) {
            cr_assert(loader_next(names, &named));
            cr_assert(!named.images && !named.labels && named.count == batch.count);
            for (size_t i = 0; i < batch.count; i++) {
                cr_assert_eq(named.samples[i], batch.samples[i]);
                expect_sample(&batch, i, named.samples[i]);
            }
        }
        cr_assert(!loader_next(names, &named));
        loader_free(&whole);
        loader_free(&names);
    }
}

Test(loader, shuffled_batches_are_those_of_the_sampler)
{
    static const size_t worlds[] = {1, 2, 3, 4, 7};
    uint32_t order[SAMPLES];
    struct batch batch;
    for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
        for (size_t rank = 0; rank < worlds[w]; rank++) {
            struct loader_options options = shuffled(worlds[w], rank, BATCH);
            struct loader *loader = open_loader(&options);
            for (uint64_t epoch = 0; epoch < 3; epoch++) {
                size_t steps = 0;
                sampler_permute(42, epoch, order, SAMPLES);
                loader_start_epoch(loader, epoch);
                while (loader_next(loader, &batch)) {
                    cr_assert(batch.count == BATCH);
                    for (size_t i = 0; i < BATCH; i++)
                        expect_sample(&batch, i, order[(steps * worlds[w] + rank) * BATCH + i]);
                    steps++;
                }
                cr_assert(steps == SAMPLES / (worlds[w] * BATCH) && steps == loader_steps(loader));
                cr_assert(!loader_next(loader, &batch));
            }
            loader_free(&loader);
        }
    }
}

/* One process that plays four workers takes batches of 4 B: rank r's samples are its r-th slice. */
Test(loader, one_process_sees_what_four_workers_see)
{
    enum { WORLD = 4 };
    struct loader_options all_options = shuffled(1, 0, WORLD * BATCH);
    struct loader *all = open_loader(&all_options), *workers[WORLD];
    struct batch whole, slice;
    for (size_t rank = 0; rank < WORLD; rank++) {
        struct loader_options options = shuffled(WORLD, rank, BATCH);
        workers[rank] = open_loader(&options);
        loader_start_epoch(workers[rank], 5);
    }
    loader_start_epoch(all, 5);
    cr_assert(loader_steps(all) == loader_steps(workers[0]));
    while (loader_next(all, &whole)) {
        for (size_t rank = 0; rank < WORLD; rank++) {
            cr_assert(loader_next(workers[rank], &slice));
            cr_assert(memcmp(slice.images, whole.images + rank * BATCH * DATASET_PIXELS,
                             sizeof(float) * BATCH * DATASET_PIXELS) == 0);
            cr_assert(memcmp(slice.labels, whole.labels + rank * BATCH, BATCH) == 0);
        }
    }
    for (size_t rank = 0; rank < WORLD; rank++)
        loader_free(&workers[rank]);
    loader_free(&all);
}

Test(loader, sequential_batches_cover_the_split_once)
{
    for (size_t world = 1; world <= 4; world++) {
        size_t next = 0;
        for (size_t rank = 0; rank < world; rank++) {
            struct loader_options options = shuffled(world, rank, 16);
            options.order = LOADER_SEQUENTIAL;
            struct loader *loader = open_loader(&options);
            struct batch batch;
            size_t steps = 0;
            loader_start_epoch(loader, 0);
            while (loader_next(loader, &batch)) {
                cr_assert(batch.count >= 1 && batch.count <= 16);
                cr_assert(batch.count == 16 || steps + 1 == loader_steps(loader));
                for (size_t i = 0; i < batch.count; i++)
                    expect_sample(&batch, i, next++);
                steps++;
            }
            cr_assert(steps == loader_steps(loader));
            loader_free(&loader);
        }
        cr_assert(next == SAMPLES);
    }
}

Test(loader, an_empty_share_has_no_batches)
{
    struct dataset_split split = make_split();
    struct loader_options options = shuffled(3, 2, 4);
    struct loader *loader;
    struct batch batch;
    split.count = 2;
    options.order = LOADER_SEQUENTIAL;
    cr_assert(loader_new(&loader, &split, &options) == STATUS_OK);
    cr_assert(loader_steps(loader) == 0);
    loader_start_epoch(loader, 0);
    cr_assert(!loader_next(loader, &batch));
    loader_free(&loader);
}

/* A batch stays as it was while it is held, however far ahead the thread is. */
Test(loader, a_held_batch_is_not_overwritten)
{
    struct loader_options options = shuffled(1, 0, BATCH);
    uint32_t order[SAMPLES];
    struct batch batch;
    options.depth = 2;
    struct loader *loader = open_loader(&options);
    sampler_permute(42, 1, order, SAMPLES);
    loader_start_epoch(loader, 1);
    for (size_t step = 0; loader_next(loader, &batch); step++) {
        if (step < 5) /* time for the thread to do what it must not */
            clock_sleep_until_ns(clock_now_ns() + 5 * NS_PER_MS);
        for (size_t i = 0; i < BATCH; i++)
            expect_sample(&batch, i, order[step * BATCH + i]);
    }
    loader_free(&loader);
}

Test(loader, an_epoch_may_begin_anywhere_and_at_any_time)
{
    struct loader_options options = shuffled(2, 1, BATCH);
    struct loader *loader = open_loader(&options);
    uint32_t order[SAMPLES];
    struct batch batch;
    cr_assert(!loader_next(loader, &batch)); /* none was started */
    for (uint64_t epoch = 0; epoch < 200; epoch++) {
        size_t first = epoch % (loader_steps(loader) + 1), step = first;
        loader_start_epoch(loader, epoch + 1000); /* cancelled at once */
        loader_start_epoch_at(loader, epoch, first);
        sampler_permute(42, epoch, order, SAMPLES);
        for (size_t k = 0; k < epoch % 5 && loader_next(loader, &batch); k++, step++) {
            for (size_t i = 0; i < BATCH; i++)
                expect_sample(&batch, i, order[(step * 2 + 1) * BATCH + i]);
        }
    }
    loader_start_epoch_at(loader, 0, loader_steps(loader));
    cr_assert(!loader_next(loader, &batch));
    loader_free(&loader);
}

Test(loader, ends_cleanly_at_any_moment)
{
    struct loader_options options = shuffled(1, 0, BATCH);
    struct batch batch;
    for (size_t k = 0; k < 60; k++) {
        struct loader *loader = open_loader(&options);
        if (k > 0)
            loader_start_epoch(loader, k);
        for (size_t i = 1; i < k % 30; i++)
            loader_next(loader, &batch);
        loader_free(&loader);
        cr_assert(loader == NULL);
        loader_free(&loader); /* nothing to do */
    }
}

Test(loader, refuses_a_batch_larger_than_the_epoch)
{
    struct dataset_split split = make_split();
    struct loader_options options = shuffled(2, 0, 51);
    struct loader *loader;
    assert_refused(loader_new(&loader, &split, &options), STATUS_USAGE, "lower --batch");
    cr_assert(loader == NULL);
}
