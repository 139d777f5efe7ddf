#include "experiments/elastic/coordinator.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/base/descriptors.h"
#include "common/net/address.h"
#include "common/net/control.h"

/* -------- the thread -------------------------------------------------------------------------- */

/* A connection that gets no seat reads the reason. */
static void turn_away(int socket, enum status status, const char *text)
{
    membership_say(socket, MEMBERSHIP_END, 0, status, text);
    stream_close(&socket);
}

/* A member that speaks version 1 of the protocol reads this. */
static void answer_old(int socket, enum status status, const char *text)
{
    const struct {
        uint64_t magic;
        uint32_t type, text_bytes, generation;
        int32_t status;
        unsigned char unused[120];
    } end = {MEMBERSHIP_MAGIC, 11, (uint32_t)strlen(text), 0, status, {0}};
    if (stream_send(socket, &end, sizeof end, MEMBERSHIP_SEND_MS) == 0)
        stream_send(socket, text, strlen(text), MEMBERSHIP_SEND_MS);
}

/* Whether it was built with this server. */
static bool is_of_this_build(const struct hello *hello, int socket)
{
    char text[200];
    if (hello->head.protocol == CONTROL_PROTOCOL && strcmp(hello->version, PSRING_VERSION) == 0)
        return true;
    snprintf(text, sizeof text,
             "it is psring %s, the server is psring %s; start all from one build of psring",
             hello->version[0] ? hello->version : "of another version", PSRING_VERSION);
    log_info("%s was not let in: %s", hello->host[0] ? hello->host : "a process", text);
    if (hello->head.protocol < CONTROL_PROTOCOL)
        answer_old(socket, STATUS_USAGE, text);
    turn_away(socket, STATUS_USAGE, text);
    return false;
}

static bool has_token(struct coordinator *c, const struct hello *hello, int socket)
{
    if (hello->run_id == (MEMBERSHIP_MAGIC ^ c->options.token))
        return true;
    if (!c->warned)
        log_warn("a process on %s gave another token than this job's and was refused; the next "
                 "ones are refused without a message",
                 hello->host);
    c->warned = true;
    turn_away(socket, STATUS_USAGE,
              "this process gave another token than the server; give psring serve and all workers "
              "the same --token (or PSRING_TOKEN), or the same ~/.psring-token");
    return false;
}

static void let_in(struct coordinator *c, const struct hello *hello, int socket)
{
    char text[300];
    bool token_is_known = hello->head.protocol == CONTROL_PROTOCOL;
    if ((token_is_known && !has_token(c, hello, socket)) || !is_of_this_build(hello, socket))
        return;
    struct seat *seat = calloc(1, sizeof *seat);
    struct membership_reader *reader = calloc(1, sizeof *reader);
    if (!seat || !reader || c->count >= c->seats_most) {
        snprintf(text, sizeof text,
                 "the server has no seat left: %d processes are connected, at most %d can be; try "
                 "again when some have left",
                 c->count, c->seats_most);
        free(seat);
        free(reader);
        turn_away(socket, STATUS_UNSUPPORTED, text);
        return;
    }
    int64_t now_ns = clock_now_ns();
    *seat =
        (struct seat){.socket = socket, .reader = reader, .came_ns = now_ns, .heard_ns = now_ns};
    memcpy(seat->host, hello->host, sizeof seat->host);
    c->sockets[c->count] = socket;
    c->seats[c->count++] = seat;
    if (c->ended)
        seat_refuse(c, seat, STATUS_USAGE, "the job has ended");
}

/* It may only have been stopped for a while: then it reads this. */
static void lose_silent(struct coordinator *c, struct seat *seat)
{
    if (!c->ended)
        membership_say(seat->socket, MEMBERSHIP_END, 0, STATUS_TIMEOUT,
                       "this process was silent for too long: stopped, or its host could not be "
                       "reached; the job goes on without it, and a worker can join again");
    seat_lost(c, seat, "has not given a sign of life for too long");
}

