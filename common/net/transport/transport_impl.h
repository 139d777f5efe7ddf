/*
 * Internal to common/net: what a transport implements, and the state that transport.c keeps for
 * all. transport.c: counting, header encoding and validation, and which slot a message belongs to;
 * wait.c: waiting with a time-out. An implementation: moving bytes.
 *
 * There are three kinds. ZeroMQ hands over messages whole, as they come: such a transport gives
 * each to transport_deliver, which puts it into the oldest slot posted for its sender, or keeps it
 * until one is posted.
 *
 * A socket can be read up to where a payload begins: such a transport then asks transport_claim for
 * the slot, reads the payload to where that wants it, and says so with transport_complete. A
 * message that nothing is posted for yet stays where it is.
 *
 * MPI matches messages itself and wants the memory beforehand: such a transport implements `post`,
 * `slot_init` and `slot_fini`, keeps its receives in slot->impl, and says with transport_complete
 * what has come into a slot. Messages that nothing is posted for then wait inside the library.
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
    /* Queues header and payload for `peer`; the payload is borrowed until counted as completed. */
    enum status (*send)(struct transport *transport, int peer,
                        const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                        size_t length);
    /* How many of the sends to `peer` no longer need their payload, in order of sending. */
    uint64_t (*completed)(struct transport *transport, int peer);
    /* (optional) Prepares for messages of up to slot->capacity. */
    enum status (*slot_init)(struct transport *transport, struct transport_slot *slot);
    /* (optional, both or none) For a transport that matches messages itself, with slot->impl.
     * `post` makes `slot` the next receive from its peer; `slot_fini` withdraws it if it is still
     * posted. */
    void (*slot_fini)(struct transport *transport, struct transport_slot *slot);
    enum status (*post)(struct transport *transport, struct transport_slot *slot);
    /* Moves what can be moved; if nothing can, may block up to wait_ns until something arrives, or
     * with `for_sends` until a send completes as well. *moved: something did. */
    enum status (*progress)(struct transport *transport, int64_t wait_ns, bool for_sends,
                            bool *moved);
    /* (optional, with transport_claim) `slot` goes away in the middle of its payload: what is still
     * to come of that is thrown away. */
    void (*abandon)(struct transport *transport, struct transport_slot *slot);
    /* (optional) Sends a message that comes without a slot; `send` in its place, if there is none.
     * The payload is the transport's own. */
    enum status (*tell)(struct transport *transport, int peer,
                        const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                        size_t length);
    /* (optional) Embedded: hears peers from which nothing is awaited, and finds out that they have
     * closed their connections. Does not wait. */
    enum status (*look)(struct transport *transport);
    /* (optional) transport_check_end, where `look` does not see all messages that have come. */
    enum status (*check_end)(struct transport *transport);
    /* (optional) Returns once all messages have left, or at `deadline_ns`. */
    void (*linger)(struct transport *transport, int64_t deadline_ns);
    /* (optional) transport_close_in_child. */
    void (*close_in_child)(const struct transport *transport);
    /* (optional) transport_stop: first `cut` for both endpoints, then `settle`, which returns once
     * no payload of a send is read any more. */
    void (*cut)(struct transport *transport);
    void (*settle)(struct transport *transport);
    void (*close)(struct transport *transport);
};

enum {
    LOOK_MS = 50,                 /* embedded: a wait of this long looks at what else has come */
    FAREWELL_MS = 200,            /* a failed rank tells the others for at most this long */
    TRANSPORT_WORDS_BYTES = 1024, /* payload of MESSAGE_FAILED: a text that ends with zeros */
};

/*
 * The unexpected queue, as MPI calls it: messages that have come before a slot was posted for them,
 * oldest first. A ring buffer that grows to what windows and dependencies allow, and no
 * further.
 */

struct unexpected_message {
    struct message message;
    struct payload payload;
};

struct unexpected_queue {
    struct unexpected_message *ring; /* of `size` */
    size_t head, length, size;
};

