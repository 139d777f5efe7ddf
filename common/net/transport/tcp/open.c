/*
 * Opening and closing the endpoints of the TCP transport.
 *
 * Every endpoint listens, all ranks learn all addresses, and of two nodes that may have something
 * to say to each other the higher one connects and says hello (common/net/socket/listener.h):
 * magic, version, the run's id, who it is. Workers talk to all servers where there are any, else to
 * all workers. Then nobody listens any more. So a stranger can come only while the ranks connect,
 * must then know the run's id within HELLO_WAIT_MS, and holds nobody up.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/net/socket/address.h"
#include "common/net/socket/listener.h"
#include "common/net/socket/stream.h"
#include "common/net/transport/tcp/tcp_impl.h"

/* What is needed until all are connected. */
struct opening {
    struct transport **endpoint; /* by role */
    struct world *world;
    const struct topology *topology;
    int64_t deadline_ns; /* 0: none */
    struct listener listeners[2]; /* by role */
    struct sockaddr_in (*all)[2]; /* by rank and role */
};

/* -------- closing ----------------------------------------------------------------------------- */

/* What the peer has not taken yet it still gets, then the end. */
void transport_tcp_cut(struct transport *transport)
{
    struct tcp_endpoint *endpoint = endpoint_of(transport);
    for (uint32_t node = 0; endpoint->peers && node < transport->limits.nodes; node++)
        stream_close(&endpoint->peers[node].fd);
}

void transport_tcp_close(struct transport *transport)
{
    struct tcp_endpoint *endpoint = endpoint_of(transport);
    transport_tcp_cut(transport);
    for (uint32_t node = 0; endpoint->peers && node < transport->limits.nodes; node++)
        free(endpoint->peers[node].queue);
    while (endpoint->free) {
        struct tcp_buffer *next = endpoint->free->next;
        free(endpoint->free->data);
        free(endpoint->free);
        endpoint->free = next;
    }
    if (endpoint->epoll >= 0)
        close(endpoint->epoll);
    free(endpoint->peers);
    transport_base_fini(transport);
    free(endpoint);
}

/* -------- endpoints --------------------------------------------------------------------------- */

static enum status open_endpoint(struct opening *opening, const struct transport_options *options,
                                 enum node_role role)
{
    struct world *world = opening->world;
    struct tcp_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint ||
        !transport_base_init(&endpoint->base, &transport_tcp_ops, world, options, role)) {
        free(endpoint);
        return STATUS_NO_MEMORY;
    }
    opening->endpoint[role] = &endpoint->base;
    endpoint->epoll = -1;
    int both = topology_node(&options->topology, world->rank, !role) >= 0;
    endpoint->spins = world->sharing_cpus * (1 + both) <= world->cores;
    int nodes = topology_nodes(&options->topology);
    endpoint->peers = calloc((size_t)nodes, sizeof *endpoint->peers);
    if (!endpoint->peers) {
        log_error("tcp: no memory for %d nodes", nodes);
        return STATUS_NO_MEMORY;
    }
    for (int node = 0; node < nodes; node++) {
        endpoint->peers[node].fd = -1;
        endpoint->peers[node].node = node;
    }
    return STATUS_OK;
}

static enum status listen_at(struct opening *opening, const char *host, enum node_role role,
                             struct sockaddr_in *address)
{
    struct sockaddr_in name = {.sin_family = AF_INET};
    inet_pton(AF_INET, host, &name.sin_addr);
    int error = listener_open(&opening->listeners[role], &name, 0);
    if (error != 0) {
        log_error("tcp: cannot listen at %s: %s", host, strerror(error));
        return status_from_errno(error);
    }
    *address = opening->listeners[role].address;
    return STATUS_OK;
}

/* The worker and the server of this process. */
static enum status join_local(struct opening *opening)
{
    int sockets[2];
    if (!opening->endpoint[NODE_WORKER] || !opening->endpoint[NODE_SERVER])
        return STATUS_OK;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets) != 0) {
        log_error("tcp: a pair of sockets: %s", strerror(errno));
        return status_from_errno(errno);
    }
    for (int role = 0; role < 2; role++)
        endpoint_of(opening->endpoint[role])->peers[opening->endpoint[!role]->node].fd =
            sockets[role];
    return STATUS_OK;
}

/* -------- connecting -------------------------------------------------------------------------- */

/* Do the endpoint and that node need a connection that leaves the process? */
static bool talks_to(const struct transport *transport, int node)
{
    return node != transport->node && !transport->peers[node].local &&
           (transport->topology.servers == 0 ||
            topology_role(&transport->topology, node) != transport->role);
}

/* 0: without end, so never that at the end. */
static int64_t left_ms(const struct opening *opening)
{
    if (opening->deadline_ns == 0)
        return 0;
    int64_t left = (opening->deadline_ns - clock_now_ns()) / NS_PER_MS;
    return left > 0 ? left : 1;
}

