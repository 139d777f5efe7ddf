#include "experiments/bench/bench_data.h"

#include "common/base/check.h"

enum { BLOCK = 1024 }; /* elements checked at a time: the sums stay in the first-level cache */

/* A hash of rank and round, the same for all elements. */
static uint32_t salt_of(int rank, uint64_t round)
{
    return (uint32_t)rank * 0x85EBCA6Bu + (uint32_t)round * 0xC2B2AE35u;
}

struct bench_values bench_values(int workers, enum compress compress)
{
    int64_t exact = compress_exact_integer(compress);
    int bits = 0;
    while (bits < BENCH_VALUE_BITS_MAX && (int64_t)workers << bits <= exact)
        bits++;
    return (struct bench_values){workers, bits};
}

/* The top `bits` bits of a multiplicative hash, around 0. 32-bit arithmetic only, so that the loops
 * below become vector instructions. */
static inline int32_t value_at(uint32_t index, uint32_t salt, int bits)
{
    uint32_t hash = index * 0x9E3779B1u + salt;
    hash = (hash ^ hash >> 15) * 0x2C1B3C6Du;
    return (int32_t)(hash >> (32 - bits)) - (1 << (bits - 1));
}

void bench_fill(float *data, size_t count, struct bench_values values, int rank, uint64_t round)
{
    CHECK(values.bits > 0);
    uint32_t salt = salt_of(rank, round);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)value_at((uint32_t)i, salt, values.bits);
}

uint64_t bench_count_wrong(const float *data, size_t count, struct bench_values values,
                           uint64_t round)
{
    uint64_t wrong = 0;
    CHECK(values.bits > 0);
    for (size_t start = 0; start < count; start += BLOCK) {
        size_t length = count - start < BLOCK ? count - start : BLOCK;
        int32_t sums[BLOCK] = {0};
        for (int rank = 0; rank < values.workers; rank++) {
            uint32_t salt = salt_of(rank, round);
            for (size_t i = 0; i < length; i++)
                sums[i] += value_at((uint32_t)(start + i), salt, values.bits);
        }
        for (size_t i = 0; i < length; i++)
            wrong += !(data[start + i] == (float)sums[i]);
    }
    return wrong;
}
