/*
 * Halving-doubling all-reduce (Rabenseifner)
 * ==========================================
 *
 * The ring moves as few bytes as can be, but in 2(N-1) steps one after the other; a short vector
 * pays for the steps, not for the bytes. This algorithm moves the same bytes in 2 ceil(lg N) steps.
 * (Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005, section 4.)
 *
 * How. Cut the vector into N chunks. In the first step the workers form two halves, and each worker
 * exchanges with its partner in the other half: it gives away the chunks of the partner's half and
 * adds what it gets to those of its own half. Of these it then gives away half to a partner in its
 * own half, and so on (*recursive halving*): after lg N steps it holds one chunk, which is complete
 * (*reduce-scatter*). Then all of it backwards (*recursive doubling*): each worker gives back,
 * complete, what it was given, and gets back what it gave (*all-gather*).
 *
 * For four workers. A cell says which chunks the worker sends > to whom; what it holds of them at
 * that time is in brackets, as the set of workers already added:
 *
 *                 worker 0         worker 1         worker 2         worker 3
 *   step 0        23 > 2 [0]       23 > 3 [1]       01 > 0 [2]       01 > 1 [3]
 *   step 1        1 > 1 [02]       0 > 0 [13]       3 > 3 [02]       2 > 2 [13]
 *   step 2        0 > 1 [0123]     1 > 0 [0123]     2 > 3 [0123]     3 > 2 [0123]
 *   step 3        01 > 2 [0123]    01 > 3 [0123]    23 > 0 [0123]    23 > 1 [0123]
 *
 * (tests/test_halving_schedule.c prints these tables from the code and compares.)
 *
 * Bytes: M/2, M/4, ... M/N and the same backwards: 2(N-1)/N M, sent and received. 1.5 M here, in
 * four steps where the ring needs six; for 64 workers in 12 where it needs 126.
 *
 * Any number of workers. A half of n workers that is cut into unequal ones has an *odd* worker
 * without a partner. The usual remedy is to fold the workers beyond a power of two onto others
 * first: these then move M more each way. Here the odd one deals in single chunks instead: to each
 * worker of the other half it gives that worker's own chunk, and from each it gets its own. So it
 * holds its own chunk, and everybody holds theirs, with the other half's part added just once, and
 * the bytes stay 2(N-1)/N M for every worker. The price is messages, floor(n/2) at once for the odd
 * one. For three:
 *
 *                 worker 0         worker 1         worker 2
 *   step 0        2 > 2 [0]        2 > 2 [1]        0 > 0 [2], 1 > 1 [2]
 *   step 1        1 > 1 [0]        0 > 0 [1]        -
 *   step 2        0 > 1 [012]      1 > 0 [012]      -
 *   step 3        0 > 2 [012]      1 > 2 [012]      2 > 0 [012], 2 > 1 [012]
 *
 * Order of addition: a tree, fixed by N, so all runs give the same bits; and every sum is made by
 * one worker and copied, so all workers hold the same. It is not the ring's order, which is why
 * --reduce-order ring is refused.
 *
 * Segments. Chunks travel in segments, in the order in which the receiver will pass them on, and
 * may be sent before the rest of the step has come; so one is added while others are on the wire,
 * and the wire does not idle between steps. schedule.c's segments are short beside a chunk; where
 * whole chunks are shorter than a segment they share a message, so that a short vector costs one
 * message a step. What a send must wait for is its `needs` (halving_schedule.h).
 *
 * In the code below, top-down: halving_allreduce is the algorithm; the three functions above it are
 * the sends that may go, receives posted ahead, and what is done with what has arrived.
 */
#include "ring/halving.h"

#include <stdlib.h>

#include "common/base/check.h"
#include "common/comm/reduce.h"
#include "ring/halving_schedule.h"

/* Receives posted ahead, over all peers: as many as a partner may have on its way. */
enum { POSTED_AHEAD = HALVING_IN_FLIGHT };

/* Receives from one peer: slots are used in turn. */
struct lane {
    bool open;
    struct transport_slot slots[POSTED_AHEAD];
    size_t posted, taken;
};

