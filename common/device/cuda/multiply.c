/* Matrix products and sums on CUDA, in an order of additions that depends on the shapes alone. */
#include "common/base/check.h"
#include "common/device/cuda/cuda_device.h"
#include "common/device/cuda/kernels/kernels.h"

enum {
    /* Tiles of the result that keep a large GPU busy (132 to 148 multiprocessors, two each), and
     * the edge that a product's tile has at least. */
    TILES_WANTED = 264,
    TILE = 64,
    ROWS_PER_SUM = 64,
};

static struct cuda_blas_product product_of(const struct cuda_gemm *g)
{
    return (struct cuda_blas_product){.a_transposed = g->a_transposed,
                                      .b_transposed = g->b_transposed,
                                      .m = g->m,
                                      .n = g->n,
                                      .k = g->k,
                                      .a = g->a,
                                      .lda = g->lda,
                                      .b = g->b,
                                      .ldb = g->ldb,
                                      .c = g->c,
                                      .ldc = g->ldc,
                                      .count = 1};
}

static void multiply(struct cuda *cuda, const struct cuda_blas_product *product)
{
    if (cuda->failure == STATUS_OK)
        cuda->failure = cuda_blas_multiply(cuda->blas, product);
}

void cuda_multiply(struct cuda *cuda, const struct cuda_gemm *gemm)
{
    struct cuda_blas_product product = product_of(gemm);
    multiply(cuda, &product);
}

size_t cuda_slice(size_t m, size_t n, size_t k, size_t unit)
{
    size_t tiles = ((m + TILE - 1) / TILE) * ((n + TILE - 1) / TILE);
    size_t units = (k + unit - 1) / unit, slices = (TILES_WANTED + tiles - 1) / tiles;
    slices = slices < units ? slices : units;
    return (units + slices - 1) / slices * unit;
}

void cuda_multiply_sliced(struct cuda *cuda, const struct cuda_gemm *gemm, size_t slice)
{
    struct cuda_blas_product product = product_of(gemm);
    size_t whole = gemm->k / slice, rest = gemm->k % slice;
    CHECK(gemm->ldc == gemm->n);
    /* How far the next slice of k lies in A and in B: k runs along rows or down columns. */
    product.stride_a = gemm->a_transposed ? slice * gemm->lda : slice;
    product.stride_b = gemm->b_transposed ? slice : slice * gemm->ldb;
    product.stride_c = gemm->m * gemm->n;
    product.k = slice;
    product.count = whole;
    if (whole > 0)
        multiply(cuda, &product);
    product.a += whole * product.stride_a;
    product.b += whole * product.stride_b;
    product.c += whole * product.stride_c;
    product.k = rest;
    product.count = 1;
    if (rest > 0)
        multiply(cuda, &product);
}

/* -------- sums of columns --------------------------------------------------------------------- */

static size_t groups_of(size_t rows)
{
    return (rows + ROWS_PER_SUM - 1) / ROWS_PER_SUM;
}

size_t cuda_sum_columns_scratch(size_t rows, size_t width)
{
    size_t count = 0;
    while (rows > ROWS_PER_SUM) {
        rows = groups_of(rows);
        count += rows * width;
    }
    return count;
}

/* Groups of rows, then groups of those sums, until one is left: many threads at first, few rows to
 * each. */
void cuda_sum_columns(struct cuda *cuda, size_t rows, size_t width, const float *x, float *totals,
                      float *scratch, bool add)
{
    struct row_sum sum = {.rows = rows, .width = width};
    while (sum.rows > ROWS_PER_SUM) {
        sum.groups = groups_of(sum.rows);
        cuda_keep(cuda, kernel_sum_rows(cuda->compute, &sum, x, scratch), "sums of columns");
        x = scratch;
        scratch += sum.groups * width;
        sum.rows = sum.groups;
    }
    sum.groups = 1;
    sum.add = add;
    cuda_keep(cuda, kernel_sum_rows(cuda->compute, &sum, x, totals), "sums of columns");
}
