/*
 * Shared by the files of the ZeroMQ transport: zmq.c moves messages, opens and closes the sockets,
 * and zmq_auth.c keeps strangers out.
 */
#ifndef PSRING_COMMON_NET_TRANSPORT_ZMQ_IMPL_H
#define PSRING_COMMON_NET_TRANSPORT_ZMQ_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <zmq.h>

#include "common/base/status.h"
#include "common/base/thread.h"
#include "common/net/transport/transport_impl.h"

enum { ZMQ_ADDRESS_BYTES = 80 };

struct zmq_peer {
    struct zmq_endpoint *owner;
    void *push; /* NULL until the first send */
    _Atomic uint64_t completed;
};

/* A received payload. ZeroMQ's messages cannot be copied by value, so each stays where it is. */
struct zmq_frame {
    zmq_msg_t message;
    struct zmq_endpoint *owner;
    struct zmq_frame *next; /* while free */
};

enum { ZMQ_PASSWORD_BYTES = 17 }; /* 64 bits in hexadecimal, and the end */

/* The check of passwords. Its thread owns the sockets and the count while it runs. */
struct zmq_auth {
    void *context;     /* borrowed */
    void *zap;         /* where ZeroMQ asks */
    void *monitors[2]; /* where it reports failed handshakes, by role */
    struct thread thread;
    uint64_t refused;
    char password[ZMQ_PASSWORD_BYTES];
};

/*
 * Shared by the two endpoints of a process; it outlives the first of them to close. They share the
 * context, because inproc works only within one. A message that one endpoint has sent to the other
 * refers to its sender until it is released, on any thread. The memory of both is freed when both
 * are closed and the context has ended.
 */
struct zmq_shared {
    void *context;
    bool ipv6;                               /* this rank listens at such an address */
    char (*addresses)[2][ZMQ_ADDRESS_BYTES]; /* at which nodes listen, by rank and role */
    struct zmq_auth auth;
    struct zmq_endpoint *endpoints[2]; /* by role; NULL where there is none */
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
    struct zmq_frame *free;       /* frames that hold nothing */
    struct zmq_peer peers[];      /* by node */
};

static inline struct zmq_endpoint *endpoint_of(struct transport *transport)
{
    return (struct zmq_endpoint *)transport;
}

/* Logs ZeroMQ's own message for its last error. */
enum status transport_zmq_status(const char *what);

/* zmq_auth.c. Open it before any socket, start it once all listen, close it before the context.
 * Give it a listener before that is bound, and a connector before it connects. Errors are logged.
 */
enum status transport_zmq_auth_open(struct zmq_auth *auth, void *context, uint64_t run_id);
enum status transport_zmq_auth_listener(struct zmq_auth *auth, void *socket, enum node_role role);
enum status transport_zmq_auth_connector(const struct zmq_auth *auth, void *socket);
enum status transport_zmq_auth_start(struct zmq_auth *auth);
void transport_zmq_auth_close(struct zmq_auth *auth);

#endif
