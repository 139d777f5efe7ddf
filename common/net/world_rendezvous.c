/*
 * The collective calls of a world that has met by rendezvous. In every group its first rank is the
 * root: the others send it what they have, it answers all of them. Two messages' latency, and W - 1
 * messages each way through one rank: for the dozens of ranks that are started so, as fast as a
 * tree. All wait in poll(2), so that nobody sleeps longer than he must.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/descriptors.h"
#include "common/base/status.h"
#include "common/net/control.h"
#include "common/net/rendezvous.h"
#include "common/net/world_impl.h"

/* Internal to common/net: a world that has met by rendezvous, and its collective calls. */

/* In front of every message; numbers in the machine's order (control.h). */
struct frame {
    uint32_t call;  /* enum world_call, or CALL_FAILED: the root gave up, and why follows as text */
    uint32_t group; /* number of the group in this world */
    uint64_t turn;  /* number of the call in the group */
    uint64_t bytes; /* that follow */
    int64_t status; /* of CALL_FAILED */
};

struct world_impl {
    int *sockets; /* by rank; below 0: no connection to that one */
    struct group *all;
    uint32_t groups; /* made so far */
};

struct group_impl {
    uint32_t number; /* of the group in this world */
    uint64_t turn;   /* of its next call */
};

enum { CALL_FAILED = WORLD_SCATTER + 1 };

static const char *const call_names[] = {
    [WORLD_BARRIER] = "barrier", [WORLD_BROADCAST] = "broadcast", [WORLD_GATHER] = "gather",
    [WORLD_COLLECT] = "collect", [WORLD_SCATTER] = "scatter",     [CALL_FAILED] = "failure",
};

enum {
    GRACE_MS = 2000, /* the root, which knows who is missing, says so before the others give up */
    TELL_MS = 200,
    TEXT_BYTES = 480,
};

/* A collective call: what all functions below are about. */
struct exchange {
    struct world *world;
    const struct group *group;
    struct frame frame; /* that this rank expects of the others, and sends */
};

static int socket_of(const struct exchange *e, int index)
{
    return e->world->impl->sockets[e->group->ranks[index]];
}

/* -------- what goes wrong --------------------------------------------------------------------- */

/* "rank 2 on host2" */
static void name_rank(const struct exchange *e, int index, char *text, size_t size)
{
    int rank = e->group->ranks[index];
    const char *host = e->world->hosts[rank]; /* "" until they have been gathered */
    snprintf(text, size, "rank %d%s%s", rank, host[0] ? " on " : "", host);
}

