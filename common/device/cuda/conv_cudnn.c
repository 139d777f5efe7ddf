/*
 * cuDNN needs weights as (filters, kernel, kernel, channels): the transpose of psring's. Weights
 * are small compared with the activations, which cuDNN reads in place. If the window outputs of a
 * batch do not fit, it is computed a block of images at a time.
 */
#include "common/device/cuda/conv_choice.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/status.h"
#include "common/device/cuda/kernels/kernels.h"

enum {
    BLOCK_BYTES_MAX = 32 * 1024 * 1024, /* 128 images of keras-cnn's second layer fill a GPU */
    WORKSPACE_BYTES_MAX = 256 * 1024 * 1024,
    SIZES = 2 * CUDA_DNN_CONV_BATCHES, /* of batches, and of their remainders after whole blocks */
};

/* Counts, and the offsets in scratch memory (in floats). */
struct cudnn_layout {
    size_t windows, columns;    /* M and K of one image, as in conv.c */
    size_t image, window_image; /* floats of an image of x, and of its window outputs */
    size_t weights;
    size_t block; /* images at a time */
    size_t window_at, w_at, dw_at, workspace_at;
};

struct sized {
    size_t images;
    struct cuda_dnn_plan *plan;
};

struct cuda_dnn_conv {
    struct cuda *cuda;
    struct cuda_dnn *dnn;
    struct conv2d shape;
    struct cudnn_layout layout;
    struct sized sizes[SIZES]; /* (size_count); the first one decides the algorithms */
    size_t size_count, workspace_bytes;
    char reason[CUDA_DNN_TEXT_BYTES];
};

/* 256 bytes, as cudaMalloc aligns. */
static size_t aligned(size_t floats)
{
    return (floats + 63) / 64 * 64;
}

static struct cudnn_layout measure(const struct conv2d *c, size_t batch_max)
{
    struct cudnn_layout l;
    l.windows = conv2d_window_size(c, c->height) * conv2d_window_size(c, c->width);
    l.columns = c->kernel * c->kernel * c->channels;
    l.image = c->height * c->width * c->channels;
    l.window_image = l.windows * c->filters;
    l.weights = l.columns * c->filters;
    size_t larger = l.image > l.window_image ? l.image : l.window_image;
    size_t fit = BLOCK_BYTES_MAX / (larger * sizeof(float));
    size_t blocks = fit > 0 ? (batch_max + fit - 1) / fit : batch_max;
    l.block = (batch_max + blocks - 1) / blocks;
    l.window_at = 0;
    l.w_at = aligned(l.block * l.window_image);
    l.dw_at = l.w_at + aligned(l.weights);
    l.workspace_at = l.dw_at + aligned(l.weights);
    return l;
}

enum status cuda_dnn_conv_new(struct cuda_dnn_conv **out_conv, struct cuda *cuda,
                              struct cuda_dnn *dnn, const struct conv2d *shape, size_t batch_max,
                              char reason[CUDA_DNN_TEXT_BYTES])
{
    enum status status = STATUS_OK;
    struct cuda_dnn_conv *conv = calloc(1, sizeof *conv);
    *out_conv = NULL;
    if (!conv)
        return FAIL(STATUS_NO_MEMORY, "cuDNN: out of memory");
    conv->cuda = cuda;
    conv->dnn = dnn;
    conv->shape = *shape;
    conv->layout = measure(shape, batch_max);
    struct sized *first = &conv->sizes[conv->size_count++];
    first->images = conv->layout.block;
    status = cuda_dnn_plan_new(&first->plan, dnn, shape, first->images, NULL, WORKSPACE_BYTES_MAX,
                               reason);
    if (status == STATUS_OK) {
        conv->workspace_bytes = cuda_dnn_plan_workspace(first->plan);
        status = cuda_reserve(cuda, conv->layout.workspace_at +
                                        aligned(conv->workspace_bytes / sizeof(float) + 1));
    }
    if (status != STATUS_OK)
        cuda_dnn_conv_free(&conv);
    *out_conv = conv;
    return status;
}

void cuda_dnn_conv_free(struct cuda_dnn_conv **out_conv)
{
    struct cuda_dnn_conv *conv = *out_conv;
    *out_conv = NULL;
    for (size_t i = 0; conv && i < conv->size_count; i++)
        cuda_dnn_plan_free(&conv->sizes[i].plan);
    free(conv);
}

void cuda_dnn_conv_describe(const struct cuda_dnn_conv *conv, char text[CUDA_DNN_TEXT_BYTES])
{
    cuda_dnn_plan_describe(conv->sizes[0].plan, text);
}

