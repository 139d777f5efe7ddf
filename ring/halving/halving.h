/*
 * Halving-doubling all-reduce over common/net/transport. Read halving.c.
 *
 * Cost: a worker sends as many bytes as it receives, and for any number N of workers they are
 * 2(N-1)/N of the vector (uneven lengths: halving_schedule.h), in at most 2 lg N steps; for a short
 * vector of N = 2, 4, 8, ... workers lg N vectors in lg N steps (doubling.h). Nothing is allocated
 * after open; the only copies are those of the transport. The sum has the same bits on all workers
 * and in every run, but its order is a tree, so REDUCE_ORDER_RING is refused: STATUS_UNSUPPORTED.
 */
#ifndef PSRING_RING_HALVING_H
#define PSRING_RING_HALVING_H

#include "common/comm/backend.h"

extern const struct backend backend_rhd;

#endif
