/*
 * Point-to-point messages between nodes. Every topology uses this interface, so that topologies are
 * compared with equal transport. Each implementation is a file or two in this folder
 * (transport_impl.h).
 *
 * Messages from one node to another arrive complete and in order. A message is a header
 * (common/net/transport/message.h) and a payload. Sends never block: `transport_send` queues, and
 * the caller limits the number in flight (windows, segments). Receives are posted into *slots*,
 * matched per peer in the order of posting:
 *
 *     transport_slot_init(&slot, transport, peer, capacity)    once
 *     transport_slot_expect(&slot, &message)                   if the next message is known
 *     transport_post(transport, &slot, into)                   then, repeatedly
 *     transport_wait(transport, &slot)                         -> slot.message, slot.payload
 *     transport_release(transport, &slot)
 *
 * With into == NULL the payload is *borrowed*: it stays in the transport's memory until release,
 * and can be reduced from there without a copy. With a buffer it is written there.
 *
 * Threads: an endpoint belongs to one thread. Two endpoints of one process may run on two threads.
 *
 * Cost: a send is one message of MESSAGE_HEADER_BYTES + length bytes over ZeroMQ and plain TCP.
 * Over MPI it is two, header and payload. All send payloads from the caller's memory. ZeroMQ
 * allocates for each message, the others only while the number in flight still grows.
 *
 * Embedded in a program that continues after an error (libpsring, transport_options.embedded):
 *   - Every message names its call (transport_set_call). A message of another call than the
 *     receiver's is STATUS_PROTOCOL, and the log names both calls.
 *   - A rank that fails reports it to all ranks (transport_fail), and their waits end with an
 *     error. A closed connection ends every wait.
 *   - After LOOK_MS of waiting a rank sends its call to the ranks that it waits for (MESSAGE_CALL),
 *     once per call. Counters do not include it.
 *   - Over MPI payloads travel through memory that the transport owns, for a copy at each end. If
 *     MPI still uses it after an error, it is abandoned, not freed.
 *
 * Not embedded, messages over MPI move from and to the caller's memory. After an error MPI may use
 * that memory until the process ends.
 *
 * Errors, all logged: STATUS_TIMEOUT names the silent peer; if a watchdog runs, it ends the run
 * instead. STATUS_PROTOCOL names a peer that has sent an unexpected message.
 */
#ifndef PSRING_COMMON_NET_TRANSPORT_TRANSPORT_H
#define PSRING_COMMON_NET_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/topology.h"
#include "common/net/transport/message.h"
#include "common/net/world.h"

/* A payload that has arrived: the place of its bytes, and how to release them. It is copied by
 * value; exactly one of the copies is released. */
struct payload {
    const void *data;
    void (*release)(void *holder); /* NULL: nothing to release */
    void *holder;                  /* owner of `data`, for the transport's use */
};

static inline void payload_release(struct payload *payload)
{
    if (payload->release)
        payload->release(payload->holder);
    *payload = (struct payload){0};
}

enum transport_kind { TRANSPORT_ZMQ, TRANSPORT_MPI, TRANSPORT_TCP, TRANSPORT_KINDS };

struct transport_options {
    enum transport_kind kind;
    struct topology topology;
    size_t payload_bytes_max; /* the longest payload that a peer may send */
    enum message_dtype dtype; /* of all payloads; MESSAGE_ANY_DTYPE: as each slot expects */
    const char *subnet;       /* CIDR of the interface to bind to; NULL: chosen. Borrowed. */
    int64_t timeout_ms;
    bool embedded;            /* in a program that continues after an error; not with servers */
    int64_t stall_warning_ms; /* without a watchdog, warn about longer waits; 0: never */
    int rack_ranks;           /* comm_options.rack_ranks */
};

struct transport_counters {
    uint64_t sent_bytes, received_bytes; /* payload */
    uint64_t sent_messages, received_messages;
    uint64_t sent_header_bytes, received_header_bytes;
    uint64_t uplink_sent_bytes, uplink_received_bytes; /* of the payload: to and from other racks */
};

struct transport;
struct transport_slot_impl;

struct transport_slot {
    int peer;
    size_t capacity;
    bool done;              /* the message has arrived: read `message` and `payload` */
    struct message message; /* validated */
    const void *payload;    /* message.length bytes */
    /* For the transport's use: */
    struct message expected; /* kind 0: any message */
    void *into;
    bool posted;
    uint64_t number; /* index of the message among all from the peer */
    struct transport_slot *next_posted;
    struct payload held; /* a borrowed payload, until release */
    struct transport_slot_impl *impl;
};

/*
 * Opens this process's endpoints: [NODE_WORKER] and [NODE_SERVER]; NULL if it hosts none.
 * Collective over the world: ranks exchange addresses, and no rank returns before all can be
 * reached.
 */
enum status transport_open(struct transport *endpoint[2], struct world *world,
                           const struct transport_options *options);

/* Closes one endpoint. Drops sends that no transport_flush has waited for. */
void transport_close(struct transport **transport);

