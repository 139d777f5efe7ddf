/*
 * The TCP transport: plain sockets (with TLS after secure_open), and no thread but the caller's.
 * One connection joins two nodes and carries messages in both directions: header, payload, header,
 * payload. Two nodes of one process have a socketpair(2) instead.
 *
 * There is no thread between the algorithm and the kernel. A send gives header and payload to the
 * kernel, several messages in one call if possible. It keeps a pointer to the bytes that the kernel
 * did not take, because the payload is the caller's.
 *
 * A receive reads only messages that slots are posted for. The payload goes from the kernel to the
 * slot's buffer, or into one of a few buffers that stay in the processor's cache. An unexpected
 * message stays in the kernel, whose window then stops the sender. It costs no memory here.
 *
 * A wait retries for SPIN_NS if every waiting thread can have a core. After SPIN_ALONE_NS it offers
 * its core to other threads. A message that arrives in this time costs no sleep and no wake-up.
 * After SPIN_NS the wait sleeps in poll(2), or in epoll(7) if more than FEW peers are of interest.
 *
 * Connections: tcp_connect.c.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/util.h"
#include "common/net/secure.h"
#include "common/net/transport/tcp_impl.h"

/*
 * Long messages are held until the next wait, or until they have HELD_BYTES. The kernel then gets
 * them together, and makes fewer and longer packets. Shorter messages are sent at once.
 *
 * Held messages leave in the order in which the caller began to send to their peers. If every rank
 * sends to all others and starts with its neighbour, every link then receives from one rank at a
 * time. In the order of ranks, all ranks would send to rank 0 first. Its link would be the only one
 * in use, and the last rank's link would be late for as many bytes (halving.c).
 */
enum { HELD_BYTES = 128 << 10, HELD_LENGTH_LEAST = 16 << 10 };

/* The limit for one read of a peer, unless a message is longer: so much stays in the cache. */
enum { READ_BYTES = 128 << 10 };

enum { SENT_AT_ONCE = 8, BUFFER_ALIGNMENT = 64 };

enum { FEW = 4, EVENTS_AT_ONCE = 64, MISSED_MS = 50 /* between looks at the clock */ };

/* The time that a wait retries, and the first part of it, in which it keeps its core. The awaited
 * rank may be on the same core if other programs keep the other cores busy. Two ranks on one core
 * took 77 us for 4 bytes without the second part, and 37 with it. Without the first part it is 26,
 * but 8.3 instead of 7.9 on separate cores. */
#define SPIN_NS (50 * NS_PER_MS / 1000)
#define SPIN_ALONE_NS (10 * NS_PER_MS / 1000)

/* Time for a watchdog to name the reason why a connection has closed. */
#define LOST_GRACE_NS (2 * NS_PER_S)

/* The connection is lost: no more bytes leave, and only those already here can be read. A wait for
 * this peer reports it. */
static void lose(struct tcp_peer *peer, int error)
{
    peer->readable = peer->hung_up = true;
    if (peer->lost_ns != 0)
        return;
    peer->error = error;
    peer->lost_ns = clock_now_ns();
}

/* -------- sending ----------------------------------------------------------------------------- */

/* The remainder of a message after its first `sent` bytes. Returns the number of pieces. */
static int pieces_of(const struct tcp_send *send, size_t sent, struct iovec *pieces)
{
    uint8_t *header = without_const(send->header), *payload = without_const(send->payload);
    size_t of_payload = sent > MESSAGE_HEADER_BYTES ? sent - MESSAGE_HEADER_BYTES : 0;
    int count = 0;
    if (sent < MESSAGE_HEADER_BYTES)
        pieces[count++] = (struct iovec){header + sent, MESSAGE_HEADER_BYTES - sent};
    if (send->length > of_payload)
        pieces[count++] = (struct iovec){payload + of_payload, send->length - of_payload};
    return count;
}

/* The bytes that the kernel has taken. 0: none now, or the connection is lost. */
static size_t send_pieces(struct tcp_peer *peer, struct iovec *pieces, int count)
{
    ssize_t sent;
    do
        sent = secure_send(peer->fd, pieces, count);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return (size_t)sent;
    peer->writable = false;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        lose(peer, errno);
    return 0;
}

