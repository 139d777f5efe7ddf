/*
 * The protocol between transport.c and an implementation. An implementation is one file or two in
 * this folder, or that of a simulation. It moves bytes between nodes, in order. transport.c makes
 * and validates headers, counts, and knows the posted slots. wait.c waits, with a time-out.
 *
 * Sending: `send` gets a header and a payload, which the caller owns. `completed` returns how many
 * sends no longer need their payload.
 *
 * Receiving: `progress` takes every message that has arrived through four steps.
 *
 *   1. transport_accept    The header has arrived: decodes and validates it.
 *   2. transport_claim     Assigns the message to a posted slot, unless the slot expects another
 *                          message or is too short. No other function checks this.
 *   3. The payload goes to slot->into. If that is NULL, it goes to memory that slot->held releases.
 *   4. transport_complete  Counts the message, and ends the wait for it.
 *
 * An *unexpected* message arrives before a slot is posted for it. The implementations differ in
 * the choice of the slot and in the place where an unexpected message waits:
 *
 *   tcp   claims the oldest slot posted for the sender (peers[sender].first). If there is none, the
 *         payload stays in the kernel, and step 2 is tried again.
 *   zmq   has the payload when it has the header. transport_deliver does steps 2 to 4 for it with
 *         the oldest slot, and keeps an unexpected message in the peer's queue. The simulation
 *         does so, too.
 *   mpi   must know the slot beforehand, and matches itself: `post` starts a receive for each slot.
 *         Unexpected messages wait inside the library.
 *
 * Embedded, some messages come without a slot. After step 1 they go to transport_deliver.
 */
#ifndef PSRING_COMMON_NET_TRANSPORT_TRANSPORT_IMPL_H
#define PSRING_COMMON_NET_TRANSPORT_TRANSPORT_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/net/transport/message.h"
#include "common/net/transport/transport.h"

struct transport_ops {
    const char *name;        /* for --transport */
    const char *summary;     /* what moves the bytes, for psring info */
    const char *unavailable; /* why this build lacks it; NULL: it has it */
    /* Approximate need of file descriptors: for the process, for each endpoint, and for each node
     * to which an endpoint is connected. */
    struct {
        int process, endpoint, peer;
    } descriptors;
    /* (optional) A payload is read once, in order. Nothing reads it any more when its receiver has
     * all of it, and nothing writes to a slot's memory before its message arrives. */
    bool answers_in_place;
    /* The bytes of the implementation's struct, which begins with a struct transport, and of one
     * entry of the array of its peers (by node), with which that struct ends. */
    size_t endpoint_bytes, peer_bytes;

    /* Connects the endpoints of this process; NULL if it has none. Collective. transport_open has
     * allocated them: the implementation's own members are zero. A descriptor is thus 0 (stdin):
     * set those of both to -1 before anything can fail. On an error (logged) both are closed. A
     * rank that fails may return at once: the other ranks' collective call then fails or times
     * out. */
    enum status (*open)(struct transport *endpoint[2], struct world *world,
                        const struct transport_options *options);
    /* Queues header and payload for `peer`. The payload is borrowed until it counts as
     * completed. */
    enum status (*send)(struct transport *transport, int peer,
                        const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                        size_t length);
    /* The number of sends to `peer` that no longer need their payload and arrive without a further
     * call here, in order of sending. */
    uint64_t (*completed)(struct transport *transport, int peer);
    /* Moves all bytes that can move now. If there are none, it may sleep up to wait_ns until
     * something arrives, or with `for_sends` also until a send completes. wait_ns is 0 (do not
     * wait) to 1 s, embedded to LOOK_MS. *moved is false at the call. Set it only if
     * something of this run has moved, also a part of a message: the time-out then starts again. */
    enum status (*progress)(struct transport *transport, int64_t wait_ns, bool for_sends,
                            bool *moved);
    /* Calls transport_base_fini and frees the endpoint. Also after a failed or partial `open`. */
    void (*close)(struct transport *transport);

