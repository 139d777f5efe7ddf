/*
 * Kernels: convolution lowered to a matrix product (im2col and back), and pooling. Threads do four
 * channels at once (struct vector) if the number of channels allows it. Neighbouring threads do
 * neighbouring channels, so that a warp reads and writes whole lines.
 */
#include "common/device/cuda/kernels/kernels.h"
#include "common/device/cuda/kernels/launch.h"
#include "common/device/cuda/kernels/pixels.h"
#include "common/device/cuda/kernels/tree.h"

/* The parameters of a convolution in the kernels. */
struct lowering {
    uint32_t height, width, vectors; /* of an image; `vectors` per pixel */
    uint32_t window_height, window_width;
    uint32_t kernel, padding;
};

static struct lowering lowering_of(const struct conv2d *c, size_t vector_floats)
{
    struct lowering l;
    l.height = (uint32_t)c->height;
    l.width = (uint32_t)c->width;
    l.vectors = (uint32_t)(c->channels / vector_floats);
    l.window_height = (uint32_t)conv2d_window_size(c, c->height);
    l.window_width = (uint32_t)conv2d_window_size(c, c->width);
    l.kernel = (uint32_t)c->kernel;
    l.padding = (uint32_t)c->padding;
    return l;
}

/* -------- lowering ---------------------------------------------------------------------------- */

/* Each thread does one vector of channels of all pixels of a window. */
template <int N>
static __global__ void lower(struct lowering l, size_t count, const vector<N> *x,
                             vector<N> *columns)
{
    for (EACH(i, count)) {
        struct place p = place_of((uint32_t)i, l.window_height, l.window_width, l.vectors);
        size_t window = (uint32_t)i / l.vectors;
        vector<N> *to = columns + window * l.kernel * l.kernel * l.vectors + p.vector;
        for (uint32_t k = 0; k < l.kernel; k++) {
            for (uint32_t j = 0; j < l.kernel; j++, to += l.vectors) {
                /* Above and left of the image the unsigned differences are large too. */
                uint32_t row = p.row + k - l.padding, column = p.column + j - l.padding;
                vector<N> value = {};
                if (row < l.height && column < l.width)
                    value = x[(((size_t)p.image * l.height + row) * l.width + column) * l.vectors +
                              p.vector];
                *to = value;
            }
        }
    }
}

template <int N>
static void launch_lower(struct CUstream_st *stream, const struct conv2d *conv, size_t batch,
                         const float *x, float *columns)
{
    struct lowering l = lowering_of(conv, N);
    size_t count = batch * l.window_height * l.window_width * l.vectors;
    LAUNCH(lower<N>, count, stream, l, count, (const vector<N> *)x, (vector<N> *)columns);
}

int kernel_lower(struct CUstream_st *stream, const struct conv2d *conv, size_t batch,
                 const float *x, float *columns)
{
    if (in_fours(conv->channels, x, columns))
        launch_lower<4>(stream, conv, batch, x, columns);
    else
        launch_lower<1>(stream, conv, batch, x, columns);
    return (int)cudaGetLastError();
}

/* Each thread does one vector of channels of a pixel, which is in up to kernel x kernel windows. */
template <int N>
static __global__ void gather_columns(struct lowering l, size_t count, const vector<N> *dcolumns,
                                      vector<N> *dx)
{
    for (EACH(i, count)) {
        struct place p = place_of((uint32_t)i, l.height, l.width, l.vectors);
        vector<N> total = {};
        for (uint32_t k = 0; k < l.kernel; k++) {
            for (uint32_t j = 0; j < l.kernel; j++) {
                uint32_t row = p.row + l.padding - k, column = p.column + l.padding - j;
                if (row >= l.window_height || column >= l.window_width)
                    continue;
                size_t window = ((size_t)p.image * l.window_height + row) * l.window_width + column;
                vector<N> value =
                    dcolumns[((window * l.kernel + k) * l.kernel + j) * l.vectors + p.vector];
                for (int n = 0; n < N; n++)
                    total.at[n] += value.at[n];
            }
        }
        dx[i] = total;
    }
}

