/*
 * Newcomers enter a running world. Every rank keeps a *door*, a second socket that listens. A
 * newcomer knocks at one of them, and then listens for a leader:
 *
 *     newcomer  hello, KNOCK     the job's options, where I listen, and a ticket
 *     rank      ANSWER           wait, or the reason against it
 *
 * A rank looks at its door between two steps, and then the ranks agree on the step after which they
 * leave their world. They meet as after a failure (shrink.c). Their claims tell the leader who has
 * knocked. It calls on those processes, after which they take part like the others:
 *
 *     leader    hello, DECISION  with the ticket; your identity, and where all members listen
 *     newcomer  READY
 *     leader    GO
 *
 * Newcomers are no members of the last world, so they have no vote on who may follow it. One that
 * gets no GO gives up its identity and its socket, and knocks again: to those who may have entered
 * the world with it, it has ended. An identity is given once. A leader gives one above all that any
 * comer knows, and one of the comers knows all identities of the world that they follow. A leader
 * calls on a newcomer once. One that does not answer costs the others an attempt.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/net/host.h"
#include "common/net/rendezvous.h"
#include "common/net/secure.h"
#include "common/net/shrink_impl.h"
#include "common/net/world_impl.h"

enum {
    JOB_BYTES = 4096, /* the options as text */
    KNOCK_MS = 5000,  /* from hello to KNOCK; from KNOCK to the connection to the newcomer */
    CALL_MS = 300,    /* the ranks that wait for the leader are patient for longer */
    LOOK_MS = 10,     /* in one look, for connections to newcomers */
    VISITORS = 32,    /* at one door; further ones come again */
    EVENTS_MOST = 16, /* of one look at the door: strangers do not delay a step */
    DISMISSED_MOST = 8,
};

/* Followed by the job's options. */
struct knock {
    struct control_head head;
    uint64_t after; /* the step after which it wants to enter */
    struct invitation invitation;
    char job[JOB_BYTES];
};

enum { KNOCK_BYTES = offsetof(struct knock, job) };

struct visitor {
    int64_t until_ns;                /* for its knock, then for the connection to it */
    bool knocked, awaited, admitted; /* awaited: a look has waited for the connection */
    int call;                        /* the connection that shows that others can reach it */
    struct control_input input;
    struct knock knock;
};

struct door {
    struct listener listener;
    uint64_t token;
    uint64_t step;       /* of the last look */
    int most;            /* workers of which an epoch has a step; 0: any number */
    const char *address; /* of a newcomer: where it knocks, and from which step on */
    uint64_t after;
    int count;
    int sockets[VISITORS];
    struct visitor visitors[VISITORS];
    char job[JOB_BYTES];
};

/* -------- the door ---------------------------------------------------------------------------- */

static struct door *door_new(const struct world_options *options)
{
    struct door *door = calloc(1, sizeof *door);
    if (!door)
        return NULL;
    door->listener.socket = -1;
    door->token = options->token;
    door->after = options->join_after;
    door->address = options->rendezvous;
    snprintf(door->job, sizeof door->job, "%s", options->job);
    return door;
}

static int door_listen(struct door *door, const union address *at)
{
    return listener_open(&door->listener, at, VISITORS);
}

/* A rank without a door works on. */
static void warn_of_door(int error)
{
    if (error != 0)
        log_warn("join: no newcomer can enter at this worker: %s", strerror(error));
}

struct door *door_open(const union address *here, bool first, const struct world_options *options)
{
    struct rendezvous place;
    struct door *door = door_new(options);
    if (!door) {
        warn_of_door(ENOMEM);
        return NULL;
    }
    union address at = *here;
    if (first && rendezvous_parse(options->rendezvous, &place) == STATUS_OK)
        address_set_port(&at, place.port);
    /* The rendezvous may have had another address of this host, or another program has its port. */
    if (door_listen(door, &at) != 0)
        warn_of_door(door_listen(door, here));
    return door;
}

static void dismiss(struct door *door, int index)
{
    stream_close(&door->sockets[index]);
    stream_close(&door->visitors[index].call);
    door->count--;
    door->sockets[index] = door->sockets[door->count];
    door->visitors[index] = door->visitors[door->count];
}

static void door_close(struct door **door)
{
    if (!*door)
        return;
    while ((*door)->count > 0)
        dismiss(*door, (*door)->count - 1);
    listener_close(&(*door)->listener);
    free(*door);
    *door = NULL;
}

