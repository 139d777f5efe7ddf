#include "common/net/transport/transport.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/range.h"
#include "common/base/status.h"
#include "common/net/transport/transport_impl.h"

enum { SIZE_FIRST = 16, SIZE_MAX_ENTRIES = 1 << 16 };

static struct unexpected_message *entry(const struct unexpected_queue *queue, size_t index)
{
    return &queue->ring[(queue->head + index) % queue->size];
}

static enum status grow(struct unexpected_queue *queue, unsigned sender)
{
    size_t size = queue->size ? 2 * queue->size : SIZE_FIRST;
    if (size > SIZE_MAX_ENTRIES) {
        log_error("node %u sends faster than it may: %zu messages wait; do all ranks run with the "
                  "same options?",
                  sender, queue->length);
        return STATUS_PROTOCOL;
    }
    struct unexpected_message *ring = malloc(size * sizeof *ring);
    if (!ring) {
        log_error("no memory for %zu messages that wait", size);
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < queue->length; i++)
        ring[i] = *entry(queue, i);
    free(queue->ring);
    *queue = (struct unexpected_queue){.ring = ring, .length = queue->length, .size = size};
    return STATUS_OK;
}

/* Takes the payload, also on an error (logged): no memory, or far more messages than a peer may
 * have sent. */
static enum status unexpected_push(struct unexpected_queue *queue, const struct message *message,
                                   struct payload payload)
{
    if (queue->length == queue->size) {
        enum status status = grow(queue, (unsigned)message->sender);
        if (status != STATUS_OK) {
            payload_release(&payload);
            return status;
        }
    }
    *entry(queue, queue->length++) = (struct unexpected_message){*message, payload};
    return STATUS_OK;
}

/* The oldest, which stays; NULL: there is none. */
const struct message *unexpected_oldest(const struct unexpected_queue *queue)
{
    return queue->length > 0 ? &entry(queue, 0)->message : NULL;
}

/* Takes the oldest out; false if there is none. Its payload is the caller's. */
static bool unexpected_pop(struct unexpected_queue *queue, struct unexpected_message *oldest)
{
    if (queue->length == 0)
        return false;
    *oldest = *entry(queue, 0);
    queue->head = (queue->head + 1) % queue->size;
    queue->length--;
    return true;
}

/* Releases every payload and frees the buffer. */
static void unexpected_fini(struct unexpected_queue *queue)
{
    for (struct unexpected_message left; unexpected_pop(queue, &left);)
        payload_release(&left.payload);
    free(queue->ring);
    *queue = (struct unexpected_queue){0};
}

/* Between two nodes messages arrive in order, so a number tells which is which on both sides. */
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

/* For a timeline: begins the range of a send, the caller ends it; a message has come
 * into its slot. */
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
    transport->embedded = options->embedded;
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
    if (transport->rejected.messages > 0)
        log_debug("%" PRIu64 " messages of strangers were dropped, the last one: %s",
                  transport->rejected.messages, transport->rejected.reason);
    for (uint32_t node = 0; node < transport->limits.nodes; node++)
        unexpected_fini(&transport->peers[node].unexpected);
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
        [MESSAGE_FETCH] = "fetch",     [MESSAGE_CLOCK] = "clock", [MESSAGE_CALL] = "call",
        [MESSAGE_FAILED] = "failure"};
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
    filled.call = transport->call;
    CHECK(peer != transport->node && (uint32_t)peer < transport->limits.nodes);
    CHECK(filled.length <= transport->limits.length_max);
    uint8_t header[MESSAGE_HEADER_BYTES];
    message_encode(&filled, header);
    transport_trace_send(transport, peer, &filled);
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
    struct unexpected_message unexpected;
    if (unexpected_pop(&peer->unexpected, &unexpected))
        return fill_slot(transport, slot, &unexpected.message, unexpected.payload);
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
        log_error("a message of %zu header bytes was refused: %s; does every host run the same "
                  "psring?",
                  size, reason);
    }
    return status;
}

/* -------- calls (embedded) -------------------------------------------------------------------- */

/* "call 3 of the world, psring_broadcast of 1000 float32 from rank 0" */
static const char *describe_call(const struct message_call *call, char *text, size_t size)
{
    static const char *const names[] = {[MESSAGE_NO_CALL] = "none",
                                        [MESSAGE_ALLREDUCE] = "allreduce",
                                        [MESSAGE_REDUCE_SCATTER] = "reduce_scatter",
                                        [MESSAGE_ALL_GATHER] = "all_gather",
                                        [MESSAGE_BROADCAST] = "broadcast",
                                        [MESSAGE_BARRIER] = "barrier",
                                        [MESSAGE_SPLIT] = "split",
                                        [MESSAGE_FINALIZE] = "finalize"};
    static const char *const ops[] = {"sum", "average", "minimum", "maximum"};
    static const char *const elements[MESSAGE_DTYPES] = {
        [MESSAGE_FLOAT32] = "float32", [MESSAGE_FP16] = "float16", [MESSAGE_BF16] = "bfloat16",
        [MESSAGE_FLOAT64] = "float64", [MESSAGE_INT32] = "int32",  [MESSAGE_INT64] = "int64"};
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
    snprintf(text, size, "psring_%s%s, call %u of %s", names[call->what], about, call->number,
             group);
    return text;
}

