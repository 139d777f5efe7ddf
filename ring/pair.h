/*
 * Two workers. The ring would send one half of the vector and, once it has got the other, that: two
 * steps, and each element is read and written twice, in two passes over a vector that no cache
 * holds. The same bytes (2(N-1)/N M is M) can go otherwise:
 *
 * - A short vector is swapped whole: each worker sends all of it, in pieces, and adds what comes.
 *   One step, and no message waits for another one.
 * - A long one goes slice by slice: of each slice a worker adds up one half, and sends that back,
 *   as in the ring; the slice is still in the cache then.
 *
 * Both end with the bits of the ring, because a + b is b + a. Compressed they would not: each would
 * add a rounded contribution to one of its own that is not. Those, and reductions that do not
 * commute to the bit, keep to the ring.
 */
#ifndef PSRING_RING_PAIR_H
#define PSRING_RING_PAIR_H

#include "ring/ring_plan.h"

/* With so many pieces, or fewer, a vector is short. */
enum { PAIR_WHOLE = 8 };

bool pair_suits(const struct ring_plan *plan, size_t bucket);

/* The all-reduce of such a bucket, as number `step`. Each worker sends schedule.pieces messages; of
 * a long one an even number, so perhaps one more, or fewer where halves are empty. */
enum status pair_allreduce(struct ring_plan *plan, size_t bucket, void *data, uint64_t step,
                           float scale);

#endif
