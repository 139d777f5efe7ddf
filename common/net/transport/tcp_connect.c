/*
 * Opens and closes the endpoints of the TCP transport.
 *
 * Every endpoint listens, and all ranks learn all addresses. For each pair of nodes that may
 * exchange messages, the higher node connects and says hello (common/net/control.h): magic,
 * version, the run's id, its node. Workers need all servers; without servers they need all workers.
 * Then no endpoint listens any more. A stranger can connect only while the ranks connect. It must
 * send the run's id within HELLO_WAIT_MS, with TLS HELLO_SHAKE_MS, and delays no rank.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/descriptors.h"
#include "common/net/address.h"
#include "common/net/control.h"
#include "common/net/secure.h"
#include "common/net/transport/tcp_impl.h"

/* Used until all nodes are connected. */
struct opening {
    struct transport **endpoint; /* by role */
    struct world *world;
    struct listener listeners[2]; /* by role */
    union address (*all)[2];      /* by rank and role */
    int *sockets;                 /* by node */
};

/* -------- closing ----------------------------------------------------------------------------- */

/* The peer still gets the bytes that the kernel has taken, then the end of the stream. If the peer
 * has sent more than stream_close reads, the kernel may discard them and reset the connection. */
void transport_tcp_cut(struct transport *transport)
{
    struct tcp_endpoint *endpoint = endpoint_of(transport);
    for (uint32_t node = 0; node < transport->limits.nodes; node++)
        stream_close(&endpoint->peers[node].fd);
}

void transport_tcp_close_in_child(const struct transport *transport)
{
    const struct tcp_endpoint *endpoint = (const struct tcp_endpoint *)transport;
    for (uint32_t node = 0; node < transport->limits.nodes; node++) {
        if (endpoint->peers[node].fd >= 0)
            close(endpoint->peers[node].fd);
    }
}

void transport_tcp_close(struct transport *transport)
{
    struct tcp_endpoint *endpoint = endpoint_of(transport);
    transport_tcp_cut(transport);
    for (uint32_t node = 0; node < transport->limits.nodes; node++)
        free(endpoint->peers[node].queue.entries);
    while (endpoint->free) {
        struct tcp_buffer *next = endpoint->free->next;
        free(endpoint->free->data);
        free(endpoint->free);
        endpoint->free = next;
    }
    if (endpoint->epoll >= 0)
        close(endpoint->epoll);
    transport_base_fini(transport);
    free(endpoint);
}

/* -------- endpoints --------------------------------------------------------------------------- */

static enum status listen_at(struct opening *opening, const union address *host,
                             enum node_role role, union address *address)
{
    char text[ADDRESS_TEXT_BYTES];
    int error = listener_open(&opening->listeners[role], host, 0);
    if (error != 0)
        return FAIL(status_from_errno(error), "tcp: cannot listen at %s: %s",
                    address_text(host, text), strerror(error));
    *address = opening->listeners[role].address;
    return STATUS_OK;
}

/* Joins the worker and the server of this process. */
static enum status join_local(struct opening *opening)
{
    int sockets[2];
    if (!opening->endpoint[NODE_WORKER] || !opening->endpoint[NODE_SERVER])
        return STATUS_OK;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets) != 0)
        return FAIL(status_from_errno(errno), "tcp: a pair of sockets: %s", strerror(errno));
    for (int role = 0; role < 2; role++)
        endpoint_of(opening->endpoint[role])->peers[opening->endpoint[!role]->node].fd =
            sockets[role];
    return STATUS_OK;
}

/* -------- connecting -------------------------------------------------------------------------- */

/* Whether the endpoint and that node need a connection that leaves the process. */
static bool talks_to(const struct transport *transport, int node)
{
    return node != transport->node && !transport->peers[node].local &&
           (transport->topology.servers == 0 ||
            topology_role(&transport->topology, node) != transport->role);
}

static enum status connect_to(const struct opening *opening, struct transport *transport, int node)
{
    const struct topology *topology = &transport->topology;
    const union address *address =
        &opening->all[topology_rank(topology, node)][topology_role(topology, node)];
    int error = listener_join(address, opening->world->run_id, transport->node,
                              opening->world->timeout_ms, &endpoint_of(transport)->peers[node].fd);
    if (error == 0)
        return STATUS_OK;
    char text[ADDRESS_URI_BYTES];
    return FAIL(
        error == ETIMEDOUT ? STATUS_TIMEOUT : STATUS_TRANSPORT,
        "tcp: cannot connect to %s at %s: %s; %s", transport_node_text(transport, node).text,
        address_uri(address, text), strerror(error),
        descriptors_advice(error, "is its host reachable by the network in use (see --subnet)?"));
}