static void door_close_in_child(const struct door *door)
{
    for (int i = 0; door && i < door->count; i++) {
        close(door->sockets[i]);
        if (door->visitors[i].call >= 0)
            close(door->visitors[i].call);
    }
    if (door && door->listener.socket >= 0)
        close(door->listener.socket);
}

void door_clear(struct door *door)
{
    for (int i = door ? door->count - 1 : -1; i >= 0; i--) {
        if (door->visitors[i].admitted && door->visitors[i].knock.after <= door->step)
            dismiss(door, i);
    }
}

/* The newcomers that may enter the next world; `door` may be NULL. */
static void door_guests(const struct door *door, struct invitation guests[SHRINK_GUESTS_MOST])
{
    int count = 0;
    for (int i = 0; door && i < door->count && count < SHRINK_GUESTS_MOST; i++) {
        const struct visitor *visitor = &door->visitors[i];
        if (visitor->admitted && visitor->knock.after <= door->step)
            guests[count++] = visitor->knock.invitation;
    }
}

/* Someone has said hello. */
static void receive_visitor(struct door *door, const struct hello *hello, int socket)
{
    const char *why = NULL;
    if (hello->head.value != HELLO_NEWCOMER)
        why = "rendezvous: another job has begun there; choose another port, or join it with "
              "--elastic --join instead of --rendezvous, --rank and --world-size";
    else if (hello->head.protocol != CONTROL_PROTOCOL ||
             strcmp(hello->version, PSRING_VERSION) != 0)
        why = "join: this process is another version of psring than the job; start all from one "
              "build";
    else if (hello->head.job != door->token)
        why = "join: this process belongs to another job; give all workers one --token "
              "(PSRING_TOKEN)";
    if (why)
        rendezvous_tell(socket, hello->head.job, STATUS_USAGE, why);
    if (why || door->count == VISITORS) {
        stream_close(&socket);
        return;
    }
    door->sockets[door->count] = socket;
    door->visitors[door->count++] = (struct visitor){
        .until_ns = clock_now_ns() + KNOCK_MS * NS_PER_MS, .call = -1, .input.job = door->token};
}

/* Whether a leader will be able to call on it. ETIMEDOUT: not known at look_end_ns. Then the next
 * look asks again, because the first packets of a connection may be lost. The newcomer's listener
 * takes this hello for a stranger's. */
static int reach(struct visitor *visitor, int64_t look_end_ns)
{
    struct hello hello = hello_from(HELLO_NEWCOMER, 0, 0);
    int error = stream_finish_connect(look_end_ns, &visitor->call);
    if (error == ETIMEDOUT && visitor->call >= 0 && clock_now_ns() < visitor->until_ns)
        return ETIMEDOUT;
    if (error == 0) /* a busy newcomer may need longer for TLS */
        (void)control_send(visitor->call, &hello, sizeof hello, NULL, 0, CALL_MS);
    stream_close(&visitor->call);
    return error == ETIMEDOUT ? EHOSTUNREACH : error;
}

/* Writes the reason against a newcomer that has knocked. False: there is none. */
static bool objection(const struct door *door, const struct knock *knock, const struct world *world,
                      bool reachable, char *text, size_t size)
{
    char at[ADDRESS_URI_BYTES], found[200];
    int admitted = 0;
    for (int i = 0; i < door->count; i++)
        admitted += door->visitors[i].admitted;
    if (text_difference(door->job, knock->job, found, sizeof found))
        snprintf(text, size,
                 "join: this worker was started with %s; start all workers with the same options",
                 found);
    else if (world->reunion->count > SHRINK_RANKS_MOST - VISITORS)
        snprintf(text, size,
                 "join: %d workers have joined the job so far, expected fewer than %d; "
                 "start it again",
                 world->reunion->count, SHRINK_RANKS_MOST - VISITORS);
    else if (door->most > 0 && world->size + admitted >= door->most)
        snprintf(text, size,
                 "join: the job has %d workers, and an epoch has no step for more; wait until one "
                 "leaves",
                 world->size);
    else if (!reachable)
        snprintf(text, size,
                 "join: the job cannot reach this worker at %s; let no firewall or address "
                 "translation stand between the workers",
                 address_uri(&knock->invitation.at, at));
    else
        return false;
    return true;
}

