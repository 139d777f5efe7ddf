/*
 * The survivors of a failed world agree on who continues. There is no coordinator that could fail.
 *
 * Every process keeps one socket for such meetings for its whole life, and its rank in the first
 * world is its *identity*. A survivor asks the others in the order of their identities. The first
 * one that lives leads, and those after it come to it:
 *
 *     comer    hello, CLAIM      which worlds I have been in
 *     leader   HOLD              I lead; wait (every HOLD_MS)
 *     leader   DECISION          epoch and members of the new world
 *     comer    READY             I have noted that decision
 *     leader   GO                all members are ready
 *
 * A refused connection means that a process has ended. Nothing else does: a silent process may be
 * stopped or cut off, and later continue in a world of its own. Two such worlds would both write
 * results. Therefore a world may follow another one only if every member of the latter has come or
 * is known to have ended, or more than half of them are in the new one (or half, with the lowest
 * identity). A rank that has sent READY does not know whether the others got GO. It keeps a note of
 * that decision, and the rule also holds for every world of such a note. Source of the rule and of
 * the notes: dynamic voting (Lotem, Keidar and Dolev, 1997). tests/net/shrink.pml checks it.
 *
 * Members are in the last world that any of them knows. Another process that comes has missed a
 * world: it has old data, and is excluded for ever. If an attempt fails, because a member died in
 * the middle of it, or too few came, all begin again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/net/control.h"
#include "common/net/world_impl.h"

enum {
    RANKS_MOST = 1024,
    WORDS = RANKS_MOST / 64,
    NOTES_MOST = 8,
    HOLD_MS = 200,
    GRACE_MS = 700,   /* after a time-out: for ranks that come later than the others */
    ANSWER_MS = 1500, /* for a message that its sender owes at once */
    PAUSE_MS = 50,    /* before all begin again */
    PROBE_MS = 100,   /* for a connection that only shows whether a process lives */
};

/* -------- sets of identities ------------------------------------------------------------------ */

struct members {
    uint64_t words[WORDS];
};

static bool has(const struct members *set, int identity)
{
    return set->words[identity / 64] >> identity % 64 & 1;
}

static void add(struct members *set, int identity)
{
    set->words[identity / 64] |= UINT64_C(1) << identity % 64;
}

/* A world that was decided on. */
struct view {
    uint32_t epoch, unused; /* 0: the first world */
    struct members members;
};

struct reunion {
    struct listener listener;
    uint64_t job;        /* the first world's run id */
    int identity, count; /* rank and size of the first world */
    bool excluded;
    struct view base; /* the last world that this process has entered */
    int note_count;
    struct view notes[NOTES_MOST]; /* later ones, for which it has sent READY */
    union address at[];            /* (count): where the processes meet, by identity */
};

/* Enters the world: earlier notes mean nothing any more. */
static void enter(struct reunion *reunion, const struct view *view)
{
    int kept = 0;
    reunion->base = *view;
    for (int i = 0; i < reunion->note_count; i++) {
        if (reunion->notes[i].epoch > view->epoch)
            reunion->notes[kept++] = reunion->notes[i];
    }
    reunion->note_count = kept;
}

static bool note(struct reunion *reunion, const struct view *view)
{
    if (reunion->note_count == NOTES_MOST)
        return false;
    reunion->notes[reunion->note_count++] = *view;
    return true;
}

/* -------- messages ---------------------------------------------------------------------------- */

enum shrink_type {
    SHRINK_CLAIM = CONTROL_SHRINK,
    SHRINK_HOLD,
    SHRINK_AGAIN,    /* this attempt has failed */
    SHRINK_EXCLUDED, /* the others have continued without the receiver */
    SHRINK_DECISION,
    SHRINK_READY,
    SHRINK_GO,
};

/* From a comer, whose identity its hello had. */
struct claim {
    struct control_head head; /* value: the number of notes */
    uint32_t timed_out;       /* its world failed because a rank was silent */
    uint32_t unused;
    struct view base, notes[NOTES_MOST];
};

/* All other messages. */
struct word {
    struct control_head head;
    struct view view; /* of DECISION */
};

static int say(int socket, enum shrink_type type, const struct view *view)
{
    struct word word = {.head.type = type};
    if (view)
        word.view = *view;
    return control_send(socket, &word, sizeof word, NULL, 0, ANSWER_MS);
}

/* -------- an attempt -------------------------------------------------------------------------- */

enum fate {
    ABSENT, /* not known yet */
    COME,   /* its claim has arrived */
    ENDED,  /* its process has ended */
    SILENT,
};

