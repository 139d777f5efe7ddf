/* Shared by the kernels over images (.cu only): vectors of channels, places in a batch, relu. */
#ifndef PSRING_COMMON_DEVICE_CUDA_KERNELS_PIXELS_H
#define PSRING_COMMON_DEVICE_CUDA_KERNELS_PIXELS_H

#include <stddef.h>
#include <stdint.h>

/* `N` floats that are read and written at once: 16 bytes for four. */
template <int N> struct alignas(4 * N) vector {
    float at[N];

    __device__ void operator+=(const vector &other)
    {
        for (int n = 0; n < N; n++)
            at[n] += other.at[n];
    }
};

/* The positions of N maxima. */
template <int N> struct alignas(N) positions {
    uint8_t at[N];
};

/* Whether rows of `width` floats can be read as vectors of four from any row on. A NULL pointer
 * counts as aligned. */
static inline bool in_fours(size_t width, const void *a, const void *b, const void *c = NULL)
{
    return width % 4 == 0 && ((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) % 16 == 0;
}

/* "Negative becomes 0" keeps a NaN a NaN, as on the CPU. */
static __device__ inline float relu_of(float x)
{
    return x < 0.0f ? 0.0f : x;
}

/* A position in a batch of images of height x width pixels of `vectors` vectors each. */
struct place {
    uint32_t image, row, column, vector;
};

/* In 32 bits, because 64-bit divisions cost several times as much. */
static __device__ inline struct place place_of(uint32_t i, uint32_t height, uint32_t width,
                                               uint32_t vectors)
{
    struct place p;
    p.vector = i % vectors;
    i /= vectors;
    p.column = i % width;
    i /= width;
    p.row = i % height;
    p.image = i / height;
    return p;
}

#endif
