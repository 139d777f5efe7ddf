/*
 * Ring all-reduce
 * ===============
 *
 * N workers each hold a vector of M bytes; afterwards all hold the sum. The claim that this program
 * exists to measure: among N workers alone no algorithm lets every one send fewer than 2(N-1)/N M
 * bytes, and the ring sends exactly that, all links busy in both directions all the time. (Machines
 * beside the workers can take some of it over: ps/.) It is *bandwidth-optimal*
 * (Patarasuk and Yuan 2009): its time hardly grows with N, where a parameter server's grows like N.
 * The price is latency: 2(N-1) steps one after the other.
 *
 * How. Cut the vector into N chunks. Chunk c starts at worker c and travels once round the ring,
 * each worker adding its own contribution: after N-1 steps every chunk is complete at one worker
 * (*reduce-scatter*). It travels round once more, each worker keeping a copy (*all-gather*). In
 * every step every worker sends one chunk to the right and receives another from the left, so all
 * work at once.
 *
 * For four workers, which chunk moves where. A cell names the chunk that the worker sends; what it
 * holds of that chunk at that time is in brackets, as the set of workers already added:
 *
 *                 worker 0     worker 1     worker 2     worker 3
 *   step 0        0 [0]        1 [1]        2 [2]        3 [3]         reduce-scatter
 *   step 1        3 [30]       0 [01]       1 [12]       2 [23]
 *   step 2        2 [230]      3 [301]      0 [012]      1 [123]
 *   step 3        1 [1230]     2 [2301]     3 [3012]     0 [0123]      all-gather
 *   step 4        0 [0123]     1 [1230]     2 [2301]     3 [3012]
 *   step 5        3 [3012]     0 [0123]     1 [1230]     2 [2301]
 *
 * (tests/test_ring_schedule.c prints this table from the code and compares.) Read the brackets:
 * chunk c is always added in the order c, c+1, c+2, ...; that order decides the last bits of a
 * floating-point sum, and the parameter server can be told to add in the same one (--reduce-order
 * ring).
 *
 * Bytes: 2(N-1) steps of M/N each. Six steps of a quarter here: 1.5 M, sent and received.
 *
 * Segments. If a chunk travelled as one message, a worker could pass it on only once all of it had
 * come: the wire would idle while the last bytes are added. So a chunk is cut into K segments, and
 * a segment goes on as soon as it has been added. K >= 2 keeps one on the wire while another is
 * being added; a few more smooth out scheduling noise; too many, and the fixed cost of a message
 * shows. schedule.c chooses. What arrives as item i (items: all segments of all steps, in order)
 * leaves as item i + K, so the K segments of a worker's own chunk, sent at the start, keep the
 * pipeline full to the end.
 *
 * In the code below, top-down: ring_allreduce is the algorithm; the three functions above it
 * are a send, a receive posted ahead, and what is done with what has arrived.
 */
#include "ring/ring.h"

#include <stdlib.h>

#include "common/base/check.h"
#include "common/comm/codec.h"
#include "common/comm/reduce.h"
#include "ring/schedule.h"

/* Receives posted ahead: MPI has a buffer ready when the next segments come. As many as a worker
 * sends at the start, so that not even those have to wait for one. */
enum { POSTED_AHEAD = 8 };

struct ring {
    struct transport *transport; /* borrowed */
    const struct comm_options *options;
    int workers, rank;
    int next, previous;         /* neighbours' nodes */
    uint64_t step;              /* all-reduces done, over all buckets: part of every header */
    struct schedule *schedules; /* one a bucket */
    struct codec *codecs;       /* one a bucket: the floats as they are, or compressed */
    uint64_t *tickets;          /* of the items sent, for the longest schedule */
    struct transport_slot slots[POSTED_AHEAD];
};

