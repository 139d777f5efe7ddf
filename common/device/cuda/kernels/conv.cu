/*
 * Kernels: convolution lowered to a matrix product (im2col and back), pooling. Threads do several
 * channels at once (struct vector) where the number of channels allows it; neighbouring threads do
 * neighbouring channels, so that a warp reads and writes whole lines.
 */
#include "common/device/cuda/kernels/kernels.h"
#include "common/device/cuda/kernels/launch.h"

/* `N` floats that are read and written at once: 16 bytes for four. */
template <int N> struct alignas(4 * N) vector {
    float at[N];
};

/* Whether rows of `width` floats may be read as vectors of four, wherever they begin. */
static bool in_fours(size_t width, const void *a, const void *b)
{
    return width % 4 == 0 && ((uintptr_t)a | (uintptr_t)b) % 16 == 0;
}

/* What the kernels need of a convolution, in 32 bits: divisions of 64 bits cost several times as
 * much. */
struct lowering {
    uint32_t height, width, vectors; /* of an image; `vectors` a pixel */
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

/* A position in a batch of images of height x width pixels of `vectors` vectors each. */
struct place {
    uint32_t image, row, column, vector;
};

static __device__ struct place place_of(uint32_t i, uint32_t height, uint32_t width,
                                        uint32_t vectors)
{
    struct place p;
    p.vector = i % vectors;
    i /= vectors;
    p.column = i % width;
    i /= width;
    p.row = i % height;
    p.image = i / height;
    return p;
}

/* -------- lowering ---------------------------------------------------------------------------- */

/* A thread does one vector of channels of all pixels of a window. */
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
                /* Above and left of the image the unsigned difference is large, too. */
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

/* A thread does one vector of channels of a pixel: it stands in up to kernel x kernel windows. */
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
    uint32_t height, width, channels; /* of what is pooled */
};

/* The largest of a window's four, and which of them is first largest. `bias` NULL: neither bias nor
 * relu. */
static __device__ float largest(struct pooling s, struct place p, const float *x, const float *bias,
                                bool relu, uint8_t *which)
{
    float best = 0.0f;
    for (uint32_t k = 0; k < 4; k++) {
        size_t row = 2 * p.row + k / 2, column = 2 * p.column + k % 2;
        float value =
            x[((p.image * (size_t)s.height + row) * s.width + column) * s.channels + p.vector];
        if (bias)
            value += bias[p.vector];
        if (relu)
            value = value < 0.0f ? 0.0f : value;
        if (k == 0 || value > best) {
            best = value;
            *which = (uint8_t)k;
        }
    }
    return best;
}

static __global__ void pool(struct pooling s, size_t count, const float *x, const float *bias,
                            bool relu, float *y, uint8_t *index)
{
    for (EACH(i, count)) {
        struct place p = place_of((uint32_t)i, s.height / 2, s.width / 2, s.channels);
        uint8_t which = 0;
        y[i] = largest(s, p, x, bias, relu, &which);
        index[i] = which;
    }
}

static int launch_pool(struct CUstream_st *stream, struct pooling s, size_t batch, const float *x,
                       const float *bias, bool relu, float *y, uint8_t *index)
{
    size_t count = batch * (s.height / 2) * (s.width / 2) * s.channels;
    LAUNCH(pool, count, stream, s, count, x, bias, relu, y, index);
    return (int)cudaGetLastError();
}

int kernel_finish_pooled(struct CUstream_st *stream, const struct conv2d *conv, size_t batch,
                         const float *window, const float *bias, float *y, uint8_t *index)
{
    struct pooling s = {(uint32_t)conv2d_window_size(conv, conv->height),
                        (uint32_t)conv2d_window_size(conv, conv->width), (uint32_t)conv->filters};
    return launch_pool(stream, s, batch, window, bias, conv->relu, y, index);
}

int kernel_maxpool(struct CUstream_st *stream, const struct pool2d *pool, size_t batch,
                   const float *x, float *y, uint8_t *index)
{
    struct pooling s = {(uint32_t)pool->height, (uint32_t)pool->width, (uint32_t)pool->channels};
    return launch_pool(stream, s, batch, x, NULL, false, y, index);
}

/* A thread does one element of dx: 0, or the gradient of its window where it was the largest. */
static __global__ void spread(struct pooling s, size_t count, const float *dy, const float *y,
                              const uint8_t *index, float *dx)
{
    uint32_t out_height = s.height / 2, out_width = s.width / 2;
    for (EACH(i, count)) {
        struct place p = place_of((uint32_t)i, s.height, s.width, s.channels);
        float gradient = 0.0f;
        if (p.row / 2 < out_height && p.column / 2 < out_width) {
            size_t at = (((size_t)p.image * out_height + p.row / 2) * out_width + p.column / 2) *
                            s.channels +
                        p.vector;
            bool was_largest = index[at] == p.row % 2 * 2 + p.column % 2;
            if (was_largest && (!y || y[at] > 0.0f))
                gradient = dy[at];
        }
        dx[i] = gradient;
    }
}

int kernel_spread(struct CUstream_st *stream, const struct pool2d *pool, size_t batch,
                  const float *dy, const float *y, const uint8_t *index, float *dx)
{
    struct pooling s = {(uint32_t)pool->height, (uint32_t)pool->width, (uint32_t)pool->channels};
    size_t count = batch * pool->height * pool->width * pool->channels;
    LAUNCH(spread, count, stream, s, count, dy, y, index, dx);
    return (int)cudaGetLastError();
}
