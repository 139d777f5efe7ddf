/* Kernels: fill, scale, relu, dropout, gathering a batch. */
#include "common/device/cuda/kernels/kernels.h"
#include "common/device/cuda/kernels/launch.h"
#include "common/device/cuda/kernels/pixels.h"

/* -------- fill, scale, relu ------------------------------------------------------------------- */

static __global__ void fill(size_t count, float value, float *to)
{
    for (EACH(i, count))
        to[i] = value;
}

int kernel_fill(struct CUstream_st *stream, size_t count, float value, float *to)
{
    LAUNCH(fill, count, stream, count, value, to);
    return (int)cudaGetLastError();
}

static __global__ void scale(size_t count, float factor, float *values)
{
    for (EACH(i, count))
        values[i] *= factor;
}

int kernel_scale(struct CUstream_st *stream, size_t count, float factor, float *values)
{
    LAUNCH(scale, count, stream, count, factor, values);
    return (int)cudaGetLastError();
}

int kernel_probe(void)
{
    struct cudaFuncAttributes attributes;
    return (int)cudaFuncGetAttributes(&attributes, (const void *)fill);
}

static __global__ void relu(size_t count, const float *x, float *y)
{
    for (EACH(i, count))
        y[i] = relu_of(x[i]);
}

static __global__ void relu_backward(size_t count, const float *y, const float *dy, float *dx)
{
    for (EACH(i, count))
        dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

int kernel_relu(struct CUstream_st *stream, size_t count, const float *x, float *y)
{
    LAUNCH(relu, count, stream, count, x, y);
    return (int)cudaGetLastError();
}

int kernel_relu_backward(struct CUstream_st *stream, size_t count, const float *y, const float *dy,
                         float *dx)
{
    LAUNCH(relu_backward, count, stream, count, y, dy, dx);
    return (int)cudaGetLastError();
}

/* -------- dropout ----------------------------------------------------------------------------- */

/* Each thread does one block of random numbers, i.e. four elements. `threshold` and `scale` come
 * from the host, so that they equal the CPU's to the bit. */
static __global__ void dropout_four(struct dropout d, uint32_t threshold, float scale, size_t count,
                                    const float *x, float *y)
{
    uint64_t step = *d.step_at;
    for (EACH(i, (count + 3) / 4)) {
        struct rng_block block = rng_block(d.key, (uint64_t)d.layer << 48 | i, step);
        for (unsigned w = 0; w < 4 && 4 * i + w < count; w++)
            y[4 * i + w] = x[4 * i + w] * (block.word[w] >= threshold ? scale : 0.0f);
    }
}

int kernel_dropout(struct CUstream_st *stream, const struct dropout *dropout, size_t count,
                   const float *x, float *y)
{
    uint32_t threshold = (uint32_t)((double)dropout->rate * 0x1p32);
    float scale = 1.0f / (1.0f - dropout->rate);
    LAUNCH(dropout_four, (count + 3) / 4, stream, *dropout, threshold, scale, count, x, y);
    return (int)cudaGetLastError();
}

/* -------- data -------------------------------------------------------------------------------- */

static __global__ void gather_pixels(struct gather g, size_t batch, const uint32_t *samples,
                                     float *images, uint8_t *labels)
{
    for (EACH(i, batch * g.pixels)) {
        size_t image = i / g.pixels, pixel = i % g.pixels;
        size_t sample = samples[image];
        images[i] = g.values[g.images[sample * g.pixels + pixel]];
        if (pixel == 0)
            labels[image] = g.labels[sample];
    }
}

int kernel_gather(struct CUstream_st *stream, const struct gather *gather, size_t batch,
                  const uint32_t *samples, float *images, uint8_t *labels)
{
    LAUNCH(gather_pixels, batch * gather->pixels, stream, *gather, batch, samples, images, labels);
    return (int)cudaGetLastError();
}