enum outcome {
    NEXT,  /* ask the next identity */
    AGAIN, /* all begin again */
    AGREED,
    OUT, /* the others have continued without this process */
    FULL,
};

struct comer {
    enum fate fate;
    int socket; /* -1: none */
    size_t have;
    struct claim claim; /* valid if it has come */
};

struct attempt {
    struct reunion *reunion;
    bool timed_out;
    int64_t timeout_ms, deadline_ns;
    int *sockets;          /* (count): copies of the comers' sockets, for listener_wait; -1: none */
    struct comer comers[]; /* (count) by identity */
};

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

/* -------- the rule ---------------------------------------------------------------------------- */

/* Whether `members` may follow a world of `set`. */
static bool settled(const struct attempt *a, const struct members *set,
                    const struct members *members)
{
    int all = 0, ours = 0, lowest = -1;
    bool known = true;
    for (int i = 0; i < a->reunion->count; i++) {
        if (!has(set, i))
            continue;
        enum fate fate = i == a->reunion->identity ? COME : a->comers[i].fate;
        all++;
        ours += has(members, i);
        lowest = lowest < 0 ? i : lowest;
        known = known && (fate == COME || fate == ENDED);
    }
    return known || 2 * ours > all || (2 * ours == all && lowest >= 0 && has(members, lowest));
}

static bool notes_settled(const struct attempt *a, const struct view *notes, int count,
                          const struct view *base, const struct members *members)
{
    for (int n = 0; n < count; n++) {
        if (notes[n].epoch > base->epoch && !settled(a, &notes[n].members, members))
            return false;
    }
    return true;
}

/* The last world that a process here has entered. */
static const struct view *newest_base(const struct attempt *a)
{
    const struct view *newest = &a->reunion->base;
    for (int i = 0; i < a->reunion->count; i++) {
        const struct comer *comer = &a->comers[i];
        if (comer->fate == COME && comer->claim.base.epoch > newest->epoch)
            newest = &comer->claim.base;
    }
    return newest;
}

static void raise(uint32_t *epoch, const struct view *base, const struct view *notes, int count)
{
    *epoch = base->epoch > *epoch ? base->epoch : *epoch;
    for (int n = 0; n < count; n++)
        *epoch = notes[n].epoch > *epoch ? notes[n].epoch : *epoch;
}

/* Decides on the next world. False: too few have come. */
static bool decide(const struct attempt *a, struct view *next)
{
    const struct reunion *m = a->reunion;
    const struct view *base = newest_base(a);
    *next = (struct view){0};
    add(&next->members, m->identity);
    raise(&next->epoch, &m->base, m->notes, m->note_count);
    for (int i = 0; i < m->count; i++) {
        const struct claim *claim = &a->comers[i].claim;
        if (a->comers[i].fate != COME || !has(&base->members, i))
            continue;
        add(&next->members, i);
        raise(&next->epoch, &claim->base, claim->notes, claim->head.value);
    }
    next->epoch++;
    bool valid = settled(a, &base->members, &next->members) &&
                 notes_settled(a, m->notes, m->note_count, base, &next->members);
    for (int i = 0; i < m->count; i++) {
        const struct claim *claim = &a->comers[i].claim;
        if (i != m->identity && has(&next->members, i))
            valid =
                valid && notes_settled(a, claim->notes, claim->head.value, base, &next->members);
    }
    return valid;
}

/* -------- the leader -------------------------------------------------------------------------- */

/* Whether to wait for that process. Those below the leader do not come to it. */
static bool awaited(const struct attempt *a, int identity)
{
    return identity > a->reunion->identity && a->comers[identity].fate == ABSENT &&
           has(&newest_base(a)->members, identity);
}

static bool awaits_any(const struct attempt *a)
{
    for (int i = 0; i < a->reunion->count; i++) {
        if (awaited(a, i))
            return true;
    }
    return false;
}

/* Finds out which of the awaited processes have ended. Rank -1 of a hello: no rank comes here. */
static void probe(struct attempt *a)
{
    for (int i = 0; i < a->reunion->count; i++) {
        int socket = -1;
        if (!awaited(a, i))
            continue;
        if (listener_join(&a->reunion->at[i], a->reunion->job, -1, PROBE_MS, &socket) ==
            ECONNREFUSED)
            a->comers[i].fate = ENDED;
        stream_close(&socket);
    }
}

static void welcome(struct attempt *a, const struct hello *hello, int socket)
{
    const struct reunion *m = a->reunion;
    int identity = hello->head.value;
    if (!hello_is_of(hello, m->job, m->count) || identity == m->identity) {
        stream_close(&socket);
        return;
    }
    leave(a, identity); /* its earlier connection */
    a->comers[identity].have = 0;
    a->comers[identity].socket = a->sockets[identity] = socket;
}

