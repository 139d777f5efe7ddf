#include "common/net/transport.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/net/transport_impl.h"

static const struct {
    const char *name;
    enum status (*open)(struct transport *endpoint[2], struct world *world,
                        const struct transport_options *options);
} kinds[] = {
    [TRANSPORT_ZMQ] = {"zmq", transport_zmq_open},
    [TRANSPORT_MPI] = {"mpi", transport_mpi_open},
};

const char *transport_kind_name(enum transport_kind kind)
{
    return kinds[kind].name;
}

const char *transport_kind_unavailable(enum transport_kind kind)
{
    return kind == TRANSPORT_MPI ? transport_mpi_unavailable : NULL;
}

bool transport_base_init(struct transport *transport, const struct transport_ops *ops,
                         struct world *world, const struct transport_options *options,
                         enum node_role role)
{
    int nodes = topology_nodes(&options->topology);
    transport->ops = ops;
    transport->world = world;
    transport->topology = options->topology;
    transport->role = role;
    transport->node = topology_node(&options->topology, world->rank, role);
    transport->limits = (struct message_limits){.run_id = world->run_id,
                                                .nodes = (uint32_t)nodes,
                                                .length_max = options->payload_bytes_max,
                                                .dtype = options->dtype};
    transport->timeout_ns = options->timeout_ms * NS_PER_MS;
    transport->peers = calloc((size_t)nodes, sizeof *transport->peers);
    if (!transport->peers) {
        log_error("transport: no memory for %d nodes", nodes);
        return false;
    }
    for (int node = 0; node < nodes; node++) {
        struct transport_peer *peer = &transport->peers[node];
        peer->local = topology_rank(&options->topology, node) == world->rank;
        peer->last = &peer->first;
    }
    return true;
}

void transport_base_fini(struct transport *transport)
{
    if (transport->strangers.messages > 0)
        log_debug("%" PRIu64 " messages of strangers were dropped, the last one: %s",
                  transport->strangers.messages, transport->strangers.reason);
    for (uint32_t node = 0; node < transport->limits.nodes; node++)
        arrivals_fini(&transport->peers[node].early);
    free(transport->peers);
}

const char *transport_describe(const struct transport *transport, int node, char *text, size_t size)
{
    const struct topology *topology = &transport->topology;
    bool server = topology_role(topology, node) == NODE_SERVER;
    snprintf(text, size, "%s %d (rank %d)", server ? "server" : "worker",
             server ? node - topology->workers : node, topology_rank(topology, node));
    return text;
}

enum status transport_open(struct transport *endpoint[2], struct world *world,
                           const struct transport_options *options)
{
    endpoint[NODE_WORKER] = endpoint[NODE_SERVER] = NULL;
    enum status status = kinds[options->kind].open(endpoint, world, options);
    if (status != STATUS_OK) {
        transport_close(&endpoint[NODE_WORKER]);
        transport_close(&endpoint[NODE_SERVER]);
    }
    return status;
}

void transport_close(struct transport **transport)
{
    if (!*transport)
        return;
    (*transport)->ops->close(*transport);
    *transport = NULL;
}

void transport_interrupt(struct transport *transport)
{
    if (transport)
        atomic_store(&transport->interrupted, true);
}

void transport_stop(struct transport *endpoint[2])
{
    for (int role = 0; role < 2; role++) {
        if (endpoint[role] && endpoint[role]->ops->cut)
            endpoint[role]->ops->cut(endpoint[role]);
    }
    for (int role = 0; role < 2; role++) {
        if (endpoint[role] && endpoint[role]->ops->settle)
            endpoint[role]->ops->settle(endpoint[role]);
    }
}

void transport_counters(const struct transport *transport, struct transport_counters *counters)
{
    *counters = transport->counters;
}

/* ---- Sending ----------------------------------------------------------------------------------
 */

