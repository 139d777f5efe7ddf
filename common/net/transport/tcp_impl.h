/*
 * Shared by the files of the TCP transport: tcp.c moves messages and waits, and tcp_connect.c
 * connects and closes.
 */
#ifndef PSRING_COMMON_NET_TRANSPORT_TCP_IMPL_H
#define PSRING_COMMON_NET_TRANSPORT_TCP_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/net/transport/transport_impl.h"

/* A read may extend this far beyond the end of a payload: the next header, and short payloads
 * whole. */
enum { TCP_INPUT_BYTES = 4096 };
_Static_assert((int)TCP_INPUT_BYTES > (int)MESSAGE_HEADER_BYTES + (int)TRANSPORT_WORDS_BYTES,
               "the words of a rank that has failed are read as a header is");

/* A message that the kernel has not taken completely. */
struct tcp_send {
    uint8_t header[MESSAGE_HEADER_BYTES];
    const uint8_t *payload; /* the caller's */
    size_t length;
};

/* Memory for a borrowed payload. Last in, first out: the same few buffers stay in the cache. */
struct tcp_buffer {
    struct tcp_endpoint *owner;
    struct tcp_buffer *next; /* while free */
    size_t size;
    uint8_t *data;
};

enum tcp_reading {
    TCP_HEADER,  /* less than a header has arrived */
    TCP_PARKED,  /* `message` has arrived, but no slot is posted for it */
    TCP_PAYLOAD, /* of `message` */
};

/* One connection. */
struct tcp_peer {
    int fd; /* -1: no connection */
    int node;
    bool readable, writable; /* last known state; with many peers only */
    bool hung_up;            /* a read will find the end of the stream */
    bool watched;            /* by the endpoint's epoll */
    bool said_bye;           /* its last header was of MESSAGE_BYE */
    int64_t lost_ns;         /* when the connection was found closed; 0: it is open */
    int error;               /* the reason for that, an errno value */

    struct fifo queue; /* of struct tcp_send; a part of the first may have been sent */
    size_t first_sent; /* sent bytes of the first, with its header */
    size_t held_bytes; /* queued since the last attempt to send */
    bool is_held;      /* in the endpoint's list */
    struct tcp_peer *next_held;
    uint64_t completed;

    enum tcp_reading reading;
    struct message message;
    struct transport_slot *slot; /* of the payload; NULL: the payload is dropped */
    uint8_t *into;
    size_t left;                 /* missing bytes of the payload */
    size_t input_from, input_to; /* bytes that have been read and not used */
    uint8_t input[TCP_INPUT_BYTES];
};

struct tcp_endpoint {
    struct transport base;
    int epoll; /* of all peers, once more than FEW are of interest; else -1 */
    struct tcp_buffer *free;
    struct tcp_peer *first_held, *last_held; /* list of peers with held messages */
    struct tcp_peer peers[];                 /* by node */
};

static inline struct tcp_endpoint *endpoint_of(struct transport *transport)
{
    return (struct tcp_endpoint *)transport;
}

/* tcp_connect.c: the operations open, cut, close_in_child and close. */
enum status transport_tcp_open(struct transport *endpoint[2], struct world *world,
                               const struct transport_options *options);
void transport_tcp_cut(struct transport *transport);
void transport_tcp_close_in_child(const struct transport *transport);
void transport_tcp_close(struct transport *transport);

#endif
