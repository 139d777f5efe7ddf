#include "common/net/stream.h"

#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"

int stream_poll_ms(int64_t deadline_ns)
{
    if (deadline_ns == 0)
        return -1;
    int64_t left_ms = (deadline_ns - clock_now_ns() + NS_PER_MS - 1) / NS_PER_MS;
    return left_ms < 0 ? 0 : left_ms > INT_MAX ? INT_MAX : (int)left_ms;
}

static int64_t deadline_after(int64_t timeout_ms)
{
    return timeout_ms > 0 ? clock_now_ns() + timeout_ms * NS_PER_MS : 0;
}

/* -------- connections ------------------------------------------------------------------------- */

static int fail(int *out)
{
    int error = errno;
    stream_close(out);
    return error;
}

/* Small messages go at once: they are what ranks wait for. */
static void send_at_once(int socket)
{
    int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int stream_listen(const union address *address, int *out)
{
    int on = 1, off = 0;
    *out = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*out < 0)
        return errno;
    /* The connections of a run that has just ended do not hold its port. */
    setsockopt(*out, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->any.sa_family == AF_INET6) /* all addresses are those of IPv4, too */
        setsockopt(*out, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(*out, &address->any, address_bytes(address)) != 0 || listen(*out, SOMAXCONN) != 0)
        return fail(out);
    return 0;
}

int stream_accept(int listening, int *out)
{
    do
        *out = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    while (*out < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (*out < 0)
        return errno == EWOULDBLOCK ? EAGAIN : errno;
    send_at_once(*out);
    return 0;
}

/* A socket that connects to a port of its own machine where nobody listens may be given that very
 * port, and is then connected to itself. */
static bool is_own(int socket)
{
    union address here, there;
    return address_of_socket(socket, &here) == 0 && address_of_peer(socket, &there) == 0 &&
           address_port(&here) == address_port(&there) && address_same_host(&here, &there);
}

int stream_connect(const union address *address, int64_t timeout_ms, int *out)
{
    int error = 0;
    socklen_t error_bytes = sizeof error;
    int64_t deadline_ns = deadline_after(timeout_ms);
    *out = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*out < 0)
        return errno;
    if (connect(*out, &address->any, address_bytes(address)) != 0 && errno != EINPROGRESS)
        return fail(out);
    struct pollfd poll_out = {.fd = *out, .events = POLLOUT};
    int ready;
    do
        ready = poll(&poll_out, 1, stream_poll_ms(deadline_ns));
    while (ready < 0 && errno == EINTR);
    if (ready == 0)
        errno = ETIMEDOUT;
    if (ready <= 0 || getsockopt(*out, SOL_SOCKET, SO_ERROR, &error, &error_bytes) != 0)
        return fail(out);
    errno = error ? error : is_own(*out) ? ECONNREFUSED : 0;
    if (errno != 0)
        return fail(out);
    send_at_once(*out);
    return 0;
}

void stream_close(int *socket)
{
    char unread[4096];
    if (*socket < 0)
        return;
    for (int i = 0; i < 64 && recv(*socket, unread, sizeof unread, MSG_DONTWAIT) > 0; i++)
        ;
    shutdown(*socket, SHUT_RDWR); /* a child of fork() may have it open, too */
    close(*socket);
    *socket = -1;
}

/* -------- messages ---------------------------------------------------------------------------- */

static int move_all(int socket, unsigned char *data, size_t bytes, bool sending, int64_t timeout_ms)
{
    struct pollfd polled = {.fd = socket, .events = sending ? POLLOUT : POLLIN};
    int64_t deadline_ns = deadline_after(timeout_ms);
    size_t done = 0;
    while (done < bytes) {
        ssize_t moved = sending
                            ? send(socket, data + done, bytes - done, MSG_NOSIGNAL | MSG_DONTWAIT)
                            : recv(socket, data + done, bytes - done, MSG_DONTWAIT);
        if (moved > 0) {
            done += (size_t)moved;
            deadline_ns = deadline_after(timeout_ms);
            continue;
        }
        if (moved == 0)
            return ECONNRESET;
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            return errno == EPIPE ? ECONNRESET : errno;
        int ready = poll(&polled, 1, stream_poll_ms(deadline_ns));
        if (ready == 0)
            return ETIMEDOUT;
        if (ready < 0 && errno != EINTR)
            return errno;
    }
    return 0;
}

int stream_send(int socket, const void *data, size_t bytes, int64_t timeout_ms)
{
    return move_all(socket, without_const(data), bytes, true, timeout_ms); /* send(2) only reads */
}

int stream_receive(int socket, void *data, size_t bytes, int64_t timeout_ms)
{
    return move_all(socket, data, bytes, false, timeout_ms);
}
