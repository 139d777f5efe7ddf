/*
 * Internal to common/net/zmq.c: messages that have come before a slot was posted for them, oldest
 * first. A ring buffer that grows to what windows and dependencies allow, and no further.
 */
#ifndef PSRING_COMMON_NET_ARRIVALS_H
#define PSRING_COMMON_NET_ARRIVALS_H

#include <stddef.h>
#include <zmq.h>

#include "common/base/status.h"
#include "common/net/message.h"

struct arrival {
    struct message message;
    zmq_msg_t frame; /* the payload */
};

struct arrivals {
    struct arrival *ring; /* of `size` */
    size_t head, length, size;
};

/* Takes the content of `frame`. An error (logged) once a peer has sent far more than it may. */
enum status arrivals_push(struct arrivals *arrivals, const struct message *message,
                          zmq_msg_t *frame);

/* The oldest, or NULL. Valid until the next push; its frame is the caller's. */
struct arrival *arrivals_pop(struct arrivals *arrivals);

/* Closes every frame and frees the buffer. */
void arrivals_fini(struct arrivals *arrivals);

#endif
