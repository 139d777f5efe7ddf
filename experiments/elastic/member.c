#include "experiments/elastic/member.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/thread.h"
#include "common/net/address.h"
#include "common/net/control.h"
#include "common/net/secure.h"
#include "experiments/elastic/coordinator.h"

_Static_assert(offsetof(struct membership_reader, text) ==
                   offsetof(struct membership_reader, frame) + sizeof(struct membership_frame),
               "a text comes after its frame");

int membership_send(int socket, struct membership_frame frame, const char *text)
{
    size_t bytes = text ? strlen(text) : 0;
    if (bytes > MEMBERSHIP_TEXT_BYTES)
        return EMSGSIZE;
    int error = control_send(socket, &frame, sizeof frame, text, bytes, -1);
    if (error != 0)
        shutdown(socket, SHUT_RDWR);
    return error;
}

int membership_say(int socket, uint64_t job, enum membership_type type, uint32_t generation,
                   enum status status, const char *text)
{
    const struct membership_frame frame = {
        .head = {.type = type, .group = generation, .value = status, .job = job}};
    return membership_send(socket, frame, text);
}

int64_t membership_heard_ns(int64_t heard_ns, int64_t due_ns, int64_t now_ns)
{
    int64_t pause_ns = now_ns - due_ns;
    if (pause_ns < MEMBERSHIP_BEAT_MS * NS_PER_MS)
        return heard_ns;
    return heard_ns + pause_ns < now_ns ? heard_ns + pause_ns : now_ns;
}

enum control_read membership_read(struct membership_reader *reader, int socket)
{
    size_t least = sizeof reader->frame;
    enum control_read got =
        control_read(socket, &reader->frame, least, least + MEMBERSHIP_TEXT_BYTES, &reader->input);
    if (got == CONTROL_MESSAGE)
        reader->text[sizeof reader->frame.head + reader->frame.head.bytes - least] = '\0';
    return got == CONTROL_MESSAGE || got == CONTROL_NOTHING ? got : CONTROL_CLOSED;
}

/* -------- connecting -------------------------------------------------------------------------- */

struct joining {
    uint64_t token;
    int *socket;
};

static int try_to_join(void *self, const union address *address, int64_t connect_ms)
{
    const struct joining *joining = self;
    return listener_join(address, membership_job(joining->token, 0), 0, connect_ms,
                         joining->socket);
}

enum status membership_connect(const char *text, uint64_t token, int64_t timeout_ms,
                               cancelled_call *cancelled, void *context, int *socket)
{
    char host[ADDRESS_HOST_BYTES];
    const char *unknown;
    struct joining joining = {token, socket};
    struct control_search search = {.host = host,
                                    .timeout_ms = timeout_ms,
                                    .cancelled = cancelled,
                                    .context = context,
                                    .attempt = try_to_join,
                                    .self = &joining};
    *socket = -1;
    CHECK(address_parse(text, host, sizeof host, &search.port));
    int error = control_search(&search, &unknown);
    if (error == 0 && !unknown)
        return STATUS_OK;
    if (error == ECANCELED)
        return STATUS_STOPPED;
    return FAIL(STATUS_TIMEOUT,
                "--join %s: found no server there within %g s: %s; start it on that host: "
                "psring serve --listen %s",
                text, (double)timeout_ms / 1000, unknown ? unknown : strerror(error), text);
}

struct member {
    struct member_options options;
    int socket;
    uint64_t job; /* in its messages; the reader has that of the coordinator */
    struct thread thread;
    _Atomic uint64_t until;
    struct membership_reader reader;
    struct monitor monitor; /* of the fields below and sending; wakes: `begun`, `ended`, `lost`, a
                               beat */
    bool joined;            /* has sent JOIN or RETURN on this connection */
    bool heard;             /* a message has arrived */
    bool durable;           /* the job survives its servers */
    uint32_t id;            /* in a durable job; 0: has been in no generation */
    bool lost;              /* the connection, but not the durable job. The thread has ended. */
    int64_t lost_ns;        /* time of the loss; 0: the coordinator has sent something since */
    uint32_t generation;    /* the present generation; 0: none yet */
    bool begun, over;       /* the generation has begun; cannot continue */
    struct membership_frame frame; /* the GENERATION message */
    int64_t noted_ns;              /* time of the last NOTE; 0: none */
    bool ended;                    /* the job, or this member's part in it, has ended */
    enum status end_status;
    bool closing;
    void (*interrupt)(void *context);
    void *context;
};

