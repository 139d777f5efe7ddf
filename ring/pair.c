/*
 * Two workers. The ring would send one half of the vector and, once it has got the other, that: two
 * steps, and each element is read and written twice, in two passes over a vector that no cache
 * holds. The same bytes (2(N-1)/N M is M) can go otherwise:
 *
 * - A short vector is swapped whole: each worker sends all of it, in pieces, and adds what comes.
 *   One step, and no message waits for another one.
 * - A long one goes slice by slice: of each slice a worker adds up one half, and sends that back,
 *   as in the ring; the slice is still in the cache then.
 *
 * Both end with the bits of the ring, because a + b is b + a. Compressed they would not: each would
 * add a rounded contribution to one of its own that is not. Those, and reductions that do not
 * commute to the bit, keep to the ring.
 */
#include "ring/ring.h"

#include "common/base/util.h"
#include "common/base/range.h"

/* One operation under way. */
struct pair {
    struct ring_plan *plan;
    const struct schedule *schedule;
    struct codec *codec;
    void *data;
    uint64_t step;
    float scale;
    int index; /* this worker: 0 or 1 */
};

/* -------- messages ---------------------------------------------------------------------------- */

/* A message each way has a number: its ticket is that of the one sent, its slot for the one that
 * comes. A message without elements does not travel. */
static struct transport_slot *slot_of(const struct pair *pair, size_t number)
{
    return &pair->plan->slots[number % pair->plan->slot_count];
}

static enum status post(const struct pair *pair, size_t number, struct chunk span, void *into)
{
    struct transport_slot *slot = slot_of(pair, number);
    struct message message = codec_message(pair->codec, MESSAGE_SEGMENT, pair->step, span);
    if (span.count == 0)
        return STATUS_OK;
    transport_slot_expect(slot, &message);
    return transport_post(pair->plan->transport, slot, into);
}

static enum status send(const struct pair *pair, size_t number, struct chunk span)
{
    struct message message = codec_message(pair->codec, MESSAGE_SEGMENT, pair->step, span);
    if (span.count == 0)
        return STATUS_OK;
    return transport_send(pair->plan->transport, slot_of(pair, number)->peer, &message,
                          codec_encode(pair->codec, pair->data, span),
                          &pair->plan->tickets[number]);
}

/* The memory of a message that was sent is about to change. */
static enum status wait_sent(const struct pair *pair, size_t number, struct chunk span)
{
    if (span.count == 0)
        return STATUS_OK;
    return transport_wait_sent(pair->plan->transport, slot_of(pair, number)->peer,
                               pair->plan->tickets[number]);
}

static enum status receive(const struct pair *pair, size_t number, struct chunk span, bool adds)
{
    struct transport_slot *slot = slot_of(pair, number);
    if (span.count == 0)
        return STATUS_OK;
    range_transfer_begin(adds, pair->codec->bucket, number, slot->peer, number);
    enum status status = transport_wait(pair->plan->transport, slot);
    if (status == STATUS_OK && adds)
        codec_complete(pair->codec, pair->data, span, slot->payload, pair->scale);
    if (status == STATUS_OK)
        transport_release(pair->plan->transport, slot);
    range_detail_end();
    return status;
}

/* -------- a short vector: whole --------------------------------------------------------------- */

static struct chunk piece_of(const struct pair *pair, size_t piece)
{
    return chunk_of(pair->schedule->count, pair->schedule->pieces, piece);
}

static enum status swap_whole(const struct pair *pair)
{
    enum status status = STATUS_OK;
    for (size_t piece = 0; piece < pair->schedule->pieces; piece++) {
        TRY(post(pair, piece, piece_of(pair, piece), NULL));
        TRY(send(pair, piece, piece_of(pair, piece)));
    }
    for (size_t piece = 0; piece < pair->schedule->pieces; piece++) {
        /* The sum takes the place of what we send. */
        TRY(wait_sent(pair, piece, piece_of(pair, piece)));
        TRY(receive(pair, piece, piece_of(pair, piece), true));
    }
out:
    return status;
}

/* -------- a long one: slice by slice, by halves ----------------------------------------------- */

static size_t slices_of(const struct pair *pair)
{
    return size_divide_up(pair->schedule->pieces, 2);
}

/* The half of a slice that worker `index` adds up. */
static struct chunk half_of(const struct pair *pair, size_t slice, int index)
{
    struct chunk whole = chunk_of(pair->schedule->count, slices_of(pair), slice);
    struct chunk half = chunk_of(whole.count, 2, (size_t)index);
    return (struct chunk){whole.offset + half.offset, half.count};
}

static enum status add_half(const struct pair *pair, size_t slice)
{
    enum status status;
    struct chunk ours = half_of(pair, slice, pair->index);
    struct chunk theirs = half_of(pair, slice, !pair->index);
    TRY(receive(pair, 2 * slice, ours, true));
    TRY(send(pair, 2 * slice + 1, ours));
    /* The sum takes the place of what we have sent. */
    TRY(wait_sent(pair, 2 * slice, theirs));
    TRY(post(pair, 2 * slice + 1, theirs, codec_wire(pair->codec, pair->data, theirs)));
out:
    return status;
}

/* Of slice s, message 2s is for the half that its receiver adds up, 2s+1 is the sum of it. Three
 * slices are under way: one sets out, one is added and goes back, one lands. */
static enum status swap_halves(const struct pair *pair)
{
    enum status status = STATUS_OK;
    size_t slices = slices_of(pair);
    for (size_t turn = 0; turn < slices + 2; turn++) {
        if (turn < slices) {
            TRY(post(pair, 2 * turn, half_of(pair, turn, pair->index), NULL));
            TRY(send(pair, 2 * turn, half_of(pair, turn, !pair->index)));
        }
        if (turn >= 1 && turn <= slices)
            TRY(add_half(pair, turn - 1));
        if (turn >= 2)
            TRY(receive(pair, 2 * (turn - 2) + 1, half_of(pair, turn - 2, !pair->index), false));
    }
    TRY(transport_flush(pair->plan->transport));
out:
    return status;
}

enum status pair_allreduce(struct ring_plan *plan, size_t bucket, void *data, uint64_t step,
                           float scale)
{
    const struct schedule *schedule = &plan->schedules[bucket];
    const struct pair pair = {plan, schedule, &plan->codecs[bucket], data,
                              step, scale,    schedule->rank};
    return schedule->pieces <= PAIR_WHOLE ? swap_whole(&pair) : swap_halves(&pair);
}
