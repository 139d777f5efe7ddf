/*
 * What the ring keeps for a layout of buckets: schedules, memory to compress into, and the slots in
 * which segments arrive. Allocated here, so that an all-reduce allocates nothing. ring.c uses it.
 */
#ifndef PSRING_RING_RING_PLAN_H
#define PSRING_RING_RING_PLAN_H

#include "common/comm/backend.h"
#include "common/comm/codec.h"
#include "ring/schedule.h"

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
enum status ring_plan_init(struct ring_plan *plan, const struct comm_site *site, int previous,
                           const struct schedule_part *part);
void ring_plan_fini(struct ring_plan *plan);

#endif