/* -------- reading from the coordinator: the thread -------------------------------------------- */

/* With the lock. */
static void interrupt(struct member *member)
{
    if (member->interrupt)
        member->interrupt(member->context);
}

/* With the lock. */
static void end(struct member *member, enum status status)
{
    member->ended = true;
    member->end_status = status;
    interrupt(member);
    monitor_wake(&member->monitor);
}

/* With the lock. */
static void hear_frame(struct member *member)
{
    const struct membership_reader *reader = &member->reader;
    const struct membership_frame *frame = &reader->frame;
    switch (frame->head.type) {
    case MEMBERSHIP_GENERATION:
        member->frame = *frame;
        member->generation = frame->head.group;
        member->id = frame->id;
        member->durable = frame->id != 0;
        member->begun = true;
        member->over = false;
        atomic_store(&member->until, UINT64_MAX);
        monitor_wake(&member->monitor);
        break;
    case MEMBERSHIP_CHANGE:
        if (frame->head.group == member->generation &&
            frame->place.step < atomic_load(&member->until))
            atomic_store(&member->until, frame->place.step);
        break;
    case MEMBERSHIP_OVER:
        if (frame->head.group != member->generation || member->over)
            break;
        log_warn("%s", reader->text);
        member->over = true;
        interrupt(member);
        break;
    case MEMBERSHIP_NOTE:
        log_info("%s", reader->text);
        member->durable = member->durable || frame->id != 0;
        member->noted_ns = clock_now_ns();
        break;
    case MEMBERSHIP_END:
        if (frame->head.value != STATUS_OK)
            log_error("%s", reader->text);
        else if (reader->text[0])
            log_info("%s", reader->text);
        end(member,
            frame->head.value == STATUS_OK ? STATUS_STOPPED : (enum status)frame->head.value);
        break;
    case CONTROL_ANSWER:
        log_error(
            "--join %s: rank 0 of a run by --rendezvous listens there, expected psring serve; "
            "give the server's port",
            member->options.address);
        end(member, STATUS_USAGE);
        break;
    default:
        break;
    }
}

/* With the lock. The file of a durable job brings it back: leave the generation, and return. */
static void lose(struct member *member, const char *how)
{
    log_warn("the server at %s %s; waits until it is started again", member->options.address, how);
    member->lost = member->over = true;
    if (member->lost_ns == 0)
        member->lost_ns = clock_now_ns();
    interrupt(member);
    monitor_wake(&member->monitor);
}

/* With the lock. Returns false when no further message can come. */
static bool hear(struct member *member, int64_t *heard_ns)
{
    enum control_read got;
    while (!member->ended &&
           (got = membership_read(&member->reader, member->socket)) == CONTROL_MESSAGE) {
        *heard_ns = clock_now_ns();
        member->lost_ns = 0;
        member->heard = true;
        hear_frame(member);
    }
    if (member->ended || member->closing)
        return false;
    int64_t silent_ms = (clock_now_ns() - *heard_ns) / NS_PER_MS;
    bool silent = silent_ms >= member->options.timeout_ms;
    if (member->durable && (got == CONTROL_CLOSED || silent)) {
        lose(member,
             got == CONTROL_CLOSED ? "has ended" : "has not given a sign of life for too long");
        return false;
    }
    if (got == CONTROL_CLOSED && !member->heard)
        log_error("--join %s: the server there closes the connection at once; give it and all "
                  "workers the same --secure folder, or none",
                  member->options.address);
    else if (got == CONTROL_CLOSED)
        log_error("the server at %s, which the job depends on, has ended: killed, or crashed; "
                  "start the job again",
                  member->options.address);
    else if (silent)
        log_error("the server at %s, which the job depends on, has not given a sign of life for "
                  "%lld s: it is stopped, or cannot be reached; if the job still runs, it "
                  "continues without this worker",
                  member->options.address, (long long)(silent_ms / 1000));
    else
        return true;
    end(member, STATUS_TRANSPORT);
    return false;
}

