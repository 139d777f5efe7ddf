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
 * (tests/ring/test_ring_schedule.c prints this table from the code and compares.) Read the
 * brackets: chunk c is always added in the order c, c+1, c+2, ...; that order decides the last bits
 * of a floating-point sum, and the parameter server can be told to add in the same one
 * (--reduce-order ring).
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
 * Phases. Reduce-scatter and all-gather can be run apart, each in a group of workers: among 6
 * workers in 2 rows, reduce-scatter in the rows, an all-reduce of what each then has in the 3
 * columns, and all-gather in the rows make the sum of all. Of what a worker sends, only 1/3 of the
 * vector's length goes to another row.
 *
 * Two workers send the same bytes in another order (pair.c).
 *
 * Shares. In such a ring of some workers each can stand for others, beside it on its host: what is
 * to be added here is then theirs, too (hierarchical.c). The ring asks for it where a chunk sets
 * out and where it comes by.
 *
 * In the code below: `ring_run` is the algorithm; the three functions above it are a send, a
 * receive posted ahead, and what is done with what has arrived.
 */
#include "ring/ring.h"

#include <stdlib.h>

#include "common/base/status.h"
#include "common/base/util.h"
#include "common/comm/codec.h"
#include "common/base/range.h"
#include "ring/schedule.h"

struct ring {
    const struct backend_env *site; /* borrowed */
    struct transport *transport;    /* the site's */
    int workers;
    int next, previous;             /* neighbours' nodes */
    const struct ring_share *share; /* borrowed; NULL: what is to be added is `data` alone */
    uint64_t step; /* operations done, over all buckets and plans: part of every header */
    struct ring_plan plan;
};

/* Where one operation stands: items first .. end-1 of a schedule. Empty items are counted like
 * others, but nothing moves for them. */
struct ring_run {
    struct ring *ring;
    const struct schedule *schedule;
    struct codec *codec;
    void *data;
    size_t first, end;
    size_t sent;     /* the next to send */
    size_t posted;   /* the next to post a receive for */
    size_t received; /* the next to arrive; those before it have been dealt with */
};

/* Sends the next item: our own chunk's segments first, then what has come from the left. */
static enum status send_next(struct ring_run *run)
{
    struct ring *ring = run->ring;
    size_t item = run->sent++;
    struct chunk segment = schedule_send(run->schedule, item);
    if (segment.count == 0)
        return STATUS_OK;
    if (ring->share && item < run->schedule->segments)
        ring->share->begin(ring->share->context, run->data, segment);
    struct message message = codec_message(run->codec, MESSAGE_SEGMENT, ring->step, segment);
    const void *payload = schedule_reduces(run->schedule, item)
                              ? codec_encode(run->codec, run->data, segment)
                              : codec_wire(run->codec, run->data, segment);
    return transport_send(ring->transport, ring->next, &message, payload,
                          &ring->plan.tickets[item]);
}

/* As which item we sent on, one round ago, the chunk that comes back as `item`. */
static size_t sent_before(const struct ring_run *run, size_t item)
{
    return item - (size_t)(run->ring->workers - 1) * run->schedule->segments;
}

/*
 * In all-gather, what arrives as `item` lands in place, over the partial sum that we sent on one
 * round ago, if that was in this operation. It is in the next workers' hands by
 * then, but our transport must also have let go of that memory. Waits for it only if nothing else
 * can be done first; else says not yet.
 */
static enum status may_overwrite(const struct ring_run *run, size_t item, bool *may)
{
    struct ring *ring = run->ring;
    size_t sent_as = sent_before(run, item);
    *may = sent_as < run->first;
    if (*may || sent_as >= run->sent) /* the latter only before the first sends */
        return STATUS_OK;
    bool urgent = run->received == item;
    *may = urgent || transport_sent(ring->transport, ring->next, ring->plan.tickets[sent_as]);
    if (!urgent)
        return STATUS_OK;
    return transport_wait_sent(ring->transport, ring->next, ring->plan.tickets[sent_as]);
}

/* Posts receives as far ahead of what has been dealt with as there are slots. In reduce-scatter a
 * payload is borrowed, and added from where it is; in all-gather it lands in place. */
static enum status post_ahead(struct ring_run *run)
{
    enum status status = STATUS_OK;
    struct ring *ring = run->ring;
    for (; run->posted < run->end && run->posted < run->received + ring->plan.slot_count;
         run->posted++) {
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
        struct transport_slot *slot = &ring->plan.slots[item % ring->plan.slot_count];
        struct message expected = codec_message(run->codec, MESSAGE_SEGMENT, ring->step, segment);
        transport_slot_expect(slot, &expected);
        TRY(transport_post(ring->transport, slot, into));
    }
out:
    return status;
}

