/*
 * Every operation of the CUDA device, compared with the CPU's and with plain double precision. The
 * relative error (by the largest element) must be below 1e-5; operations without sums must give the
 * same bits. Ends with 77 if there is no GPU.
 */
#include <stdio.h>
#include <string.h>

#include "common/device/device.h"
#include "common/device/inputs.h"
#include "tests/lib/cuda_lib.h"
#include "tests/lib/reference.h"

static struct device *cpu, *cuda;
static void expect_close(const char *what, size_t count, const double *expected, const float *found,
                         double tolerance)
{
    double largest = 1e-30, worst = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(expected[i]));
    for (size_t i = 0; i < count; i++) {
        double error = fabs(expected[i] - (double)found[i]) / largest;
        worst = error <= worst ? worst : isnan(error) ? (double)INFINITY : error;
    }
    printf("%-44s error %.1e\n", what, worst);
    expect(worst <= tolerance, what);
}

/* -------- memory ------------------------------------------------------------------------------ */

/* The same numbers in host memory, in double precision and on the GPU. */
struct array {
    size_t count;
    float *host, *dev;
    double *wide;
};

static void *on_device(size_t bytes)
{
    void *memory;
    if (device_alloc(cuda, "a test", bytes, &memory) != STATUS_OK)
        abort();
    return memory;
}

static struct array array_new(uint64_t stream, size_t count, double scale)
{
    struct array a = {count, calloc(count, sizeof(float)), on_device(count * sizeof(float)),
                      reference_new(count)};
    for (size_t i = 0; i < count; i++) {
        a.host[i] = (float)(scale * reference_value(stream, i));
        a.wide[i] = (double)a.host[i];
    }
    device_upload(cuda, a.dev, a.host, count * sizeof(float));
    return a;
}

static void array_free(struct array *a)
{
    free(a->host);
    free(a->wide);
    device_free(cuda, a->dev);
}

/* Downloads the GPU's numbers to `host`. */
static void fetch(struct array *a)
{
    expect(device_download(cuda, a->host, a->dev, a->count * sizeof(float)) == STATUS_OK,
           "download");
}

/* Compares the CPU's result in `host` with the GPU's, bit by bit. */
static void expect_same(const char *what, const struct array *a)
{
    float *found = malloc(a->count * sizeof *found);
    expect(device_download(cuda, found, a->dev, a->count * sizeof *found) == STATUS_OK, what);
    expect(memcmp(found, a->host, a->count * sizeof *found) == 0, what);
    printf("%-44s same bits\n", what);
    free(found);
}

/* -------- convolution ------------------------------------------------------------------------- */

/* dw and dbias again, as in a first layer: the gradient by the images is not needed. */
static void check_first_conv(const struct conv2d *c, size_t batch, const char *what,
                             const struct array *x, const struct array *w, const struct array *bias,
                             const struct array *y, uint8_t *index, const struct backward *backward,
                             struct array *dw, struct array *dbias)
{
    struct backward b = *backward;
    b.dx = NULL;
    cuda->ops->fill(cuda, dw->dev, NAN, dw->count);
    cuda->ops->fill(cuda, dbias->dev, NAN, dbias->count);
    cuda->ops->conv2d_forward(cuda, c, batch, x->dev, w->dev, bias->dev, y->dev, index);
    cuda->ops->conv2d_backward(cuda, c, batch, &b);
    struct array *all[] = {dw, dbias};
    for (int i = 0; i < 2; i++) {
        char name[128];
        fetch(all[i]);
        snprintf(name, sizeof name, "%s, first layer: %s", what, i ? "dbias" : "dw");
        expect_close(name, all[i]->count, all[i]->wide, all[i]->host, 1e-5);
    }
}