/* Sends the queue. *completed: the last byte of a message has gone. */
static void flush(struct tcp_peer *peer, bool *moved, bool *completed)
{
    peer->held_bytes = 0;
    while (peer->queue.count > 0 && peer->lost_ns == 0) {
        struct iovec pieces[2 * SENT_AT_ONCE];
        size_t wanted = 0, messages = size_smaller(peer->queue.count, SENT_AT_ONCE);
        int count = 0;
        for (size_t i = 0; i < messages; i++) {
            const struct tcp_send *send = fifo_at(&peer->queue, sizeof *send, i);
            size_t before = i == 0 ? peer->first_sent : 0;
            count += pieces_of(send, before, &pieces[count]);
            wanted += MESSAGE_HEADER_BYTES + send->length - before;
        }
        size_t sent = send_pieces(peer, pieces, count);
        bool all = sent == wanted;
        *moved |= sent > 0;
        for (sent += peer->first_sent; peer->queue.count > 0; fifo_pop(&peer->queue)) {
            const struct tcp_send *first = fifo_at(&peer->queue, sizeof *first, 0);
            if (sent < MESSAGE_HEADER_BYTES + first->length)
                break;
            sent -= MESSAGE_HEADER_BYTES + first->length;
            peer->completed++;
            *completed = true;
        }
        peer->first_sent = sent;
        if (!all)
            return;
    }
}

static void hold(struct tcp_endpoint *endpoint, struct tcp_peer *peer)
{
    if (peer->is_held)
        return;
    peer->is_held = true;
    peer->next_held = NULL;
    *(endpoint->first_held ? &endpoint->last_held->next_held : &endpoint->first_held) = peer;
    endpoint->last_held = peer;
}

/* Sends what is held, peer after peer. */
static void flush_held(struct tcp_endpoint *endpoint, bool *moved, bool *completed)
{
    for (struct tcp_peer *peer; (peer = endpoint->first_held);) {
        endpoint->first_held = peer->next_held;
        peer->is_held = false;
        if (peer->held_bytes > 0)
            flush(peer, moved, completed);
    }
}

/* Sends a message, the part that the kernel takes, or nothing yet. The remainder is queued. */
static enum status tcp_send(struct transport *transport, int node,
                            const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                            size_t length)
{
    struct tcp_endpoint *endpoint = endpoint_of(transport);
    struct tcp_peer *peer = &endpoint->peers[node];
    bool ignored = false;
    CHECK(peer->fd >= 0);
    struct tcp_send *send = fifo_push(&peer->queue, sizeof *send);
    if (!send)
        return FAIL(STATUS_NO_MEMORY, "tcp: no memory for %zu messages to be sent",
                    peer->queue.count);
    memcpy(send->header, header, MESSAGE_HEADER_BYTES);
    send->payload = payload;
    send->length = length;
    peer->held_bytes += MESSAGE_HEADER_BYTES + length;
    if (length < HELD_LENGTH_LEAST || peer->held_bytes >= HELD_BYTES)
        flush(peer, &ignored, &ignored);
    else
        hold(endpoint, peer);
    return STATUS_OK;
}

static uint64_t tcp_completed(struct transport *transport, int node)
{
    return endpoint_of(transport)->peers[node].completed;
}

/* -------- memory for borrowed payloads -------------------------------------------------------- */

static void give_back(void *holder)
{
    struct tcp_buffer *buffer = holder;
    buffer->next = buffer->owner->free;
    buffer->owner->free = buffer;
}

/* The last returned buffer that is long enough, or a new one. */
static struct tcp_buffer *take_buffer(struct tcp_endpoint *endpoint, size_t size)
{
    struct tcp_buffer **link = &endpoint->free, *buffer;
    while (*link && (*link)->size < size)
        link = &(*link)->next;
    buffer = *link;
    if (buffer) {
        *link = buffer->next;
        return buffer;
    }
    size = (size / BUFFER_ALIGNMENT + 1) * BUFFER_ALIGNMENT;
    buffer = malloc(sizeof *buffer);
    uint8_t *data = aligned_alloc(BUFFER_ALIGNMENT, size);
    if (!buffer || !data) {
        log_error("tcp: no memory for a message of %zu bytes", size);
        free(buffer);
        free(data);
        return NULL;
    }
    *buffer = (struct tcp_buffer){.owner = endpoint, .size = size, .data = data};
    return buffer;
}

/* Makes sure that the pool has a buffer of that size. */
static enum status tcp_slot_init(struct transport *transport, struct transport_slot *slot)
{
    struct tcp_buffer *buffer = take_buffer(endpoint_of(transport), slot->capacity);
    if (!buffer)
        return STATUS_NO_MEMORY;
    give_back(buffer);
    return STATUS_OK;
}

/* -------- receiving --------------------------------------------------------------------------- */

