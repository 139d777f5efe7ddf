#include "common/net/transport/transport.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/range.h"
#include "common/base/status.h"
#include "common/net/transport/transport_impl.h"

/* -------- queues ------------------------------------------------------------------------------ */

void *fifo_push(struct fifo *fifo, size_t entry_bytes)
{
    enum { SIZE_FIRST = 16 };
    if (fifo->count == fifo->size) {
        size_t size = fifo->size ? 2 * fifo->size : SIZE_FIRST;
        char *grown = malloc(size * entry_bytes);
        if (!grown)
            return NULL;
        for (size_t i = 0; i < fifo->count; i++)
            memcpy(grown + i * entry_bytes, fifo_at(fifo, entry_bytes, i), entry_bytes);
        free(fifo->entries);
        *fifo = (struct fifo){.entries = grown, .first = 0, .count = fifo->count, .size = size};
    }
    return fifo_at(fifo, entry_bytes, fifo->count++);
}

static uint64_t vector_bytes(const struct message_call *call)
{
    return call->what == MESSAGE_NO_CALL ? 0 : call->count * message_element_bytes(call->dtype);
}

/* How many bytes a peer may have sent ahead. A ring sends almost twice its vector ahead if the
 * receiver's own link is the slowest. That is the end of one call and the beginning of the next.
 * Messages of these calls may wait: this rank's, the oldest one's and `call`. */
static uint64_t unexpected_bytes_most(const struct transport *transport, struct fifo *waiting,
                                      const struct message_call *call)
{
    enum { ALWAYS = 1 << 30 };
    const struct unexpected_message *oldest = NULL;
    uint64_t most = vector_bytes(&transport->call);
    if (waiting->count > 0)
        oldest = fifo_at(waiting, sizeof *oldest, 0);
    if (oldest && vector_bytes(&oldest->message.call) > most)
        most = vector_bytes(&oldest->message.call);
    if (vector_bytes(call) > most)
        most = vector_bytes(call);
    return ALWAYS + 2 * (transport->limits.length_max + most);
}

/* Takes the payload, also on an error (logged): out of memory, or far more than a peer may have
 * sent. */
static enum status unexpected_push(struct transport *transport, const struct message *message,
                                   struct payload payload)
{
    enum { UNEXPECTED_MOST = 1 << 16 };
    struct transport_peer *peer = &transport->peers[message->sender];
    struct fifo *queue = &peer->unexpected;
    bool many = queue->count == UNEXPECTED_MOST ||
                peer->unexpected_bytes > unexpected_bytes_most(transport, queue, &message->call);
    struct unexpected_message *last = many ? NULL : fifo_push(queue, sizeof *last);
    if (last) {
        *last = (struct unexpected_message){*message, payload};
        peer->unexpected_bytes += message->length;
        return STATUS_OK;
    }
    payload_release(&payload);
    if (many)
        log_error(
            "%s is too far ahead: %zu messages with %" PRIu64
            " bytes wait here, more than any of psring's schedules sends; does every host run "
            "the same psring?",
            transport_node_text(transport, (int)message->sender).text, queue->count,
            peer->unexpected_bytes);
    else
        log_error("no memory for %zu messages that wait", queue->count);
    return many ? STATUS_PROTOCOL : STATUS_NO_MEMORY;
}

/* Takes out the oldest message; false if there is none. The caller owns its payload. */
static bool unexpected_pop(struct transport_peer *peer, struct unexpected_message *oldest)
{
    if (peer->unexpected.count == 0)
        return false;
    *oldest = *(struct unexpected_message *)fifo_at(&peer->unexpected, sizeof *oldest, 0);
    peer->unexpected_bytes -= oldest->message.length;
    fifo_pop(&peer->unexpected);
    return true;
}

/* -------- messages in a timeline -------------------------------------------------------------- */

/* Between two nodes messages arrive in order, so a number identifies each on both sides. */
static struct range_about about_message(const struct transport *transport, enum range_kind kind,
                                        int peer, uint64_t number, const struct message *message)
{
    return (struct range_about){.kind = kind,
                                .bucket = message->bucket,
                                .peer = peer,
                                .node = transport->node,
                                .number = number,
                                .bytes = message->length};
}

/* For a timeline. transport_trace_send begins the range of a send, and the caller ends it.
 * transport_trace_arrival records that a message has arrived in its slot. */
