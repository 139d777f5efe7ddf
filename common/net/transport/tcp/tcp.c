/*
 * The TCP transport: plain sockets, and no thread but the caller's. One connection joins two nodes
 * and carries messages both ways: header, payload, header, payload. Two nodes of one process have a
 * socketpair(2) in its place.
 *
 * There is no thread between the algorithm and the kernel. A send hands header and payload to the
 * kernel, several messages in one call where there are several, and remembers what it did not take
 * (by pointer: the payload is the caller's). A receive reads no further than what slots are posted
 * for: the payload goes from the kernel to where the slot wants it, or into one of a few buffers
 * that stay in the processor's cache; what has come early stays with the kernel, whose window then
 * stops the sender. So a peer that sends what nobody here expects costs no memory.
 *
 * Waiting: at first for SPIN_NS by trying again and again, where every thread that waits so can
 * have a core, and soon offering it to others; a message that comes meanwhile costs no sleep and no
 * wake-up. Then in poll(2), or in epoll(7) where more than a FEW peers are of interest. What moves:
 * stream.c. Connections: open.c.
 */
#include "common/net/transport/tcp/tcp_impl.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/base/status.h"
#include "common/base/clock.h"

enum { FEW = 4, EVENTS_AT_ONCE = 64, MISSED_MS = 50 /* between looks at the clock */ };

/* How long a wait tries, and how much of that without offering its core: the rank that it waits for
 * may have been put on the same one, because something else runs on the others. */
#define SPIN_NS (50 * NS_PER_MS / 1000)
#define SPIN_ALONE_NS (10 * NS_PER_MS / 1000)

/* How long after a connection has closed its peer's end may have another name: where a watchdog
 * watches the world, it knows better what has happened. */
#define LOST_GRACE_NS (2 * NS_PER_S)

static uint64_t tcp_completed(struct transport *transport, int node)
{
    return endpoint_of(transport)->peers[node].completed;
}

/* -------- who is of interest ------------------------------------------------------------------ */

static bool wants_read(const struct tcp_endpoint *endpoint, const struct tcp_peer *peer)
{
    return peer->reading == TCP_PAYLOAD || endpoint->base.peers[peer->node].first;
}

/* It has closed its connection, and something is still to go or come. */
static bool is_missed(const struct tcp_endpoint *endpoint, const struct tcp_peer *peer)
{
    return peer->lost_ns != 0 &&
           (peer->queued > 0 || (wants_read(endpoint, peer) && !peer->said_bye));
}

/* The peers that something is to be sent to or read from. */
struct interest {
    struct tcp_peer *few[FEW];
    struct pollfd polls[FEW];
    int count;
    bool many;   /* more than a few: any of the endpoint's */
    bool missed; /* one of them is */
};

static void find_interest(struct tcp_endpoint *endpoint, struct interest *interest)
{
    interest->count = 0;
    interest->many = interest->missed = false;
    for (uint32_t node = 0; node < endpoint->base.limits.nodes; node++) {
        struct tcp_peer *peer = &endpoint->peers[node];
        short events =
            (short)((wants_read(endpoint, peer) ? POLLIN : 0) | (peer->queued > 0 ? POLLOUT : 0));
        if (events == 0 || peer->fd < 0)
            continue;
        interest->missed |= is_missed(endpoint, peer);
        if (interest->count == FEW) {
            interest->many = true;
            continue;
        }
        interest->few[interest->count] = peer;
        interest->polls[interest->count++] =
            (struct pollfd){.fd = peer->lost_ns ? -1 : peer->fd, .events = events};
    }
}

/* -------- moving ------------------------------------------------------------------------------ */

/* With few peers we try; with many only where epoll has said that it makes sense. */
static enum status move_peer(struct tcp_endpoint *endpoint, struct tcp_peer *peer, bool try,
                             bool for_sends, bool *moved, bool *done)
{
    bool sent = false;
    if (peer->queued > 0 && (try || peer->writable))
        transport_tcp_flush(peer, moved, &sent);
    *done |= sent && for_sends;
    bool buffered = peer->input_to > peer->input_from || peer->reading != TCP_HEADER;
    if (!wants_read(endpoint, peer) || !(try || peer->readable || buffered))
        return STATUS_OK;
    return transport_tcp_read(endpoint, peer, moved, done);
}

static enum status move_all(struct tcp_endpoint *endpoint, const struct interest *interest,
                            bool for_sends, bool *moved, bool *done)
{
    enum status status = STATUS_OK;
    if (!interest->many) {
        for (int i = 0; i < interest->count && status == STATUS_OK; i++)
            status = move_peer(endpoint, interest->few[i], true, for_sends, moved, done);
        return status;
    }
    for (uint32_t node = 0; node < endpoint->base.limits.nodes && status == STATUS_OK; node++) {
        if (endpoint->peers[node].fd >= 0)
            status = move_peer(endpoint, &endpoint->peers[node], false, for_sends, moved, done);
    }
    return status;
}

static enum status has_closed(const struct tcp_endpoint *endpoint, const struct tcp_peer *peer)
{
    char name[64];
    log_error("%s has closed its connection%s%s",
              transport_describe(&endpoint->base, peer->node, name, sizeof name),
              peer->error ? ": " : "", peer->error ? strerror(peer->error) : "");
    return STATUS_TRANSPORT;
}

static enum status check_missed(struct tcp_endpoint *endpoint)
{
    enum status status = STATUS_OK;
    int64_t grace_ns = endpoint->base.world->activity ? LOST_GRACE_NS : 0;
    int64_t now_ns = clock_now_ns();
    for (uint32_t node = 0; node < endpoint->base.limits.nodes; node++) {
        struct tcp_peer *peer = &endpoint->peers[node];
        if (!is_missed(endpoint, peer) || now_ns - peer->lost_ns < grace_ns)
            continue;
        if (endpoint->base.embedded)
            TRY(transport_tcp_hear_last_words(endpoint, peer));
        status = has_closed(endpoint, peer);
        goto out;
    }
out:
    return status;
}

