/*
 * Finds the address by which other ranks reach a rank. A host has several (docker0 has 172.17.0.1
 * on every host), and only a connection shows which of them works. After a rendezvous each rank has
 * a connection to rank 0. Under MPI the first rank of each host makes one. Rank 0 offers all its
 * addresses, or the one of --subnet, and the first address that leads to rank 0 counts. The same
 * connections show how far away the hosts are.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/base/descriptors.h"
#include "common/base/text.h"
#include "common/net/address.h"
#include "common/net/control.h"
#include "common/net/world_impl.h"

/* The findings of a rank. All bytes are set, with padding. */
struct reach {
    union address at;
    double round_trip_s; /* to rank 0 */
};

/* Collects what all have found. Keeps the address that `rank` has found, and the longest round
 * trip. */
static enum status share(struct world *world, const struct reach *mine, int rank)
{
    enum status status;
    struct reach *all = calloc((size_t)world->size, sizeof *all);
    if (!all)
        return FAIL(STATUS_NO_MEMORY, "world: no memory for the addresses of %d ranks",
                    world->size);
    TRY(world_gather(world, NULL, mine, sizeof *mine, all));
    *world->address = all[rank].at;
    for (int r = 0; r < world->size; r++)
        world->round_trip_s = fmax(world->round_trip_s, all[r].round_trip_s);
out:
    free(all);
    return status;
}

/* -------- by the connections of a rendezvous -------------------------------------------------- */

/* This process's end of the connection to `rank`. False: there is none any more. */
static bool own_end(const struct world *world, int rank, union address *address)
{
    return address_of_socket(world->ops->socket_to(world, rank), address) == 0;
}

/* Rank 0: the address at which other hosts reached it; loopback if only its own host did. */
static union address reached_at(const struct world *world)
{
    union address found = address_loopback(), own;
    for (int rank = world->size - 1; rank > 0; rank--) {
        bool other_host = world->host_numbers[rank] != 0;
        if (own_end(world, rank, &own) && !address_is_loopback(&own) &&
            (other_host || address_is_loopback(&found)))
            found = own;
    }
    return found;
}

static enum status by_connections(struct world *world)
{
    struct reach mine;
    memset(&mine, 0, sizeof mine);
    if (world->rank == 0)
        mine.at = reached_at(world);
    else if (!own_end(world, 0, &mine.at))
        mine.at = address_loopback(); /* rank 0 has ended: the next call fails */
    if (world->host_numbers[world->rank] != 0)
        mine.round_trip_s = stream_round_trip_s(world->ops->socket_to(world, 0));
    address_set_port(&mine.at, 0);
    /* Only ranks of rank 0's own host reach it by loopback. */
    return share(world, &mine, address_is_loopback(&mine.at) ? 0 : world->rank);
}

/* -------- by trial ---------------------------------------------------------------------------- */

enum { OFFERS_MOST = 16, FIRST_TRIAL_MS = 1000, ANSWER_MS = 3000 };

struct offer {
    int count;
    union address at[OFFERS_MOST]; /* with the port */
};

