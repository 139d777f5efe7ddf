/*
 * The protocol between transport.c and an implementation: tcp, zmq or mpi, or that of a simulation.
 * transport.c makes and validates headers, counts, and knows
 * which slots are posted. wait.c waits, with a time-out. An implementation moves bytes between
 * nodes, in order.
 *
 * Sending: `send` gets a header and a payload, which stays the caller's. `completed` says how many
 * sends no longer need their payload.
 *
 * Receiving: `progress` takes every message that has arrived through four steps.
 *
 *   1. transport_accept    The header is here: decodes and validates it.
 *   2. transport_claim     Takes the message into a posted slot, unless that expects another one or
 *                          is too short. This is the only such check: the slot has the message now.
 *   3. The payload goes to slot->into. If that is NULL, it goes to memory that slot->held releases.
 *   4. transport_complete  Counts the message, and ends the wait for it.
 *
 * The implementations differ in who chooses the slot, and in where an unexpected message waits,
 * for which no slot is posted yet:
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
    const char *name;        /* of --transport */
    const char *summary;     /* what moves the bytes, for psring info */
    const char *unavailable; /* why this build does not have it; NULL: it has */
    /* File descriptors that it needs, about: for the process, for each endpoint, and for each node
     * that an endpoint is connected to. */
    struct {
        int process, endpoint, peer;
    } descriptors;
    /* The implementation's struct begins with a struct transport, and ends with an array of its
     * peers, by node. Bytes of both. */
    size_t endpoint_bytes, peer_bytes;

    /* Connects the endpoints of this process, which transport_open has made: the implementation's
     * own members are zero. NULL where the process has none. Collective. On an error (logged) they
     * are closed. */
    enum status (*open)(struct transport *endpoint[2], struct world *world,
                        const struct transport_options *options);
    /* Queues header and payload for `peer`; the payload is borrowed until counted as completed. */
    enum status (*send)(struct transport *transport, int peer,
                        const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                        size_t length);
    /* How many of the sends to `peer` no longer need their payload, in order of sending. */
    uint64_t (*completed)(struct transport *transport, int peer);
    /* Moves what can be moved; if nothing can, may block up to wait_ns until something arrives, or
     * with `for_sends` until a send completes as well. *moved: something did. */
    enum status (*progress)(struct transport *transport, int64_t wait_ns, bool for_sends,
                            bool *moved);
    /* Ends with transport_base_fini, and frees the endpoint. */
    void (*close)(struct transport *transport);

    /* (optional) Prepares for messages of up to slot->capacity. */
    enum status (*slot_init)(struct transport *transport, struct transport_slot *slot);
    /* (optional) The slot goes away, perhaps while it is posted, or in the middle of its payload:
     * what is still to come of that is thrown away. */
    void (*slot_fini)(struct transport *transport, struct transport_slot *slot);
    /* (optional) `slot` has been posted: makes it the next receive from its peer. */
    enum status (*post)(struct transport *transport, struct transport_slot *slot);
    /* (optional) Sends a message that comes without a slot; `send` in its place, if there is none.
     * The payload is the transport's own. */
    enum status (*notify)(struct transport *transport, int peer,
                          const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                          size_t length);
    /* (optional) Embedded: hears peers from which nothing is awaited, and finds out that they have
     * closed their connections. Does not wait. */
    enum status (*look)(struct transport *transport);
    /* (optional) transport_check_end, where `look` does not see all messages that have come. */
    enum status (*check_end)(struct transport *transport);
    /* (optional) Sends what can be sent without waiting. True once all messages have left or are
     * dropped: a process may end then. */
    bool (*is_empty)(struct transport *transport);
    /* (optional) transport_stop: cuts the connections, and drops what is queued. Once is_empty says
     * so, no payload of a send is read any more. */
    void (*cut)(struct transport *transport);
    /* (optional) transport_close_in_child. */
    void (*close_in_child)(const struct transport *transport);
};

enum {
    LOOK_MS = 50,                 /* embedded: a wait of this long looks at what else has come */
    FAREWELL_MS = 200,            /* a failed rank reports it for at most this long */
    SETTLE_MS = 2000,             /* transport_stop waits for at most this long */
    TRANSPORT_WORDS_BYTES = 1024, /* payload of MESSAGE_FAILED: a text that ends with zeros */
};

