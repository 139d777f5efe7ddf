/*
 * Compiles a .cu file as C++ for the host; the compiler includes this header before the file. A
 * launch becomes two loops, over blocks and over the threads of each block. psring's kernels use
 * neither shared memory nor barriers. Their threads write to different places, or count themselves
 * in (tree.h). The loops therefore compute what a GPU computes. A GPU's threads run in any order:
 * with EMULATED_ORDER=backwards the last one runs first. As with CUDA, a launch copies its
 * arguments, so launches can be recorded.
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

/* Does the work, or remembers it while a stream is recorded. `name`: a constant. */
extern "C" void emulation_enqueue(const char *name, const struct emulation_cost &known,
                                  cudaStream_t stream, std::function<void()> work);

/* NULL, or the function that decides when work is done (faults.cu). Stand-ins for libraries use it,
 * too. */
extern "C" void (*emulation_gate)(cudaStream_t stream, const std::function<void()> &work);

static inline float emulation_fmaf(float a, float b, float c)
{
    emulation_fused++;
    return fmaf(a, b, c);
}
#define fmaf(a, b, c) emulation_fmaf(a, b, c)

/* Rounds a float32 like tensor cores do: ten bits of mantissa remain. */
static inline float emulation_tf32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (!isfinite(value)) /* unchanged: fresh memory is NaN */
        return value;
    bits = (bits + 0xfff + ((bits >> 13) & 1)) & ~(uint32_t)0x1fff;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* Threads run one after the other: each sees all writes of those before it. */
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

/* Calls `thread` once for every thread of every block. */
void emulation_grid(unsigned blocks, unsigned threads, const std::function<void()> &thread);

#define LAUNCH(kernel, count, stream, ...)                                                         \
    emulation_enqueue(#kernel, {}, stream,                                                         \
                      [blocks = launch_blocks(count), arguments = std::make_tuple(__VA_ARGS__)] {  \
                          emulation_grid(blocks, LAUNCH_THREADS, [&arguments] {                    \
                              std::apply([](auto... each) { kernel(each...); }, arguments);        \
                          });                                                                      \
                      })

#endif
