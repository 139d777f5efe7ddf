/*
 * Internal to common/net/transport/transport.c: messages that have come before a slot was posted
 * for them, oldest first. A ring buffer that grows to what windows and dependencies allow, and no
 * further.
 */
#ifndef PSRING_COMMON_NET_TRANSPORT_ARRIVALS_H
#define PSRING_COMMON_NET_TRANSPORT_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/net/transport/message.h"
#include "common/net/transport/payload.h"

struct arrival {
    struct message message;
    struct payload payload;
};

struct arrivals {
    struct arrival *ring; /* of `size` */
    size_t head, length, size;
};

/* Takes the payload, also on an error (logged): no memory, or far more messages than a peer may
 * have sent. */
enum status arrivals_push(struct arrivals *arrivals, const struct message *message,
                          struct payload payload);

/* The oldest, which stays; NULL: there is none. */
const struct message *arrivals_oldest(const struct arrivals *arrivals);

/* Takes the oldest out; false if there is none. Its payload is the caller's. */
bool arrivals_pop(struct arrivals *arrivals, struct arrival *oldest);

/* Releases every payload and frees the buffer. */
void arrivals_fini(struct arrivals *arrivals);

#endif
