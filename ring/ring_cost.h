/*
 * What the ring moves and how long that takes. Pure.
 *
 *     rank r of W sends   2M - L[r+1] - L[r+2]     and receives   2M - L[r] - L[r+1]
 *
 * with L[i] the bytes of chunk i mod W and M their sum: about 2(W-1)/W M. Of these, reduce-scatter
 * sends M - L[r+1] and receives M - L[r], all-gather the rest.
 *
 *     time = 2(W-1)a + 2(W-1)/W M/B + (W-1)/W M g
 *          =       a +          M/B +          M g    of two workers that swap a short vector
 * (pair.h)
 *
 * Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
 * workstations", section 3.
 */
#ifndef PSRING_RING_RING_COST_H
#define PSRING_RING_RING_COST_H

#include "common/comm/cost.h"

extern const struct cost_formula ring_cost;

/* The two phases alone. */
struct cost_traffic ring_cost_reduce_scatter(const struct cost_shape *shape, int rank);
struct cost_traffic ring_cost_all_gather(const struct cost_shape *shape, int rank);

/* The time of a ring, whoever runs it, in which every worker has a link of its own. Where workers
 * share a host's, ring_cost's time is that of the link that most of them send over. */
double ring_cost_time_s(const struct cost_shape *shape, const struct cost_link *link);

#endif