template <int N>
static void launch_gather(struct CUstream_st *stream, const struct conv2d *conv, size_t batch,
                          const float *dcolumns, float *dx)
{
    struct lowering l = lowering_of(conv, N);
    size_t count = batch * l.height * l.width * l.vectors;
    LAUNCH(gather_columns<N>, count, stream, l, count, (const vector<N> *)dcolumns,
           (vector<N> *)dx);
}

int kernel_gather_columns(struct CUstream_st *stream, const struct conv2d *conv, size_t batch,
                          const float *dcolumns, float *dx)
{
    if (in_fours(conv->channels, dcolumns, dx))
        launch_gather<4>(stream, conv, batch, dcolumns, dx);
    else
        launch_gather<1>(stream, conv, batch, dcolumns, dx);
    return (int)cudaGetLastError();
}

/* -------- pooling ----------------------------------------------------------------------------- */

struct pooling {
    uint32_t height, width, vectors; /* of pooling's input */
};

/* The largest of each window's four elements, and which of them is first largest. `bias` NULL:
 * neither bias nor relu. */
template <int N>
static __global__ void pool(struct pooling s, size_t count, const vector<N> *x,
                            const vector<N> *bias, bool relu, vector<N> *y, positions<N> *index)
{
    for (EACH(i, count)) {
        struct place p = place_of((uint32_t)i, s.height / 2, s.width / 2, s.vectors);
        size_t corner = ((size_t)p.image * s.height + 2 * p.row) * s.width + 2 * p.column;
        vector<N> best = {}, plus = {};
        positions<N> which = {};
        if (bias)
            plus = bias[p.vector];
        for (uint32_t k = 0; k < 4; k++) {
            vector<N> value = x[(corner + k / 2 * s.width + k % 2) * s.vectors + p.vector];
            for (int n = 0; n < N; n++) {
                float v = bias ? value.at[n] + plus.at[n] : value.at[n];
                v = relu ? relu_of(v) : v;
                if (k == 0 || v > best.at[n]) {
                    best.at[n] = v;
                    which.at[n] = (uint8_t)k;
                }
            }
        }
        y[i] = best;
        index[i] = which;
    }
}

template <int N>
static void launch_pool(struct CUstream_st *stream, const struct pool2d *p, size_t batch,
                        const float *x, const float *bias, bool relu, float *y, uint8_t *index)
{
    struct pooling s = {(uint32_t)p->height, (uint32_t)p->width, (uint32_t)(p->channels / N)};
    size_t count = batch * (s.height / 2) * (s.width / 2) * s.vectors;
    LAUNCH(pool<N>, count, stream, s, count, (const vector<N> *)x, (const vector<N> *)bias, relu,
           (vector<N> *)y, (positions<N> *)index);
}

static int pool_any(struct CUstream_st *stream, const struct pool2d *p, size_t batch,
                    const float *x, const float *bias, bool relu, float *y, uint8_t *index)
{
    if (in_fours(p->channels, x, bias, y) && (uintptr_t)index % 4 == 0)
        launch_pool<4>(stream, p, batch, x, bias, relu, y, index);
    else
        launch_pool<1>(stream, p, batch, x, bias, relu, y, index);
    return (int)cudaGetLastError();
}

int kernel_finish_pooled(struct CUstream_st *stream, const struct conv2d *conv, size_t batch,
                         const float *window, const float *bias, float *y, uint8_t *index)
{
    struct pool2d p = {conv2d_window_size(conv, conv->height),
                       conv2d_window_size(conv, conv->width), conv->filters};
    return pool_any(stream, &p, batch, window, bias, conv->relu, y, index);
}

int kernel_maxpool(struct CUstream_st *stream, const struct pool2d *pool, size_t batch,
                   const float *x, float *y, uint8_t *index)
{
    return pool_any(stream, pool, batch, x, NULL, false, y, index);
}

/* -------- pooling, backward ------------------------------------------------------------------- */

enum { CELLS_LEAST = 4 };

/* Pooling's input, cut into cells of two by two. With an odd size the last cells extend over the
 * edge and belong to no window. */
