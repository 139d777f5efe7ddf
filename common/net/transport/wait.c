/* Waits for messages and for sends, with a time-out. Reports which ranks a wait is for. */
#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/range.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/net/activity.h"
#include "common/net/transport/transport_impl.h"

/* One wait: for a message in any of `slots`, or for a send to `peer` to complete. */
struct wait_state {
    struct transport_slot *const *slots; /* NULL: a wait for a send */
    size_t slot_count;
    int peer;
    bool endless;
    bool begun;          /* its range has begun */
    bool reported;       /* the activity names the awaited ranks */
    int64_t deadline_ns; /* 0: not started */
    int64_t checked_ns;  /* the last comparison with the deadline */
    int looks;           /* embedded: looks since the last progress */
    int64_t look_ns;     /* embedded: time of the next look, or 0 */
    int64_t stalled_ns;  /* start of a stall that has been warned of; 0: none */
};

static enum activity_thread thread_of(const struct transport *transport)
{
    return transport->role == NODE_SERVER ? ACTIVITY_SERVER : ACTIVITY_WORKER;
}

/* Returns the next awaited peer and sets *slot to its slot (NULL for a send); -1: there is no
 * other. Set *next to 0 first. */
static int next_awaited(const struct wait_state *wait, size_t *next,
                        const struct transport_slot **slot)
{
    if (!wait->slots) {
        *slot = NULL;
        return (*next)++ == 0 ? wait->peer : -1;
    }
    while (*next < wait->slot_count) {
        *slot = wait->slots[(*next)++];
        if (*slot && (*slot)->posted && !(*slot)->done)
            return (*slot)->peer;
    }
    return -1;
}

/* The first and the last awaited rank, and the offset of the awaited message if there is only
 * one. */
static void find_awaited(const struct transport *transport, const struct wait_state *wait,
                         int *first, int *last, uint64_t *offset)
{
    const struct transport_slot *slot;
    size_t next = 0;
    *offset = wait->slots ? ACTIVITY_NO_OFFSET : ACTIVITY_SENDS;
    *first = *last = ACTIVITY_NOBODY;
    for (int peer; (peer = next_awaited(wait, &next, &slot)) >= 0;) {
        int rank = topology_rank(&transport->topology, peer);
        bool alone = *first == ACTIVITY_NOBODY;
        if (slot)
            *offset = alone && slot->expected.kind ? slot->expected.offset : ACTIVITY_NO_OFFSET;
        *first = alone || rank < *first ? rank : *first;
        *last = rank > *last ? rank : *last;
    }
}

/* Writes "waiting for worker 2 (rank 2): segment of step 17, ...; worker 3 (rank 3)" into `text`,
 * as many peers as fit. Returns `text`. */
static const char *describe_wait(const struct transport *transport, const struct wait_state *wait,
                                 char *text, size_t size)
{
    const struct transport_slot *slot;
    size_t next = 0;
    struct line line = line_in(text, size);
    const char *before = "";
    line_add(&line, "%s ", wait->slots ? "waiting for" : "sending to");
    for (int peer; (peer = next_awaited(wait, &next, &slot)) >= 0; before = "; ") {
        line_add(&line, "%s%s", before, transport_node_text(transport, peer).text);
        if (slot && slot->expected.kind != 0)
            line_add(&line, ": %s", transport_message_text(&slot->expected).text);
    }
    return text;
}

static void warn_of_stall(const struct transport *transport, struct wait_state *wait,
                          int64_t now_ns)
{
    char awaited[512];
    int64_t since_ns = wait->deadline_ns - transport->timeout_ns;
    if (transport->stall_ns <= 0 || wait->stalled_ns > 0 || now_ns - since_ns < transport->stall_ns)
        return;
    wait->stalled_ns = since_ns;
    log_warn("no progress for %lld s while %s; --timeout ends the wait after %g s",
             (long long)((now_ns - since_ns) / NS_PER_S),
             describe_wait(transport, wait, awaited, sizeof awaited),
             (double)transport->timeout_ns / (double)NS_PER_S);
}

