/* Kernel: transposes a matrix. */
#include "common/device/cuda/kernels/kernels.h"
#include "common/device/cuda/kernels/launch.h"

/* Neighbouring threads write neighbouring elements. Their reads are scattered, but a layer's
 * weights stay in the cache. */
static __global__ void transpose(size_t count, uint32_t rows, uint32_t width, const float *from,
                                 float *to)
{
    for (EACH(i, count))
        to[i] = from[i % rows * width + i / rows];
}

int kernel_transpose(struct CUstream_st *stream, size_t rows, size_t width, const float *from,
                     float *to)
{
    size_t count = rows * width;
    LAUNCH(transpose, count, stream, count, (uint32_t)rows, (uint32_t)width, from, to);
    return (int)cudaGetLastError();
}
