/*
 * What a .cu file needs to be compiled as C++ for the host (included before it by the compiler): a
 * launch becomes two loops, over blocks and over the threads of each. Our kernels use neither
 * shared memory nor barriers, and their threads write to different places or count themselves in
 * (tree.h), so that this computes what a GPU computes. A GPU's threads come in any order: with
 * EMULATED_ORDER=backwards the last one is first. Arguments are copied at the launch, as CUDA does,
 * so that launches can be recorded.
 */
#ifndef PSRING_TESTS_EMULATION_EMULATION_H
#define PSRING_TESTS_EMULATION_EMULATION_H

#include <cuda_runtime_api.h>
#include <functional>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <tuple>

#include "tests/emulation/watch.h"

#undef __global__
#undef __device__
#undef __host__
#define __global__
#define __device__
#define __host__

/* Does the work, or, while a stream is recorded, remembers it. `name`: a constant. */
extern "C" void emulation_enqueue(const char *name, const struct emulation_cost &known,
                                  cudaStream_t stream, std::function<void()> work);

/* NULL, or who decides when work is done (faults.cu). Libraries' stand-ins ask here, too. */
extern "C" void (*emulation_gate)(cudaStream_t stream, const std::function<void()> &work);

static inline float emulation_fmaf(float a, float b, float c)
{
    emulation_fused++;
    return fmaf(a, b, c);
}
#define fmaf(a, b, c) emulation_fmaf(a, b, c)

/* As tensor cores see a float32: ten bits of mantissa. */
static inline float emulation_tf32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (!isfinite(value)) /* and stays it: fresh memory is NaN */
        return value;
    bits = (bits + 0xfff + ((bits >> 13) & 1)) & ~(uint32_t)0x1fff;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* Threads follow each other: each sees what those before it have written. */
static inline void __threadfence(void)
{
}

static inline unsigned atomicAdd(unsigned *to, unsigned value)
{
    unsigned before = *to;
    *to = before + value;
    return before;
}

struct emulation_index {
    unsigned x;
};
inline thread_local struct emulation_index blockIdx, threadIdx, blockDim, gridDim;

/* Calls `thread` for each of all threads. */
void emulation_grid(unsigned blocks, unsigned threads, const std::function<void()> &thread);

#define LAUNCH(kernel, count, stream, ...)                                                         \
    emulation_enqueue(#kernel, {}, stream,                                                         \
                      [blocks = launch_blocks(count), arguments = std::make_tuple(__VA_ARGS__)] {  \
                          emulation_grid(blocks, LAUNCH_THREADS, [&arguments] {                    \
                              std::apply([](auto... each) { kernel(each...); }, arguments);        \
                          });                                                                      \
                      })

#endif
