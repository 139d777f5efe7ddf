#include "common/device/cpu/lines.h"

#include <string.h>

#include "common/device/cpu/cpu.h"
#include "common/device/kernel.h"

/* -------- moving data ------------------------------------------------------------------------- */

/* The part of a run that is inside the image: `count` values, after `skip` in the padding. */
struct clip {
    size_t skip, count;
    size_t from; /* value of the image's row */
};

static struct clip clip_run(const struct conv2d *c, size_t column)
{
    size_t left = column < c->padding ? c->padding - column : 0;
    size_t from = column > c->padding ? column - c->padding : 0;
    size_t inside = from < c->width ? c->width - from : 0;
    size_t wanted = c->kernel - left;
    size_t taken = wanted < inside ? wanted : inside;
    return (struct clip){left * c->channels, taken * c->channels, from * c->channels};
}

KERNEL void cpu_lines_make(const struct conv2d *c, const struct geometry *g, const float *image,
                           float *lines)
{
    for (size_t i = 0; i < c->height; i++, image += c->width * c->channels) {
        for (size_t j = 0; j < g->window_width; j++, lines += g->run) {
            struct clip clip = clip_run(c, j);
            if (clip.count < g->run)
                memset(lines, 0, g->run * sizeof *lines);
            float *restrict to = lines + clip.skip;
            const float *restrict from = image + clip.from;
            for (size_t r = 0; r < clip.count; r++)
                to[r] = from[r];
        }
    }
}

KERNEL void cpu_lines_add(const struct conv2d *c, const struct geometry *g, const float *lines,
                          float *image)
{
    for (size_t i = 0; i < c->height; i++, image += c->width * c->channels) {
        memset(image, 0, c->width * c->channels * sizeof *image);
        for (size_t j = 0; j < g->window_width; j++, lines += g->run) {
            struct clip clip = clip_run(c, j);
            float *restrict to = image + clip.from;
            const float *restrict from = lines + clip.skip;
            for (size_t r = 0; r < clip.count; r++)
                to[r] += from[r];
        }
    }
}

/* -------- products ---------------------------------------------------------------------------- */

/*
 * Where a line is as short as in a first layer (3 values in keras-cnn), a call to BLAS costs more
 * than the product. So those are written out, a vector of columns at a time.
 */
enum { SHORT = 8, LANES = 16 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

KERNEL static void multiply_short(size_t m, size_t n, size_t k, const float *restrict a,
                                  const float *restrict b, float *restrict c)
{
    for (size_t i = 0; i < m; i++, a += k, c += n) {
        size_t j = 0;
        for (; j + LANES <= n; j += LANES) {
            lanes sum = *(const lanes *)(c + j);
            for (size_t l = 0; l < k; l++)
                sum += a[l] * *(const lanes *)(b + l * n + j);
            *(lanes *)(c + j) = sum;
        }
        for (; j < n; j++) {
            for (size_t l = 0; l < k; l++)
                c[j] += a[l] * b[l * n + j];
        }
    }
}

/* Four rows of c at a time, so that four sums are under way at once; where fewer are left the last
 * row is computed again and not stored. */
KERNEL static void multiply_short_transposed(size_t m, size_t n, size_t k, const float *restrict a,
                                             const float *restrict b, float *restrict c)
{
    size_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        for (size_t l = 0; l < k; l += 4) {
            size_t l1 = l + 1 < k ? l + 1 : l, l2 = l + 2 < k ? l + 2 : l,
                   l3 = l + 3 < k ? l + 3 : l;
            lanes sum0 = {0}, sum1 = {0}, sum2 = {0}, sum3 = {0};
            for (size_t i = 0; i < m; i++) {
                lanes row = *(const lanes *)(b + i * n + j);
                sum0 += a[i * k + l] * row;
                sum1 += a[i * k + l1] * row;
                sum2 += a[i * k + l2] * row;
                sum3 += a[i * k + l3] * row;
            }
            *(lanes *)(c + l * n + j) += sum0;
            if (l1 > l)
                *(lanes *)(c + l1 * n + j) += sum1;
            if (l2 > l)
                *(lanes *)(c + l2 * n + j) += sum2;
            if (l3 > l)
                *(lanes *)(c + l3 * n + j) += sum3;
        }
    }
    for (; j < n; j++) {
        for (size_t l = 0; l < k; l++) {
            float sum = 0.0f;
            for (size_t i = 0; i < m; i++)
                sum += a[i * k + l] * b[i * n + j];
            c[l * n + j] += sum;
        }
    }
}

void cpu_lines_multiply(size_t m, size_t n, size_t k, const float *a, const float *b, float *c)
{
    if (k <= SHORT)
        multiply_short(m, n, k, a, b, c);
    else if (m > 0)
        cpu_gemm(&(struct gemm){.m = m,
                                .n = n,
                                .k = k,
                                .a = a,
                                .lda = k,
                                .b = b,
                                .ldb = n,
                                .c = c,
                                .ldc = n,
                                .beta = 1});
}

void cpu_lines_multiply_transposed(size_t m, size_t n, size_t k, const float *a, const float *b,
                                   float *c)
{
    if (k <= SHORT)
        multiply_short_transposed(m, n, k, a, b, c);
    else if (m > 0)
        cpu_gemm(&(struct gemm){.a_op = GEMM_TRANSPOSED,
                                .m = k,
                                .n = n,
                                .k = m,
                                .a = a,
                                .lda = k,
                                .b = b,
                                .ldb = n,
                                .c = c,
                                .ldc = n,
                                .beta = 1});
}