/* Adds a partial sum to ours. */
static void add(const struct ring_run *run, size_t item, struct chunk segment, const void *payload)
{
    const struct ring_share *share = run->ring->share;
    bool completes = schedule_completes(run->schedule, item);
    if (share)
        payload = share->add(share->context, run->data, segment, payload, completes);
    if (completes)
        codec_complete(run->codec, run->data, segment, payload, run->ring->site->layout->scale);
    else
        codec_add(run->codec, run->data, segment, payload);
}

/* Waits for the next item and adds it to ours, or keeps it (then it has landed in place). */
static enum status receive_next(struct ring_run *run)
{
    enum status status = STATUS_OK;
    struct ring *ring = run->ring;
    size_t item = run->received++;
    struct chunk segment = schedule_receive(run->schedule, item);
    if (segment.count == 0)
        return STATUS_OK;
    struct transport_slot *slot = &ring->plan.slots[item % ring->plan.slot_count];
    TRY(transport_wait(ring->transport, slot));
    bool reduces = schedule_reduces(run->schedule, item);
    if (schedule_returns(run->schedule, item)) /* to where we sent it from */
        TRY(transport_wait_sent(ring->transport, ring->next,
                                ring->plan.tickets[sent_before(run, item)]));
    if (reduces)
        add(run, item, segment, slot->payload);
    else
        codec_take(run->codec, run->data, segment, slot->payload);
    transport_release(ring->transport, slot);
    if (ring->share && (!reduces || schedule_completes(run->schedule, item)))
        ring->share->complete(ring->share->context, run->data, segment);
out:
    return status;
}

/* For a timeline: the step that the next item is of begins, if it is the first one of it. */
static void trace_step(const struct ring_run *run)
{
    const struct schedule *schedule = run->schedule;
    if (!range_listens() || run->received % schedule->segments != 0)
        return;
    size_t step = run->received / schedule->segments;
    int workers = schedule->workers, previous = schedule_previous(workers, schedule->rank);
    range_transfer_begin(schedule_reduces(schedule, run->received), run->codec->bucket,
                         (size_t)schedule_chunk_sent(workers, previous, step), run->ring->previous,
                         step);
}

/* The steps from `first_step` to before `end_step`: N-1 are reduce-scatter, N-1 all-gather. */
static enum status ring_run(struct ring *ring, size_t bucket, void *data, size_t first_step,
                            size_t end_step)
{
    enum status status = STATUS_OK;
    const struct schedule *schedule = &ring->plan.schedules[bucket];
    size_t segments = schedule->segments, first = first_step * segments;
    struct ring_run run = {.ring = ring,
                           .schedule = schedule,
                           .codec = &ring->plan.codecs[bucket],
                           .data = data,
                           .first = first,
                           .end = end_step * segments,
                           .sent = first,
                           .posted = first,
                           .received = first};
    TRY(post_ahead(&run));
    while (run.sent < first + segments)
        TRY(send_next(&run));
    while (run.received < run.end) {
        trace_step(&run);
        TRY(receive_next(&run));
        if (run.sent < run.end)
            TRY(send_next(&run));
        TRY(post_ahead(&run));
        if (run.received % segments == 0)
            range_detail_end();
    }
    /* The caller may change the data now, so none of it may still be waiting to be sent. */
    TRY(transport_flush(ring->transport));
    ring->step++;
out:
    return status;
}

/* Two workers swap, where both end with the same bits (pair.c). */
static bool pair_suits(const struct ring_plan *plan, size_t bucket)
{
    const struct codec *codec = &plan->codecs[bucket];
    return plan->schedules[bucket].pieces > 0 && codec->compress == COMPRESS_NONE &&
           (!codec->reduction || codec->reduction->commutes);
}

static enum status ring_allreduce(void *self, size_t bucket, void *data)
{
    struct ring *ring = self;
    if (pair_suits(&ring->plan, bucket))
        return pair_allreduce(&ring->plan, bucket, data, ring->step++, ring->site->layout->scale);
    if (ring->workers > 1)
        return ring_run(ring, bucket, data, 0, schedule_steps(&ring->plan.schedules[bucket]));
    codec_alone(&ring->plan.codecs[bucket], data, ring->site->layout->scale);
    return STATUS_OK;
}

static enum status ring_reduce_scatter(void *self, size_t bucket, void *data)
{
    struct ring *ring = self;
    if (ring->workers > 1)
        return ring_run(ring, bucket, data, 0,
                        schedule_reduce_steps(&ring->plan.schedules[bucket]));
    return ring_allreduce(self, bucket, data);
}

static enum status ring_all_gather(void *self, size_t bucket, void *data)
{
    struct ring *ring = self;
    const struct schedule *schedule = &ring->plan.schedules[bucket];
    if (ring->workers == 1)
        return STATUS_OK;
    return ring_run(ring, bucket, data, schedule_reduce_steps(schedule), schedule_steps(schedule));
}

/* The chunk that is complete here after reduce-scatter. */
static struct chunk ring_part(const void *self, size_t bucket)
{
    const struct ring *ring = self;
    return schedule_own(&ring->plan.schedules[bucket]);
}

