/* The connections of the watchdog: how the ranks connect to rank 0, once the world is open, on the
 * main thread of each; and the frames that they carry. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/control.h"
#include "common/net/watchdog_impl.h"
#include "common/net/world_impl.h"

static enum status out_of_memory(void)
{
    log_error("watchdog: out of memory");
    return STATUS_NO_MEMORY;
}

/* -------- the connections --------------------------------------------------------------------- */

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

static enum status connect_all(struct watchdog *watchdog, struct world *world)
{
    enum status status, found = STATUS_OK;
    union address address;
    int *sockets = malloc((size_t)world->size * sizeof *sockets);
    if (!sockets)
        return out_of_memory();
    for (int rank = 0; rank < world->size; rank++)
        sockets[rank] = world->rank == 0 && rank > 0 ? LISTENER_AWAITED : -1;
    if (world->rank == 0)
        found = world_choose_address(world, watchdog->options.subnet, &address);
    bool listens = world->rank == 0 && found == STATUS_OK;
    status = world_connect_to_root(world, 0, listens ? &address : NULL, sockets);
    for (int rank = 0; rank < world->size; rank++) {
        watchdog->links[rank].fd = sockets[rank];
        watchdog->ranks[rank].heard_ns = clock_now_ns();
        watchdog->polled[rank] = (struct pollfd){.fd = sockets[rank], .events = POLLRDHUP};
    }
    /* Rank 0 beats once the last rank has come, for which the longer time-out is. */
    if (world->rank > 0)
        watchdog->ranks[0].heard_ns += watchdog->options.startup_timeout_ms * NS_PER_MS;
    watchdog->polled[world->rank] = (struct pollfd){.fd = watchdog->wake_fd, .events = POLLIN};
    free(sockets);
    return found == STATUS_OK ? status : found;
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