/* -------- looking around (embedded) ----------------------------------------------------------- */

static bool is_closed(const struct tcp_peer *peer)
{
    struct pollfd end = {.fd = peer->fd, .events = POLLRDHUP};
    return peer->lost_ns != 0 || poll(&end, 1, 0) > 0;
}

static enum status tcp_look(struct transport *transport)
{
    enum status status = STATUS_OK;
    struct tcp_endpoint *endpoint = endpoint_of(transport);
    for (uint32_t node = 0; node < transport->limits.nodes; node++) {
        struct tcp_peer *peer = &endpoint->peers[node];
        bool ignored = false;
        if (peer->fd < 0 || wants_read(endpoint, peer))
            continue;
        bool closed = is_closed(peer);
        TRY(transport_tcp_read(endpoint, peer, &ignored, &ignored));
        if (peer->reading == TCP_PARKED)
            TRY(transport_check_unread(transport, (int)node, &peer->message.call));
        if (!closed)
            continue;
        TRY(transport_tcp_hear_last_words(endpoint, peer));
        if (transport->ended)
            continue;
        status = has_closed(endpoint, peer);
        goto out;
    }
out:
    return status;
}

/* Sends the queues as far as the peers take them. */
static void tcp_linger(struct transport *transport, int64_t deadline_ns)
{
    struct tcp_endpoint *endpoint = endpoint_of(transport);
    for (bool queued = true; queued;) {
        queued = false;
        for (uint32_t node = 0; node < transport->limits.nodes; node++) {
            struct tcp_peer *peer = &endpoint->peers[node];
            bool ignored = false;
            if (peer->fd >= 0)
                transport_tcp_flush(peer, &ignored, &ignored);
            queued |= peer->queued > 0 && peer->lost_ns == 0;
        }
        if (clock_now_ns() >= deadline_ns)
            return;
        if (queued)
            clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
    }
}

/* -------- waiting ----------------------------------------------------------------------------- */

/* 0 or an errno value. */
static int watch_all(struct tcp_endpoint *endpoint)
{
    if (endpoint->epoll < 0)
        endpoint->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (uint32_t node = 0; node < endpoint->base.limits.nodes && endpoint->epoll >= 0; node++) {
        struct tcp_peer *peer = &endpoint->peers[node];
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                    .data.ptr = peer};
        if (peer->fd < 0 || peer->watched)
            continue;
        if (epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, peer->fd, &event) != 0)
            return errno;
        peer->watched = true;
    }
    return endpoint->epoll < 0 ? errno : 0;
}

/* Sleeps until something can be moved, in whole milliseconds; with 0 only looks. */
static enum status sleep_many(struct tcp_endpoint *endpoint, int wait_ms)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int error = watch_all(endpoint);
    int count = error ? -1 : epoll_wait(endpoint->epoll, events, EVENTS_AT_ONCE, wait_ms);
    if (count < 0 && (error || errno != EINTR)) {
        log_error("tcp: waiting: %s", strerror(error ? error : errno));
        return STATUS_TRANSPORT;
    }
    for (int i = 0; i < count; i++) {
        struct tcp_peer *peer = events[i].data.ptr;
        uint32_t happened = events[i].events;
        peer->hung_up |= (happened & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
        peer->readable |= peer->hung_up || (happened & EPOLLIN);
        peer->writable |= peer->hung_up || (happened & EPOLLOUT);
    }
    return STATUS_OK;
}

static enum status sleep_few(struct interest *interest, int wait_ms)
{
    if (poll(interest->polls, (nfds_t)interest->count, wait_ms) >= 0 || errno == EINTR)
        return STATUS_OK;
    log_error("tcp: waiting: %s", strerror(errno));
    return STATUS_TRANSPORT;
}

static enum status tcp_progress(struct transport *transport, int64_t wait_ns, bool for_sends,
                                bool *moved)
{
    enum status status = STATUS_OK;
    struct tcp_endpoint *endpoint = endpoint_of(transport);
    struct interest interest;
    bool done = false, slept = wait_ns <= 0;
    int64_t spin_until_ns = 0;
    *moved = false;
    find_interest(endpoint, &interest);
    for (;;) {
        TRY(move_all(endpoint, &interest, for_sends, moved, &done));
        if (done || slept)
            break;
        int64_t now_ns = endpoint->spins ? clock_now_ns() : 0;
        if (spin_until_ns == 0)
            spin_until_ns = now_ns + SPIN_NS;
        slept = !endpoint->spins || now_ns >= spin_until_ns;
        if (!slept && now_ns >= spin_until_ns - SPIN_NS + SPIN_ALONE_NS)
            sched_yield();
        int64_t wait_ms =
            slept ? (interest.missed ? MISSED_MS : (wait_ns + NS_PER_MS - 1) / NS_PER_MS) : 0;
        if (interest.many)
            TRY(sleep_many(endpoint, (int)wait_ms));
        else if (slept)
            TRY(sleep_few(&interest, (int)wait_ms));
    }
    if (interest.missed && !done)
        status = check_missed(endpoint);
out:
    return status;
}

const struct transport_ops transport_tcp_ops = {
    .send = transport_tcp_send,
    .completed = tcp_completed,
    .slot_init = transport_tcp_slot_init,
    .progress = tcp_progress,
    .abandon = transport_tcp_abandon,
    .look = tcp_look,
    .linger = tcp_linger,
    .close_in_child = transport_tcp_close_in_child,
    .cut = transport_tcp_cut,
    .close = transport_tcp_close,
};