/* -------- the memory of a plan ---------------------------------------------------------------- */

/* A short vector has one segment a chunk: then receives of several steps are posted. More segments
 * than SLOTS_MOST only the user can ask for, with tiny ones. */
enum { SLOTS_LEAST = PAIR_WHOLE, SLOTS_MOST = 64 };

static enum status open_slots(struct ring_plan *plan, const struct backend_env *site, int previous,
                              size_t segment_count)
{
    enum status status = STATUS_OK;
    size_t bytes = segment_count * codec_element_bytes(site->options);
    for (size_t i = 0; i < plan->slot_count; i++)
        TRY(transport_slot_init(&plan->slots[i], plan->transport, previous, bytes));
out:
    return status;
}

enum status ring_plan_init(struct ring_plan *plan, const struct backend_env *site, int previous,
                           const struct schedule_part *part)
{
    enum status status = STATUS_OK;
    const struct comm_options *options = site->options;
    const struct comm_layout *layout = site->layout;
    size_t items = 0, segments = SLOTS_LEAST, segment_count = 0;
    *plan = (struct ring_plan){.transport = site->transport, .buckets = layout->buckets};
    plan->schedules = calloc(layout->buckets + 1, sizeof *plan->schedules);
    for (size_t b = 0; plan->schedules && b < layout->buckets; b++) {
        struct schedule *schedule = &plan->schedules[b];
        schedule_init(schedule, site->workers, site->index, layout->counts[b],
                      compress_float_bytes(options->compress, options->segment_bytes), part);
        segment_count = size_larger(segment_count, schedule_message_count_max(schedule));
        segments = size_larger(segments, schedule->segments);
        items = size_larger(items, size_larger(schedule_items(schedule), schedule->pieces + 1));
    }
    plan->slot_count = segments < SLOTS_MOST ? segments : SLOTS_MOST;
    plan->slots = calloc(plan->slot_count, sizeof *plan->slots);
    plan->tickets = calloc(items + 1, sizeof *plan->tickets);
    if (!plan->schedules || !plan->slots || !plan->tickets)
        return FAIL(STATUS_NO_MEMORY, "ring: no memory for %zu buckets", layout->buckets);
    TRY(codecs_new(&plan->codecs, site));
    for (size_t b = 0; b < layout->buckets; b++)
        plan->codecs[b].workers *= part ? part->parts : 1; /* each stands for as many */
    if (site->workers > 1)
        TRY(open_slots(plan, site, previous, segment_count));
out:
    return status;
}

void ring_plan_fini(struct ring_plan *plan)
{
    for (size_t i = 0; plan->slots && i < plan->slot_count; i++)
        transport_slot_fini(&plan->slots[i], plan->transport);
    codecs_free(plan->codecs, plan->buckets);
    free(plan->slots);
    free(plan->schedules);
    free(plan->tickets);
    *plan = (struct ring_plan){0};
}

/* -------- opening, planning, closing ---------------------------------------------------------- */

static enum status ring_replan(void *self)
{
    struct ring *ring = self;
    ring_plan_fini(&ring->plan);
    return ring_plan_init(&ring->plan, ring->site, ring->previous,
                          ring->share ? &ring->share->part : NULL);
}

static float *ring_state(void *self, size_t index, size_t *count)
{
    const struct ring_plan *plan = &((struct ring *)self)->plan;
    return codecs_state(plan->codecs, plan->buckets, index, count);
}

static void ring_close(void *self)
{
    struct ring *ring = self;
    ring_plan_fini(&ring->plan);
    free(ring);
}

enum status ring_open_share(void **self, const struct backend_env *site,
                            const struct ring_share *share)
{
    const struct group *group = site->group;
    int size = group->size, index = group->rank; /* a worker's rank is its node */
    struct ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return FAIL(STATUS_NO_MEMORY, "ring: out of memory");
    *ring = (struct ring){.site = site,
                          .transport = site->transport,
                          .workers = size,
                          .next = group->ranks[schedule_next(size, index)],
                          .previous = group->ranks[schedule_previous(size, index)],
                          .share = share};
    *self = ring;
    return STATUS_OK;
}

static enum status ring_open(void **self, const struct backend_env *site)
{
    return ring_open_share(self, site, NULL);
}

const struct backend backend_ring = {
    .name = "ring",
    .summary = "ring all-reduce over --transport; bandwidth-optimal",
    .uses_transport = true,
    .obeys_segment_bytes = true,
    .reduces = true,
    .compresses = true,
    .obeys_reduce_order = true,
    .counts_bytes = true,
    .default_transport = TRANSPORT_TCP,
    .cost = &ring_cost,
    .open = ring_open,
    .plan = ring_replan,
    .allreduce = ring_allreduce,
    .reduce_scatter = ring_reduce_scatter,
    .all_gather = ring_all_gather,
    .part = ring_part,
    .state = ring_state,
    .close = ring_close,
};
