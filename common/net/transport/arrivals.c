#include "common/net/transport/arrivals.h"

#include <stdlib.h>

enum { SIZE_FIRST = 16, SIZE_MAX_ENTRIES = 1 << 16 };

static struct arrival *entry(const struct arrivals *arrivals, size_t index)
{
    return &arrivals->ring[(arrivals->head + index) % arrivals->size];
}

static enum status grow(struct arrivals *arrivals, unsigned sender)
{
    size_t size = arrivals->size ? 2 * arrivals->size : SIZE_FIRST;
    if (size > SIZE_MAX_ENTRIES) {
        log_error("node %u sends faster than it may: %zu messages wait; do all ranks run with the "
                  "same options?",
                  sender, arrivals->length);
        return STATUS_PROTOCOL;
    }
    struct arrival *ring = malloc(size * sizeof *ring);
    if (!ring) {
        log_error("no memory for %zu messages that wait", size);
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < arrivals->length; i++)
        ring[i] = *entry(arrivals, i);
    free(arrivals->ring);
    *arrivals = (struct arrivals){.ring = ring, .length = arrivals->length, .size = size};
    return STATUS_OK;
}

enum status arrivals_push(struct arrivals *arrivals, const struct message *message,
                          struct payload payload)
{
    if (arrivals->length == arrivals->size) {
        enum status status = grow(arrivals, (unsigned)message->sender);
        if (status != STATUS_OK) {
            payload_release(&payload);
            return status;
        }
    }
    *entry(arrivals, arrivals->length++) = (struct arrival){*message, payload};
    return STATUS_OK;
}

const struct message *arrivals_oldest(const struct arrivals *arrivals)
{
    return arrivals->length > 0 ? &entry(arrivals, 0)->message : NULL;
}

bool arrivals_pop(struct arrivals *arrivals, struct arrival *oldest)
{
    if (arrivals->length == 0)
        return false;
    *oldest = *entry(arrivals, 0);
    arrivals->head = (arrivals->head + 1) % arrivals->size;
    arrivals->length--;
    return true;
}

void arrivals_fini(struct arrivals *arrivals)
{
    for (struct arrival left; arrivals_pop(arrivals, &left);)
        payload_release(&left.payload);
    free(arrivals->ring);
    *arrivals = (struct arrivals){0};
}