/* Any thread: within a second every wait of the endpoint ends with STATUS_TRANSPORT, also a current
 * one, and so does every later wait. Nothing is logged: the caller logs the reason. */
void transport_interrupt(struct transport *transport);
/* For other waits on the endpoint's thread. */
bool transport_interrupted(const struct transport *transport);

/* Embedded: all following messages belong to this call. */
void transport_set_call(struct transport *transport, const struct message_call *call);
/* For ranks that compare their calls without messages. transport_call returns the current call of
 * messages; not embedded: no call. transport_compare_call returns STATUS_PROTOCOL (logged) if
 * `peer` is in another call. */
const struct message_call *transport_call(const struct transport *transport);
enum status transport_compare_call(const struct transport *transport, int peer,
                                   const struct message_call *theirs);

/*
 * Embedded: for a rank that waits for something other than a message, on the endpoint's thread.
 * Returns an error (logged) if a rank has failed or is in a different call. Sends this rank's call
 * to `peer`, the rank that it waits for; -1: to none. Does not wait. Not embedded: OK.
 */
enum status transport_listen(struct transport *transport, int peer);

/* Embedded, once all ranks have made their last call: STATUS_PROTOCOL (logged) if a message has
 * arrived that no call has received. Afterwards a closed connection is no error, because a rank may
 * leave the last barrier earlier than others. A rank's failure still is an error. */
enum status transport_check_end(struct transport *transport);

/* Embedded: reports to all ranks that this rank has failed with `status`, and `why`. Takes at most
 * FAREWELL_MS. transport_stop must follow. NULL: there is no transport. */
void transport_fail(struct transport *transport, enum status status, const char *why);

/* Embedded, in a child of fork(): closes the inherited connections without any message to the other
 * ends. Connections of ZeroMQ and MPI stay. NULL: there is no transport. */
void transport_close_in_child(const struct transport *transport);

/*
 * After an error: cuts the connections of both endpoints of a process (NULL if it has none). After
 * the return the transport does not read or write the caller's memory (over MPI only if embedded),
 * and only transport_slot_fini and transport_close may follow. It costs nothing if all sends were
 * flushed.
 */
void transport_stop(struct transport *endpoint[2]);

/*
 * Queues a message to node `peer`. kind, step, bucket, offset, length and dtype come from
 * `message`; the other fields are filled in. `payload` (message->length bytes) must stay unchanged
 * until the message is sent. Sets *ticket (may be NULL) to its number for transport_sent and
 * transport_wait_sent.
 */
enum status transport_send(struct transport *transport, int peer, const struct message *message,
                           const void *payload, uint64_t *ticket);
bool transport_sent(struct transport *transport, int peer, uint64_t ticket);
enum status transport_wait_sent(struct transport *transport, int peer, uint64_t ticket);
/* Whether the answer to a message may be received into the memory of that message's payload. The
 * slot may then be posted while the message is still being sent. */
bool transport_answers_in_place(const struct transport *transport);
/* Waits until this endpoint needs no payload any more. */
enum status transport_flush(struct transport *transport);

/*
 * Slots may be created and freed while their transport is open. fini withdraws a posted slot; what
 * has arrived in it is lost. A message that arrives when no slot is posted for its sender waits for
 * one. If a set of slots replaces another, no node may send for the new set before every node has
 * freed the old one.
 */
enum status transport_slot_init(struct transport_slot *slot, struct transport *transport, int peer,
                                size_t capacity);
void transport_slot_fini(struct transport_slot *slot, struct transport *transport);
/*
 * Before a post: the message that must arrive in the slot by the schedule, until the next call.
 * Another kind, step, bucket, offset, length or element type (if `expected` has one) is
 * STATUS_PROTOCOL. The log names both messages, because the peer has other options. A wait that
 * ends without the message also names it.
 */
void transport_slot_expect(struct transport_slot *slot, const struct message *expected);
enum status transport_post(struct transport *transport, struct transport_slot *slot, void *into);
enum status transport_wait(struct transport *transport, struct transport_slot *slot);
/*
 * Waits for any of the posted slots that `slots` points to (NULL entries are skipped). It checks
 * them in turn, so that none starves. If several slots have one peer, pass the oldest: messages are
 * in order only per peer. `patient`: no time-out (a server between steps).
 */
enum status transport_wait_any(struct transport *transport, struct transport_slot *const *slots,
                               size_t count, bool patient, size_t *which);
void transport_release(struct transport *transport, struct transport_slot *slot);

void transport_counters(const struct transport *transport, struct transport_counters *counters);

const char *transport_kind_name(enum transport_kind kind);
/* TRANSPORT_KINDS: no transport has this name. */
enum transport_kind transport_kind_find(const char *name);
/* A few words on how the transport moves bytes. */
const char *transport_kind_summary(enum transport_kind kind);
/* Why this build lacks the transport; NULL: it has it. */
const char *transport_kind_unavailable(enum transport_kind kind);

#endif