/* Reads what has arrived from a comer. True: it has come. */
static bool hear(struct attempt *a, int identity)
{
    struct comer *comer = &a->comers[identity];
    const struct claim *claim = &comer->claim;
    enum control_read got = CONTROL_CLOSED; /* it owes nothing after its claim */
    if (comer->fate != COME)
        got = control_read(comer->socket, &comer->claim, sizeof comer->claim, &comer->have);
    if (got == CONTROL_NOTHING)
        return false;
    if (got == CONTROL_MESSAGE && comer->have == sizeof comer->claim &&
        claim->head.type == SHRINK_CLAIM && claim->head.value >= 0 &&
        claim->head.value <= NOTES_MOST && say(comer->socket, SHRINK_HOLD, NULL) == 0) {
        comer->fate = COME;
        return true;
    }
    leave(a, identity);
    return false;
}

static void hold(struct attempt *a)
{
    for (int i = 0; i < a->reunion->count; i++) {
        if (a->comers[i].fate == COME && say(a->comers[i].socket, SHRINK_HOLD, NULL) != 0)
            leave(a, i);
    }
}

/* Waits until all have come or ended, or those that have not are silent for too long. */
static void collect(struct attempt *a)
{
    struct listener *listener = &a->reunion->listener;
    int64_t hold_ns = 0, last_ns = clock_now_ns();
    while (awaits_any(a)) {
        int64_t now_ns = clock_now_ns();
        struct hello hello;
        int socket;
        size_t which;
        if (now_ns >= hold_ns) {
            hold(a);
            probe(a);
            hold_ns = now_ns + HOLD_MS * NS_PER_MS;
        }
        if (now_ns >= last_ns + patience_ms(a) * NS_PER_MS || now_ns >= a->deadline_ns)
            return;
        switch (listener_wait(listener, hold_ns, a->sockets, (size_t)a->reunion->count, &hello,
                              &socket, &which)) {
        case LISTENER_HELLO:
            welcome(a, &hello, socket);
            break;
        case LISTENER_WATCHED:
            if (hear(a, (int)which)) {
                last_ns = clock_now_ns();
                a->timed_out = a->timed_out || a->comers[which].claim.timed_out;
            }
            break;
        case LISTENER_TIMEOUT:
        case LISTENER_CANCELLED:
            break;
        }
    }
}

static enum outcome again(struct attempt *a)
{
    for (int i = 0; i < a->reunion->count; i++) {
        if (a->comers[i].socket >= 0)
            say(a->comers[i].socket, SHRINK_AGAIN, NULL);
    }
    leave_all(a);
    return AGAIN;
}

/* Gets a word of one of two types from another process. */
static int await(int socket, struct word *word, enum shrink_type type, int64_t timeout_ms)
{
    int error = control_receive(socket, word, sizeof *word, timeout_ms, NULL, NULL);
    bool whole = error == 0 && word->head.bytes == sizeof *word - sizeof word->head;
    return error ? error : whole && word->head.type == type ? 0 : EPROTO;
}

/* Lets all members note the decision, then enter the new world. */
static enum outcome commit(struct attempt *a, const struct view *next)
{
    struct reunion *m = a->reunion;
    struct word word;
    if (!note(m, next))
        return FULL;
    for (int i = 0; i < m->count; i++) {
        if (i == m->identity || !has(&next->members, i))
            continue;
        if (say(a->comers[i].socket, SHRINK_DECISION, next) != 0)
            return again(a);
    }
    int64_t ready_ns = stream_deadline_ns(ANSWER_MS); /* for all; they wait longer for GO */
    for (int i = 0; i < m->count; i++) {
        if (i == m->identity || !has(&next->members, i))
            continue;
        if (await(a->comers[i].socket, &word, SHRINK_READY, stream_poll_ms(ready_ns) + 1) != 0)
            return again(a);
    }
    enter(m, next);
    for (int i = 0; i < m->count; i++) { /* the new world's calls find out who got no GO */
        if (i != m->identity && has(&next->members, i))
            say(a->comers[i].socket, SHRINK_GO, NULL);
    }
    return AGREED;
}

static enum outcome lead(struct attempt *a)
{
    struct reunion *m = a->reunion;
    struct view next;
    collect(a);
    bool out = !has(&newest_base(a)->members, m->identity);
    for (int i = 0; i < m->count && !out; i++) {
        if (a->comers[i].fate != COME || has(&newest_base(a)->members, i))
            continue;
        say(a->comers[i].socket, SHRINK_EXCLUDED, NULL);
        stream_close(&a->comers[i].socket); /* it stays COME: it is not silent */
        a->sockets[i] = -1;
    }
    if (out) {
        leave_all(a);
        return OUT;
    }
    return decide(a, &next) ? commit(a, &next) : again(a);
}

