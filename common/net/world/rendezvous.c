/*
 * The bootstrap without MPI: the ranks meet at an address (../rendezvous), and collective calls go
 * over TCP (rendezvous_calls.c).
 *
 * Rank 0 has a connection to every rank. A group with another root makes those that it lacks;
 * connections last as long as the world and serve all groups. That is right because calls block:
 * what two ranks send each other comes in the order of their calls.
 */
#include "common/net/world/rendezvous.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/descriptors.h"
#include "common/net/listener.h"

_Static_assert((int)WORLD_HOST_BYTES == (int)RENDEZVOUS_NAME_BYTES, "names of hosts");

static enum status out_of_memory(void)
{
    log_error("world: out of memory");
    return STATUS_NO_MEMORY;
}

/* -------- groups ------------------------------------------------------------------------------ */

static enum status group_impl_new(struct group *group, uint32_t number)
{
    group->impl = calloc(1, sizeof *group->impl);
    if (!group->impl)
        return out_of_memory();
    group->impl->number = number;
    return STATUS_OK;
}

static void group_impl_free(struct group *group)
{
    if (!group)
        return;
    free(group->impl);
    group->impl = NULL;
}

/* Root: marks the members that it has no connection to; true if there are any. */
static bool await_members(const struct world *world, const struct group *group)
{
    bool any = false;
    for (int i = 1; i < group->size; i++) {
        int *socket = &world->impl->sockets[group->ranks[i]];
        if (*socket >= 0)
            continue;
        *socket = LISTENER_AWAITED;
        any = true;
    }
    return any;
}

/* Root: takes their connections. */
static enum status accept_members(struct world *world, struct listener *listener)
{
    int missing = world_let_in(world, listener, world->impl->sockets, world->size);
    if (missing < 0)
        return STATUS_OK;
    if (world_given_up(world))
        return STATUS_TRANSPORT;
    log_error("world: rank %d on %s did not connect to rank %d on %s, the first of its group, "
              "within %g s; are all hosts reachable from each other?",
              missing, world->hosts[missing], world->rank, world->host,
              (double)world->timeout_ms / 1000);
    return STATUS_TIMEOUT;
}

/* Another member: connects to the root. */
static enum status connect_to_root(struct world *world, const struct group *group,
                                   const union address *address)
{
    int root = group->ranks[0];
    int error = listener_join(address, world->run_id, world->rank, world->timeout_ms,
                              &world->impl->sockets[root]);
    if (error == 0)
        return STATUS_OK;
    log_error(
        "world: rank %d on %s cannot connect to rank %d on %s, the first of its group: %s; %s",
        world->rank, world->host, root, world->hosts[root], strerror(error),
        descriptors_advice(error, "are all hosts reachable from each other?"));
    return error == ETIMEDOUT ? STATUS_TIMEOUT : STATUS_TRANSPORT;
}

/* Root: listens where others can reach it: at the address that it reached rank 0 from. */
static enum status listen_for_members(struct world *world, struct listener *listener)
{
    union address address;
    int error = address_of_socket(world->impl->sockets[0], &address);
    address_set_port(&address, 0);
    if (error == 0)
        error = listener_open(listener, &address, 0);
    if (error == 0)
        return STATUS_OK;
    log_error("world: rank %d on %s cannot listen for its group: %s", world->rank, world->host,
              strerror(error));
    return STATUS_TRANSPORT;
}

