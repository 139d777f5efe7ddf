#include "common/net/transport/transport.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/net/transport/transport_impl.h"
#include "common/obs/range.h"

static const struct {
    const char *name;
    enum status (*open)(struct transport *endpoint[2], struct world *world,
                        const struct transport_options *options);
} kinds[] = {
    [TRANSPORT_ZMQ] = {"zmq", transport_zmq_open},
    [TRANSPORT_MPI] = {"mpi", transport_mpi_open},
    [TRANSPORT_TCP] = {"tcp", transport_tcp_open},
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
    transport->stall_ns = options->stall_warning_ms * NS_PER_MS;
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

const char *transport_describe_message(const struct message *message, char *text, size_t size)
{
    static const char *const kinds_of_message[] = {
        [MESSAGE_SEGMENT] = "segment", [MESSAGE_PUSH] = "push",   [MESSAGE_PULL] = "answer",
        [MESSAGE_BYE] = "goodbye",     [MESSAGE_PAUSE] = "pause", [MESSAGE_STORE] = "store",
        [MESSAGE_FETCH] = "fetch",     [MESSAGE_CLOCK] = "clock"};
    static const char *const elements[MESSAGE_DTYPES] = {[MESSAGE_FP16] = " of fp16",
                                                         [MESSAGE_BF16] = " of bf16",
                                                         [MESSAGE_FLOAT64] = " of float64",
                                                         [MESSAGE_INT32] = " of int32",
                                                         [MESSAGE_INT64] = " of int64"};
    snprintf(text, size,
             "%s of step %" PRIu64 ", bucket %" PRIu32 ", offset %" PRIu64 " (%" PRIu64 " bytes%s)",
             kinds_of_message[message->kind], message->step, message->bucket, message->offset,
             message->length, elements[message->dtype] ? elements[message->dtype] : "");
    return text;
}

/* About how many descriptors this rank's endpoints need, with some for files, probes and strangers.
 * ZeroMQ's context has 5, its check of passwords 1; an endpoint has 6, and 3 a peer: a socket's
 * mailbox and a connection each way. A TCP endpoint has 2, and a connection a peer. */
static int descriptors_of(const struct world *world, const struct transport_options *options)
{
    enum { OTHERS = 8, ZMQ_CONTEXT = 6, ZMQ_ENDPOINT = 6, ZMQ_PEER = 3, TCP_ENDPOINT = 2 };
    int nodes = topology_nodes(&options->topology), count = OTHERS;
    for (enum node_role role = 0; role <= NODE_SERVER; role++) {
        if (topology_node(&options->topology, world->rank, role) < 0)
            continue;
        int all = nodes - 1, servers = options->topology.servers;
        int peers = servers == 0 ? all : role == NODE_SERVER ? nodes - servers : servers;
        count += options->kind == TRANSPORT_ZMQ   ? ZMQ_ENDPOINT + ZMQ_PEER * peers
                 : options->kind == TRANSPORT_TCP ? TCP_ENDPOINT + peers
                                                  : 0;
    }
    return count + (options->kind == TRANSPORT_ZMQ ? ZMQ_CONTEXT : 0);
}

enum status transport_open(struct transport *endpoint[2], struct world *world,
                           const struct transport_options *options)
{
    endpoint[NODE_WORKER] = endpoint[NODE_SERVER] = NULL;
    enum status status = world_check_descriptors(world, descriptors_of(world, options));
    if (status == STATUS_OK)
        status = kinds[options->kind].open(endpoint, world, options);
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

bool transport_interrupted(const struct transport *transport)
{
    return atomic_load(&transport->interrupted);
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

/* -------- sending ----------------------------------------------------------------------------- */

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
    transport_tell_send(transport, peer, &filled);
    enum status status =
        transport->ops->send(transport, peer, header, payload, (size_t)filled.length);
    range_detail_end();
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

/* -------- receiving --------------------------------------------------------------------------- */

enum status transport_slot_init(struct transport_slot *slot, struct transport *transport, int peer,
                                size_t capacity)
{
    CHECK(capacity <= transport->limits.length_max);
    *slot = (struct transport_slot){.peer = peer, .capacity = capacity};
    return transport->ops->slot_init ? transport->ops->slot_init(transport, slot) : STATUS_OK;
}

/* True if it was still posted: nothing has come for it. */
static bool withdraw(struct transport *transport, const struct transport_slot *slot)
{
    struct transport_peer *peer = &transport->peers[slot->peer];
    for (struct transport_slot **link = &peer->first; *link; link = &(*link)->next_posted) {
        if (*link != slot)
            continue;
        *link = slot->next_posted;
        if (!*link)
            peer->last = link;
        return true;
    }
    return false;
}

void transport_slot_fini(struct transport_slot *slot, struct transport *transport)
{
    bool awaited = slot->posted && !slot->done;
    bool withdrawn = slot->posted && withdraw(transport, slot);
    if (awaited && !withdrawn && transport->ops->abandon)
        transport->ops->abandon(transport, slot);
    if (withdrawn || (awaited && slot->impl)) /* its message will come into another slot */
        transport->peers[slot->peer].posts--;
    payload_release(&slot->held);
    if (slot->impl)
        transport->ops->slot_fini(transport, slot);
    *slot = (struct transport_slot){0};
}

void transport_slot_expect(struct transport_slot *slot, const struct message *expected)
{
    slot->expected = *expected;
}

static enum status fill_slot(struct transport *transport, struct transport_slot *slot,
                             const struct message *message, struct payload payload);

enum status transport_post(struct transport *transport, struct transport_slot *slot, void *into)
{
    CHECK(!slot->posted);
    slot->done = false;
    slot->posted = true;
    slot->into = into;
    struct transport_peer *peer = &transport->peers[slot->peer];
    slot->number = peer->posts++;
    if (transport->ops->post)
        return transport->ops->post(transport, slot);
    struct arrival early;
    if (arrivals_pop(&peer->early, &early))
        return fill_slot(transport, slot, &early.message, early.payload);
    slot->next_posted = NULL;
    *peer->last = slot;
    peer->last = &slot->next_posted;
    return STATUS_OK;
}

void transport_release(struct transport *transport, struct transport_slot *slot)
{
    (void)transport;
    payload_release(&slot->held);
    slot->posted = false;
    slot->done = false;
    slot->payload = NULL;
}

/* -------- for the implementations ------------------------------------------------------------- */

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

/* Is `found` what the schedule says must come into the slot? */
static enum status check_expected(const struct transport *transport,
                                  const struct transport_slot *slot, const struct message *found)
{
    const struct message *expected = &slot->expected;
    if (!expected->kind ||
        (found->kind == expected->kind && found->step == expected->step &&
         found->bucket == expected->bucket && found->offset == expected->offset &&
         found->length == expected->length &&
         (!expected->dtype || found->dtype == expected->dtype)))
        return STATUS_OK;
    char name[64], texts[2][128];
    log_error("%s sent %s, expected %s; do all ranks run with the same options?",
              transport_describe(transport, slot->peer, name, sizeof name),
              transport_describe_message(found, texts[0], sizeof texts[0]),
              transport_describe_message(expected, texts[1], sizeof texts[1]));
    return STATUS_PROTOCOL;
}

enum status transport_too_long(const struct transport *transport, const struct transport_slot *slot)
{
    char name[64];
    log_error("%s sent more than the %zu bytes expected here; do all ranks run with the same "
              "options?",
              transport_describe(transport, slot->peer, name, sizeof name), slot->capacity);
    return STATUS_PROTOCOL;
}

static enum status check_fit(const struct transport *transport, const struct transport_slot *slot,
                             const struct message *message)
{
    enum status status = check_expected(transport, slot, message);
    if (status == STATUS_OK && message->length > slot->capacity)
        status = transport_too_long(transport, slot);
    return status;
}

enum status transport_complete(struct transport *transport, struct transport_slot *slot,
                               const struct message *message, const void *payload)
{
    enum status status = check_fit(transport, slot, message);
    if (status != STATUS_OK)
        return status;
    slot->message = *message;
    slot->payload = payload;
    slot->done = true;
    transport->peers[slot->peer].arrived++;
    transport_tell_arrival(transport, slot);
    if (!transport->peers[slot->peer].local) {
        transport->counters.received_bytes += message->length;
        transport->counters.received_header_bytes += MESSAGE_HEADER_BYTES;
        transport->counters.received_messages++;
    }
    return STATUS_OK;
}

/* Puts a message where its slot wants it, once it is known to fit; takes the payload. */
static enum status fill_slot(struct transport *transport, struct transport_slot *slot,
                             const struct message *message, struct payload payload)
{
    slot->held = payload;
    if (!slot->into)
        return transport_complete(transport, slot, message, payload.data);
    enum status status = check_fit(transport, slot, message);
    if (status == STATUS_OK && message->length > 0)
        memcpy(slot->into, payload.data, message->length);
    payload_release(&slot->held);
    return status == STATUS_OK ? transport_complete(transport, slot, message, slot->into) : status;
}

/* The oldest slot posted for a peer, which is so no longer; NULL: there is none. */
static struct transport_slot *take_slot(struct transport_peer *peer)
{
    struct transport_slot *slot = peer->first;
    if (!slot)
        return NULL;
    peer->first = slot->next_posted;
    if (!peer->first)
        peer->last = &peer->first;
    return slot;
}

enum status transport_claim(struct transport *transport, const struct message *message,
                            struct transport_slot **slot)
{
    *slot = take_slot(&transport->peers[message->sender]);
    return *slot ? check_fit(transport, *slot, message) : STATUS_OK;
}

enum status transport_deliver(struct transport *transport, const struct message *message,
                              struct payload payload)
{
    struct transport_peer *peer = &transport->peers[message->sender];
    struct transport_slot *slot = take_slot(peer);
    return slot ? fill_slot(transport, slot, message, payload)
                : arrivals_push(&peer->early, message, payload);
}