    /* (optional) Prepares for messages of up to slot->capacity. */
    enum status (*slot_init)(struct transport *transport, struct transport_slot *slot);
    /* (optional) The slot is freed, perhaps while it is posted or in the middle of its payload. The
     * remaining part of that payload is dropped. */
    void (*slot_fini)(struct transport *transport, struct transport_slot *slot);
    /* (optional) `slot` has been posted: makes it the next receive from its peer. */
    enum status (*post)(struct transport *transport, struct transport_slot *slot);
    /* (optional) Sends a message that comes without a slot. NULL: `send` is used. The transport
     * owns the payload. */
    enum status (*notify)(struct transport *transport, int peer,
                          const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                          size_t length);
    /* (optional) Embedded: reads from peers from which no message is awaited, and notices that they
     * have closed their connections. Does not wait. */
    enum status (*look)(struct transport *transport);
    /* (optional) For transport_check_end, if `look` does not see all messages that have arrived. */
    enum status (*check_end)(struct transport *transport);
    /* (optional) Sends what can be sent without waiting. True once all messages have left or are
     * dropped; the process may then end. NULL: nothing is ever queued in this process. */
    bool (*is_empty)(struct transport *transport);
    /* (optional) For transport_stop: cuts the connections, and drops what is queued. Once is_empty
     * returns true, no payload of a send is read any more. NULL: embedded, the transport does not
     * use the caller's memory between calls. */
    void (*cut)(struct transport *transport);
    /* (optional) For transport_close_in_child. */
    void (*close_in_child)(const struct transport *transport);
};

enum {
    LOOK_MS = 50,                 /* embedded: a wait of this length checks other messages */
    FAREWELL_MS = 2000,           /* a failed rank reports its failure for at most this time */
    SETTLE_MS = 2000,             /* transport_stop waits for at most this time */
    TRANSPORT_WORDS_BYTES = 1024, /* payload of MESSAGE_FAILED: a text that ends with zeros */
};

/* A queue of entries of one size, oldest first, in a ring buffer that grows and never shrinks. */
struct fifo {
    void *entries;             /* freed with free() */
    size_t first, count, size; /* `size` is 0 or a power of two */
};

/* Entry `index`, counted from the oldest. */
static inline void *fifo_at(const struct fifo *fifo, size_t entry_bytes, size_t index)
{
    return (char *)fifo->entries + ((fifo->first + index) & (fifo->size - 1)) * entry_bytes;
}

/* Adds an entry for the caller to fill in. NULL: out of memory, not logged. */
void *fifo_push(struct fifo *fifo, size_t entry_bytes);

/* Drops the oldest entry of a queue that is not empty. */
static inline void fifo_pop(struct fifo *fifo)
{
    fifo->first = (fifo->first + 1) & (fifo->size - 1);
    fifo->count--;
}

/* A message that has arrived before a slot was posted for it: MPI's term. */
struct unexpected_message {
    struct message message;
    struct payload payload;
};

struct transport_peer {
    uint64_t sends;   /* queued so far: the ticket of the next send */
    uint64_t posts;   /* so far, less withdrawn ones: the number of the next slot's message */
    uint64_t arrived; /* messages that have arrived in slots */
    struct message_call announced; /* the last call in which it has waited; else zero */
    uint64_t notified;             /* this rank's last call that was sent to it (see `calls`) */
    /* In this process. Messages still pass through send and progress, but are not counted. */
    bool local;
    bool other_rack;                      /* messages pass the uplink of this node's rack */
    struct transport_slot *first, **last; /* posted, oldest first */
    struct fifo unexpected;               /* of struct unexpected_message */
    uint64_t unexpected_bytes;            /* of their payloads */
};