/* The oldest, which stays; NULL: there is none. */
const struct message *unexpected_oldest(const struct unexpected_queue *queue);

struct transport_peer {
    uint64_t sends;   /* queued so far: the ticket of the next one */
    uint64_t posts;   /* so far, less those withdrawn: the number of the next slot's message */
    uint64_t arrived; /* messages that have come into slots */
    struct message_call announced; /* the last one that it has waited in; else zero */
    uint64_t told;                 /* the last call of ours that was sent to it, by calls */
    bool local;                    /* hosted by this very process: does not cross the network */
    struct transport_slot *first, **last; /* posted, oldest first */
    struct unexpected_queue unexpected;   /* messages that no slot has been posted for yet */
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

/* Fills the common part; false if out of memory (logged). */
bool transport_base_init(struct transport *transport, const struct transport_ops *ops,
                         struct world *world, const struct transport_options *options,
                         enum node_role role);
void transport_base_fini(struct transport *transport);

/*
 * For an implementation that has a header in hand: decodes and validates it. From `peer`; -1: from
 * whoever could connect. STATUS_INPUT with -1: not of this run; it is counted, nothing is logged,
 * and the message is to be dropped. Every other error is one of this run, and logged.
 */
enum status transport_accept(struct transport *transport, const uint8_t *header, size_t size,
                             int peer, struct message *message);
/*
 * `message`, which transport_accept has accepted, and its payload are here: fills the oldest slot
 * posted for its sender, or keeps it until there is one. Takes the payload, also on an error.
 */
enum status transport_deliver(struct transport *transport, const struct message *message,
                              struct payload payload);
/*
 * The header of `message`, which transport_accept has accepted, is here, and nothing of its payload
 * has been read: *slot is the oldest one posted for its sender, and no longer posted for others;
 * NULL if there is none yet. The payload is to go to slot->into, or into memory that slot->held
 * releases. STATUS_PROTOCOL (logged): it is not what the slot expects, or longer.
 */
enum status transport_claim(struct transport *transport, const struct message *message,
                            struct transport_slot **slot);
/* `slot` now holds `message`, its payload at `payload`. Counts it and marks the slot done. */
enum status transport_complete(struct transport *transport, struct transport_slot *slot,
                               const struct message *message, const void *payload);

/* `message`, which came without a slot and which transport_accept has accepted: MESSAGE_CALL or
 * MESSAGE_FAILED, with its payload. Returns the error that it means for this rank (logged). */
enum status transport_hear(struct transport *transport, const struct message *message,
                           const void *payload);
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
static inline bool transport_comes_without_slot(const struct message *message)
{
    return message->kind == MESSAGE_CALL || message->kind == MESSAGE_FAILED;
}

/* STATUS_PROTOCOL (logged) unless `message` is what the slot expects, and not longer. */
enum status transport_check_fit(const struct transport *transport,
                                const struct transport_slot *slot, const struct message *message);

/* Logs that a message did not fit its slot; returns STATUS_PROTOCOL. */
enum status transport_too_long(const struct transport *transport,
                               const struct transport_slot *slot);

/* "worker 2 (rank 2)", "server 0 (rank 4)" into `text`, for messages. Returns text. */
const char *transport_describe(const struct transport *transport, int node, char *text,
                               size_t size);

/* "segment of step 17, bucket 0, offset 65536 (4096 bytes)" into `text`. Returns text. */
const char *transport_describe_message(const struct message *message, char *text, size_t size);

enum status transport_zmq_open(struct transport *endpoint[2], struct world *world,
                               const struct transport_options *options);
enum status transport_tcp_open(struct transport *endpoint[2], struct world *world,
                               const struct transport_options *options);
extern const char *const transport_mpi_unavailable; /* NULL: this build has it */
enum status transport_mpi_open(struct transport *endpoint[2], struct world *world,
                               const struct transport_options *options);

#endif