/* It has said something that is still to be read: this process was stopped, or has much to read. */
static bool has_spoken(const struct seat *seat)
{
    char byte;
    return recv(seat->socket, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Once: it may come back. */
static void warn_of_silence(const struct coordinator *c, struct seat *seat, int64_t now_ns)
{
    char name[96];
    int64_t silent_ns = now_ns - seat->heard_ns, limit_ms = c->options.stall_warning_ms;
    if (limit_ms > 0 && limit_ms < 3 * MEMBERSHIP_BEAT_MS)
        limit_ms = 3 * MEMBERSHIP_BEAT_MS; /* between two of which all are silent */
    if (limit_ms <= 0 || c->ended || seat->silent_since_ns > 0 ||
        silent_ns < limit_ms * NS_PER_MS || has_spoken(seat))
        return;
    seat->silent_since_ns = seat->heard_ns;
    log_warn("%s has not given a sign of life for %lld s: its process is stopped, or its host "
             "cannot be reached; after %g s it is lost (--timeout)",
             seat_name(seat, name, sizeof name), (long long)(silent_ns / NS_PER_S),
             (double)c->options.timeout_ms / 1000);
}

static bool does_not_join(const struct seat *seat, int64_t now_ns)
{
    return seat->state == SEAT_NEW && now_ns - seat->came_ns >= MEMBERSHIP_JOIN_MS * NS_PER_MS &&
           !has_spoken(seat);
}

static void look_at_all(struct coordinator *c, int64_t now_ns)
{
    for (int i = c->count - 1; i >= 0; i--) {
        struct seat *seat = c->seats[i];
        if (now_ns - seat->heard_ns >= c->options.timeout_ms * NS_PER_MS && !has_spoken(seat))
            lose_silent(c, seat);
        else if (does_not_join(seat, now_ns))
            seat_refuse(c, seat, STATUS_TIMEOUT,
                        "this process connected and did not ask to take part in time");
        else {
            warn_of_silence(c, seat, now_ns);
            membership_say(seat->socket, MEMBERSHIP_BEAT, 0, STATUS_OK, NULL);
        }
    }
}

static void *run(void *argument)
{
    struct coordinator *c = argument;
    int64_t look_ns = clock_now_ns();
    for (;;) {
        struct hello hello;
        int socket;
        size_t which;
        enum listener_event event = listener_wait(&c->listener, look_ns, c->sockets,
                                                  (size_t)c->count, &hello, &socket, &which);
        monitor_enter(&c->monitor);
        if (event == LISTENER_HELLO)
            let_in(c, &hello, socket);
        else if (event == LISTENER_WATCHED)
            seat_hear(c, c->seats[which]);
        int64_t now_ns = clock_now_ns();
        if (now_ns >= look_ns) {
            look_at_all(c, now_ns);
            look_ns = now_ns + MEMBERSHIP_BEAT_MS * NS_PER_MS;
        }
        generation_settle(c, now_ns);
        bool goes_on = !c->closing;
        monitor_leave(&c->monitor);
        if (!goes_on)
            return NULL;
    }
}

/* -------- the interface ----------------------------------------------------------------------- */

static enum status listen_at(struct coordinator *c)
{
    char host[ADDRESS_HOST_BYTES];
    int port = 0;
    const char *why = "";
    union address address, any = address_any();
    int error = EADDRNOTAVAIL;
    if (address_parse(c->options.address, host, sizeof host, &port) &&
        address_to_listen_at(host, port, &address, &why)) {
        error = listener_open(&c->listener, &address, COORDINATOR_MEMBERS);
        why = strerror(error);
    }
    if (error != 0)
        return FAIL(
            STATUS_USAGE,
            "--listen %s: cannot listen there: %s; name an address of this host, and a port "
            "that is free",
            c->options.address, why);
    address = c->listener.address;
    if (address_same_host(&address, &any)) {
        any = address_loopback();
        address_set_port(&any, address_port(&address));
        address = any;
    }
    address_uri(&address, c->address);
    return STATUS_OK;
}

/* Descriptors for files, the server's own connections and those that have not said hello. */
static int seats_most(void)
{
    enum { OTHERS = 128, SEATS_LEAST = 8 };
    struct descriptors found = descriptors_for(COORDINATOR_MEMBERS + OTHERS);
    int lacking = found.needs - found.limit, seats = COORDINATOR_MEMBERS - lacking;
    return lacking <= 0 ? COORDINATOR_MEMBERS : seats > SEATS_LEAST ? seats : SEATS_LEAST;
}

enum status coordinator_open(struct coordinator **out, const struct coordinator_options *options)
{
    enum status status = STATUS_OK;
    *out = NULL;
    struct coordinator *c = calloc(1, sizeof *c);
    if (!c)
        return FAIL(STATUS_NO_MEMORY, "coordinator: out of memory");
    c->options = *options;
    c->listener.socket = -1;
    c->seats_most = seats_most();
    monitor_init(&c->monitor);
    TRY(listen_at(c));
    TRY(thread_start(&c->thread, "psring-members", run, c));
    *out = c;
    return STATUS_OK;
out:
    coordinator_close(&c);
    return status;
}

const char *coordinator_address(const struct coordinator *c)
{
    return c->address;
}

enum status coordinator_wait_job(struct coordinator *c, struct coordinator_job *job)
{
    monitor_enter(&c->monitor);
    while (!c->has_job || (!c->job.summoned && !c->complete))
        monitor_wait(&c->monitor);
    *job = c->job;
    monitor_leave(&c->monitor);
    return STATUS_OK;
}

void coordinator_set_servers(struct coordinator *c, int servers)
{
    monitor_enter(&c->monitor);
    c->servers = servers;
    monitor_leave(&c->monitor);
}

/* Of another server, to SUMMON: END. *why: what it says, or what is wrong. */
static enum status hear_answer(int socket, struct membership_reader *reader, int64_t timeout_ms,
                               const char **why)
{
    int64_t deadline_ns = stream_deadline_ns(timeout_ms);
    enum control_read got;
    *why = "it does not answer";
    while ((got = membership_read(reader, socket)) != CONTROL_CLOSED) {
        if (got == CONTROL_MESSAGE && reader->frame.head.type == MEMBERSHIP_END) {
            *why = reader->text;
            return (enum status)reader->frame.head.value;
        }
        if (got == CONTROL_NOTHING && stream_wait(socket, POLLIN, deadline_ns, NULL, NULL) != 0)
            return STATUS_TIMEOUT;
    }
    *why = "it has ended";
    return STATUS_TRANSPORT;
}

enum status coordinator_summon(struct coordinator *c, const char *address, int index,
                               const char *job, int64_t timeout_ms)
{
    int socket;
    char text[MEMBERSHIP_TEXT_BYTES];
    const char *why = "nobody listens there";
    struct membership_reader reader = {0};
    const struct membership_frame frame = {.head.type = MEMBERSHIP_SUMMON,
                                           .role = MEMBER_SERVER,
                                           .index = index,
                                           .port = (uint32_t)address_port(&c->listener.address)};
    enum status status = membership_connect(address, c->options.token, timeout_ms, &socket);
    if (status == STATUS_OK) {
        membership_send(socket, frame, job);
        status = hear_answer(socket, &reader, timeout_ms, &why);
    }
    stream_close(&socket);
    if (status == STATUS_OK)
        return status;
    snprintf(text, sizeof text, "server %d, %.300s, does not take part: %.500s", index, address,
             why);
    log_error("%s", text);
    coordinator_end(c, status, text);
    return status;
}

void coordinator_end(struct coordinator *c, enum status why, const char *text)
{
    monitor_enter(&c->monitor);
    if (!c->ended)
        coordinator_end_all(c, why, text);
    monitor_leave(&c->monitor);
}

void coordinator_close(struct coordinator **out)
{
    struct coordinator *c = *out;
    if (!c)
        return;
    *out = NULL;
    monitor_enter(&c->monitor);
    c->closing = true;
    monitor_leave(&c->monitor);
    thread_join(&c->thread);
    while (c->count > 0)
        coordinator_forget(c, c->seats[0]);
    listener_close(&c->listener);
    monitor_fini(&c->monitor);
    free(c);
}