static size_t input_bytes(const struct tcp_peer *peer)
{
    return peer->input_to - peer->input_from;
}

/* Reads the remainder of a payload to peer->into, and the bytes after it to the input. All earlier
 * bytes of the input have been used. *all: no more bytes are there now. */
static void receive(struct tcp_peer *peer, bool *moved, bool *all)
{
    bool payload = peer->reading == TCP_PAYLOAD && peer->slot;
    size_t have = input_bytes(peer);
    memmove(peer->input, peer->input + peer->input_from, have);
    peer->input_from = 0;
    peer->input_to = have;
    size_t left = payload ? peer->left : 0;
    struct iovec pieces[2] = {{peer->into, left}, {peer->input + have, sizeof peer->input - have}};
    ssize_t got;
    do
        got = secure_receive(peer->fd, payload ? pieces : pieces + 1, payload ? 2 : 1);
    while (got < 0 && errno == EINTR);
    *all = got < (ssize_t)(left + sizeof peer->input - have) &&
           !(secure_is_on && secure_has_input(peer->fd)); /* an error follows the bytes */
    peer->readable = !*all || peer->hung_up;
    if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
            lose(peer, got == 0 ? 0 : errno);
        return;
    }
    *moved = true;
    size_t of_payload = size_smaller((size_t)got, left);
    if (payload) {
        peer->into += of_payload;
        peer->left -= of_payload;
    }
    peer->input_to += (size_t)got - of_payload;
}

/* Takes the payload's bytes from the input. */
static void use_input(struct tcp_peer *peer)
{
    size_t bytes = size_smaller(input_bytes(peer), peer->left);
    if (peer->slot && bytes > 0) {
        memcpy(peer->into, peer->input + peer->input_from, bytes);
        peer->into += bytes;
    }
    peer->input_from += bytes;
    peer->left -= bytes;
}

/* Whether the input has all that take_header needs: a header, and the report of a failed rank. */
static bool has_header(const struct tcp_peer *peer)
{
    size_t have = input_bytes(peer), needed = MESSAGE_HEADER_BYTES;
    if (have < needed)
        return false;
    if (peer->input[peer->input_from + MESSAGE_KIND_AT] == MESSAGE_FAILED)
        needed += TRANSPORT_WORDS_BYTES;
    return have >= needed;
}

/* The input has a header: decodes it. A bad header stays there, because the next message cannot be
 * found any more. */
static enum status take_header(struct tcp_endpoint *endpoint, struct tcp_peer *peer)
{
    enum status status = transport_accept(&endpoint->base, peer->input + peer->input_from,
                                          MESSAGE_HEADER_BYTES, peer->node, &peer->message);
    if (status != STATUS_OK)
        return status;
    peer->input_from += MESSAGE_HEADER_BYTES;
    if (transport_comes_without_slot(&peer->message)) {
        const uint8_t *payload = peer->input + peer->input_from;
        peer->input_from += (size_t)peer->message.length;
        return transport_deliver(&endpoint->base, &peer->message,
                                 (struct payload){.data = payload});
    }
    peer->reading = TCP_PARKED;
    peer->said_bye = peer->message.kind == MESSAGE_BYE;
    return STATUS_OK;
}

/* Finds a slot for the payload, and memory for it. */
static enum status find_slot(struct tcp_endpoint *endpoint, struct tcp_peer *peer)
{
    struct transport_slot *slot = endpoint->base.peers[peer->node].first;
    if (!slot)
        return STATUS_OK;
    enum status status = transport_claim(&endpoint->base, slot, &peer->message);
    if (status != STATUS_OK)
        return status;
    peer->into = slot->into;
    if (!slot->into) {
        struct tcp_buffer *buffer = take_buffer(endpoint, slot->capacity);
        if (!buffer)
            return STATUS_NO_MEMORY;
        slot->held = (struct payload){buffer->data, give_back, buffer};
        peer->into = buffer->data;
    }
    peer->reading = TCP_PAYLOAD;
    peer->slot = slot;
    peer->left = (size_t)peer->message.length;
    return STATUS_OK;
}

static void finish(struct tcp_endpoint *endpoint, struct tcp_peer *peer, bool *completed)
{
    if (peer->slot)
        transport_complete(&endpoint->base, peer->slot);
    *completed |= peer->slot != NULL;
    peer->reading = TCP_HEADER;
    peer->slot = NULL;
}

