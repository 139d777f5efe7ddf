/*
 * Convolution on CUDA: windows laid out as rows (im2col), then products with cuBLAS,
 *
 *     window (M, F) = columns (M, K) x w (K, F)          M = images x window rows x columns
 *     dw (K, F)     = columns^T x dwindow (M, F)         K = kernel x kernel x channels
 *     dcolumns      = dwindow x w^T                      F = filters
 *
 * It computes a block of images at a time to bound the size of the columns. If the columns of the
 * largest batch are small enough, forward keeps them for backward in memory that the caller holds.
 * The gradient dw is a small result with a long sum over all windows. That sum is cut into slices,
 * which are multiplied at once and added in order. Bias, relu and pooling are one pass over the
 * window outputs.
 *
 * Images of one channel need no columns (kernels/direct.cu) unless a gradient by them is wanted.
 */
#include "common/base/status.h"
#include "common/base/util.h"
#include "common/device/cuda/cuda_device.h"
#include "common/device/cuda/kernels/kernels.h"

enum {
    COLUMNS_BYTES_MAX = 128 * 1024 * 1024, /* of a block */
    KEPT_BYTES_MAX = 512 * 1024 * 1024,    /* of a layer's largest batch, which then is one block */
};

/* Counts, and the offsets in scratch memory (in floats). */
struct conv_layout {
    size_t windows, columns;           /* M and K of one image */
    size_t image, window_image;        /* floats of an image of x, and of its window outputs */
    size_t out_image;                  /* of y */
    size_t weights;                    /* K x F */
    size_t block;                      /* images at a time */
    size_t slice;                      /* windows in a slice of dw's sum */
    size_t window_at, partial_at, end; /* columns that are not kept start at 0 */
};

static size_t columns_bytes(const struct conv_layout *l, size_t images)
{
    return images * l->windows * l->columns * sizeof(float);
}

static struct conv_layout measure(const struct conv2d *c, size_t batch, bool kept)
{
    struct conv_layout l;
    l.windows = conv2d_window_size(c, c->height) * conv2d_window_size(c, c->width);
    l.columns = c->kernel * c->kernel * c->channels;
    l.image = c->height * c->width * c->channels;
    l.window_image = l.windows * c->filters;
    l.out_image = conv2d_out_size(c, c->height) * conv2d_out_size(c, c->width) * c->filters;
    l.weights = l.columns * c->filters;
    size_t fit = COLUMNS_BYTES_MAX / columns_bytes(&l, 1);
    size_t blocks = kept ? 1 : fit > 0 ? size_divide_up(batch, fit) : batch;
    l.block = size_divide_up(batch, blocks);
    l.slice = cuda_slice(l.columns, c->filters, l.block * l.windows);
    l.window_at = kept ? 0 : l.block * l.windows * l.columns;
    l.window_at = (l.window_at + 63) / 64 * 64; /* kernels read aligned whole vectors */
    l.partial_at = l.window_at + (l.block * l.window_image + 63) / 64 * 64;
    l.end = l.partial_at + size_divide_up(l.block * l.windows, l.slice) * l.weights;
    return l;
}

/* Looks at every batch size, because a smaller batch may be cut differently (as for dense
 * layers). */
enum status cuda_conv2d_prepare(struct device *device, struct conv2d *c, size_t batch_max)
{
    CHECK(c->kernel > 0 && c->channels > 0 && c->filters > 0 && c->padding < c->kernel);
    CHECK(c->height + 2 * c->padding >= c->kernel && c->width + 2 * c->padding >= c->kernel);
    struct conv_layout largest = measure(c, batch_max, true);
    size_t most = 0, bytes = columns_bytes(&largest, batch_max);
    bool keeps = !kernel_direct_can(c, batch_max) && bytes <= KEPT_BYTES_MAX;
    c->kept = NULL;
    for (size_t batch = 1; batch <= batch_max; batch++) {
        struct conv_layout l = measure(c, batch, keeps);
        /* Kernels index the elements of a block with 32 bits. */
        CHECK(l.block * (l.image > l.window_image ? l.image : l.window_image) <= INT32_MAX);
        most = size_larger(most, l.end);
    }
    enum status status = cuda_reserve(cuda_of(device), most);
    if (status == STATUS_OK && keeps)
        status = device_alloc(device, "a convolution's columns", bytes, &c->kept);
    return status;
}