static void check_conv(const struct conv2d *shape, size_t batch)
{
    struct conv2d prepared = *shape, *c = &prepared;
    expect(cuda->ops->conv2d_prepare(cuda, c, batch) == STATUS_OK, "conv2d_prepare");
    size_t wh = conv2d_window_size(c, c->height), ww = conv2d_window_size(c, c->width);
    size_t windows = batch * wh * ww * c->filters;
    size_t outs = batch * conv2d_out_size(c, c->height) * conv2d_out_size(c, c->width) * c->filters;
    size_t columns = c->kernel * c->kernel * c->channels;
    struct array x = array_new(1, batch * c->height * c->width * c->channels, 1);
    struct array w = array_new(2, columns * c->filters, 1 / sqrt((double)columns));
    struct array bias = array_new(3, c->filters, 0.1), dy = array_new(4, outs, 1);
    struct array y = array_new(5, outs, 1), dx = array_new(6, x.count, 1);
    struct array dw = array_new(7, w.count, 1), dbias = array_new(8, c->filters, 1);
    double *window = reference_new(windows), *dwindow = reference_new(windows);
    size_t *from = calloc(outs, sizeof *from);
    uint8_t *index = c->pool ? on_device(outs) : NULL;
    char name[96];

    reference_window(c, batch, x.wide, w.wide, bias.wide, window);
    if (c->relu)
        reference_relu(windows, window);
    if (c->pool)
        reference_pool(batch, wh, ww, c->filters, window, y.wide, from);
    else
        memcpy(y.wide, window, windows * sizeof *window);
    for (size_t i = 0; i < outs; i++)
        dwindow[c->pool ? from[i] : i] = !c->relu || y.wide[i] > 0 ? dy.wide[i] : 0;
    memset(dx.wide, 0, dx.count * sizeof(double));
    memset(dw.wide, 0, dw.count * sizeof(double));
    memset(dbias.wide, 0, dbias.count * sizeof(double));
    reference_window_backward(c, batch, x.wide, w.wide, dwindow, dx.wide, dw.wide, dbias.wide);

    struct backward backward = {.x = x.dev,
                                .w = w.dev,
                                .y = y.dev,
                                .index = index,
                                .dy = dy.dev,
                                .dx = dx.dev,
                                .dw = dw.dev,
                                .dbias = dbias.dev};
    cuda->ops->conv2d_forward(cuda, c, batch, x.dev, w.dev, bias.dev, y.dev, index);
    cuda->ops->conv2d_backward(cuda, c, batch, &backward);
    struct array *all[] = {&y, &dx, &dw, &dbias, &x, &w, &bias, &dy};
    static const char *const parts[] = {"y", "dx", "dw", "dbias"};
    for (int i = 0; i < 4; i++) {
        fetch(all[i]);
        snprintf(name, sizeof name, "conv %zux%zux%zu k%zu p%zu f%zu%s%s batch %zu: %s", c->height,
                 c->width, c->channels, c->kernel, c->padding, c->filters, c->relu ? " relu" : "",
                 c->pool ? " pool" : "", batch, parts[i]);
        expect_close(name, all[i]->count, all[i]->wide, all[i]->host, 1e-5);
    }
    *strrchr(name, ':') = '\0';
    device_upload(cuda, dy.dev, dy.host, dy.count * sizeof(float)); /* the pass may overwrite it */
    check_first_conv(c, batch, name, &x, &w, &bias, &y, index, &backward, &dw, &dbias);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        array_free(all[i]);
    device_free(cuda, index);
    device_free(cuda, prepared.kept);
    free(window);
    free(dwindow);
    free(from);
}