/* Reads until messages with posted slots are complete, or there are no more bytes. */
static enum status read_peer(struct tcp_endpoint *endpoint, struct tcp_peer *peer, bool *moved,
                             bool *completed)
{
    enum status status = STATUS_OK;
    size_t taken = 0;
    for (bool all = false;;) {
        while (peer->reading == TCP_HEADER && has_header(peer))
            TRY(take_header(endpoint, peer));
        if (peer->reading == TCP_PARKED) {
            TRY(find_slot(endpoint, peer));
            if (peer->reading == TCP_PARKED)
                break;
        }
        if (peer->reading == TCP_PAYLOAD) {
            use_input(peer);
            if (peer->left == 0) {
                *moved = true;
                finish(endpoint, peer, completed);
                taken += (size_t)peer->message.length;
                /* only a complete message ends this read */
                if ((*completed && taken >= READ_BYTES) || !endpoint->base.peers[peer->node].first)
                    break;
                continue;
            }
        }
        if (all)
            break;
        receive(peer, moved, &all);
    }
out:
    return status;
}

/* Embedded: reads what a peer has sent before it closed its connection, and drops messages without
 * a posted slot. Returns the error of MESSAGE_FAILED, or OK if the peer has sent none. */
static enum status hear_last_words(struct tcp_endpoint *endpoint, struct tcp_peer *peer)
{
    enum status status;
    bool moved, ignored = false;
    do {
        moved = false;
        if (peer->reading == TCP_PARKED) { /* no slot: dropped */
            peer->reading = TCP_PAYLOAD;
            peer->left = (size_t)peer->message.length;
        }
        status = read_peer(endpoint, peer, &moved, &ignored);
    } while (status == STATUS_OK && (moved || peer->reading == TCP_PARKED));
    return status;
}

/* If the slot is in the middle of its payload, the remaining part is dropped. */
static void tcp_slot_fini(struct transport *transport, struct transport_slot *slot)
{
    struct tcp_peer *peer = &endpoint_of(transport)->peers[slot->peer];
    if (peer->slot == slot)
        peer->slot = NULL;
}

/* -------- peers of interest ------------------------------------------------------------------- */

static bool wants_read(const struct tcp_endpoint *endpoint, const struct tcp_peer *peer)
{
    return peer->reading == TCP_PAYLOAD || endpoint->base.peers[peer->node].first;
}

/* The peer has closed its connection, and bytes must still be sent or received. */
static bool is_missed(const struct tcp_endpoint *endpoint, const struct tcp_peer *peer)
{
    return peer->lost_ns != 0 &&
           (peer->queue.count > 0 || (wants_read(endpoint, peer) && !peer->said_bye));
}

/* The peers to send to or to read from. */
struct interest {
    struct tcp_peer *few[FEW];
    struct pollfd polls[FEW];
    int count;
    bool many;   /* more than FEW: any of the endpoint's peers */
    bool missed; /* is_missed is true for one of them */
};