/* All that have said nothing, from `index` on, as far as there is room. */
static void name_late(const struct exchange *e, int index, char *text, size_t size)
{
    size_t used = 0;
    for (int i = index; i < e->group->size; i++) {
        char name[96], byte;
        if (recv(socket_of(e, i), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0)
            continue;
        name_rank(e, i, name, sizeof name);
        if (used + strlen(name) + 12 > size) {
            snprintf(text + used, size - used, ", others");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", name);
    }
}

/* A root that gives up: the others hear why. */
static void tell_others(const struct exchange *e, enum status status, const char *text)
{
    struct {
        struct frame frame;
        char text[TEXT_BYTES];
    } failed = {.frame = e->frame};
    failed.frame.call = CALL_FAILED;
    failed.frame.status = status;
    failed.frame.bytes = sizeof failed.text;
    snprintf(failed.text, sizeof failed.text, "%s", text);
    for (int i = 1; i < e->group->size; i++) {
        if (socket_of(e, i) >= 0)
            stream_send(socket_of(e, i), &failed, sizeof failed, TELL_MS);
    }
}

/* Logs what `error`, of the connection to member `index`, means; returns its status. `collecting`:
 * this is the root, to which messages come, and none from it is half sent: so all can be told. */
static enum status failed(const struct exchange *e, int error, int index, bool collecting)
{
    enum status status = error == ETIMEDOUT ? STATUS_TIMEOUT : STATUS_TRANSPORT;
    /* A rank that fails says why before it closes its connections. */
    if (error == ECANCELED || (error != ETIMEDOUT && world_cancelled(e->world)))
        return status;
    const char *call = call_names[e->frame.call];
    char who[240], text[TEXT_BYTES];
    name_rank(e, index, who, sizeof who);
    if (error != ETIMEDOUT)
        snprintf(text, sizeof text, "%s: %s has closed its connection%s%s; see what it says itself",
                 call, who, error == ECONNRESET ? "" : ": ",
                 error == ECONNRESET ? "" : strerror(error));
    else {
        if (collecting)
            name_late(e, index, who, sizeof who);
        snprintf(text, sizeof text,
                 "%s: %s did not come to it within %g s; are all processes alive and all hosts "
                 "reachable? Uneven ranks need a larger --timeout",
                 call, who, (double)e->world->timeout_ms / 1000);
    }
    log_error("%s", text);
    if (collecting)
        tell_others(e, status, text);
    return status;
}

/* Is this the message that the call expects? `collecting`: as for failed. */
static enum status check_frame(const struct exchange *e, const struct frame *found, int index,
                               size_t bytes, bool collecting)
{
    const struct frame *mine = &e->frame;
    char who[240], text[TEXT_BYTES];
    if (found->call == mine->call && found->group == mine->group && found->turn == mine->turn &&
        found->bytes == bytes)
        return STATUS_OK;
    name_rank(e, index, who, sizeof who);
    snprintf(text, sizeof text,
             "%s is in another collective call: %s %llu of group %u, %llu bytes, where rank %d is "
             "in %s %llu of group %u, %zu bytes; start all ranks with the same options",
             who, found->call <= CALL_FAILED ? call_names[found->call] : "unknown call",
             (unsigned long long)found->turn, found->group, (unsigned long long)found->bytes,
             e->world->rank, call_names[mine->call], (unsigned long long)mine->turn, mine->group,
             bytes);
    log_error("%s", text);
    if (collecting)
        tell_others(e, STATUS_PROTOCOL, text);
    return STATUS_PROTOCOL;
}

/* -------- between the root and the others ------------------------------------------------------
 */

/* The frame and `bytes` bytes after it, in one piece: one packet where it fits. Caller frees. */
static unsigned char *message_of(const struct exchange *e, const void *data, size_t bytes)
{
    struct frame frame = e->frame;
    unsigned char *message = malloc(sizeof frame + bytes);
    if (!message) {
        log_error("world: no memory for a message of %zu bytes", bytes);
        return NULL;
    }
    frame.bytes = bytes;
    memcpy(message, &frame, sizeof frame);
    if (bytes > 0)
        memcpy(message + sizeof frame, data, bytes);
    return message;
}

/* The frame of member `index`; ECANCELED: given up. Where each waits for itself, as in an elastic
 * job, it warns of what takes long, once. */
static int await_frame(const struct exchange *e, int index, struct frame *frame, int64_t timeout_ms)
{
    const struct world *world = e->world;
    struct pollfd coming = {.fd = socket_of(e, index), .events = POLLIN};
    int64_t begun_ns = clock_now_ns(), waited_ms = 0;
    char who[240];
    bool warns = world->stall_warning_ms > 0 && !world->activity, warned = false;
    while (warns || world->cancelled) {
        int ready = poll(&coming, 1, WORLD_LOOK_MS);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            break;
        waited_ms = (clock_now_ns() - begun_ns) / NS_PER_MS;
        if (world_cancelled(world))
            return ECANCELED;
        if (timeout_ms > 0 && waited_ms >= timeout_ms)
            return ETIMEDOUT;
        if (!warns || warned || waited_ms < world->stall_warning_ms)
            continue;
        warned = true;
        name_rank(e, index, who, sizeof who);
        log_warn("nothing for %.1f s while waiting for %s in a %s; after %g s it is lost "
                 "(--timeout)",
                 (double)waited_ms / 1000, who, call_names[e->frame.call],
                 (double)world->timeout_ms / 1000);
    }
    if (warned)
        log_info("went on after %lld s", (long long)(waited_ms / 1000));
    waited_ms = timeout_ms > 0 ? (clock_now_ns() - begun_ns) / NS_PER_MS : 0;
    return stream_receive(coming.fd, frame, sizeof *frame,
                          timeout_ms == 0 || timeout_ms > waited_ms ? timeout_ms - waited_ms : 1);
}

/* Root: receives from every other member `bytes` bytes to all + index * bytes. The time-out is for
 * all of them to come, and then for the bytes of each to move. */
static enum status collect(const struct exchange *e, unsigned char *all, size_t bytes)
{
    int64_t patience_ms = world_patience_ms(e->world), begun_ns = clock_now_ns();
    for (int i = 1; i < e->group->size; i++) {
        struct frame frame;
        int64_t left_ms = patience_ms - (clock_now_ns() - begun_ns) / NS_PER_MS;
        int error = await_frame(e, i, &frame, patience_ms == 0 ? 0 : left_ms > 0 ? left_ms : 1);
        if (error == 0) {
            enum status status = check_frame(e, &frame, i, bytes, true);
            if (status != STATUS_OK)
                return status;
            error = stream_receive(socket_of(e, i), all + (size_t)i * bytes, bytes, patience_ms);
        }
        if (error != 0)
            return failed(e, error, i, true);
    }
    return STATUS_OK;
}

/* To one other member. */
static enum status send_to(const struct exchange *e, int index, const void *data, size_t bytes)
{
    unsigned char *message = message_of(e, data, bytes);
    if (!message)
        return STATUS_NO_MEMORY;
    int error = stream_send(socket_of(e, index), message, sizeof e->frame + bytes,
                            world_patience_ms(e->world));
    free(message);
    return error == 0 ? STATUS_OK : failed(e, error, index, false);
}

/* Another member: what the root answers, or why it cannot. */
static enum status receive_answer(const struct exchange *e, void *data, size_t bytes)
{
    struct frame frame;
    char text[TEXT_BYTES];
    int socket = socket_of(e, 0);
    int64_t patience_ms = world_patience_ms(e->world);
    int64_t timeout_ms = patience_ms > 0 ? patience_ms + GRACE_MS : 0;
    int error = await_frame(e, 0, &frame, timeout_ms);
    if (error == 0 && frame.call == CALL_FAILED && frame.bytes == sizeof text) {
        error = stream_receive(socket, text, sizeof text, timeout_ms);
        if (error == 0) {
            log_error("%.*s", (int)sizeof text, text);
            return (enum status)frame.status;
        }
    }
    if (error == 0) {
        enum status status = check_frame(e, &frame, 0, bytes, false);
        if (status != STATUS_OK)
            return status;
        error = stream_receive(socket, data, bytes, timeout_ms);
    }
    return error == 0 ? STATUS_OK : failed(e, error, 0, false);
}

/* -------- collective calls -------------------------------------------------------------------- */

static enum status rendezvous_call(struct world *world, const struct group *group,
                                   enum world_call call, const void *in, void *out, size_t bytes)
{
    enum status status = STATUS_OK;
    if (!group)
        group = world->impl->all;
    CHECK(group->rank >= 0);
    const struct exchange e = {
        world, group, {call, group->impl->number, group->impl->turn++, bytes, 0}};
    bool gathers = call == WORLD_BARRIER || call == WORLD_GATHER || call == WORLD_COLLECT;
    size_t answer_bytes = call == WORLD_GATHER ? bytes * (size_t)group->size : bytes;
    if (group->rank > 0) {
        if (gathers)
            TRY(send_to(&e, 0, in, bytes));
        return call == WORLD_COLLECT ? STATUS_OK : receive_answer(&e, out, answer_bytes);
    }
    if (call != WORLD_BROADCAST && bytes > 0)
        memcpy(out, in, bytes);
    if (gathers)
        TRY(collect(&e, out, bytes));
    for (int i = 1; i < group->size && call != WORLD_COLLECT; i++) {
        const unsigned char *answer =
            call == WORLD_SCATTER ? (const unsigned char *)in + (size_t)i * bytes : out;
        TRY(send_to(&e, i, answer, answer_bytes));
    }
out:
    return status;
}

static void world_rendezvous_fail(struct world *world, enum status status, const char *why)
{
    struct world_impl *impl = world->impl;
    const struct exchange e = {.world = world, .group = impl->all};
    if (world->rank == 0)
        tell_others(&e, status, why);
    for (int rank = 0; rank < world->size; rank++)
        stream_close(&impl->sockets[rank]);
}

static void world_rendezvous_close_in_child(const struct world *world)
{
    for (int rank = 0; rank < world->size; rank++) {
        if (world->impl->sockets[rank] >= 0)
            close(world->impl->sockets[rank]);
    }
}

/*
 * The bootstrap without MPI: the ranks meet at an address (../rendezvous), and collective calls go
 * over TCP.
 *
 * Rank 0 has a connection to every rank. A group with another root makes those that it lacks;
 * connections last as long as the world and serve all groups. That is right because calls block:
 * what two ranks send each other comes in the order of their calls.
 */

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
    if (world_cancelled(world))
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
    .call = rendezvous_call,
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
 * fail alike. Rank 0 has one connection to every rank here and one in a watchdog. */
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
                                    .cancelled = options->cancelled,
                                    .cancel_context = options->cancel_context};
    if (options->rendezvous)
        TRY(rendezvous_parse(options->rendezvous, &rendezvous));
    if (options->size > 1)
        TRY(check_descriptors(options->size));
    world->ops = &rendezvous_ops;
    world->cancelled = options->cancelled;
    world->cancel_context = options->cancel_context;
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
