/*
 * Two workers and a short vector. In the ring's two steps each would send one half and, once it has
 * got the other, that: one message waits for another, and neither is long enough to be worth
 * cutting. Here both send the whole vector at once: the same bytes (2(N-1)/N M is M), one step.
 *
 * Both end with the bits of the ring, because a + b is b + a. Compressed they would not: each would
 * add a rounded contribution to one of its own that is not. Those, and longer vectors, of which the
 * ring adds one part while another travels, keep to the ring.
 */
#ifndef PSRING_RING_PAIR_H
#define PSRING_RING_PAIR_H

#include "ring/ring_plan.h"

bool pair_suits(const struct ring_plan *plan, size_t bucket);

/* The all-reduce of such a bucket, as number `step`. One message each way. */
enum status pair_allreduce(struct ring_plan *plan, size_t bucket, float *data, uint64_t step,
                           float scale);

#endif