/* A queue of entries of one size, oldest first, in a ring buffer that grows and never shrinks. */
struct fifo {
    void *entries;             /* free() frees them */
    size_t first, count, size; /* `size` is 0 or a power of two */
};

/* Entry `index` from the oldest one on. */
static inline void *fifo_at(const struct fifo *fifo, size_t entry_bytes, size_t index)
{
    return (char *)fifo->entries + ((fifo->first + index) & (fifo->size - 1)) * entry_bytes;
}

/* A further entry, to be filled in; NULL: out of memory, not logged. */
void *fifo_push(struct fifo *fifo, size_t entry_bytes);

/* Drops the oldest of some. */
static inline void fifo_pop(struct fifo *fifo)
{
    fifo->first = (fifo->first + 1) & (fifo->size - 1);
    fifo->count--;
}

/* A message that has come before a slot was posted for it: MPI's term. */
struct unexpected_message {
    struct message message;
    struct payload payload;
};

struct transport_peer {
    uint64_t sends;   /* queued so far: the ticket of the next one */
    uint64_t posts;   /* so far, less those withdrawn: the number of the next slot's message */
    uint64_t arrived; /* messages that have come into slots */
    struct message_call announced; /* the last one that it has waited in; else zero */
    uint64_t notified;             /* the last call of ours that was sent to it, by calls */
    bool local;                    /* hosted by this very process: does not cross the network */
    struct transport_slot *first, **last; /* posted, oldest first */
    struct fifo unexpected;               /* of struct unexpected_message */
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
        const char *reason; /* why the last one was not of this run */
    } rejected;
    bool crowded; /* world_crowded, by a thread for each endpoint of this process */
    bool embedded;
    struct message_call call; /* embedded: what is under way */
    uint64_t calls;           /* so far */
    bool heard;               /* another rank has failed: `words` are its own */
    char words[TRANSPORT_WORDS_BYTES];
    bool failed;     /* transport_fail was called */
    bool ended;      /* transport_check_end has found nothing: ranks may close their connections */
    size_t next_any; /* where transport_wait_any looks first */
    _Atomic bool interrupted;
};

/* Fills the common part; false if out of memory (not logged). transport_open does it. */
bool transport_base_init(struct transport *transport, const struct transport_ops *ops,
                         struct world *world, const struct transport_options *options,
                         enum node_role role);
void transport_base_fini(struct transport *transport);

/*
 * Step 1: decodes and validates a header. It came from `peer`; -1: from any process that could
 * connect. STATUS_INPUT with -1: not of this run; it is counted, nothing is logged, and the message
 * is to be dropped. Every other error is one of this run, and logged.
 */
enum status transport_accept(struct transport *transport, const uint8_t *header, size_t size,
                             int peer, struct message *message);
/*
 * Step 2: `slot`, posted for the sender of `message`, is posted no longer and has it. Nothing of
 * the payload may have been written to slot->into yet, unless slot->capacity bounded it.
 * STATUS_PROTOCOL (logged): the message is not what the slot expects, or longer.
 */
enum status transport_claim(struct transport *transport, struct transport_slot *slot,
                            const struct message *message);
/* Step 4: the payload is at slot->into, or where that is NULL at slot->held.data. */
void transport_complete(struct transport *transport, struct transport_slot *slot);
/*
 * Steps 2 to 4 for a message that transport_accept has accepted and whose payload is here, or later
 * when a slot is posted. A message without a slot gives the error that it means for this rank
 * (logged). Takes the payload, also on an error.
 */
enum status transport_deliver(struct transport *transport, const struct message *message,
                              struct payload payload);
static inline bool transport_comes_without_slot(const struct message *message)
{
    return message->kind == MESSAGE_CALL || message->kind == MESSAGE_FAILED;
}

/* STATUS_PROTOCOL (logged) if `peer` and this rank are in unlike calls. `theirs` was announced, or
 * is of a message that has come and that nothing is posted for. */
enum status transport_check_call(const struct transport *transport, int peer,
                                 const struct message_call *theirs);
enum status transport_check_unread(const struct transport *transport, int peer,
                                   const struct message_call *theirs);
/* The same of a peer whose message this rank waits for: it must not be in a later call. */
enum status transport_check_ahead(const struct transport *transport, int peer);
/* Sends this rank's call to `peer`, once a call. */
enum status transport_announce(struct transport *transport, int peer);

/* Logs that a message did not fit its slot; returns STATUS_PROTOCOL. */
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
