/*
 * How many threads a kernel gets, and which elements each of them does: kernels loop over elements
 * in steps of the whole grid, so that any grid gives the right result and the geometry is a matter
 * of speed alone. Shared by the .cu files and by the host.
 */
#ifndef PSRING_COMMON_DEVICE_CUDA_KERNELS_LAUNCH_H
#define PSRING_COMMON_DEVICE_CUDA_KERNELS_LAUNCH_H

#include <stddef.h>

enum {
    LAUNCH_THREADS = 256,
    LAUNCH_BLOCKS_MAX = 1 << 14 /* some waves on the largest GPUs; beyond it threads loop */
};

/* Blocks for `count` elements: at least one, a thread for each element while blocks last. */
static inline unsigned launch_blocks(size_t count)
{
    size_t blocks = count / LAUNCH_THREADS + (count % LAUNCH_THREADS != 0);
    blocks = blocks < LAUNCH_BLOCKS_MAX ? blocks : LAUNCH_BLOCKS_MAX;
    return blocks ? (unsigned)blocks : 1u;
}

#if defined(__CUDACC__)
/* LAUNCH(kernel, elements, stream, arguments...) */
#define LAUNCH(kernel, count, stream, ...)                                                         \
    kernel<<<launch_blocks(count), LAUNCH_THREADS, 0, stream>>>(__VA_ARGS__)
#endif

/* Inside a kernel: for each of (count) elements that are this thread's. */
#define EACH(i, count)                                                                             \
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;                                      \
    i < (count);                                                                                   \
    i += (size_t)gridDim.x * blockDim.x

#endif
