#include "common/net/listener.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/status.h"
#include "common/base/clock.h"
#include "common/net/stream.h"

enum { ACCEPT_AGAIN_MS = 10 };

_Static_assert(sizeof(struct hello) == 128, "it travels as it lies in memory");

int listener_adopt(struct listener *listener, int socket, size_t watched_max)
{
    *listener = (struct listener){.socket = socket, .watched_max = watched_max};
    listener->polls = calloc(1 + HELLO_PENDING + watched_max, sizeof *listener->polls);
    int error = listener->polls ? 0 : ENOMEM;
    if (error == 0)
        error = address_of_socket(socket, &listener->address);
    if (error != 0)
        listener_close(listener);
    return error;
}

int listener_open(struct listener *listener, const union address *address, size_t watched_max)
{
    int socket;
    *listener = (struct listener){.socket = -1};
    int error = stream_listen(address, &socket);
    return error ? error : listener_adopt(listener, socket, watched_max);
}

void listener_close(struct listener *listener)
{
    for (int i = 0; i < listener->pending_count; i++)
        stream_close(&listener->pending[i].socket);
    listener->pending_count = 0;
    stream_close(&listener->socket);
    free(listener->polls);
    listener->polls = NULL;
}

/* -------- connections that have not introduced themselves ------------------------------------- */

static void forget(struct listener *listener, int index)
{
    listener->pending_count--;
    memmove(&listener->pending[index], &listener->pending[index + 1],
            (size_t)(listener->pending_count - index) * sizeof listener->pending[0]);
}

static void drop(struct listener *listener, int index, const char *why)
{
    if (!listener->warned)
        log_warn("start-up: dropped a connection that %s; further ones are dropped silently", why);
    listener->warned = true;
    stream_close(&listener->pending[index].socket);
    forget(listener, index);
}

/* Whoever wants to connect still waits, and poll(2) would say so again and again. */
static void put_off(struct listener *listener, int error)
{
    if (!listener->warned_of_accept)
        log_warn("start-up: cannot accept a connection: %s; trying again", strerror(error));
    listener->warned_of_accept = true;
    clock_sleep_until_ns(clock_now_ns() + ACCEPT_AGAIN_MS * NS_PER_MS);
}

/* When the next connection may be accepted: at once, or when the oldest one has had its time. */
static int64_t accepts_at_ns(const struct listener *listener)
{
    if (listener->pending_count < HELLO_PENDING)
        return 0;
    return listener->pending[0].until_ns - (HELLO_WAIT_MS - HELLO_YOUNG_MS) * NS_PER_MS;
}

static void accept_all(struct listener *listener)
{
    for (int i = 0; i < HELLO_PENDING && clock_now_ns() >= accepts_at_ns(listener); i++) {
        int socket, error = stream_accept(listener->socket, &socket);
        if (error != 0 && error != EAGAIN)
            put_off(listener, error);
        if (error != 0)
            return;
        if (listener->pending_count == HELLO_PENDING)
            drop(listener, 0, "said nothing while many others came");
        listener->pending[listener->pending_count++] = (struct pending){
            .socket = socket, .until_ns = clock_now_ns() + HELLO_WAIT_MS * NS_PER_MS};
    }
}

static void make_printable(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (; *text; text++) {
        if (*text <= ' ' || *text > '~')
            *text = '?';
    }
}

enum outcome { HELLO_PARTIAL, HELLO_COMPLETE, HELLO_FOREIGN, HELLO_CLOSED };

