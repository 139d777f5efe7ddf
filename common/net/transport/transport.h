/*
 * Point-to-point messages between nodes: what every topology is built on, so that topologies are
 * compared at equal transport. Three implementations: zmq, mpi, tcp (transport_impl.h).
 *
 * Messages from one node to another arrive complete and in order; a message is a header
 * (common/net/transport/message.h) and a payload. Sends never block: `transport_send` queues, the
 * number in flight is the caller's business (windows, segments). Receives are posted into *slots*,
 * matched per peer in order of posting:
 *
 *     transport_slot_init(&slot, transport, peer, capacity)    once
 *     transport_slot_expect(&slot, &message)                   where it is known what must come
 *     transport_post(transport, &slot, into)                   then, over and over
 *     transport_wait(transport, &slot)                         -> slot.message, slot.payload
 *     transport_release(transport, &slot)
 *
 * With into == NULL the payload is *borrowed*: it stays in the transport's memory until release,
 * and can be reduced from there without a copy. With a buffer it lands there.
 *
 * Threads: an endpoint belongs to one thread; two endpoints of one process may run on two.
 * Cost: a send is one message of MESSAGE_HEADER_BYTES + length bytes over ZeroMQ and plain TCP, and
 * two over MPI, header and payload apart. All send payloads from the caller's memory. ZeroMQ
 * allocates for each message, the others only while the number in flight still grows.
 *
 * Embedded in a program that lives on after an error (libpsring, transport_options.embedded):
 *   - Every message says to which call it belongs (transport_set_call). A message of another call
 *     than the receiver's is STATUS_PROTOCOL, and the log names both calls.
 *   - A rank that fails reports it to all others (transport_fail), and their waits end with an
 *     error. A closed connection ends every wait.
 *   - After LOOK_MS of waiting a rank sends its call to the ranks that it waits for (MESSAGE_CALL),
 *     once a call. Counters do not include it.
 *   - Over MPI payloads travel through memory that the transport owns, for a copy at each end. If
 *     MPI still uses it after an error, it is abandoned, not freed.
 *
 * Not embedded, messages over MPI move from and to the caller's memory. After an error MPI may use
 * that until the process ends.
 *
 * Errors, all logged: STATUS_TIMEOUT names the silent peer. A watchdog, if there is one, ends the
 * run itself in its place. STATUS_PROTOCOL names a peer that sends what does not belong here.
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

/* A payload that has come: where its bytes are, and how to let go of them. Copied by value; one of
 * the copies is released. */

struct payload {
    const void *data;
    void (*release)(void *holder); /* NULL: nothing is held */
    void *holder;                  /* the transport's own: the owner of `data` */
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
    size_t payload_bytes_max; /* no payload is longer: a bound on what a peer may send */
    enum message_dtype dtype; /* of all payloads; MESSAGE_ANY_DTYPE: as each slot expects */
    const char *subnet;       /* CIDR of the interface to bind to; NULL: chosen. Borrowed. */
    int64_t timeout_ms;
    bool embedded; /* in a program that lives on after an error; not over a parameter server */
    int64_t stall_warning_ms; /* such a wait is warned of where no watchdog watches; 0: is not */
};

struct transport_counters {
    uint64_t sent_bytes, received_bytes; /* payload */
    uint64_t sent_messages, received_messages;
    uint64_t sent_header_bytes, received_header_bytes;
};

struct transport;
struct transport_slot_impl;

struct transport_slot {
    int peer;
    size_t capacity;
    bool done;              /* the message is here: read `message` and `payload` */
    struct message message; /* validated */
    const void *payload;    /* message.length bytes */
    /* The transport's own: */
    struct message expected; /* kind 0: any message */
    void *into;
    bool posted;
    uint64_t number; /* which of all messages from the peer it is posted for */
    struct transport_slot *next_posted;
    struct payload held; /* a borrowed payload, until release */
    struct transport_slot_impl *impl;
};

/*
 * Opens this process's endpoints: [NODE_WORKER] and [NODE_SERVER], NULL where it hosts none.
 * Collective over the world: addresses are exchanged, and no rank returns before all can be
 * reached.
 */
enum status transport_open(struct transport *endpoint[2], struct world *world,
                           const struct transport_options *options);

/* Closes one endpoint. Sends that a transport_flush has not seen out are dropped. */
void transport_close(struct transport **transport);

/* Any thread: every wait of the endpoint, also one under way, ends with STATUS_TRANSPORT within a
 * second, for the rest of its life. The log has nothing of it: the caller says why. */