/* A stopped coordinator reads nothing, and the connection holds little before a handshake of TLS.
 * The coordinator has beats to read when it continues. */
_Static_assert(sizeof(struct hello) + MEMBERSHIP_TEXT_BYTES +
                       (2 + MEMBERSHIP_QUIET_MS / MEMBERSHIP_BEAT_MS) *
                           sizeof(struct membership_frame) <
                   SECURE_QUEUE_BYTES,
               "hello, JOIN and the beats fit");

static void *run(void *argument)
{
    struct member *member = argument;
    int64_t heard_ns = clock_now_ns(), beat_ns = heard_ns;
    bool goes_on = true;
    while (goes_on) {
        stream_wait(member->socket, POLLIN, beat_ns, NULL, NULL);
        monitor_enter(&member->monitor);
        heard_ns = membership_heard_ns(heard_ns, beat_ns, clock_now_ns());
        goes_on = hear(member, &heard_ns);
        if (goes_on && clock_now_ns() >= beat_ns) {
            if (clock_now_ns() - heard_ns < MEMBERSHIP_QUIET_MS * NS_PER_MS)
                membership_say(member->socket, member->job, MEMBERSHIP_BEAT, 0, STATUS_OK, NULL);
            beat_ns = clock_now_ns() + MEMBERSHIP_BEAT_MS * NS_PER_MS;
            monitor_wake(&member->monitor);
        }
        monitor_leave(&member->monitor);
    }
    return NULL;
}

/* -------- the interface ----------------------------------------------------------------------- */

_Static_assert((int)MEMBER_ADDRESS_BYTES == (int)ADDRESS_URI_BYTES, "addresses as text");

/* `stop` points to a member_options.stop. */
static bool is_stopped(void *stop)
{
    bool (**function)(void) = stop;
    return *function && (*function)();
}

enum status member_open(struct member **out, const struct member_options *options)
{
    enum status status = STATUS_OK;
    *out = NULL;
    struct member *member = calloc(1, sizeof *member);
    if (!member)
        return FAIL(STATUS_NO_MEMORY, "membership: out of memory");
    member->options = *options;
    member->durable = options->durable;
    member->job = membership_job(options->token, options->first_id);
    member->socket = -1;
    atomic_store(&member->until, UINT64_MAX);
    monitor_init(&member->monitor);
    TRY(membership_connect(options->address, options->token, options->startup_timeout_ms,
                           is_stopped, &member->options.stop, &member->socket));
    TRY(thread_start(&member->thread, "psring-member", run, member));
    *out = member;
    return STATUS_OK;
out:
    member_close(&member);
    return status;
}

void member_close(struct member **out)
{
    struct member *member = *out;
    if (!member)
        return;
    *out = NULL;
    monitor_enter(&member->monitor);
    member->closing = true;
    monitor_leave(&member->monitor);
    shutdown(member->socket, SHUT_RD); /* wakes the thread */
    thread_join(&member->thread);
    stream_close(&member->socket);
    monitor_fini(&member->monitor);
    free(member);
}

/* Sends a message. If sending fails, the thread notices the closed connection. */
static void tell(struct member *member, const struct member_place *place, uint32_t type, int port,
                 const char *text)
{
    struct membership_frame frame = {.head = {.type = type, .job = member->job},
                                     .role = (int32_t)member->options.role,
                                     .index = member->options.index,
                                     .port = (uint32_t)port,
                                     .place = *place};
    if (type == MEMBERSHIP_JOIN && member->options.role == MEMBER_WORKER)
        frame.place.step = member->options.join_after;
    monitor_enter(&member->monitor);
    frame.id = member->id;
    /* If a generation began before this member could take part, treat it as not received. */
    frame.head.group = member->generation - (member->begun ? 1 : 0);
    member->begun = false;
    member->noted_ns = 0;
    if (type == MEMBERSHIP_LEAVE || (type == MEMBERSHIP_DONE && !member->durable))
        end(member, STATUS_STOPPED); /* independent of what the coordinator does now */
    membership_send(member->socket, frame, text);
    monitor_leave(&member->monitor);
}

void member_leave(struct member *member, const struct member_place *place)
{
    tell(member, place, MEMBERSHIP_LEAVE, 0, NULL);
}