/* Answers a knock once it is known whether the newcomer can be reached. */
static void admit(struct door *door, int index, const struct world *world, int64_t look_end_ns)
{
    char text[RENDEZVOUS_TEXT_BYTES] = "";
    struct visitor *visitor = &door->visitors[index];
    int error = reach(visitor, visitor->awaited ? 1 /* has passed */ : look_end_ns);
    visitor->awaited = true;
    if (error == ETIMEDOUT)
        return;
    visitor->admitted = !objection(door, &visitor->knock, world, error == 0, text, sizeof text);
    enum status status = visitor->admitted ? STATUS_OK : STATUS_USAGE;
    if (rendezvous_tell(door->sockets[index], door->token, status, text) != 0 || !visitor->admitted)
        dismiss(door, index);
}

/* Reads what has arrived from a visitor. */
static void hear(struct door *door, int index)
{
    struct visitor *visitor = &door->visitors[index];
    enum control_read got = CONTROL_CLOSED; /* it owes nothing after its knock */
    if (!visitor->knocked)                  /* the text's last byte stays 0 */
        got = control_read(door->sockets[index], &visitor->knock, KNOCK_BYTES,
                           sizeof visitor->knock - 1, &visitor->input);
    if (got == CONTROL_NOTHING)
        return;
    visitor->knocked = got == CONTROL_MESSAGE && visitor->knock.head.type == SHRINK_KNOCK;
    visitor->until_ns = clock_now_ns() + KNOCK_MS * NS_PER_MS;
    if (visitor->knocked)
        (void)stream_begin_connect(&visitor->knock.invitation.at, &visitor->call);
    else
        dismiss(door, index);
}

uint64_t world_newcomers(struct world *world, uint64_t step, int most)
{
    struct door *door = world->reunion ? world->reunion->door : NULL;
    uint64_t wanted = UINT64_MAX;
    world_acts(world);
    if (door && step > door->step)
        world_has_met(world);
    if (door)
        door->step = step;
    if (!door || door->listener.socket < 0)
        return wanted;
    door->most = most;
    bool more = true;
    int64_t end_ns = clock_now_ns() + LOOK_MS * NS_PER_MS;
    for (int events = 0; more && events < EVENTS_MOST; events++) {
        struct hello hello;
        int socket;
        size_t which;
        switch (listener_wait(&door->listener, 1 /* has passed */, door->sockets,
                              (size_t)door->count, &hello, &socket, &which)) {
        case LISTENER_HELLO:
            receive_visitor(door, &hello, socket);
            break;
        case LISTENER_WATCHED:
            hear(door, (int)which);
            break;
        case LISTENER_TIMEOUT:
        case LISTENER_CANCELLED:
            more = false;
        }
    }
    for (int i = door->count - 1; i >= 0; i--) { /* the last one takes the place of one that goes */
        const struct visitor *visitor = &door->visitors[i];
        if (visitor->knocked && !visitor->admitted)
            admit(door, i, world, end_ns);
        else if (!visitor->admitted && clock_now_ns() >= visitor->until_ns)
            dismiss(door, i);
    }
    for (int i = 0; i < door->count; i++) {
        const struct visitor *visitor = &door->visitors[i];
        if (visitor->admitted && visitor->knock.after < wanted)
            wanted = visitor->knock.after;
    }
    return wanted;
}

int world_identity(const struct world *world, int rank)
{
    const struct reunion *m = world->reunion;
    for (int i = 0; m && i < m->count; i++) {
        if (members_have(&m->base.members, i) && rank-- == 0)
            return i;
    }
    return -1;
}

bool world_door(const struct world *world, union address *address)
{
    const struct door *door = world->reunion ? world->reunion->door : NULL;
    if (!door || door->listener.socket < 0)
        return false;
    *address = door->listener.address;
    return true;
}

/* -------- the leader -------------------------------------------------------------------------- */

struct claim shrink_claim_of(const struct attempt *a)
{
    const struct reunion *m = a->reunion;
    struct claim claim = {.head = {.type = SHRINK_CLAIM, .job = m->job},
                          .timed_out = a->timed_out,
                          .count = m->count,
                          .base = m->base,
                          .promise = m->promise,
                          .epoch = m->epoch};
    while (claim.first < m->count && (members_have(&m->base.members, claim.first) ||
                                      !members_have(&m->promise.voters, claim.first)))
        claim.first++;
    for (int i = 0; i < SHRINK_GUESTS_MOST && claim.first + i < m->count; i++)
        claim.promised[i] = m->at[claim.first + i];
    door_guests(m->door, claim.guests);
    return claim;
}

