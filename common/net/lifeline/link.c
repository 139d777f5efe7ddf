#include "common/net/lifeline/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/socket/address.h"
#include "common/net/socket/stream.h"

#define MAGIC UINT32_C(0x5053524c) /* "PSRL" */

static enum status socket_failed(const char *what, const struct lifeline_address *address,
                                 int error)
{
    log_error("%s %s port %u: %s; is it the right network (see --interface), and does a firewall "
              "let connections between the hosts through?",
              what, address->host, address->port, strerror(error));
    return STATUS_TRANSPORT;
}

static struct sockaddr_in socket_address(const struct lifeline_address *address)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(address->port)};
    inet_pton(AF_INET, address->host, &name.sin_addr);
    return name;
}

enum status lifeline_listen(const char *subnet, bool one_host, struct listener *listener,
                            struct lifeline_address *address)
{
    *address = (struct lifeline_address){0};
    enum status status = address_choose(subnet, one_host, address->host, sizeof address->host);
    if (status != STATUS_OK)
        return status;
    struct sockaddr_in name = socket_address(address);
    int error = listener_open(listener, &name, 0);
    if (error != 0)
        return socket_failed("rank 0 cannot listen for the other ranks on", address, error);
    address->port = ntohs(listener->address.sin_port);
    address->good = true;
    return STATUS_OK;
}

enum status lifeline_connect(const struct lifeline_address *address, int rank, uint64_t run_id,
                             int64_t timeout_ms, int *fd)
{
    struct sockaddr_in name = socket_address(address);
    struct hello hello = {
        .magic = HELLO_MAGIC, .protocol = HELLO_PROTOCOL, .rank = rank, .run_id = run_id};
    int error = stream_connect(&name, timeout_ms, fd);
    if (error == 0)
        error = stream_send(*fd, &hello, sizeof hello, timeout_ms);
    return error ? socket_failed("cannot connect to rank 0 at", address, error) : STATUS_OK;
}

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

enum lifeline_read lifeline_read(struct lifeline_link *link, uint64_t run_id)
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
    if (whole && link->frame.magic == MAGIC && link->frame.run_id == run_id)
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
