#include "ring/pair.h"

bool pair_suits(const struct ring_plan *plan, size_t bucket)
{
    return schedule_is_pair(&plan->schedules[bucket]) &&
           plan->codecs[bucket].compress == COMPRESS_NONE;
}

enum status pair_allreduce(struct ring_plan *plan, size_t bucket, float *data, uint64_t step,
                           float scale)
{
    enum status status = STATUS_OK;
    struct codec *codec = &plan->codecs[bucket];
    struct transport_slot *slot = &plan->slots[0];
    struct chunk all = {0, plan->schedules[bucket].count};
    struct message message = codec_message(codec, MESSAGE_SEGMENT, step, all);
    uint64_t ticket;
    transport_slot_expect(slot, &message);
    TRY(transport_post(plan->transport, slot, NULL));
    TRY(transport_send(plan->transport, slot->peer, &message, codec_encode(codec, data, all),
                       &ticket));
    TRY(transport_wait(plan->transport, slot));
    /* The sum takes the place of what we send. */
    TRY(transport_wait_sent(plan->transport, slot->peer, ticket));
    codec_complete(codec, data, all, slot->payload, scale);
    transport_release(plan->transport, slot);
out:
    return status;
}