void shrink_learn(struct reunion *m, const struct claim *claim)
{
    /* One that has missed a world may have wrong addresses, or another newcomer of an identity. */
    bool sound =
        claim->first >= 0 && claim->first < SHRINK_RANKS_MOST && claim->base.epoch >= m->base.epoch;
    for (int i = 0; i < SHRINK_GUESTS_MOST && sound; i++) {
        int identity = claim->first + i;
        if (identity >= SHRINK_RANKS_MOST || !members_have(&claim->promise.voters, identity) ||
            address_port(&claim->promised[i]) == 0 || address_port(&m->at[identity]) > 0)
            continue;
        m->at[identity] = claim->promised[i];
        m->count = identity < m->count ? m->count : identity + 1;
    }
}

/* Whether the newcomer is a member already, or has been called in this meeting. */
static bool is_old(const struct attempt *a, const struct invitation *guest)
{
    const struct reunion *m = a->reunion;
    for (int i = 0; i < m->count; i++) {
        if (address_port(&m->at[i]) == address_port(&guest->at) &&
            address_same_host(&m->at[i], &guest->at))
            return true;
    }
    for (int i = 0; i < a->called; i++) {
        if (a->tickets[i] == guest->ticket)
            return true;
    }
    return a->called == SHRINK_CALLS_MOST || m->count == SHRINK_RANKS_MOST;
}

/* Calls on the newcomer and gives it the next identity. */
static void call_on(struct attempt *a, const struct invitation *guest, struct view *next)
{
    struct reunion *m = a->reunion;
    int socket;
    if (is_old(a, guest))
        return;
    a->tickets[a->called++] = guest->ticket;
    int error = listener_join(&guest->at, guest->ticket, m->identity, CALL_MS, &socket);
    shrink_hold(a);
    if (error != 0)
        return;
    /* It awaits no HOLD. */
    a->comers[m->count] = (struct comer){.socket = socket, .input.job = m->job};
    m->at[m->count] = guest->at;
    members_add(&next->members, m->count++);
}

int shrink_invite(struct attempt *a, const struct claim *own, struct view *next)
{
    struct reunion *m = a->reunion;
    int known = m->count, size = 0;
    for (int i = 0; i < known; i++) {
        const struct comer *comer = &a->comers[i];
        if (comer->fate == COME && comer->claim.count > m->count &&
            comer->claim.count <= SHRINK_RANKS_MOST)
            m->count = comer->claim.count;
        size += members_have(&next->members, i);
    }
    int first = m->count, called = a->called, most = m->door ? m->door->most : 0;
    for (int i = 0; i < known; i++) {
        const struct claim *claim = i == m->identity ? own : &a->comers[i].claim;
        if (i != m->identity && a->comers[i].fate != COME)
            continue;
        for (int g = 0; g < SHRINK_GUESTS_MOST && claim->guests[g].ticket != 0; g++) {
            int guests = m->count - first, failed = a->called - called - guests;
            if (failed < SHRINK_GUESTS_MOST && guests < SHRINK_GUESTS_MOST && guests < size &&
                (most == 0 || size + guests < most))
                call_on(a, &claim->guests[g], next);
        }
    }
    return first;
}

/* -------- a newcomer -------------------------------------------------------------------------- */

/* One attempt to reach a door. */
struct approach {
    const struct door *door;
    struct reunion *reunion;
    uint64_t ticket;
    int socket;
};

/* Connects to an address of the door's host, says hello and knocks. Listens at the address by which
 * it has reached that host. */
static int knock_at(void *self, const union address *address, int64_t connect_ms)
{
    struct approach *approach = self;
    const struct door *door = approach->door;
    struct listener *listener = &approach->reunion->listener;
    struct knock knock = {.head = {.type = SHRINK_KNOCK, .job = door->token},
                          .after = door->after,
                          .invitation.ticket = approach->ticket};
    union address here;
    listener_close(listener);
    int error = listener_join(address, door->token, HELLO_NEWCOMER, connect_ms, &approach->socket);
    if (error == 0)
        error = address_of_socket(approach->socket, &here);
    if (error == 0) {
        address_set_port(&here, 0);
        error = listener_open(listener, &here, SHRINK_RANKS_MOST);
    }
    if (error == 0) {
        knock.invitation.at = listener->address;
        error = control_send(approach->socket, &knock, KNOCK_BYTES, door->job, strlen(door->job),
                             SHRINK_ANSWER_MS);
    }
    if (error == 0)
        stream_keep_alive(approach->socket);
    if (error != 0)
        stream_close(&approach->socket);
    return error;
}

