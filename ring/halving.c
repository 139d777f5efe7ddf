/*
 * Halving-doubling all-reduce (Rabenseifner)
 * ==========================================
 *
 * The ring moves the fewest bytes possible, but in 2(N-1) steps, one after the other. For a short
 * vector the steps cost more than the bytes. This algorithm moves the same bytes in at most 2 lg N
 * steps. (Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005, section 4.)
 *
 * Algorithm. Cut the vector into N chunks. In the first step each worker exchanges with its
 * neighbour: one is responsible for the first half of the chunks, the other for the second. It
 * sends the chunks of the partner's half and adds the received chunks to those of its half. It
 * then sends half of these to a worker two ranks away, and so on (*recursive halving*). After lg N
 * steps it holds one chunk, which is complete (*reduce-scatter*). Then everything runs in reverse
 * (*recursive doubling*): each worker sends back, complete, what it received, and receives what it
 * sent (*all-gather*). Long messages thus stay near, and only short ones travel far. Textbooks
 * begin with the farthest partner, which fills the links between racks with the longest messages.
 *
 * The table is for four workers. A cell shows which chunks the worker sends > to which worker. The
 * brackets show what it holds of them at that time: the set of workers already added.
 *
 *                 worker 0         worker 1         worker 2         worker 3
 *   step 0        23 > 1 [0]       01 > 0 [1]       23 > 3 [2]       01 > 2 [3]
 *   step 1        1 > 2 [01]       3 > 3 [01]       0 > 0 [23]       2 > 1 [23]
 *   step 2        0 > 2 [0123]     2 > 3 [0123]     1 > 0 [0123]     3 > 1 [0123]
 *   step 3        01 > 1 [0123]    23 > 0 [0123]    01 > 3 [0123]    23 > 2 [0123]
 *
 * (tests/ring/test_halving_schedule.c prints these tables from the code and compares.)
 *
 * Bytes. M/2, M/4, ... M/N and the same in reverse: 2(N-1)/N M, sent and received. Here it is 1.5 M
 * in four steps, where the ring needs six. For 64 workers it takes 12 steps, where the ring needs
 * 126.
 *
 * Any number of workers. A group that cannot be halved is cut into p equal parts, p the least prime
 * factor of its size. A worker exchanges with its counterpart in each of the other parts at once.
 * Every step is therefore balanced, and every worker sends 2(N-1)/N M. The price is messages: a
 * factor of p takes p - 1 messages each way, twice. The ring takes as many, but one after the
 * other. A prime N is one step of direct exchange. For three workers:
 *
 *                 worker 0                 worker 1                 worker 2
 *   step 0        1 > 1 [0], 2 > 2 [0]     2 > 2 [1], 0 > 0 [1]     0 > 0 [2], 1 > 1 [2]
 *   step 1        0 > 1 [012], 0 > 2 [012] 1 > 2 [012], 1 > 0 [012] 2 > 0 [012], 2 > 1 [012]
 *
 * Radix. On links with a long latency fewer steps are worth more messages. With radix R a group
 * is cut into as many parts as possible up to R (halving_schedule.h), so N = R^k takes 2k steps. R
 * = N makes every N the direct exchange of the last table: each worker sends every other one its
 * part, and the sums come back. The bytes stay 2(N-1)/N M for every R.
 *
 * Order of addition. The order is a tree. Each sum is made by one worker and copied, so all workers
 * hold the same bits. If all cuts are in halves, N fixes the order, because a + b is b + a. In a
 * cut into more parts a worker begins with its own part, so the order depends on the chunk's owner.
 * The owner depends on the slices: the bits are then the same in all runs with the same R and
 * slices. This holds for compressed vectors, too: a worker does not round its own contribution.
 * --reduce-order ring, another order, is refused.
 *
 * Slices. A worker that waits for the one message of a step leaves its link idle. A long vector is
 * therefore cut into slices. They go through the algorithm independently of each other, a few steps
 * apart. While one slice waits for a message or adds it, messages of other slices are on the wire.
 * A short vector is one slice and costs one message a step. Messages are taken from any peer in
 * order of arrival. The field `after` counts the receives that a message must wait for; nothing
 * else waits (halving_schedule.h). Very short vectors among 2, 4, 8, ... workers that halving cuts
 * in halves use recursive doubling instead (below).
 *
 * Code, top-down. halving_allreduce is the algorithm. The functions above it send what is ready,
 * post receives ahead, wait for the next message and process it. They obey the list of messages,
 * whichever algorithm wrote it: tree.c uses them too.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/util.h"
#include "common/comm/codec.h"
#include "common/base/range.h"
#include "ring/halving_schedule.h"
#include "ring/ring.h"

/* Receives posted ahead in an exchange, so MPI has a buffer ready for the next messages. At a
 * distance more messages are on the way. TCP and ZeroMQ store those. MPI stores only short ones. */
