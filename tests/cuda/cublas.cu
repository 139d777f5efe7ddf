/* A stand-in for the functions of cuBLAS that psring calls, by CBLAS, column-major as cuBLAS is. A
 * library of its own, opened at run time as cuBLAS is; what it enqueues goes to the program's
 * emulated run-time. */
#include <cblas.h>
#include <cublas_v2.h>

#include "tests/cuda/emulation.h"

static char handle;

/* Each operand once: what a product moves at least. */
static struct emulation_cost cost_of(double m, double n, double k, double count)
{
    return {2 * m * n * k * count, sizeof(float) * (m * k + k * n) * count,
            sizeof(float) * m * n * count};
}

static CBLAS_TRANSPOSE transposed(cublasOperation_t op)
{
    return op == CUBLAS_OP_T ? CblasTrans : CblasNoTrans;
}

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t *blas)
{
    *blas = (cublasHandle_t)&handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void *, size_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType, int *value)
{
    *value = 0;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t)
{
    return "emulated error";
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t, cublasOperation_t a_op, cublasOperation_t b_op, int m,
                              int n, int k, const float *alpha, const float *a, int lda,
                              const float *b, int ldb, const float *beta, float *c, int ldc)
{
    float alpha_now = *alpha, beta_now = *beta;
    emulation_enqueue("product", cost_of(m, n, k, 1), [=] {
        cblas_sgemm(CblasColMajor, transposed(a_op), transposed(b_op), m, n, k, alpha_now, a, lda,
                    b, ldb, beta_now, c, ldc);
    });
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t, cublasOperation_t a_op,
                                         cublasOperation_t b_op, int m, int n, int k,
                                         const float *alpha, const float *a, int lda,
                                         long long stride_a, const float *b, int ldb,
                                         long long stride_b, const float *beta, float *c, int ldc,
                                         long long stride_c, int count)
{
    float alpha_now = *alpha, beta_now = *beta;
    emulation_enqueue("products", cost_of(m, n, k, count), [=] {
        for (int i = 0; i < count; i++)
            cblas_sgemm(CblasColMajor, transposed(a_op), transposed(b_op), m, n, k, alpha_now,
                        a + i * stride_a, lda, b + i * stride_b, ldb, beta_now, c + i * stride_c,
                        ldc);
    });
    return CUBLAS_STATUS_SUCCESS;
}

} /* extern "C" */