static void log_end_of_stall(struct wait_state *wait)
{
    if (wait->stalled_ns > 0)
        log_info("continued after %lld s",
                 (long long)((clock_now_ns() - wait->stalled_ns) / NS_PER_S));
    wait->stalled_ns = 0;
}

static enum status timed_out(const struct transport *transport, const struct wait_state *wait)
{
    char awaited[512];
    log_error("no progress for %g s while %s; is its process alive, and its host reachable by the "
              "network in use (see --subnet)? A slower network or longer steps need a larger "
              "--timeout",
              (double)transport->timeout_ns / (double)NS_PER_S,
              describe_wait(transport, wait, awaited, sizeof awaited));
    if (transport->rejected.messages > 0)
        log_error("%" PRIu64 " messages were dropped because they are not of this run, the last "
                  "one: %s; does every host run the same psring?",
                  transport->rejected.messages, transport->rejected.reason);
    return STATUS_TIMEOUT;
}

/* -------- checking the peers (embedded) ------------------------------------------------------- */

static enum status look(struct transport *transport)
{
    enum status status = STATUS_OK;
    for (int node = 0; node < (int)transport->limits.nodes; node++) {
        const struct transport_peer *peer = &transport->peers[node];
        const struct unexpected_message *oldest;
        TRY(transport_check_call(transport, node, &peer->announced));
        if (peer->unexpected.count > 0) {
            oldest = fifo_at(&peer->unexpected, sizeof *oldest, 0);
            TRY(transport_check_unread(transport, node, &oldest->message.call));
        }
    }
    if (transport->ops->look)
        TRY(transport->ops->look(transport));
out:
    return status;
}

enum status transport_listen(struct transport *transport, int peer)
{
    enum status status = STATUS_OK;
    bool moved = false;
    if (!transport || !transport->embedded)
        return STATUS_OK;
    TRY(transport->ops->progress(transport, 0, false, &moved));
    TRY(look(transport));
    if (peer >= 0)
        TRY(transport_announce(transport, peer));
out:
    return status;
}

enum status transport_check_end(struct transport *transport)
{
    enum status status = STATUS_OK;
    if (!transport || !transport->embedded)
        return STATUS_OK;
    TRY(transport_listen(transport, -1));
    if (transport->ops->check_end)
        TRY(transport->ops->check_end(transport));
    transport->ended = true;
out:
    return status;
}

/*
 * Called in every round of a wait; checks the peers whenever nothing has moved for LOOK_MS.
 *
 * If a rank is already in a later call of the communicator, it has sent and received everything of
 * this call, and the missing message never comes. A send may have arrived without being reported,
 * by a thread that got no core, so it has SEND_LOOKS looks more.
 */
static enum status look_around(struct transport *transport, struct wait_state *wait, bool moved)
{
    enum { SEND_LOOKS = 20 };
    enum status status = STATUS_OK;
    const struct transport_slot *slot;
    int64_t now_ns = clock_now_ns();
    bool due = wait->look_ns != 0 && !moved && now_ns >= wait->look_ns;
    if (moved)
        wait->looks = 0;
    if (wait->look_ns == 0 || moved || due)
        wait->look_ns = now_ns + LOOK_MS * NS_PER_MS;
    if (!due)
        return STATUS_OK;
    bool checks = wait->slots || ++wait->looks > SEND_LOOKS;
    size_t next = 0;
    for (int peer; checks && (peer = next_awaited(wait, &next, &slot)) >= 0;)
        TRY(transport_check_ahead(transport, peer));
    TRY(look(transport));
    next = 0;
    for (int peer; (peer = next_awaited(wait, &next, &slot)) >= 0;)
        TRY(transport_announce(transport, peer));
out:
    return status;
}

/* One round of waiting: progress, and an error if nothing has moved during the time-out. With a
 * watchdog there is no time-out here: the watchdog knows better when a wait is too long, and
 * why. */
