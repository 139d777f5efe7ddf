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
#include "ring/schedule.h"

extern const struct backend backend_ring;

/*
 * For a ring whose workers each bring more than `data` to the sum: what others of their host have,
 * which is in memory of the caller's (ring/hierarchical). The ring moves a part of the vector's
 * chunks, and calls these for their segments, on its own thread.
 */
struct ring_share {
    struct schedule_part part;
    void *context;
    /* The sum of `segment` begins here: data gets what it is to set out with. */
    void (*begin)(void *context, void *data, struct chunk segment);
    /* A partial sum has come, to which something is to be added here, for the last time where it
     * `completes` the sum. Prepares data, and returns what is still to be added to it. */
    const void *(*add)(void *context, void *data, struct chunk segment, const void *partial,
                       bool completes);
    /* data has the sum of `segment`. */
    void (*complete)(void *context, const void *data, struct chunk segment);
};

/* backend_ring.open with a share; both are borrowed. The table's other functions then take *self.
 */
enum status ring_open_share(void **self, const struct comm_site *site,
                            const struct ring_share *share);

#endif
