/*
 * The ZeroMQ transport. A node binds one PULL socket, to which all its peers send. It connects a
 * PUSH socket to each peer that it sends to. A message is two frames: header and payload (which may
 * be empty).
 *
 * Why PUSH and PULL: a message goes one way and neither end may drop it. By default ROUTER drops
 * messages that it cannot route, and its identities would only repeat the header's sender.
 *
 * Sends are zero-copy: a payload frame refers to the caller's memory. ZeroMQ's I/O thread calls
 * on_sent when it has given the last byte to the kernel. A peer in the same process gets the frame
 * itself, and its release calls on_sent. In both cases on_sent uses only atomic counters, and an
 * eventfd if the owner sleeps until a send completes.
 *
 * Receives: a frame's memory belongs to the transport. A borrowed slot keeps the frame until
 * release; a slot with a buffer costs one memcpy. zmq_auth.c decides which processes may connect.
 */
#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/util.h"
#include "common/net/address.h"
#include "common/net/control.h"
#include "common/net/secure.h"
#include "common/net/transport/zmq_impl.h"

enum {
    RECEIVED_AT_ONCE = 256,         /* messages, before a wait checks its slots */
    RECEIVED_LEAST = 64,            /* messages of a peer that may wait in ZeroMQ */
    RECEIVED_BYTES_MOST = 64 << 20, /* their bytes, if the longest ones are no longer */
    LINGER_MS = 2000,               /* time for a close to deliver what was sent */
    CUT_LINGER_MS = 20,             /* the same for a cut: see transport_zmq_cut */
    FRAME_BYTES_LEAST = 1024,       /* a header, or a part of ZeroMQ's handshake */
    CURVE_BYTES = 64,               /* CURVE adds 33 to a frame */
};

enum status transport_zmq_status(const char *what)
{
    int error = zmq_errno();
    log_error("ZeroMQ: %s: %s", what, zmq_strerror(error));
    return error == ENOMEM ? STATUS_NO_MEMORY : STATUS_TRANSPORT;
}

/* The address of a node within its process. */
#define LOCAL_ADDRESS "inproc://node-%d"

/* A socket of the endpoint's context with the common options. NULL: ZeroMQ cannot create one. */
static void *transport_zmq_socket(struct zmq_endpoint *endpoint, int type)
{
    void *socket = zmq_socket(endpoint->shared->context, type);
    if (!socket)
        return NULL;
    /* The sender's caller bounds what is in flight. A receiver that takes nothing keeps at most
     * this number of each peer's messages, then TCP stops the peer. It counts messages, not
     * bytes. */
    size_t fit = RECEIVED_BYTES_MOST / (MESSAGE_HEADER_BYTES + endpoint->base.limits.length_max);
    int none = 0, received_most = fit < RECEIVED_LEAST ? RECEIVED_LEAST : (int)fit;
    int64_t frame_bytes_max =
        (int64_t)endpoint->base.limits.length_max + (secure_curve() ? CURVE_BYTES : 0);
    if (frame_bytes_max < FRAME_BYTES_LEAST)
        frame_bytes_max = FRAME_BYTES_LEAST;
    int ipv6 = endpoint->shared->ipv6, handshake_ms = HELLO_WAIT_MS;
    zmq_setsockopt(socket, ZMQ_IPV6, &ipv6, sizeof ipv6);
    zmq_setsockopt(socket, ZMQ_SNDHWM, &none, sizeof none);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &received_most, sizeof received_most);
    zmq_setsockopt(socket, ZMQ_HANDSHAKE_IVL, &handshake_ms, sizeof handshake_ms);
    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &frame_bytes_max, sizeof frame_bytes_max);
    return socket;
}

/* -------- sending ----------------------------------------------------------------------------- */

/* Runs on ZeroMQ's I/O thread, or, for a peer in this process, on the thread that releases the
 * message. Sequentially consistent on both sides (see sleep_for_either): either the owner sees the
 * new count before it sleeps, or this thread sees that the owner wants a wake-up. */
static void on_sent(void *data, void *hint)
{
    (void)data;
    struct zmq_peer *peer = hint;
    struct zmq_endpoint *owner = peer->owner;
    atomic_fetch_add(&peer->completed, 1);
    atomic_fetch_add(&owner->completions, 1);
    if (atomic_exchange(&owner->wants_wake, false)) {
        uint64_t one = 1;
        ssize_t written = write(owner->wake_fd, &one, sizeof one);
        (void)written; /* fails only if the counter is full, and then it is readable */
    }
}

