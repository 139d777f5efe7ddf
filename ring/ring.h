/*
 * The ring all-reduce and halving-doubling over common/net/transport, and what they and the
 * hierarchical all-reduce cost. Read ring.c, then halving.c.
 *
 * Cost of the ring: a worker sends 2(N-1)/N of the vector (to the byte: all chunks but one, twice),
 * in 2(N-1)K messages, to one neighbour. It allocates and copies nothing after open; what the
 * transport does is in common/net/transport/transport.h.
 */
#ifndef PSRING_RING_RING_H
#define PSRING_RING_RING_H

#include "common/comm/backend.h"
#include "common/comm/codec.h"
#include "common/comm/cost.h"
#include "ring/schedule.h"

extern const struct backend backend_ring;

/*
 * Cost of halving-doubling: a worker sends as many bytes as it receives, and for any number N of
 * workers they are 2(N-1)/N of the vector (uneven lengths: halving_schedule.h), in at most 2 lg N
 * steps; for a short vector of N = 2, 4, 8, ... workers lg N vectors in lg N steps. Nothing is
 * allocated after open; the only copies are those of the transport. The sum has the same bits on
 * all workers and in every run, but its order is a tree, so REDUCE_ORDER_RING is refused:
 * STATUS_UNSUPPORTED.
 */
extern const struct backend backend_rhd;

/* -------- a ring of hosts (hierarchical.c) ---------------------------------------------------- */

/*
 * For a ring whose workers each bring more than `data` to the sum: what others of their host have,
 * which is in memory of the caller's (hierarchical.c). The ring moves a part of the vector's
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
enum status ring_open_share(void **self, const struct backend_env *site,
                            const struct ring_share *share);

/* -------- for ring.c and pair.c --------------------------------------------------------------- */

/*
 * What the ring keeps for a layout of buckets: schedules, memory to compress into, and the slots in
 * which segments arrive. Allocated here, so that an all-reduce allocates nothing.
 */
struct ring_plan {
    struct transport *transport; /* borrowed */
    size_t buckets;
    struct schedule *schedules; /* (buckets) */
    struct codec *codecs;       /* (buckets): the floats as they are, or compressed */
    uint64_t *tickets;          /* of the items (or pieces) sent, for the longest schedule */
    /* As many as a worker sends segments before it receives any, or more, so that MPI has a buffer
     * ready for each of them. Item i arrives in slots[i % slot_count]. */
    struct transport_slot *slots;
    size_t slot_count;
};

/* For site->layout, or a part of its chunks (schedule.h), with messages from node `previous`. Zero
 * or ring_plan_fini it before. */
enum status ring_plan_init(struct ring_plan *plan, const struct backend_env *site, int previous,
                           const struct schedule_part *part);
void ring_plan_fini(struct ring_plan *plan);

/* With so many pieces, or fewer, a vector is short. */
enum { PAIR_WHOLE = 8 };

/* The all-reduce of such a bucket, as number `step`. Each worker sends schedule.pieces messages; of
 * a long one an even number, so perhaps one more, or fewer where halves are empty. */
enum status pair_allreduce(struct ring_plan *plan, size_t bucket, void *data, uint64_t step,
                           float scale);

/* -------- costs (cost.c) ---------------------------------------------------------------------- */

extern const struct cost_formula ring_cost;

/* The two phases alone. */
struct cost_traffic ring_cost_reduce_scatter(const struct cost_shape *shape, int rank);
struct cost_traffic ring_cost_all_gather(const struct cost_shape *shape, int rank);

/* The time of a ring, whoever runs it, in which every worker has a link of its own. Where workers
 * share a host's, ring_cost's time is that of the link that most of them send over. */
double ring_cost_time_s(const struct cost_shape *shape, const struct cost_link *link);

extern const struct cost_formula halving_cost;

/* Hosts with unequal numbers of workers have no such all-reduce: no bytes, and NAN seconds. */
extern const struct cost_formula hierarchical_cost;

#endif