/* -------- a comer ----------------------------------------------------------------------------- */

static struct claim claim_of(const struct attempt *a)
{
    const struct reunion *m = a->reunion;
    struct claim claim = {.head = {.type = SHRINK_CLAIM, .value = m->note_count},
                          .timed_out = a->timed_out,
                          .base = m->base};
    memcpy(claim.notes, m->notes, sizeof claim.notes);
    return claim;
}

/* Notes the leader's decision and waits for GO. */
static enum outcome obey(struct attempt *a, int socket, const struct view *next)
{
    struct reunion *m = a->reunion;
    struct word word;
    if (!has(&next->members, m->identity) || next->epoch <= m->base.epoch)
        return AGAIN;
    if (!note(m, next))
        return FULL;
    if (say(socket, SHRINK_READY, NULL) != 0 || await(socket, &word, SHRINK_GO, 2 * ANSWER_MS) != 0)
        return AGAIN;
    enter(m, next);
    return AGREED;
}

/* Waits for what the leader says. */
static enum outcome listen_to(struct attempt *a, int leader, int socket)
{
    int64_t wait_ms = patience_ms(a);
    for (;;) {
        struct word word;
        int error = control_receive(socket, &word, sizeof word, wait_ms, NULL, NULL);
        if (error == ETIMEDOUT && clock_now_ns() < a->deadline_ns) {
            a->comers[leader].fate = SILENT;
            return NEXT;
        }
        if (error != 0 || word.head.bytes != sizeof word - sizeof word.head)
            return AGAIN;
        switch (word.head.type) {
        case SHRINK_HOLD:
            wait_ms = ANSWER_MS;
            continue;
        case SHRINK_EXCLUDED:
            return OUT;
        case SHRINK_DECISION:
            return obey(a, socket, &word.view);
        default:
            return AGAIN;
        }
    }
}

/* Asks the process `leader` to lead. AGREED: *socket leads to it. */
static enum outcome follow(struct attempt *a, int leader, int *socket)
{
    const struct reunion *m = a->reunion;
    struct claim claim = claim_of(a);
    int64_t connect_ms = a->timed_out ? GRACE_MS : ANSWER_MS;
    int error = listener_join(&m->at[leader], m->job, m->identity, connect_ms, socket);
    if (error == ECONNREFUSED)
        a->comers[leader].fate = ENDED;
    if (error != 0) {
        if (error != ECONNREFUSED)
            a->comers[leader].fate = SILENT;
        return NEXT;
    }
    error = control_send(*socket, &claim, sizeof claim, NULL, 0, ANSWER_MS);
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
        if (a->comers[i].fate != ENDED)
            a->comers[i].fate = ABSENT;
    }
    for (int i = 0; i < m->identity; i++) {
        if (!has(&m->base.members, i) || a->comers[i].fate == ENDED)
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
    const struct reunion *m = a->reunion;
    int *sockets = malloc((size_t)m->count * sizeof *sockets);
    int size = 0, rank = 0;
    struct world *world = calloc(1, sizeof *world);
    *out = world;
    if (!sockets || !world)
        TRY(FAIL(STATUS_NO_MEMORY, "world: out of memory"));
    for (int i = 0; i < m->count; i++) {
        if (!has(&m->base.members, i))
            continue;
        rank = i == m->identity ? size : rank;
        sockets[size++] = a->comers[i].socket;
    }
    if (rank > 0) /* the leader has the lowest identity */
        sockets[0] = *socket;
    world->timeout_ms = a->timeout_ms;
    memcpy(world->host, failed->host, sizeof world->host);
    TRY(world_rendezvous_adopt(world, rank, size, sockets));
    *socket = -1;
    for (int i = 0; i < m->count; i++)
        a->comers[i].socket = a->sockets[i] = -1;
    status = world_settle(world, NULL);
out:
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
    char text[400];
    struct line line = line_in(text, sizeof text);
    int silent = 0;
    for (int i = 0; i < m->count && silent < 8; i++) {
        if (i != m->identity && has(&m->base.members, i) && a->comers[i].fate != ENDED)
            line_add(&line, "%s%d", silent++ ? ", " : "", i);
    }
    return FAIL(STATUS_TIMEOUT,
                "shrink: rank %d on %s found too few ranks of its last world within %g s. These "
                "are silent, and may have continued without it: %s (numbers of the first world). "
                "Can the hosts reach each other? Slow ranks need a larger --timeout",
                m->identity, failed->host, (double)(2 * a->timeout_ms + 4 * ANSWER_MS) / 1000,
                text);
}