static void check_convs(void)
{
    static const struct {
        struct conv2d conv;
        size_t batch;
    } shapes[] = {
        {{28, 28, 1, 32, 3, 0, true, false, NULL}, 5}, /* keras-cnn */
        {{26, 26, 32, 64, 3, 0, true, true, NULL}, 3},
        {{28, 28, 1, 6, 5, 2, true, true, NULL}, 2}, /* lenet */
        {{14, 14, 6, 16, 5, 0, true, true, NULL}, 3},
        {{7, 9, 2, 3, 3, 1, true, true, NULL}, 4},
        {{7, 9, 4, 8, 3, 1, true, true, NULL}, 5},
        {{12, 11, 4, 8, 5, 2, false, true, NULL}, 3},
        {{6, 6, 8, 6, 2, 0, false, false, NULL}, 7},
        {{6, 7, 4, 8, 3, 1, true, false, NULL}, 33},
        {{9, 7, 1, 8, 3, 1, false, true, NULL}, 41},
        {{7, 9, 1, 4, 5, 0, true, true, NULL}, 3},
        {{7, 9, 1, 5, 2, 0, true, false, NULL}, 3},
        {{28, 28, 32, 1, 5, 2, true, false, NULL}, 220}, /* several blocks of images */
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_conv(&shapes[i].conv, shapes[i].batch);
}

/* -------- dense ------------------------------------------------------------------------------- */

static void check_dense(const struct dense *d, size_t batch)
{
    struct array x = array_new(1, batch * d->inputs, 1), y = array_new(5, batch * d->outputs, 1);
    struct array w = array_new(2, d->inputs * d->outputs, 1 / sqrt((double)d->inputs));
    struct array bias = array_new(3, d->outputs, 0.1), dy = array_new(4, y.count, 1);
    struct array dx = array_new(6, x.count, 1), dw = array_new(7, w.count, 1);
    struct array dbias = array_new(8, d->outputs, 1);
    struct backward backward = {.x = x.dev,
                                .w = w.dev,
                                .y = y.dev,
                                .dy = dy.dev,
                                .dx = dx.dev,
                                .dw = dw.dev,
                                .dbias = dbias.dev};
    expect(cuda->ops->dense_prepare(cuda, d, batch) == STATUS_OK, "dense_prepare");
    cuda->ops->dense_forward(cuda, d, batch, dense_all_rows(d), x.dev, w.dev, bias.dev, y.dev);
    cuda->ops->dense_backward(cuda, d, batch, dense_all_rows(d), &backward);
    reference_dense(d, batch, x.wide, w.wide, bias.wide, y.wide);
    memset(dx.wide, 0, dx.count * sizeof(double));
    memset(dw.wide, 0, dw.count * sizeof(double));
    memset(dbias.wide, 0, dbias.count * sizeof(double));
    for (size_t n = 0; n < batch; n++)
        for (size_t j = 0; j < d->outputs; j++) {
            double g = d->relu && y.wide[n * d->outputs + j] <= 0 ? 0 : dy.wide[n * d->outputs + j];
            dbias.wide[j] += g;
            for (size_t i = 0; i < d->inputs; i++) {
                dw.wide[i * d->outputs + j] += g * x.wide[n * d->inputs + i];
                dx.wide[n * d->inputs + i] += g * w.wide[i * d->outputs + j];
            }
        }
    struct array *all[] = {&y, &dx, &dw, &dbias, &x, &w, &bias, &dy};
    static const char *const parts[] = {"y", "dx", "dw", "dbias"};
    for (int i = 0; i < 4; i++) {
        char name[96];
        fetch(all[i]);
        snprintf(name, sizeof name, "dense %zux%zu%s batch %zu: %s", d->inputs, d->outputs,
                 d->relu ? " relu" : "", batch, parts[i]);
        expect_close(name, all[i]->count, all[i]->wide, all[i]->host, 1e-5);
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        array_free(all[i]);
}

/* -------- elementwise ------------------------------------------------------------------------- */

static void check_elementwise(void)
{
    enum { COUNT = 3 * 16384 + 77 };
    struct array x = array_new(1, COUNT, 1), y = array_new(2, COUNT, 1);
    struct array gradients = array_new(3, COUNT, 1);
    uint64_t step = 77, *step_at = on_device(sizeof step);
    struct dropout dropout = {
        .rate = 0.3f, .key = rng_key(11, RNG_DROPOUT, 5), .step_at = &step, .layer = 60000};
    device_upload(cuda, step_at, &step, sizeof step);
    cpu->ops->relu_forward(cpu, COUNT, x.host, y.host);
    cuda->ops->relu_forward(cuda, COUNT, x.dev, y.dev);
    expect_same("relu", &y);
    cpu->ops->relu_backward(cpu, COUNT, y.host, gradients.host, x.host);
    cuda->ops->relu_backward(cuda, COUNT, y.dev, gradients.dev, x.dev);
    expect_same("relu, backward", &x);
    cpu->ops->dropout(cpu, &dropout, COUNT, gradients.host, x.host);
    dropout.step_at = step_at; /* in the GPU's memory */
    cuda->ops->dropout(cuda, &dropout, COUNT, gradients.dev, x.dev);
    expect_same("dropout", &x);
    cpu->ops->fill(cpu, y.host, 2.5f, COUNT - 1);
    cuda->ops->fill(cuda, y.dev, 2.5f, COUNT - 1);
    expect_same("fill", &y);
    cpu->ops->scale(cpu, x.host, 0.3f, COUNT - 1);
    cuda->ops->scale(cuda, x.dev, 0.3f, COUNT - 1);
    expect_same("scale", &x);
    device_free(cuda, step_at);
    struct array *all[] = {&x, &y, &gradients};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        array_free(all[i]);
}

/* One step of each optimizer, with weight decay, from a state of positive numbers. */
static void check_optimizers(void)
{
    enum { COUNT = 3 * 16384 + 77 };
    struct array x = array_new(1, COUNT, 1), gradients = array_new(3, COUNT, 1);
    struct array state = array_new(4, 2 * COUNT, 0.1), count = array_new(5, 3, 0);
    float lr = 0.3f, decay = 0.01f, *lr_at = on_device(sizeof lr);
    device_upload(cuda, lr_at, &lr, sizeof lr);
    cpu->ops->relu_forward(cpu, 2 * COUNT, state.host, state.host); /* means of squares */
    cuda->ops->relu_forward(cuda, 2 * COUNT, state.dev, state.dev);
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        struct update s = {
            .momentum = 0.9f, .nesterov = nesterov, .weight_decay = decay, .lr_at = &lr};
        cpu->ops->update(cpu, &s, COUNT, x.host, gradients.host, state.host);
        s.lr_at = lr_at;
        cuda->ops->update(cuda, &s, COUNT, x.dev, gradients.dev, state.dev);
        expect_same("sgd: parameters", &x);
        expect_same("sgd: velocity", &state);
    }
    cpu->ops->relu_forward(cpu, 2 * COUNT, state.host, state.host);
    cuda->ops->relu_forward(cuda, 2 * COUNT, state.dev, state.dev);
    struct update adagrad = {
        .kind = OPTIMIZER_ADAGRAD, .epsilon = 1e-7f, .weight_decay = decay, .lr_at = &lr};
    cpu->ops->update(cpu, &adagrad, COUNT, x.host, gradients.host, state.host);
    adagrad.lr_at = lr_at;
    cuda->ops->update(cuda, &adagrad, COUNT, x.dev, gradients.dev, state.dev);
    expect_same("adagrad: parameters", &x);
    expect_same("adagrad: state", &state);
    struct update adadelta = {.kind = OPTIMIZER_ADADELTA,
                              .rho = 0.95f,
                              .epsilon = 1e-7f,
                              .weight_decay = decay,
                              .lr_at = &lr,
                              .stride = COUNT};
    cpu->ops->update(cpu, &adadelta, COUNT, x.host, gradients.host, state.host);
    adadelta.lr_at = lr_at;
    cuda->ops->update(cuda, &adadelta, COUNT, x.dev, gradients.dev, state.dev);
    expect_same("adadelta: parameters", &x);
    expect_same("adadelta: state", &state);
    struct update adam = {.kind = OPTIMIZER_ADAM,
                          .beta1 = 0.9f,
                          .beta2 = 0.999f,
                          .epsilon = 1e-8f,
                          .weight_decay = decay,
                          .lr_at = &lr,
                          .step = count.host,
                          .correction = count.host + 1,
                          .stride = COUNT};
    for (int step = 0; step < 3; step++)
        cpu->ops->adam_count(cpu, &adam);
    cpu->ops->update(cpu, &adam, COUNT, x.host, gradients.host, state.host);
    adam.lr_at = lr_at;
    adam.step = count.dev;
    adam.correction = count.dev + 1;
    for (int step = 0; step < 3; step++)
        cuda->ops->adam_count(cuda, &adam);
    cuda->ops->update(cuda, &adam, COUNT, x.dev, gradients.dev, state.dev);
    expect_same("adam: steps", &count);
    expect_same("adam: parameters", &x);
    expect_same("adam: state", &state);
    device_free(cuda, lr_at);
    struct array *all[] = {&x, &gradients, &state, &count};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        array_free(all[i]);
}

/* The order of the sums in the norms differs from the CPU's. */
static void check_lars(size_t count)
{
    struct array x = array_new(1, count, 1), gradients = array_new(3, count, 0.01);
    struct array velocity = array_new(4, count, 0.1);
    double w = 0, g = 0;
    float lr = 0.3f, *lr_at = on_device(sizeof lr);
    char name[64];
    struct update lars = {.kind = OPTIMIZER_LARS,
                          .momentum = 0.9f,
                          .trust = 0.02f,
                          .weight_decay = 0.01f,
                          .lr_at = lr_at};
    device_upload(cuda, lr_at, &lr, sizeof lr);
    for (size_t i = 0; i < count; i++) {
        w += x.wide[i] * x.wide[i];
        g += gradients.wide[i] * gradients.wide[i];
    }
    double trust = 0.02 * sqrt(w) / (sqrt(g) + 0.01 * sqrt(w));
    for (size_t i = 0; i < count; i++) {
        velocity.wide[i] = 0.9 * velocity.wide[i] + trust * (gradients.wide[i] + 0.01 * x.wide[i]);
        x.wide[i] -= 0.3 * velocity.wide[i];
    }
    cuda->ops->update(cuda, &lars, count, x.dev, gradients.dev, velocity.dev);
    fetch(&x);
    fetch(&velocity);
    snprintf(name, sizeof name, "lars, %zu elements: parameters", count);
    expect_close(name, count, x.wide, x.host, 1e-6);
    expect_close("lars: velocity", count, velocity.wide, velocity.host, 1e-6);
    device_free(cuda, lr_at);
    struct array *all[] = {&x, &gradients, &velocity};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        array_free(all[i]);
}

static void check_pool(void)
{
    const struct pool2d pool = {9, 7, 5}; /* odd: no window has the last row and column */
    enum { BATCH = 6 };
    size_t outs = BATCH * 4 * 3 * 5;
    struct array x = array_new(1, BATCH * 9 * 7 * 5, 1), y = array_new(2, outs, 1);
    struct array dy = array_new(3, outs, 1);
    uint8_t *index = malloc(outs), *index_dev = on_device(outs);
    cpu->ops->maxpool_forward(cpu, &pool, BATCH, x.host, y.host, index);
    cuda->ops->maxpool_forward(cuda, &pool, BATCH, x.dev, y.dev, index_dev);
    expect_same("max-pooling", &y);
    cpu->ops->maxpool_backward(cpu, &pool, BATCH, index, dy.host, x.host);
    cuda->ops->maxpool_backward(cuda, &pool, BATCH, index_dev, dy.dev, x.dev);
    expect_same("max-pooling, backward", &x);
    free(index);
    device_free(cuda, index_dev);
    array_free(&x);
    array_free(&y);
    array_free(&dy);
}

static void check_loss(size_t batch)
{
    enum { CLASSES = 10 };
    struct array logits = array_new(1, batch * CLASSES, 4), dlogits = array_new(2, logits.count, 1);
    uint8_t *labels = malloc(batch), *labels_dev = on_device(batch);
    struct loss_sum expected, found, *sum = on_device(sizeof *sum);
    for (size_t n = 0; n < batch; n++)
        labels[n] = (uint8_t)((n * 7) % CLASSES);
    device_upload(cuda, labels_dev, labels, batch);
    cpu->ops->softmax_cross_entropy(cpu, batch, CLASSES, 0.75 * (double)batch, logits.host, labels,
                                    dlogits.host, &expected);
    cuda->ops->softmax_cross_entropy(cuda, batch, CLASSES, 0.75 * (double)batch, logits.dev,
                                     labels_dev, dlogits.dev, sum);
    expect(device_download(cuda, &found, sum, sizeof found) == STATUS_OK, "loss");
    expect(found.correct == expected.correct, "loss: correct predictions");
    expect(fabs(found.loss - expected.loss) <= 1e-10 * expected.loss, "loss");
    for (size_t i = 0; i < dlogits.count; i++)
        dlogits.wide[i] = (double)dlogits.host[i];
    fetch(&dlogits);
    expect_close("softmax and loss: gradient", dlogits.count, dlogits.wide, dlogits.host, 1e-6);
    free(labels);
    device_free(cuda, labels_dev);
    device_free(cuda, sum);
    array_free(&logits);
    array_free(&dlogits);
}

static void check_gather(void)
{
    enum { SAMPLES = 50, PIXELS = 784, BATCH = 33 };
    static uint8_t bytes[SAMPLES * PIXELS + SAMPLES];
    static float values[256];
    uint32_t samples[BATCH];
    uint8_t labels[BATCH], found_labels[BATCH], *dev_labels = on_device(BATCH);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + i / 251);
    for (int i = 0; i < 256; i++)
        values[i] = (float)i / 3.0f;
    for (uint32_t i = 0; i < BATCH; i++)
        samples[i] = i * 17 % SAMPLES;
    uint8_t *dev_bytes = on_device(sizeof bytes);
    float *dev_values = on_device(sizeof values);
    uint32_t *dev_samples = on_device(sizeof samples);
    struct array images = array_new(1, BATCH * PIXELS, 1);
    device_upload(cuda, dev_bytes, bytes, sizeof bytes);
    device_upload(cuda, dev_values, values, sizeof values);
    device_upload(cuda, dev_samples, samples, sizeof samples);
    struct gather host = {bytes, bytes + SAMPLES * PIXELS, values, PIXELS};
    struct gather dev = {dev_bytes, dev_bytes + SAMPLES * PIXELS, dev_values, PIXELS};
    cpu->ops->gather(cpu, &host, BATCH, samples, images.host, labels);
    cuda->ops->gather(cuda, &dev, BATCH, dev_samples, images.dev, dev_labels);
    expect_same("gather", &images);
    expect(device_download(cuda, found_labels, dev_labels, BATCH) == STATUS_OK &&
               memcmp(labels, found_labels, BATCH) == 0,
           "gather: labels");
    void *all[] = {dev_labels, dev_bytes, dev_values, dev_samples};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        device_free(cuda, all[i]);
    array_free(&images);
}