/* It has given up after ANSWER_MS and tries again. A send to it would succeed. */
static bool has_given_up(int socket)
{
    char byte;
    return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Rank 0: awaits one rank of every other host. */
static enum status answer_all(struct world *world, struct listener *listener)
{
    int left = 0, missing = 0;
    int64_t deadline_ns = stream_deadline_ns(world->timeout_ms);
    bool *come = calloc((size_t)world->size, sizeof *come);
    if (!come)
        return FAIL(STATUS_NO_MEMORY, "world: no memory for %d ranks", world->size);
    for (int rank = 1; rank < world->size; rank++)
        left += world->host_numbers[rank] == rank;
    while (left > 0) {
        struct control_head answer = {.type = CONTROL_ANSWER, .job = world->run_id};
        struct hello hello;
        int socket;
        if (listener_wait(listener, deadline_ns, NULL, 0, &hello, &socket, NULL) != LISTENER_HELLO)
            break;
        int rank = hello.head.value;
        bool ours = hello_is_of(&hello, world->run_id, world->size) && rank > 0 &&
                    world->host_numbers[rank] == rank && !has_given_up(socket);
        if (ours && control_send(socket, &answer, sizeof answer, NULL, 0, ANSWER_MS) == 0 &&
            !come[rank]) {
            if (address_is_loopback(world->address))
                address_of_socket(socket, world->address);
            come[rank] = true;
            left--;
        }
        stream_close(&socket);
    }
    while (missing < world->size &&
           (world->host_numbers[missing] != missing || missing == 0 || come[missing]))
        missing++;
    free(come);
    address_set_port(world->address, 0);
    if (left == 0)
        return STATUS_OK;
    return FAIL(STATUS_TIMEOUT,
                "rank %d on %s has not reached rank 0 on %s within %g s; name a network that "
                "connects all hosts with --subnet",
                missing, world->hosts[missing], world->host, (double)world->timeout_ms / 1000);
}

/* One attempt. True: it reached rank 0; *mine has this rank's end of the connection. */
static bool try_one(const struct world *world, const union address *address, int64_t timeout_ms,
                    struct reach *mine)
{
    struct control_head answer;
    struct control_input input = {.job = world->run_id};
    int socket;
    if (listener_join(address, world->run_id, world->rank, timeout_ms, &socket) != 0)
        return false;
    bool found =
        control_receive(socket, &answer, sizeof answer, &input, ANSWER_MS, NULL, NULL) == 0 &&
        address_of_socket(socket, &mine->at) == 0;
    mine->round_trip_s = stream_round_trip_s(socket);
    stream_close(&socket);
    address_set_port(&mine->at, 0);
    return found;
}

/* The first rank of another host: each round waits longer than the one before. */
static enum status try_all(const struct world *world, const struct offer *offer, struct reach *mine)
{
    char tried[512], text[ADDRESS_TEXT_BYTES];
    struct line line = line_in(tried, sizeof tried);
    int64_t begun_ns = clock_now_ns(), waited_ms = 0;
    for (int64_t round_ms = FIRST_TRIAL_MS;
         offer->count > 0 && (world->timeout_ms == 0 || waited_ms < world->timeout_ms);
         round_ms *= 2) {
        for (int i = 0; i < offer->count; i++) {
            if (try_one(world, &offer->at[i], round_ms, mine))
                return STATUS_OK;
        }
        clock_sleep_until_ns(clock_now_ns() + WORLD_LOOK_MS * NS_PER_MS);
        waited_ms = (clock_now_ns() - begun_ns) / NS_PER_MS;
    }
    for (int i = 0; i < offer->count; i++)
        line_add(&line, " %s", address_text(&offer->at[i], text));
    return FAIL(STATUS_TIMEOUT,
                "rank %d on %s reached rank 0 on %s at none of its addresses (it has:%s) within "
                "%g s; name a network that connects all hosts with --subnet",
                world->rank, world->host, world->hosts[0], tried, (double)world->timeout_ms / 1000);
}

static enum status listen_for_all(struct listener *listener, const char *subnet,
                                  struct offer *offer)
{
    enum status status;
    union address any = address_any();
    if (subnet)
        TRY(address_choose(subnet, false, &offer->at[0]));
    int error = listener_open(listener, subnet ? &offer->at[0] : &any, 0);
    if (error != 0)
        return FAIL(status_from_errno(error), "rank 0 cannot listen for the other ranks: %s",
                    strerror(error));
    offer->count = subnet ? 1 : address_list(offer->at, OFFERS_MOST);
    for (int i = 0; i < offer->count; i++)
        address_set_port(&offer->at[i], address_port(&listener->address));
    status = STATUS_OK;
out:
    return status;
}

/* If one rank cannot start, all ranks end: the others would wait for it. That rank has logged the
 * reason. */
static enum status together(struct world *world, enum status mine)
{
    double failed = mine != STATUS_OK;
    enum status told = world_max(world, NULL, &failed, 1);
    if (mine != STATUS_OK || told != STATUS_OK)
        return mine != STATUS_OK ? mine : told;
    return failed > 0 ? STATUS_TRANSPORT : STATUS_OK;
}

static enum status by_trial(struct world *world, const char *subnet)
{
    enum status status = STATUS_OK;
    struct offer offer;
    struct listener listener = {.socket = -1};
    int first = world->host_numbers[world->rank]; /* of this host */
    struct reach mine;
    memset(&offer, 0, sizeof offer);
    memset(&mine, 0, sizeof mine);
    mine.at = address_loopback();
    if (world->rank == 0)
        status = listen_for_all(&listener, subnet, &offer);
    else if (world->rank == first && subnet)
        status = address_choose(subnet, false, &mine.at); /* only whether there is one */
    TRY(together(world, status));
    TRY(world_broadcast(world, NULL, &offer, sizeof offer));
    if (world->rank == 0)
        TRY(answer_all(world, &listener));
    else if (world->rank == first)
        TRY(try_all(world, &offer, &mine));
    if (world->rank == 0)
        mine.at = *world->address;
    status = share(world, &mine, first);
out:
    listener_close(&listener);
    return status;
}

/* -------- connections to a root --------------------------------------------------------------- */

static enum status socket_failed(const char *what, const union address *address, int error)
{
    char host[ADDRESS_TEXT_BYTES];
    return FAIL(error == ETIMEDOUT ? STATUS_TIMEOUT : STATUS_TRANSPORT, "%s %s port %d: %s; %s",
                what, address_text(address, host), address_port(address), strerror(error),
                descriptors_advice(error,
                                   "is it the right network (see --subnet), and does a firewall "
                                   "let connections between the hosts through?"));
}

/* The root: lets in the ranks that it awaits. */
static enum status let_in_all(struct world *world, struct listener *listener, int *sockets)
{
    int missing = world_let_in(world, listener, sockets, world->size);
    if (missing < 0)
        return STATUS_OK;
    if (world_cancelled(world))
        return STATUS_TRANSPORT;
    return FAIL(
        STATUS_TIMEOUT,
        "rank %d on %s has not connected to rank %d on %s within %g s; is its host reachable "
        "over the network in use (see --subnet)? A slow start needs a larger "
        "--startup-timeout",
        missing, world->hosts[missing], world->rank, world->host, (double)world->timeout_ms / 1000);
}

enum status world_connect_to_root(struct world *world, int root, const union address *at,
                                  int *sockets)
{
    enum status status = STATUS_OK;
    char what[96];
    int error = 0;
    struct listener listener = {.socket = -1};
    union address *all = calloc((size_t)world->size, sizeof *all);
    if (!all)
        TRY(FAIL(STATUS_NO_MEMORY, "world: no memory for the addresses of %d ranks", world->size));
    if (at && (error = listener_open(&listener, at, 0)) != 0) {
        snprintf(what, sizeof what, "rank %d cannot listen for the other ranks on", world->rank);
        status = socket_failed(what, at, error);
    }
    /* Port 0: the rank does not listen. If it should, it has logged the reason. */
    enum status told = world_gather(world, NULL, &listener.address, sizeof listener.address, all);
    TRY(status);
    TRY(told);
    if (at)
        TRY(let_in_all(world, &listener, sockets));
    if (root < 0 || root == world->rank || sockets[root] >= 0)
        goto out;
    TRY(address_port(&all[root]) == 0 ? STATUS_TRANSPORT : STATUS_OK);
    error =
        listener_join(&all[root], world->run_id, world->rank, world->timeout_ms, &sockets[root]);
    snprintf(what, sizeof what, "cannot connect to rank %d at", root);
    status = error == 0 ? STATUS_OK : socket_failed(what, &all[root], error);
out:
    listener_close(&listener);
    free(all);
    return status;
}

/* -------- the interface ----------------------------------------------------------------------- */

enum status world_find_address(struct world *world, const char *subnet)
{
    world->address = malloc(sizeof *world->address);
    if (!world->address)
        return FAIL(STATUS_NO_MEMORY, "world: out of memory");
    *world->address = address_loopback();
    if (world->local_size == world->size || world->ops->in_one_process)
        return STATUS_OK;
    return world->ops->socket_to ? by_connections(world) : by_trial(world, subnet);
}

enum status world_choose_address(const struct world *world, const char *subnet,
                                 union address *address)
{
    if (subnet)
        return address_choose(subnet, false, address);
    *address = world->address ? *world->address : address_loopback();
    return STATUS_OK;
}
