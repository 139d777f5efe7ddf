/* The connections of the watchdog: how the ranks connect to rank 0, once the world is open, on the
 * main thread of each; and the frames that they carry. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/descriptors.h"
#include "common/net/address.h"
#include "common/net/watchdog_impl.h"
#include "common/net/control.h"

static enum status out_of_memory(void)
{
    log_error("watchdog: out of memory");
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

static enum status listen_for_all(const struct watchdog *watchdog, const struct world *world,
                                  struct listener *listener)
{
    enum status status;
    union address address;
    TRY(world_choose_address(world, watchdog->options.subnet, &address));
    int error = listener_open(listener, &address, 0);
    if (error != 0)
        status = socket_failed("rank 0 cannot listen for the other ranks on", &address, error);
out:
    return status;
}

static enum status let_in_all(struct watchdog *watchdog, const struct world *world,
                              struct listener *listener)
{
    int64_t timeout_ms = watchdog->options.startup_timeout_ms;
    int *sockets = malloc((size_t)world->size * sizeof *sockets);
    if (!sockets)
        return out_of_memory();
    for (int rank = 0; rank < world->size; rank++)
        sockets[rank] = rank == 0 ? -1 : LISTENER_AWAITED;
    int missing = listener_let_in(listener, world->run_id, timeout_ms, sockets, world->size);
    for (int rank = 0; rank < world->size; rank++) {
        watchdog->links[rank].fd = sockets[rank];
        watchdog->ranks[rank].heard_ns = clock_now_ns();
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

static enum status connect_to_rank0(struct watchdog *watchdog, const struct world *world,
                                    const union address *address)
{
    int64_t timeout_ms = watchdog->options.startup_timeout_ms;
    int error =
        listener_join(address, world->run_id, world->rank, timeout_ms, &watchdog->links[0].fd);
    /* It beats once the last rank has come, for which the longer time-out is. */
    watchdog->ranks[0].heard_ns = clock_now_ns() + timeout_ms * NS_PER_MS;
    return error ? socket_failed("cannot connect to rank 0 at", address, error) : STATUS_OK;
}

/* -------- all of it --------------------------------------------------------------------------- */

static enum status allocate(struct watchdog *watchdog, const struct world *world)
{
    size_t size = (size_t)world->size;
    watchdog->rank = world->rank;
    watchdog->size = world->size;
    watchdog->ranks = calloc(size, sizeof *watchdog->ranks);
    watchdog->links = calloc(size, sizeof *watchdog->links);
    watchdog->polled = calloc(size, sizeof *watchdog->polled);
    if (!watchdog->ranks || !watchdog->links || !watchdog->polled)
        return out_of_memory();
    watchdog->stalls = (struct stall_watch){
        .limit_ns = watchdog->options.stall_warning_ms * NS_PER_MS,
        .tick_ns = watchdog->tick_ns,
        .timeout_ns = watchdog->timeout_ns,
        .silence_only = world->rank != 0,
    };
    if (world->rank <= 1 &&
        stall_watch_init(&watchdog->stalls, world->rank == 0 ? world->size : 2) != STATUS_OK)
        return out_of_memory();
    for (size_t rank = 0; rank < size; rank++) {
        watchdog->links[rank].fd = watchdog->polled[rank].fd = -1;
        memcpy(watchdog->ranks[rank].host, world->hosts[rank], WORLD_HOST_BYTES);
    }
    return STATUS_OK;
}

/* Rank 0 tells where it listens. Now the connections. */
static enum status connect_all(struct watchdog *watchdog, struct world *world)
{
    enum status status = STATUS_OK;
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return out_of_memory();
    listener->socket = -1;
    if (world->rank == 0)
        status = listen_for_all(watchdog, world, listener);
    union address address = listener->address; /* port 0: it does not, and has said why */
    enum status told = world_broadcast(world, NULL, &address, sizeof address);
    TRY(status);
    TRY(told);
    TRY(address_port(&address) == 0 ? STATUS_TRANSPORT : STATUS_OK);
    TRY(world->rank == 0 ? let_in_all(watchdog, world, listener)
                         : connect_to_rank0(watchdog, world, &address));
    for (int rank = 0; rank < world->size; rank++)
        watchdog->polled[rank] =
            (struct pollfd){.fd = watchdog->links[rank].fd, .events = POLLRDHUP};
    watchdog->polled[world->rank] = (struct pollfd){.fd = watchdog->wake_fd, .events = POLLIN};
out:
    listener_close(listener);
    free(listener);
    return status;
}

enum status watchdog_join(struct watchdog *watchdog, struct world *world)
{
    enum status status = STATUS_OK;
    if (world->size > 1) {
        TRY(allocate(watchdog, world));
        TRY(connect_all(watchdog, world));
    }
    world->activity = &watchdog->activity;
    atomic_store(&watchdog->phase, world->size > 1 ? WATCHDOG_JOINED : WATCHDOG_ALONE);
    watchdog_wake(watchdog);
out:
    return status;
}

#define MAGIC UINT32_C(0x5053524c) /* "PSRL" */

void watchdog_send(struct watchdog_link *link, const struct watchdog_frame *frame)
{
    struct watchdog_frame filled = *frame;
    filled.magic = MAGIC;
    if (link->fd < 0)
        return;
    /* A frame that went out in part would be followed by one that cannot be read: whoever has not
     * emptied the buffer for so long is as good as gone. */
    ssize_t sent = send(link->fd, &filled, sizeof filled, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0 && (size_t)sent < sizeof filled)
        shutdown(link->fd, SHUT_WR);
}

void watchdog_send_last(struct watchdog_link *link, const struct watchdog_frame *frame)
{
    watchdog_send(link, frame);
    if (link->fd >= 0)
        shutdown(link->fd, SHUT_WR);
}

enum watchdog_read watchdog_read(struct watchdog_link *link)
{
    if (link->fd < 0)
        return WATCHDOG_READ_CLOSED;
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
        return WATCHDOG_READ_FRAME;
    if (!whole && got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return WATCHDOG_READ_NOTHING;
    return WATCHDOG_READ_CLOSED;
}

void watchdog_link_close(struct watchdog_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    *link = (struct watchdog_link){.fd = -1};
}