enum status transport_send(struct transport *transport, int peer, const struct message *message,
                           const void *payload, uint64_t *ticket)
{
    struct message filled = *message;
    filled.run_id = transport->limits.run_id;
    filled.sender = (uint32_t)transport->node;
    CHECK(peer != transport->node && (uint32_t)peer < transport->limits.nodes);
    CHECK(filled.length <= transport->limits.length_max);
    uint8_t header[MESSAGE_HEADER_BYTES];
    message_encode(&filled, header);
    enum status status =
        transport->ops->send(transport, peer, header, payload, (size_t)filled.length);
    if (status != STATUS_OK)
        return status;
    struct transport_peer *to = &transport->peers[peer];
    if (ticket)
        *ticket = to->sends;
    to->sends++;
    if (!to->local) {
        transport->counters.sent_bytes += filled.length;
        transport->counters.sent_header_bytes += MESSAGE_HEADER_BYTES;
        transport->counters.sent_messages++;
    }
    return STATUS_OK;
}

bool transport_sent(struct transport *transport, int peer, uint64_t ticket)
{
    return transport->ops->completed(transport, peer) > ticket;
}

/* ---- Waiting ----------------------------------------------------------------------------------
 */

struct patience {
    int64_t deadline_ns; /* 0: not started */
    bool endless;
    bool for_sends; /* waits for a send to complete, not for a message */
    bool told;      /* the activity says for whom */
    int peer;       /* or: any of those in `slots` */
    struct transport_slot *const *slots;
    size_t slot_count;
    uint64_t offset; /* of the message, where known */
};

static enum activity_thread thread_of(const struct transport *transport)
{
    return transport->role == NODE_SERVER ? ACTIVITY_SERVER : ACTIVITY_WORKER;
}

/* The first and the last of the ranks that are waited for. */
static void awaited_ranks(const struct transport *transport, const struct patience *patience,
                          int *first, int *last)
{
    *first = *last = ACTIVITY_NOBODY;
    if (!patience->slots)
        *first = *last = topology_rank(&transport->topology, patience->peer);
    for (size_t i = 0; patience->slots && i < patience->slot_count; i++) {
        const struct transport_slot *slot = patience->slots[i];
        if (!slot || !slot->posted || slot->done)
            continue;
        int rank = topology_rank(&transport->topology, slot->peer);
        *first = *first == ACTIVITY_NOBODY || rank < *first ? rank : *first;
        *last = rank > *last ? rank : *last;
    }
}

static enum status timed_out(const struct transport *transport, const struct patience *patience)
{
    char name[64] = "any node";
    if (!patience->slots)
        transport_describe(transport, patience->peer, name, sizeof name);
    log_error(
        "%s %s: nothing for %g s; is its process alive, and its host reachable by the network "
        "in use (see --interface)? A slower network or longer steps need a larger --timeout",
        patience->for_sends ? "sending to" : "waiting for", name,
        (double)transport->timeout_ns / (double)NS_PER_S);
    if (transport->strangers.messages > 0)
        log_error("%" PRIu64 " messages were dropped because they are not of this run, the last "
                  "one: %s; does every host run the same psring?",
                  transport->strangers.messages, transport->strangers.reason);
    return STATUS_TIMEOUT;
}

/* One round of waiting: progress, and an error once nothing has moved for the time-out. Where the
 * world's activity is watched, whoever watches knows better when it is too long, and why. */
