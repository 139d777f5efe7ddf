/*
 * What the two files of the ZeroMQ transport share: zmq.c moves messages, zmq_open.c opens and
 * closes the sockets.
 */
#ifndef PSRING_COMMON_NET_ZMQ_IMPL_H
#define PSRING_COMMON_NET_ZMQ_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/arrivals.h"
#include "common/net/transport_impl.h"

enum { ZMQ_ADDRESS_BYTES = 64 };

struct zmq_peer {
    struct zmq_endpoint *owner;
    void *push; /* NULL until the first send */
    _Atomic uint64_t completed;
    char address[ZMQ_ADDRESS_BYTES];
    struct transport_slot *first, **last; /* posted, oldest first */
    struct arrivals early;                /* messages that no slot has been posted for yet */
};

/* The context is shared by the two endpoints of a process: inproc works only within one. */
struct zmq_shared {
    void *context;
    _Atomic int users;
    /* Counted up before a send, read after a receive. ZeroMQ itself orders memory between the
     * thread that sends and the one that receives; this shows it to a race detector, which does not
     * see into the library. */
    _Atomic uint64_t handovers;
};

struct zmq_endpoint {
    struct transport base;
    struct zmq_shared *shared;
    void *pull;
    int receive_timeout_ms; /* of `pull` */
    int wake_fd;            /* an eventfd: "a send has completed" */
    _Atomic bool wants_wake;
    _Atomic uint64_t completions; /* sends that no longer need their payload, over all peers */
    uint64_t completions_seen;    /* by the owner, when it last looked */
    struct zmq_peer *peers;       /* by node */
};

static inline struct zmq_endpoint *endpoint_of(struct transport *transport)
{
    return (struct zmq_endpoint *)transport;
}

/* Logs ZeroMQ's own message for its last error. */
enum status transport_zmq_status(const char *what);

/* A socket of the endpoint's context with the options that all of ours have; NULL where ZeroMQ has
 * none. */
void *transport_zmq_socket(struct zmq_endpoint *endpoint, int type);

/* zmq.c: all but opening. */
extern const struct transport_ops transport_zmq_ops;

/* zmq_open.c: the operation close. */
void transport_zmq_close(struct transport *transport);

#endif