enum { POSTED_AHEAD = HALVING_SLICES_UNDER_WAY };

/* One peer: the state of its exchange in the running all-reduce, and slots, used in turn. */
struct halving_peer {
    const struct halving_exchange *plan;
    int node;
    size_t sent, posted, received; /* messages; those received have been processed */
    bool borrowed[POSTED_AHEAD];   /* the slot's message does not land in place */
    struct transport_slot slots[POSTED_AHEAD];
};

struct halving {
    const struct halving_lister *lister; /* borrowed */
    const struct backend_env *site;      /* borrowed */
    struct transport *transport;         /* the site's */
    int workers;
    uint64_t step; /* all-reduces done, over all buckets and plans; in every header */

    /* State of the present plan. */
    size_t buckets;
    struct halving_schedule *schedules; /* (buckets); all have the same exchanges */
    struct codec *codecs;               /* (buckets): plain or compressed floats */
    struct halving_peer *peers;
    size_t peer_count;
    struct transport_slot **oldest; /* (peers): slot with the next message of its slice, or NULL */
    size_t *dealt;                  /* (slices): receives processed */
    uint64_t *tickets;              /* by position in schedule->items: tickets of sent messages */
};

/* One all-reduce. */
struct halving_run {
    struct halving *halving;
    const struct halving_schedule *schedule;
    struct codec *codec;
    void *data;
};

static uint64_t *ticket_of(const struct halving_run *run, const struct halving_item *sent)
{
    return &run->halving->tickets[sent - run->schedule->items];
}

/* The first exchange, by order, whose next message has no receive left to wait for; NULL: none. */
static struct halving_peer *find_ready(const struct halving *halving)
{
    struct halving_peer *found = NULL;
    for (size_t l = 0; l < halving->peer_count; l++) {
        struct halving_peer *peer = &halving->peers[l];
        if (peer->sent == peer->plan->send_count)
            continue;
        const struct halving_item *item = &peer->plan->sends[peer->sent];
        if (halving->dealt[item->slice] < item->after)
            continue;
        if (!found || item->order < found->plan->sends[found->sent].order)
            found = peer;
    }
    return found;
}

