/* All of the device except convolution and pooling: opening, memory, dense, relu, dropout, loss,
 * optimizers. Each is compared with the double-precision reference. All elements are compared, and
 * the sizes are not divisible by block sizes. */
#include <criterion/criterion.h>
#include <string.h>

#include "common/device/device.h"
#include "common/device/cpu/team.h"
#include "tests/lib/reference.h"

static struct device *open_cpu(int threads)
{
    struct device *device;
    struct device_options options = {.kind = DEVICE_CPU, .threads = threads};
    cr_assert_eq(device_open(&device, &options), STATUS_OK);
    return device;
}

static float *new_floats(uint64_t stream, size_t count)
{
    float *values = calloc(count ? count : 1, sizeof *values);
    cr_assert(values);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)reference_value(stream, i);
    return values;
}

static double *widened(const float *values, size_t count)
{
    double *wide = reference_new(count);
    for (size_t i = 0; i < count; i++)
        wide[i] = (double)values[i];
    return wide;
}

static void compare(const char *what, size_t count, const double *expected, const float *found,
                    double tolerance)
{
    double largest = 1e-30;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(expected[i]));
    for (size_t i = 0; i < count; i++)
        cr_assert(fabs(expected[i] - (double)found[i]) <= tolerance * largest,
                  "%s[%zu]: found %.9g, expected %.9g", what, i, (double)found[i], expected[i]);
}

/* -------- opening and memory ------------------------------------------------------------------ */

