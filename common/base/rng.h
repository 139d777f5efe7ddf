/*
 * Counter-based random numbers: a number is a pure function of (key, counter). A stream therefore
 * does not depend on the number of threads, on the order of evaluation or on the device (CPU or
 * CUDA). Philox4x32-10. Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy
 * as 1, 2, 3", section 3.3. No global state; header-only so that CUDA kernels can include it.
 */
#ifndef PSRING_COMMON_BASE_RNG_H
#define PSRING_COMMON_BASE_RNG_H

#include <stdint.h>

#ifdef __CUDACC__
#define RNG_FUNCTION static inline __host__ __device__
#else
#define RNG_FUNCTION static inline
#endif

/* A key names a stream. Derive one per purpose with rng_key(seed, purpose, index). */
struct rng_key {
    uint32_t word[2];
};

struct rng_block {
    uint32_t word[4];
};

/* The purpose of a stream. It is part of the key, so that no two uses share numbers. */
enum rng_purpose {
    RNG_INIT = 1,    /* initial parameters; index = position of the tensor in the table */
    RNG_SHUFFLE = 2, /* epoch permutation; index = epoch */
    RNG_DROPOUT = 3, /* index = rank; the counter carries step, layer and element */
    RNG_TEST = 4,
    RNG_RESAMPLE = 5, /* bootstrap; the counter carries resample and element */
    RNG_AUGMENT = 6,  /* index = epoch; the counter carries the image's number */
    RNG_SKEW = 7,     /* index = rank; the counter carries the operation */
    RNG_LOSS = 8,     /* index = port; the counter carries its frame */
};

/* splitmix64's finaliser: a bijection of 64-bit words that mixes all bits. */
RNG_FUNCTION uint64_t rng_mix64(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

RNG_FUNCTION struct rng_key rng_key(uint64_t seed, uint32_t purpose, uint64_t index)
{
    uint64_t mixed = rng_mix64(rng_mix64(rng_mix64(seed) ^ purpose) ^ index);
    struct rng_key key = {{(uint32_t)mixed, (uint32_t)(mixed >> 32)}};
    return key;
}

/* Four independent 32-bit words for the 128-bit counter {low, high}. */
RNG_FUNCTION struct rng_block rng_block(struct rng_key key, uint64_t low, uint64_t high)
{
    struct rng_block x = {
        {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)}};
    uint32_t k0 = key.word[0], k1 = key.word[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = UINT64_C(0xD2511F53) * x.word[0];
        uint64_t b = UINT64_C(0xCD9E8D57) * x.word[2];
        struct rng_block y = {{(uint32_t)(b >> 32) ^ x.word[1] ^ k0, (uint32_t)b,
                               (uint32_t)(a >> 32) ^ x.word[3] ^ k1, (uint32_t)a}};
        x = y;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return x;
}

/* Uniform in [0, 1), 24 bits: exact in float. */
RNG_FUNCTION float rng_uniform(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

/* Uniform in [0, bound) with negligible bias (64-bit multiply-shift); bound > 0. */
RNG_FUNCTION uint32_t rng_below(uint32_t word, uint32_t bound)
{
    return (uint32_t)(((uint64_t)word * bound) >> 32);
}

#endif