/* Where one all-reduce stands. Empty items are counted like others, but nothing moves for them. */
struct run {
    struct ring *ring;
    const struct schedule *schedule;
    struct codec *codec;
    size_t bucket;
    float *data;
    size_t sent;     /* items sent: the next is number `sent` */
    size_t posted;   /* items with a receive posted */
    size_t received; /* items that have arrived and been dealt with */
    size_t items;
};

static struct message describe(const struct run *run, struct chunk segment)
{
    struct message message = codec_message(run->codec, segment);
    message.kind = MESSAGE_SEGMENT;
    message.step = run->ring->step;
    message.bucket = (uint32_t)run->bucket;
    return message;
}

/* Sends the next item: our own chunk's segments first, then what has come from the left. */
static enum status send_next(struct run *run)
{
    struct ring *ring = run->ring;
    size_t item = run->sent++;
    struct chunk segment = schedule_send(run->schedule, item);
    if (segment.count == 0)
        return STATUS_OK;
    struct message message = describe(run, segment);
    const void *payload = schedule_reduces(run->schedule, item)
                              ? codec_encode(run->codec, run->data, segment)
                              : codec_wire(run->codec, run->data, segment);
    return transport_send(ring->transport, ring->next, &message, payload, &ring->tickets[item]);
}

/*
 * In all-gather, what arrives as `item` lands in place, over the partial sum that we sent on one
 * round ago as item - (N-1)K. It is in the next workers' hands by then, but our transport must also
 * have let go of that memory. Waits for it only if nothing else can be done first; else says not
 * yet.
 */
static enum status may_overwrite(const struct run *run, size_t item, bool *may)
{
    struct ring *ring = run->ring;
    size_t sent_as = item - (size_t)(ring->workers - 1) * run->schedule->segments;
    *may = false;
    if (sent_as >= run->sent) /* only before the first sends */
        return STATUS_OK;
    bool urgent = run->received == item;
    *may = urgent || transport_sent(ring->transport, ring->next, ring->tickets[sent_as]);
    if (!urgent)
        return STATUS_OK;
    return transport_wait_sent(ring->transport, ring->next, ring->tickets[sent_as]);
}

/* Posts receives up to POSTED_AHEAD beyond what has been dealt with. In reduce-scatter a payload is
 * borrowed, and added from where it is; in all-gather it lands in place. */
static enum status post_ahead(struct run *run)
{
    enum status status = STATUS_OK;
    struct ring *ring = run->ring;
    for (; run->posted < run->items && run->posted < run->received + POSTED_AHEAD; run->posted++) {
        size_t item = run->posted;
        struct chunk segment = schedule_receive(run->schedule, item);
        if (segment.count == 0)
            continue;
        void *into = NULL;
        if (!schedule_reduces(run->schedule, item)) {
            bool may;
            TRY(may_overwrite(run, item, &may));
            if (!may)
                break;
            into = codec_wire(run->codec, run->data, segment);
        }
        TRY(transport_post(ring->transport, &ring->slots[item % POSTED_AHEAD], into));
    }
out:
    return status;
}

/* Waits for the next item and adds it to ours, or keeps it (then it has landed in place). */
static enum status receive_next(struct run *run)
{
    enum status status = STATUS_OK;
    struct ring *ring = run->ring;
    size_t item = run->received++;
    struct chunk segment = schedule_receive(run->schedule, item);
    if (segment.count == 0)
        return STATUS_OK;
    struct transport_slot *slot = &ring->slots[item % POSTED_AHEAD];
    TRY(transport_wait(ring->transport, slot));
    struct message expected = describe(run, segment);
    TRY(transport_expect(ring->transport, slot, &expected));
    if (schedule_completes(run->schedule, item))
        codec_complete(run->codec, run->data, segment, slot->payload, ring->options->scale);
    else if (schedule_reduces(run->schedule, item))
        codec_add(run->codec, run->data, segment, slot->payload);
    else
        codec_take(run->codec, run->data, segment, slot->payload);
    transport_release(ring->transport, slot);
out:
    return status;
}