static enum status connect_to(struct zmq_endpoint *endpoint, int node)
{
    enum status status = STATUS_OK;
    struct zmq_peer *peer = &endpoint->peers[node];
    const struct topology *topology = &endpoint->base.topology;
    char local[ZMQ_ADDRESS_BYTES];
    const char *address =
        endpoint->shared->addresses[topology_rank(topology, node)][topology_role(topology, node)];
    if (endpoint->base.peers[node].local) {
        snprintf(local, sizeof local, LOCAL_ADDRESS, node);
        address = local;
    }
    peer->push = transport_zmq_socket(endpoint, ZMQ_PUSH);
    if (!peer->push)
        TRY(transport_zmq_status("socket"));
    int ipv6 = strchr(address, '[') != NULL; /* the peer's address, not this rank's */
    zmq_setsockopt(peer->push, ZMQ_IPV6, &ipv6, sizeof ipv6);
    TRY(transport_zmq_auth_connector(&endpoint->shared->auth, peer->push));
    if (zmq_connect(peer->push, address) != 0)
        TRY(transport_zmq_status(address));
out:
    return status;
}

/* A signal to this process is no failure: after the first frame of a message the second must
 * follow. */
static enum status send_frame(struct zmq_peer *peer, zmq_msg_t *frame, int flags)
{
    int sent;
    do
        sent = zmq_msg_send(frame, peer->push, flags);
    while (sent < 0 && zmq_errno() == EINTR);
    if (sent >= 0)
        return STATUS_OK;
    enum status status = transport_zmq_status("sending");
    zmq_msg_close(frame);
    return status;
}

static enum status zmq_send_message(struct transport *transport, int node,
                                    const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                                    size_t length)
{
    struct zmq_endpoint *endpoint = endpoint_of(transport);
    struct zmq_peer *peer = &endpoint->peers[node];
    enum status status = peer->push ? STATUS_OK : connect_to(endpoint, node);
    if (status != STATUS_OK)
        return status;
    /* Both frames exist before the first is sent, because it must not stay alone. */
    zmq_msg_t first, second;
    if (zmq_msg_init_size(&first, MESSAGE_HEADER_BYTES) != 0)
        return transport_zmq_status("sending");
    memcpy(zmq_msg_data(&first), header, MESSAGE_HEADER_BYTES);
    /* An empty payload is sent as well: its frame reports that the header has gone, and tickets
     * complete in order. ZeroMQ takes a non-const pointer but only reads. */
    void *data = without_const(length ? payload : peer);
    if (zmq_msg_init_data(&second, data, length, on_sent, peer) != 0) {
        status = transport_zmq_status("sending");
        zmq_msg_close(&first);
        return status;
    }
    atomic_fetch_add(&endpoint->shared->handovers, 1);
    status = send_frame(peer, &first, ZMQ_SNDMORE);
    if (status != STATUS_OK) {
        zmq_msg_close(&second); /* calls on_sent, but nothing was sent */
        atomic_fetch_sub(&peer->completed, 1);
        return status;
    }
    return send_frame(peer, &second, 0);
}

static uint64_t zmq_completed(struct transport *transport, int node)
{
    return atomic_load(&endpoint_of(transport)->peers[node].completed);
}

/* -------- receiving --------------------------------------------------------------------------- */

static struct zmq_frame *take_frame(struct zmq_endpoint *endpoint)
{
    struct zmq_frame *frame = endpoint->free;
    if (frame) {
        endpoint->free = frame->next;
    } else if ((frame = malloc(sizeof *frame))) {
        frame->owner = endpoint;
    } else {
        log_error("ZeroMQ: no memory for a message");
        return NULL;
    }
    zmq_msg_init(&frame->message);
    return frame;
}

/* The release of a payload. */
static void free_frame(void *holder)
{
    struct zmq_frame *frame = holder;
    zmq_msg_close(&frame->message);
    frame->next = frame->owner->free;
    frame->owner->free = frame;
}

/*
 * Delivers one message whose frames have all arrived; `complete`: there were exactly two. Takes
 * `frame`. *taken: the message is of this run, not a dropped message of a stranger.
 */
