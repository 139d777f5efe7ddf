/*
 * Kernels: convolution of images of one channel, without columns. A window has few numbers (nine
 * for 3 x 3), which are read from caches. A matrix product with so short a sum would wait for
 * memory, and its columns, bias and relu would need separate passes. Windows are 3 x 3 or 5 x 5,
 * known to the compiler, so that a thread's sums stay in registers.
 */
#include "common/device/cuda/kernels/kernels.h"
#include "common/device/cuda/kernels/launch.h"
#include "common/device/cuda/kernels/pixels.h"
#include "common/device/cuda/kernels/tree.h"

struct direct {
    uint32_t height, width, padding;
    uint32_t out_height, out_width, vectors; /* of the output; `vectors` per pixel */
    uint32_t side;                           /* 2: max-pooling over 2 x 2 windows; 1: no pooling */
    bool relu;
};

static struct direct direct_of(const struct conv2d *c, size_t vector_floats)
{
    struct direct d = {};
    d.height = (uint32_t)c->height;
    d.width = (uint32_t)c->width;
    d.padding = (uint32_t)c->padding;
    d.out_height = (uint32_t)conv2d_out_size(c, c->height);
    d.out_width = (uint32_t)conv2d_out_size(c, c->width);
    d.vectors = (uint32_t)(c->filters / vector_floats);
    d.side = c->pool ? 2 : 1;
    d.relu = c->relu;
    return d;
}

bool kernel_direct_can(const struct conv2d *c, size_t batch)
{
    size_t outs = conv2d_out_size(c, c->height) * conv2d_out_size(c, c->width) * c->filters;
    size_t image = c->height * c->width;
    return c->channels == 1 && (c->kernel == 3 || c->kernel == 5) &&
           batch <= INT32_MAX / (outs > image ? outs : image);
}

/* The pixel at (row, column) of the padded image. Above and left of the image the unsigned
 * differences are large too. */
static __device__ float pixel_of(const struct direct &d, const float *image, uint32_t row,
                                 uint32_t column)
{
    row -= d.padding;
    column -= d.padding;
    return row < d.height && column < d.width ? image[row * d.width + column] : 0.0f;
}

/* -------- forward ----------------------------------------------------------------------------- */

template <int K, int N>
static __device__ vector<N> window_sum(const struct direct &d, const float *image, uint32_t row,
                                       uint32_t column, const vector<N> *w)
{
    vector<N> total = {};
#pragma unroll
    for (uint32_t t = 0; t < K * K; t++) {
        float x = pixel_of(d, image, row + t / K, column + t % K);
        vector<N> weight = w[t * d.vectors];
        for (int n = 0; n < N; n++)
            total.at[n] = fmaf(x, weight.at[n], total.at[n]);
    }
    return total;
}

/* Each thread does one vector of filters of one pixel of y. */
template <int K, int N>
static __global__ void direct_forward(struct direct d, size_t count, const float *x,
                                      const vector<N> *w, const vector<N> *bias, vector<N> *y,
                                      positions<N> *index)
{
    for (EACH(i, count)) {
        struct place p = place_of((uint32_t)i, d.out_height, d.out_width, d.vectors);
        const float *image = x + (size_t)p.image * d.height * d.width;
        vector<N> plus = bias[p.vector], best = {};
        positions<N> which = {};
        for (uint32_t k = 0; k < d.side * d.side; k++) {
            uint32_t row = d.side * p.row + (k >> 1), column = d.side * p.column + (k & 1);
            vector<N> value = window_sum<K, N>(d, image, row, column, w + p.vector);
            for (int n = 0; n < N; n++) {
                float v = value.at[n] + plus.at[n];
                v = d.relu ? relu_of(v) : v;
                if (k == 0 || v > best.at[n]) {
                    best.at[n] = v;
                    which.at[n] = (uint8_t)k;
                }
            }
        }
        y[i] = best;
        if (d.side == 2)
            index[i] = which;
    }
}

template <int K, int N>
static void launch_forward(struct CUstream_st *stream, const struct conv2d *conv, size_t batch,
                           const float *x, const float *w, const float *bias, float *y,
                           uint8_t *index)
{
    struct direct d = direct_of(conv, N);
    size_t count = batch * d.out_height * d.out_width * d.vectors;
    LAUNCH((direct_forward<K, N>), count, stream, d, count, x, (const vector<N> *)w,
           (const vector<N> *)bias, (vector<N> *)y, (positions<N> *)index);
}