/* The first member of every implementation's struct. */
struct transport {
    const struct transport_ops *ops;
    struct world *world; /* borrowed */
    struct topology topology;
    int node;
    enum node_role role;
    struct message_limits limits;
    int64_t timeout_ns, stall_ns;
    struct transport_peer *peers; /* by node */
    struct transport_counters counters;
    struct {
        uint64_t messages;
        const char *reason; /* why the last message was not of this run */
    } rejected;
    bool crowded; /* world_crowded, with one thread per endpoint of this process */
    bool embedded;
    struct message_call call; /* embedded: the current call */
    uint64_t calls;           /* number of calls so far */
    bool heard;               /* another rank has failed; `words` is its report */
    char words[TRANSPORT_WORDS_BYTES];
    bool failed;     /* transport_fail was called */
    bool ended;      /* transport_check_end was OK: ranks may close their connections */
    size_t next_any; /* the first slot that transport_wait_any checks */
    _Atomic bool interrupted;
};

/* Fills the common part; transport_open calls it. False: out of memory (not logged). */
bool transport_base_init(struct transport *transport, const struct transport_ops *ops,
                         struct world *world, const struct transport_options *options,
                         enum node_role role);
void transport_base_fini(struct transport *transport);

/*
 * Step 1: decodes and validates a header, with magic, version and world->run_id. `peer` is the
 * sender that the connection vouches for. -1: the transport cannot tell the sender, and any process
 * could connect. STATUS_INPUT with -1: the message is not of this run; it is counted and not
 * logged, and the caller drops it. Every other error concerns this run and is logged.
 */
enum status transport_accept(struct transport *transport, const uint8_t *header, size_t size,
                             int peer, struct message *message);
/*
 * Step 2: assigns `message` to `slot`, which was posted for its sender and is then posted no
 * longer. Before this call nothing of the payload may be written to slot->into, unless
 * slot->capacity limited it. STATUS_PROTOCOL (logged): the slot expects another message, or is too
 * short.
 */
enum status transport_claim(struct transport *transport, struct transport_slot *slot,
                            const struct message *message);
/* Step 4: the payload is in slot->into, or if that is NULL in slot->held.data. */
void transport_complete(struct transport *transport, struct transport_slot *slot);
/*
 * Steps 2 to 4 for a message that transport_accept has accepted and whose payload has arrived;
 * without a posted slot, steps 2 to 4 follow at the next post. A message without a slot returns the
 * error that it means for this rank (logged). Takes the payload, also on an error.
 */
enum status transport_deliver(struct transport *transport, const struct message *message,
                              struct payload payload);
static inline bool transport_comes_without_slot(const struct message *message)
{
    return message->kind == MESSAGE_CALL || message->kind == MESSAGE_FAILED;
}

/* STATUS_PROTOCOL (logged) if `peer` and this rank are in different calls. transport_check_call:
 * `peer` has announced `theirs`. transport_check_unread: `theirs` is the call of a message that has
 * arrived and that no slot is posted for. */
enum status transport_check_call(const struct transport *transport, int peer,
                                 const struct message_call *theirs);
enum status transport_check_unread(const struct transport *transport, int peer,
                                   const struct message_call *theirs);
/* The same for a peer whose message this rank waits for: it must not be in a later call. */
enum status transport_check_ahead(const struct transport *transport, int peer);
/* Sends this rank's call to `peer`, once per call. */
enum status transport_announce(struct transport *transport, int peer);

/* Logs that a message did not fit its slot. Returns STATUS_PROTOCOL. */
enum status transport_too_long(const struct transport *transport,
                               const struct transport_slot *slot);

/* Texts of messages for people. */
struct transport_text {
    char text[160];
};
/* "worker 2 (rank 2)", "server 0 (rank 4)" */
struct transport_text transport_node_text(const struct transport *transport, int node);
/* "segment of step 17, bucket 0, offset 65536 (4096 bytes)" */
struct transport_text transport_message_text(const struct message *message);

extern const struct transport_ops transport_zmq_ops, transport_mpi_ops, transport_tcp_ops;

#endif
