/*
 * The number of threads of a kernel, and which elements each thread does. Kernels loop over
 * elements in steps of the whole grid. Any grid therefore gives the right result, and the geometry
 * affects only speed. The .cu files and the host share this header.
 */
#ifndef PSRING_COMMON_DEVICE_CUDA_KERNELS_LAUNCH_H
#define PSRING_COMMON_DEVICE_CUDA_KERNELS_LAUNCH_H

#include <stddef.h>

enum {
    LAUNCH_THREADS = 256,
    LAUNCH_BLOCKS_MAX = 1 << 14 /* several waves on the largest GPUs; with more elements threads
                                 * loop */
};

/* Blocks for `count` elements: one thread per element, at least one block, at most the maximum. */
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

/* Inside a kernel: loops over this thread's share of (count) elements. */
#define EACH(i, count)                                                                             \
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;                                      \
    i < (count);                                                                                   \
    i += (size_t)gridDim.x * blockDim.x

#endif