static enum status connect_to(const struct opening *opening, struct transport *transport, int node)
{
    const struct topology *topology = opening->topology;
    const struct sockaddr_in *address =
        &opening->all[topology_rank(topology, node)][topology_role(topology, node)];
    const struct hello hello = {.magic = HELLO_MAGIC,
                                .protocol = HELLO_PROTOCOL,
                                .rank = opening->world->rank,
                                .world_size = opening->world->size,
                                .role = transport->role,
                                .run_id = opening->world->run_id};
    int *fd = &endpoint_of(transport)->peers[node].fd;
    int error = stream_connect(address, left_ms(opening), fd);
    if (error == 0)
        error = stream_send_one(*fd, &hello, sizeof hello, left_ms(opening));
    if (error == 0)
        return STATUS_OK;
    char text[INET_ADDRSTRLEN] = "", name[64];
    inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
    log_error("tcp: cannot connect to %s at %s:%d: %s; is its host reachable by the network in use "
              "(see --interface)?",
              transport_describe(transport, node, name, sizeof name), text,
              ntohs(address->sin_port), strerror(error));
    return error == ETIMEDOUT ? STATUS_TIMEOUT : STATUS_TRANSPORT;
}

/* A higher node that talks to this one and has not connected; -1: there is none. */
static int find_missing(struct transport *transport)
{
    for (int node = transport->node + 1; node < (int)transport->limits.nodes; node++) {
        if (talks_to(transport, node) && endpoint_of(transport)->peers[node].fd < 0)
            return node;
    }
    return -1;
}

/* Somebody has said hello. */
static void let_in(const struct opening *opening, struct transport *transport,
                   const struct hello *hello, int socket)
{
    int node = -1;
    bool ours = hello->protocol == HELLO_PROTOCOL && hello->run_id == opening->world->run_id;
    if (ours && hello->rank >= 0 && hello->rank < opening->world->size && hello->role <= NODE_SERVER)
        node = topology_node(opening->topology, hello->rank, (enum node_role)hello->role);
    if (node > transport->node && talks_to(transport, node) &&
        endpoint_of(transport)->peers[node].fd < 0) {
        endpoint_of(transport)->peers[node].fd = socket;
        return;
    }
    transport->strangers.messages++;
    transport->strangers.reason = ours ? "a hello of none that is awaited" : "from another run";
    stream_close(&socket);
}

static enum status accept_all(struct opening *opening, struct transport *transport)
{
    int missing, socket;
    struct hello hello;
    while ((missing = find_missing(transport)) >= 0) {
        if (listener_wait(&opening->listeners[transport->role], opening->deadline_ns, NULL, 0,
                          &hello, &socket, NULL) != LISTENER_HELLO) {
            char name[64];
            log_error("tcp: %s has not connected within %g s; is its host reachable by the network "
                      "in use (see --interface)? A slow start needs a larger --startup-timeout",
                      transport_describe(transport, missing, name, sizeof name),
                      (double)opening->world->timeout_ms / 1000);
            return STATUS_TIMEOUT;
        }
        let_in(opening, transport, &hello, socket);
    }
    return STATUS_OK;
}

/* First everybody connects, for which nobody has to accept; then everybody accepts. One after the
 * other, and each rank from its own place on, so that a listener's room for those who have not said
 * hello suffices. */
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
            TRY(accept_all(opening, opening->endpoint[role]));
    }
out:
    return status;
}

enum status transport_tcp_open(struct transport *endpoint[2], struct world *world,
                               const struct transport_options *options)
{
    enum status status = STATUS_OK;
    char host[INET_ADDRSTRLEN];
    struct sockaddr_in mine[2] = {{0}};
    struct opening *opening = calloc(1, sizeof *opening);
    if (opening)
        opening->all = calloc((size_t)world->size, sizeof *opening->all);
    if (!opening || !opening->all) {
        log_error("tcp: no memory for the addresses of %d ranks", world->size);
        free(opening);
        return STATUS_NO_MEMORY;
    }
    opening->endpoint = endpoint;
    opening->world = world;
    opening->topology = &options->topology;
    opening->listeners[0].socket = opening->listeners[1].socket = -1;
    if (world->timeout_ms > 0)
        opening->deadline_ns = clock_now_ns() + world->timeout_ms * NS_PER_MS;
    TRY(address_choose(options->subnet, world->local_size == world->size, host, sizeof host));
    for (enum node_role role = 0; role <= NODE_SERVER; role++) {
        if (topology_node(&options->topology, world->rank, role) < 0)
            continue;
        TRY(open_endpoint(opening, options, role));
        TRY(listen_at(opening, host, role, &mine[role]));
    }
    TRY(join_local(opening));
    TRY(world_gather(world, NULL, mine, sizeof mine, opening->all));
    TRY(connect_all(opening));
out:
    listener_close(&opening->listeners[0]);
    listener_close(&opening->listeners[1]);
    free(opening->all);
    free(opening);
    return status;
}
