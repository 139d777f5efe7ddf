/*
 * What a benchmark sums: numbers that depend on rank, index and round, so that a chunk in the wrong
 * place, a contribution missing or counted twice, and a result left over from the round before all
 * show. They are integers so small that every sum of them is exact, in any order, also where sums
 * are rounded to 16 bits on the wire (common/comm/elements/compress.h): a backend that loses or
 * doubles something cannot hide behind rounding.
 */
#ifndef PSRING_EXPERIMENTS_BENCH_DATA_H
#define PSRING_EXPERIMENTS_BENCH_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "common/comm/elements/compress.h"

/* What the workers' numbers are. */
struct bench_values {
    int workers;
    int bits; /* they lie in [-2^(bits-1), 2^(bits-1)) */
};

enum { BENCH_VALUE_BITS_MAX = 10 };

/*
 * As many bits as the sums of so many workers leave; fewer make it likelier that a wrong element
 * happens to be right, with 2^-bits. bits == 0: there are too many workers for any, which is beyond
 * 2^24 for float32, 2,048 for fp16 and 256 for bf16.
 */
struct bench_values bench_values(int workers, enum compress compress);

/* Worker `rank`'s contribution to operation `round`, into data (count). */
void bench_fill(float *data, size_t count, struct bench_values values, int rank, uint64_t round);

/* How many elements of data (count) differ from the exact sum over the workers. O(count x workers)
 * time. */
uint64_t bench_count_wrong(const float *data, size_t count, struct bench_values values,
                           uint64_t round);

#endif