static enum status deliver(struct zmq_endpoint *endpoint, zmq_msg_t *header,
                           struct zmq_frame *frame, bool complete, bool *taken)
{
    struct message message;
    enum status status =
        transport_accept(&endpoint->base, zmq_msg_data(header), zmq_msg_size(header), -1, &message);
    *taken = status != STATUS_INPUT;
    if (status == STATUS_OK && (!complete || zmq_msg_size(&frame->message) != message.length)) {
        log_error("ZeroMQ: %s sent a payload of %zu bytes, expected the %llu of its header; does "
                  "every host run the same psring?",
                  transport_node_text(&endpoint->base, (int)message.sender).text,
                  zmq_msg_size(&frame->message), (unsigned long long)message.length);
        status = STATUS_PROTOCOL;
    }
    struct payload payload = {zmq_msg_data(&frame->message), free_frame, frame};
    if (status == STATUS_OK)
        return transport_deliver(&endpoint->base, &message, payload);
    payload_release(&payload);
    return *taken ? status : STATUS_OK;
}

/* Receives a frame that has arrived, also if a signal interrupts. */
static enum status receive_frame(struct zmq_endpoint *endpoint, zmq_msg_t *frame)
{
    int got;
    do
        got = zmq_msg_recv(frame, endpoint->pull, 0);
    while (got < 0 && zmq_errno() == EINTR);
    return got >= 0 ? STATUS_OK : transport_zmq_status("receiving");
}

/*
 * Receives one message if one has arrived. With flags 0 it sleeps until one arrives, or until the
 * time-out. *received: a message had arrived. *taken: it is of this run. The frames of a message
 * arrive together, so only the first may block. Frames after the payload are dropped.
 */
static enum status receive_one(struct zmq_endpoint *endpoint, int flags, bool *received,
                               bool *taken)
{
    enum status status = STATUS_OK;
    int frames = 1;
    struct zmq_frame *frame = NULL;
    zmq_msg_t header;
    zmq_msg_init(&header);
    *taken = false;
    *received = zmq_msg_recv(&header, endpoint->pull, flags) >= 0;
    if (!*received && zmq_errno() != EAGAIN && zmq_errno() != EINTR)
        status = transport_zmq_status("receiving");
    if (!*received)
        goto out;
    atomic_load(&endpoint->shared->handovers);
    if (!(frame = take_frame(endpoint))) {
        status = STATUS_NO_MEMORY;
        goto out;
    }
    for (bool more = zmq_msg_more(&header); more; frames++) {
        TRY(receive_frame(endpoint, &frame->message));
        more = zmq_msg_more(&frame->message);
    }
    status = deliver(endpoint, &header, frame, frames == 2, taken);
    frame = NULL;
out:
    if (frame)
        free_frame(frame);
    zmq_msg_close(&header);
    return status;
}

/* Whether sends have completed since the last check. */
static bool notice_completions(struct zmq_endpoint *endpoint)
{
    uint64_t seen = endpoint->completions_seen;
    endpoint->completions_seen = atomic_load(&endpoint->completions);
    return endpoint->completions_seen != seen;
}

static enum status set_receive_timeout(struct zmq_endpoint *endpoint, int64_t wait_ns)
{
    int timeout_ms = (int)(wait_ns / NS_PER_MS);
    if (timeout_ms == endpoint->receive_timeout_ms)
        return STATUS_OK;
    if (zmq_setsockopt(endpoint->pull, ZMQ_RCVTIMEO, &timeout_ms, sizeof timeout_ms) != 0)
        return transport_zmq_status("setting a time-out");
    endpoint->receive_timeout_ms = timeout_ms;
    return STATUS_OK;
}

/* Sleeps until a message has arrived or a send has completed. */
static enum status sleep_for_either(struct zmq_endpoint *endpoint, int64_t wait_ns)
{
    enum status status = STATUS_OK;
    zmq_pollitem_t items[] = {
        {.socket = endpoint->pull, .events = ZMQ_POLLIN},
        {.fd = endpoint->wake_fd, .events = ZMQ_POLLIN},
    };
    atomic_store(&endpoint->wants_wake, true);
    if (atomic_load(&endpoint->completions) == endpoint->completions_seen &&
        zmq_poll(items, 2, (long)(wait_ns / NS_PER_MS)) < 0 && zmq_errno() != EINTR)
        status = transport_zmq_status("waiting");
    atomic_store(&endpoint->wants_wake, false);
    if (items[1].revents) {
        uint64_t wakes;
        ssize_t count = read(endpoint->wake_fd, &wakes, sizeof wakes);
        (void)count;
    }
    return status;
}

