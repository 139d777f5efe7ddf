/* How the ranks connect to rank 0, once the world is open. On the main thread of each. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/net/lifeline/lifeline_impl.h"
#include "common/net/socket/stream.h"

/* -------- letting in -------------------------------------------------------------------------- */

/* The listener has dropped who does not know how to say hello; this drops who is of another run. */
static void let_one_in(struct lifeline *lifeline, const struct hello *hello, int socket)
{
    int rank = hello->rank;
    if (hello->protocol != HELLO_PROTOCOL || hello->run_id != lifeline->run_id || rank <= 0 ||
        rank >= lifeline->size || lifeline->links[rank].fd >= 0) {
        stream_close(&socket);
        return;
    }
    lifeline->links[rank].fd = socket;
    lifeline->ranks[rank].heard_ns = clock_now_ns();
}

static int missing(const struct lifeline *lifeline)
{
    for (int rank = 1; rank < lifeline->size; rank++) {
        if (lifeline->links[rank].fd < 0)
            return rank;
    }
    return 0;
}

static enum status let_in(struct lifeline *lifeline, struct listener *listener)
{
    int64_t timeout_ms = lifeline->options.startup_timeout_ms;
    int64_t deadline_ns = clock_now_ns() + timeout_ms * NS_PER_MS;
    int rank, socket;
    struct hello hello;
    while ((rank = missing(lifeline)) != 0) {
        if (listener_wait(listener, deadline_ns, NULL, 0, &hello, &socket, NULL) !=
            LISTENER_HELLO) {
            log_error(
                "rank %d on %s has not connected to rank 0 within %g s; is its host reachable "
                "over the network in use (see --interface)? A slow start needs a larger "
                "--startup-timeout",
                rank, lifeline->ranks[rank].host, (double)timeout_ms / 1000);
            return STATUS_TIMEOUT;
        }
        let_one_in(lifeline, &hello, socket);
    }
    return STATUS_OK;
}

/* -------- all of it --------------------------------------------------------------------------- */

static enum status allocate(struct lifeline *lifeline, const struct world *world)
{
    size_t size = (size_t)world->size;
    lifeline->rank = world->rank;
    lifeline->size = world->size;
    lifeline->run_id = world->run_id;
    lifeline->ranks = calloc(size, sizeof *lifeline->ranks);
    lifeline->links = calloc(size, sizeof *lifeline->links);
    lifeline->polled = calloc(size, sizeof *lifeline->polled);
    if (!lifeline->ranks || !lifeline->links || !lifeline->polled) {
        log_error("lifeline: no memory for %d ranks", world->size);
        return STATUS_NO_MEMORY;
    }
    for (size_t rank = 0; rank < size; rank++)
        lifeline->links[rank].fd = lifeline->polled[rank].fd = -1;
    return STATUS_OK;
}

static enum status gather_hosts(struct lifeline *lifeline, struct world *world)
{
    enum status status = STATUS_OK;
    enum { HOST_BYTES = sizeof lifeline->ranks->host };
    char mine[HOST_BYTES] = "";
    char(*all)[HOST_BYTES] = calloc((size_t)world->size, sizeof *all);
    if (!all) {
        log_error("lifeline: no memory for %d ranks", world->size);
        return STATUS_NO_MEMORY;
    }
    snprintf(mine, sizeof mine, "%s", world->host);
    TRY(world_gather(world, NULL, mine, sizeof mine, all));
    for (int rank = 0; rank < world->size; rank++)
        snprintf(lifeline->ranks[rank].host, sizeof mine, "%s", all[rank]);
out:
    free(all);
    return status;
}

/* All have the addresses of all. Now the connections. */
static enum status connect_all(struct lifeline *lifeline, struct world *world)
{
    enum status status = STATUS_OK;
    struct lifeline_address address = {0};
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener) {
        log_error("lifeline: out of memory");
        return STATUS_NO_MEMORY;
    }
    listener->socket = -1;
    if (world->rank == 0)
        status = lifeline_listen(lifeline->options.subnet, world->local_size == world->size,
                                 listener, &address);
    enum status told = world_broadcast(world, NULL, &address, sizeof address);
    status = status == STATUS_OK ? told : status;
    if (status == STATUS_OK && !address.good)
        status = STATUS_TRANSPORT; /* rank 0 has said why */
    if (status != STATUS_OK)
        goto out;
    if (world->rank == 0) {
        TRY(let_in(lifeline, listener));
    } else {
        TRY(lifeline_connect(&address, world->rank, world->run_id,
                             lifeline->options.startup_timeout_ms, &lifeline->links[0].fd));
        /* It beats once the last rank has come, for which the longer time-out is. */
        lifeline->ranks[0].heard_ns =
            clock_now_ns() + lifeline->options.startup_timeout_ms * NS_PER_MS;
    }
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
        TRY(gather_hosts(lifeline, world));
        TRY(connect_all(lifeline, world));
    }
    world->activity = &lifeline->activity;
    atomic_store(&lifeline->phase, world->size > 1 ? LIFELINE_JOINED : LIFELINE_ALONE);
    lifeline_wake(lifeline);
out:
    return status;
}
