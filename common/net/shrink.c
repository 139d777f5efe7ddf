/*
 * The survivors of a failed world agree on who continues. There is no coordinator that could fail.
 *
 * Every process keeps one socket for such meetings for its whole life, and its rank in the first
 * world is its *identity*. A survivor asks the others in the order of their identities. The first
 * one that lives leads, and those after it come to it:
 *
 *     comer    hello, CLAIM      the world I was in, and my promise
 *     leader   HOLD              I lead; wait (every HOLD_MS)
 *     leader   DECISION          epoch and members of the new world
 *     comer    READY             I promise it
 *     leader   GO                all members are ready
 *
 * The leader summons those that it awaits, because they may have given it up too soon.
 *
 * A refused connection means that a process has ended. Nothing else shows it: a silent process may
 * be stopped or cut off, and it may later continue in another world. Two worlds would both write
 * results. Two rules prevent that.
 *
 * - A world may follow another one in three cases: all members of the old world are in the new one
 *   or are known to have ended; more than half are in it; or half, with the lowest identity. The
 *   end of a member that was silent first is not known, because it may have continued before.
 *   After this process was silent itself, no end is known: it was stopped, or computed for longer
 *   than the time-out, and the others may have continued without it and ended.
 *
 * - A rank that has sent READY does not know whether others got GO. From then on it only joins
 *   worlds within the promised one, unless the leader sends AGAIN: it has sent no GO.
 *
 * The world to follow is the last that any comer was in. A process that is not in it has missed a
 * world, and its data is old: it is excluded for ever. An attempt fails if a member dies in the
 * middle of it, or too few come. All begin again then. Source of the rules: dynamic voting (Lotem,
 * Keidar and Dolev, 1997). tests/net/shrink.pml is a model of them.
 *
 * Newcomers enter in the same way (shrink_join.c), without a vote. Other ranks may have entered a
 * world with newcomers that this rank has only promised. Its earlier promises may be larger than
 * the last one. A world therefore needs most of its *voters*: the members of the last world, and of
 * all decisions since then that its members have promised.
 *
 * A rank that was stopped may find that all ranks of its world have ended. They may have let in
 * newcomers before, who continue. Therefore a world needs a *founder*, too. The founders are the
 * ranks of the first world. Once every former member is known to have ended, all members are
 * founders.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/net/control.h"
#include "common/net/shrink_impl.h"
#include "common/net/world_impl.h"

enum {
    HOLD_MS = 200,
    GRACE_MS = 1000,     /* after a time-out: for ranks that come later than the others */
    OWN_WAIT_MS = 4000,  /* more than a wait for GO, or for all newcomers that a leader calls */
    CONNECT_MS = 1200,   /* even a stopped process accepts at once, unless a packet is lost */
    PAUSE_MS = 50,       /* before all begin again */
    PROBE_MS = 100,      /* for a connection that only shows whether a process lives */
    PROBE_EVERY_MS = 50, /* doubles up to the next one */
    PROBE_EVERY_MS_MOST = 5000,
    CLOSES_MOST = 8, /* of one process: another program has its port */
};

/* Enters the world that this process has promised. */
static void enter(struct reunion *m)
{
    m->promise.voters = m->promise.members;
    m->base = m->promise;
    m->silent = (struct members){0};
}

/* The others may have excluded this process, and have ended since. */
static void distrust(struct reunion *m)
{
    memset(&m->silent, 0xff, sizeof m->silent);
}

/* Notes that this process runs. It was stopped if it has not done so for longer than its longest
 * wait in a meeting. */
static void stay(const struct attempt *a)
{
    if (!shrink_waited(a->reunion, OWN_WAIT_MS))
        distrust(a->reunion);
}

/* -------- messages ---------------------------------------------------------------------------- */

int shrink_say(const struct reunion *m, int socket, enum shrink_type type)
{
    struct word word = {.head = {.type = type, .job = m->job}};
    return control_send(socket, &word, sizeof word, NULL, 0, SHRINK_ANSWER_MS);
}

static int say_decision(const struct reunion *m, const struct view *next, int guests, int identity,
                        int socket)
{
    struct word word = {.head = {.type = SHRINK_DECISION, .job = m->job},
                        .view = *next,
                        .identity = identity,
                        .count = m->count,
                        .guests = guests};
    return control_send(socket, &word, sizeof word, m->at, (size_t)m->count * sizeof *m->at,
                        SHRINK_ANSWER_MS);
}