static enum status ring_allreduce(void *self, size_t bucket, float *data)
{
    enum status status = STATUS_OK;
    struct ring *ring = self;
    const struct schedule *schedule = &ring->schedules[bucket];
    if (ring->workers == 1) {
        reduce_scale(data, schedule->count, ring->options->scale);
        return STATUS_OK;
    }
    struct run run = {.ring = ring,
                      .schedule = schedule,
                      .codec = &ring->codecs[bucket],
                      .bucket = bucket,
                      .data = data,
                      .items = schedule_items(schedule)};
    TRY(post_ahead(&run));
    while (run.sent < schedule->segments)
        TRY(send_next(&run));
    while (run.received < run.items) {
        TRY(receive_next(&run));
        if (run.sent < run.items)
            TRY(send_next(&run));
        TRY(post_ahead(&run));
    }
    /* The caller may change the data now, so none of it may still be waiting to be sent. */
    TRY(transport_flush(ring->transport));
    ring->step++;
out:
    return status;
}

/* ---- Opening and closing -----------------------------------------------------------------------
 */

static void ring_close(void *self)
{
    struct ring *ring = self;
    for (int i = 0; i < POSTED_AHEAD; i++)
        transport_slot_fini(&ring->slots[i], ring->transport);
    for (size_t b = 0; ring->codecs && b < ring->options->buckets; b++)
        codec_fini(&ring->codecs[b]);
    free(ring->codecs);
    free(ring->schedules);
    free(ring->tickets);
    free(ring);
}

static enum status ring_open(void **self, const struct comm_site *site)
{
    enum status status = STATUS_OK;
    const struct comm_options *options = site->options;
    struct ring *ring = calloc(1, sizeof *ring);
    if (!ring) {
        log_error("ring: out of memory");
        return STATUS_NO_MEMORY;
    }
    ring->transport = site->transport;
    ring->options = options;
    ring->workers = site->topology.workers;
    ring->rank = site->index;
    ring->schedules = calloc(options->buckets + 1, sizeof *ring->schedules);
    size_t items_max = 0, segment_max = 0;
    for (size_t b = 0; ring->schedules && b < options->buckets; b++) {
        struct schedule *schedule = &ring->schedules[b];
        schedule_init(schedule, ring->workers, ring->rank, options->bucket_counts[b],
                      options->segment_bytes);
        size_t segment = schedule_segment_count_max(schedule), items = schedule_items(schedule);
        segment_max = segment > segment_max ? segment : segment_max;
        items_max = items > items_max ? items : items_max;
        ring->next = schedule_next(schedule); /* worker w is node w */
        ring->previous = schedule_previous(schedule);
    }
    ring->tickets = calloc(items_max + 1, sizeof *ring->tickets);
    ring->codecs = calloc(options->buckets + 1, sizeof *ring->codecs);
    if (!ring->schedules || !ring->tickets || !ring->codecs) {
        log_error("ring: no memory for %zu buckets", options->buckets);
        status = STATUS_NO_MEMORY;
        goto out;
    }
    for (size_t b = 0; b < options->buckets; b++)
        TRY(codec_init(&ring->codecs[b], options, options->bucket_counts[b]));
    size_t segment_bytes = segment_max * compress_element_bytes(options->compress);
    for (int i = 0; i < POSTED_AHEAD; i++)
        TRY(transport_slot_init(&ring->slots[i], ring->transport, ring->previous, segment_bytes));
    *self = ring;
    return STATUS_OK;
out:
    ring_close(ring);
    return status;
}

const struct backend backend_ring = {
    .name = "ring",
    .summary = "ring all-reduce over --transport; bandwidth-optimal",
    .uses_transport = true,
    .orders_sums = true,
    .default_transport = TRANSPORT_ZMQ,
    .open = ring_open,
    .allreduce = ring_allreduce,
    .close = ring_close,
};