/* Accepts the higher nodes, which connect to this one. */
static enum status let_in(struct opening *opening, struct transport *transport)
{
    int nodes = (int)transport->limits.nodes, *sockets = opening->sockets;
    for (int node = 0; node < nodes; node++)
        sockets[node] = node > transport->node && talks_to(transport, node) ? LISTENER_AWAITED : -1;
    int missing =
        world_let_in(opening->world, &opening->listeners[transport->role], sockets, nodes);
    for (int node = transport->node + 1; node < nodes; node++) {
        if (sockets[node] >= 0)
            endpoint_of(transport)->peers[node].fd = sockets[node];
    }
    if (missing < 0)
        return STATUS_OK;
    if (world_cancelled(opening->world))
        return STATUS_TRANSPORT;
    return FAIL(
        STATUS_TIMEOUT,
        "tcp: %s has not connected within %g s; is its host reachable by the network in use "
        "(see --subnet)? A slow start needs a larger --startup-timeout",
        transport_node_text(transport, missing).text, (double)opening->world->timeout_ms / 1000);
}

static const char *handshake_advice(int error)
{
    if (error == EKEYREJECTED || error == EPROTO)
        return "do all ranks have one --secure folder?";
    return error == ETIMEDOUT ? "a slow start needs a larger --startup-timeout"
                              : "that rank has ended, or has dropped this one; its first lines say "
                                "why";
}

/* secure_settle, while this rank notes that it is there. */
static int settle_one(const struct opening *opening, int fd, int64_t deadline_ns)
{
    for (;;) {
        int64_t look_ns = clock_now_ns() + NS_PER_S / 5;
        bool last = deadline_ns > 0 && deadline_ns <= look_ns;
        int error = secure_settle(fd, last ? deadline_ns : look_ns);
        world_acts(opening->world);
        if (error != ETIMEDOUT || last || clock_now_ns() < look_ns) /* the handshake's own error */
            return error;
    }
}

/* The other ends have accepted this one, so a handshake of TLS that is left is about to end. From
 * here on tcp.c's epoll must see every change. */
static enum status settle(const struct opening *opening, struct transport *transport)
{
    int64_t deadline_ns = stream_deadline_ns(opening->world->timeout_ms);
    for (int node = 0; node < transport->node; node++) {
        int fd = endpoint_of(transport)->peers[node].fd;
        int error = fd < 0 ? 0 : settle_one(opening, fd, deadline_ns);
        if (error != 0)
            return FAIL(error == ETIMEDOUT ? STATUS_TIMEOUT : STATUS_TRANSPORT,
                        "tcp: the handshake of TLS with %s: %s; %s",
                        transport_node_text(transport, node).text, strerror(error),
                        handshake_advice(error));
    }
    return STATUS_OK;
}

/* First every node connects, which needs no accept; then every node accepts. A node connects to the
 * lower nodes in descending order from its own number. A listener therefore has few connections
 * without a hello at a time. */
static enum status connect_all(struct opening *opening)
{
    enum status status = STATUS_OK;
    for (int role = 0; role < 2; role++) {
        struct transport *transport = opening->endpoint[role];
        for (int node = transport ? transport->node - 1 : -1; node >= 0; node--) {
            if (talks_to(transport, node))
                TRY(connect_to(opening, transport, node));
        }
    }
    for (int role = 0; role < 2; role++) {
        if (opening->endpoint[role])
            TRY(let_in(opening, opening->endpoint[role]));
    }
    for (int role = 0; role < 2; role++) {
        if (opening->endpoint[role])
            TRY(settle(opening, opening->endpoint[role]));
    }
out:
    return status;
}

enum status transport_tcp_open(struct transport *endpoint[2], struct world *world,
                               const struct transport_options *options)
{
    enum status status = STATUS_OK;
    int nodes = topology_nodes(&options->topology);
    union address host, mine[2];
    memset(mine, 0, sizeof mine);
    struct opening opening = {.endpoint = endpoint,
                              .world = world,
                              .listeners = {{.socket = -1}, {.socket = -1}},
                              .all = calloc((size_t)world->size, sizeof *opening.all),
                              .sockets = calloc((size_t)nodes, sizeof(int))};
    for (int role = 0; role < 2; role++) {
        if (endpoint[role])
            endpoint_of(endpoint[role])->epoll = -1;
        for (int node = 0; endpoint[role] && node < nodes; node++) {
            endpoint_of(endpoint[role])->peers[node].fd = -1;
            endpoint_of(endpoint[role])->peers[node].node = node;
        }
    }
    if (!opening.all || !opening.sockets)
        TRY(FAIL(STATUS_NO_MEMORY, "tcp: no memory for the addresses of %d ranks", world->size));
    TRY(world_choose_address(world, options->subnet, &host));
    for (enum node_role role = 0; role <= NODE_SERVER; role++) {
        if (endpoint[role])
            TRY(listen_at(&opening, &host, role, &mine[role]));
    }
    TRY(join_local(&opening));
    TRY(world_gather(world, NULL, mine, sizeof mine, opening.all));
    TRY(connect_all(&opening));
out:
    listener_close(&opening.listeners[0]);
    listener_close(&opening.listeners[1]);
    free(opening.sockets);
    free(opening.all);
    return status;
}
