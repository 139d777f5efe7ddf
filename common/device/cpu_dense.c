/*
 * Dense layers. The work is cut along the inputs, in blocks whose number depends on the layer
 * alone: forward each block gives a partial sum of the outputs, added up in the blocks' order;
 * backward each block owns its rows of dw and its columns of dx. Cutting along the batch instead
 * would make every item read (and BLAS repack) all of the weights. Backward goes from the last
 * block to the first, as many at a time as there are threads, so that others can take the rows of
 * dw that are done while the rest is computed; forward does so where somebody has to bring the rows
 * of w, which changes no sum.
 */
#include "common/base/check.h"
#include "common/device/cpu.h"
#include "common/device/kernel.h"

struct dense_work {
    const struct dense *dense;
    size_t batch;
    size_t blocks, width; /* of inputs; the last block may be narrower */
    const float *x, *w, *bias;
    float *y;
    float *partial; /* (blocks, batch, outputs) */
    const struct backward *backward;
    size_t first_block; /* of those that are computed at a time */
};

static struct dense_work cut(const struct dense *dense, size_t batch)
{
    size_t blocks = (dense->inputs + DENSE_BLOCK_INPUTS - 1) / DENSE_BLOCK_INPUTS;
    size_t width = cpu_round_up((dense->inputs + blocks - 1) / blocks);
    blocks = (dense->inputs + width - 1) / width; /* rounding up may have saved one */
    return (struct dense_work){.dense = dense, .batch = batch, .blocks = blocks, .width = width};
}

static size_t width_of(const struct dense_work *work, size_t block)
{
    size_t left = work->dense->inputs - block * work->width;
    return left < work->width ? left : work->width;
}

enum status cpu_dense_prepare(struct device *device, const struct dense *dense, size_t batch_max)
{
    CHECK(dense->inputs > 0 && dense->outputs > 0);
    struct dense_work work = cut(dense, batch_max);
    return cpu_reserve(cpu_of(device), 0, work.blocks * batch_max * dense->outputs);
}

/* ---- forward ------------------------------------------------------------------------------- */

static void multiply_item(void *context, size_t item, int thread)
{
    (void)thread;
    const struct dense_work *work = context;
    size_t block = work->first_block + item;
    const struct dense *d = work->dense;
    size_t first = block * work->width;
    cpu_gemm(&(struct gemm){.m = work->batch,
                            .n = d->outputs,
                            .k = width_of(work, block),
                            .a = work->x + first,
                            .lda = d->inputs,
                            .b = work->w + first * d->outputs,
                            .ldb = d->outputs,
                            .c = work->partial + block * work->batch * d->outputs,
                            .ldc = d->outputs});
}

KERNEL static void finish_row(size_t blocks, size_t stride, size_t outputs,
                              const float *restrict partial, const float *restrict bias, bool relu,
                              float *restrict y)
{
    for (size_t j = 0; j < outputs; j++)
        y[j] = partial[j];
    for (size_t b = 1; b < blocks; b++) {
        for (size_t j = 0; j < outputs; j++)
            y[j] += partial[b * stride + j];
    }
    for (size_t j = 0; j < outputs; j++)
        y[j] += bias[j];
    if (relu) {
        for (size_t j = 0; j < outputs; j++)
            y[j] = y[j] < 0.0f ? 0.0f : y[j];
    }
}

static void finish_item(void *context, size_t row, int thread)
{
    (void)thread;
    const struct dense_work *work = context;
    size_t outputs = work->dense->outputs;
    finish_row(work->blocks, work->batch * outputs, outputs, work->partial + row * outputs,
               work->bias, work->dense->relu, work->y + row * outputs);
}

void cpu_dense_forward(struct device *device, const struct dense *dense, size_t batch,
                       const float *x, const float *w, const float *bias, float *y)
{
    struct cpu *cpu = cpu_of(device);
    struct dense_work work = cut(dense, batch);
    CHECK(work.blocks * batch * dense->outputs <= cpu->partial_count);
    work.x = x;
    work.w = w;
    work.bias = bias;
    work.y = y;
    work.partial = cpu->partial;
    size_t threads = (size_t)team_threads(cpu->team);
    for (size_t end = work.blocks, count; end > 0; end -= count) {
        count = dense->w_needed && end > threads ? threads : end;
        work.first_block = end - count;
        if (dense->w_needed)
            dense->w_needed(dense->w_needed_context,
                            work.first_block * work.width * dense->outputs);
        team_run(cpu->team, count, multiply_item, &work);
    }
    team_run(cpu->team, batch, finish_item, &work);
}

/* ---- backward ------------------------------------------------------------------------------ */

static void gradient_item(void *context, size_t item, int thread)
{
    (void)thread;
    const struct dense_work *work = context;
    const struct dense *d = work->dense;
    const struct backward *b = work->backward;
    size_t block = work->first_block + item;
    size_t first = block * work->width, width = width_of(work, block);
    cpu_gemm(&(struct gemm){.a_op = GEMM_TRANSPOSED,
                            .m = width,
                            .n = d->outputs,
                            .k = work->batch,
                            .a = b->x + first,
                            .lda = d->inputs,
                            .b = b->dy,
                            .ldb = d->outputs,
                            .c = b->dw + first * d->outputs,
                            .ldc = d->outputs});
    if (b->dx)
        cpu_gemm(&(struct gemm){.b_op = GEMM_TRANSPOSED,
                                .m = work->batch,
                                .n = width,
                                .k = d->outputs,
                                .a = b->dy,
                                .lda = d->outputs,
                                .b = b->w + first * d->outputs,
                                .ldb = d->outputs,
                                .c = b->dx + first,
                                .ldc = d->inputs});
}

void cpu_dense_backward(struct device *device, const struct dense *dense, size_t batch,
                        const struct backward *backward)
{
    struct cpu *cpu = cpu_of(device);
    size_t outputs = dense->outputs;
    struct dense_work work = cut(dense, batch);
    work.backward = backward;
    if (dense->relu)
        cpu_relu_backward(device, batch * outputs, backward->y, backward->dy, backward->dy);
    cpu_fill(device, backward->dbias, 0.0f, outputs);
    cpu_add_rows(batch, outputs, backward->dy, backward->dbias);
    size_t threads = (size_t)team_threads(cpu->team);
    for (size_t end = work.blocks, count; end > 0; end -= count) {
        count = backward->dw_final && end > threads ? threads : end;
        work.first_block = end - count;
        team_run(cpu->team, count, gradient_item, &work);
        if (backward->dw_final)
            backward->dw_final(backward->dw_final_context, work.first_block * work.width * outputs);
    }
}
