/*
 * All-reduce between two workers. The ring would take two steps: send one half of the vector, then
 * forward the half that it received. Each element would be read and written twice, in two passes
 * over a vector that fits in no cache. The same bytes (2(N-1)/N M is M) can move in a better order:
 *
 * - A short vector (up to PAIR_WHOLE pieces of 384 KB, 3 MB) is swapped whole. Each worker sends
 *   all of it, in pieces, and adds what arrives. This takes one step, with twice the additions, and
 *   no message waits for another one.
 * - A long vector is processed slice by slice. A slice is two pieces. A worker adds up one half of
 *   each slice and sends the sum back, as in the ring. The slice is still in the cache at that
 *   time.
 *
 * Both orders give the bits of the ring, because a + b is b + a. Compressed vectors would not: each
 * worker would add a rounded contribution to its own unrounded one. The ring therefore takes
 * compressed vectors, and reductions that do not commute to the bit.
 */
#include "ring/ring.h"

#include "common/base/util.h"
#include "common/base/range.h"

/* One operation in progress. */
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

/* Messages are numbered in each direction. Number n uses ticket n for the message sent and slot n %
 * slot_count for the message received. A message without elements does not travel. */
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

/* Call this before the memory of a sent message changes. */
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
        /* The sum overwrites the memory that we send from. */
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
    /* The sum overwrites the memory that we sent from. */
    TRY(wait_sent(pair, 2 * slice, theirs));
    TRY(post(pair, 2 * slice + 1, theirs, codec_wire(pair->codec, pair->data, theirs)));
out:
    return status;
}

/* Message 2s carries the half of slice s that its receiver adds up; message 2s+1 carries the sum of
 * that half. Three slices are in progress: the first is sent, the second is added and sent back,
 * the third arrives. */
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