/* Whether the message has the length of its type. */
static bool is_whole(const struct word *word)
{
    const struct decision *decision;
    size_t table = 0;
    if (word->head.bytes < sizeof *word - sizeof word->head)
        return false;
    if (word->head.type == SHRINK_DECISION) {
        if (word->count < 1 || word->count > SHRINK_RANKS_MOST)
            return false;
        table = (size_t)word->count * sizeof *decision->at;
    }
    return word->head.bytes == sizeof *word - sizeof word->head + table;
}

int shrink_await(int socket, struct control_input *input, struct word *word, size_t room,
                 enum shrink_type type, int64_t timeout_ms)
{
    int error = control_receive(socket, word, room, input, timeout_ms, NULL, NULL);
    if (error == 0 && (word->head.type != type || !is_whole(word)))
        error = word->head.type == SHRINK_AGAIN ? ECANCELED : EPROTO;
    return error;
}

/* -------- an attempt -------------------------------------------------------------------------- */

static void leave(struct attempt *a, int identity)
{
    stream_close(&a->comers[identity].socket);
    a->sockets[identity] = -1;
    if (a->comers[identity].fate == COME)
        a->comers[identity].fate = ABSENT;
}

static void leave_all(struct attempt *a)
{
    for (int i = 0; i < a->reunion->count; i++)
        leave(a, i);
}

/* How long to wait for a process that has not come, and lives. Without a time-out it may still
 * compute, and learn of the failure at its next call. After one it was as silent as the first. */
static int64_t patience_ms(const struct attempt *a)
{
    return a->timed_out ? GRACE_MS : a->timeout_ms;
}

/* -------- the leader -------------------------------------------------------------------------- */