/* -------- forward ----------------------------------------------------------------------------- */

static float *columns_of(struct cuda *cuda, const struct conv2d *c)
{
    return c->kept ? c->kept : cuda->scratch;
}

/* columns = the windows of `images` images, from x on. */
static void lower(struct cuda *cuda, const struct conv2d *c, size_t images, const float *x,
                  float *columns)
{
    cuda_keep(cuda, kernel_lower(cuda->compute, c, images, x, columns), "convolution: lower");
}

static void finish(struct cuda *cuda, const struct conv2d *c, size_t images, const float *window,
                   const float *bias, float *y, uint8_t *index)
{
    if (c->pool) {
        cuda_keep(cuda, kernel_finish_pooled(cuda->compute, c, images, window, bias, y, index),
                  "convolution: pooling");
        return;
    }
    size_t windows = conv2d_window_size(c, c->height) * conv2d_window_size(c, c->width);
    struct slice_sum sum = {.count = images * windows * c->filters,
                            .slices = 1,
                            .width = c->filters,
                            .bias = bias,
                            .relu = c->relu};
    cuda_keep(cuda, kernel_sum_slices(cuda->compute, &sum, window, y), "convolution: bias");
}

static void forward_block(struct cuda *cuda, const struct conv2d *c, const struct conv_layout *l,
                          size_t first, size_t images, const float *x, const float *w,
                          const float *bias, float *y, uint8_t *index)
{
    float *to = y + first * l->out_image, *columns = columns_of(cuda, c);
    float *window = c->pool ? cuda->scratch + l->window_at : to;
    lower(cuda, c, images, x + first * l->image, columns);
    cuda_multiply(cuda, &(struct cuda_blas_product){.m = images * l->windows,
                                                    .n = c->filters,
                                                    .k = l->columns,
                                                    .a = columns,
                                                    .lda = l->columns,
                                                    .b = w,
                                                    .ldb = c->filters,
                                                    .c = window,
                                                    .ldc = c->filters});
    finish(cuda, c, images, window, bias, to, c->pool ? index + first * l->out_image : NULL);
}

void cuda_conv2d_forward(struct device *device, const struct conv2d *conv, size_t batch,
                         const float *x, const float *w, const float *bias, float *y,
                         uint8_t *index)
{
    struct cuda *cuda = cuda_of(device);
    if (kernel_direct_can(conv, batch)) {
        cuda_keep(cuda, kernel_direct_forward(cuda->compute, conv, batch, x, w, bias, y, index),
                  "convolution");
        return;
    }
    struct conv_layout l = measure(conv, batch, conv->kept != NULL);
    CHECK(l.end <= cuda->scratch_count);
    for (size_t first = 0; first < batch; first += l.block) {
        size_t images = size_smaller(batch - first, l.block);
        forward_block(cuda, conv, &l, first, images, x, w, bias, y, index);
    }
}

/* -------- backward ---------------------------------------------------------------------------- */

/* Returns the gradient by the window outputs of `images` of b's images, from `first` on. With
 * pooling it is written to `window`; without, it is b->dy, changed in place if relu is fused. Also
 * sums it into dbias, which first == 0 overwrites and later blocks add to. */