static struct cuda_dnn_plan *plan_of(const struct cuda_dnn_conv *conv, size_t images)
{
    size_t i = 0;
    while (i < conv->size_count && conv->sizes[i].images != images)
        i++;
    return i < conv->size_count ? conv->sizes[i].plan : NULL;
}

/* Whether `images` images can be done at once. If not, conv->reason holds the cause. */
static bool can(struct cuda_dnn_conv *conv, size_t images)
{
    struct cuda_dnn_plan *plan;
    if (images == 0 || plan_of(conv, images))
        return true;
    if (conv->size_count == SIZES) {
        snprintf(conv->reason, sizeof conv->reason, "%d other sizes are already planned", SIZES);
        return false;
    }
    enum status status =
        cuda_dnn_plan_new(&plan, conv->dnn, &conv->shape, images, conv->sizes[0].plan,
                          conv->workspace_bytes, conv->reason);
    if (status == STATUS_OK)
        conv->sizes[conv->size_count++] = (struct sized){images, plan};
    else if (status != STATUS_UNSUPPORTED)
        snprintf(conv->reason, sizeof conv->reason, "%s", status_name(status));
    return status == STATUS_OK;
}

const char *cuda_dnn_conv_cannot(struct cuda_dnn_conv *conv, size_t batch)
{
    size_t block = conv->layout.block;
    return can(conv, batch < block ? 0 : block) && can(conv, batch % block) ? NULL : conv->reason;
}

size_t cuda_dnn_conv_sample(const struct cuda_dnn_conv *conv, size_t batch)
{
    size_t block = conv->layout.block;
    return batch < 2 * block ? batch : 2 * block + batch % block;
}

/* -------- forward ----------------------------------------------------------------------------- */

/* The weights in cuDNN's layout. */
static const float *turn_weights(struct cuda_dnn_conv *conv, const float *w)
{
    struct cuda *cuda = conv->cuda;
    const struct cudnn_layout *l = &conv->layout;
    float *turned = cuda->scratch + l->w_at;
    cuda_keep(cuda, kernel_transpose(cuda->compute, l->columns, conv->shape.filters, w, turned),
              "convolution: weights for cuDNN");
    return turned;
}

const char *cuda_dnn_conv_forward(struct cuda_dnn_conv *conv, const struct conv2d *c, size_t batch,
                                  const float *x, const float *w, const float *bias, float *y,
                                  uint8_t *index)
{
    struct cuda *cuda = conv->cuda;
    const struct cudnn_layout *l = &conv->layout;
    size_t out_image = conv2d_out_size(c, c->height) * conv2d_out_size(c, c->width) * c->filters;
    const float *turned = turn_weights(conv, w);
    for (size_t first = 0; first < batch; first += l->block) {
        size_t images = batch - first < l->block ? batch - first : l->block;
        float *to = y + first * out_image;
        float *window = c->pool ? cuda->scratch + l->window_at : to;
        const char *error = cuda_dnn_forward(plan_of(conv, images), x + first * l->image, turned,
                                             cuda->scratch + l->workspace_at, window);
        if (error)
            return error;
        cuda_conv_finish(cuda, c, images, window, bias, to,
                         c->pool ? index + first * out_image : NULL);
    }
    return NULL;
}

/* -------- backward ---------------------------------------------------------------------------- */

const char *cuda_dnn_conv_backward(struct cuda_dnn_conv *conv, const struct conv2d *c, size_t batch,
                                   const struct backward *b)
{
    struct cuda *cuda = conv->cuda;
    const struct cudnn_layout *l = &conv->layout;
    float *workspace = cuda->scratch + l->workspace_at, *dw = cuda->scratch + l->dw_at;
    const float *turned = b->dx ? turn_weights(conv, b->w) : NULL;
    const char *error = NULL;
    for (size_t first = 0; first < batch && !error; first += l->block) {
        size_t images = batch - first < l->block ? batch - first : l->block;
        struct cuda_dnn_plan *plan = plan_of(conv, images);
        const float *dwindow =
            cuda_conv_window_gradient(cuda, c, first, images, b, cuda->scratch + l->window_at);
        error = cuda_dnn_weight_gradient(plan, b->x + first * l->image, dwindow, workspace,
                                         first > 0, dw);
        if (b->dx && !error)
            error =
                cuda_dnn_input_gradient(plan, turned, dwindow, workspace, b->dx + first * l->image);
    }
    cuda_keep(cuda, kernel_transpose(cuda->compute, c->filters, l->columns, dw, b->dw),
              "convolution, backward: weights from cuDNN");
    return error;
}
