#include "experiments/bench_data.h"

#include "common/base/check.h"

enum { BLOCK = 1024 }; /* elements checked at a time: the sums stay in the first-level cache */

/* A hash of rank and round, the same for all elements. */
static uint32_t salt_of(int rank, uint64_t round)
{
    return (uint32_t)rank * 0x85EBCA6Bu + (uint32_t)round * 0xC2B2AE35u;
}

/* In [-BENCH_VALUE_MAX, BENCH_VALUE_MAX): the ten top bits of a multiplicative hash. 32-bit
 * arithmetic only, so that the loops below become vector instructions. */
static inline int32_t value_at(uint32_t index, uint32_t salt)
{
    uint32_t hash = index * 0x9E3779B1u + salt;
    hash = (hash ^ hash >> 15) * 0x2C1B3C6Du;
    return (int32_t)(hash >> 22) - BENCH_VALUE_MAX;
}

void bench_fill(float *data, size_t count, int rank, uint64_t round)
{
    uint32_t salt = salt_of(rank, round);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)value_at((uint32_t)i, salt);
}

uint64_t bench_count_wrong(const float *data, size_t count, int workers, uint64_t round)
{
    uint64_t wrong = 0;
    CHECK(workers <= BENCH_WORKERS_MAX);
    for (size_t start = 0; start < count; start += BLOCK) {
        size_t length = count - start < BLOCK ? count - start : BLOCK;
        int32_t sums[BLOCK] = {0};
        for (int rank = 0; rank < workers; rank++) {
            uint32_t salt = salt_of(rank, round);
            for (size_t i = 0; i < length; i++)
                sums[i] += value_at((uint32_t)(start + i), salt);
        }
        for (size_t i = 0; i < length; i++)
            wrong += !(data[start + i] == (float)sums[i]);
    }
    return wrong;
}
