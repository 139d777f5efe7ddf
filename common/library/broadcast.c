#include "common/library/broadcast.h"

#include "common/base/util.h"

enum { SEGMENT_BYTES = 256 << 10 };

enum status broadcast_open(struct broadcast *broadcast, struct transport *transport,
                           const struct group *group)
{
    enum status status = STATUS_OK;
    int size = group->size;
    *broadcast = (struct broadcast){.transport = transport,
                                    .size = size,
                                    .rank = group->rank,
                                    .next = group->ranks[(group->rank + 1) % size],
                                    .previous = group->ranks[(group->rank + size - 1) % size]};
    for (int i = 0; i < BROADCAST_SLOTS; i++)
        TRY(transport_slot_init(&broadcast->slots[i], transport, broadcast->previous,
                                SEGMENT_BYTES));
out:
    return status;
}

void broadcast_close(struct broadcast *broadcast)
{
    for (int i = 0; broadcast->transport && i < BROADCAST_SLOTS; i++)
        transport_slot_fini(&broadcast->slots[i], broadcast->transport);
    *broadcast = (struct broadcast){0};
}

/* One operation, in segments. */
struct run {
    struct broadcast *broadcast;
    char *data;
    size_t bytes, segments;
    enum message_dtype dtype;
};

static struct message segment_of(const struct run *run, size_t segment)
{
    size_t offset = segment * SEGMENT_BYTES;
    return (struct message){.kind = MESSAGE_SEGMENT,
                            .step = run->broadcast->step,
                            .offset = offset,
                            .length = size_smaller(run->bytes - offset, SEGMENT_BYTES),
                            .dtype = run->dtype};
}

static enum status post(const struct run *run, size_t segment)
{
    struct transport_slot *slot = &run->broadcast->slots[segment % BROADCAST_SLOTS];
    struct message expected = segment_of(run, segment);
    transport_slot_expect(slot, &expected);
    return transport_post(run->broadcast->transport, slot, run->data + expected.offset);
}

static enum status receive(const struct run *run, size_t segment)
{
    enum status status = STATUS_OK;
    struct transport *transport = run->broadcast->transport;
    struct transport_slot *slot = &run->broadcast->slots[segment % BROADCAST_SLOTS];
    TRY(transport_wait(transport, slot));
    transport_release(transport, slot);
    if (segment + BROADCAST_SLOTS < run->segments)
        TRY(post(run, segment + BROADCAST_SLOTS));
out:
    return status;
}

enum status broadcast_run(struct broadcast *broadcast, void *data, size_t count,
                          enum message_dtype dtype, int root)
{
    enum status status = STATUS_OK;
    int position = (broadcast->rank - root + broadcast->size) % broadcast->size;
    struct run run = {.broadcast = broadcast,
                      .data = data,
                      .bytes = count * message_element_bytes(dtype),
                      .dtype = dtype};
    run.segments = size_divide_up(run.bytes, SEGMENT_BYTES);
    for (size_t i = 0; position > 0 && i < run.segments && i < BROADCAST_SLOTS; i++)
        TRY(post(&run, i));
    for (size_t i = 0; i < run.segments; i++) {
        struct message message = segment_of(&run, i);
        if (position > 0)
            TRY(receive(&run, i));
        if (position < broadcast->size - 1)
            TRY(transport_send(broadcast->transport, broadcast->next, &message,
                               run.data + message.offset, NULL));
    }
    TRY(transport_flush(broadcast->transport));
    broadcast->step++;
out:
    return status;
}
