/*
 * Dense layers. The work is cut along the inputs, into blocks whose number depends on the layer
 * alone. Forward, each block gives a partial sum of the outputs, and the partial sums are added in
 * block order. Backward, each block owns its rows of dw and its columns of dx. A cut along the
 * batch would make every item read (and BLAS repack) all weights. A call computes whole blocks. A
 * caller that computes rows piecewise gets one block per thread.
 */
#include "common/base/status.h"
#include "common/base/util.h"
#include "common/device/cpu/cpu.h"
#include "common/device/kernel.h"

struct dense_work {
    const struct dense *dense;
    size_t batch;
    size_t blocks, width; /* of inputs; the last block may be narrower */
    const float *x, *w, *bias;
    float *y;
    float *partial; /* (blocks, batch, outputs) */
    const struct backward *backward;
    size_t first_block, end_block; /* of this call's rows */
};

static struct dense_work cut(const struct dense *dense, size_t batch, struct dense_rows rows)
{
    size_t blocks = size_divide_up(dense->inputs, DENSE_BLOCK_INPUTS);
    size_t width = cpu_round_up(size_divide_up(dense->inputs, blocks));
    CHECK(rows.first % width == 0 && (rows.end % width == 0 || rows.end == dense->inputs));
    return (struct dense_work){.dense = dense,
                               .batch = batch,
                               .blocks = size_divide_up(dense->inputs, width),
                               .width = width,
                               .first_block = rows.first / width,
                               .end_block = size_divide_up(rows.end, width)};
}

static size_t width_of(const struct dense_work *work, size_t block)
{
    return size_smaller(work->dense->inputs - block * work->width, work->width);
}

enum status cpu_dense_prepare(struct device *device, const struct dense *dense, size_t batch_max)
{
    CHECK(dense->inputs > 0 && dense->outputs > 0);
    struct dense_work work = cut(dense, batch_max, dense_all_rows(dense));
    return cpu_reserve(cpu_of(device), 0, work.blocks * batch_max * dense->outputs);
}

size_t cpu_dense_rows(const struct device *device, const struct dense *dense)
{
    struct dense_work work = cut(dense, 1, dense_all_rows(dense));
    return work.width * (size_t)team_threads(((const struct cpu *)(const void *)device)->team);
}

/* -------- forward ----------------------------------------------------------------------------- */

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
                       struct dense_rows rows, const float *x, const float *w, const float *bias,
                       float *y)
{
    struct cpu *cpu = cpu_of(device);
    struct dense_work work = cut(dense, batch, rows);
    CHECK(work.blocks * batch * dense->outputs <= cpu->partial_count);
    work.x = x;
    work.w = w;
    work.bias = bias;
    work.y = y;
    work.partial = cpu->partial;
    team_run(cpu->team, work.end_block - work.first_block, multiply_item, &work);
    if (rows.first == 0)
        team_run(cpu->team, batch, finish_item, &work);
}

/* -------- backward ---------------------------------------------------------------------------- */

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
                        struct dense_rows rows, const struct backward *backward)
{
    struct cpu *cpu = cpu_of(device);
    size_t outputs = dense->outputs;
    struct dense_work work = cut(dense, batch, rows);
    work.backward = backward;
    if (rows.end == dense->inputs) {
        if (dense->relu)
            cpu_relu_backward(device, batch * outputs, backward->y, backward->dy, backward->dy);
        cpu_fill(device, backward->dbias, 0.0f, outputs);
        cpu_add_rows(batch, outputs, backward->dy, backward->dbias);
    }
    team_run(cpu->team, work.end_block - work.first_block, gradient_item, &work);
}