static void transport_trace_send(struct transport *transport, int peer,
                                 const struct message *message)
{
    if (!range_listens())
        return;
    uint64_t number = transport->peers[peer].sends;
    struct range_about about = about_message(transport, RANGE_SEND, peer, number, message);
    about.queue = (uint32_t)(number + 1 - transport->ops->completed(transport, peer));
    range_detail_begin("send", &about);
}

static void transport_trace_arrival(const struct transport *transport,
                                    const struct transport_slot *slot)
{
    if (!range_listens())
        return;
    const struct transport_peer *peer = &transport->peers[slot->peer];
    struct range_about about =
        about_message(transport, RANGE_RECEIVE, slot->peer, slot->number, &slot->message);
    about.queue = (uint32_t)(peer->posts - peer->arrived);
    range_moment("receive", &about);
}

static const struct transport_ops *const kinds[] = {
    [TRANSPORT_ZMQ] = &transport_zmq_ops,
    [TRANSPORT_MPI] = &transport_mpi_ops,
    [TRANSPORT_TCP] = &transport_tcp_ops,
};

const char *transport_kind_name(enum transport_kind kind)
{
    return kinds[kind]->name;
}

enum transport_kind transport_kind_find(const char *name)
{
    enum transport_kind kind = 0;
    while (kind < TRANSPORT_KINDS && strcmp(kinds[kind]->name, name) != 0)
        kind++;
    return kind;
}

const char *transport_kind_summary(enum transport_kind kind)
{
    return kinds[kind]->summary;
}

const char *transport_kind_unavailable(enum transport_kind kind)
{
    return kinds[kind]->unavailable;
}

/* A node in no rack has no uplink. */
static bool is_other_rack(const struct transport *transport, int rack_ranks, int node)
{
    if (rack_ranks == 0)
        return false;
    int own = topology_rack(&transport->topology, rack_ranks, transport->node);
    return own >= 0 && own != topology_rack(&transport->topology, rack_ranks, node);
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
    transport->crowded =
        world_crowded(world, 1 + (topology_node(&options->topology, world->rank, !role) >= 0));
    transport->embedded = options->embedded;
    transport->peers = calloc((size_t)nodes, sizeof *transport->peers);
    if (!transport->peers)
        return false;
    for (int node = 0; node < nodes; node++) {
        struct transport_peer *peer = &transport->peers[node];
        peer->local = topology_rank(&options->topology, node) == world->rank;
        peer->other_rack = is_other_rack(transport, options->rack_ranks, node);
        peer->last = &peer->first;
    }
    return true;
}

void transport_base_fini(struct transport *transport)
{
    if (transport->rejected.messages > 0)
        log_debug("%" PRIu64 " messages of strangers were dropped, the last one: %s",
                  transport->rejected.messages, transport->rejected.reason);
    for (uint32_t node = 0; node < transport->limits.nodes; node++) {
        struct transport_peer *peer = &transport->peers[node];
        for (struct unexpected_message left; unexpected_pop(peer, &left);)
            payload_release(&left.payload);
        free(peer->unexpected.entries);
    }
    free(transport->peers);
}

struct transport_text transport_node_text(const struct transport *transport, int node)
{
    struct transport_text text;
    const struct topology *topology = &transport->topology;
    bool server = topology_role(topology, node) == NODE_SERVER;
    snprintf(text.text, sizeof text.text, "%s %d (rank %d)", server ? "server" : "worker",
             server ? node - topology->workers : node, topology_rank(topology, node));
    return text;
}

struct transport_text transport_message_text(const struct message *message)
{
    /* Indexed by enum message_kind and message_dtype. */
    static const char *const names[] = {"",      "segment", "push",  "answer", "goodbye", "pause",
                                        "store", "fetch",   "clock", "call",   "failure"};
    static const char *const elements[MESSAGE_DTYPES] = {
        "", "", " of fp16", " of bf16", " of float64", " of int32", " of int64"};
    struct transport_text text;
    snprintf(text.text, sizeof text.text,
             "%s of step %" PRIu64 ", bucket %" PRIu32 ", offset %" PRIu64 " (%" PRIu64 " bytes%s)",
             names[message->kind], message->step, message->bucket, message->offset, message->length,
             elements[message->dtype]);
    return text;
}

/* The approximate number of descriptors that this rank's endpoints need, including some for files,
 * probes and strangers. */