/* The leader has called: gets its decision and obeys it. */
static enum outcome follow_leader(struct attempt *a, int socket)
{
    struct reunion *m = a->reunion;
    struct decision *decision = malloc(sizeof *decision);
    struct control_input input = {0};
    enum outcome outcome = AGAIN;
    const struct word *word = decision ? &decision->word : NULL;
    if (word &&
        shrink_await(socket, &input, &decision->word, sizeof *decision, SHRINK_DECISION,
                     2L * SHRINK_ANSWER_MS) == 0 &&
        word->guests >= 0 && word->identity >= word->guests && word->identity < word->count) {
        m->identity = word->identity;
        m->job = word->head.job;
        m->promise = (struct view){.members = word->view.members}; /* it is free to promise */
        m->epoch = 0;
        outcome = shrink_obey(a, socket, &input, decision);
    }
    free(decision);
    if (outcome != AGREED)
        m->identity = -1;
    return outcome;
}

/* The rank has ended, or its world has changed without this newcomer. With --secure it may have
 * other keys. */
static enum outcome was_dismissed(struct attempt *a, int socket)
{
    int error = secure_error(socket);
    if (error == EKEYREJECTED || error == EPROTO)
        a->refused = FAIL(STATUS_USAGE,
                          "--join %s: the worker there has other keys, or none; give all workers "
                          "the same --secure folder",
                          a->reunion->door->address);
    else if (a->dismissed >= DISMISSED_MOST)
        a->refused = FAIL(STATUS_TRANSPORT,
                          "join: the job has continued %d times without this worker; let no "
                          "firewall or address translation stand between it and the workers",
                          a->dismissed);
    return a->refused == STATUS_OK ? AGAIN : REFUSED;
}

/* Acts on what the door has said. `said` ends with a 0. */
static enum outcome hear_door(struct attempt *a, int socket, struct rendezvous_answer *said,
                              struct control_input *input)
{
    enum control_read got = control_read(socket, said, sizeof said->head, sizeof *said - 1, input);
    if (got == CONTROL_NOTHING)
        return WAIT;
    a->refused = STATUS_OK;
    if (got == CONTROL_CLOSED)
        return was_dismissed(a, socket);
    if (got != CONTROL_MESSAGE || said->head.type != CONTROL_ANSWER ||
        (said->head.value != STATUS_OK && said->head.value != STATUS_USAGE)) {
        a->refused = FAIL(STATUS_PROTOCOL,
                          "--join %s: the program there is not a worker of a job; give the "
                          "address that a worker of the job prints when it starts",
                          a->reunion->door->address);
        return REFUSED;
    }
    a->refused = (enum status)said->head.value;
    if (a->refused == STATUS_OK && a->dismissed++ == 0)
        log_info("waits until the workers have done their step");
    else if (a->refused != STATUS_OK)
        log_error("%s", said->text);
    return a->refused == STATUS_OK ? WAIT : REFUSED;
}

static enum status nobody_opens(const struct door *door, const char *unknown, int error)
{
    return FAIL(
        STATUS_TIMEOUT,
        "--join %s: no worker of a job can be reached there: %s. Give the last address that a "
        "worker 0 of the job has printed: it changes with worker 0. A job that starts on one host "
        "listens on that host only, unless it has --subnet",
        door->address, unknown ? unknown : strerror(error));
}

