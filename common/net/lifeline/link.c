#include "common/net/lifeline/link.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC UINT32_C(0x5053524c) /* "PSRL" */

void lifeline_send(struct lifeline_link *link, const struct lifeline_frame *frame)
{
    struct lifeline_frame filled = *frame;
    filled.magic = MAGIC;
    if (link->fd < 0)
        return;
    /* A frame that went out in part would be followed by one that cannot be read: whoever has not
     * emptied the buffer for so long is as good as gone. */
    ssize_t sent = send(link->fd, &filled, sizeof filled, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0 && (size_t)sent < sizeof filled)
        shutdown(link->fd, SHUT_WR);
}

void lifeline_send_last(struct lifeline_link *link, const struct lifeline_frame *frame)
{
    lifeline_send(link, frame);
    if (link->fd >= 0)
        shutdown(link->fd, SHUT_WR);
}

enum lifeline_read lifeline_read(struct lifeline_link *link)
{
    if (link->fd < 0)
        return LIFELINE_READ_CLOSED;
    if (link->have == sizeof link->frame)
        link->have = 0;
    ssize_t got;
    do {
        got = recv(link->fd, (char *)&link->frame + link->have, sizeof link->frame - link->have,
                   MSG_DONTWAIT);
        if (got > 0)
            link->have += (size_t)got;
    } while (got > 0 && link->have < sizeof link->frame);
    bool whole = link->have == sizeof link->frame;
    if (whole && link->frame.magic == MAGIC)
        return LIFELINE_READ_FRAME;
    if (!whole && got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return LIFELINE_READ_NOTHING;
    return LIFELINE_READ_CLOSED;
}

void lifeline_link_close(struct lifeline_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    *link = (struct lifeline_link){.fd = -1};
}