struct halving {
    struct transport *transport; /* borrowed */
    const struct comm_options *options;
    int workers, rank;
    uint64_t step;                      /* all-reduces done, over all buckets: in every header */
    struct halving_schedule *schedules; /* one a bucket */
    uint64_t *tickets;                  /* of the items sent, for the longest schedule */
    struct lane *lanes;                 /* by worker, which is node */
};

/* Where one all-reduce stands. */
struct run {
    struct halving *halving;
    const struct halving_schedule *schedule;
    size_t bucket;
    float *data;
    size_t sent;     /* items sent: the next is number `sent` */
    size_t posted;   /* items with a receive posted */
    size_t received; /* items that have arrived and been dealt with */
};

static struct message describe(const struct run *run, struct chunk span)
{
    return (struct message){
        .kind = MESSAGE_SEGMENT,
        .dtype = MESSAGE_FLOAT32,
        .step = run->halving->step,
        .bucket = (uint32_t)run->bucket,
        .offset = span.offset * sizeof(float),
        .length = span.count * sizeof(float),
    };
}

/* Sends every item, in order, that what has arrived so far allows. */
static enum status send_ready(struct run *run)
{
    struct halving *halving = run->halving;
    for (; run->sent < run->schedule->items; run->sent++) {
        const struct halving_item *item = &run->schedule->sends[run->sent];
        if (item->needs > run->received)
            break;
        struct message message = describe(run, item->span);
        enum status status =
            transport_send(halving->transport, item->peer, &message, run->data + item->span.offset,
                           &halving->tickets[run->sent]);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/*
 * Posts receives up to POSTED_AHEAD beyond what has been dealt with. In reduce-scatter a payload is
 * borrowed and added from where it is. In all-gather it lands in place, over the partial sum that
 * we sent to this same peer in reduce-scatter, once the transport has let go of that memory.
 *
 * The wait for that holds up nobody: it is entered only when this receive is the next to be dealt
 * with, all sends that may go have gone, and the peer cannot answer before it has our partial sum;
 * what we wait for here must have happened before what we would wait for otherwise.
 */
static enum status post_ahead(struct run *run)
{
    enum status status = STATUS_OK;
    struct halving *halving = run->halving;
    size_t items = run->schedule->items;
    for (; run->posted < items && run->posted < run->received + POSTED_AHEAD; run->posted++) {
        const struct halving_item *item = &run->schedule->receives[run->posted];
        float *into = NULL;
        if (!item->reduces) {
            if (item->replaces >= run->sent)
                break;
            if (run->posted > run->received &&
                !transport_sent(halving->transport, item->peer, halving->tickets[item->replaces]))
                break;
            TRY(transport_wait_sent(halving->transport, item->peer,
                                    halving->tickets[item->replaces]));
            into = run->data + item->span.offset;
        }
        struct lane *lane = &halving->lanes[item->peer];
        TRY(transport_post(halving->transport, &lane->slots[lane->posted++ % POSTED_AHEAD], into));
    }
out:
    return status;
}

/* Waits for the next item and adds it to ours, or keeps it (then it has landed in place). */
static enum status receive_next(struct run *run)
{
    enum status status = STATUS_OK;
    struct halving *halving = run->halving;
    const struct halving_item *item = &run->schedule->receives[run->received];
    struct lane *lane = &halving->lanes[item->peer];
    struct transport_slot *slot = &lane->slots[lane->taken++ % POSTED_AHEAD];
    TRY(transport_wait(halving->transport, slot));
    struct message expected = describe(run, item->span);
    TRY(transport_expect(halving->transport, slot, &expected));
    float *ours = run->data + item->span.offset;
    if (item->completes)
        reduce_add_scale(ours, slot->payload, item->span.count, halving->options->scale);
    else if (item->reduces)
        reduce_add(ours, slot->payload, item->span.count);
    transport_release(halving->transport, slot);
    run->received++;
out:
    return status;
}

static enum status halving_allreduce(void *self, size_t bucket, float *data)
{
    enum status status = STATUS_OK;
    struct halving *halving = self;
    const struct halving_schedule *schedule = &halving->schedules[bucket];
    if (halving->workers == 1) {
        reduce_scale(data, schedule->count, halving->options->scale);
        return STATUS_OK;
    }
    struct run run = {.halving = halving, .schedule = schedule, .bucket = bucket, .data = data};
    TRY(post_ahead(&run)); /* before partners begin to send */
    while (run.received < schedule->items) {
        TRY(send_ready(&run));
        TRY(post_ahead(&run));
        TRY(receive_next(&run));
    }
    TRY(send_ready(&run));
    /* The caller may change the data now, so none of it may still be waiting to be sent. */
    TRY(transport_flush(halving->transport));
    halving->step++;
out:
    return status;
}

/* ---- Opening and closing -----------------------------------------------------------------------
 */

static void halving_close(void *self)
{
    struct halving *halving = self;
    for (int peer = 0; halving->lanes && peer < halving->workers; peer++) {
        for (int i = 0; i < POSTED_AHEAD; i++)
            transport_slot_fini(&halving->lanes[peer].slots[i], halving->transport);
    }
    for (size_t b = 0; halving->schedules && b < halving->options->buckets; b++)
        halving_schedule_fini(&halving->schedules[b]);
    free(halving->schedules);
    free(halving->tickets);
    free(halving->lanes);
    free(halving);
}

static enum status open_schedules(struct halving *halving)
{
    enum status status = STATUS_OK;
    const struct comm_options *options = halving->options;
    size_t items_max = 0;
    for (size_t b = 0; b < options->buckets; b++) {
        struct halving_schedule *schedule = &halving->schedules[b];
        TRY(halving_schedule_init(schedule, halving->workers, halving->rank,
                                  options->bucket_counts[b], options->segment_bytes));
        items_max = schedule->items > items_max ? schedule->items : items_max;
    }
    halving->tickets = calloc(items_max + 1, sizeof *halving->tickets);
    if (!halving->tickets) {
        log_error("rhd: no memory for %zu messages", items_max);
        status = STATUS_NO_MEMORY;
    }
out:
    return status;
}

/* Slots for every peer that sends to us in any bucket, long enough for its longest item. */
static enum status open_lanes(struct halving *halving)
{
    enum status status = STATUS_OK;
    size_t longest = 0;
    for (size_t b = 0; b < halving->options->buckets; b++) {
        const struct halving_schedule *schedule = &halving->schedules[b];
        for (size_t i = 0; i < schedule->items; i++) {
            size_t count = schedule->receives[i].span.count;
            longest = count > longest ? count : longest;
            halving->lanes[schedule->receives[i].peer].open = true;
        }
    }
    for (int peer = 0; peer < halving->workers; peer++) {
        struct lane *lane = &halving->lanes[peer];
        for (int i = 0; lane->open && i < POSTED_AHEAD; i++)
            TRY(transport_slot_init(&lane->slots[i], halving->transport, peer,
                                    longest * sizeof(float)));
    }
out:
    return status;
}

static enum status halving_open(void **self, const struct comm_site *site)
{
    enum status status = STATUS_OK;
    const struct comm_options *options = site->options;
    if (options->reduce_order == REDUCE_ORDER_RING) {
        log_error("rhd: adds in the order of a tree and cannot in the ring's; leave --reduce-order "
                  "ring out, or use --backend ring or ps");
        return STATUS_UNSUPPORTED;
    }
    struct halving *halving = calloc(1, sizeof *halving);
    if (!halving) {
        log_error("rhd: out of memory");
        return STATUS_NO_MEMORY;
    }
    halving->transport = site->transport;
    halving->options = options;
    halving->workers = site->topology.workers;
    halving->rank = site->index;
    halving->schedules = calloc(options->buckets + 1, sizeof *halving->schedules);
    halving->lanes = calloc((size_t)halving->workers, sizeof *halving->lanes);
    if (!halving->schedules || !halving->lanes) {
        log_error("rhd: no memory for %zu buckets", options->buckets);
        status = STATUS_NO_MEMORY;
        goto out;
    }
    TRY(open_schedules(halving));
    TRY(open_lanes(halving));
    *self = halving;
    return STATUS_OK;
out:
    halving_close(halving);
    return status;
}

const struct backend backend_rhd = {
    .name = "rhd",
    .summary = "halving-doubling all-reduce over --transport; the ring's bytes in 2 lg N steps",
    .uses_transport = true,
    .default_transport = TRANSPORT_MPI,
    .open = halving_open,
    .allreduce = halving_allreduce,
    .close = halving_close,
};