static enum status wait_round(struct transport *transport, struct patience *patience)
{
    bool moved = false;
    if (atomic_load(&transport->interrupted))
        return STATUS_TRANSPORT;
    int64_t wait_ns = transport->timeout_ns < NS_PER_S ? transport->timeout_ns : NS_PER_S;
    enum status status = transport->ops->progress(transport, wait_ns, patience->for_sends, &moved);
    if (status != STATUS_OK || patience->endless)
        return status;
    struct activity *activity = transport->world->activity;
    if (activity && patience->told && moved) {
        activity_moved(activity, thread_of(transport));
    } else if (activity && !patience->told && !moved) {
        int first, last;
        awaited_ranks(transport, patience, &first, &last);
        activity_wait(activity, thread_of(transport), first, last,
                      patience->for_sends ? ACTIVITY_SENDS : patience->offset);
        patience->told = true;
    }
    if (activity)
        return STATUS_OK;
    int64_t now_ns = clock_now_ns();
    if (moved || patience->deadline_ns == 0)
        patience->deadline_ns = now_ns + transport->timeout_ns;
    return now_ns < patience->deadline_ns ? STATUS_OK : timed_out(transport, patience);
}

static enum status end_wait(struct transport *transport, const struct patience *patience,
                            enum status status)
{
    if (patience->told)
        activity_go_on(transport->world->activity, thread_of(transport));
    return status;
}