static const float *window_gradient(struct cuda *cuda, const struct conv2d *c, size_t first,
                                    size_t images, const struct backward *b, float *window)
{
    size_t windows = conv2d_window_size(c, c->height) * conv2d_window_size(c, c->width);
    size_t at = first * conv2d_out_size(c, c->height) * conv2d_out_size(c, c->width) * c->filters;
    const float *y = c->relu ? b->y + at : NULL;
    if (c->pool) {
        struct pool2d pool = {conv2d_window_size(c, c->height), conv2d_window_size(c, c->width),
                              c->filters};
        struct bias_sum sum = {.totals = b->dbias, .add = first > 0, .room = cuda->room};
        cuda_keep(
            cuda,
            kernel_spread(cuda->compute, &pool, images, b->dy + at, y, b->index + at, window, &sum),
            "convolution, backward: pooling and bias");
        return window;
    }
    struct column_sum sum = {.rows = images * windows, .width = c->filters, .add = first > 0};
    cuda_keep(cuda, kernel_sum_columns(cuda->compute, &sum, y, b->dy + at, b->dbias, cuda->room),
              "convolution, backward: relu and bias");
    return b->dy + at;
}

/* Writes the contribution of a block of images to dw. With `add`, adds it. */
static void weight_gradient(struct cuda *cuda, const struct conv2d *c, const struct conv_layout *l,
                            size_t images, const float *columns, const float *dwindow, float *dw,
                            bool add)
{
    size_t rows = images * l->windows, slices = size_divide_up(rows, l->slice);
    float *partial = cuda->scratch + l->partial_at;
    struct cuda_blas_product product = {.a_transposed = true,
                                        .m = l->columns,
                                        .n = c->filters,
                                        .k = rows,
                                        .a = columns,
                                        .lda = l->columns,
                                        .b = dwindow,
                                        .ldb = c->filters,
                                        .c = partial,
                                        .ldc = c->filters};
    struct slice_sum sum = {.count = l->weights, .slices = slices, .width = c->filters, .add = add};
    cuda_multiply_sliced(cuda, &product, l->slice);
    cuda_keep(cuda, kernel_sum_slices(cuda->compute, &sum, partial, dw),
              "convolution, backward: weights");
}

/* The gradient overwrites the columns, which are no longer needed. */
static void input_gradient(struct cuda *cuda, const struct conv2d *c, const struct conv_layout *l,
                           size_t images, float *columns, const float *dwindow, const float *w,
                           float *dx)
{
    cuda_multiply(cuda, &(struct cuda_blas_product){.b_transposed = true,
                                                    .m = images * l->windows,
                                                    .n = l->columns,
                                                    .k = c->filters,
                                                    .a = dwindow,
                                                    .lda = c->filters,
                                                    .b = w,
                                                    .ldb = c->filters,
                                                    .c = columns,
                                                    .ldc = l->columns});
    cuda_keep(cuda, kernel_gather_columns(cuda->compute, c, images, columns, dx),
              "convolution, backward: input");
}

void cuda_conv2d_backward(struct device *device, const struct conv2d *conv, size_t batch,
                          const struct backward *b)
{
    struct cuda *cuda = cuda_of(device);
    if (!b->dx && kernel_direct_can(conv, batch)) {
        cuda_keep(cuda, kernel_direct_backward(cuda->compute, conv, batch, b, cuda->room),
                  "convolution, backward");
        return;
    }
    struct conv_layout l = measure(conv, batch, conv->kept != NULL);
    float *columns = columns_of(cuda, conv);
    CHECK(l.end <= cuda->scratch_count);
    for (size_t first = 0; first < batch; first += l.block) {
        size_t images = size_smaller(batch - first, l.block);
        const float *dwindow =
            window_gradient(cuda, conv, first, images, b, cuda->scratch + l.window_at);
        if (!conv->kept)
            lower(cuda, conv, images, b->x + first * l.image, columns);
        weight_gradient(cuda, conv, &l, images, columns, dwindow, b->dw, first > 0);
        if (b->dx)
            input_gradient(cuda, conv, &l, images, columns, dwindow, b->w, b->dx + first * l.image);
    }
}