static int descriptors_of(const struct world *world, const struct transport_options *options)
{
    enum { OTHERS = 8 };
    const struct transport_ops *ops = kinds[options->kind];
    int nodes = topology_nodes(&options->topology), count = OTHERS + ops->descriptors.process;
    for (enum node_role role = 0; role <= NODE_SERVER; role++) {
        if (topology_node(&options->topology, world->rank, role) < 0)
            continue;
        int all = nodes - 1, servers = options->topology.servers;
        int peers = servers == 0 ? all : role == NODE_SERVER ? nodes - servers : servers;
        count += ops->descriptors.endpoint + ops->descriptors.peer * peers;
    }
    return count;
}

/* NULL: out of memory (logged). */
static struct transport *endpoint_new(const struct transport_ops *ops, struct world *world,
                                      const struct transport_options *options, enum node_role role)
{
    size_t nodes = (size_t)topology_nodes(&options->topology);
    struct transport *transport = calloc(1, ops->endpoint_bytes + nodes * ops->peer_bytes);
    if (transport && transport_base_init(transport, ops, world, options, role))
        return transport;
    log_error("transport %s: no memory for an endpoint with %zu peers", ops->name, nodes);
    free(transport);
    return NULL;
}

/* Allocates the endpoints of this process, and connects them. */
static enum status open_endpoints(struct transport *endpoint[2], struct world *world,
                                  const struct transport_options *options)
{
    const struct transport_ops *ops = kinds[options->kind];
    for (enum node_role role = 0; role <= NODE_SERVER; role++) {
        if (topology_node(&options->topology, world->rank, role) < 0 ||
            (endpoint[role] = endpoint_new(ops, world, options, role)))
            continue;
        if (endpoint[!role]) /* not by `close`: `open` has not seen it */
            transport_base_fini(endpoint[!role]);
        free(endpoint[!role]);
        endpoint[!role] = NULL;
        return STATUS_NO_MEMORY;
    }
    return ops->open(endpoint, world, options);
}

