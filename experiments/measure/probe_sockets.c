#include "experiments/measure/probe_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"

enum { UNSENT_BYTES = 256 << 10, WAKE_BYTES = 16 << 10, CALLERS_MOST = 64 };

enum status probe_failed(const struct probe_sockets *sockets, const char *what)
{
    log_error("the probe of the link: %s at %s: %s; bench --probe off goes without it", what,
              sockets->address, strerror(errno));
    return status_from_errno(errno);
}

enum status probe_silent(const struct probe_sockets *sockets, const char *what)
{
    log_error("the probe of the link: %s at %s: nothing for %g s; can the hosts reach each other? "
              "--interface names the network, bench --probe off goes without the probe",
              what, sockets->address, (double)sockets->timeout_ms / 1000);
    return STATUS_TIMEOUT;
}

/* Waits until `fd` is ready for `events`. */
static enum status wait_ready(const struct probe_sockets *sockets, int fd, short events,
                              const char *what)
{
    struct pollfd ready = {.fd = fd, .events = events};
    int64_t deadline_ns = clock_now_ns() + sockets->timeout_ms * NS_PER_MS;
    for (;;) {
        int64_t left_ms = (deadline_ns - clock_now_ns()) / NS_PER_MS;
        int count = poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0);
        if (count > 0)
            return STATUS_OK;
        if (count < 0 && errno != EINTR)
            return probe_failed(sockets, what);
        if (left_ms <= 0)
            return probe_silent(sockets, what);
    }
}

enum status probe_listen(struct probe_sockets *sockets, struct probe_peer *mine)
{
    const union address *own = &sockets->own;
    sockets->listener = socket(own->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sockets->listener < 0 || bind(sockets->listener, &own->any, address_bytes(own)) != 0 ||
        listen(sockets->listener, CALLERS_MOST) != 0 ||
        (errno = address_of_socket(sockets->listener, &mine->at)) != 0)
        return probe_failed(sockets, "listening");
    return STATUS_OK;
}

enum status probe_connect(struct probe_sockets *sockets, const struct probe_peer *peer)
{
    enum status status;
    const union address *to = &peer->at;
    int error = 0, unsent_bytes = UNSENT_BYTES;
    socklen_t length = sizeof error;
    sockets->out = socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sockets->out < 0)
        return probe_failed(sockets, "a socket");
    if (connect(sockets->out, &to->any, address_bytes(to)) != 0 && errno != EINPROGRESS)
        return probe_failed(sockets, "connecting");
    TRY(wait_ready(sockets, sockets->out, POLLOUT, "connecting"));
    if (getsockopt(sockets->out, SOL_SOCKET, SO_ERROR, &error, &length) != 0 ||
        (errno = error) != 0)
        return probe_failed(sockets, "connecting");
    /* What waits in the sender's buffer at the end would only prolong the probe. */
    setsockopt(sockets->out, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes, sizeof unsent_bytes);
    /* Tells us from strangers. It fits any socket's buffer. */
    uint64_t hello = sockets->run_id;
    if (send(sockets->out, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
        return probe_failed(sockets, "sending");
out:
    return status;
}

/* -------- who calls --------------------------------------------------------------------------- */

/* Connections that have not said yet who they are, the oldest first. */
struct callers {
    int fd[CALLERS_MOST];
    int count;
};

static void callers_remove(struct callers *callers, int index)
{
    callers->count--;
    memmove(&callers->fd[index], &callers->fd[index + 1],
            (size_t)(callers->count - index) * sizeof callers->fd[0]);
}

/* One more; where there is no room, the one that has been silent for longest has to go. */
static void callers_add(struct callers *callers, int fd)
{
    if (callers->count == CALLERS_MOST) {
        close(callers->fd[0]);
        callers_remove(callers, 0);
    }
    callers->fd[callers->count++] = fd;
}

/* Hears what one has to say: the rank before this one is taken, a stranger is left. */
static void hear(struct probe_sockets *sockets, struct callers *callers, int index)
{
    int fd = callers->fd[index];
    uint64_t hello = 0;
    bool ours =
        recv(fd, &hello, sizeof hello, MSG_DONTWAIT) == sizeof hello && hello == sockets->run_id;
    callers_remove(callers, index);
    if (ours && sockets->in < 0)
        sockets->in = fd;
    else
        close(fd);
}

/* Waits for the listener and all callers at once, and serves those that are ready. */
static enum status serve_callers(struct probe_sockets *sockets, struct callers *callers,
                                 int64_t left_ms)
{
    struct pollfd fds[CALLERS_MOST + 1];
    int count = callers->count;
    for (int i = 0; i < count; i++)
        fds[i] = (struct pollfd){.fd = callers->fd[i], .events = POLLIN};
    fds[count] = (struct pollfd){.fd = sockets->listener, .events = POLLIN};
    if (poll(fds, (nfds_t)count + 1, (int)left_ms) < 0)
        return errno == EINTR ? STATUS_OK : probe_failed(sockets, "accepting");
    for (int i = count; i-- > 0;)
        if (fds[i].revents)
            hear(sockets, callers, i);
    if (fds[count].revents) {
        int fd = accept(sockets->listener, NULL, NULL);
        if (fd >= 0)
            callers_add(callers, fd);
        else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            return probe_failed(sockets, "accepting");
    }
    return STATUS_OK;
}

enum status probe_accept(struct probe_sockets *sockets)
{
    enum status status = STATUS_OK;
    struct callers callers = {.count = 0};
    int64_t deadline_ns = clock_now_ns() + sockets->timeout_ms * NS_PER_MS;
    while (sockets->in < 0) {
        int64_t left_ms = (deadline_ns - clock_now_ns()) / NS_PER_MS;
        if (left_ms <= 0) {
            status = probe_silent(sockets, "accepting");
            goto out;
        }
        TRY(serve_callers(sockets, &callers, left_ms));
    }
    fcntl(sockets->in, F_SETFD, FD_CLOEXEC);
    fcntl(sockets->in, F_SETFL, O_NONBLOCK);
    /* A wake-up for every packet would take CPU time that the kernel needs to move them. */
    int enough_bytes = WAKE_BYTES;
    setsockopt(sockets->in, SOL_SOCKET, SO_RCVLOWAT, &enough_bytes, sizeof enough_bytes);
out:
    for (int i = 0; i < callers.count; i++)
        close(callers.fd[i]);
    return status;
}

/* -------- the end ----------------------------------------------------------------------------- */

static void close_descriptor(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void probe_close_streams(struct probe_sockets *sockets)
{
    close_descriptor(&sockets->out);
    close_descriptor(&sockets->in);
}

void probe_close(struct probe_sockets *sockets)
{
    probe_close_streams(sockets);
    close_descriptor(&sockets->listener);
}
