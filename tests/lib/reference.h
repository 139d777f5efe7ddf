/*
 * The reference for the device's operations: each is written in the simplest way, in double
 * precision. Shapes are those of common/device/ops.h. Header-only, so every test binary has a copy.
 */
#ifndef PSRING_TESTS_LIB_REFERENCE_H
#define PSRING_TESTS_LIB_REFERENCE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/device/ops.h"

/* A number in [-1, 1) that depends on the stream and the element. */
static inline double reference_value(uint64_t stream, size_t i)
{
    struct rng_block block = rng_block(rng_key(stream, RNG_TEST, 0), i, 0);
    return 2.0 * (double)rng_uniform(block.word[0]) - 1.0;
}

static inline double *reference_new(size_t count)
{
    double *values = calloc(count ? count : 1, sizeof *values);
    if (!values)
        abort();
    return values;
}

/* Window outputs (N, window height, window width, filters), before relu and pooling. */
static inline void reference_window(const struct conv2d *c, size_t batch, const double *x,
                                    const double *w, const double *bias, double *y)
{
    size_t oh = conv2d_window_size(c, c->height), ow = conv2d_window_size(c, c->width);
    for (size_t n = 0; n < batch; n++)
        for (size_t i = 0; i < oh; i++)
            for (size_t j = 0; j < ow; j++)
                for (size_t f = 0; f < c->filters; f++) {
                    double sum = bias[f];
                    for (size_t ki = 0; ki < c->kernel; ki++)
                        for (size_t kj = 0; kj < c->kernel; kj++) {
                            size_t row = i + ki - c->padding, column = j + kj - c->padding;
                            if (row >= c->height || column >= c->width) /* also negative indices */
                                continue;
                            for (size_t k = 0; k < c->channels; k++)
                                sum +=
                                    x[((n * c->height + row) * c->width + column) * c->channels +
                                      k] *
                                    w[((ki * c->kernel + kj) * c->channels + k) * c->filters + f];
                        }
                    y[((n * oh + i) * ow + j) * c->filters + f] = sum;
                }
}

/* The transpose of reference_window: adds the gradients by dy (window outputs) to dx, dw, dbias. */
static inline void reference_window_backward(const struct conv2d *c, size_t batch, const double *x,
                                             const double *w, const double *dy, double *dx,
                                             double *dw, double *dbias)
{
    size_t oh = conv2d_window_size(c, c->height), ow = conv2d_window_size(c, c->width);
    for (size_t n = 0; n < batch; n++)
        for (size_t i = 0; i < oh; i++)
            for (size_t j = 0; j < ow; j++)
                for (size_t f = 0; f < c->filters; f++) {
                    double g = dy[((n * oh + i) * ow + j) * c->filters + f];
                    dbias[f] += g;
                    for (size_t ki = 0; g != 0 && ki < c->kernel; ki++)
                        for (size_t kj = 0; kj < c->kernel; kj++) {
                            size_t row = i + ki - c->padding, column = j + kj - c->padding;
                            if (row >= c->height || column >= c->width)
                                continue;
                            for (size_t k = 0; k < c->channels; k++) {
                                size_t at =
                                    ((n * c->height + row) * c->width + column) * c->channels + k;
                                size_t tap =
                                    ((ki * c->kernel + kj) * c->channels + k) * c->filters + f;
                                dx[at] += g * w[tap];
                                dw[tap] += g * x[at];
                            }
                        }
                }
}

static inline void reference_relu(size_t count, double *y)
{
    for (size_t i = 0; i < count; i++)
        y[i] = y[i] > 0 ? y[i] : 0;
}

/* `from` (count of y; may be NULL) gets the index in x of each element of y. */
static inline void reference_pool(size_t batch, size_t height, size_t width, size_t channels,
                                  const double *x, double *y, size_t *from)
{
    size_t oh = height / 2, ow = width / 2;
    for (size_t n = 0; n < batch; n++)
        for (size_t i = 0; i < oh; i++)
            for (size_t j = 0; j < ow; j++)
                for (size_t k = 0; k < channels; k++) {
                    size_t best = 0;
                    for (size_t window = 0; window < 4; window++) {
                        size_t row = 2 * i + window / 2, column = 2 * j + window % 2;
                        size_t at = ((n * height + row) * width + column) * channels + k;
                        if (window == 0 || x[at] > x[best])
                            best = at;
                    }
                    size_t to = ((n * oh + i) * ow + j) * channels + k;
                    y[to] = x[best];
                    if (from)
                        from[to] = best;
                }
}

static inline void reference_dense(const struct dense *d, size_t batch, const double *x,
                                   const double *w, const double *bias, double *y)
{
    for (size_t n = 0; n < batch; n++)
        for (size_t j = 0; j < d->outputs; j++) {
            double sum = bias[j];
            for (size_t i = 0; i < d->inputs; i++)
                sum += x[n * d->inputs + i] * w[i * d->outputs + j];
            y[n * d->outputs + j] = d->relu && sum < 0 ? 0 : sum;
        }
}

static inline double reference_dropout_factor(const struct dropout *d, size_t element)
{
    struct rng_block block = rng_block(d->key, (uint64_t)d->layer << 48 | element / 4, *d->step_at);
    uint32_t threshold = (uint32_t)((double)d->rate * 4294967296.0);
    return block.word[element % 4] >= threshold ? 1.0 / (1.0 - (double)d->rate) : 0.0;
}

/* The sum over the batch of -log softmax(logits)[label]. */
static inline double reference_loss(size_t batch, size_t classes, const double *logits,
                                    const uint8_t *labels)
{
    double loss = 0;
    for (size_t n = 0; n < batch; n++) {
        const double *row = logits + n * classes;
        double largest = row[0], total = 0;
        for (size_t j = 1; j < classes; j++)
            largest = row[j] > largest ? row[j] : largest;
        for (size_t j = 0; j < classes; j++)
            total += exp(row[j] - largest);
        loss += largest + log(total) - row[labels[n]];
    }
    return loss;
}

#endif
