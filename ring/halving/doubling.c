#include "ring/halving/doubling.h"

#include "common/base/size.h"
#include "common/obs/range.h"

bool doubling_is_short(int workers, size_t slices, size_t bytes)
{
    bool power_of_two = (workers & (workers - 1)) == 0;
    return workers > 1 && power_of_two && slices == 1 && bytes <= DOUBLING_BYTES_MAX;
}

int doubling_steps(int workers)
{
    int steps = 0;
    for (int reached = 1; reached < workers; reached *= 2)
        steps++;
    return steps;
}

bool doubling_suits(const struct doubling *doubling, size_t slices, const struct codec *codec)
{
    return codec->compress == COMPRESS_NONE && (!codec->reduction || codec->reduction->commutes) &&
           doubling_is_short(doubling->site->workers, slices,
                             codec->count * codec_element_bytes(doubling->site->options));
}

/* Swaps `data` with a partner; in the last step the sum is complete. */
static enum status swap(struct doubling *doubling, int step, struct codec *codec, void *data,
                        uint64_t number)
{
    enum status status = STATUS_OK;
    struct transport *transport = doubling->site->transport;
    struct transport_slot *slot = &doubling->slots[step];
    const struct chunk all = {0, codec->count};
    struct message message = codec_message(codec, MESSAGE_SEGMENT, number, all);
    uint64_t ticket;
    range_detail_begin("doubling", &(struct range_about){.kind = RANGE_TRANSFER,
                                                         .bucket = codec->bucket,
                                                         .peer = slot->peer,
                                                         .number = (uint64_t)step});
    transport_slot_expect(slot, &message);
    TRY(transport_post(transport, slot, NULL));
    TRY(transport_send(transport, slot->peer, &message, codec_encode(codec, data, all), &ticket));
    TRY(transport_wait(transport, slot));
    /* The sum takes the place of what we send. */
    TRY(transport_wait_sent(transport, slot->peer, ticket));
    if (step + 1 == doubling->steps)
        codec_complete(codec, data, all, slot->payload, doubling->site->layout->scale);
    else
        codec_add(codec, data, all, slot->payload);
    transport_release(transport, slot);
out:
    range_detail_end();
    return status;
}

enum status doubling_allreduce(struct doubling *doubling, struct codec *codec, void *data,
                               uint64_t number)
{
    enum status status = STATUS_OK;
    for (int step = 0; step < doubling->steps && status == STATUS_OK; step++)
        status = swap(doubling, step, codec, data, number);
    return status;
}

/* -------- opening, closing -------------------------------------------------------------------- */

enum status doubling_init(struct doubling *doubling, const struct comm_site *site)
{
    enum status status = STATUS_OK;
    size_t longest = 0;
    for (size_t b = 0; b < site->layout->buckets; b++) {
        size_t bytes = site->layout->counts[b] * codec_element_bytes(site->options);
        if (doubling_is_short(site->workers, 1, bytes))
            longest = size_larger(longest, bytes);
    }
    *doubling = (struct doubling){.site = site};
    if (longest == 0)
        return STATUS_OK;
    for (int half = site->workers / 2; half > 0; half /= 2) {
        int partner = site->group->ranks[site->index ^ half]; /* a worker's rank is its node */
        TRY(transport_slot_init(&doubling->slots[doubling->steps++], site->transport, partner,
                                longest));
    }
out:
    return status;
}

void doubling_fini(struct doubling *doubling)
{
    for (int step = 0; step < doubling->steps; step++)
        transport_slot_fini(&doubling->slots[step], doubling->site->transport);
    *doubling = (struct doubling){0};
}
