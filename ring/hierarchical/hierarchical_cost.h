/*
 * What the hierarchical all-reduce moves over the network and how long that takes. Pure. What goes
 * through shared memory is not counted, and takes no time here.
 *
 * With H hosts of L workers, the worker of local number l that is host h's runs a ring with those
 * of its number on the other hosts: on chunks l, L + l, 2L + l, .. of H L. With C[i] the bytes of
 * the i-th of these (i mod H), P their sum,
 *
 *     it sends   2P - C[h+1] - C[h+2]     and receives   2P - C[h] - C[h+1]
 *
 * about 2(H-1)/H M/L; L of them, a host, 2(H-1)/H M. In the ring's order (--reduce-order ring), l >
 * 0 sends 2P - C[h+1] and receives 2P - C[h]; a host (2(H-1) + (L-1)/L)/H M.
 *
 * With one worker a host it is the ring, and takes its time; else
 *
 *     time = 2(H-1)a + 2(H-1)/H M/B + (W-1)/W M g,   in order  (2H-1)a + (2(H-1) + (L-1)/L)/H M/B
 *
 * Where workers share a link, no all-reduce among them is faster than 2(H-1)/H M/B: what the
 * workers of a host have together is to a network what one worker has (Patarasuk and Yuan 2009,
 * section 3).
 */
#ifndef PSRING_RING_HIERARCHICAL_COST_H
#define PSRING_RING_HIERARCHICAL_COST_H

#include "common/comm/cost.h"

/* Hosts with unequal numbers of workers have no such all-reduce: no bytes, and NAN seconds. */
extern const struct cost_formula hierarchical_cost;

#endif