enum status transport_wait_sent(struct transport *transport, int peer, uint64_t ticket)
{
    struct patience patience = {.for_sends = true, .peer = peer};
    enum status status = STATUS_OK;
    while (status == STATUS_OK && !transport_sent(transport, peer, ticket))
        status = wait_round(transport, &patience);
    return end_wait(transport, &patience, status);
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

/* ---- Receiving --------------------------------------------------------------------------------
 */

enum status transport_slot_init(struct transport_slot *slot, struct transport *transport, int peer,
                                size_t capacity)
{
    CHECK(capacity <= transport->limits.length_max);
    *slot = (struct transport_slot){.peer = peer, .capacity = capacity};
    return transport->ops->slot_init ? transport->ops->slot_init(transport, slot) : STATUS_OK;
}

static void withdraw(struct transport *transport, const struct transport_slot *slot)
{
    struct transport_peer *peer = &transport->peers[slot->peer];
    for (struct transport_slot **link = &peer->first; *link; link = &(*link)->next_posted) {
        if (*link != slot)
            continue;
        *link = slot->next_posted;
        if (!*link)
            peer->last = link;
        return;
    }
}

void transport_slot_fini(struct transport_slot *slot, struct transport *transport)
{
    if (slot->posted)
        withdraw(transport, slot);
    payload_release(&slot->held);
    if (slot->impl)
        transport->ops->slot_fini(transport, slot);
    *slot = (struct transport_slot){0};
}

/* Puts a message where its slot wants it; takes the payload. */
static enum status fill_slot(struct transport *transport, struct transport_slot *slot,
                             const struct message *message, struct payload payload)
{
    slot->held = payload;
    if (!slot->into)
        return transport_complete(transport, slot, message, payload.data);
    if (message->length > 0 && message->length <= slot->capacity)
        memcpy(slot->into, payload.data, message->length);
    payload_release(&slot->held);
    return transport_complete(transport, slot, message, slot->into);
}

enum status transport_post(struct transport *transport, struct transport_slot *slot, void *into)
{
    CHECK(!slot->posted);
    slot->done = false;
    slot->posted = true;
    slot->into = into;
    if (transport->ops->post)
        return transport->ops->post(transport, slot);
    struct transport_peer *peer = &transport->peers[slot->peer];
    struct arrival early;
    if (arrivals_pop(&peer->early, &early))
        return fill_slot(transport, slot, &early.message, early.payload);
    slot->next_posted = NULL;
    *peer->last = slot;
    peer->last = &slot->next_posted;
    return STATUS_OK;
}

static enum status wait_slot(struct transport *transport, struct transport_slot *slot,
                             uint64_t offset)
{
    CHECK(slot->posted);
    struct patience patience = {.peer = slot->peer, .offset = offset};
    enum status status = STATUS_OK;
    while (status == STATUS_OK && !slot->done)
        status = wait_round(transport, &patience);
    return end_wait(transport, &patience, status);
}

enum status transport_wait(struct transport *transport, struct transport_slot *slot)
{
    return wait_slot(transport, slot, ACTIVITY_NO_OFFSET);
}

enum status transport_wait_for(struct transport *transport, struct transport_slot *slot,
                               const struct message *expected)
{
    enum status status = wait_slot(transport, slot, expected->offset);
    return status == STATUS_OK ? transport_expect(transport, slot, expected) : status;
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
    struct patience patience = {
        .endless = patient, .slots = slots, .slot_count = count, .offset = ACTIVITY_NO_OFFSET};
    enum status status = STATUS_OK;
    while (status == STATUS_OK && !find_done(transport, slots, count, which))
        status = wait_round(transport, &patience);
    return end_wait(transport, &patience, status);
}

enum status transport_expect(const struct transport *transport, const struct transport_slot *slot,
                             const struct message *expected)
{
    const struct message *found = &slot->message;
    if (found->kind == expected->kind && found->step == expected->step &&
        found->bucket == expected->bucket && found->offset == expected->offset &&
        found->length == expected->length)
        return STATUS_OK;
    char name[64];
    log_error("%s sent kind %d, step %" PRIu64 " bucket %u offset %" PRIu64 " (%" PRIu64
              " bytes), expected kind %d, step %" PRIu64 " bucket %u offset %" PRIu64 " (%" PRIu64
              " bytes); do all ranks run with the same options?",
              transport_describe(transport, slot->peer, name, sizeof name), (int)found->kind,
              found->step, found->bucket, found->offset, found->length, (int)expected->kind,
              expected->step, expected->bucket, expected->offset, expected->length);
    return STATUS_PROTOCOL;
}

void transport_release(struct transport *transport, struct transport_slot *slot)
{
    (void)transport;
    payload_release(&slot->held);
    slot->posted = false;
    slot->done = false;
    slot->payload = NULL;
}

/* ---- For the implementations -------------------------------------------------------------------
 */

enum status transport_accept(struct transport *transport, const uint8_t *header, size_t size,
                             int peer, struct message *message)
{
    const char *reason = NULL;
    enum status status = message_decode(header, size, &transport->limits, message, &reason);
    if (status == STATUS_OK && (peer >= 0 ? message->sender != (uint32_t)peer
                                          : message->sender == (uint32_t)transport->node)) {
        reason = "sender is not who it came from";
        status = STATUS_PROTOCOL;
    }
    if (status == STATUS_INPUT && peer < 0) {
        transport->strangers.messages++;
        transport->strangers.reason = reason;
    } else if (status != STATUS_OK) {
        log_error("a message of %zu header bytes was refused: %s; does every host run the same "
                  "psring?",
                  size, reason);
    }
    return status;
}

enum status transport_too_long(const struct transport *transport, const struct transport_slot *slot)
{
    char name[64];
    log_error("%s sent more than the %zu bytes expected here; do all ranks run with the same "
              "options?",
              transport_describe(transport, slot->peer, name, sizeof name), slot->capacity);
    return STATUS_PROTOCOL;
}

enum status transport_complete(struct transport *transport, struct transport_slot *slot,
                               const struct message *message, const void *payload)
{
    if (message->length > slot->capacity)
        return transport_too_long(transport, slot);
    slot->message = *message;
    slot->payload = payload;
    slot->done = true;
    if (!transport->peers[slot->peer].local) {
        transport->counters.received_bytes += message->length;
        transport->counters.received_header_bytes += MESSAGE_HEADER_BYTES;
        transport->counters.received_messages++;
    }
    return STATUS_OK;
}

enum status transport_deliver(struct transport *transport, const struct message *message,
                              struct payload payload)
{
    struct transport_peer *peer = &transport->peers[message->sender];
    struct transport_slot *slot = peer->first;
    if (!slot)
        return arrivals_push(&peer->early, message, payload);
    peer->first = slot->next_posted;
    if (!peer->first)
        peer->last = &peer->first;
    return fill_slot(transport, slot, message, payload);
}
