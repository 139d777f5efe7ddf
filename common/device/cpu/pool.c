/* 2 x 2 max-pooling over contiguous channels: two input rows give one output row. */
#include <string.h>

#include "common/device/cpu/cpu.h"
#include "common/device/kernel.h"

KERNEL static void pool_pixels(size_t out_width, size_t channels, const float *restrict top,
                               const float *restrict bottom, float *restrict y,
                               uint8_t *restrict index)
{
    for (size_t j = 0; j < out_width; j++) {
        const float *a = top + 2 * j * channels, *b = a + channels;
        const float *c = bottom + 2 * j * channels, *d = c + channels;
        float *out = y + j * channels;
        uint8_t *which = index + j * channels;
        for (size_t k = 0; k < channels; k++) {
            float left = a[k], right = b[k];
            float upper = right > left ? right : left;
            uint8_t upper_at = right > left ? 1 : 0;
            left = c[k], right = d[k];
            float lower = right > left ? right : left;
            uint8_t lower_at = right > left ? 3 : 2;
            out[k] = lower > upper ? lower : upper;
            which[k] = lower > upper ? lower_at : upper_at;
        }
    }
}

void cpu_maxpool_rows(size_t out_rows, size_t width, size_t channels, const float *x, float *y,
                      uint8_t *index)
{
    size_t out_width = width / 2;
    for (size_t i = 0; i < out_rows; i++) {
        const float *top = x + 2 * i * width * channels;
        size_t at = i * out_width * channels;
        pool_pixels(out_width, channels, top, top + width * channels, y + at, index + at);
    }
}

/* The largest element gets the gradient; the three other elements get 0. */
KERNEL_PART void spread(size_t out_width, size_t channels, const float *restrict dy,
                        const float *restrict y, const uint8_t *restrict index, float *restrict top,
                        float *restrict bottom)
{
    for (size_t j = 0; j < out_width; j++) {
        float *a = top + 2 * j * channels, *b = a + channels;
        float *c = bottom + 2 * j * channels, *d = c + channels;
        const float *g = dy + j * channels, *out = y ? y + j * channels : NULL;
        const uint8_t *which = index + j * channels;
        for (size_t k = 0; k < channels; k++) {
            float gradient = !out || out[k] > 0.0f ? g[k] : 0.0f;
            a[k] = which[k] == 0 ? gradient : 0.0f;
            b[k] = which[k] == 1 ? gradient : 0.0f;
            c[k] = which[k] == 2 ? gradient : 0.0f;
            d[k] = which[k] == 3 ? gradient : 0.0f;
        }
    }
}

KERNEL static void spread_plain(size_t out_width, size_t channels, const float *dy,
                                const uint8_t *index, float *top, float *bottom)
{
    spread(out_width, channels, dy, NULL, index, top, bottom);
}

KERNEL static void spread_relu(size_t out_width, size_t channels, const float *dy, const float *y,
                               const uint8_t *index, float *top, float *bottom)
{
    spread(out_width, channels, dy, y, index, top, bottom);
}

void cpu_maxpool_rows_backward(size_t out_rows, size_t width, size_t channels, const float *dy,
                               const float *y, const uint8_t *index, float *dx)
{
    size_t out_width = width / 2;
    for (size_t i = 0; i < out_rows; i++) {
        float *top = dx + 2 * i * width * channels, *bottom = top + width * channels;
        size_t at = i * out_width * channels;
        if (y)
            spread_relu(out_width, channels, dy + at, y + at, index + at, top, bottom);
        else
            spread_plain(out_width, channels, dy + at, index + at, top, bottom);
        if (width % 2) {
            memset(top + (width - 1) * channels, 0, channels * sizeof *top);
            memset(bottom + (width - 1) * channels, 0, channels * sizeof *bottom);
        }
    }
}

/* -------- pooling as a separate layer --------------------------------------------------------- */

struct pool_work {
    const struct pool2d *pool;
    const float *x, *dy;
    float *y, *dx;
    uint8_t *index_out;
    const uint8_t *index_in;
};

static void forward_item(void *context, size_t image, int thread)
{
    (void)thread;
    const struct pool_work *work = context;
    const struct pool2d *p = work->pool;
    size_t in_image = p->height * p->width * p->channels;
    size_t out_at = image * (p->height / 2) * (p->width / 2) * p->channels;
    cpu_maxpool_rows(p->height / 2, p->width, p->channels, work->x + image * in_image,
                     work->y + out_at, work->index_out + out_at);
}

static void backward_item(void *context, size_t image, int thread)
{
    (void)thread;
    const struct pool_work *work = context;
    const struct pool2d *p = work->pool;
    size_t row = p->width * p->channels;
    size_t out_at = image * (p->height / 2) * (p->width / 2) * p->channels;
    float *dx = work->dx + image * p->height * row;
    cpu_maxpool_rows_backward(p->height / 2, p->width, p->channels, work->dy + out_at, NULL,
                              work->index_in + out_at, dx);
    if (p->height % 2)
        memset(dx + (p->height - 1) * row, 0, row * sizeof *dx);
}

void cpu_maxpool_forward(struct device *device, const struct pool2d *pool, size_t batch,
                         const float *x, float *y, uint8_t *index)
{
    struct pool_work work = {.pool = pool, .x = x, .y = y, .index_out = index};
    team_run(cpu_of(device)->team, batch, forward_item, &work);
}

void cpu_maxpool_backward(struct device *device, const struct pool2d *pool, size_t batch,
                          const uint8_t *index, const float *dy, float *dx)
{
    struct pool_work work = {.pool = pool, .index_in = index, .dy = dy, .dx = dx};
    team_run(cpu_of(device)->team, batch, backward_item, &work);
}
