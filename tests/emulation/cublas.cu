/* A stand-in for the functions of cuBLAS that psring calls. It uses CBLAS, column-major like
 * cuBLAS. It is a separate library, opened at run time like cuBLAS, and enqueues its work with the
 * program's emulated run-time. If TF32 is allowed, matrices are rounded to TF32. */
#include <cblas.h>
#include <cublas_v2.h>
#include <vector>

#include "tests/emulation/emulation.h"

static char handle;

/* Each operand counts once: the least traffic of a product. */
static struct emulation_cost cost_of(double m, double n, double k, double count)
{
    return {2 * m * n * k * count, sizeof(float) * (m * k + k * n) * count,
            sizeof(float) * m * n * count};
}

/* The state of the process's only handle. */
static bool tf32;
static cudaStream_t stream;

static CBLAS_TRANSPOSE transposed(cublasOperation_t op)
{
    return op == CUBLAS_OP_T ? CblasTrans : CblasNoTrans;
}

/* An operand of a product, rounded if TF32 is allowed: `rows` x `columns` before transposition. */
struct operand {
    std::vector<float> copy;
    const float *values;

    operand(const float *matrix, int rows, int columns, int stride)
        : copy(tf32 ? matrix : NULL,
               tf32 ? matrix + (size_t)stride * (size_t)(columns - 1) + rows : NULL),
          values(tf32 ? copy.data() : matrix)
    {
        for (float &value : copy)
            value = emulation_tf32(value);
    }
};

struct product {
    cublasOperation_t a_op, b_op;
    int m, n, k, lda, ldb, ldc;
    float alpha, beta;
};

static void multiply(const struct product &p, const float *a, const float *b, float *c)
{
    bool a_turned = p.a_op == CUBLAS_OP_T, b_turned = p.b_op == CUBLAS_OP_T;
    operand left(a, a_turned ? p.k : p.m, a_turned ? p.m : p.k, p.lda),
        right(b, b_turned ? p.n : p.k, b_turned ? p.k : p.n, p.ldb);
    cblas_sgemm(CblasColMajor, transposed(p.a_op), transposed(p.b_op), p.m, p.n, p.k, p.alpha,
                left.values, p.lda, right.values, p.ldb, p.beta, c, p.ldc);
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

cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t its_stream)
{
    stream = its_stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void *, size_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t mode)
{
    tf32 = mode == CUBLAS_TF32_TENSOR_OP_MATH;
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
    struct product p = {a_op, b_op, m, n, k, lda, ldb, ldc, *alpha, *beta};
    emulation_enqueue("product", cost_of(m, n, k, 1), stream, [=] { multiply(p, a, b, c); });
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t, cublasOperation_t a_op,
                                         cublasOperation_t b_op, int m, int n, int k,
                                         const float *alpha, const float *a, int lda,
                                         long long stride_a, const float *b, int ldb,
                                         long long stride_b, const float *beta, float *c, int ldc,
                                         long long stride_c, int count)
{
    struct product p = {a_op, b_op, m, n, k, lda, ldb, ldc, *alpha, *beta};
    emulation_enqueue("products", cost_of(m, n, k, count), stream, [=] {
        for (int i = 0; i < count; i++)
            multiply(p, a + i * stride_a, b + i * stride_b, c + i * stride_c);
    });
    return CUBLAS_STATUS_SUCCESS;
}

} /* extern "C" */