static enum status excluded(const struct world *failed)
{
    return FAIL(STATUS_TRANSPORT,
                "shrink: the other ranks have continued without rank %d on %s, because it was "
                "silent; start it again as a new process",
                failed->rank, failed->host);
}

/* -------- the interface ----------------------------------------------------------------------- */

enum status reunion_open(struct world *world, const char *subnet)
{
    enum status status;
    union address here;
    if (world->size > RANKS_MOST)
        return STATUS_OK; /* such a world cannot shrink */
    size_t count = (size_t)world->size;
    struct reunion *m = calloc(1, sizeof *m + count * sizeof *m->at);
    if (!m)
        return FAIL(STATUS_NO_MEMORY, "world: out of memory");
    world->reunion = m;
    m->listener.socket = -1;
    m->job = world->run_id;
    m->identity = world->rank;
    m->count = world->size;
    for (int i = 0; i < m->count; i++)
        add(&m->base.members, i);
    status = world_choose_address(world, subnet, &here);
    if (status == STATUS_OK) {
        int error = listener_open(&m->listener, &here, count);
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
out:
    return status;
}

void reunion_close(struct reunion **reunion)
{
    if (*reunion)
        listener_close(&(*reunion)->listener);
    free(*reunion);
    *reunion = NULL;
}

void reunion_close_in_child(const struct reunion *reunion)
{
    if (reunion && reunion->listener.socket >= 0)
        close(reunion->listener.socket);
}

static struct attempt *attempt_new(struct reunion *m, bool timed_out, int64_t timeout_ms)
{
    size_t count = (size_t)m->count;
    struct attempt *a = calloc(1, sizeof *a + count * (sizeof *a->comers + sizeof *a->sockets));
    if (!a)
        return NULL;
    a->reunion = m;
    a->timed_out = timed_out;
    a->timeout_ms = timeout_ms;
    a->deadline_ns = clock_now_ns() + (2 * timeout_ms + 4 * ANSWER_MS) * NS_PER_MS;
    a->sockets = (int *)(a->comers + count);
    for (int i = 0; i < m->count; i++)
        a->comers[i].socket = a->sockets[i] = -1;
    return a;
}

/* Whether a new attempt may succeed after this failure of the new world's first calls. */
static bool may_retry(enum status status)
{
    return status == STATUS_TRANSPORT || status == STATUS_TIMEOUT || status == STATUS_PROTOCOL;
}

enum status world_shrink(struct world **out, struct world *failed, bool timed_out,
                         int64_t timeout_ms)
{
    enum status status = STATUS_OK;
    struct reunion *m = failed->reunion;
    int socket = -1;
    *out = NULL;
    if (!m)
        return FAIL(STATUS_UNSUPPORTED,
                    "shrink: only ranks that met at a rendezvous, up to %d, can continue without "
                    "the others; MPI ends all ranks",
                    RANKS_MOST);
    struct attempt *a = attempt_new(m, timed_out, timeout_ms);
    if (!a)
        return FAIL(STATUS_NO_MEMORY, "shrink: out of memory");
    for (;;) {
        enum outcome outcome = m->excluded ? OUT : attempt(a, &socket);
        if (outcome == OUT) {
            m->excluded = true;
            listener_close(&m->listener); /* nobody asks this process again */
            TRY(excluded(failed));
        }
        if (outcome == FULL)
            TRY(FAIL(STATUS_TRANSPORT, "shrink: %d attempts have failed half-way; end all ranks",
                     NOTES_MOST));
        if (outcome == AGREED) {
            log_hold();
            status = make_world(a, failed, &socket, out);
            log_release(status != STATUS_OK && !may_retry(status));
            if (status == STATUS_OK)
                break;
            world_close(out);
            TRY(may_retry(status) ? STATUS_OK : status);
        }
        if (clock_now_ns() >= a->deadline_ns)
            TRY(gave_up(a, failed));
        clock_sleep_until_ns(clock_now_ns() + PAUSE_MS * NS_PER_MS);
    }
    drain(&m->listener);
    (*out)->reunion = m;
    failed->reunion = NULL;
out:
    leave_all(a);
    stream_close(&socket);
    free(a);
    return status;
}

void world_shrink_again(struct world *failed, struct world *shrunk)
{
    failed->reunion = shrunk->reunion;
    shrunk->reunion = NULL;
}
