#include "common/device/cuda/blas.h"

#include <cublas_v2.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/status.h"
#include "common/base/dynamic.h"

/* The functions that psring calls, by their names in the library (cublas_v2.h renames them). */
struct blas_entries {
    __typeof__(&cublasCreate_v2) create;
    __typeof__(&cublasDestroy_v2) destroy;
    __typeof__(&cublasSetStream_v2) set_stream;
    __typeof__(&cublasSetWorkspace_v2) set_workspace;
    __typeof__(&cublasSetMathMode) set_math_mode;
    __typeof__(&cublasGetProperty) get_property;
    __typeof__(&cublasGetStatusString) status_string;
    __typeof__(&cublasSgemmStridedBatched) multiply;
    __typeof__(&cublasSgemm_v2) multiply_one;
};

struct cuda_blas {
    void *library;
    struct blas_entries call;
    cublasHandle_t handle;
};

/* -------- the library ------------------------------------------------------------------------- */

static void *open_library(void)
{
    /* The library that configure found, then the loader's, then a Python wheel's. */
    static const char *const names[] = {PSRING_CUBLAS_PATH, PSRING_CUBLAS_NAME};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return wheels_open("cublas", PSRING_CUBLAS_NAME);
}

static bool find_all(void *library, struct blas_entries *call)
{
    return symbol_find(library, "cublasCreate_v2", &call->create) &&
           symbol_find(library, "cublasDestroy_v2", &call->destroy) &&
           symbol_find(library, "cublasSetStream_v2", &call->set_stream) &&
           symbol_find(library, "cublasSetWorkspace_v2", &call->set_workspace) &&
           symbol_find(library, "cublasSetMathMode", &call->set_math_mode) &&
           symbol_find(library, "cublasGetProperty", &call->get_property) &&
           symbol_find(library, "cublasGetStatusString", &call->status_string) &&
           symbol_find(library, "cublasSgemmStridedBatched", &call->multiply) &&
           symbol_find(library, "cublasSgemm_v2", &call->multiply_one);
}

static enum status load(struct cuda_blas *blas)
{
    blas->library = open_library();
    if (!blas->library)
        return FAIL(
            STATUS_UNSUPPORTED,
            "cuBLAS: %s cannot be loaded (%s); install it with the CUDA toolkit or name its "
            "folder in LD_LIBRARY_PATH",
            PSRING_CUBLAS_NAME, dlerror());
    if (!find_all(blas->library, &blas->call))
        return FAIL(
            STATUS_UNSUPPORTED,
            "cuBLAS: %s lacks a function that psring needs; use cuBLAS of CUDA 11.6 or newer",
            PSRING_CUBLAS_NAME);
    return STATUS_OK;
}

const char *cuda_blas_version(char *text, size_t bytes)
{
    struct blas_entries call = {0};
    int major, minor, patch;
    const char *version = NULL;
    void *library = open_library();
    if (!library)
        return NULL;
    if (find_all(library, &call) &&
        call.get_property(MAJOR_VERSION, &major) == CUBLAS_STATUS_SUCCESS &&
        call.get_property(MINOR_VERSION, &minor) == CUBLAS_STATUS_SUCCESS &&
        call.get_property(PATCH_LEVEL, &patch) == CUBLAS_STATUS_SUCCESS) {
        snprintf(text, bytes, "%d.%d.%d", major, minor, patch);
        version = text;
    }
    dlclose(library);
    return version;
}

/* -------- the handle -------------------------------------------------------------------------- */

static enum status status_from_cublas(const struct cuda_blas *blas, cublasStatus_t error,
                                      const char *what)
{
    if (error == CUBLAS_STATUS_SUCCESS)
        return STATUS_OK;
    log_error("cuBLAS: %s: %s", what, blas->call.status_string(error));
    return error == CUBLAS_STATUS_ALLOC_FAILED ? STATUS_NO_MEMORY : STATUS_DEVICE;
}

/* Warns of variables that make NVIDIA's libraries override the precision that psring requests. */
static void warn_of_overrides(void)
{
    static const char *const names[] = {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value)
            log_warn("%s=%s is set: cuBLAS may compute in another precision than psring "
                     "asks for; unset it for comparable results",
                     names[i], value);
    }
}

enum status cuda_blas_new(struct cuda_blas **out_blas, struct CUstream_st *stream, void *workspace,
                          bool tf32)
{
    enum status status = STATUS_OK;
    struct cuda_blas *blas = calloc(1, sizeof *blas);
    *out_blas = NULL;
    if (!blas)
        return FAIL(STATUS_NO_MEMORY, "cuBLAS: out of memory");
    TRY(load(blas));
    warn_of_overrides();
    TRY(status_from_cublas(blas, blas->call.create(&blas->handle), "it cannot be started"));
    TRY(status_from_cublas(blas, blas->call.set_stream(blas->handle, stream), "its stream"));
    TRY(status_from_cublas(
        blas, blas->call.set_workspace(blas->handle, workspace, CUDA_BLAS_WORKSPACE_BYTES),
        "its workspace"));
    TRY(status_from_cublas(blas,
                           blas->call.set_math_mode(blas->handle, tf32 ? CUBLAS_TF32_TENSOR_OP_MATH
                                                                       : CUBLAS_DEFAULT_MATH),
                           "its precision"));
    *out_blas = blas;
out:
    if (status != STATUS_OK)
        cuda_blas_free(&blas);
    return status;
}

void cuda_blas_free(struct cuda_blas **out_blas)
{
    struct cuda_blas *blas = *out_blas;
    *out_blas = NULL;
    if (!blas)
        return;
    if (blas->handle)
        blas->call.destroy(blas->handle);
    /* The library stays loaded: unloading it while the driver is in use gains nothing. */
    free(blas);
}

/* -------- products ---------------------------------------------------------------------------- */

static int blas_int(size_t value)
{
    CHECK(value <= INT_MAX);
    return (int)value;
}

/*
 * cuBLAS is column-major: it sees psring's C (m, n) as the transpose C^T = op(B)^T op(A)^T.
 * Therefore A and B swap places, m and n swap too, and neither operand needs a further
 * transposition.
 */
enum status cuda_blas_multiply(struct cuda_blas *blas, const struct cuda_blas_product *p)
{
    const float one = 1.0f, zero = 0.0f;
    cublasOperation_t a_op = p->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t b_op = p->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    int m = blas_int(p->m), n = blas_int(p->n), k = blas_int(p->k);
    int lda = blas_int(p->lda), ldb = blas_int(p->ldb), ldc = blas_int(p->ldc);
    cublasStatus_t error =
        p->count <= 1
            ? blas->call.multiply_one(blas->handle, b_op, a_op, n, m, k, &one, p->b, ldb, p->a, lda,
                                      &zero, p->c, ldc)
            : blas->call.multiply(blas->handle, b_op, a_op, n, m, k, &one, p->b, ldb,
                                  (long long)p->stride_b, p->a, lda, (long long)p->stride_a, &zero,
                                  p->c, ldc, (long long)p->stride_c, blas_int(p->count));
    return status_from_cublas(blas, error, "a matrix product");
}
