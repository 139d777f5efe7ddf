/* What a timeline is told of messages. */
#include "common/net/transport/transport_impl.h"
#include "common/base/range.h"

/* Between two nodes messages arrive in order, so a number tells which is which on both sides. */
static struct range_about about_message(const struct transport *transport, enum range_kind kind,
                                        int peer, uint64_t number, const struct message *message)
{
    return (struct range_about){.kind = kind,
                                .bucket = message->bucket,
                                .peer = peer,
                                .node = transport->node,
                                .number = number,
                                .bytes = message->length};
}

void transport_tell_send(struct transport *transport, int peer, const struct message *message)
{
    if (!range_listens())
        return;
    uint64_t number = transport->peers[peer].sends;
    struct range_about about = about_message(transport, RANGE_SEND, peer, number, message);
    about.queue = (uint32_t)(number + 1 - transport->ops->completed(transport, peer));
    range_detail_begin("send", &about);
}

void transport_tell_arrival(const struct transport *transport, const struct transport_slot *slot)
{
    if (!range_listens())
        return;
    const struct transport_peer *peer = &transport->peers[slot->peer];
    struct range_about about =
        about_message(transport, RANGE_RECEIVE, slot->peer, slot->number, &slot->message);
    about.queue = (uint32_t)(peer->posts - peer->arrived);
    range_moment("receive", &about);
}