static enum status rendezvous_group_open(struct world *world, struct group *group, int color)
{
    enum status status;
    struct world_impl *impl = world->impl;
    struct listener *listener = calloc(1, sizeof *listener);
    union address *addresses = calloc((size_t)world->size, sizeof *addresses);
    bool is_root = group && group->rank == 0, listening = false;
    (void)color;
    if (!listener || !addresses) {
        status = out_of_memory();
        goto out;
    }
    /* A listener, a member's connection each, and some for strangers and files. */
    TRY(world_check_descriptors(world, (group ? group->size : 0) + 4));
    if (is_root && await_members(world, group)) {
        TRY(listen_for_members(world, listener));
        listening = true;
    }
    TRY(world_gather(world, NULL, &listener->address, sizeof listener->address, addresses));
    if (listening)
        TRY(accept_members(world, listener));
    else if (group && !is_root && impl->sockets[group->ranks[0]] < 0)
        TRY(connect_to_root(world, group, &addresses[group->ranks[0]]));
    impl->groups++;
    if (group)
        TRY(group_impl_new(group, impl->groups));
out:
    if (listening)
        listener_close(listener);
    free(listener);
    free(addresses);
    return status;
}

/* -------- opening and closing ----------------------------------------------------------------- */

static void rendezvous_close(struct world *world)
{
    struct world_impl *impl = world->impl;
    if (!impl)
        return;
    for (int rank = 0; impl->sockets && rank < world->size; rank++)
        stream_close(&impl->sockets[rank]);
    free(impl->sockets);
    group_impl_free(impl->all);
    group_free(&impl->all);
    free(impl);
}

static int own_address(const struct world *world, int rank, union address *address)
{
    return address_of_socket(world->impl->sockets[rank], address);
}

static const struct world_ops rendezvous_ops = {
    .barrier = world_rendezvous_barrier,
    .broadcast = world_rendezvous_broadcast,
    .gather = world_rendezvous_gather,
    .collect = world_rendezvous_collect,
    .scatter = world_rendezvous_scatter,
    .own_address = own_address,
    .group_open = rendezvous_group_open,
    .group_close = group_impl_free,
    .fail = world_rendezvous_fail,
    .close_in_child = world_rendezvous_close_in_child,
    .close = rendezvous_close,
};

/* The world as a group. */
static enum status group_of_all(struct world *world)
{
    enum status status;
    int *colors = calloc((size_t)world->size, sizeof *colors);
    if (!colors)
        return out_of_memory();
    TRY(group_from_colors(&world->impl->all, colors, world->size, world->rank));
    TRY(group_impl_new(world->impl->all, 0));
out:
    free(colors);
    return status;
}

/* Before the first connection. All ranks count the need of rank 0, so that ranks with equal limits
 * fail alike. Rank 0 has one connection to every rank here and one in a lifeline. */
static enum status check_descriptors(int size)
{
    enum { FILES = 8 };
    struct descriptors found = descriptors_for(size < INT_MAX / 4 ? 2 * size + FILES : INT_MAX);
    return descriptors_suffice(&found) ? STATUS_OK : descriptors_lack(&found, "this run");
}

enum status world_rendezvous_open(struct world *world, const struct world_options *options)
{
    enum status status;
    struct rendezvous rendezvous = {.token = options->token,
                                    .rank = options->rank,
                                    .world_size = options->size,
                                    .name = world->host,
                                    .timeout_ms = options->startup_timeout_ms,
                                    .listening = options->listening,
                                    .give_up = options->give_up,
                                    .give_up_context = options->give_up_context};
    if (options->rendezvous)
        TRY(rendezvous_parse(options->rendezvous, &rendezvous));
    if (options->size > 1)
        TRY(check_descriptors(options->size));
    world->ops = &rendezvous_ops;
    world->give_up = options->give_up;
    world->give_up_context = options->give_up_context;
    world->rank = options->rank;
    world->size = options->size;
    struct world_impl *impl = world->impl = calloc(1, sizeof *impl);
    if (!impl)
        return out_of_memory();
    impl->sockets = malloc((size_t)world->size * sizeof *impl->sockets);
    if (!impl->sockets) {
        world->size = 0; /* no connections to close */
        return out_of_memory();
    }
    TRY(rendezvous_meet(&rendezvous, impl->sockets));
    TRY(group_of_all(world));
out:
    return status;
}