void transport_interrupt(struct transport *transport);
/* For a wait for something else on the endpoint's thread. */
bool transport_interrupted(const struct transport *transport);

/* Embedded: what follows belongs to this call. */
void transport_set_call(struct transport *transport, const struct message_call *call);
/* For ranks that show each other their calls in another way than by messages. The call that
 * messages belong to now; not embedded: none. / STATUS_PROTOCOL (logged) if `peer` is in another.
 */
const struct message_call *transport_call(const struct transport *transport);
enum status transport_compare_call(const struct transport *transport, int peer,
                                   const struct message_call *theirs);

/*
 * Embedded, for a rank that waits for something else than a message, on the endpoint's thread.
 * Returns an error (logged) if a rank has failed or is in an unlike call. Sends this rank's call to
 * `peer`, the rank that it waits for; -1: to none. Does not wait. Not embedded: OK.
 */
enum status transport_listen(struct transport *transport, int peer);

/* Embedded, once all ranks have made their last call: STATUS_PROTOCOL (logged) if a message has
 * come that no call has received. Afterwards a closed connection is no error, because a rank may
 * leave the last barrier earlier than others; that a rank has failed still is one. */
enum status transport_check_end(struct transport *transport);

/* Embedded: reports to all ranks that this one has failed with `status`, and `why`. Takes at most
 * FAREWELL_MS. transport_stop must follow. NULL: there is no transport. */
void transport_fail(struct transport *transport, enum status status, const char *why);

/* Embedded, in a child of fork(): closes the connections that it has inherited, without a word to
 * the other ends. Those of ZeroMQ and MPI stay. NULL: there is no transport. */
void transport_close_in_child(const struct transport *transport);

/*
 * Both endpoints of a process (NULL where it has none), after an error: cuts their connections.
 * Nothing of the caller's memory is read or written any more once this returns (over MPI only if
 * embedded), and only transport_slot_fini and transport_close may follow. If all sends were
 * flushed it costs nothing.
 */
void transport_stop(struct transport *endpoint[2]);

/*
 * Queues a message to node `peer`. kind, step, bucket, offset, length, dtype come from `message`;
 * the rest is filled in. `payload` (message->length bytes) must stay unchanged until the message is
 * sent: returns its number in *ticket (may be NULL) for transport_sent and transport_wait_sent.
 */
enum status transport_send(struct transport *transport, int peer, const struct message *message,
                           const void *payload, uint64_t *ticket);
bool transport_sent(struct transport *transport, int peer, uint64_t ticket);
enum status transport_wait_sent(struct transport *transport, int peer, uint64_t ticket);
/* Waits until no payload of this endpoint is needed any more. */
enum status transport_flush(struct transport *transport);

/*
 * Slots come and go while their transport stays open. A slot that is still posted is withdrawn by
 * fini; what has come into it is lost. A message that comes when no slot is posted for its sender
 * waits for one. When one set of slots replaces another, no node may send for the new set before
 * every node has let go of the old one.
 */
enum status transport_slot_init(struct transport_slot *slot, struct transport *transport, int peer,
                                size_t capacity);
void transport_slot_fini(struct transport_slot *slot, struct transport *transport);
/*
 * Before a post: what the schedule says must come into the slot, until the next time. Another kind,
 * step, bucket, offset, length or element type (if `expected` has one) is STATUS_PROTOCOL. The log
 * names both messages, because a peer has other options. A wait that ends without the message names
 * it, too.
 */
void transport_slot_expect(struct transport_slot *slot, const struct message *expected);
enum status transport_post(struct transport *transport, struct transport_slot *slot, void *into);
enum status transport_wait(struct transport *transport, struct transport_slot *slot);
/*
 * Waits for any of the posted slots that `slots` points to (NULL entries are skipped). They are
 * looked at in turn, so that none starves. If several slots have one peer, name the oldest:
 * messages are in order only per peer. `patient`: wait however long it takes (a server between
 * steps), not just the time-out.
 */
enum status transport_wait_any(struct transport *transport, struct transport_slot *const *slots,
                               size_t count, bool patient, size_t *which);
void transport_release(struct transport *transport, struct transport_slot *slot);

void transport_counters(const struct transport *transport, struct transport_counters *counters);

const char *transport_kind_name(enum transport_kind kind);
/* TRANSPORT_KINDS: none has this name. */
enum transport_kind transport_kind_find(const char *name);
/* A few words on how it moves bytes. */
const char *transport_kind_summary(enum transport_kind kind);
/* Why this build does not have it; NULL: it has. */
const char *transport_kind_unavailable(enum transport_kind kind);

#endif
