/*
 * The collective calls of a world that has met by rendezvous. The first rank of every group is its
 * root: the other ranks send it their data, and it answers all of them. This costs the latency of
 * two messages, and W - 1 messages each way through one rank. For the dozens of ranks that are
 * started this way it is as fast as a tree. All ranks wait in poll(2), so that no rank sleeps
 * longer than necessary.
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
#include "common/net/secure.h"
#include "common/net/world_impl.h"

struct group_impl {
    uint32_t number; /* of the group in this world */
    uint64_t turn;   /* of the group's last call, from 1 */
};

struct world_impl {
    struct group all; /* the world as a group */
    struct group_impl calls;
    uint32_t groups; /* made so far */
    int sockets[];   /* by rank; below 0: no connection to that rank. Then the ranks of `all`. */
};

enum {
    CALL_FAILED = WORLD_SCATTER + 1, /* the root has given up; its reason follows as text */
    /* The other ranks wait longer by this: the root knows the missing rank and reports it before
     * they give up. If it is missing itself, ranks that can continue without it lose this time. */
    GRACE_MS = 2000,
    GRACE_SHRINKS_MS = 500,
    TELL_MS = 200,
    TEXT_BYTES = 480,
};

static const char *call_name(uint32_t type)
{
    static const char *const names[] = {
        [WORLD_BARRIER] = "barrier", [WORLD_BROADCAST] = "broadcast", [WORLD_GATHER] = "gather",
        [WORLD_COLLECT] = "collect", [WORLD_SCATTER] = "scatter",     [CALL_FAILED] = "failure",
    };
    bool known = type >= CONTROL_WORLD && type <= CONTROL_WORLD + CALL_FAILED;
    return known ? names[type - CONTROL_WORLD] : "unknown call";
}

/* A collective call, for all functions below. */
struct exchange {
    struct world *world;
    const struct group *group;
    /* This rank sends it, and expects it from the others. Its type is CONTROL_WORLD + the call.
     * CALL_FAILED has a status. */
    struct control_head mine;
};

static int socket_of(const struct exchange *e, int index)
{
    return e->world->impl->sockets[e->group->ranks[index]];
}

/* -------- errors ------------------------------------------------------------------------------ */

/* "rank 2 on host2" */
static void name_rank(const struct exchange *e, int index, char *text, size_t size)
{
    int rank = e->group->ranks[index];
    const char *host = e->world->hosts[rank]; /* "" until they have been gathered */
    snprintf(text, size, "rank %d%s%s", rank, host[0] ? " on " : "", host);
}

