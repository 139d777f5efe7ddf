#include "common/device/cpu/cpu.h"

#include <cblas.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/device/open.h"

/* -------- gemm -------------------------------------------------------------------------------- */

static int blas_int(size_t value)
{
    CHECK(value <= INT_MAX);
    return (int)value;
}

void cpu_gemm(const struct gemm *g)
{
    cblas_sgemm(CblasRowMajor, g->a_op == GEMM_TRANSPOSED ? CblasTrans : CblasNoTrans,
                g->b_op == GEMM_TRANSPOSED ? CblasTrans : CblasNoTrans, blas_int(g->m),
                blas_int(g->n), blas_int(g->k), 1.0f, g->a, blas_int(g->lda), g->b,
                blas_int(g->ldb), g->beta, g->c, blas_int(g->ldc));
}

/* -------- memory ------------------------------------------------------------------------------ */

static enum status cpu_alloc(struct device *device, size_t bytes, void **memory)
{
    (void)device;
    *memory = NULL;
    if (bytes > SIZE_MAX - 64)
        return STATUS_NO_MEMORY;
    *memory = aligned_alloc(64, bytes ? (bytes + 63) / 64 * 64 : 64);
    return *memory ? STATUS_OK : STATUS_NO_MEMORY;
}

static void cpu_free(struct device *device, void *memory)
{
    (void)device;
    free(memory);
}

static void cpu_transfer(struct device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    if (bytes && to != from)
        memcpy(to, from, bytes);
}

void cpu_fill(struct device *device, float *to, float value, size_t count)
{
    (void)device;
    for (size_t i = 0; i < count; i++)
        to[i] = value;
}

static void cpu_copy(struct device *device, float *to, const float *from, size_t count)
{
    cpu_transfer(device, to, from, count * sizeof *to);
}

static void cpu_scale(struct device *device, float *values, float factor, size_t count)
{
    (void)device;
    for (size_t i = 0; i < count; i++)
        values[i] *= factor;
}

static enum status grow(struct cpu *cpu, const char *what, float **memory, size_t parts,
                        size_t count)
{
    void *larger;
    enum status status = device_alloc(&cpu->device, what, parts * count * sizeof **memory, &larger);
    if (status != STATUS_OK)
        return status;
    cpu_free(&cpu->device, *memory);
    *memory = larger;
    return STATUS_OK;
}

enum status cpu_reserve(struct cpu *cpu, size_t scratch, size_t partial)
{
    enum status status = STATUS_OK;
    scratch = cpu_round_up(scratch);
    if (scratch > cpu->scratch_count) {
        TRY(grow(cpu, "scratch", &cpu->scratch, (size_t)team_threads(cpu->team), scratch));
        cpu->scratch_count = scratch;
    }
    if (partial > cpu->partial_count) {
        TRY(grow(cpu, "partial sums", &cpu->partial, 1, partial));
        cpu->partial_count = partial;
    }
out:
    return status;
}

/* -------- the device -------------------------------------------------------------------------- */

static enum status cpu_sync(struct device *device)
{
    (void)device;
    return STATUS_OK;
}

static void cpu_close(struct device *device)
{
    struct cpu *cpu = cpu_of(device);
    team_free(&cpu->team);
    free(cpu->scratch);
    free(cpu->partial);
    free(cpu);
}

static const struct device_ops cpu_ops = {
    .name = "cpu",
    .close = cpu_close,
    .sync = cpu_sync,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_transfer,
    .download = cpu_transfer,
    .fill = cpu_fill,
    .copy = cpu_copy,
    .scale = cpu_scale,
    .gather = cpu_gather,
    .conv2d_prepare = cpu_conv2d_prepare,
    .conv2d_forward = cpu_conv2d_forward,
    .conv2d_backward = cpu_conv2d_backward,
    .maxpool_forward = cpu_maxpool_forward,
    .maxpool_backward = cpu_maxpool_backward,
    .dense_prepare = cpu_dense_prepare,
    .dense_rows = cpu_dense_rows,
    .dense_forward = cpu_dense_forward,
    .dense_backward = cpu_dense_backward,
    .relu_forward = cpu_relu_forward,
    .relu_backward = cpu_relu_backward,
    .dropout = cpu_dropout,
    .softmax_cross_entropy = cpu_softmax_cross_entropy,
    .adam_count = cpu_adam_count,
    .update = cpu_update,
};

enum status cpu_open(struct device **device, const struct device_options *options)
{
    enum status status = STATUS_OK;
    struct cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return FAIL(STATUS_NO_MEMORY, "the cpu device: out of memory");
    cpu->device.ops = &cpu_ops;
    TRY(team_new(&cpu->team, options->threads > 0 ? options->threads : 1));
#ifdef PSRING_CBLAS_SETS_THREADS
    /* psring uses threads over images and blocks itself. Results then do not depend on the number
     * of threads, and several ranks on one machine do not each start a thread per core. */
    openblas_set_num_threads(1);
#endif
    *device = &cpu->device;
out:
    if (status != STATUS_OK)
        cpu_close(&cpu->device);
    return status;
}