/* -------- inputs ------------------------------------------------------------------------------ */

static uint8_t input_byte(size_t input, int round, size_t at)
{
    return round < 0 ? 0 : (uint8_t)(input * 101 + (size_t)round * 53 + at * 7 + 1);
}

/* Checks the device memory of an input: the bytes of `round`, or zeros if it is -1. */
static void expect_input(size_t input, const void *memory, size_t bytes, int round)
{
    uint8_t *found = malloc(bytes);
    bool same = device_download(cuda, found, memory, bytes) == STATUS_OK;
    for (size_t i = 0; i < bytes; i++)
        same = same && found[i] == input_byte(input, round, i);
    free(found);
    expect(same, "inputs");
}

/* Inputs in several blocks: two share a block, one is larger than a block, and one comes after it.
 * Then the first and the last get new values, and the others keep theirs. */
static void check_inputs(void)
{
    enum { INPUTS = 4, ROUNDS = 2 };
    static const size_t bytes[INPUTS] = {8, 16 * 1024 - 64, 20000, 40};
    struct device_input inputs[INPUTS];
    for (size_t n = 0; n < INPUTS; n++)
        expect(device_input_new(cuda, "a test's input", bytes[n], &inputs[n]) == STATUS_OK &&
                   (uintptr_t)inputs[n].memory % 16 == 0,
               "a new input");
    device_inputs_send(cuda);
    for (size_t n = 0; n < INPUTS; n++)
        expect_input(n, inputs[n].memory, bytes[n], -1);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t n = 0; n < INPUTS; n++) {
            uint8_t *values = inputs[n].host;
            bool is_set = round == 0 || n == 0 || n == INPUTS - 1;
            for (size_t i = 0; is_set && i < bytes[n]; i++)
                values[i] = input_byte(n, round, i);
        }
        expect_input(0, inputs[0].memory, bytes[0],
                     round - 1); /* the new value has not been sent yet */
        device_inputs_send(cuda);
        for (size_t n = 0; n < INPUTS; n++)
            expect_input(n, inputs[n].memory, bytes[n], n == 0 || n == INPUTS - 1 ? round : 0);
    }
    printf("%-44s same bits\n", "inputs of three blocks");
}

int main(void)
{
    if (is_skipped())
        return SKIPPED;
    if (device_open(&cpu, &(struct device_options){.kind = DEVICE_CPU}) != STATUS_OK ||
        device_open(&cuda, &(struct device_options){.kind = DEVICE_CUDA}) != STATUS_OK)
        return 1;
    static const struct dense shapes[] = {{.inputs = 1, .outputs = 1, .relu = false},
                                          {.inputs = 33, .outputs = 17, .relu = true},
                                          {.inputs = 9216, .outputs = 128, .relu = true},
                                          {.inputs = 128, .outputs = 10, .relu = false},
                                          {.inputs = 784, .outputs = 512, .relu = true}};
    check_inputs();
    check_elementwise();
    check_optimizers();
    check_lars(7);
    check_lars(300);
    check_lars(3 * 16384 + 77);
    check_pool();
    check_gather();
    check_loss(13);
    check_loss(3000);
    check_convs();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_dense(&shapes[i], i % 2 ? 3 : 128);
    expect(device_sync(cuda) == STATUS_OK, "an operation failed");
    device_close(&cuda);
    device_close(&cpu);
    return end_of_test();
}
