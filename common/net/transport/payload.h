/* A payload that has come: where its bytes are, and how to let go of them. Copied by value; one of
 * the copies is released. */
#ifndef PSRING_COMMON_NET_TRANSPORT_PAYLOAD_H
#define PSRING_COMMON_NET_TRANSPORT_PAYLOAD_H

#include <stddef.h>

struct payload {
    const void *data;
    void (*release)(void *holder); /* NULL: nothing is held */
    void *holder;                  /* the transport's own: whatever owns `data` */
};

static inline void payload_release(struct payload *payload)
{
    if (payload->release)
        payload->release(payload->holder);
    *payload = (struct payload){0};
}

#endif
