/*
 * One forward and backward of a shape by cuDNN and by psring's own kernels, on this very GPU. Relu
 * and pooling are left out: both have the same kernels for them, and where two values are almost
 * equal they would make of a rounding another element.
 */
#include <math.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/device/cuda/conv_choice.h"

enum part { PART_X, PART_W, PART_BIAS, PART_DY, PART_Y, PART_DX, PART_DW, PART_DBIAS, PARTS };
enum { COMPARED = PART_Y };

static const char *const part_names[PARTS] = {
    [PART_Y] = "outputs",
    [PART_DX] = "gradient by the input",
    [PART_DW] = "gradient by the weights",
    [PART_DBIAS] = "gradient by the bias",
};

struct comparison {
    struct cuda *cuda;
    struct conv2d conv;
    size_t batch, counts[PARTS];
    void *dev[PARTS];
    float *own[PARTS], *theirs[PARTS]; /* host memory */
};

static void fill(float *values, size_t count, uint64_t part)
{
    struct rng_key key = rng_key(1, RNG_TEST, part);
    struct rng_block block = {{0}};
    for (size_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            block = rng_block(key, i / 4, 0);
        values[i] = 2.0f * rng_uniform(block.word[i % 4]) - 1.0f;
    }
}

/* No memory is no error of the run's: the caller says what comes of it. */
static enum status open_comparison(struct comparison *c)
{
    struct device *device = &c->cuda->device;
    for (int part = 0; part < PARTS; part++) {
        size_t count = c->counts[part], bytes = count * sizeof(float);
        enum status status = device->ops->alloc(device, bytes, &c->dev[part]);
        if (status != STATUS_OK)
            return status;
        c->own[part] = malloc(bytes);
        c->theirs[part] = malloc(bytes);
        if (!c->own[part] || !c->theirs[part])
            return STATUS_NO_MEMORY;
        if (part < COMPARED)
            fill(c->own[part], count, (uint64_t)part);
    }
    return STATUS_OK;
}

static void close_comparison(struct comparison *c)
{
    for (int part = 0; part < PARTS; part++) {
        device_free(&c->cuda->device, c->dev[part]);
        free(c->own[part]);
        free(c->theirs[part]);
    }
}

/* Computes by cuDNN, or by psring's own kernels where `dnn` is NULL, into what was no number. */
static enum status compute(struct comparison *c, struct cuda_dnn_conv *dnn, float *const to[PARTS],
                           const char **error)
{
    enum status status = STATUS_OK;
    struct device *device = &c->cuda->device;
    float *const *dev = (float *const *)c->dev;
    struct backward backward = {.x = dev[PART_X],
                                .w = dev[PART_W],
                                .y = dev[PART_Y],
                                .dy = dev[PART_DY],
                                .dx = dev[PART_DX],
                                .dw = dev[PART_DW],
                                .dbias = dev[PART_DBIAS]};
    for (int part = 0; part < PARTS; part++) {
        if (part < COMPARED)
            device_upload(device, dev[part], c->own[part], c->counts[part] * sizeof(float));
        else
            device->ops->fill(device, dev[part], NAN, c->counts[part]);
    }
    if (dnn) {
        *error = cuda_dnn_conv_forward(dnn, &c->conv, c->batch, dev[PART_X], dev[PART_W],
                                       dev[PART_BIAS], dev[PART_Y], NULL);
        if (!*error)
            *error = cuda_dnn_conv_backward(dnn, &c->conv, c->batch, &backward);
    } else {
        cuda_own_conv2d_forward(device, &c->conv, c->batch, dev[PART_X], dev[PART_W],
                                dev[PART_BIAS], dev[PART_Y], NULL);
        cuda_own_conv2d_backward(device, &c->conv, c->batch, &backward);
    }
    for (int part = COMPARED; part < PARTS; part++)
        TRY(device_download(device, to[part], dev[part], c->counts[part] * sizeof(float)));
out:
    return status;
}

static void look(const struct comparison *c, struct cuda_conv_difference *difference)
{
    *difference = (struct cuda_conv_difference){0, part_names[COMPARED]};
    for (int part = COMPARED; part < PARTS; part++) {
        double squares = 0, worst = 0;
        for (size_t i = 0; i < c->counts[part]; i++) {
            double own = (double)c->own[part][i];
            double apart = fabs(own - (double)c->theirs[part][i]);
            squares += own * own;
            worst = apart <= worst ? worst : isnan(apart) ? (double)INFINITY : apart;
        }
        worst /= sqrt(squares / (double)c->counts[part]);
        if (isnan(worst)) /* of our own, or all are zeros: nothing was compared */
            worst = (double)INFINITY;
        if (worst > difference->worst)
            *difference = (struct cuda_conv_difference){worst, part_names[part]};
    }
}

enum status cuda_conv_compare(struct cuda *cuda, struct cuda_dnn_conv *dnn,
                              const struct conv2d *shape, size_t batch,
                              struct cuda_conv_difference *difference, const char **error)
{
    enum status status = STATUS_OK;
    struct comparison c = {.cuda = cuda, .conv = *shape, .batch = batch};
    c.conv.relu = c.conv.pool = false;
    c.conv.kept = NULL;
    size_t image = shape->height * shape->width * shape->channels;
    size_t windows =
        conv2d_window_size(shape, shape->height) * conv2d_window_size(shape, shape->width);
    c.counts[PART_X] = c.counts[PART_DX] = c.batch * image;
    c.counts[PART_Y] = c.counts[PART_DY] = c.batch * windows * shape->filters;
    c.counts[PART_W] = c.counts[PART_DW] =
        shape->kernel * shape->kernel * shape->channels * shape->filters;
    c.counts[PART_BIAS] = c.counts[PART_DBIAS] = shape->filters;
    *error = NULL;
    TRY(open_comparison(&c));
    TRY(cuda_own_conv2d_prepare(&cuda->device, &c.conv, c.batch, false));
    TRY(compute(&c, NULL, c.own, error));
    TRY(compute(&c, dnn, c.theirs, error));
    if (!*error)
        look(&c, difference);
out:
    close_comparison(&c);
    return status;
}
