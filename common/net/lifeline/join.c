/* The connections of the lifeline: how the ranks connect to rank 0, once the world is open, on the
 * main thread of each; and the frames that they carry. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/descriptors.h"
#include "common/net/address.h"
#include "common/net/lifeline/lifeline_impl.h"
#include "common/net/listener.h"

static enum status out_of_memory(void)
{
    log_error("lifeline: out of memory");
    return STATUS_NO_MEMORY;
}

/* -------- the connections --------------------------------------------------------------------- */

static enum status socket_failed(const char *what, const union address *address, int error)
{
    char host[ADDRESS_TEXT_BYTES];
    log_error("%s %s port %d: %s; %s", what, address_text(address, host), address_port(address),
              strerror(error),
              descriptors_advice(error,
                                 "is it the right network (see --subnet), and does a firewall "
                                 "let connections between the hosts through?"));
    return STATUS_TRANSPORT;
}

static enum status listen_for_all(const struct lifeline *lifeline, const struct world *world,
                                  struct listener *listener)
{
    enum status status;
    union address address;
    TRY(world_choose_address(world, lifeline->options.subnet, &address));
    int error = listener_open(listener, &address, 0);
    if (error != 0)
        status = socket_failed("rank 0 cannot listen for the other ranks on", &address, error);
out:
    return status;
}

static enum status let_in_all(struct lifeline *lifeline, const struct world *world,
                              struct listener *listener)
{
    int64_t timeout_ms = lifeline->options.startup_timeout_ms;
    int *sockets = malloc((size_t)world->size * sizeof *sockets);
    if (!sockets)
        return out_of_memory();
    for (int rank = 0; rank < world->size; rank++)
        sockets[rank] = rank == 0 ? -1 : LISTENER_AWAITED;
    int missing = listener_let_in(listener, world->run_id, timeout_ms, sockets, world->size);
    for (int rank = 0; rank < world->size; rank++) {
        lifeline->links[rank].fd = sockets[rank];
        lifeline->ranks[rank].heard_ns = clock_now_ns();
    }
    free(sockets);
    if (missing < 0)
        return STATUS_OK;
    log_error("rank %d on %s has not connected to rank 0 within %g s; is its host reachable "
              "over the network in use (see --subnet)? A slow start needs a larger "
              "--startup-timeout",
              missing, world->hosts[missing], (double)timeout_ms / 1000);
    return STATUS_TIMEOUT;
}

static enum status connect_to_rank0(struct lifeline *lifeline, const struct world *world,
                                    const union address *address)
{
    int64_t timeout_ms = lifeline->options.startup_timeout_ms;
    int error =
        listener_join(address, world->run_id, world->rank, timeout_ms, &lifeline->links[0].fd);
    /* It beats once the last rank has come, for which the longer time-out is. */
    lifeline->ranks[0].heard_ns = clock_now_ns() + timeout_ms * NS_PER_MS;
    return error ? socket_failed("cannot connect to rank 0 at", address, error) : STATUS_OK;
}

/* -------- all of it --------------------------------------------------------------------------- */

static enum status allocate(struct lifeline *lifeline, const struct world *world)
{
    size_t size = (size_t)world->size;
    lifeline->rank = world->rank;
    lifeline->size = world->size;
    lifeline->ranks = calloc(size, sizeof *lifeline->ranks);
    lifeline->links = calloc(size, sizeof *lifeline->links);
    lifeline->polled = calloc(size, sizeof *lifeline->polled);
    if (!lifeline->ranks || !lifeline->links || !lifeline->polled)
        return out_of_memory();
    lifeline->stalls = (struct stall_watch){
        .limit_ns = lifeline->options.stall_warning_ms * NS_PER_MS,
        .tick_ns = lifeline->tick_ns,
        .timeout_ns = lifeline->timeout_ns,
        .silence_only = world->rank != 0,
    };
    if (world->rank <= 1 &&
        stall_watch_init(&lifeline->stalls, world->rank == 0 ? world->size : 2) != STATUS_OK)
        return out_of_memory();
    for (size_t rank = 0; rank < size; rank++) {
        lifeline->links[rank].fd = lifeline->polled[rank].fd = -1;
        memcpy(lifeline->ranks[rank].host, world->hosts[rank], WORLD_HOST_BYTES);
    }
    return STATUS_OK;
}

/* Rank 0 tells where it listens. Now the connections. */
static enum status connect_all(struct lifeline *lifeline, struct world *world)
{
    enum status status = STATUS_OK;
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return out_of_memory();
    listener->socket = -1;
    if (world->rank == 0)
        status = listen_for_all(lifeline, world, listener);
    union address address = listener->address; /* port 0: it does not, and has said why */
    enum status told = world_broadcast(world, NULL, &address, sizeof address);
    TRY(status);
    TRY(told);
    TRY(address_port(&address) == 0 ? STATUS_TRANSPORT : STATUS_OK);
    TRY(world->rank == 0 ? let_in_all(lifeline, world, listener)
                         : connect_to_rank0(lifeline, world, &address));
    for (int rank = 0; rank < world->size; rank++)
        lifeline->polled[rank] =
            (struct pollfd){.fd = lifeline->links[rank].fd, .events = POLLRDHUP};
    lifeline->polled[world->rank] = (struct pollfd){.fd = lifeline->wake_fd, .events = POLLIN};
out:
    listener_close(listener);
    free(listener);
    return status;
}

enum status lifeline_join(struct lifeline *lifeline, struct world *world)
{
    enum status status = STATUS_OK;
    if (world->size > 1) {
        TRY(allocate(lifeline, world));
        TRY(connect_all(lifeline, world));
    }
    world->activity = &lifeline->activity;
    atomic_store(&lifeline->phase, world->size > 1 ? LIFELINE_JOINED : LIFELINE_ALONE);
    lifeline_wake(lifeline);
out:
    return status;
}

#define MAGIC UINT32_C(0x5053524c) /* "PSRL" */

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

enum lifeline_read lifeline_read(struct lifeline_link *link)
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
    if (whole && link->frame.magic == MAGIC)
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
