/* The CPU device. Only the files of this folder include this header. */
#ifndef PSRING_COMMON_DEVICE_CPU_CPU_H
#define PSRING_COMMON_DEVICE_CPU_CPU_H

#include "common/device/device.h"
#include "common/device/cpu/team.h"

struct cpu {
    struct device device; /* first: a struct device * of this kind is a struct cpu * */
    struct team *team;

    /* Scratch memory. The prepare entries grow it to the largest need of any shape. Its contents
     * are valid only within the operation that wrote them. */
    float *scratch;       /* (threads, scratch_count): one part per thread */
    size_t scratch_count; /* a multiple of 16 floats, so that every part is aligned */
    float *partial;       /* (partial_count): results of items, until they are summed in order */
    size_t partial_count;
};

static inline struct cpu *cpu_of(struct device *device)
{
    return (struct cpu *)(void *)device;
}

static inline float *cpu_scratch(struct cpu *cpu, int thread)
{
    return cpu->scratch + (size_t)thread * cpu->scratch_count;
}

/* Grows the scratch memory to `scratch` floats per thread and `partial` floats in all. */
enum status cpu_reserve(struct cpu *cpu, size_t scratch, size_t partial);

/* Rounds up to a whole cache line of floats. */
static inline size_t cpu_round_up(size_t count)
{
    return (count + 15) / 16 * 16;
}

/* C (m, n) = op(A) op(B) + beta C, row-major, leading dimensions in elements. */
enum gemm_op { GEMM_AS_IS, GEMM_TRANSPOSED };
struct gemm {
    enum gemm_op a_op, b_op;
    size_t m, n, k;
    const float *a;
    size_t lda;
    const float *b;
    size_t ldb;
    float *c;
    size_t ldc;
    float beta;
};
void cpu_gemm(const struct gemm *gemm);

/* totals[j] += sum over i of rows[i][j], i in order; (count, width). */
void cpu_add_rows(size_t count, size_t width, const float *rows, float *totals);

void cpu_fill(struct device *, float *to, float value, size_t count);
void cpu_gather(struct device *, const struct gather *, size_t batch, const uint32_t *samples,
                float *images, uint8_t *labels);

/* ops.h has the contracts of these. */
enum status cpu_conv2d_prepare(struct device *, struct conv2d *, size_t batch_max);
void cpu_conv2d_forward(struct device *, const struct conv2d *, size_t batch, const float *x,
                        const float *w, const float *bias, float *y, uint8_t *index);
void cpu_conv2d_backward(struct device *, const struct conv2d *, size_t batch,
                         const struct backward *);

void cpu_maxpool_forward(struct device *, const struct pool2d *, size_t batch, const float *x,
                         float *y, uint8_t *index);
void cpu_maxpool_backward(struct device *, const struct pool2d *, size_t batch,
                          const uint8_t *index, const float *dy, float *dx);

enum status cpu_dense_prepare(struct device *, const struct dense *, size_t batch_max);
size_t cpu_dense_rows(const struct device *, const struct dense *);
void cpu_dense_forward(struct device *, const struct dense *, size_t batch, struct dense_rows,
                       const float *x, const float *w, const float *bias, float *y);
void cpu_dense_backward(struct device *, const struct dense *, size_t batch, struct dense_rows,
                        const struct backward *);

void cpu_relu_forward(struct device *, size_t count, const float *x, float *y);
void cpu_relu_backward(struct device *, size_t count, const float *y, const float *dy, float *dx);
void cpu_dropout(struct device *, const struct dropout *, size_t count, const float *x, float *y);
void cpu_softmax_cross_entropy(struct device *, size_t batch, size_t classes, double divisor,
                               const float *logits, const uint8_t *labels, float *dlogits,
                               struct loss_sum *sum);

void cpu_adam_count(struct device *, const struct update *);
void cpu_update(struct device *, const struct update *, size_t count, float *parameters,
                const float *gradients, float *state);

/* Max-pools one block of rows; the fused convolution uses it too. Output rows are (width / 2,
 * channels). Output row y reads input rows 2y and 2y + 1, each (width, channels). */
void cpu_maxpool_rows(size_t out_rows, size_t width, size_t channels, const float *x, float *y,
                      uint8_t *index);
/* Writes all of the 2 x out_rows rows of dx. If `y` is not NULL (relu), dy counts as 0 where y is
 * not positive. */
void cpu_maxpool_rows_backward(size_t out_rows, size_t width, size_t channels, const float *dy,
                               const float *y, const uint8_t *index, float *dx);

#endif