/* Sends every message that the receives so far allow. */
static enum status send_ready(struct halving_run *run)
{
    struct halving *halving = run->halving;
    for (struct halving_peer *peer; (peer = find_ready(halving));) {
        const struct halving_item *item = &peer->plan->sends[peer->sent++];
        struct message message =
            codec_message(run->codec, MESSAGE_SEGMENT, halving->step, item->span);
        const void *payload = item->reduces ? codec_encode(run->codec, run->data, item->span)
                                            : codec_wire(run->codec, run->data, item->span);
        enum status status =
            transport_send(halving->transport, peer->node, &message, payload, ticket_of(run, item));
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* Whether `item` may land on its memory: the transport has released what we sent from there to this
 * peer in reduce-scatter. */
static bool may_land(const struct halving_run *run, const struct halving_peer *peer,
                     const struct halving_item *item)
{
    return item->replaces < peer->sent &&
           transport_sent(run->halving->transport, peer->node,
                          *ticket_of(run, &peer->plan->sends[item->replaces]));
}

/*
 * Posts an exchange's receives, up to POSTED_AHEAD beyond those processed. In reduce-scatter a
 * payload is borrowed and added from where it is. In all-gather it lands in place as soon as it
 * may; until then no further slot of the exchange is posted. But one slot must be posted at any
 * time, because the peer sends only in response to what it receives. That slot may have to be
 * borrowed; its payload is copied after it has arrived.
 */
static enum status post_ahead(struct halving_run *run, struct halving_peer *peer)
{
    struct halving *halving = run->halving;
    while (peer->posted < peer->plan->receive_count &&
           peer->posted < peer->received + POSTED_AHEAD) {
        const struct halving_item *item = &peer->plan->receives[peer->posted];
        bool lands = !item->reduces && may_land(run, peer, item);
        if (!item->reduces && !lands && peer->posted > peer->received)
            break;
        size_t at = peer->posted++ % POSTED_AHEAD;
        peer->borrowed[at] = !lands;
        void *into = lands ? codec_wire(run->codec, run->data, item->span) : NULL;
        struct message expected =
            codec_message(run->codec, MESSAGE_SEGMENT, halving->step, item->span);
        transport_slot_expect(&peer->slots[at], &expected);
        enum status status = transport_post(halving->transport, &peer->slots[at], into);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status start_peers(struct halving_run *run)
{
    struct halving *halving = run->halving;
    memset(halving->dealt, 0, run->schedule->slices * sizeof *halving->dealt);
    for (size_t l = 0; l < halving->peer_count; l++) {
        struct halving_peer *peer = &halving->peers[l];
        peer->plan = &run->schedule->exchanges[l];
        peer->sent = peer->posted = peer->received = 0;
        enum status status = post_ahead(run, peer); /* before peers begin to send */
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* Waits for a message of any peer. A message that arrives before earlier ones of its slice stays in
 * its slot until those have been processed. This fixes the order of additions. */
static enum status wait_for_next(struct halving *halving, struct halving_peer **next)
{
    for (size_t l = 0; l < halving->peer_count; l++) {
        struct halving_peer *peer = &halving->peers[l];
        halving->oldest[l] = NULL;
        if (peer->received == peer->plan->receive_count)
            continue;
        const struct halving_item *item = &peer->plan->receives[peer->received];
        if (halving->dealt[item->slice] == item->after)
            halving->oldest[l] = &peer->slots[peer->received % POSTED_AHEAD];
    }
    size_t which = 0;
    enum status status =
        transport_wait_any(halving->transport, halving->oldest, halving->peer_count, false, &which);
    *next = &halving->peers[which];
    return status;
}

/* Processes the message that has arrived: adds it to our data, or keeps it. */
static enum status take(struct halving_run *run, struct halving_peer *peer)
{
    enum status status = STATUS_OK;
    struct halving *halving = run->halving;
    const struct halving_item *item = &peer->plan->receives[peer->received];
    size_t at = peer->received++ % POSTED_AHEAD;
    struct transport_slot *slot = &peer->slots[at];
    range_transfer_begin(item->reduces, run->codec->bucket, item->slice, slot->peer, item->step);
    if (item->completes) {
        codec_complete(run->codec, run->data, item->span, slot->payload,
                       halving->site->layout->scale);
    } else if (item->reduces) {
        codec_add(run->codec, run->data, item->span, slot->payload);
    } else {
        if (peer->borrowed[at])
            TRY(transport_wait_sent(halving->transport, peer->node,
                                    *ticket_of(run, &peer->plan->sends[item->replaces])));
        codec_take(run->codec, run->data, item->span, slot->payload);
    }
    transport_release(halving->transport, slot);
    halving->dealt[item->slice]++;
out:
    range_detail_end();
    return status;
}

/* -------- short vectors: recursive doubling --------------------------------------------------- */

/*
 * Recursive doubling of a short vector among N = 2, 4, 8, ... workers. Halving takes 2 lg N steps
 * to keep the bytes low. If only latency matters, lg N steps that move more bytes are faster. In
 * each step a worker sends its whole partial sum to a partner and adds the partner's:
 *
 *                 worker 0     worker 1     worker 2     worker 3
 *   step 0        > 1 [0]      > 0 [1]      > 3 [2]      > 2 [3]
 *   step 1        > 2 [01]     > 3 [01]     > 0 [23]     > 1 [23]
 *
 * After the last step all workers have [0123]. The partners are those of halving, in the same
 * order, so the same tree makes every sum. Both partners add the same two values, and a + b is b +
 * a, so all workers end with the bits of halving. Compressed vectors would not: each worker would
 * add a rounded contribution to its own unrounded one. Halving therefore takes compressed vectors,
 * and reductions that do not commute to the bit.
 *
 * Bytes: lg N M, sent and received, in lg N messages. With two workers that is M, as in every
 * algorithm.
 *
 * Source: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations
 * in MPICH", section 4.5.
 */
static bool doubling_suits(const struct halving *halving, size_t bucket)
{
    const struct codec *codec = &halving->codecs[bucket];
    const struct comm_options *options = halving->site->options;
    return halving->lister->doubles && codec->compress == COMPRESS_NONE &&
           (!codec->reduction || codec->reduction->commutes) &&
           doubling_is_short(halving->workers, options->radix, halving->schedules[bucket].slices,
                             codec->count * codec_element_bytes(options));
}

/* Swaps `data` with the partner of this step, that of halving's cut. The sum is complete after the
 * last step. */
static enum status doubling_swap(struct halving *halving, size_t step, struct codec *codec,
                                 void *data)
{
    enum status status = STATUS_OK;
    struct transport *transport = halving->transport;
    struct transport_slot *slot = &halving->peers[step].slots[0];
    const struct chunk all = {0, codec->count};
    struct message message = codec_message(codec, MESSAGE_SEGMENT, halving->step, all);
    uint64_t ticket;
    range_detail_begin("doubling", &(struct range_about){.kind = RANGE_TRANSFER,
                                                         .bucket = codec->bucket,
                                                         .peer = slot->peer,
                                                         .number = step});
    transport_slot_expect(slot, &message);
    TRY(transport_post(transport, slot, NULL));
    TRY(transport_send(transport, slot->peer, &message, codec_encode(codec, data, all), &ticket));
    TRY(transport_wait(transport, slot));
    /* The sum overwrites the memory that we send from. */
    TRY(transport_wait_sent(transport, slot->peer, ticket));
    if (step + 1 == halving->peer_count)
        codec_complete(codec, data, all, slot->payload, halving->site->layout->scale);
    else
        codec_add(codec, data, all, slot->payload);
    transport_release(transport, slot);
out:
    range_detail_end();
    return status;
}

/* On return the transport has sent all of `data`. */
static enum status doubling_allreduce(struct halving *halving, struct codec *codec, void *data)
{
    enum status status = STATUS_OK;
    for (size_t step = 0; step < halving->peer_count && status == STATUS_OK; step++)
        status = doubling_swap(halving, step, codec, data);
    halving->step++;
    return status;
}

/* -------- the all-reduce ---------------------------------------------------------------------- */

enum status halving_allreduce(void *self, size_t bucket, void *data)
{
    enum status status = STATUS_OK;
    struct halving *halving = self;
    const struct halving_schedule *schedule = &halving->schedules[bucket];
    if (halving->workers == 1) {
        codec_alone(&halving->codecs[bucket], data, halving->site->layout->scale);
        return STATUS_OK;
    }
    struct halving_run run = {halving, schedule, &halving->codecs[bucket], data};
    if (doubling_suits(halving, bucket))
        return doubling_allreduce(halving, run.codec, data);
    TRY(start_peers(&run));
    TRY(send_ready(&run));
    for (size_t received = 0; received < schedule->receives; received++) {
        struct halving_peer *peer;
        TRY(wait_for_next(halving, &peer));
        TRY(take(&run, peer));
        TRY(send_ready(&run));
        TRY(post_ahead(&run, peer));
    }
    /* The caller may change the data after this, so the transport must have sent all of it. */
    TRY(transport_flush(halving->transport));
    halving->step++;
out:
    return status;
}

/* -------- opening, planning, closing ---------------------------------------------------------- */

static void free_plan(struct halving *halving)
{
    for (size_t l = 0; halving->peers && l < halving->peer_count; l++) {
        for (int i = 0; i < POSTED_AHEAD; i++)
            transport_slot_fini(&halving->peers[l].slots[i], halving->transport);
    }
    for (size_t b = 0; halving->schedules && b < halving->buckets; b++)
        halving_schedule_fini(&halving->schedules[b]);
    codecs_free(halving->codecs, halving->buckets);
    free(halving->schedules);
    free(halving->peers);
    free(halving->oldest);
    free(halving->dealt);
    free(halving->tickets);
    *halving = (struct halving){.lister = halving->lister,
                                .site = halving->site,
                                .transport = halving->transport,
                                .workers = halving->workers,
                                .step = halving->step};
}

/* Opens slots that are long enough for the exchange's longest message in any bucket. */
static enum status open_peer(struct halving *halving, size_t at)
{
    enum status status = STATUS_OK;
    struct halving_peer *peer = &halving->peers[at];
    size_t longest = 0;
    for (size_t b = 0; b < halving->buckets; b++) {
        const struct halving_exchange *plan = &halving->schedules[b].exchanges[at];
        peer->node = halving->site->group->ranks[plan->peer]; /* a worker's rank is its node */
        for (size_t i = 0; i < plan->receive_count; i++)
            longest = size_larger(longest, plan->receives[i].span.count);
        if (doubling_suits(halving, b))
            longest = size_larger(longest, halving->codecs[b].count);
    }
    for (int i = 0; i < POSTED_AHEAD; i++)
        TRY(transport_slot_init(&peer->slots[i], halving->transport, peer->node,
                                longest * codec_element_bytes(halving->site->options)));
out:
    return status;
}

static enum status list_messages(struct halving_schedule *schedule, const struct backend_env *site,
                                 size_t count)
{
    const struct comm_options *options = site->options;
    return halving_schedule_init(schedule, site->workers, options->radix, site->index, count,
                                 halving_segment_bytes(site->workers, count, options),
                                 halving_under_way(site->workers, count, options));
}

enum status halving_plan(void *self)
{
    enum status status = STATUS_OK;
    struct halving *halving = self;
    const size_t *counts = halving->site->layout->counts;
    size_t slices = 0;
    free_plan(halving);
    halving->buckets = halving->site->layout->buckets;
    TRY(codecs_new(&halving->codecs, halving->site));
    halving->schedules = calloc(halving->buckets + 1, sizeof *halving->schedules);
    for (size_t b = 0; halving->schedules && b < halving->buckets; b++) {
        struct halving_schedule *schedule = &halving->schedules[b];
        TRY(halving->lister->list(schedule, halving->site, counts[b]));
        slices = size_larger(slices, schedule->slices);
        halving->peer_count = schedule->exchange_count;
    }
    size_t peers = halving->peer_count;
    halving->peers = calloc(peers + 1, sizeof *halving->peers);
    halving->oldest = calloc(peers + 1, sizeof *halving->oldest);
    halving->dealt = calloc(slices + 1, sizeof *halving->dealt);
    halving->tickets = calloc(4 * slices * peers + 1, sizeof *halving->tickets);
    if (!halving->schedules || !halving->peers || !halving->oldest || !halving->dealt ||
        !halving->tickets)
        return FAIL(STATUS_NO_MEMORY, "%s: no memory for %zu buckets, %zu peers and %zu slices",
                    halving->lister->name, halving->buckets, peers, slices);
    for (size_t l = 0; l < peers; l++)
        TRY(open_peer(halving, l));
out:
    return status;
}

float *halving_state(void *self, size_t index, size_t *count)
{
    const struct halving *halving = self;
    return codecs_state(halving->codecs, halving->buckets, index, count);
}

void halving_close(void *self)
{
    free_plan(self);
    free(self);
}

enum status halving_open_lister(void **self, const struct backend_env *site,
                                const struct halving_lister *lister)
{
    if (site->options->reduce_order == REDUCE_ORDER_RING)
        return FAIL(
            STATUS_UNSUPPORTED,
            "%s: adds in the order of a tree and does not support --reduce-order ring; omit the "
            "option, or use --backend ring or ps",
            lister->name);
    struct halving *halving = calloc(1, sizeof *halving);
    if (!halving)
        return FAIL(STATUS_NO_MEMORY, "%s: out of memory", lister->name);
    *halving = (struct halving){
        .lister = lister, .site = site, .transport = site->transport, .workers = site->workers};
    *self = halving;
    return STATUS_OK;
}

static enum status halving_open(void **self, const struct backend_env *site)
{
    static const struct halving_lister lister = {
        .name = "rhd", .list = list_messages, .doubles = true};
    return halving_open_lister(self, site, &lister);
}

const struct backend backend_rhd = {
    .name = "rhd",
    .summary = "halving-doubling all-reduce over --transport; the ring's bytes in 2 lg N steps",
    .uses_transport = true,
    .obeys_segment_bytes = true,
    .obeys_radix = true,
    .reduces = true,
    .compresses = true,
    .counts_bytes = true,
    .default_transport = TRANSPORT_TCP,
    .cost = &halving_cost,
    .open = halving_open,
    .plan = halving_plan,
    .allreduce = halving_allreduce,
    .state = halving_state,
    .close = halving_close,
};
