/*
 * cuBLAS, opened at run time. Its libraries are large (600 MB, 140 ms to load), and a build with
 * CUDA also serves machines and ranks that compute on CPUs.
 */
#ifndef PSRING_COMMON_DEVICE_CUDA_BLAS_H
#define PSRING_COMMON_DEVICE_CUDA_BLAS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

struct CUstream_st;
struct cuda_blas;

enum { CUDA_BLAS_WORKSPACE_BYTES = 32 * 1024 * 1024 }; /* NVIDIA's advice for Hopper */

/* All products go to `stream` and use `workspace` (device memory; borrowed). A graph can therefore
 * record them, and they give the same bits each time. They use TF32 only with `tf32`.
 * STATUS_UNSUPPORTED (logged) if cuBLAS is missing. */
enum status cuda_blas_new(struct cuda_blas **blas, struct CUstream_st *stream, void *workspace,
                          bool tf32);
void cuda_blas_free(struct cuda_blas **blas);

/* Writes the version ("13.0.2") to `text` and returns it. NULL if cuBLAS cannot be loaded. */
const char *cuda_blas_version(char *text, size_t bytes);

/* Row-major C (m, n) = op(A) op(B), leading dimensions in elements. With `count` there are that
 * many, the i-th at a + i stride_a, and so on. */
struct cuda_blas_product {
    bool a_transposed, b_transposed;
    size_t m, n, k;
    const float *a;
    size_t lda, stride_a;
    const float *b;
    size_t ldb, stride_b;
    float *c;
    size_t ldc, stride_c;
    size_t count; /* 0: one */
};
enum status cuda_blas_multiply(struct cuda_blas *blas, const struct cuda_blas_product *product);

#endif