enum status transport_open(struct transport *endpoint[2], struct world *world,
                           const struct transport_options *options)
{
    const struct transport_ops *ops = kinds[options->kind];
    endpoint[NODE_WORKER] = endpoint[NODE_SERVER] = NULL;
    if (ops->unavailable)
        return FAIL(STATUS_UNSUPPORTED, "--transport %s: %s", ops->name, ops->unavailable);
    enum status status = world_check_descriptors(world, descriptors_of(world, options));
    if (status == STATUS_OK)
        status = open_endpoints(endpoint, world, options);
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

/* Waits until all messages have left, for at most `most_ms`. */
static void linger(struct transport *transport, int64_t most_ms)
{
    int64_t deadline_ns = clock_now_ns() + most_ms * NS_PER_MS;
    while (transport->ops->is_empty && !transport->ops->is_empty(transport) &&
           clock_now_ns() < deadline_ns) {
        world_acts(transport->world);
        clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
    }
}

void transport_stop(struct transport *endpoint[2])
{
    for (int role = 0; role < 2; role++) {
        if (endpoint[role] && endpoint[role]->ops->cut)
            endpoint[role]->ops->cut(endpoint[role]);
    }
    for (int role = 0; role < 2; role++) {
        if (endpoint[role] && endpoint[role]->ops->cut)
            linger(endpoint[role], SETTLE_MS);
    }
}

void transport_counters(const struct transport *transport, struct transport_counters *counters)
{
    *counters = transport->counters;
}

/* -------- sending ----------------------------------------------------------------------------- */

/* The header of a message from this node. */
static void encode(const struct transport *transport, const struct message *message,
                   uint8_t header[MESSAGE_HEADER_BYTES])
{
    struct message filled = *message;
    filled.run_id = transport->limits.run_id;
    filled.sender = (uint32_t)transport->node;
    filled.call = transport->call;
    message_encode(&filled, header);
}

enum status transport_send(struct transport *transport, int peer, const struct message *message,
                           const void *payload, uint64_t *ticket)
{
    uint8_t header[MESSAGE_HEADER_BYTES];
    CHECK(peer != transport->node && (uint32_t)peer < transport->limits.nodes);
    CHECK(message->length <= transport->limits.length_max);
    encode(transport, message, header);
    transport_trace_send(transport, peer, message);
    enum status status =
        transport->ops->send(transport, peer, header, payload, (size_t)message->length);
    range_detail_end();
    if (status != STATUS_OK)
        return status;
    struct transport_peer *to = &transport->peers[peer];
    if (ticket)
        *ticket = to->sends;
    to->sends++;
    if (!to->local) {
        transport->counters.sent_bytes += message->length;
        transport->counters.uplink_sent_bytes += to->other_rack ? message->length : 0;
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

/* Ends the posting of a slot. False: it was not posted, or has its message already. */
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
    if (slot->posted && withdraw(transport, slot))
        transport->peers[slot->peer].posts--; /* its message will arrive in another slot */
    payload_release(&slot->held);
    if (transport->ops->slot_fini)
        transport->ops->slot_fini(transport, slot);
    *slot = (struct transport_slot){0};
}

bool transport_answers_in_place(const struct transport *transport)
{
    return transport->ops->answers_in_place;
}

void transport_slot_expect(struct transport_slot *slot, const struct message *expected)
{
    CHECK(!slot->posted);
    slot->expected = *expected;
}

enum status transport_post(struct transport *transport, struct transport_slot *slot, void *into)
{
    CHECK(!slot->posted);
    struct transport_peer *peer = &transport->peers[slot->peer];
    slot->done = false;
    slot->posted = true;
    slot->into = into;
    slot->number = peer->posts++;
    slot->next_posted = NULL;
    *peer->last = slot;
    peer->last = &slot->next_posted;
    struct unexpected_message waits;
    if (unexpected_pop(peer, &waits)) /* if a message waits, no other slot is posted */
        return transport_deliver(transport, &waits.message, waits.payload);
    return transport->ops->post ? transport->ops->post(transport, slot) : STATUS_OK;
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
        reason = "its sender does not match its connection";
        status = STATUS_PROTOCOL;
    }
    if (status == STATUS_OK && transport_comes_without_slot(message) &&
        (!transport->embedded ||
         message->length != (message->kind == MESSAGE_FAILED ? TRANSPORT_WORDS_BYTES : 0))) {
        reason = "unknown kind";
        status = STATUS_PROTOCOL;
    }
    if (status == STATUS_INPUT && peer < 0) {
        transport->rejected.messages++;
        transport->rejected.reason = reason;
    } else if (status != STATUS_OK) {
        log_error("%s sent a message that was refused: %s; does every host run the same psring?",
                  peer >= 0 ? transport_node_text(transport, peer).text : "a rank of this run",
                  reason);
    }
    return status;
}

/* -------- calls (embedded) -------------------------------------------------------------------- */

/* "psring_broadcast (1000 float32, root 0), call 3 of the world" */
static struct transport_text call_text(const struct message_call *call)
{
    /* Indexed by enum message_what, reduce_op and message_dtype. */
    static const char *const names[] = {"none",      "allreduce", "reduce_scatter", "all_gather",
                                        "broadcast", "barrier",   "split",          "finalize"};
    static const char *const ops[] = {"sum", "average", "minimum", "maximum"};
    static const char *const elements[MESSAGE_DTYPES] = {
        "", "float32", "float16", "bfloat16", "float64", "int32", "int64"};
    char group[32] = "the world", about[64] = "";
    bool reduces = call->what == MESSAGE_ALLREDUCE || call->what == MESSAGE_REDUCE_SCATTER;
    if (call->group > 0)
        snprintf(group, sizeof group, "group %u", call->group);
    if (reduces)
        snprintf(about, sizeof about, " (%" PRIu64 " %s, %s)", call->count, elements[call->dtype],
                 ops[call->op]);
    else if (call->what == MESSAGE_BROADCAST)
        snprintf(about, sizeof about, " (%" PRIu64 " %s, root %u)", call->count,
                 elements[call->dtype], call->root);
    else if (call->what == MESSAGE_ALL_GATHER)
        snprintf(about, sizeof about, " (%" PRIu64 " %s)", call->count, elements[call->dtype]);
    struct transport_text text;
    snprintf(text.text, sizeof text.text, "psring_%s%s, call %u of %s", names[call->what], about,
             call->number, group);
    return text;
}

static enum status other_call(const struct transport *transport, int peer,
                              const struct message_call *theirs)
{
    return FAIL(STATUS_PROTOCOL,
                "%s is in %s, and rank %d in %s; all ranks of a communicator must make the same "
                "calls in the same order",
                transport_node_text(transport, peer).text, call_text(theirs).text,
                transport->world->rank, call_text(&transport->call).text);
}

/* Numbers of calls wrap around after 2^32. */
static bool is_earlier(uint32_t number, uint32_t than)
{
    return number - than > UINT32_MAX / 2;
}

/* Whether the call is on the communicator of this rank's current call. */
static bool is_of_ours(const struct transport *transport, const struct message_call *theirs)
{
    return theirs->what != MESSAGE_NO_CALL && theirs->group == transport->call.group;
}

enum status transport_check_call(const struct transport *transport, int peer,
                                 const struct message_call *theirs)
{
    const struct message_call *mine = &transport->call;
    if (!is_of_ours(transport, theirs) || theirs->number != mine->number ||
        message_same_call(theirs, mine))
        return STATUS_OK;
    return other_call(transport, peer, theirs);
}

enum status transport_check_unread(const struct transport *transport, int peer,
                                   const struct message_call *theirs)
{
    /* After the last call of all ranks, no call on another communicator can receive it either. */
    bool stray = transport->call.what == MESSAGE_FINALIZE && theirs->what != MESSAGE_NO_CALL &&
                 theirs->group != transport->call.group;
    if (stray ||
        (is_of_ours(transport, theirs) && is_earlier(theirs->number, transport->call.number)))
        return other_call(transport, peer, theirs);
    return transport_check_call(transport, peer, theirs);
}

enum status transport_check_ahead(const struct transport *transport, int peer)
{
    const struct message_call *theirs = &transport->peers[peer].announced;
    if (is_of_ours(transport, theirs) && is_earlier(transport->call.number, theirs->number))
        return other_call(transport, peer, theirs);
    return STATUS_OK;
}

/* Sends a message that comes without a slot. */
static enum status notify(struct transport *transport, int peer, const struct message *message,
                          const void *payload)
{
    uint8_t header[MESSAGE_HEADER_BYTES];
    encode(transport, message, header);
    if (transport->ops->notify)
        return transport->ops->notify(transport, peer, header, payload, (size_t)message->length);
    transport->peers[peer].sends++;
    return transport->ops->send(transport, peer, header, payload, (size_t)message->length);
}

enum status transport_announce(struct transport *transport, int peer)
{
    static const struct message message = {.kind = MESSAGE_CALL, .dtype = MESSAGE_FLOAT32};
    struct transport_peer *to = &transport->peers[peer];
    if (to->notified == transport->calls)
        return STATUS_OK;
    to->notified = transport->calls;
    return notify(transport, peer, &message, NULL);
}

void transport_set_call(struct transport *transport, const struct message_call *call)
{
    const uint32_t period = UINT32_C(1) << 30; /* older numbers would seem to be ahead */
    for (uint32_t node = 0; call->number % period == 0 && node < transport->limits.nodes; node++)
        transport->peers[node].announced = (struct message_call){0};
    transport->call = *call;
    transport->calls++;
}

const struct message_call *transport_call(const struct transport *transport)
{
    return &transport->call;
}

enum status transport_compare_call(const struct transport *transport, int peer,
                                   const struct message_call *theirs)
{
    return message_same_call(theirs, &transport->call) ? STATUS_OK
                                                       : other_call(transport, peer, theirs);
}

static enum status hear(struct transport *transport, const struct message *message,
                        const void *payload)
{
    int sender = (int)message->sender;
    if (message->kind == MESSAGE_CALL) {
        transport->peers[sender].announced = message->call;
        if (is_of_ours(transport, &message->call) &&
            is_earlier(message->call.number, transport->call.number))
            return transport_announce(transport, sender); /* it may wait in vain */
        return transport_check_call(transport, sender, &message->call);
    }
    transport->heard = true;
    memcpy(transport->words, payload, sizeof transport->words - 1);
    log_error("%s", transport->words);
    switch ((int64_t)message->step) {
    case STATUS_PROTOCOL:
        return STATUS_PROTOCOL;
    case STATUS_TIMEOUT: /* of a third rank */
        return STATUS_TIMEOUT;
    default:
        return STATUS_TRANSPORT;
    }
}

/* If another rank has failed before, its report is repeated: it may be the cause of this
 * failure. */
void transport_fail(struct transport *transport, enum status status, const char *why)
{
    if (!transport)
        return;
    transport->failed = true;
    if (!transport->heard)
        snprintf(transport->words, sizeof transport->words, "rank %d has failed: %s",
                 transport->world->rank, why);
    const struct message message = {.kind = MESSAGE_FAILED,
                                    .step = (uint64_t)status,
                                    .length = sizeof transport->words,
                                    .dtype = MESSAGE_FLOAT32};
    for (int node = 0; node < (int)transport->limits.nodes; node++) {
        if (node != transport->node)
            (void)notify(transport, node, &message, transport->words);
    }
    if (!transport->heard) /* else all ranks get the report that this rank got */
        linger(transport, FAREWELL_MS);
}

void transport_close_in_child(const struct transport *transport)
{
    if (transport && transport->ops->close_in_child)
        transport->ops->close_in_child(transport);
}

/* -------- messages for slots ------------------------------------------------------------------ */

/* Checks that `found` is the message that the schedule has for the slot. */
static enum status check_expected(const struct transport *transport,
                                  const struct transport_slot *slot, const struct message *found)
{
    const struct message *expected = &slot->expected;
    enum status status = transport_compare_call(transport, slot->peer, &found->call);
    if (status != STATUS_OK)
        return status;
    if (!expected->kind ||
        (found->kind == expected->kind && found->step == expected->step &&
         found->bucket == expected->bucket && found->offset == expected->offset &&
         found->length == expected->length &&
         (!expected->dtype || found->dtype == expected->dtype)))
        return STATUS_OK;
    return FAIL(STATUS_PROTOCOL, "%s sent %s, expected %s; do all ranks run with the same options?",
                transport_node_text(transport, slot->peer).text, transport_message_text(found).text,
                transport_message_text(expected).text);
}

enum status transport_too_long(const struct transport *transport, const struct transport_slot *slot)
{
    return FAIL(STATUS_PROTOCOL,
                "%s sent more than the %zu bytes expected here; do all ranks run with the same "
                "options?",
                transport_node_text(transport, slot->peer).text, slot->capacity);
}

enum status transport_claim(struct transport *transport, struct transport_slot *slot,
                            const struct message *message)
{
    bool posted = withdraw(transport, slot);
    CHECK(posted);
    enum status status = check_expected(transport, slot, message);
    if (status == STATUS_OK && message->length > slot->capacity)
        status = transport_too_long(transport, slot);
    if (status == STATUS_OK)
        slot->message = *message;
    return status;
}

/*
 * transport_claim has checked this message, and the check still holds. The expected message is the
 * same, because transport_slot_expect refuses a posted slot. The call is the same, because a
 * successful call has waited for all of its slots before the next transport_set_call.
 */
void transport_complete(struct transport *transport, struct transport_slot *slot)
{
    struct transport_peer *peer = &transport->peers[slot->peer];
    slot->payload = slot->into ? slot->into : slot->held.data;
    slot->done = true;
    peer->arrived++;
    transport_trace_arrival(transport, slot);
    if (!peer->local) {
        transport->counters.received_bytes += slot->message.length;
        transport->counters.uplink_received_bytes += peer->other_rack ? slot->message.length : 0;
        transport->counters.received_header_bytes += MESSAGE_HEADER_BYTES;
        transport->counters.received_messages++;
    }
}

/* Steps 2 to 4 if the payload has arrived. Takes the payload, also on an error. */
static enum status fill_slot(struct transport *transport, struct transport_slot *slot,
                             const struct message *message, struct payload payload)
{
    enum status status = transport_claim(transport, slot, message);
    if (status == STATUS_OK && !slot->into) {
        slot->held = payload;
    } else {
        if (status == STATUS_OK && message->length > 0)
            memcpy(slot->into, payload.data, message->length);
        payload_release(&payload);
    }
    if (status == STATUS_OK)
        transport_complete(transport, slot);
    return status;
}

enum status transport_deliver(struct transport *transport, const struct message *message,
                              struct payload payload)
{
    struct transport_peer *peer = &transport->peers[message->sender];
    if (transport_comes_without_slot(message)) {
        enum status status = hear(transport, message, payload.data);
        payload_release(&payload);
        return status;
    }
    return peer->first ? fill_slot(transport, peer->first, message, payload)
                       : unexpected_push(transport, message, payload);
}
