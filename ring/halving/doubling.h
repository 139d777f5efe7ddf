/*
 * A short vector among N = 2, 4, 8, ... workers: recursive doubling. Halving takes 2 lg N steps to
 * keep the bytes low; where latency is all that counts, lg N steps that move more are faster. In
 * each step a worker sends all that it has so far to a partner, and adds what it gets from it:
 *
 *                 worker 0     worker 1     worker 2     worker 3
 *   step 0        > 2 [0]      > 3 [1]      > 0 [2]      > 1 [3]
 *   step 1        > 1 [02]     > 0 [13]     > 3 [02]     > 2 [13]
 *
 * after which all have [0123]. Partners are those of halving, in the same order, so every sum is
 * made by the same tree; and both partners make it, from the same two, so that all workers end with
 * the bits that halving has, because a + b is b + a. Compressed they would not: each would add a
 * rounded contribution to one of its own that is not. Those, and reductions that do not commute to
 * the bit, keep to halving.
 *
 * Bytes: lg N M, sent and received, in lg N messages. With two workers that is M, as ever.
 *
 * Source: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations
 * in MPICH", section 4.5.
 */
#ifndef PSRING_RING_DOUBLING_H
#define PSRING_RING_DOUBLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/comm/backend.h"
#include "common/comm/codec.h"
#include "common/net/transport/transport.h"

/* A longer vector is halved: at 200 Mbit/s its bytes would take longer than the steps saved. */
enum { DOUBLING_BYTES_MAX = 2048, DOUBLING_STEPS_MAX = 30 };

/* Whether so many bytes, in so many of halving's slices, go this way if they are not compressed. */
bool doubling_is_short(int workers, size_t slices, size_t bytes);
int doubling_steps(int workers); /* lg N */

struct doubling {
    const struct comm_site *site; /* borrowed */
    int steps;
    struct transport_slot slots[DOUBLING_STEPS_MAX]; /* (steps): of each step's partner */
};

/* For the buckets of site->layout that go this way, if any. */
enum status doubling_init(struct doubling *doubling, const struct comm_site *site);
void doubling_fini(struct doubling *doubling); /* also of one that is zero */

bool doubling_suits(const struct doubling *doubling, size_t slices, const struct codec *codec);

/* The all-reduce of such a bucket, as number `number`. Nothing of `data` still waits to be sent
 * when it returns. */
enum status doubling_allreduce(struct doubling *doubling, struct codec *codec, void *data,
                               uint64_t number);

#endif