static int64_t earlier_ns(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* The voters to wait for. Those below the leader do not come to it. */
static struct members awaited(const struct attempt *a)
{
    const struct reunion *m = a->reunion;
    struct members set = shrink_inherited(a).voters;
    for (int i = 0; i < SHRINK_RANKS_MOST; i++) {
        if (i <= m->identity || i >= m->count || a->comers[i].fate != ABSENT)
            members_remove(&set, i);
    }
    return set;
}

/* When to probe the next one of `set`, and which. */
static int64_t next_probe_ns(const struct attempt *a, const struct members *set, int *identity)
{
    int64_t next_ns = INT64_MAX;
    for (int i = 0; i < a->reunion->count; i++) {
        if (!members_have(set, i) || a->comers[i].probe_ns >= next_ns)
            continue;
        next_ns = a->comers[i].probe_ns;
        *identity = i;
    }
    return next_ns;
}

/* A leader's hello to a process that it awaits: its rank is -1 - identity, which is no rank's, and
 * its world_size names the world to follow. */
static struct hello summons_of(const struct attempt *a)
{
    const struct reunion *m = a->reunion;
    struct hello hello = hello_from(-1 - m->identity, (int)(m->base.epoch % INT_MAX), m->job);
    hello.unused = a->timed_out;
    return hello;
}

/* True: it is such a hello. */
static bool obeys_summons(struct attempt *a, const struct hello *hello)
{
    const struct reunion *m = a->reunion;
    struct hello own = summons_of(a);
    int leader = -1 - hello->head.value;
    if (hello->head.protocol != CONTROL_PROTOCOL || hello->head.job != m->job || leader < 0 ||
        leader >= m->count)
        return false;
    if (hello->world_size != own.world_size || !members_have(&m->base.members, leader))
        return true; /* of another world */
    a->timed_out = a->timed_out || hello->unused;
    if (leader < a->summoner && !a->comers[leader].unreachable)
        a->summoner = leader;
    return true;
}

/* Finds out whether the process has ended, and summons it otherwise. */
static void probe(struct attempt *a, int identity)
{
    const struct reunion *m = a->reunion;
    struct comer *comer = &a->comers[identity];
    struct hello hello = summons_of(a);
    int socket = -1, error = stream_connect(&m->at[identity], PROBE_MS, &socket);
    if (error == ECONNREFUSED)
        comer->fate = ENDED;
    if (error == 0)
        control_send(socket, &hello, sizeof hello, NULL, 0, -1);
    stream_close(&socket);
    stay(a);
    comer->probe_ms = comer->probe_ms > 0 ? 2 * comer->probe_ms : PROBE_EVERY_MS;
    if (comer->probe_ms > PROBE_EVERY_MS_MOST)
        comer->probe_ms = PROBE_EVERY_MS_MOST;
    comer->probe_ns = clock_now_ns() + comer->probe_ms * NS_PER_MS;
}

static void welcome(struct attempt *a, const struct hello *hello, int socket)
{
    const struct reunion *m = a->reunion;
    int identity = hello->head.value;
    if (obeys_summons(a, hello) || !hello_is_of(hello, m->job, m->count) ||
        identity <= m->identity) {
        stream_close(&socket);
        return;
    }
    leave(a, identity); /* its earlier connection */
    a->comers[identity].input = (struct control_input){.job = m->job};
    a->comers[identity].socket = a->sockets[identity] = socket;
}

/* It has gone to another leader meanwhile. */
static bool has_closed(int socket)
{
    char byte;
    return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* A comer counts for how long to wait if its world is the last one. */
static void take_over(struct attempt *a, int identity)
{
    const struct view *base = shrink_newest_base(a);
    const struct claim *claim = &a->comers[identity].claim;
    if (members_have(&base->members, identity) && claim->base.epoch == base->epoch)
        a->timed_out = a->timed_out || claim->timed_out;
}

/* Reads what has arrived from a comer. True: it has come. */
static bool hear(struct attempt *a, int identity)
{
    struct comer *comer = &a->comers[identity];
    const struct claim *claim = &comer->claim;
    enum control_read got = CONTROL_CLOSED; /* it owes nothing after its claim */
    if (comer->fate != COME)
        got =
            control_read(comer->socket, &comer->claim, sizeof *claim, sizeof *claim, &comer->input);
    if (got == CONTROL_NOTHING)
        return false;
    if (got == CONTROL_MESSAGE && claim->head.type == SHRINK_CLAIM && !has_closed(comer->socket) &&
        shrink_say(a->reunion, comer->socket, SHRINK_HOLD) == 0) {
        comer->fate = COME;
        shrink_learn(a->reunion, claim);
        take_over(a, identity);
        return true;
    }
    leave(a, identity);
    return false;
}

void shrink_hold(struct attempt *a)
{
    for (int i = 0; i < a->reunion->count; i++) {
        struct word word = {.head = {.type = SHRINK_HOLD, .job = a->reunion->job}};
        if (a->comers[i].fate != COME)
            continue;
        int error = control_send(a->comers[i].socket, &word, sizeof word, NULL, 0, -1);
        if (error != 0 && error != EAGAIN)
            leave(a, i);
    }
}

/* Waits until all have come or ended, or those that have not are silent for too long. */
static void collect(struct attempt *a)
{
    struct listener *listener = &a->reunion->listener;
    int64_t hold_ns = clock_now_ns() + HOLD_MS * NS_PER_MS, last_ns = clock_now_ns();
    for (struct members late = awaited(a);
         !members_are_none(&late) && a->summoner > a->reunion->identity; late = awaited(a)) {
        struct hello hello;
        int socket, identity = 0;
        size_t which;
        stay(a);
        int64_t end_ns = earlier_ns(last_ns + patience_ms(a) * NS_PER_MS, a->deadline_ns);
        int64_t probe_ns = next_probe_ns(a, &late, &identity);
        switch (listener_wait(listener, earlier_ns(end_ns, earlier_ns(hold_ns, probe_ns + 1)),
                              a->sockets, (size_t)a->reunion->count, &hello, &socket, &which)) {
        case LISTENER_HELLO:
            welcome(a, &hello, socket);
            continue;
        case LISTENER_WATCHED:
            if (hear(a, (int)which))
                last_ns = clock_now_ns();
            continue;
        case LISTENER_TIMEOUT: /* no event waits */
        case LISTENER_CANCELLED:
            break;
        }
        int64_t now_ns = clock_now_ns();
        if (now_ns >= end_ns)
            return;
        if (now_ns >= hold_ns) {
            shrink_hold(a);
            hold_ns = now_ns + HOLD_MS * NS_PER_MS;
        } else if (now_ns >= probe_ns) {
            probe(a, identity);
        }
    }
}

static enum outcome again(struct attempt *a)
{
    for (int i = 0; i < a->reunion->count; i++) {
        if (a->comers[i].socket >= 0)
            shrink_say(a->reunion, a->comers[i].socket, SHRINK_AGAIN);
    }
    leave_all(a);
    return AGAIN;
}

/* Sends the decision, whose newcomers begin at `guests`, and waits for READY of all its members. */
static bool all_promise(struct attempt *a, const struct view *next, int guests)
{
    const struct reunion *m = a->reunion;
    struct word word;
    for (int i = 0; i < m->count; i++) {
        if (i != m->identity && members_have(&next->members, i) &&
            say_decision(m, next, guests, i, a->comers[i].socket) != 0)
            return false;
    }
    int64_t ready_ns = stream_deadline_ns(SHRINK_ANSWER_MS); /* for all; they wait longer for GO */
    for (int i = 0; i < m->count; i++) {
        if (i != m->identity && members_have(&next->members, i) &&
            shrink_await(a->comers[i].socket, &a->comers[i].input, &word, sizeof word, SHRINK_READY,
                         stream_poll_ms(ready_ns) + 1) != 0)
            return false;
    }
    return clock_now_ns() < ready_ns; /* otherwise it was stopped, and they have gone */
}

/* Lets all members promise the new world, then enter it. */
static enum outcome commit(struct attempt *a, struct view *next)
{
    struct reunion *m = a->reunion;
    const struct view earlier = m->promise;
    const struct claim own = shrink_claim_of(a);
    int guests = shrink_invite(a, &own, next);
    if (members_are_none(&next->missing))
        next->founders = next->members;
    members_include(&next->voters, &next->members);
    m->promise = *next;
    m->epoch = next->epoch;
    if (!all_promise(a, next, guests)) {
        m->promise = earlier; /* no rank can have entered this world without GO */
        return again(a);
    }
    enter(m);
    for (int i = 0; i < m->count; i++) { /* the new world's calls find out who got no GO */
        if (i != m->identity && members_have(&next->members, i))
            shrink_say(m, a->comers[i].socket, SHRINK_GO);
    }
    return AGREED;
}

/* Finds out which former members have ended meanwhile. */
static void find_missing(struct attempt *a)
{
    const struct members missing = shrink_inherited(a).missing;
    for (int i = 0; i < a->reunion->count; i++) {
        bool due = a->comers[i].probe_ms < PROBE_EVERY_MS_MOST && a->comers[i].fate != COME &&
                   a->comers[i].fate != ENDED;
        if (!members_have(&missing, i) || address_port(&a->reunion->at[i]) == 0 || !due)
            continue;
        probe(a, i);
        shrink_hold(a);
    }
}

static enum outcome lead(struct attempt *a)
{
    struct reunion *m = a->reunion;
    struct view next;
    collect(a);
    if (a->summoner < m->identity)
        return again(a);
    const struct members set = shrink_eligible(a);
    if (!members_have(&set, m->identity)) {
        leave_all(a);
        return OUT;
    }
    const struct members late = awaited(a);
    members_include(&m->silent, &late);
    find_missing(a);
    stay(a);
    bool valid = shrink_decide(a, &set, &next);
    for (int i = 0; i < m->count; i++) {
        if (a->comers[i].fate == COME && !members_have(&set, i)) {
            shrink_say(m, a->comers[i].socket, SHRINK_EXCLUDED);
            leave(a, i);
        }
    }
    return valid ? commit(a, &next) : again(a);
}

/* -------- a comer ----------------------------------------------------------------------------- */

enum outcome shrink_obey(struct attempt *a, int socket, struct control_input *input,
                         const struct decision *decision)
{
    struct reunion *m = a->reunion;
    const struct word *word = &decision->word;
    const struct view *next = &word->view;
    const struct view earlier = m->promise;
    struct members within = next->members;
    struct word answer;
    stay(a);
    members_narrow(&within, &m->promise.members);
    for (int i = word->guests; i >= 0 && i < word->count; i++) {
        if (members_have(&next->members, i))
            members_add(&within, i);
    }
    if (word->identity != m->identity || !members_have(&within, m->identity) ||
        next->epoch <= m->epoch || memcmp(&within, &next->members, sizeof within) != 0)
        return AGAIN;
    m->promise = *next;
    m->epoch = next->epoch;
    m->count = word->count > m->count ? word->count : m->count;
    for (int i = 0; i < word->count; i++) {
        if (address_port(&decision->at[i]) > 0)
            m->at[i] = decision->at[i];
    }
    int error = shrink_say(m, socket, SHRINK_READY);
    if (error != ETIMEDOUT) /* a leader that has closed may have sent AGAIN before */
        error =
            shrink_await(socket, input, &answer, sizeof answer, SHRINK_GO, 2L * SHRINK_ANSWER_MS);
    if (error == 0)
        enter(m);
    if (error == ECANCELED) /* the leader has sent no GO */
        m->promise = earlier;
    a->timed_out = a->timed_out || error == ETIMEDOUT; /* it need not be waited for as long again */
    return error == 0 ? AGREED : AGAIN;
}

/* The process has sent nothing in time, or cannot be reached: it is silent. */
static enum outcome give_up(struct attempt *a, int leader)
{
    a->comers[leader].fate = SILENT;
    members_add(&a->reunion->silent, leader);
    a->timed_out = true;
    return NEXT;
}

/* The leader has closed the connection: it has ended, or begins again. */
static enum outcome was_closed(struct attempt *a, int leader)
{
    return ++a->comers[leader].closes < CLOSES_MOST ? AGAIN : give_up(a, leader);
}

/* Acts on what the leader has said. */
static enum outcome hear_leader(struct attempt *a, int leader, int socket,
                                struct control_input *input, struct decision *decision, bool *holds)
{
    const struct word *word = &decision->word;
    switch (control_read(socket, decision, sizeof *word, sizeof *decision, input)) {
    case CONTROL_NOTHING:
        return WAIT;
    case CONTROL_CLOSED:
        return *holds ? AGAIN : was_closed(a, leader);
    case CONTROL_OTHER:
    case CONTROL_FOREIGN: /* another program has its port */
        return give_up(a, leader);
    case CONTROL_MESSAGE:
        break;
    }
    if (!is_whole(word))
        return AGAIN;
    switch (word->head.type) {
    case SHRINK_HOLD:
        *holds = true;
        return WAIT;
    case SHRINK_EXCLUDED:
        return OUT;
    case SHRINK_DECISION:
        return shrink_obey(a, socket, input, decision);
    default:
        return AGAIN;
    }
}

/* Waits for the leader's decision. Others may ask this process to lead meanwhile: they learn that
 * it lives, and it learns how long they wait. */
static enum outcome listen_to(struct attempt *a, int leader, int socket)
{
    struct listener *listener = &a->reunion->listener;
    struct decision decision;
    struct control_input input = {.job = a->reunion->job};
    enum outcome outcome = WAIT;
    bool holds = false;
    int64_t last_ns = clock_now_ns(), hold_ns = last_ns + HOLD_MS * NS_PER_MS;
    a->sockets[leader] = socket;
    while (outcome == WAIT) {
        struct hello hello;
        int other;
        size_t which;
        stay(a);
        int64_t wait_ms = holds ? SHRINK_ANSWER_MS : patience_ms(a);
        int64_t end_ns = earlier_ns(last_ns + wait_ms * NS_PER_MS, a->deadline_ns);
        switch (listener_wait(listener, earlier_ns(end_ns, hold_ns), a->sockets,
                              (size_t)a->reunion->count, &hello, &other, &which)) {
        case LISTENER_HELLO:
            welcome(a, &hello, other);
            outcome = a->summoner < leader ? AGAIN : WAIT;
            continue;
        case LISTENER_WATCHED:
            if ((int)which != leader) {
                hear(a, (int)which);
                continue;
            }
            last_ns = clock_now_ns();
            outcome = hear_leader(a, leader, socket, &input, &decision, &holds);
            continue;
        case LISTENER_TIMEOUT:
        case LISTENER_CANCELLED:
            break;
        }
        int64_t now_ns = clock_now_ns();
        if (now_ns >= end_ns)
            outcome = holds ? AGAIN : give_up(a, leader);
        if (now_ns >= hold_ns) {
            shrink_hold(a);
            hold_ns = now_ns + HOLD_MS * NS_PER_MS;
        }
    }
    a->sockets[leader] = -1;
    return outcome;
}

/* Asks the process `leader` to lead. AGREED: *socket leads to it. */
static enum outcome follow(struct attempt *a, int leader, int *socket)
{
    const struct reunion *m = a->reunion;
    struct claim claim = shrink_claim_of(a);
    int64_t connect_ms = a->timed_out ? GRACE_MS / 2 : CONNECT_MS;
    int error = listener_join(&m->at[leader], m->job, m->identity, connect_ms, socket);
    stay(a);
    if (error == ECONNREFUSED)
        a->comers[leader].fate = ENDED;
    if (error == ECONNRESET) /* it may have died just now */
        return was_closed(a, leader);
    if (error != 0) {
        a->comers[leader].unreachable = error != ECONNREFUSED;
        return error == ECONNREFUSED ? NEXT : give_up(a, leader);
    }
    error = control_send(*socket, &claim, sizeof claim, NULL, 0, SHRINK_ANSWER_MS);
    enum outcome outcome = error == 0 ? listen_to(a, leader, *socket) : AGAIN;
    if (outcome != AGREED)
        stream_close(socket);
    return outcome;
}

/* One attempt. AGREED: *socket leads to the leader, unless this process leads. */
static enum outcome attempt(struct attempt *a, int *socket)
{
    const struct reunion *m = a->reunion;
    for (int i = 0; i < m->count; i++) {
        if (a->comers[i].fate == SILENT)
            a->comers[i].fate = ABSENT;
        a->comers[i].unreachable = false;
    }
    a->summoner = INT_MAX;
    for (int i = 0; i < m->identity; i++) {
        if (!members_have(&m->base.members, i) || a->comers[i].fate == ENDED)
            continue;
        enum outcome outcome = follow(a, i, socket);
        if (outcome != NEXT)
            return outcome;
    }
    return lead(a);
}

/* -------- the new world ----------------------------------------------------------------------- */

/* Makes the world of the reunion's base, with the connections of the attempt: those of its comers,
 * or *socket to the leader. */
static enum status make_world(struct attempt *a, const struct world *failed, int *socket,
                              struct world **out)
{
    enum status status = STATUS_OK;
    struct reunion *m = a->reunion;
    int *sockets = malloc((size_t)m->count * sizeof *sockets);
    int size = 0, rank = 0;
    struct world *world = calloc(1, sizeof *world);
    *out = world;
    if (!sockets || !world)
        TRY(FAIL(STATUS_NO_MEMORY, "world: out of memory"));
    for (int i = 0; i < m->count; i++) {
        if (!members_have(&m->base.members, i))
            continue;
        rank = i == m->identity ? size : rank;
        sockets[size++] = *socket < 0 ? a->comers[i].socket : -1;
    }
    if (*socket >= 0) /* the leader has the lowest identity */
        sockets[0] = *socket;
    world->timeout_ms = a->timeout_ms;
    world->elastic = true;  /* another world can follow */
    world->reunion = m;     /* its first calls wait less for the root */
    world->run_id = m->job; /* until the ranks have agreed */
    memcpy(world->host, failed->host, sizeof world->host);
    TRY(world_rendezvous_adopt(world, rank, size, sockets));
    world->cancelled = world_rendezvous_broken;
    world->cancel_context = world;
    for (int i = 0; i < m->count; i++) {
        if (*socket >= 0 || !members_have(&m->base.members, i))
            leave(a, i); /* it has asked this process to lead, or came too late */
        a->comers[i].socket = a->sockets[i] = -1;
    }
    *socket = -1;
    status = world_settle(world, NULL);
out:
    if (world && status != STATUS_OK)
        world->reunion = NULL;
    free(sockets);
    return status;
}

/* Connections that came too late: their processes begin again. */
static void drain(struct listener *listener)
{
    int socket;
    while (listener->pending_count > 0)
        stream_close(&listener->pending[--listener->pending_count].socket);
    while (stream_accept(listener->socket, &socket) == 0)
        stream_close(&socket);
}

static enum status gave_up(const struct attempt *a, const struct world *failed)
{
    const struct reunion *m = a->reunion;
    if (m->identity < 0)
        return FAIL(
            STATUS_TIMEOUT,
            "join: the job did not let this worker in within %g s; slow steps need a larger "
            "--startup-timeout",
            (double)a->timeout_ms / 1000);
    char text[400];
    struct line line = line_in(text, sizeof text);
    int silent = 0;
    for (int i = 0; i < m->count && silent < 8; i++) {
        if (i != m->identity && members_have(&m->base.members, i) && a->comers[i].fate != ENDED)
            line_add(&line, "%s%d", silent++ ? ", " : "", i);
    }
    if (silent == 0 && members_have(&m->silent, m->identity)) /* it distrusts all */
        return FAIL(STATUS_TIMEOUT,
                    "shrink: rank %d on %s was silent for a while, and the other ranks have ended: "
                    "they may have continued without it. If they have no results, start the job "
                    "again",
                    m->identity, failed->host);
    if (silent == 0)
        return FAIL(STATUS_TIMEOUT,
                    "shrink: none of the first workers is left, and some may have continued alone; "
                    "start the job again");
    return FAIL(STATUS_TIMEOUT,
                "shrink: rank %d on %s found too few ranks of its last world within %g s. These "
                "are silent, and may have continued without it: %s (numbers of the first world). "
                "Can the hosts reach each other? Slow ranks need a larger --timeout",
                m->identity, failed->host,
                (double)(2 * a->timeout_ms + 4L * SHRINK_ANSWER_MS) / 1000, text);
}

static enum status excluded(const struct world *failed)
{
    return FAIL(STATUS_TRANSPORT,
                "shrink: the other ranks have continued without rank %d on %s, because it was "
                "silent; start it again as a new process",
                failed->rank, failed->host);
}

/* -------- the interface ----------------------------------------------------------------------- */

void shrink_set_deadline(struct attempt *a)
{
    a->deadline_ns = clock_now_ns() + (2 * a->timeout_ms + 4L * SHRINK_ANSWER_MS) * NS_PER_MS;
}

struct attempt *shrink_attempt_new(struct reunion *m, bool timed_out, int64_t timeout_ms)
{
    struct attempt *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->reunion = m;
    a->timed_out = timed_out;
    a->timeout_ms = timeout_ms;
    shrink_set_deadline(a);
    for (int i = 0; i < SHRINK_RANKS_MOST; i++)
        a->comers[i].socket = a->sockets[i] = -1;
    return a;
}

enum status shrink_next_world(struct world **out, struct world *failed, struct attempt *a)
{
    enum status status = STATUS_OK;
    struct reunion *m = a->reunion;
    int socket = -1;
    for (;;) {
        enum outcome outcome = m->excluded       ? OUT
                               : m->identity < 0 ? shrink_enter(a, &socket)
                                                 : attempt(a, &socket);
        if (outcome == REFUSED)
            TRY(a->refused);
        if (outcome == OUT) {
            m->excluded = true;
            listener_close(&m->listener); /* this process leads no more */
            TRY(excluded(failed));
        }
        if (outcome == AGREED) {
            stay(a);
            shrink_acts_anew(m);
            log_hold();
            status = make_world(a, failed, &socket, out);
            shrink_acts(m);
            if (status != STATUS_OK && shrink_was_away(m, OWN_WAIT_MS))
                distrust(m); /* its waits note every 0.2 s that it is there */
            log_release(status != STATUS_OK && !status_is_loss(status));
            if (status == STATUS_OK)
                break;
            world_close(out);
            leave_all(a); /* the world has taken their connections */
            a->timed_out = a->timed_out || status == STATUS_TIMEOUT;
            TRY(status_is_loss(status) ? STATUS_OK : status);
        }
        if (a->deadline_ns > 0 && clock_now_ns() >= a->deadline_ns)
            TRY(gave_up(a, failed));
        clock_sleep_until_ns(clock_now_ns() + (PAUSE_MS << a->dismissed) * NS_PER_MS);
    }
    m->silent = (struct members){0}; /* all have been in this world after it was decided on */
    world_acts(*out);
    drain(&m->listener);
    door_clear(m->door);
    failed->reunion = NULL;
out:
    leave_all(a);
    stream_close(&socket);
    free(a);
    return status;
}

enum status world_shrink(struct world **out, struct world *failed, enum status why,
                         int64_t timeout_ms)
{
    *out = NULL;
    if (why == STATUS_OK)
        return FAIL(STATUS_WRONG, "shrink: expected a world that has failed; please report it");
    if (!failed->reunion)
        return FAIL(STATUS_UNSUPPORTED,
                    "shrink: only ranks that met at a rendezvous, up to %d, can continue without "
                    "the others; MPI ends all ranks",
                    SHRINK_RANKS_MOST);
    struct attempt *a = shrink_attempt_new(failed->reunion, why == STATUS_TIMEOUT, timeout_ms);
    if (!a)
        return FAIL(STATUS_NO_MEMORY, "shrink: out of memory");
    world_acts(failed);
    if (shrink_was_away(failed->reunion, timeout_ms))
        distrust(failed->reunion);
    return shrink_next_world(out, failed, a);
}

void world_shrink_again(struct world *failed, struct world *shrunk)
{
    failed->reunion = shrunk->reunion;
    shrunk->reunion = NULL;
}
