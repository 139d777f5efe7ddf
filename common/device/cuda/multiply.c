/* Matrix products on CUDA. The order of additions depends on the shapes alone. */
#include "common/base/status.h"
#include "common/base/util.h"
#include "common/device/cuda/cuda_device.h"

enum {
    /* Tiles of the result that keep a large GPU busy (132 to 148 multiprocessors, two each), and
     * the least edge of a product's tile. */
    TILES_WANTED = 264,
    TILE = 64,
    /* A slice is a multiple of this: a product's kernel steps through k by 8 to 32, and reads four
     * numbers at a time. */
    SLICE_UNIT = 32,
    SLICE_UNIT_LEAST = 4,
};

void cuda_multiply(struct cuda *cuda, const struct cuda_blas_product *product)
{
    if (cuda->failure == STATUS_OK)
        cuda->failure = cuda_blas_multiply(cuda->blas, product);
}

/* Returns the number of slices nearest to `wanted`, from 3/4 to 3/2 of it, that cuts k into equal
 * multiples of `unit`. Returns 0 if there is none. */
static size_t even_slices(size_t k, size_t unit, size_t wanted)
{
    size_t found = 0, least = SIZE_MAX;
    for (size_t slices = (3 * wanted + 3) / 4; slices <= 3 * wanted / 2; slices++) {
        size_t away = slices > wanted ? slices - wanted : wanted - slices;
        if (k % (slices * unit) == 0 && away <= least) {
            found = slices;
            least = away;
        }
    }
    return found;
}

size_t cuda_slice(size_t m, size_t n, size_t k)
{
    size_t tiles = size_divide_up(m, TILE) * size_divide_up(n, TILE);
    size_t units = size_divide_up(k, SLICE_UNIT);
    size_t slices = size_smaller(size_divide_up(TILES_WANTED, tiles), units);
    size_t even = even_slices(k, SLICE_UNIT, slices);
    if (even == 0)
        even = even_slices(k, SLICE_UNIT_LEAST, slices);
    return even > 0 ? k / even : size_divide_up(units, slices) * SLICE_UNIT;
}

void cuda_multiply_sliced(struct cuda *cuda, const struct cuda_blas_product *all, size_t slice)
{
    struct cuda_blas_product product = *all;
    size_t whole = all->k / slice, rest = all->k % slice;
    CHECK(all->ldc == all->n);
    /* The offset of the next slice of k in A and in B: k runs along rows or down columns. */
    product.stride_a = all->a_transposed ? slice * all->lda : slice;
    product.stride_b = all->b_transposed ? slice : slice * all->ldb;
    product.stride_c = all->m * all->n;
    product.k = slice;
    product.count = whole;
    if (whole > 0)
        cuda_multiply(cuda, &product);
    product.a += whole * product.stride_a;
    product.b += whole * product.stride_b;
    product.c += whole * product.stride_c;
    product.k = rest;
    product.count = 1;
    if (rest > 0)
        cuda_multiply(cuda, &product);
}
