/*
 * Opening and closing the endpoints of the ZeroMQ transport: sockets, addresses, the context. What
 * moves over them: zmq.c.
 */
#include "common/net/transport/zmq/zmq_impl.h"

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

#include "common/base/status.h"
#include "common/base/clock.h"
#include "common/net/address.h"

enum {
    LINGER_MS = 2000,        /* how long a close may spend on delivering what was sent */
    FRAME_BYTES_LEAST = 256, /* a header, or a part of ZeroMQ's handshake */
};

void *transport_zmq_socket(struct zmq_endpoint *endpoint, int type)
{
    void *socket = zmq_socket(endpoint->shared->context, type);
    if (!socket)
        return NULL;
    /* No high-water mark: it counts messages, not bytes; what is in flight is bounded above us, and
     * only ranks of this run can send (auth.c). */
    int none = 0, linger_ms = LINGER_MS;
    int64_t frame_bytes_max = (int64_t)endpoint->base.limits.length_max;
    if (frame_bytes_max < FRAME_BYTES_LEAST)
        frame_bytes_max = FRAME_BYTES_LEAST;
    int ipv6 = endpoint->shared->ipv6;
    zmq_setsockopt(socket, ZMQ_IPV6, &ipv6, sizeof ipv6);
    zmq_setsockopt(socket, ZMQ_SNDHWM, &none, sizeof none);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &none, sizeof none);
    zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &frame_bytes_max, sizeof frame_bytes_max);
    return socket;
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
    free(endpoint->peers);
    free(endpoint);
}

static void shared_release(struct zmq_shared *shared)
{
    if (atomic_fetch_sub(&shared->users, 1) > 1)
        return;
    transport_zmq_auth_close(&shared->auth);
    zmq_ctx_term(shared->context); /* waits at most LINGER_MS for what was sent */
    for (int role = 0; role < 2; role++)
        endpoint_free(shared->endpoints[role]);
    free(shared);
}

static void close_at_once(void **socket)
{
    int none = 0;
    if (!*socket)
        return;
    zmq_setsockopt(*socket, ZMQ_LINGER, &none, sizeof none);
    zmq_close(*socket);
    *socket = NULL;
}

void transport_zmq_cut(struct transport *transport)
{
    struct zmq_endpoint *endpoint = endpoint_of(transport);
    for (uint32_t node = 0; node < transport->limits.nodes; node++)
        close_at_once(&endpoint->peers[node].push);
    close_at_once(&endpoint->pull);
}

void transport_zmq_linger(struct transport *transport, int64_t deadline_ns)
{
    struct zmq_endpoint *endpoint = endpoint_of(transport);
    for (uint32_t node = 0; node < transport->limits.nodes; node++) {
        const struct transport_peer *peer = &transport->peers[node];
        while (!peer->local && atomic_load(&endpoint->peers[node].completed) < peer->sends &&
               clock_now_ns() < deadline_ns)
            clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
    }
}

/* ZeroMQ's thread drops queued messages and calls on_sent for each. A peer inside this process gets
 * a pointer, and ZeroMQ's thread does not read such a payload. */
void transport_zmq_settle(struct transport *transport)
{
    transport_zmq_linger(transport, clock_now_ns() + LINGER_MS * NS_PER_MS);
}

void transport_zmq_close(struct transport *transport)
{
    struct zmq_endpoint *endpoint = endpoint_of(transport);
    for (uint32_t node = 0; endpoint->peers && node < transport->limits.nodes; node++) {
        if (endpoint->peers[node].push)
            zmq_close(endpoint->peers[node].push);
    }
    if (endpoint->pull)
        zmq_close(endpoint->pull);
    transport_base_fini(transport);
    shared_release(endpoint->shared); /* which frees the endpoint */
}

/* Binds to a port of the system's choice; `address` is what remote peers connect to. Peers inside
 * this process use inproc://. */
static enum status bind_endpoint(struct zmq_endpoint *endpoint, const union address *host,
                                 char *address)
{
    char name[ADDRESS_TEXT_BYTES], text[ZMQ_ADDRESS_BYTES];
    endpoint->pull = transport_zmq_socket(endpoint, ZMQ_PULL);
    if (!endpoint->pull)
        return transport_zmq_status("socket");
    enum status status =
        transport_zmq_auth_listener(&endpoint->shared->auth, endpoint->pull, endpoint->base.role);
    if (status != STATUS_OK)
        return status;
    snprintf(text, sizeof text, endpoint->shared->ipv6 ? "tcp://[%s]:*" : "tcp://%s:*",
             address_text(host, name));
    if (zmq_bind(endpoint->pull, text) != 0)
        return transport_zmq_status(text);
    size_t size = ZMQ_ADDRESS_BYTES;
    if (zmq_getsockopt(endpoint->pull, ZMQ_LAST_ENDPOINT, address, &size) != 0)
        return transport_zmq_status(text);
    snprintf(text, sizeof text, "inproc://node-%d", endpoint->base.node);
    if (zmq_bind(endpoint->pull, text) != 0)
        return transport_zmq_status(text);
    return STATUS_OK;
}

