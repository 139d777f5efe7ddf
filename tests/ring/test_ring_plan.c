/* The memory that the ring allocates for a layout. The transport's slots are only counted. */
#include "ring/ring.h"

#include <criterion/criterion.h>

static size_t slots;

enum status __wrap_transport_slot_init(struct transport_slot *slot, struct transport *transport,
                                       int peer, size_t capacity);
enum status __wrap_transport_slot_init(struct transport_slot *slot, struct transport *transport,
                                       int peer, size_t capacity)
{
    (void)transport;
    cr_assert_eq(peer, 3);
    *slot = (struct transport_slot){.peer = peer, .capacity = capacity};
    slots++;
    return STATUS_OK;
}

void __wrap_transport_slot_fini(struct transport_slot *slot, struct transport *transport);
void __wrap_transport_slot_fini(struct transport_slot *slot, struct transport *transport)
{
    (void)slot;
    (void)transport;
    slots--;
}

/* A receive is posted for every segment that the neighbour sends before it receives one. */
Test(ring_plan, as_many_receives_as_segments)
{
    static const size_t counts[] = {100, (size_t)64 << 20, 0};
    const struct comm_options options = {.timeout_ms = 1};
    for (size_t segment_bytes = 0; segment_bytes <= 4; segment_bytes += 4) {
        struct comm_options chosen = options;
        chosen.segment_bytes = segment_bytes;
        struct comm_layout layout = {.counts = counts, .buckets = segment_bytes ? 1 : 3};
        const struct backend_env site = {
            .workers = 4, .index = 0, .options = &chosen, .layout = &layout};
        struct ring_plan plan;
        cr_assert_eq(ring_plan_init(&plan, &site, 3, NULL), STATUS_OK);
        cr_assert_eq(slots, plan.slot_count);
        size_t most = 0;
        for (size_t b = 0; b < layout.buckets; b++) {
            if (plan.schedules[b].segments > most)
                most = plan.schedules[b].segments;
        }
        cr_assert_geq(plan.slot_count, most);
        if (!segment_bytes)
            cr_assert_gt(most, 8);
        ring_plan_fini(&plan);
        cr_assert_eq(slots, 0);
    }
}