static enum status wait_round(struct transport *transport, struct wait_state *wait)
{
    bool moved = false;
    if (transport_interrupted(transport))
        return STATUS_TRANSPORT;
    if (!wait->begun) {
        wait->begun = true;
        range_detail_begin(wait->slots ? "wait for a message" : "wait for sends",
                           &(struct range_about){.kind = RANGE_WAIT});
    }
    /* The time-out starts after the first round, which is short. A wait that succeeds at once reads
     * no clock, and no other wait takes much longer than the time-out. */
    bool starts = wait->deadline_ns == 0 && !wait->reported && !wait->endless;
    int64_t most_ns = transport->embedded || starts ? LOOK_MS * NS_PER_MS : NS_PER_S;
    if (transport->timeout_ns > 0 && most_ns > transport->timeout_ns / 2)
        most_ns = transport->timeout_ns / 2; /* world_acts needs it */
    int64_t left_ns =
        wait->deadline_ns == 0 ? transport->timeout_ns : wait->deadline_ns - wait->checked_ns;
    int64_t wait_ns = left_ns < most_ns ? left_ns : most_ns;
    enum status status = transport->ops->progress(transport, wait_ns, !wait->slots, &moved);
    world_acts(transport->world);
    if (status == STATUS_OK && transport->embedded)
        status = look_around(transport, wait, moved);
    if (status != STATUS_OK || wait->endless)
        return status;
    struct activity *activity = transport->world->activity;
    if (activity && wait->reported && moved) {
        activity_moved(activity, thread_of(transport));
    } else if (activity && !wait->reported && !moved) {
        int first, last;
        uint64_t offset;
        find_awaited(transport, wait, &first, &last, &offset);
        activity_wait(activity, thread_of(transport), first, last, offset);
        wait->reported = true;
    }
    if (activity)
        return STATUS_OK;
    int64_t now_ns = clock_now_ns();
    if (moved)
        log_end_of_stall(wait);
    if (moved || wait->deadline_ns == 0)
        wait->deadline_ns = now_ns + transport->timeout_ns;
    wait->checked_ns = now_ns;
    warn_of_stall(transport, wait, now_ns);
    return now_ns < wait->deadline_ns ? STATUS_OK : timed_out(transport, wait);
}

static enum status end_wait(struct transport *transport, struct wait_state *wait,
                            enum status status)
{
    if (wait->begun)
        range_detail_end();
    if (status == STATUS_OK)
        log_end_of_stall(wait);
    if (wait->reported)
        activity_go_on(transport->world->activity, thread_of(transport));
    return status;
}

enum status transport_wait_sent(struct transport *transport, int peer, uint64_t ticket)
{
    struct wait_state wait = {.peer = peer};
    enum status status = STATUS_OK;
    while (status == STATUS_OK && !transport_sent(transport, peer, ticket))
        status = wait_round(transport, &wait);
    return end_wait(transport, &wait, status);
}

enum status transport_flush(struct transport *transport)
{
    for (uint32_t peer = 0; peer < transport->limits.nodes; peer++) {
        uint64_t sends = transport->peers[peer].sends;
        if (sends == 0)
            continue;
        enum status status = transport_wait_sent(transport, (int)peer, sends - 1);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

enum status transport_wait(struct transport *transport, struct transport_slot *slot)
{
    CHECK(slot->posted);
    struct wait_state wait = {.slots = &slot, .slot_count = 1};
    enum status status = STATUS_OK;
    while (status == STATUS_OK && !slot->done)
        status = wait_round(transport, &wait);
    return end_wait(transport, &wait, status);
}

static bool find_done(struct transport *transport, struct transport_slot *const *slots,
                      size_t count, size_t *which)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = (transport->next_any + i) % count;
        if (slots[at] && slots[at]->posted && slots[at]->done) {
            *which = at;
            transport->next_any = at + 1;
            return true;
        }
    }
    return false;
}

enum status transport_wait_any(struct transport *transport, struct transport_slot *const *slots,
                               size_t count, bool patient, size_t *which)
{
    struct wait_state wait = {.slots = slots, .slot_count = count, .endless = patient};
    enum status status = STATUS_OK;
    while (status == STATUS_OK && !find_done(transport, slots, count, which))
        status = wait_round(transport, &wait);
    return end_wait(transport, &wait, status);
}