void member_abort(struct member *member, enum status status, const char *text)
{
    tell(member, &(struct member_place){.ended = status}, MEMBERSHIP_ABORT, 0, text);
}

void member_watch(struct member *member, void (*call)(void *context), void *context)
{
    monitor_enter(&member->monitor);
    member->interrupt = call;
    member->context = context;
    if (member->over || member->ended)
        interrupt(member);
    monitor_leave(&member->monitor);
}

uint64_t member_until(const struct member *member)
{
    return atomic_load(&member->until);
}

bool member_over(struct member *member)
{
    monitor_enter(&member->monitor);
    bool over = member->over || member->ended;
    monitor_leave(&member->monitor);
    return over;
}

/* Reads a flag that the thread writes. */
static bool is_set(struct member *member, const bool *flag)
{
    monitor_enter(&member->monitor);
    bool set = *flag;
    monitor_leave(&member->monitor);
    return set;
}

bool member_ended(struct member *member)
{
    return is_set(member, &member->ended);
}

/* -------- meeting ----------------------------------------------------------------------------- */

/* Opens the socket of rank 0, in case this member becomes rank 0. It listens at any address,
 * because other members use the address that they or the coordinator see. */
static enum status listen_anywhere(int *listening, int *port)
{
    union address address = address_any();
    int error = stream_listen(&address, listening);
    if (error == 0)
        error = address_of_socket(*listening, &address);
    *port = error == 0 ? address_port(&address) : 0;
    if (error == 0)
        return STATUS_OK;
    return FAIL(status_from_errno(error), "membership: cannot listen for other ranks: %s",
                strerror(error));
}

/* Waits until a generation begins. The coordinator sends what it waits for, and makes sure that
 * all members leave the last generation. `endless`: a newcomer may wait for a distant step, and a
 * server for its first worker. STATUS_TRANSPORT: the job has ended, or the coordinator is lost. */
static enum status wait_for_begin(struct member *member, bool endless, bool (*stop)(void),
                                  struct membership_frame *frame)
{
    enum status status = STATUS_OK;
    int64_t timeout_ms = member->options.startup_timeout_ms;
    monitor_enter(&member->monitor);
    while (!member->begun && !member->ended && !member->lost && status == STATUS_OK) {
        monitor_wait(&member->monitor);
        if (stop && stop())
            status = STATUS_STOPPED;
        else if (!endless && member->noted_ns > 0 &&
                 clock_now_ns() >= member->noted_ns + timeout_ms * NS_PER_MS)
            status = STATUS_TIMEOUT;
    }
    if (member->begun) {
        status = STATUS_OK;
        member->begun = false; /* from here on this member takes part */
        *frame = member->frame;
    } else if (member->ended)
        status = member->end_status;
    else if (member->lost && status == STATUS_OK)
        status = STATUS_TRANSPORT;
    monitor_leave(&member->monitor);
    if (status == STATUS_TIMEOUT)
        log_error("no generation has begun within %g s; start the missing members, or give a "
                  "longer --startup-timeout",
                  (double)timeout_ms / 1000);
    return status;
}

/* If rank 0 reached the coordinator over loopback, it is on the coordinator's host. Other members
 * then use the coordinator's address. */
static void write_address(const struct member *member, const struct membership_frame *frame,
                          char text[ADDRESS_URI_BYTES])
{
    union address address, there;
    int port = (int)(frame->port & 0xffff);
    address_unpack(frame->address, port, &address);
    bool reached = address_of_peer(member->socket, &there) == 0;
    /* On the same host, `there` has the scope of a link-local address on this host. */
    if (reached && (address_is_loopback(&address) || address_same_host(&address, &there)))
        address = there;
    address_set_port(&address, port);
    address_uri(&address, text);
}

/* Another program may listen at the address that this member was given. */
static enum status check_numbers(const struct member *member, const struct membership_frame *frame)
{
    if (frame->workers >= 1 && frame->workers <= COORDINATOR_MEMBERS && frame->servers >= 1 &&
        frame->servers <= COORDINATOR_MEMBERS && frame->index >= 0 &&
        frame->index < frame->workers + frame->servers)
        return STATUS_OK;
    return FAIL(STATUS_PROTOCOL,
                "the server at %s sent rank %d of %d workers and %d servers, expected at most %d "
                "of each and a rank below their sum; is it psring serve of this build?",
                member->options.address, frame->index, frame->workers, frame->servers,
                COORDINATOR_MEMBERS);
}

