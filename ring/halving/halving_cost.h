/*
 * What halving-doubling moves and how long that takes. Pure.
 *
 *     rank r sends   M - L[r] + R[r]   and receives as much
 *
 * with L[i] the bytes of chunk i of W, M their sum, and R[r] what rank r receives while halving
 * (halving_schedule.h): from each partner the chunks of its own half (third, ...), over and over;
 * (W-1)/W M if all chunks are equal. So about 2(W-1)/W M.
 *
 *     time = 2 F a + 2(W-1)/W M/B + (W-1)/W M g
 *
 * with F the number of W's prime factors: lg W for a power of two, less for other W. Where ranks
 * share hosts, instead of 2(W-1)/W what the busiest host's link carries: of a step in which groups
 * become groups of n, n/W for every two partners on different hosts; as much on the way back. Of a
 * short vector among 2, 4, 8, ... workers (doubling.h) every rank sends and receives lg W M, and
 *
 *     time = lg W (a + M/B + M g)
 *
 * Source:
 * Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations in
 * MPICH", section 4.
 */
#ifndef PSRING_RING_HALVING_COST_H
#define PSRING_RING_HALVING_COST_H

#include "common/comm/cost.h"

extern const struct cost_formula halving_cost;

#endif