static enum status other_call(const struct transport *transport, int peer,
                              const struct message_call *theirs)
{
    char name[64], texts[2][160];
    log_error("%s is in %s, and rank %d in %s; all ranks of a communicator must make the same "
              "calls in the same order",
              transport_describe(transport, peer, name, sizeof name),
              describe_call(theirs, texts[0], sizeof texts[0]), transport->world->rank,
              describe_call(&transport->call, texts[1], sizeof texts[1]));
    return STATUS_PROTOCOL;
}

/* Numbers of calls wrap around after 2^32. */
static bool is_earlier(uint32_t number, uint32_t than)
{
    return number - than > UINT32_MAX / 2;
}

/* The call is on the communicator on which this rank is in a call. */
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
    if (is_of_ours(transport, theirs) && is_earlier(theirs->number, transport->call.number))
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

/* Sends a message without a slot. */
static enum status transport_tell(struct transport *transport, int peer,
                                  const struct message *message, const void *payload)
{
    struct message filled = *message;
    uint8_t header[MESSAGE_HEADER_BYTES];
    filled.run_id = transport->limits.run_id;
    filled.sender = (uint32_t)transport->node;
    filled.dtype = MESSAGE_FLOAT32;
    filled.call = transport->call;
    message_encode(&filled, header);
    if (transport->ops->tell)
        return transport->ops->tell(transport, peer, header, payload, (size_t)filled.length);
    transport->peers[peer].sends++;
    return transport->ops->send(transport, peer, header, payload, (size_t)filled.length);
}

enum status transport_announce(struct transport *transport, int peer)
{
    static const struct message message = {.kind = MESSAGE_CALL};
    struct transport_peer *to = &transport->peers[peer];
    if (to->told == transport->calls)
        return STATUS_OK;
    to->told = transport->calls;
    return transport_tell(transport, peer, &message, NULL);
}

void transport_set_call(struct transport *transport, const struct message_call *call)
{
    const uint32_t period = UINT32_C(1) << 30; /* what is older would seem to be ahead */
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

enum status transport_hear(struct transport *transport, const struct message *message,
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
    return message->step == (uint64_t)STATUS_PROTOCOL ? STATUS_PROTOCOL : STATUS_TRANSPORT;
}

/* Those of a rank that has failed before count, because it may be why this one has. */
void transport_fail(struct transport *transport, enum status status, const char *why)
{
    if (!transport)
        return;
    transport->failed = true;
    if (!transport->heard)
        snprintf(transport->words, sizeof transport->words, "rank %d has failed: %s",
                 transport->world->rank, why);
    const struct message message = {
        .kind = MESSAGE_FAILED, .step = (uint64_t)status, .length = sizeof transport->words};
    for (int node = 0; node < (int)transport->limits.nodes; node++) {
        if (node != transport->node)
            (void)transport_tell(transport, node, &message, transport->words);
    }
    if (!transport->heard && transport->ops->linger) /* else the others hear it as this rank has */
        transport->ops->linger(transport, clock_now_ns() + FAREWELL_MS * NS_PER_MS);
}

void transport_close_in_child(const struct transport *transport)
{
    if (transport && transport->ops->close_in_child)
        transport->ops->close_in_child(transport);
}

/* -------- what comes into slots --------------------------------------------------------------- */

/* Is `found` what the schedule says must come into the slot? */
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

enum status transport_check_fit(const struct transport *transport,
                                const struct transport_slot *slot, const struct message *message)
{
    enum status status = check_expected(transport, slot, message);
    if (status == STATUS_OK && message->length > slot->capacity)
        status = transport_too_long(transport, slot);
    return status;
}

enum status transport_complete(struct transport *transport, struct transport_slot *slot,
                               const struct message *message, const void *payload)
{
    enum status status = transport_check_fit(transport, slot, message);
    if (status != STATUS_OK)
        return status;
    slot->message = *message;
    slot->payload = payload;
    slot->done = true;
    transport->peers[slot->peer].arrived++;
    transport_trace_arrival(transport, slot);
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
    enum status status = transport_check_fit(transport, slot, message);
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
    return *slot ? transport_check_fit(transport, *slot, message) : STATUS_OK;
}

enum status transport_deliver(struct transport *transport, const struct message *message,
                              struct payload payload)
{
    struct transport_peer *peer = &transport->peers[message->sender];
    if (transport_comes_without_slot(message)) {
        enum status status = transport_hear(transport, message, payload.data);
        payload_release(&payload);
        return status;
    }
    struct transport_slot *slot = take_slot(peer);
    return slot ? fill_slot(transport, slot, message, payload)
                : unexpected_push(&peer->unexpected, message, payload);
}
