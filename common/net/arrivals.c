#include "common/net/arrivals.h"

#include <stdlib.h>

enum { SIZE_FIRST = 16, SIZE_MAX_ENTRIES = 1 << 16 };

static struct arrival *entry(const struct arrivals *arrivals, size_t index)
{
    return &arrivals->ring[(arrivals->head + index) % arrivals->size];
}

static enum status grow(struct arrivals *arrivals, unsigned sender)
{
    size_t size = arrivals->size ? 2 * arrivals->size : SIZE_FIRST;
    struct arrival *ring = size <= SIZE_MAX_ENTRIES ? calloc(size, sizeof *ring) : NULL;
    if (!ring && size <= SIZE_MAX_ENTRIES) {
        log_error("ZeroMQ: no memory for %zu messages that wait", size);
        return STATUS_NO_MEMORY;
    }
    if (!ring) {
        log_error("ZeroMQ: node %u sends faster than it may: %zu messages wait; do all ranks run "
                  "with the same options?",
                  sender, arrivals->length);
        return STATUS_PROTOCOL;
    }
    for (size_t i = 0; i < arrivals->length; i++) {
        struct arrival *from = entry(arrivals, i);
        ring[i].message = from->message;
        zmq_msg_init(&ring[i].frame);
        zmq_msg_move(&ring[i].frame, &from->frame);
    }
    free(arrivals->ring);
    *arrivals = (struct arrivals){.ring = ring, .length = arrivals->length, .size = size};
    return STATUS_OK;
}

enum status arrivals_push(struct arrivals *arrivals, const struct message *message,
                          zmq_msg_t *frame)
{
    if (arrivals->length == arrivals->size) {
        enum status status = grow(arrivals, (unsigned)message->sender);
        if (status != STATUS_OK)
            return status;
    }
    struct arrival *last = entry(arrivals, arrivals->length++);
    last->message = *message;
    zmq_msg_init(&last->frame);
    zmq_msg_move(&last->frame, frame);
    return STATUS_OK;
}

struct arrival *arrivals_pop(struct arrivals *arrivals)
{
    if (arrivals->length == 0)
        return NULL;
    struct arrival *oldest = entry(arrivals, 0);
    arrivals->head = (arrivals->head + 1) % arrivals->size;
    arrivals->length--;
    return oldest;
}

void arrivals_fini(struct arrivals *arrivals)
{
    for (struct arrival *left; (left = arrivals_pop(arrivals));)
        zmq_msg_close(&left->frame);
    free(arrivals->ring);
    *arrivals = (struct arrivals){0};
}
