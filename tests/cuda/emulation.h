/*
 * What a .cu file needs to be compiled as C++ for the host (included before it by the compiler): a
 * launch becomes two loops, over blocks and over the threads of each. Our kernels use neither
 * shared memory nor barriers, and their threads write to different places, so that this computes
 * what a GPU computes. Arguments are copied at the launch, as CUDA does, so that launches can be
 * recorded.
 */
#ifndef PSRING_TESTS_CUDA_EMULATION_H
#define PSRING_TESTS_CUDA_EMULATION_H

#include <cuda_runtime_api.h>
#include <functional>
#include <math.h>
#include <tuple>

#undef __global__
#undef __device__
#undef __host__
#define __global__
#define __device__
#define __host__

/* Does the work, or, while a stream is recorded, remembers it. */
void emulation_enqueue(std::function<void()> work);

struct emulation_index {
    unsigned x;
};
inline thread_local struct emulation_index blockIdx, threadIdx, blockDim, gridDim;

static inline void emulation_grid(unsigned blocks, unsigned threads,
                                  const std::function<void()> &thread)
{
    gridDim.x = blocks;
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
        for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++)
            thread();
    }
}

#define LAUNCH(kernel, count, stream, ...)                                                         \
    emulation_enqueue([blocks = launch_blocks(count), arguments = std::make_tuple(__VA_ARGS__)] {  \
        emulation_grid(blocks, LAUNCH_THREADS, [&arguments] {                                      \
            std::apply([](auto... each) { kernel(each...); }, arguments);                          \
        });                                                                                        \
    });                                                                                            \
    (void)(stream)

#endif
