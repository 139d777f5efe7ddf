#include "tests/lib/send_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/util.h"
#include "common/comm/comm_impl.h"
#include "common/net/transport/transport_impl.h"

/* A send whose owner has not yet seen that it is complete. */
struct watched {
    int peer;
    uint64_t ticket;
    const void *payload; /* borrowed, like the transport does */
    void *copy;
    size_t length;
    bool answered_here; /* a slot of this peer is posted with the payload's memory */
    struct watched *next;
};

/* One watched endpoint. Owned by the thread that owns the endpoint. */
struct watch {
    struct transport_ops ops; /* first: the endpoint points to it */
    const struct transport_ops *real;
    struct watched *first; /* list in any order */
};

static struct watch *watch_of(const struct transport *transport)
{
    return without_const(transport->ops);
}

static void compare(const struct transport *transport, const struct watched *send)
{
    if (memcmp(send->payload, send->copy, send->length) == 0)
        return;
    if (send->answered_here &&
        watch_of(transport)->real->completed(without_const(transport), send->peer) > send->ticket)
        return; /* the answer came after the last byte had left */
    fprintf(stderr,
            "node %d wrote to the payload of send %llu to node %d (%zu bytes) before it saw that "
            "the send was complete\n",
            transport->node, (unsigned long long)send->ticket, send->peer, send->length);
    abort();
}

static bool is_answered_at(const struct transport *transport, int peer, const void *payload)
{
    const struct transport_slot *slot = transport->peers[peer].first;
    while (slot && slot->into != payload)
        slot = slot->next_posted;
    return slot && transport_answers_in_place(transport);
}

static enum status watched_send(struct transport *transport, int peer,
                                const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                                size_t length)
{
    struct watch *watch = watch_of(transport);
    for (const struct watched *send = watch->first; send; send = send->next)
        compare(transport, send);
    enum status status = watch->real->send(transport, peer, header, payload, length);
    uint64_t ticket = transport->peers[peer].sends; /* transport_send counts this send later */
    if (status != STATUS_OK || length == 0)
        return status;
    struct watched *send = malloc(sizeof *send);
    CHECK(send);
    *send = (struct watched){peer,           ticket, payload,
                             malloc(length), length, is_answered_at(transport, peer, payload),
                             watch->first};
    CHECK(send->copy);
    memcpy(send->copy, payload, length);
    watch->first = send;
    return status;
}

/* While the transport receives, an answer may arrive at a payload that leaves. Before that,
 * the payload must be unchanged. */
static enum status watched_progress(struct transport *transport, int64_t wait_ns, bool for_sends,
                                    bool *moved)
{
    struct watch *watch = watch_of(transport);
    for (const struct watched *send = watch->first; send; send = send->next)
        compare(transport, send);
    return watch->real->progress(transport, wait_ns, for_sends, moved);
}

static uint64_t watched_completed(struct transport *transport, int peer)
{
    struct watch *watch = watch_of(transport);
    uint64_t completed = watch->real->completed(transport, peer);
    for (struct watched **link = &watch->first; *link;) {
        struct watched *send = *link;
        if (send->peer != peer || send->ticket >= completed) {
            link = &send->next;
            continue;
        }
        compare(transport, send);
        *link = send->next;
        free(send->copy);
        free(send);
    }
    return completed;
}

static void watched_close(struct transport *transport)
{
    struct watch *watch = watch_of(transport);
    while (watch->first) {
        struct watched *send = watch->first;
        watch->first = send->next;
        free(send->copy);
        free(send);
    }
    transport->ops = watch->real;
    free(watch);
    transport->ops->close(transport);
}

static void watch_endpoint(struct transport *transport)
{
    struct watch *watch = calloc(1, sizeof *watch);
    CHECK(watch);
    watch->real = transport->ops;
    watch->ops = *transport->ops;
    watch->ops.send = watched_send;
    watch->ops.progress = watched_progress;
    watch->ops.completed = watched_completed;
    watch->ops.close = watched_close;
    transport->ops = &watch->ops;
}

#ifdef __SANITIZE_THREAD__
static const bool watches = false; /* it finds races, and makes a comparison many times slower */
#else
static const bool watches = true;
#endif

void send_memory_watch(struct comm *comm)
{
    if (!watches)
        return;
    for (int role = 0; role < 2; role++) {
        if (comm->place.endpoints[role])
            watch_endpoint(comm->place.endpoints[role]);
    }
}
