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

/* A received payload. ZeroMQ's messages cannot be copied by value, so each stays in its frame. */
struct zmq_frame {
    zmq_msg_t message;
    struct zmq_endpoint *owner;
    struct zmq_frame *next; /* while free */
};

enum { ZMQ_PASSWORD_BYTES = 17 }; /* 64 bits in hexadecimal, and the end */

/* The check of passwords. Its thread owns the sockets and the count while it runs. */
struct zmq_auth {
    void *context;     /* borrowed */
    void *zap;         /* receives ZeroMQ's requests */
    void *monitors[2]; /* report failed handshakes, by role */
    struct thread thread;
    uint64_t refused;
    char password[ZMQ_PASSWORD_BYTES];
};

/*
 * Shared by the two endpoints of a process, until both are closed. They share the context, because
 * inproc works only within one. A message from one endpoint to the other refers to its sender until
 * it is released, on any thread. The memory of both endpoints is freed when both are closed and the
 * context has ended.
 */
struct zmq_shared {
    void *context;
    bool ipv6;                               /* this rank listens at an IPv6 address */
    char (*addresses)[2][ZMQ_ADDRESS_BYTES]; /* of all nodes, by rank and role */
    struct zmq_auth auth;
    struct zmq_endpoint *endpoints[2]; /* by role; NULL: none */
    _Atomic int users;
    /* Incremented before a send, read after a receive. ZeroMQ itself orders memory between the
     * sending and the receiving thread. This counter shows the order to a race detector, which does
     * not see into the library. */
    _Atomic uint64_t handovers;
};

struct zmq_endpoint {
    struct transport base;
    struct zmq_shared *shared;
    void *pull;
    int receive_timeout_ms; /* of `pull` */
    int wake_fd;            /* an eventfd: a send has completed */
    _Atomic bool wants_wake;
    _Atomic uint64_t completions; /* sends that no longer need their payload, over all peers */
    uint64_t completions_seen;    /* its value at the owner's last look */
    struct zmq_frame *free;       /* frames without a message */
    struct zmq_peer peers[];      /* by node */
};

static inline struct zmq_endpoint *endpoint_of(struct transport *transport)
{
    return (struct zmq_endpoint *)transport;
}

/* Logs ZeroMQ's own message for its last error. */
enum status transport_zmq_status(const char *what);

/* zmq_auth.c. Call _open before any socket exists, _start once all sockets listen, and _close
 * before the context ends. Call _listener before a socket is bound, and _connector before it
 * connects. Errors are logged. */
enum status transport_zmq_auth_open(struct zmq_auth *auth, void *context, uint64_t run_id);
enum status transport_zmq_auth_listener(struct zmq_auth *auth, void *socket, enum node_role role);
enum status transport_zmq_auth_connector(const struct zmq_auth *auth, void *socket);
enum status transport_zmq_auth_start(struct zmq_auth *auth);
void transport_zmq_auth_close(struct zmq_auth *auth);

#endif