static void find_interest(struct tcp_endpoint *endpoint, struct interest *interest)
{
    interest->count = 0;
    interest->many = interest->missed = false;
    for (uint32_t node = 0; node < endpoint->base.limits.nodes; node++) {
        struct tcp_peer *peer = &endpoint->peers[node];
        short events = (short)((wants_read(endpoint, peer) ? POLLIN : 0) |
                               (peer->queue.count > 0 ? POLLOUT : 0));
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

/* With few peers it tries each; with many only those that epoll has reported. */
static enum status move_peer(struct tcp_endpoint *endpoint, struct tcp_peer *peer, bool try,
                             bool for_sends, bool *moved, bool *done)
{
    bool sent = false;
    if (peer->queue.count > 0 && (try || peer->writable))
        flush(peer, moved, &sent);
    *done |= sent && for_sends;
    bool buffered = peer->input_to > peer->input_from || peer->reading != TCP_HEADER;
    if (!wants_read(endpoint, peer) || !(try || peer->readable || buffered))
        return STATUS_OK;
    return read_peer(endpoint, peer, moved, done);
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

static enum status has_closed(struct tcp_endpoint *endpoint, struct tcp_peer *peer)
{
    enum status status = STATUS_OK;
    if (endpoint->base.embedded)
        TRY(hear_last_words(endpoint, peer));
    log_error("%s has closed its connection%s%s",
              transport_node_text(&endpoint->base, peer->node).text, peer->error ? ": " : "",
              peer->error ? strerror(peer->error) : "");
    status = STATUS_TRANSPORT;
out:
    return status;
}

static enum status check_missed(struct tcp_endpoint *endpoint)
{
    int64_t grace_ns = endpoint->base.world->activity ? LOST_GRACE_NS : 0;
    int64_t now_ns = clock_now_ns();
    for (uint32_t node = 0; node < endpoint->base.limits.nodes; node++) {
        struct tcp_peer *peer = &endpoint->peers[node];
        if (is_missed(endpoint, peer) && now_ns - peer->lost_ns >= grace_ns)
            return has_closed(endpoint, peer);
    }
    return STATUS_OK;
}

/* -------- checking the peers (embedded) ------------------------------------------------------- */

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
        TRY(read_peer(endpoint, peer, &ignored, &ignored));
        if (peer->reading == TCP_PARKED)
            TRY(transport_check_unread(transport, (int)node, &peer->message.call));
        if (closed)
            TRY(transport->ended ? hear_last_words(endpoint, peer) : has_closed(endpoint, peer));
    }
out:
    return status;
}

/* Sends the queues as far as the peers accept them. */
static bool tcp_is_empty(struct transport *transport)
{
    bool empty = true, ignored = false;
    for (uint32_t node = 0; node < transport->limits.nodes; node++) {
        struct tcp_peer *peer = &endpoint_of(transport)->peers[node];
        if (peer->fd >= 0)
            flush(peer, &ignored, &ignored);
        empty &= peer->fd < 0 || peer->queue.count == 0 || peer->lost_ns != 0;
    }
    return empty;
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

/* Sleeps until something can move, in whole milliseconds; 0: only checks. */
static enum status sleep_for(struct tcp_endpoint *endpoint, struct interest *interest, int wait_ms)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int error = interest->many ? watch_all(endpoint) : 0;
    int count = error            ? -1
                : interest->many ? epoll_wait(endpoint->epoll, events, EVENTS_AT_ONCE, wait_ms)
                                 : poll(interest->polls, (nfds_t)interest->count, wait_ms);
    if (count < 0 && (error || errno != EINTR))
        return FAIL(STATUS_TRANSPORT, "tcp: waiting: %s", strerror(error ? error : errno));
    for (int i = 0; interest->many && i < count; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): epoll_wait has filled it */
        struct tcp_peer *peer = events[i].data.ptr;
        uint32_t happened = events[i].events;
        peer->hung_up |= (happened & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
        peer->readable |= peer->hung_up || (happened & EPOLLIN);
        peer->writable |= peer->hung_up || (happened & EPOLLOUT);
    }
    return STATUS_OK;
}

static enum status tcp_progress(struct transport *transport, int64_t wait_ns, bool for_sends,
                                bool *moved)
{
    enum status status = STATUS_OK;
    struct tcp_endpoint *endpoint = endpoint_of(transport);
    struct interest interest;
    bool done = false, slept = wait_ns <= 0, spins = !transport->crowded;
    bool sent = false;
    int64_t spin_until_ns = 0;
    flush_held(endpoint, moved, &sent);
    done = sent && for_sends;
    find_interest(endpoint, &interest);
    for (;;) {
        TRY(move_all(endpoint, &interest, for_sends, moved, &done));
        if (done || slept)
            break;
        int64_t now_ns = spins ? clock_now_ns() : 0;
        if (spin_until_ns == 0)
            spin_until_ns = now_ns + SPIN_NS;
        slept = !spins || now_ns >= spin_until_ns;
        if (!slept && now_ns >= spin_until_ns - SPIN_NS + SPIN_ALONE_NS)
            sched_yield();
        int64_t wait_ms =
            slept ? (interest.missed ? MISSED_MS : (wait_ns + NS_PER_MS - 1) / NS_PER_MS) : 0;
        if (interest.many || slept)
            TRY(sleep_for(endpoint, &interest, (int)wait_ms));
    }
    if (interest.missed && !done)
        status = check_missed(endpoint);
out:
    return status;
}

const struct transport_ops transport_tcp_ops = {
    .name = "tcp",
    .summary = "plain TCP sockets",
    .descriptors = {.endpoint = 2, .peer = 1 /* a connection */},
    .answers_in_place = true,
    .endpoint_bytes = sizeof(struct tcp_endpoint),
    .peer_bytes = sizeof(struct tcp_peer),
    .open = transport_tcp_open,
    .send = tcp_send,
    .completed = tcp_completed,
    .progress = tcp_progress,
    .close = transport_tcp_close,
    .slot_init = tcp_slot_init,
    .slot_fini = tcp_slot_fini,
    .look = tcp_look,
    .is_empty = tcp_is_empty,
    .cut = transport_tcp_cut,
    .close_in_child = transport_tcp_close_in_child,
};
