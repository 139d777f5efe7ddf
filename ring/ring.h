/*
 * The ring all-reduce over common/net/transport. Read ring.c.
 *
 * Cost: a worker sends 2(N-1)/N of the vector (to the byte: all chunks but one, twice), in 2(N-1)K
 * messages, to one neighbour. It allocates and copies nothing after open; what the transport does
 * is in common/net/transport/transport.h.
 */
#ifndef PSRING_RING_RING_H
#define PSRING_RING_RING_H

#include "common/comm/backend.h"

extern const struct backend backend_ring;

#endif
