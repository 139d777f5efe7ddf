/*
 * Ring all-reduce
 * ===============
 *
 * N workers each hold a vector of M bytes. Afterwards every worker holds the sum. This program
 * exists to measure one claim. Among N workers alone, no algorithm lets every worker send fewer
 * than 2(N-1)/N M bytes. The ring sends exactly that, and all links are busy in both directions all
 * the time. It is *bandwidth-optimal* (Patarasuk and Yuan 2009). Its time hardly grows with N,
 * while a parameter server's time grows like N. The price is latency: 2(N-1) steps, one after the
 * other. (Extra machines can take over some of the bytes: see ps/.)
 *
 * Algorithm. Cut the vector into N chunks. Chunk c starts at worker c and travels once round the
 * ring. Each worker adds its own contribution, so after N-1 steps every chunk is complete at one
 * worker (*reduce-scatter*). The complete chunk then travels a second round, and each worker keeps
 * a copy (*all-gather*). In every step every worker sends one chunk to the right and receives
 * another from the left, so all workers are busy at the same time.
 *
 * The table shows which chunk moves where, for four workers. A cell names the chunk that the worker
 * sends. The brackets show what the worker holds of that chunk: the set of workers already added.
 *
 *                 worker 0     worker 1     worker 2     worker 3
 *   step 0        0 [0]        1 [1]        2 [2]        3 [3]         reduce-scatter
 *   step 1        3 [30]       0 [01]       1 [12]       2 [23]
 *   step 2        2 [230]      3 [301]      0 [012]      1 [123]
 *   step 3        1 [1230]     2 [2301]     3 [3012]     0 [0123]      all-gather
 *   step 4        0 [0123]     1 [1230]     2 [2301]     3 [3012]
 *   step 5        3 [3012]     0 [0123]     1 [1230]     2 [2301]
 *
 * (tests/ring/test_ring_schedule.c prints this table from the code and compares.) The brackets show
 * that chunk c is always added in the order c, c+1, c+2, ... This order decides the last bits of a
 * floating-point sum. The parameter server adds in the same order with --reduce-order ring.
 *
 * Bytes. There are 2(N-1) steps of M/N each. Here six steps of a quarter make 1.5 M, sent and
 * received.
 *
 * Segments. If a chunk travelled as one message, a worker could forward it only after all of it had
 * arrived. The wire would be idle while the last bytes are added. A chunk is therefore cut into K
 * segments, and each segment is forwarded as soon as it has been added. With K >= 2 one segment is
 * on the wire while another is being added. A few more segments smooth out scheduling noise. With
 * too many, the fixed cost of a message shows. schedule.c chooses K. The items are all segments of
 * all steps, in order. Each segment that arrives as item i leaves as item i + K. A worker sends the
 * K segments of its initial chunk first, which keeps the pipeline full to the end.
 *
 * Phases. Reduce-scatter and all-gather can run separately, each in a group of workers. Example: 6
 * workers form 2 rows of 3. Reduce-scatter in the rows, an all-reduce of each worker's result in
 * the 3 columns, and all-gather in the rows produce the sum of all six. Each worker sends only 1/3
 * of the vector's length to the other row.
 *
 * Two workers send the same bytes in another order (pair.c).
 *
 * Shares. A worker of the ring can represent other workers of its host (hierarchical.c). Their
 * vectors are then added here as well. The ring asks for that share where a chunk starts and where
 * it passes.
 *
 * Code. `ring_run` is the algorithm. The functions above it send an item, post receives ahead, and
 * process what has arrived.
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
    const struct ring_share *share; /* borrowed; NULL: the worker adds only `data` */
    uint64_t step; /* operations done, over all buckets and plans; part of every header */
    struct ring_plan plan;
};

/* State of one operation, which covers items first .. end-1 of a schedule. Empty items are counted
 * too, but no message is sent for them. */
struct ring_run {
    struct ring *ring;
    const struct schedule *schedule;
    struct codec *codec;
    void *data;
    size_t first, end;
    size_t sent;     /* next item to send */
    size_t posted;   /* next item to post a receive for */
    size_t received; /* next item to arrive; all items before it have been processed */
};

/* Sends the next item: first the segments of our own chunk, then what came from the left. */
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

/* The number under which we sent, one round ago, the chunk that returns as `item`. */
static size_t sent_before(const struct ring_run *run, size_t item)
{
    return item - (size_t)(run->ring->workers - 1) * run->schedule->segments;
}

/*
 * In all-gather, the payload of `item` lands in place. It overwrites the partial sum that we sent
 * one round ago, if we sent that sum in this operation. The next workers have received that sum by
 * then, but our own transport must also have released the memory. If `item` is the next one to
 * process, the function waits for the release. Otherwise it sets *may to false when the transport
 * still needs the memory.
 */
static enum status may_overwrite(const struct ring_run *run, size_t item, bool *may)
{
    struct ring *ring = run->ring;
    size_t sent_as = sent_before(run, item);
    *may = sent_as < run->first;
    if (*may || sent_as >= run->sent) /* the second only before the first sends */
        return STATUS_OK;
    bool urgent = run->received == item;
    *may = urgent || transport_sent(ring->transport, ring->next, ring->plan.tickets[sent_as]);
    if (!urgent)
        return STATUS_OK;
    return transport_wait_sent(ring->transport, ring->next, ring->plan.tickets[sent_as]);
}

/* Posts receives ahead of the items processed so far, as many as there are slots. In reduce-scatter
 * a payload is borrowed and added from where it is. In all-gather it lands in place. */
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

/* Adds a received partial sum to our data. */
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

/* Waits for the next item. In reduce-scatter adds it to our data. In all-gather it has landed in
 * place. */
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
    if (schedule_returns(run->schedule, item)) /* its sum overwrites the memory that we sent from */
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

/* For a timeline: opens the range of a step when the next item is the first of that step. */
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

/* Runs the steps from `first_step` to before `end_step`. The first N-1 steps are reduce-scatter,
 * the others all-gather. */
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
    /* The caller may change the data after this, so the transport must have sent all of it. */
    TRY(transport_flush(ring->transport));
    ring->step++;
out:
    return status;
}

/* Two workers swap directly if both then end with the same bits (pair.c). */
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

/* -------- the memory of a plan ---------------------------------------------------------------- */

/* A short vector has one segment a chunk. Receives of several steps are then posted. A chunk has
 * more segments than SLOTS_MOST only if it is longer than 64 MB, or if the user asks for tiny
 * segments. */
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
                      schedule_segment_bytes(site->workers, layout->counts[b], options, part),
                      part);
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
        plan->codecs[b].workers *= part ? part->parts : 1; /* each represents `parts` workers */
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
    .state = ring_state,
    .close = ring_close,
};
