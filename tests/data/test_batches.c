
#include "common/data/batches.h"
#include "tests/lib/capture.h"

enum { SAMPLES = 101, TESTS = 23, BATCH = 4, WORLD = 4 };

static uint8_t images[SAMPLES * DATASET_PIXELS], labels[SAMPLES];

/* Pixels depend on the image and the place. The first pixel identifies the image. */
static struct dataset make_dataset(void)
{
    for (size_t i = 0; i < SAMPLES; i++) {
        for (size_t p = 0; p < DATASET_PIXELS; p++)
            images[i * DATASET_PIXELS + p] = (uint8_t)(i * 13 + p * 5);
        images[i * DATASET_PIXELS] = (uint8_t)i;
        labels[i] = (uint8_t)(i % DATASET_CLASSES);
    }
    return (struct dataset){.train = {images, labels, SAMPLES}, .test = {images, labels, TESTS}};
}

static struct batches open_batches(struct device *device, size_t batch, size_t world, size_t rank)
{
    struct dataset dataset = make_dataset();
    struct batches batches;
    cr_assert_eq(batches_open(&batches, device, &dataset,
                              &(struct batches_options){.train_batch = batch,
                                                        .train_world = world,
                                                        .train_rank = rank,
                                                        .test_batch = 5,
                                                        .test_world = WORLD,
                                                        .test_rank = rank,
                                                        .gather_max = batch > 5 ? batch : 5,
                                                        .seed = 42}),
                 STATUS_OK);
    return batches;
}

static struct device *open_device(void)
{
    struct device *device;
    cr_assert_eq(device_open(&device, &(struct device_options){.kind = DEVICE_CPU, .threads = 2}),
                 STATUS_OK);
    return device;
}

/* Image i of the batch must be `sample`, with every pixel normalised. */
static void expect_sample(const struct batches *batches, size_t i, size_t sample)
{
    const float *image = batches->images + i * DATASET_PIXELS;
    cr_assert_eq(batches->labels[i], labels[sample]);
    for (size_t p = 0; p < DATASET_PIXELS; p++) {
        float x = images[sample * DATASET_PIXELS + p];
        cr_assert(image[p] == (x / 255.0f - 0.1307f) / 0.3081f, "image %zu, pixel %zu", i, p);
    }
}

Test(batches, are_the_samples_of_the_permutation)
{
    struct device *device = open_device();
    struct batches batches = open_batches(device, BATCH, WORLD, 2);
    uint32_t order[SAMPLES];
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        size_t step = epoch, count;
        sampler_permute(42, epoch, order, SAMPLES);
        batches_start_epoch(&batches, BATCHES_TRAIN, epoch, step);
        for (; (count = batches_next(&batches, BATCHES_TRAIN)) > 0; step++) {
            cr_assert_eq(count, BATCH);
            batches_gather(&batches, BATCHES_TRAIN, 0, count);
            for (size_t i = 0; i < count; i++)
                expect_sample(&batches, i, order[(step * WORLD + 2) * BATCH + i]);
        }
        cr_assert_eq(step, batches_steps(&batches, BATCHES_TRAIN));
    }
    batches_close(&batches);
    device_close(&device);
}

/* A process that plays four workers gathers batches of 4 B: slice r is the batch of rank r. */
Test(batches, one_process_sees_what_four_workers_see)
{
    struct device *device = open_device();
    struct batches all = open_batches(device, WORLD * BATCH, 1, 0), workers[WORLD];
    for (size_t rank = 0; rank < WORLD; rank++) {
        workers[rank] = open_batches(device, BATCH, WORLD, rank);
        batches_start_epoch(&workers[rank], BATCHES_TRAIN, 5, 0);
    }
    cr_assert_eq(batches_steps(&all, BATCHES_TRAIN), batches_steps(&workers[0], BATCHES_TRAIN));
    batches_start_epoch(&all, BATCHES_TRAIN, 5, 0);
    while (batches_next(&all, BATCHES_TRAIN) > 0) {
        for (size_t rank = 0; rank < WORLD; rank++) {
            cr_assert_eq(batches_next(&workers[rank], BATCHES_TRAIN), BATCH);
            batches_gather(&workers[rank], BATCHES_TRAIN, 0, BATCH);
            batches_gather(&all, BATCHES_TRAIN, rank * BATCH, BATCH);
            cr_assert_arr_eq(workers[rank].images, all.images,
                             sizeof(float) * BATCH * DATASET_PIXELS);
            cr_assert_arr_eq(workers[rank].labels, all.labels, BATCH);
        }
    }
    for (size_t rank = 0; rank < WORLD; rank++)
        batches_close(&workers[rank]);
    batches_close(&all);
    device_close(&device);
}

Test(batches, tests_cover_all_images_once)
{
    struct device *device = open_device();
    size_t next = 0;
    for (size_t rank = 0; rank < WORLD; rank++) {
        struct batches batches = open_batches(device, BATCH, WORLD, rank);
        size_t count;
        batches_start_epoch(&batches, BATCHES_TEST, 0, 0);
        while ((count = batches_next(&batches, BATCHES_TEST)) > 0) {
            batches_gather(&batches, BATCHES_TEST, 0, count);
            for (size_t i = 0; i < count; i++)
                expect_sample(&batches, i, next++);
        }
        batches_close(&batches);
    }
    cr_assert_eq(next, TESTS);
    device_close(&device);
}

Test(batches, refuses_a_batch_larger_than_the_epoch)
{
    struct device *device = open_device();
    struct dataset dataset = make_dataset();
    struct batches batches;
    struct batches_options options = {
        .train_batch = 51, .train_world = 2, .test_batch = 5, .test_world = 2, .gather_max = 51};
    assert_refused(batches_open(&batches, device, &dataset, &options), STATUS_USAGE,
                   "lower --batch");
    batches_close(&batches);
    device_close(&device);
}