/* Lists all members from `index` on that have sent nothing, as far as they fit. */
static void name_late(const struct exchange *e, int index, char *text, size_t size)
{
    size_t used = 0;
    for (int i = index; i < e->group->size; i++) {
        char name[96], byte;
        if (recv(socket_of(e, i), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
            secure_has_input(socket_of(e, i)))
            continue;
        name_rank(e, i, name, sizeof name);
        if (used + strlen(name) + 12 > size) {
            snprintf(text + used, size - used, ", others");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", name);
    }
}

/* Called by a root that gives up: sends the reason to the other ranks. */
static void tell_others(const struct exchange *e, enum status status, const char *text)
{
    struct control_head failed = e->mine;
    failed.type = CONTROL_WORLD + CALL_FAILED;
    failed.value = status;
    for (int i = 1; i < e->group->size; i++) {
        if (socket_of(e, i) >= 0)
            control_send(socket_of(e, i), &failed, sizeof failed, text,
                         strnlen(text, TEXT_BYTES - 1), TELL_MS);
    }
}

/* Whether this is the message that the call expects. */
static bool is_turn(const struct control_head *mine, const struct control_head *found)
{
    return found->job == mine->job && found->type == mine->type && found->group == mine->group &&
           found->sequence == mine->sequence && found->bytes == mine->bytes;
}

/* Logs the `error` of the connection to member `index` and returns its status. 0: it has sent
 * `found`, which is no turn of this call. `found` is NULL if this rank was sending. */
static enum status failed(const struct exchange *e, int error, int index,
                          const struct control_head *found)
{
    const struct control_head *mine = &e->mine;
    enum status status = error == 0           ? STATUS_PROTOCOL
                         : error == ETIMEDOUT ? STATUS_TIMEOUT
                                              : STATUS_TRANSPORT;
    /* A rank that fails logs its reason before it closes its connections. */
    if (error == ECANCELED || (status == STATUS_TRANSPORT && world_cancelled(e->world)))
        return status;
    /* A root that receives has no message half sent, so it can send the error to all. */
    bool collecting = found && index > 0;
    const char *call = call_name(mine->type);
    char who[240], text[TEXT_BYTES];
    name_rank(e, index, who, sizeof who);
    if (error == 0)
        snprintf(text, sizeof text,
                 "%s is in another %s: %s %llu of group %u, %zu bytes; rank %d is in "
                 "%s %llu of group %u, %zu bytes; start all ranks with the same options",
                 who, found->job == mine->job ? "collective call" : "job", call_name(found->type),
                 (unsigned long long)found->sequence, found->group, (size_t)found->bytes,
                 e->world->rank, call, (unsigned long long)mine->sequence, mine->group,
                 (size_t)mine->bytes);
    else if (error != ETIMEDOUT)
        snprintf(text, sizeof text, "%s: %s has closed its connection%s%s; see its own message",
                 call, who, error == ECONNRESET ? "" : ": ",
                 error == ECONNRESET ? "" : strerror(error));
    else {
        if (collecting)
            name_late(e, index, who, sizeof who);
        snprintf(text, sizeof text,
                 "%s: %s did not reach this call within %g s; are all processes alive and all "
                 "hosts reachable? Uneven ranks need a larger --timeout",
                 call, who, (double)e->world->timeout_ms / 1000);
    }
    log_error("%s", text);
    if (collecting)
        tell_others(e, status, text);
    return status;
}

/* -------- between the root and the others ----------------------------------------------------- */

/* Receives the turn of member `index`, without the data. ECANCELED: the caller gave up. Without a
 * watchdog, as in an elastic job, it warns once about a long wait. */
static int await_turn(const struct exchange *e, int index, struct control_head *found,
                      int64_t deadline_ns)
{
    struct world *world = e->world;
    int socket = socket_of(e, index), error = ETIMEDOUT;
    int64_t begun_ns = clock_now_ns(), warn_ns = begun_ns + world->stall_warning_ms * NS_PER_MS;
    bool warns = world->stall_warning_ms > 0 && !world->activity &&
                 (deadline_ns == 0 || warn_ns < deadline_ns);
    if (warns)
        error = stream_wait(socket, POLLIN, warn_ns, world_looks, world);
    warns = warns && error == ETIMEDOUT;
    if (warns) {
        char who[240];
        name_rank(e, index, who, sizeof who);
        log_warn("no message for %.1f s while waiting for %s in a %s; --timeout ends the wait "
                 "after %g s",
                 (double)world->stall_warning_ms / 1000, who, call_name(e->mine.type),
                 (double)world->timeout_ms / 1000);
    }
    if (error == ETIMEDOUT)
        error = stream_wait(socket, POLLIN, deadline_ns, world_looks, world);
    if (warns && error == 0)
        log_info("continued after %lld s", (long long)((clock_now_ns() - begun_ns) / NS_PER_S));
    return error ? error : stream_receive(socket, found, sizeof *found, world_patience_ms(world));
}

/* Returns the status of a rank that hears of the root's failure. Its cause may concern the root
 * alone, such as a full disk. Ranks that can continue without it must not take that for their own
 * failure. */
static enum status status_told(const struct world *world, enum status told)
{
    bool stays = told == STATUS_PROTOCOL || told == STATUS_TIMEOUT || told == STATUS_DIVERGED ||
                 told == STATUS_WRONG;
    if (told == STATUS_OK)
        return STATUS_PROTOCOL;
    return stays || !world->elastic ? told : STATUS_TRANSPORT;
}

/* Receives the data of member `index`. From the root it may be an error instead. `pause_ms`: the
 * limit for each pause while the data move. */
static enum status receive_from(const struct exchange *e, int index, void *data,
                                int64_t deadline_ns, int64_t pause_ms)
{
    struct control_head found;
    char text[TEXT_BYTES] = "";
    int error = await_turn(e, index, &found, deadline_ns);
    bool told = error == 0 && index == 0 && found.type == CONTROL_WORLD + CALL_FAILED &&
                found.job == e->mine.job && found.bytes < sizeof text;
    if (error == 0 && !told && !is_turn(&e->mine, &found))
        return failed(e, 0, index, &found);
    if (error == 0)
        error = stream_receive(socket_of(e, index), told ? text : data, found.bytes, pause_ms);
    if (error != 0)
        return failed(e, error, index, &found);
    if (!told)
        return STATUS_OK;
    log_error("%s", text);
    return status_told(e->world, (enum status)found.value);
}

/* The root receives the data of all members to `all`, and another member those of the root. The
 * time-out limits the time until all have come. */
static enum status receive(const struct exchange *e, unsigned char *all)
{
    enum status status = STATUS_OK;
    int first = e->group->rank == 0, end = first ? e->group->size : 1;
    int64_t grace_ms = first ? 0 : e->world->reunion ? GRACE_SHRINKS_MS : GRACE_MS;
    int64_t patience_ms = world_patience_ms(e->world);
    int64_t timeout_ms = patience_ms > 0 ? patience_ms + grace_ms : 0;
    int64_t deadline_ns = stream_deadline_ns(timeout_ms);
    for (int i = first; i < end && status == STATUS_OK; i++)
        status = receive_from(e, i, all + (size_t)i * e->mine.bytes, deadline_ns, timeout_ms);
    return status;
}

/* Sends to one other member. */
static enum status send_to(const struct exchange *e, int index, const void *data, size_t bytes)
{
    struct control_head head = e->mine;
    int error = control_send(socket_of(e, index), &head, sizeof head, data, bytes,
                             world_patience_ms(e->world));
    return error == 0 ? STATUS_OK : failed(e, error, index, NULL);
}

/* -------- collective calls -------------------------------------------------------------------- */

static enum status rendezvous_call(struct world *world, const struct group *group,
                                   enum world_call call, const void *in, void *out, size_t bytes)
{
    enum status status = STATUS_OK;
    if (!group)
        group = &world->impl->all;
    CHECK(group->rank >= 0);
    bool gathers = call == WORLD_BARRIER || call == WORLD_GATHER || call == WORLD_COLLECT;
    size_t answer_bytes = call == WORLD_GATHER ? bytes * (size_t)group->size : bytes;
    const struct exchange e = {world,
                               group,
                               {.type = CONTROL_WORLD + (uint32_t)call,
                                .group = group->impl->number,
                                .bytes = group->rank > 0 ? answer_bytes : bytes,
                                .job = world->run_id,
                                .sequence = ++group->impl->turn}};
    if (group->rank > 0) {
        if (gathers)
            TRY(send_to(&e, 0, in, bytes));
        return call == WORLD_COLLECT ? STATUS_OK : receive(&e, out);
    }
    if (call != WORLD_BROADCAST && bytes > 0)
        memcpy(out, in, bytes);
    if (gathers)
        TRY(receive(&e, out));
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
    const struct exchange e = {.world = world, .group = &impl->all, .mine.job = world->run_id};
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
 * The bootstrap without MPI: the ranks meet at an address (rendezvous.c), and collective calls use
 * TCP.
 *
 * Rank 0 has a connection to every rank. A group with another root adds the missing connections;
 * they last as long as the world and serve all groups. This is correct because calls block: the
 * messages between two ranks arrive in the order of their calls.
 */

_Static_assert((int)WORLD_HOST_BYTES == (int)RENDEZVOUS_NAME_BYTES, "names of hosts");

/* -------- groups ------------------------------------------------------------------------------ */

static void rendezvous_group_close(struct group *group)
{
    free(group->impl);
    group->impl = NULL;
}

static enum status rendezvous_group_open(struct world *world, struct group *group, int color)
{
    enum status status;
    struct world_impl *impl = world->impl;
    union address here = address_loopback();
    bool awaits = false;
    (void)color;
    /* A listener, a connection to each member, and some for strangers and files. */
    TRY(world_check_descriptors(world, (group ? group->size : 0) + 4));
    for (int i = 1; group && group->rank == 0 && i < group->size; i++) {
        int *socket = &impl->sockets[group->ranks[i]];
        awaits = awaits || *socket < 0;
        *socket = *socket < 0 ? LISTENER_AWAITED : *socket;
    }
    /* The other members can reach the root at the address from which it reached rank 0. */
    if (awaits && address_of_socket(impl->sockets[0], &here) != 0)
        here = address_loopback(); /* rank 0 has ended: the next call fails */
    address_set_port(&here, 0);
    TRY(world_connect_to_root(world, group ? group->ranks[0] : -1, awaits ? &here : NULL,
                              impl->sockets));
    impl->groups++;
    if (!group)
        return STATUS_OK;
    group->impl = calloc(1, sizeof *group->impl);
    if (!group->impl)
        return FAIL(STATUS_NO_MEMORY, "world: out of memory");
    group->impl->number = impl->groups;
out:
    return status;
}

/* -------- opening and closing ----------------------------------------------------------------- */

static void rendezvous_close(struct world *world)
{
    for (int rank = 0; world->impl && rank < world->size; rank++)
        stream_close(&world->impl->sockets[rank]);
    free(world->impl);
}

static int socket_to(const struct world *world, int rank)
{
    return world->impl->sockets[rank];
}

static const struct world_ops rendezvous_ops = {
    .call = rendezvous_call,
    .socket_to = socket_to,
    .group_open = rendezvous_group_open,
    .group_close = rendezvous_group_close,
    .fail = world_rendezvous_fail,
    .close_in_child = world_rendezvous_close_in_child,
    .close = rendezvous_close,
};

/* Runs before the first connection. All ranks check the need of rank 0, so that ranks with equal
 * limits fail alike. Rank 0 has two connections to every rank: one here and one in a watchdog. */
static enum status check_descriptors(int size)
{
    enum { FILES = 8 };
    struct descriptors found = descriptors_for(size < INT_MAX / 4 ? 2 * size + FILES : INT_MAX);
    return descriptors_check(&found, "this run");
}

static enum status prepare(struct world *world, int rank, int size)
{
    world->ops = &rendezvous_ops;
    world->rank = rank;
    world->size = size;
    struct world_impl *impl = calloc(1, sizeof *impl + 2 * (size_t)size * sizeof(int));
    world->impl = impl;
    if (!impl)
        return FAIL(STATUS_NO_MEMORY, "world: out of memory");
    int *ranks = impl->sockets + size;
    for (int r = 0; r < size; r++)
        ranks[r] = r;
    impl->all = (struct group){size, rank, ranks, &impl->calls};
    return STATUS_OK;
}

enum status world_rendezvous_adopt(struct world *world, int rank, int size, const int *sockets)
{
    enum status status;
    TRY(prepare(world, rank, size));
    memcpy(world->impl->sockets, sockets, (size_t)size * sizeof *sockets);
out:
    return status;
}

bool world_rendezvous_broken(void *context)
{
    const struct world *world = context;
    for (int rank = 0; rank < world->size; rank++) {
        struct pollfd polled = {.fd = world->impl->sockets[rank], .events = POLLRDHUP};
        if (polled.fd >= 0 && poll(&polled, 1, 0) > 0)
            return true;
    }
    return false;
}

enum status world_rendezvous_open(struct world *world, const struct world_options *options)
{
    enum status status;
    struct rendezvous rendezvous = {.name = world->host, .options = options};
    if (options->rendezvous)
        TRY(rendezvous_parse(options->rendezvous, &rendezvous));
    if (options->size > 1)
        TRY(check_descriptors(options->size));
    world->run_id = options->token; /* until the ranks have agreed */
    world->cancelled = options->cancelled;
    world->cancel_context = options->cancel_context;
    TRY(prepare(world, options->rank, options->size));
    status = rendezvous_meet(&rendezvous, world->impl->sockets);
out:
    return status;
}