/*
 * A wait for a message sleeps in ZeroMQ's receive. That takes fewer system calls than its poll, and
 * completed sends of this rank do not end it. If ranks share cores, such wake-ups take the core
 * from a rank that has work. The next call notices those completions, which is early enough for a
 * long send to count as progress.
 */
static enum status zmq_progress(struct transport *transport, int64_t wait_ns, bool for_sends,
                                bool *moved)
{
    enum status status = STATUS_OK;
    struct zmq_endpoint *endpoint = endpoint_of(transport);
    bool received = true, taken;
    for (int i = 0; i < RECEIVED_AT_ONCE && received; i++) {
        TRY(receive_one(endpoint, ZMQ_DONTWAIT, &received, &taken));
        *moved |= taken;
    }
    /* Includes sends that completed after the caller's last check and before this call: it must
     * check again. */
    *moved |= notice_completions(endpoint);
    if (*moved || wait_ns == 0)
        return STATUS_OK;
    if (!for_sends) {
        TRY(set_receive_timeout(endpoint, wait_ns));
        return receive_one(endpoint, 0, &received, moved);
    }
    TRY(sleep_for_either(endpoint, wait_ns));
    *moved = notice_completions(endpoint);
out:
    return status;
}

static void endpoint_free(struct zmq_endpoint *endpoint)
{
    if (!endpoint)
        return;
    while (endpoint->free) {
        struct zmq_frame *next = endpoint->free->next;
        free(endpoint->free);
        endpoint->free = next;
    }
    if (endpoint->wake_fd >= 0)
        close(endpoint->wake_fd);
    free(endpoint);
}

static void shared_release(struct zmq_shared *shared)
{
    if (atomic_fetch_sub(&shared->users, 1) > 1)
        return;
    if (shared->context) {
        transport_zmq_auth_close(&shared->auth);
        while (zmq_ctx_term(shared->context) != 0 && zmq_errno() == EINTR)
            ; /* waits at most LINGER_MS for what was sent; a signal may interrupt it */
    }
    for (int role = 0; role < 2; role++)
        endpoint_free(shared->endpoints[role]);
    free(shared->addresses);
    free(shared);
}