struct cells {
    uint32_t rows, columns, count; /* rows and columns of an image; cells of the batch */
};

/* The gradient of a cell's output where relu passed it; 0 for a cell without an output. */
template <int N>
static __device__ vector<N> gradient_of(struct pooling s, struct place p, const vector<N> *dy,
                                        const vector<N> *y, const positions<N> *index,
                                        positions<N> *which)
{
    vector<N> gradient = {};
    if (p.row >= s.height / 2 || p.column >= s.width / 2)
        return gradient;
    size_t at =
        (((size_t)p.image * (s.height / 2) + p.row) * (s.width / 2) + p.column) * s.vectors +
        p.vector;
    gradient = dy[at];
    *which = index[at];
    if (y) {
        vector<N> output = y[at];
        for (int n = 0; n < N; n++)
            gradient.at[n] = output.at[n] > 0.0f ? gradient.at[n] : 0.0f;
    }
    return gradient;
}

/* Each thread does one vector of channels of a group of cells. The largest of a cell's four pixels
 * gets the gradient, and the others get 0. The sums over all cells are the bias gradient. */
template <int N>
static __global__ void spread(struct pooling s, struct cells c, uint32_t groups, bool add,
                              const vector<N> *dy, const vector<N> *y, const positions<N> *index,
                              vector<N> *dx, vector<N> *totals, struct kernel_room room)
{
    for (EACH(i, (size_t)groups * s.vectors)) {
        uint32_t group = (uint32_t)i / s.vectors, channels = (uint32_t)i % s.vectors;
        uint32_t end = tree_row(c.count, groups, group + 1);
        vector<N> total = {};
        for (uint32_t cell = tree_row(c.count, groups, group); cell < end; cell++) {
            struct place p = place_of(cell, c.rows, c.columns, 1);
            positions<N> which = {};
            p.vector = channels;
            vector<N> gradient = gradient_of(s, p, dy, y, index, &which);
            for (uint32_t k = 0; k < 4; k++) {
                uint32_t row = 2 * p.row + k / 2, column = 2 * p.column + k % 2;
                if (row >= s.height || column >= s.width)
                    continue;
                vector<N> share;
                for (int n = 0; n < N; n++)
                    share.at[n] = which.at[n] == k ? gradient.at[n] : 0.0f;
                dx[(((size_t)p.image * s.height + row) * s.width + column) * s.vectors + p.vector] =
                    share;
            }
            total += gradient;
        }
        if (!totals || !tree_sum(room, groups, s.vectors, group, channels, &total))
            continue;
        if (add)
            total += totals[channels];
        totals[channels] = total;
    }
}

template <int N>
static void launch_spread(struct CUstream_st *stream, const struct pool2d *pool, size_t batch,
                          const float *dy, const float *y, const uint8_t *index, float *dx,
                          const struct bias_sum *sum)
{
    struct pooling s = {(uint32_t)pool->height, (uint32_t)pool->width,
                        (uint32_t)(pool->channels / N)};
    struct cells c = {(s.height + 1) / 2, (s.width + 1) / 2, 0};
    c.count = (uint32_t)batch * c.rows * c.columns;
    uint32_t groups = sum->totals ? tree_groups(c.count, s.vectors, CELLS_LEAST) : c.count;
    LAUNCH(spread<N>, (size_t)groups * s.vectors, stream, s, c, groups, sum->add,
           (const vector<N> *)dy, (const vector<N> *)y, (const positions<N> *)index,
           (vector<N> *)dx, (vector<N> *)sum->totals, sum->room);
}

int kernel_spread(struct CUstream_st *stream, const struct pool2d *pool, size_t batch,
                  const float *dy, const float *y, const uint8_t *index, float *dx,
                  const struct bias_sum *sum)
{
    if (in_fours(pool->channels, dy, y, dx) && (uintptr_t)index % 4 == 0 &&
        (uintptr_t)sum->totals % 16 == 0)
        launch_spread<4>(stream, pool, batch, dy, y, index, dx, sum);
    else
        launch_spread<1>(stream, pool, batch, dy, y, index, dx, sum);
    return (int)cudaGetLastError();
}
