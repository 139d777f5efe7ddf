/*
 * What a benchmark sums: numbers that depend on rank, index and round, so that a chunk in the wrong
 * place, a contribution missing or counted twice, and a result left over from the round before all
 * show. They are small integers, so their float sum is exact in any order, up to
 * BENCH_WORKERS_MAX workers.
 */
#ifndef PSRING_EXPERIMENTS_BENCH_DATA_H
#define PSRING_EXPERIMENTS_BENCH_DATA_H

#include <stddef.h>
#include <stdint.h>

/* Numbers lie in [-BENCH_VALUE_MAX, BENCH_VALUE_MAX), and floats count exactly up to 2^24. */
enum { BENCH_VALUE_MAX = 512, BENCH_WORKERS_MAX = (1 << 24) / BENCH_VALUE_MAX };

/* Worker `rank`'s contribution to operation `round`, into data (count). */
void bench_fill(float *data, size_t count, int rank, uint64_t round);

/* How many elements of data (count) differ from the exact sum over `workers` workers. O(count x
 * workers) time. */
uint64_t bench_count_wrong(const float *data, size_t count, int workers, uint64_t round);

#endif