enum outcome shrink_enter(struct attempt *a, int *socket)
{
    struct reunion *m = a->reunion;
    struct approach approach = {.door = m->door, .reunion = m, .socket = -1};
    struct rendezvous place = {0};
    struct rendezvous_answer said = {0};
    const char *unknown = NULL;
    struct control_input input = {.job = m->door->token};
    enum outcome outcome = WAIT;
    if (getrandom(&approach.ticket, sizeof approach.ticket, 0) != (ssize_t)sizeof approach.ticket)
        approach.ticket = (uint64_t)clock_now_ns() ^ (uint64_t)getpid();
    a->refused = rendezvous_parse(m->door->address, &place);
    if (a->refused != STATUS_OK)
        return REFUSED;
    int error = control_search(&(struct control_search){.host = place.host,
                                                        .port = place.port,
                                                        .timeout_ms = a->timeout_ms,
                                                        .attempt = knock_at,
                                                        .self = &approach},
                               &unknown);
    if (error != 0 || unknown) {
        a->refused = nobody_opens(m->door, unknown, error);
        return REFUSED;
    }
    while (outcome == WAIT) {
        struct hello hello;
        int caller;
        size_t which;
        switch (listener_wait(&m->listener, a->deadline_ns, &approach.socket, 1, &hello, &caller,
                              &which)) {
        case LISTENER_HELLO:
            outcome = hello_is_of(&hello, approach.ticket, SHRINK_RANKS_MOST)
                          ? follow_leader(a, caller)
                          : WAIT;
            if (outcome == AGREED)
                *socket = caller;
            else
                stream_close(&caller);
            continue;
        case LISTENER_WATCHED:
            outcome = hear_door(a, approach.socket, &said, &input);
            continue;
        case LISTENER_TIMEOUT:
        case LISTENER_CANCELLED:
            outcome = AGAIN;
        }
    }
    stream_close(&approach.socket);
    if (outcome != AGREED)
        listener_close(&m->listener); /* to all others, this identity has ended */
    else {
        a->dismissed = 0;
        shrink_set_deadline(a);
    }
    return outcome;
}

enum status world_join(struct world **out, const struct world_options *options)
{
    enum status status = STATUS_OK;
    struct world outside = {.reunion = reunion_new()};
    struct attempt *a = NULL;
    *out = NULL;
    host_name(outside.host, sizeof outside.host);
    if (outside.reunion)
        outside.reunion->door = door_new(options);
    if (outside.reunion && outside.reunion->door)
        a = shrink_attempt_new(outside.reunion, false, options->startup_timeout_ms);
    if (!a)
        TRY(FAIL(STATUS_NO_MEMORY, "join: out of memory"));
    a->deadline_ns = options->join_after > 0 ? 0 : stream_deadline_ns(options->startup_timeout_ms);
    TRY(shrink_next_world(out, &outside, a));
    union address here = (*out)->reunion->listener.address;
    address_set_port(&here, 0);
    warn_of_door(door_listen((*out)->reunion->door, &here));
out:
    reunion_close(&outside.reunion);
    return status;
}

/* -------- where survivors meet ---------------------------------------------------------------- */

struct reunion *reunion_new(void)
{
    struct reunion *m = calloc(1, sizeof *m);
    if (m) {
        m->listener.socket = m->identity = -1;
        shrink_acts_anew(m);
    }
    return m;
}

enum status reunion_open(struct world *world, const struct world_options *options)
{
    enum status status;
    union address here;
    if (world->size > SHRINK_RANKS_MOST)
        return STATUS_OK; /* such a world cannot shrink */
    struct reunion *m = reunion_new();
    if (!m)
        return FAIL(STATUS_NO_MEMORY, "world: out of memory");
    world->reunion = m;
    m->job = world->run_id;
    m->identity = world->rank;
    m->count = world->size;
    for (int i = 0; i < m->count; i++)
        members_add(&m->base.members, i);
    m->base.founders = m->base.voters = m->base.members;
    m->promise = m->base;
    status = world_choose_address(world, options->subnet, &here);
    if (status == STATUS_OK) {
        int error = listener_open(&m->listener, &here, SHRINK_RANKS_MOST);
        status = error == 0
                     ? STATUS_OK
                     : FAIL(status_from_errno(error), "world: cannot listen: %s", strerror(error));
    }
    /* Port 0: a rank does not listen, and has logged the reason. */
    enum status told = world_gather(world, NULL, &m->listener.address, sizeof *m->at, m->at);
    TRY(status);
    TRY(told);
    for (int i = 0; i < m->count; i++)
        TRY(address_port(&m->at[i]) > 0 ? STATUS_OK : STATUS_TRANSPORT);
    if (options->job)
        m->door = door_open(&here, world->rank == 0, options);
out:
    return status;
}

void reunion_close(struct reunion **reunion)
{
    if (*reunion) {
        listener_close(&(*reunion)->listener);
        door_close(&(*reunion)->door);
    }
    free(*reunion);
    *reunion = NULL;
}

void reunion_close_in_child(const struct reunion *reunion)
{
    if (reunion && reunion->listener.socket >= 0)
        close(reunion->listener.socket);
    if (reunion)
        door_close_in_child(reunion->door);
}