/* Connects again if the coordinator was lost. The time-out counts from the loss, also if another
 * process took the connection and is silent. */
static enum status reach(struct member *member, bool (*stop)(void))
{
    enum { AGAIN_MS = 200, FIRST_MS = 3000 }; /* the first attempt may come late, after a step */
    enum status status = STATUS_OK;
    const struct member_options *options = &member->options;
    if (!is_set(member, &member->lost))
        return STATUS_OK;
    thread_join(&member->thread);
    stream_close(&member->socket);
    int64_t since_ms = (clock_now_ns() - member->lost_ns) / NS_PER_MS;
    int64_t left_ms = options->startup_timeout_ms - since_ms;
    bool answered = member->heard; /* the server that was lost */
    if (left_ms <= 0 && !answered)
        return FAIL(STATUS_TIMEOUT,
                    "the server at %s does not answer within %g s; start it again with the same "
                    "command (and --secure folder), or give a larger --startup-timeout",
                    options->address, (double)options->startup_timeout_ms / 1000);
    if (!answered)
        clock_sleep_until_ns(clock_now_ns() + AGAIN_MS * NS_PER_MS);
    TRY(membership_connect(options->address, options->token,
                           left_ms > FIRST_MS || !answered ? left_ms : FIRST_MS, is_stopped, &stop,
                           &member->socket));
    if (member->id != 0) /* it belongs to the job of its last generation */
        member->job = member->frame.head.job;
    member->reader.input = (struct control_input){0};
    member->lost = member->joined = member->heard = false;
    TRY(thread_start(&member->thread, "psring-member", run, member));
out:
    return status;
}

/* Says READY or DONE, and waits for the answer. On a new connection it says who it is, and READY
 * becomes JOIN or RETURN. */
static enum status say_and_wait(struct member *member, enum membership_type type,
                                const struct member_place *place, int port, bool (*stop)(void),
                                struct membership_frame *frame)
{
    enum status status = STATUS_OK;
    const struct member_options *options = &member->options;
    do {
        TRY(reach(member, stop));
        bool first = !member->joined, joins = first && member->id == 0;
        bool endless = options->role == MEMBER_SERVER || (joins && options->join_after > 0);
        enum membership_type comes = joins ? MEMBERSHIP_JOIN : MEMBERSHIP_RETURN;
        member->joined = true;
        tell(member, place, first && type == MEMBERSHIP_READY ? comes : type, port,
             first ? options->job : NULL);
        status = wait_for_begin(member, endless, stop, frame);
    } while (status == STATUS_TRANSPORT && is_set(member, &member->lost));
out:
    return status;
}

enum status member_done(struct member *member, const struct member_place *place, bool (*stop)(void))
{
    struct membership_frame none;
    enum status status = say_and_wait(member, MEMBERSHIP_DONE, place, 0, stop, &none);
    return status == STATUS_STOPPED && member_ended(member) ? STATUS_OK : status;
}

enum status member_meet(struct member *member, const struct member_place *place, bool (*stop)(void),
                        struct member_generation *generation)
{
    enum status status = STATUS_OK;
    int listening = -1, port = 0;
    if (member->options.role == MEMBER_WORKER)
        TRY(listen_anywhere(&listening, &port));
    struct membership_frame frame = {0};
    TRY(say_and_wait(member, MEMBERSHIP_READY, place, port, stop, &frame));
    TRY(check_numbers(member, &frame));
    *generation = (struct member_generation){.number = frame.head.group,
                                             .durable = frame.id != 0,
                                             .rank = frame.index,
                                             .workers = frame.workers,
                                             .servers = frame.servers,
                                             .step = frame.place.step};
    generation->token = rng_mix64(member->options.token + frame.head.group);
    memcpy(generation->note, frame.place.note, sizeof generation->note);
    write_address(member, &frame, generation->address);
    if (frame.index == 0) {
        generation->listening = listening;
        listening = -1;
    }
out:
    stream_close(&listening);
    return status;
}