/* ZeroMQ still delivers what was sent, for at most `linger_ms`. */
static void close_socket(void **socket, int linger_ms)
{
    if (!*socket)
        return;
    zmq_setsockopt(*socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    zmq_close(*socket);
    *socket = NULL;
}

static void close_sockets(struct zmq_endpoint *endpoint, int linger_ms)
{
    for (uint32_t node = 0; node < endpoint->base.limits.nodes; node++)
        close_socket(&endpoint->peers[node].push, linger_ms);
    close_socket(&endpoint->pull, linger_ms);
}

/* With a linger of 0, libzmq 4.3.4 may abort the process (session_base.cpp, clean_pipes): if the
 * connection breaks after it has taken a message's header and before its payload. After a failure
 * many peers cut at once, so connections do break then. */
static void transport_zmq_cut(struct transport *transport)
{
    close_sockets(endpoint_of(transport), CUT_LINGER_MS);
}

/* After a cut ZeroMQ's thread sends for CUT_LINGER_MS, then drops queued messages. It calls on_sent
 * for each. A peer inside this
 * process gets a pointer, and ZeroMQ's thread does not read such a payload. */
static bool transport_zmq_is_empty(struct transport *transport)
{
    bool empty = true;
    for (uint32_t node = 0; node < transport->limits.nodes; node++) {
        const struct transport_peer *peer = &transport->peers[node];
        empty &= peer->local || zmq_completed(transport, (int)node) >= peer->sends;
    }
    return empty;
}

static void transport_zmq_close(struct transport *transport)
{
    struct zmq_endpoint *endpoint = endpoint_of(transport);
    close_sockets(endpoint, LINGER_MS);
    transport_base_fini(transport);
    if (endpoint->shared)
        shared_release(endpoint->shared); /* frees the endpoint */
    else
        free(endpoint);
}

/* Binds to a port that the system chooses. Remote peers connect to `address`; peers in this process
 * use inproc://. */
static enum status bind_endpoint(struct zmq_endpoint *endpoint, const union address *host,
                                 char *address)
{
    char name[ADDRESS_TEXT_BYTES], text[ZMQ_ADDRESS_BYTES];
    size_t size = ZMQ_ADDRESS_BYTES;
    endpoint->pull = transport_zmq_socket(endpoint, ZMQ_PULL);
    if (!endpoint->pull)
        return transport_zmq_status("socket");
    enum status status =
        transport_zmq_auth_listener(&endpoint->shared->auth, endpoint->pull, endpoint->base.role);
    if (status != STATUS_OK)
        return status;
    snprintf(text, sizeof text, endpoint->shared->ipv6 ? "tcp://[%s]:*" : "tcp://%s:*",
             address_text(host, name));
    if (zmq_bind(endpoint->pull, text) != 0 ||
        zmq_getsockopt(endpoint->pull, ZMQ_LAST_ENDPOINT, address, &size) != 0)
        return transport_zmq_status(text);
    snprintf(text, sizeof text, LOCAL_ADDRESS, endpoint->base.node);
    return zmq_bind(endpoint->pull, text) == 0 ? STATUS_OK : transport_zmq_status(text);
}

static enum status share(struct zmq_endpoint *endpoint, struct zmq_shared *shared)
{
    endpoint->shared = shared;
    shared->endpoints[endpoint->base.role] = endpoint;
    atomic_fetch_add(&shared->users, 1);
    endpoint->receive_timeout_ms = -1; /* ZeroMQ's default: none */
    for (uint32_t node = 0; node < endpoint->base.limits.nodes; node++)
        endpoint->peers[node].owner = endpoint;
    endpoint->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (endpoint->wake_fd >= 0)
        return STATUS_OK;
    return FAIL(STATUS_NO_MEMORY, "ZeroMQ: cannot open an endpoint: %s", strerror(errno));
}

/* Not for libpsring, which does not change the program's allocator.
 *
 * ZeroMQ allocates memory for each message that it receives. By default glibc maps new memory for
 * every long message, and each of its pages faults: on loopback that costs a quarter of the
 * throughput. */
static void keep_freed_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* glibc's largest */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

static enum status transport_zmq_open(struct transport *endpoint[2], struct world *world,
                                      const struct transport_options *options)
{
    enum status status = STATUS_OK;
    union address host;
    char mine[2][ZMQ_ADDRESS_BYTES] = {{0}};
    if (!options->embedded)
        keep_freed_memory();
    struct zmq_shared *shared = calloc(1, sizeof *shared);
    if (!shared)
        return FAIL(STATUS_NO_MEMORY, "ZeroMQ: out of memory");
    shared->users = 1; /* this function */
    for (int role = 0; role < 2; role++) {
        if (endpoint[role])
            TRY(share(endpoint_of(endpoint[role]), shared));
    }
    shared->context = zmq_ctx_new();
    shared->addresses = calloc((size_t)world->size, sizeof *shared->addresses);
    if (!shared->context || !shared->addresses)
        TRY(FAIL(STATUS_NO_MEMORY, "ZeroMQ: no memory for the addresses of %d ranks", world->size));
    zmq_ctx_set(shared->context, ZMQ_MAX_SOCKETS, 2 * topology_nodes(&options->topology) + 64);
    TRY(transport_zmq_auth_open(&shared->auth, shared->context, world->run_id));
    TRY(world_choose_address(world, options->subnet, &host));
    shared->ipv6 = host.any.sa_family == AF_INET6;
    for (int role = 0; role < 2; role++) {
        if (endpoint[role])
            TRY(bind_endpoint(endpoint_of(endpoint[role]), &host, mine[role]));
    }
    TRY(transport_zmq_auth_start(&shared->auth));
    TRY(world_gather(world, NULL, mine, sizeof mine, shared->addresses));
out:
    shared_release(shared);
    return status;
}

const struct transport_ops transport_zmq_ops = {
    .name = "zmq",
    .summary = "ZeroMQ over TCP",
    /* The context has 5, its check of passwords 1. A peer has a connection in each direction, and
     * the mailbox of a socket. */
    .descriptors = {.process = 6, .endpoint = 6, .peer = 3},
    .endpoint_bytes = sizeof(struct zmq_endpoint),
    .peer_bytes = sizeof(struct zmq_peer),
    .open = transport_zmq_open,
    .send = zmq_send_message,
    .completed = zmq_completed,
    .progress = zmq_progress,
    .close = transport_zmq_close,
    .is_empty = transport_zmq_is_empty,
    .cut = transport_zmq_cut,
};