int kernel_direct_forward(struct CUstream_st *stream, const struct conv2d *conv, size_t batch,
                          const float *x, const float *w, const float *bias, float *y,
                          uint8_t *index)
{
    bool fours = in_fours(conv->filters, w, bias, y) && (uintptr_t)index % 4 == 0;
    if (conv->kernel == 3 && fours)
        launch_forward<3, 4>(stream, conv, batch, x, w, bias, y, index);
    else if (conv->kernel == 3)
        launch_forward<3, 1>(stream, conv, batch, x, w, bias, y, index);
    else if (fours)
        launch_forward<5, 4>(stream, conv, batch, x, w, bias, y, index);
    else
        launch_forward<5, 1>(stream, conv, batch, x, w, bias, y, index);
    return (int)cudaGetLastError();
}

/* -------- backward ---------------------------------------------------------------------------- */

enum { PIXELS_LEAST = 8 };

/* A thread's sums for its filter: the gradient by each weight, then by the bias. */
template <int K> struct filter_gradient {
    float at[K * K + 1];

    __device__ void operator+=(const filter_gradient &other)
    {
        for (int t = 0; t < K * K + 1; t++)
            at[t] += other.at[t];
    }
};

/* Each thread does one filter of a group of pixels of dy, and neighbouring threads read
 * neighbouring filters. Neither the gradients before relu and pooling nor the windows are
 * stored. */
template <int K>
static __global__ void direct_backward(struct direct d, uint32_t pixels, uint32_t groups,
                                       const float *x, const float *y, const uint8_t *index,
                                       const float *dy, float *dw, float *dbias,
                                       struct kernel_room room)
{
    for (EACH(i, groups * d.vectors)) {
        uint32_t group = (uint32_t)i / d.vectors, filter = (uint32_t)i % d.vectors;
        uint32_t end = tree_row(pixels, groups, group + 1);
        struct filter_gradient<K> total = {
        };
#pragma unroll 2
        for (uint32_t pixel = tree_row(pixels, groups, group); pixel < end; pixel++) {
            struct place p = place_of(pixel, d.out_height, d.out_width, 1);
            const float *image = x + (size_t)p.image * d.height * d.width;
            size_t at = (size_t)pixel * d.vectors + filter;
            uint32_t which = d.side == 2 ? index[at] : 0;
            uint32_t row = d.side * p.row + (which >> 1), column = d.side * p.column + (which & 1);
            float gradient = dy[at];
            if (d.relu && !(y[at] > 0.0f))
                gradient = 0.0f;
#pragma unroll
            for (uint32_t t = 0; t < K * K; t++)
                total.at[t] =
                    fmaf(pixel_of(d, image, row + t / K, column + t % K), gradient, total.at[t]);
            total.at[K * K] += gradient;
        }
        if (!tree_sum(room, groups, d.vectors, group, filter, &total))
            continue;
#pragma unroll
        for (uint32_t t = 0; t < K * K; t++)
            dw[t * d.vectors + filter] = total.at[t];
        dbias[filter] = total.at[K * K];
    }
}

template <int K>
static void launch_backward(struct CUstream_st *stream, const struct conv2d *conv, size_t batch,
                            const struct backward *b, struct kernel_room room)
{
    struct direct d = direct_of(conv, 1);
    uint32_t pixels = (uint32_t)batch * d.out_height * d.out_width;
    uint32_t groups = tree_groups(pixels, d.vectors, PIXELS_LEAST);
    LAUNCH(direct_backward<K>, (size_t)groups * d.vectors, stream, d, pixels, groups, b->x, b->y,
           b->index, (const float *)b->dy, b->dw, b->dbias, room);
}

int kernel_direct_backward(struct CUstream_st *stream, const struct conv2d *conv, size_t batch,
                           const struct backward *b, struct kernel_room room)
{
    if (conv->kernel == 3)
        launch_backward<3>(stream, conv, batch, b, room);
    else
        launch_backward<5>(stream, conv, batch, b, room);
    return (int)cudaGetLastError();
}