static enum status open_endpoint(struct transport **out, struct world *world,
                                 const struct transport_options *options, enum node_role role,
                                 struct zmq_shared *shared)
{
    struct zmq_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint ||
        !transport_base_init(&endpoint->base, &transport_zmq_ops, world, options, role)) {
        free(endpoint);
        return STATUS_NO_MEMORY;
    }
    *out = &endpoint->base;
    endpoint->shared = shared;
    shared->endpoints[role] = endpoint;
    atomic_fetch_add(&shared->users, 1);
    endpoint->receive_timeout_ms = -1; /* ZeroMQ's own default: none */
    endpoint->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int nodes = topology_nodes(&options->topology);
    endpoint->peers = calloc((size_t)nodes, sizeof *endpoint->peers);
    if (!endpoint->peers || endpoint->wake_fd < 0) {
        log_error("ZeroMQ: cannot open an endpoint: %s", strerror(errno));
        return STATUS_NO_MEMORY;
    }
    for (int node = 0; node < nodes; node++)
        endpoint->peers[node].owner = endpoint;
    return STATUS_OK;
}

/* Every rank learns every node's address. */
static enum status exchange_addresses(struct transport *endpoint[2], struct world *world,
                                      const struct topology *topology,
                                      char (*mine)[ZMQ_ADDRESS_BYTES])
{
    enum status status = STATUS_OK;
    char(*all)[2][ZMQ_ADDRESS_BYTES] = calloc((size_t)world->size, sizeof *all);
    if (!all) {
        log_error("ZeroMQ: no memory for the addresses of %d ranks", world->size);
        return STATUS_NO_MEMORY;
    }
    TRY(world_gather(world, NULL, mine, sizeof *all, all));
    for (int role = 0; role < 2; role++) {
        if (!endpoint[role])
            continue;
        for (int node = 0; node < topology_nodes(topology); node++) {
            struct zmq_peer *peer = &endpoint_of(endpoint[role])->peers[node];
            int rank = topology_rank(topology, node);
            if (rank == world->rank)
                snprintf(peer->address, sizeof peer->address, "inproc://node-%d", node);
            else
                memcpy(peer->address, all[rank][topology_role(topology, node)], ZMQ_ADDRESS_BYTES);
        }
    }
out:
    free(all);
    return status;
}

/* Not for libpsring, which does not change its host's allocator.
 *
 * ZeroMQ allocates memory for each message that it receives. By default glibc maps new memory for
 * every long one, and each of its pages faults: on loopback that takes a quarter of the throughput.
 */
static void keep_freed_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* glibc's largest */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

enum status transport_zmq_open(struct transport *endpoint[2], struct world *world,
                               const struct transport_options *options)
{
    enum status status = STATUS_OK;
    if (!options->embedded)
        keep_freed_memory();
    union address host;
    char addresses[2][ZMQ_ADDRESS_BYTES] = {{0}};
    struct zmq_shared *shared = calloc(1, sizeof *shared);
    if (!shared || !(shared->context = zmq_ctx_new())) {
        log_error("ZeroMQ: out of memory");
        free(shared);
        return STATUS_NO_MEMORY;
    }
    shared->users = 1; /* this function */
    zmq_ctx_set(shared->context, ZMQ_MAX_SOCKETS, 2 * topology_nodes(&options->topology) + 64);
    TRY(transport_zmq_auth_open(&shared->auth, shared->context, world->run_id));
    TRY(world_choose_address(world, options->subnet, &host));
    shared->ipv6 = host.any.sa_family == AF_INET6;
    for (int role = 0; role < 2; role++) {
        if (topology_node(&options->topology, world->rank, role) < 0)
            continue;
        TRY(open_endpoint(&endpoint[role], world, options, role, shared));
        TRY(bind_endpoint(endpoint_of(endpoint[role]), &host, addresses[role]));
    }
    TRY(transport_zmq_auth_start(&shared->auth));
    TRY(exchange_addresses(endpoint, world, &options->topology, addresses));
out:
    shared_release(shared);
    return status;
}