/* Reads what has come of a hello. */
static enum outcome read_hello(struct pending *pending)
{
    struct hello *hello = &pending->hello;
    for (;;) {
        bool same = pending->have >= HELLO_SAME_BYTES;
        if (same && hello->magic != HELLO_MAGIC)
            return HELLO_FOREIGN;
        if (same && (hello->protocol != HELLO_PROTOCOL || pending->have == sizeof *hello))
            return HELLO_COMPLETE;
        size_t wanted = same ? sizeof *hello : HELLO_SAME_BYTES;
        ssize_t got = recv(pending->socket, (unsigned char *)hello + pending->have,
                           wanted - pending->have, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return HELLO_PARTIAL;
        if (got <= 0)
            return HELLO_CLOSED;
        pending->have += (size_t)got;
    }
}

/* Looks at those that poll(2) has found something on; true once one has introduced itself. */
static bool find_hello(struct listener *listener, struct hello *hello, int *socket)
{
    /* From the last to the first: dropping one moves those after it. */
    for (int i = listener->pending_count - 1; i >= 0; i--) {
        struct pending *pending = &listener->pending[i];
        bool nothing = listener->polls[1 + i].revents == 0;
        switch (nothing ? HELLO_PARTIAL : read_hello(pending)) {
        case HELLO_PARTIAL:
            if (clock_now_ns() >= pending->until_ns)
                drop(listener, i, "did not introduce itself in time");
            break;
        case HELLO_COMPLETE:
            *hello = pending->hello;
            *socket = pending->socket;
            make_printable(hello->version, sizeof hello->version);
            make_printable(hello->host, sizeof hello->host);
            forget(listener, i);
            return true;
        case HELLO_FOREIGN:
            drop(listener, i, "is none of psring's");
            break;
        case HELLO_CLOSED:
            drop(listener, i, "closed before it introduced itself");
            break;
        }
    }
    return false;
}

/* -------- waiting ----------------------------------------------------------------------------- */

/* The earliest of two times (0: none) and of the times at which connections are dropped. */
static int64_t earliest(const struct listener *listener, int64_t accepts_ns, int64_t deadline_ns)
{
    if (accepts_ns > 0 && (deadline_ns == 0 || accepts_ns < deadline_ns))
        deadline_ns = accepts_ns;
    for (int i = 0; i < listener->pending_count; i++) {
        if (deadline_ns == 0 || listener->pending[i].until_ns < deadline_ns)
            deadline_ns = listener->pending[i].until_ns;
    }
    return deadline_ns;
}

enum listener_event listener_wait(struct listener *listener, int64_t deadline_ns,
                                  const int *watched, size_t count, struct hello *hello,
                                  int *socket, size_t *which)
{
    CHECK(count <= listener->watched_max);
    for (;;) {
        size_t first_watched = 1 + (size_t)listener->pending_count;
        struct pollfd *polls = listener->polls;
        int64_t accepts_ns = accepts_at_ns(listener);
        bool accepts = clock_now_ns() >= accepts_ns;
        polls[0] = (struct pollfd){.fd = accepts ? listener->socket : -1, .events = POLLIN};
        for (int i = 0; i < listener->pending_count; i++)
            polls[1 + i] = (struct pollfd){.fd = listener->pending[i].socket, .events = POLLIN};
        for (size_t i = 0; i < count; i++)
            polls[first_watched + i] = (struct pollfd){.fd = watched[i], .events = POLLIN};
        int ready = poll(polls, (nfds_t)(first_watched + count),
                         stream_poll_ms(earliest(listener, accepts ? 0 : accepts_ns, deadline_ns)));
        for (size_t i = 0; ready < 0 && i < first_watched + count; i++)
            polls[i].revents = 0; /* interrupted */
        if (find_hello(listener, hello, socket))
            return LISTENER_HELLO;
        for (size_t i = 0; i < count; i++) {
            size_t at = (listener->next + i) % count;
            if (polls[first_watched + at].revents == 0)
                continue;
            *which = at;
            listener->next = at + 1;
            return LISTENER_WATCHED;
        }
        if (polls[0].revents != 0)
            accept_all(listener);
        if (deadline_ns > 0 && clock_now_ns() >= deadline_ns)
            return LISTENER_TIMEOUT;
    }
}

/* -------- the ranks of a run ------------------------------------------------------------------ */

static int first_awaited(const int *sockets, int world_size)
{
    for (int rank = 0; rank < world_size; rank++) {
        if (sockets[rank] == LISTENER_AWAITED)
            return rank;
    }
    return -1;
}

int listener_let_in(struct listener *listener, uint64_t run_id, int64_t timeout_ms, int *sockets,
                    int world_size)
{
    int64_t deadline_ns = timeout_ms > 0 ? clock_now_ns() + timeout_ms * NS_PER_MS : 0;
    struct hello hello;
    int missing, socket;
    while ((missing = first_awaited(sockets, world_size)) >= 0 &&
           listener_wait(listener, deadline_ns, NULL, 0, &hello, &socket, NULL) == LISTENER_HELLO) {
        if (hello.protocol == HELLO_PROTOCOL && hello.run_id == run_id && hello.rank >= 0 &&
            hello.rank < world_size && sockets[hello.rank] == LISTENER_AWAITED)
            sockets[hello.rank] = socket;
        else
            stream_close(&socket);
    }
    return missing;
}

int listener_join(const union address *address, uint64_t run_id, int rank, int64_t timeout_ms,
                  int *socket)
{
    struct hello hello = {.magic = HELLO_MAGIC,
                          .protocol = HELLO_PROTOCOL,
                          .rank = rank,
                          .run_id = run_id,
                          .version = PSRING_VERSION};
    if (gethostname(hello.host, sizeof hello.host - 1) != 0 && errno != ENAMETOOLONG)
        snprintf(hello.host, sizeof hello.host, "unknown");
    int error = stream_connect(address, timeout_ms, socket);
    if (error == 0)
        error = stream_send(*socket, &hello, sizeof hello, timeout_ms);
    if (error != 0)
        stream_close(socket);
    return error;
}
