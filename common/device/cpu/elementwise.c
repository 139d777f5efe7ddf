/* Elementwise operations and the loss. All split the elements into blocks. */
#include <math.h>

#include "common/base/util.h"
#include "common/device/cpu/cpu.h"
#include "common/device/kernel.h"

/* Elements per item of work: three arrays then take a quarter of a typical L2 cache. */
enum { BLOCK = 16384 };

/* -------- sums -------------------------------------------------------------------------------- */

KERNEL static void add_rows(size_t count, size_t width, const float *restrict rows,
                            float *restrict totals)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < width; j++)
            totals[j] += rows[i * width + j];
    }
}

void cpu_add_rows(size_t count, size_t width, const float *rows, float *totals)
{
    add_rows(count, width, rows, totals);
}

/* -------- data -------------------------------------------------------------------------------- */

KERNEL static void look_up(size_t count, const uint8_t *restrict bytes,
                           const float *restrict values, float *restrict to)
{
    for (size_t i = 0; i < count; i++)
        to[i] = values[bytes[i]];
}

/* A few tenths of a microsecond per image: too short to wake the team. */
void cpu_gather(struct device *device, const struct gather *gather, size_t batch,
                const uint32_t *samples, float *images, uint8_t *labels)
{
    (void)device;
    for (size_t i = 0; i < batch; i++) {
        look_up(gather->pixels, gather->images + samples[i] * gather->pixels, gather->values,
                images + i * gather->pixels);
        labels[i] = gather->labels[samples[i]];
    }
}

/* -------- relu -------------------------------------------------------------------------------- */

/* "Negative becomes 0" keeps a NaN a NaN, so that the loss shows divergence. */
KERNEL static void relu_block(size_t count, const float *x, float *y)
{
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

KERNEL static void relu_block_backward(size_t count, const float *y, const float *dy, float *dx)
{
    for (size_t i = 0; i < count; i++)
        dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

struct relu_work {
    size_t count;
    const float *x, *y, *dy;
    float *out;
};

static void relu_item(void *context, size_t item, int thread)
{
    (void)thread;
    const struct relu_work *work = context;
    size_t at = item * BLOCK, length = size_smaller(work->count - at, BLOCK);
    if (work->dy)
        relu_block_backward(length, work->y + at, work->dy + at, work->out + at);
    else
        relu_block(length, work->x + at, work->out + at);
}

void cpu_relu_forward(struct device *device, size_t count, const float *x, float *y)
{
    struct relu_work work = {.count = count, .x = x, .out = y};
    team_run(cpu_of(device)->team, size_divide_up(count, BLOCK), relu_item, &work);
}

void cpu_relu_backward(struct device *device, size_t count, const float *y, const float *dy,
                       float *dx)
{
    struct relu_work work = {.count = count, .y = y, .dy = dy, .out = dx};
    team_run(cpu_of(device)->team, size_divide_up(count, BLOCK), relu_item, &work);
}

/* -------- dropout ----------------------------------------------------------------------------- */

enum { PHILOX_LANES = 64 }; /* counters at once; divides BLOCK / 4 */

/*
 * rng_block() for PHILOX_LANES consecutive counters, as loops that vectorise: word[w][lane].
 * rng_block is the definition; a test compares the two.
 */
KERNEL_PART void philox_lanes(struct rng_key key, uint64_t low, uint64_t high,
                              uint32_t word[4][PHILOX_LANES])
{
    for (int i = 0; i < PHILOX_LANES; i++) {
        uint64_t counter = low + (uint64_t)i;
        word[0][i] = (uint32_t)counter;
        word[1][i] = (uint32_t)(counter >> 32);
        word[2][i] = (uint32_t)high;
        word[3][i] = (uint32_t)(high >> 32);
    }
    uint32_t k0 = key.word[0], k1 = key.word[1];
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < PHILOX_LANES; i++) {
            uint64_t a = UINT64_C(0xD2511F53) * word[0][i];
            uint64_t b = UINT64_C(0xCD9E8D57) * word[2][i];
            word[0][i] = (uint32_t)(b >> 32) ^ word[1][i] ^ k0;
            word[1][i] = (uint32_t)b;
            word[2][i] = (uint32_t)(a >> 32) ^ word[3][i] ^ k1;
            word[3][i] = (uint32_t)a;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* Elements [first, first + count) of the whole. first is a multiple of 4 x PHILOX_LANES. */
KERNEL static void dropout_block(const struct dropout *d, size_t first, size_t count,
                                 const float *x, float *y)
{
    uint64_t step = *d->step_at;
    uint32_t threshold = (uint32_t)((double)d->rate * 0x1p32);
    float scale = 1.0f / (1.0f - d->rate);
    uint64_t low = (uint64_t)d->layer << 48 | first / 4;
    uint32_t word[4][PHILOX_LANES];
    float keep[4 * PHILOX_LANES];
    const size_t together = sizeof keep / sizeof *keep;
    for (size_t at = 0; at < count; at += together, low += PHILOX_LANES) {
        philox_lanes(d->key, low, step, word);
        for (int i = 0; i < PHILOX_LANES; i++) {
            for (int w = 0; w < 4; w++)
                keep[4 * i + w] = word[w][i] >= threshold ? scale : 0.0f;
        }
        size_t length = size_smaller(count - at, together);
        for (size_t i = 0; i < length; i++)
            y[at + i] = x[at + i] * keep[i];
    }
}

struct dropout_work {
    const struct dropout *dropout;
    size_t count;
    const float *x;
    float *y;
};

static void dropout_item(void *context, size_t item, int thread)
{
    (void)thread;
    const struct dropout_work *work = context;
    size_t at = item * BLOCK;
    dropout_block(work->dropout, at, size_smaller(work->count - at, BLOCK), work->x + at,
                  work->y + at);
}

void cpu_dropout(struct device *device, const struct dropout *dropout, size_t count, const float *x,
                 float *y)
{
    struct dropout_work work = {dropout, count, x, y};
    team_run(cpu_of(device)->team, size_divide_up(count, BLOCK), dropout_item, &work);
}

/* -------- loss -------------------------------------------------------------------------------- */

/* In double: a batch has few logits, and users compare the loss. */
void cpu_softmax_cross_entropy(struct device *device, size_t batch, size_t classes, double divisor,
                               const float *logits, const uint8_t *labels, float *dlogits,
                               struct loss_sum *sum)
{
    (void)device;
    *sum = (struct loss_sum){0};
    for (size_t n = 0; n < batch; n++) {
        const float *row = logits + n * classes;
        size_t best = 0;
        for (size_t j = 1; j < classes; j++) {
            if (row[j] > row[best])
                best = j;
        }
        double largest = (double)row[best], label_logit = (double)row[labels[n]], total = 0;
        for (size_t j = 0; j < classes; j++)
            total += exp((double)row[j] - largest);
        /* cppcheck-suppress invalidFunctionArg ; one of the classes adds exp(0) to the total */
        sum->loss += log(total) - (label_logit - largest);
        sum->correct += best == labels[n];
        if (!dlogits)
            continue;
        for (size_t j = 0; j < classes; j++) {
            double p = exp((double)row[j] - largest) / total;
            dlogits[n * classes + j] = (float)((p - (j == labels[n])) / divisor);
        }
    }
}
