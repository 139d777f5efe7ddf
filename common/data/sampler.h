/*
 * Assigns samples to ranks and steps, as a function of (seed, epoch, world, rank, step). Every rank
 * computes the same result without a message. The pure functions come first, then a sampler, which
 * goes through the batches of an epoch.
 *
 * Training: an epoch is one permutation of all samples. Step s takes the global batch
 * [s W B, (s+1) W B) of it, and rank r the r-th slice of B samples:
 *
 *     W = 3, B = 2     step 0              step 1              remainder
 *     permutation   | 7 2 | 9 4 | 0 8 | 12 1 | 5 11 | 6 3 | 10 13
 *     rank             0     1     2     0      1      2     (dropped this epoch)
 *
 * In every step W workers with batch B together get exactly the samples, in the same order, that
 * one process with batch W B gets. The incomplete global batch at the end is dropped. Every step
 * then weighs every sample alike, and all ranks take the same number of steps. The next epoch's
 * permutation omits other samples. With `joins` one more step takes the remainder, in W parts whose
 * lengths differ by at most one and may be zero. All ranks still take the same number of steps; an
 * average must weigh the parts by their lengths (sampler->global_count).
 *
 * Testing: one contiguous range per rank; together they hold every sample exactly once.
 */
#ifndef PSRING_COMMON_DATA_SAMPLER_H
#define PSRING_COMMON_DATA_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/util.h"
#include "common/base/status.h"

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

/* For workers that each go through all samples: the `epoch` for the permutation of worker `rank` <
 * 65536. It does not depend on the number of workers. A run that continues with another number of
 * workers thus uses the same permutations, and sees no image of an epoch twice. */
static inline uint64_t sampler_own_epoch(uint64_t epoch, size_t rank)
{
    return epoch << 16 | rank;
}

/* The slice of the rank in the epoch's permutation at `step`; count is always `batch`. */
struct chunk sampler_slice(size_t world, size_t rank, size_t batch, size_t step);

enum sampler_order {
    SAMPLER_SHUFFLED,   /* training: whole batches only, except for a joined last step */
    SAMPLER_SEQUENTIAL, /* testing: this rank's share; the last batch may be shorter */
};

struct sampler_options {
    enum sampler_order order;
    size_t samples;     /* in the split */
    size_t batch;       /* samples of this rank per step, > 0 */
    size_t world, rank; /* rank < world. One process playing N workers: world 1, batch N x B */
    uint64_t seed;      /* of the permutations; the same on every rank */
    bool joins;         /* SAMPLER_SHUFFLED: a last step takes the remaining samples */
};

struct sampler {
    struct sampler_options options;
    uint32_t *order;     /* (options.samples): the current epoch's order */
    struct chunk share;  /* SAMPLER_SEQUENTIAL */
    size_t steps;        /* in an epoch; 0 is possible for an empty share of SAMPLER_SEQUENTIAL */
    size_t global_count; /* SAMPLER_SHUFFLED: samples of all ranks in the last batch */
    size_t used;         /* samples before step 0 of the current epoch */
    size_t next, end;    /* step; the end of the current epoch, or no epoch was started */
};

/* STATUS_USAGE (logged) if a training epoch has not one whole step, STATUS_NO_MEMORY. */
enum status sampler_init(struct sampler *sampler, const struct sampler_options *options);
void sampler_fini(struct sampler *sampler);

/*
 * Begins `epoch` at step `first_step` <= sampler->steps, also in the middle of another epoch.
 * Computes the permutation on the caller's thread: less than a millisecond for 60,000 samples.
 */
void sampler_start_epoch(struct sampler *sampler, uint64_t epoch, size_t first_step);

/*
 * Training: begins the remainder of `epoch` after the first `used` samples of its permutation. They
 * have been used already, perhaps by another number of workers. As many whole steps follow as fit;
 * not with `joins`.
 */
void sampler_start_rest(struct sampler *sampler, uint64_t epoch, size_t used);

/* The next batch's samples, (*count), valid until the next epoch is started. NULL and a count of 0
 * at the end of the epoch. In a joined step the count may be 0, too. */
const uint32_t *sampler_next(struct sampler *sampler, size_t *count);

#endif
