/*
 * Which sample is whose, when. Pure functions of (seed, epoch, world, rank, step): every rank
 * computes the same answer with no message.
 *
 * Training: an epoch is one permutation of all samples. Step s takes the global batch
 * [s W B, (s+1) W B) of it, and rank r the r-th slice of B samples:
 *
 *     W = 3, B = 2     step 0              step 1              left over
 *     permutation   | 7 2 | 9 4 | 0 8 | 12 1 | 5 11 | 6 3 | 10 13
 *     rank             0     1     2     0      1      2     (dropped this epoch)
 *
 * So W workers with batch B together see, in every step, exactly the samples that one process with
 * batch W B sees, in the same order. The incomplete global batch at the end is dropped: every step
 * weighs every sample alike and all ranks take the same number of steps; another epoch's
 * permutation leaves out other samples.
 *
 * Testing: contiguous ranges, one a rank, which cover every sample exactly once.
 */
#ifndef PSRING_COMMON_DATA_SAMPLER_H
#define PSRING_COMMON_DATA_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

struct sampler_range {
    size_t first, count; /* [first, first + count) */
};

/*
 * Sets *steps to samples / (world * batch), the steps of a training epoch. STATUS_USAGE (logged) if
 * not even one step fits. world, batch > 0.
 */
enum status sampler_steps(size_t samples, size_t world, size_t batch, size_t *steps);

/*
 * Fills order[0..samples) with the permutation of 0..samples-1 of this epoch: Fisher-Yates with
 * Philox numbers (rng.h, RNG_SHUFFLE). samples < 2^32.
 * Source: Knuth, TAOCP volume 2, 3.4.2, algorithm P.
 */
void sampler_permute(uint64_t seed, uint64_t epoch, uint32_t *order, size_t samples);

/* Where in the epoch's permutation rank's slice of `step` lies; count is always `batch`. */
struct sampler_range sampler_slice(size_t world, size_t rank, size_t batch, size_t step);

/* Rank's contiguous share of 0..samples-1; shares differ by at most one sample, and may be empty.
 */
struct sampler_range sampler_shard(size_t samples, size_t world, size_t rank);

#endif