Test(device, memory)
{
    struct device *device = open_cpu(1);
    size_t count = 1003;
    void *memory, *empty, *refused;
    float *host = new_floats(1, count), *back = new_floats(2, count);
    cr_assert_eq(device_alloc(device, "a test", count * sizeof *host, &memory), STATUS_OK);
    cr_assert_eq(device_alloc(device, "a test", 0, &empty), STATUS_OK);
    cr_assert_not_null(empty);
    cr_assert_eq((uintptr_t)memory % 64, 0);
    device_upload(device, memory, host, count * sizeof *host);
    cr_assert_eq(device_download(device, back, memory, count * sizeof *host), STATUS_OK);
    cr_assert_arr_eq(back, host, count * sizeof *host);
    device->ops->fill(device, memory, 2.5f, count - 1);
    cr_assert_eq(device_download(device, back, memory, count * sizeof *back), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        cr_assert(back[i] == (i + 1 < count ? 2.5f : host[i]));
    device->ops->scale(device, memory, 0.5f, count - 2);
    cr_assert_eq(device_download(device, back, memory, count * sizeof *back), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        cr_assert(back[i] == (i + 2 < count ? 1.25f : i + 1 < count ? 2.5f : host[i]));
    cr_assert_eq(device_alloc(device, "far too much", SIZE_MAX - 10, &refused), STATUS_NO_MEMORY);
    cr_assert_null(refused);
    device_free(device, memory);
    device_free(device, empty);
    device_free(device, NULL);
    free(host);
    free(back);
    device_close(&device);
    cr_assert_null(device);
    device_close(&device);
}

static void count_item(void *context, size_t item, int thread)
{
    cr_assert(thread >= 0 && thread < 3);
    ((int *)context)[item]++;
}

Test(device, a_team_does_every_item_once)
{
    struct team *team;
    int done[1000];
    cr_assert_eq(team_new(&team, 3), STATUS_OK);
    for (int round = 0; round < 200; round++) {
        size_t count = (size_t)(round * 5);
        memset(done, 0, sizeof done);
        team_run(team, count, count_item, done);
        for (size_t i = 0; i < 1000; i++)
            cr_assert_eq(done[i], i < count);
    }
    team_free(&team);
}

/* Without CUDA in the build, or without a GPU: one line that contains a remedy. */
Test(device, cuda_is_refused_where_it_is_not)
{
    struct device *device;
    struct device_options options = {.kind = DEVICE_CUDA};
    char text[DEVICE_REASON_BYTES];
    const char *reason = device_unavailable(DEVICE_CUDA, text);
    if (!reason)
        cr_skip_test("this machine has a GPU");
    cr_assert(strstr(reason, "use --device cpu") && !strchr(reason, '\n'), "%s", reason);
    cr_assert_eq(device_open(&device, &options), STATUS_UNSUPPORTED);
    cr_assert_null(device);
}

static enum status add_one(void *context)
{
    ++*(int *)context;
    return STATUS_OK;
}

/* The CPU never waits: the work of streams and events is done when the call returns. */
Test(device, streams_of_the_cpu)
{
    struct device *device = open_cpu(1);
    struct device_stream *stream;
    struct device_event *event;
    void *pinned;
    float value = 3.0f;
    int calls = 0;
    cr_assert_eq(device_stream_new(device, &stream), STATUS_OK);
    cr_assert_eq(device_event_new(device, &event), STATUS_OK);
    cr_assert_eq(device_host_alloc(device, "a test", sizeof value, &pinned), STATUS_OK);
    cr_assert(device_memory_is_host(device));
    cr_assert_eq(device_steps_ahead(device), 0);
    device_event_record(device, event, NULL);
    device_stream_wait(device, stream, event);
    device_upload_async(device, stream, pinned, &value, sizeof value);
    cr_assert_eq(*(float *)pinned, 3.0f);
    value = 0.0f;
    device_download_async(device, stream, &value, pinned, sizeof value);
    cr_assert_eq(value, 3.0f);
    cr_assert_eq(device_event_wait(device, event), STATUS_OK);
    for (int i = 1; i <= 3; i++) {
        cr_assert_eq(device_repeat(device, add_one, &calls), STATUS_OK);
        cr_assert_eq(calls, i);
    }
    device_host_free(device, pinned);
    device_event_free(device, &event);
    device_stream_free(device, &stream);
    cr_assert(!event && !stream);
    device_close(&device);
}

Test(device, gathers_a_batch)
{
    enum { SAMPLES = 7, PIXELS = 5, BATCH = 4 };
    uint8_t images[SAMPLES * PIXELS], labels[SAMPLES], found_labels[BATCH];
    float values[256], found[BATCH * PIXELS];
    const uint32_t samples[BATCH] = {6, 0, 3, 3};
    struct gather gather = {images, labels, values, PIXELS};
    struct device *device = open_cpu(2);
    for (int i = 0; i < SAMPLES * PIXELS; i++)
        images[i] = (uint8_t)(i * 37);
    for (int i = 0; i < SAMPLES; i++)
        labels[i] = (uint8_t)(9 - i);
    for (int i = 0; i < 256; i++)
        values[i] = (float)i / 3.0f;
    device->ops->gather(device, &gather, BATCH, samples, found, found_labels);
    for (size_t n = 0; n < BATCH; n++) {
        cr_assert_eq(found_labels[n], labels[samples[n]]);
        for (size_t p = 0; p < PIXELS; p++)
            cr_assert_eq(found[n * PIXELS + p], values[images[samples[n] * PIXELS + p]]);
    }
    device_close(&device);
}

/* -------- dense ------------------------------------------------------------------------------- */

static double dense_objective(const struct dense *d, size_t batch, const double *x, const double *w,
                              const double *bias, const double *r, double *y)
{
    double sum = 0;
    reference_dense(d, batch, x, w, bias, y);
    for (size_t i = 0; i < batch * d->outputs; i++)
        sum += r[i] * y[i];
    return sum;
}

static void check_dense(const struct dense *d, size_t batch, int threads, bool in_parts)
{
    const double h = 1e-6;
    struct device *device = open_cpu(threads);
    size_t xs = batch * d->inputs, ws = d->inputs * d->outputs, ys = batch * d->outputs;
    float *x = new_floats(1, xs), *w = new_floats(2, ws), *bias = new_floats(3, d->outputs);
    float *dy = new_floats(4, ys), *y = new_floats(5, ys);
    float *dx = new_floats(6, xs), *dw = new_floats(7, ws), *dbias = new_floats(8, d->outputs);
    double *r = widened(dy, ys), *y64 = reference_new(ys), *expected = reference_new(xs + ws);
    double *wide[] = {widened(x, xs), widened(w, ws), widened(bias, d->outputs)};
    size_t counts[] = {xs, ws, d->outputs};
    const float *found[] = {dx, dw, dbias};
    struct backward backward = {
        .x = x, .w = w, .y = y, .dy = dy, .dx = dx, .dw = dw, .dbias = dbias};
    cr_assert_eq(device->ops->dense_prepare(device, d, batch), STATUS_OK);
    size_t step = in_parts ? device->ops->dense_rows(device, d) : d->inputs;
    for (size_t end = d->inputs, first; end > 0; end = first) {
        first = (end - 1) / step * step;
        device->ops->dense_forward(device, d, batch, (struct dense_rows){first, end}, x, w, bias,
                                   y);
    }
    for (size_t end = d->inputs, first; end > 0; end = first) {
        first = (end - 1) / step * step;
        device->ops->dense_backward(device, d, batch, (struct dense_rows){first, end}, &backward);
    }

    reference_dense(d, batch, wide[0], wide[1], wide[2], y64);
    compare("y", ys, y64, y, 1e-5);
    for (int part = 0; part < 3; part++) {
        for (size_t i = 0; i < counts[part]; i++) {
            double saved = wide[part][i];
            wide[part][i] = saved + h;
            double above = dense_objective(d, batch, wide[0], wide[1], wide[2], r, y64);
            wide[part][i] = saved - h;
            double below = dense_objective(d, batch, wide[0], wide[1], wide[2], r, y64);
            wide[part][i] = saved;
            expected[i] = (above - below) / (2 * h);
            cr_assert(fabs(expected[i] - (double)found[part][i]) <= 1e-5,
                      "%zu x %zu, part %d[%zu]: found %g, expected %g", d->inputs, d->outputs, part,
                      i, (double)found[part][i], expected[i]);
        }
    }
    void *all[] = {x, w, bias, dy, y, dx, dw, dbias, r, y64, expected, wide[0], wide[1], wide[2]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    device_close(&device);
}

Test(dense, forward_and_gradient)
{
    static const struct dense shapes[] = {
        {.inputs = 1, .outputs = 1, .relu = false},    {.inputs = 7, .outputs = 5, .relu = true},
        {.inputs = 33, .outputs = 10, .relu = false},  {.inputs = 64, .outputs = 17, .relu = true},
        {.inputs = 1601, .outputs = 3, .relu = false}, {.inputs = 784, .outputs = 3, .relu = true}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_dense(&shapes[i], i % 2 ? 3 : 1, i % 2 ? 2 : 1, i % 3 > 0);
}

/* -------- relu and dropout -------------------------------------------------------------------- */

enum { ODD = 3 * 16384 + 77 }; /* several blocks and a part of one */

Test(relu, forward_and_gradient)
{
    struct device *device = open_cpu(3);
    float *x = new_floats(1, ODD), *y = new_floats(2, ODD), *dy = new_floats(3, ODD);
    x[5] = 0.0f;
    x[6] = NAN;
    device->ops->relu_forward(device, ODD, x, y);
    for (size_t i = 0; i < ODD; i++)
        cr_assert(i == 6 ? isnan(y[i]) : y[i] == fmaxf(x[i], 0.0f), "element %zu", i);
    device->ops->relu_backward(device, ODD, y, dy, x); /* x now holds dx */
    for (size_t i = 0; i < ODD; i++)
        cr_assert(x[i] == (y[i] > 0.0f ? dy[i] : 0.0f), "element %zu", i);
    device->ops->relu_backward(device, ODD, y, dy, dy);
    cr_assert_arr_eq(x, dy, ODD * sizeof *x);
    free(x);
    free(y);
    free(dy);
    device_close(&device);
}

static struct dropout dropout_of(float rate, uint64_t seed, uint32_t rank, const uint64_t *step,
                                 uint16_t layer)
{
    return (struct dropout){
        .rate = rate, .key = rng_key(seed, RNG_DROPOUT, rank), .step_at = step, .layer = layer};
}

Test(dropout, every_element_is_what_the_counter_says)
{
    for (int threads = 1; threads <= 3; threads++) {
        struct device *device = open_cpu(threads);
        uint64_t step = UINT64_C(123456789012);
        struct dropout d = dropout_of(0.3f, 11, 5, &step, 60000);
        float *x = new_floats(1, ODD), *y = new_floats(2, ODD);
        device->ops->dropout(device, &d, ODD, x, y);
        for (size_t i = 0; i < ODD; i++) {
            double expected = (double)x[i] * reference_dropout_factor(&d, i);
            cr_assert(fabs((double)y[i] - expected) <= 1e-7 * fabs(expected), "element %zu", i);
        }
        device->ops->dropout(device, &d, ODD, x, x); /* in place */
        cr_assert_arr_eq(x, y, ODD * sizeof *x);
        free(x);
        free(y);
        device_close(&device);
    }
}

/* The number of kept elements in each stream, and the number of agreements of two streams. Both are
 * within five standard deviations. */
Test(dropout, rate_and_independence)
{
    enum { COUNT = 1 << 20 };
    struct device *device = open_cpu(2);
    float *ones = malloc(COUNT * sizeof *ones), *base = malloc(COUNT * sizeof *base);
    float *other = malloc(COUNT * sizeof *other);
    cr_assert(ones && base && other);
    device->ops->fill(device, ones, 1.0f, COUNT);
    const float rate = 0.25f;
    const uint64_t steps[] = {0, 1};
    const struct dropout streams[] = {
        dropout_of(rate, 1, 0, &steps[0], 0), dropout_of(rate, 2, 0, &steps[0], 0),
        dropout_of(rate, 1, 1, &steps[0], 0), dropout_of(rate, 1, 0, &steps[1], 0),
        dropout_of(rate, 1, 0, &steps[0], 1)};
    device->ops->dropout(device, &streams[0], COUNT, ones, base);
    for (size_t s = 0; s < sizeof streams / sizeof *streams; s++) {
        double kept = 0, both = 0, p = 1.0 - (double)rate;
        device->ops->dropout(device, &streams[s], COUNT, ones, other);
        for (size_t i = 0; i < COUNT; i++) {
            cr_assert(other[i] == 0.0f || other[i] == 1.0f / (1.0f - rate));
            kept += other[i] != 0.0f;
            both += other[i] != 0.0f && base[i] != 0.0f;
        }
        cr_assert(fabs(kept - COUNT * p) < 5 * sqrt(COUNT * p * (1 - p)), "stream %zu: %g", s,
                  kept);
        if (s > 0)
            cr_assert(fabs(both - COUNT * p * p) < 5 * sqrt(COUNT * p * p * (1 - p * p)),
                      "stream %zu agrees with the first in %g", s, both);
    }
    free(ones);
    free(base);
    free(other);
    device_close(&device);
}

/* -------- loss -------------------------------------------------------------------------------- */

Test(loss, value_and_gradient)
{
    enum { BATCH = 13, CLASSES = 10 };
    const double h = 1e-5;
    struct device *device = open_cpu(1);
    float *logits = new_floats(1, BATCH * CLASSES), dlogits[BATCH * CLASSES];
    uint8_t labels[BATCH];
    int64_t correct = 0;
    for (size_t n = 0; n < BATCH; n++) {
        size_t best = 0;
        for (size_t j = 0; j < CLASSES; j++) {
            logits[n * CLASSES + j] *= n == 3 ? 500.0f : 4.0f; /* exp() alone would overflow */
            if (logits[n * CLASSES + j] > logits[n * CLASSES + best])
                best = j;
        }
        labels[n] = (uint8_t)(n % 3 == 0 ? best : (n * 7) % CLASSES);
        correct += labels[n] == best;
    }
    double *wide = widened(logits, BATCH * CLASSES);
    struct loss_sum sum = {.loss = 99, .correct = 99};
    const double divisor = BATCH + 0.5;
    device->ops->softmax_cross_entropy(device, BATCH, CLASSES, divisor, logits, labels, dlogits,
                                       &sum);
    cr_assert_eq(sum.correct, correct);
    cr_assert(fabs(sum.loss - reference_loss(BATCH, CLASSES, wide, labels)) < 1e-9);
    for (size_t i = 0; i < BATCH * CLASSES; i++) {
        double saved = wide[i];
        wide[i] = saved + h;
        double above = reference_loss(BATCH, CLASSES, wide, labels);
        wide[i] = saved - h;
        double below = reference_loss(BATCH, CLASSES, wide, labels);
        wide[i] = saved;
        double expected = (above - below) / (2 * h) / divisor;
        cr_assert(fabs(expected - (double)dlogits[i]) < 1e-7, "element %zu: found %g, expected %g",
                  i, (double)dlogits[i], expected);
    }
    struct loss_sum again;
    device->ops->softmax_cross_entropy(device, BATCH, CLASSES, divisor, logits, labels, NULL,
                                       &again);
    cr_assert(again.loss == sum.loss && again.correct == sum.correct);
    free(logits);
    free(wide);
    device_close(&device);
}
