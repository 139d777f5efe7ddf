/* The coordinator: its thread, the members' messages, and the interface. */
#include "experiments/elastic/coordinator.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/base/descriptors.h"
#include "common/base/text.h"
#include "common/net/address.h"
#include "common/net/control.h"

#define JOB_HAS_ENDED "the job has ended"
#define REPLACED                                                                                   \
    "another process has this server's number, and the job continues with it; start each server "  \
    "only once"

/* -------- members ----------------------------------------------------------------------------- */

bool seat_is_worker(const struct seat *seat)
{
    return seat->last.role == MEMBER_WORKER;
}

const char *seat_name(const struct seat *seat, char *text, size_t size)
{
    if (!seat_is_worker(seat))
        snprintf(text, size, "server %d on %s", seat->last.index, seat->host);
    else if (seat->state == SEAT_RUNNING)
        snprintf(text, size, "worker %d on %s", seat->rank, seat->host);
    else
        snprintf(text, size, "a worker on %s", seat->host);
    return text;
}

void coordinator_forget(struct coordinator *c, struct seat *seat)
{
    for (int i = 0; i < c->count; i++) {
        if (c->seats[i] != seat)
            continue;
        stream_close(&c->sockets[i]);
        c->count--;
        c->seats[i] = c->seats[c->count];
        c->sockets[i] = c->sockets[c->count];
        free(seat);
        monitor_wake(&c->monitor); /* a server may be lacking */
        return;
    }
}

void coordinator_end_all(struct coordinator *c, enum status status, const char *text)
{
    c->ended = true;
    c->end_status = status;
    snprintf(c->end_text, sizeof c->end_text, "%s", text);
    for (int i = c->count - 1; i >= 0; i--)
        membership_say(c->sockets[i], c->own_job, MEMBERSHIP_END, 0, status, text);
}

bool job_is_durable(const struct coordinator *c)
{
    return c->first_id != 0 && c->generation > 0;
}

void seat_note(const struct coordinator *c, const struct seat *seat, const char *text)
{
    const struct membership_frame note = {.head = {.type = MEMBERSHIP_NOTE, .job = c->own_job},
                                          .id = job_is_durable(c) ? c->first_id : 0};
    membership_send(seat->socket, note, text);
}

void seat_refuse(struct coordinator *c, struct seat *seat, enum status status, const char *text)
{
    membership_say(seat->socket, c->own_job, MEMBERSHIP_END, 0, status, text);
    log_info("%s was not let in: %s", seat->host, text);
    coordinator_forget(c, seat);
}

int coordinator_awaited(const struct coordinator *c, const struct seat *seat)
{
    for (int i = 0; seat_is_worker(seat) && i < c->worker_count - c->done; i++) {
        if (c->workers[i] == c->first_id + seat->age)
            return i;
    }
    return -1;
}

/* If other workers did one more step, it contains this worker's gradient. */
uint64_t coordinator_images(const struct coordinator *c, const struct seat *seat)
{
    const struct member_place *place = &seat->last.place;
    return place->images + (seat->trained && place->step < c->step ? place->batch : 0);
}

bool coordinator_count(struct coordinator *c, const struct seat *seat)
{
    int found = coordinator_awaited(c, seat), last = c->worker_count - c->done - 1;
    if (found < 0)
        return false;
    uint32_t id = c->workers[found];
    c->workers[found] = c->workers[last];
    c->workers[last] = id;
    c->done++;
    c->images += coordinator_images(c, seat);
    return true;
}

/* Handles a member that will send no more. */
void seat_lost(struct coordinator *c, struct seat *seat, const char *how)
{
    char name[96], text[300];
    seat_name(seat, name, sizeof name);
    bool server = !seat_is_worker(seat) && seat->state != SEAT_NEW;
    bool in = seat->state == SEAT_RUNNING;
    bool known = seat->state != SEAT_NEW && seat->state != SEAT_DONE;
    coordinator_forget(c, seat);
    if (server && !job_is_durable(c) && !c->ended) {
        snprintf(text, sizeof text,
                 "%s %s: the job cannot continue without it; start the job again", name, how);
        coordinator_end_all(c, STATUS_TRANSPORT, text);
    } else if (in && !c->ended) {
        snprintf(text, sizeof text, "%s %s: the other %s", name, how,
                 server ? "members wait until it is started again" : "workers continue without it");
        generation_over(c, text);
    } else if (known && !c->ended) {
        log_info("%s, which waited, %s", name, how);
    }
}

/* It may only be stopped, and then reads the text when it continues. */
void seat_drop(struct coordinator *c, struct seat *seat, const char *how, const char *text)
{
    if (!c->ended && (seat_is_worker(seat) || !job_is_durable(c)))
        membership_say(seat->socket, c->own_job, MEMBERSHIP_END, 0, STATUS_TIMEOUT, text);
    seat_lost(c, seat, how);
}

/* -------- messages of members ----------------------------------------------------------------- */

static void take_job(struct coordinator *c, const struct seat *seat)
{
    struct coordinator_job *job = &c->job;
    snprintf(job->options, sizeof job->options, "%s", seat->reader.text);
    memcpy(job->address, c->address, sizeof job->address);
    c->has_job = true;
    monitor_wake(&c->monitor);
}

struct seat *coordinator_server(const struct coordinator *c, int number)
{
    for (int i = 0; i < c->count; i++) {
        struct seat *seat = c->seats[i];
        if (seat->state != SEAT_NEW && !seat_is_worker(seat) && seat->last.index == number)
            return seat;
    }
    return NULL;
}

static struct seat *worker_of(const struct coordinator *c, uint32_t id)
{
    for (int i = 0; i < c->count; i++) {
        struct seat *seat = c->seats[i];
        if (seat->state != SEAT_NEW && seat_is_worker(seat) && c->first_id + seat->age == id)
            return seat;
    }
    return NULL;
}

static bool is_of_last_generation(const struct coordinator *c, const struct seat *seat)
{
    bool found = false;
    for (int i = 0; i < c->worker_count && !found; i++)
        found = c->workers[i] == seat->last.id;
    return found && job_is_durable(c) && seat->last.head.group <= c->generation;
}

/* A worker without weights counts as a newcomer. */
static void take_place(struct seat *seat)
{
    seat->trained = seat->last.place.step != MEMBER_NO_STEP;
    if (!seat->trained)
        seat->last.place.step = 0;
}

/* The member has left its generation. The other members may still compute a step, or wait for it in
 * their set-up. */
static void comes_out(struct coordinator *c, struct seat *seat)
{
    const struct coordinator_options *options = &c->options;
    int64_t longest_ms = options->startup_timeout_ms > options->timeout_ms
                             ? options->startup_timeout_ms
                             : options->timeout_ms;
    bool trained = seat->last.place.step != MEMBER_NO_STEP;
    c->accounted += seat_is_worker(seat);
    c->has_weights = c->has_weights || (seat_is_worker(seat) && trained);
    if (c->leave_by_ns == 0)
        c->leave_by_ns = clock_now_ns() + (longest_ms + MEMBERSHIP_GRACE_MS) * NS_PER_MS;
    if (seat->last.place.ended != STATUS_OK) {
        char name[96], text[160];
        snprintf(text, sizeof text, "%s could not continue: all workers meet again",
                 seat_name(seat, name, sizeof name));
        generation_over(c, text);
    }
}

/* The worker has trained to the end. */
static void hear_done(struct coordinator *c, struct seat *seat)
{
    comes_out(c, seat);
    take_place(seat);
    seat->state = SEAT_DONE;
    if (c->ended)
        return;
    if (c->step < seat->last.place.step)
        c->step = seat->last.place.step;
    coordinator_count(c, seat);
    coordinator_record(c);
}

/* Whether it has been in a generation, but has a new connection. */
static bool has_been_here(const struct seat *seat)
{
    return seat->last.head.type != MEMBERSHIP_JOIN;
}

/* Why a worker cannot take part, or NULL. `text` is for the answer. */
static const char *refuse_worker(const struct coordinator *c, const struct seat *seat, char *text,
                                 size_t size)
{
    char found[500];
    bool returns = has_been_here(seat);
    if (!returns && (c->ended || c->done > 0))
        return JOB_HAS_ENDED;
    if (returns && !is_of_last_generation(c, seat))
        return "the job has continued without this worker, or the server has another job's "
               "--checkpoint; start the worker again";
    if (!c->has_job || !text_difference(c->job.options, seat->reader.text, found, sizeof found))
        return NULL;
    snprintf(text, size, "this worker was started with %s; start all workers with the same options",
             found);
    return text;
}

/* The process that joined last is the server, if two have its number. */
static const char *refuse_server(const struct coordinator *c, const struct seat *seat)
{
    int number = seat->last.index;
    const struct seat *there = coordinator_server(c, number);
    if (number < 0 || number >= c->servers || (there && !job_is_durable(c)))
        return "the job has this server already, or needs none";
    bool older = there && has_been_here(seat) && seat->last.id < c->first_id + there->age;
    return older ? REPLACED : NULL;
}

/* Why a member cannot take part, or NULL. */
static const char *refuse(const struct coordinator *c, const struct seat *seat, char *text,
                          size_t size)
{
    uint64_t job = seat->last.head.job;
    if (c->has_job && c->job.summoned)
        return "this server serves another server's job; give the workers that job's --join";
    if (job != c->own_job && job != membership_job(c->options.token, 0))
        return "this process belongs to an earlier job than the server, or the server has another "
               "job's --checkpoint; start a worker again, and a server with an empty --checkpoint "
               "folder";
    return seat_is_worker(seat) ? refuse_worker(c, seat, text, size) : refuse_server(c, seat);
}

/* A member that connects again has left its earlier connection, which may still seem alive. If it
 * is another process, the earlier one reads the reason. After DONE no generation is over. */
static void lose_earlier(struct coordinator *c, const struct seat *seat)
{
    struct seat *earlier = NULL;
    if (!seat_is_worker(seat))
        earlier = coordinator_server(c, seat->last.index);
    else if (has_been_here(seat))
        earlier = worker_of(c, seat->last.id);
    if (earlier && seat->last.head.type == MEMBERSHIP_DONE) {
        coordinator_forget(c, earlier);
    } else if (earlier) {
        if (!seat_is_worker(seat))
            membership_say(earlier->socket, c->own_job, MEMBERSHIP_END, 0, STATUS_USAGE, REPLACED);
        seat_lost(c, earlier, "has connected again");
    }
}

/* JOIN, or on a new connection RETURN or DONE. */
static void hear_join(struct coordinator *c, struct seat *seat)
{
    char text[600];
    bool worker = seat_is_worker(seat), returns = has_been_here(seat);
    const char *why = refuse(c, seat, text, sizeof text);
    if (why) {
        seat_refuse(c, seat, STATUS_USAGE, why);
        return;
    }
    lose_earlier(c, seat);
    seat->age = returns ? seat->last.id - c->first_id : c->next_age++;
    seat->state = SEAT_WAITING;
    if (worker && !c->has_job)
        take_job(c, seat);
    if (worker && returns && c->return_by_ns == 0) /* the others may have lost this server, too */
        c->return_by_ns = clock_now_ns() + c->options.timeout_ms * NS_PER_MS;
    if (seat->last.head.type == MEMBERSHIP_DONE) {
        hear_done(c, seat);
    } else if (worker && returns) {
        take_place(seat);
    } else if (!worker && c->generation > 0 && seat->last.index > 0) {
        log_info("server %d on %s has come back", seat->last.index, seat->host);
    }
    if (c->ended) {
        if (worker || seat->last.index > 0) /* the first server's turn comes in generation_settle */
            membership_say(seat->socket, c->own_job, MEMBERSHIP_END, 0, STATUS_OK, NULL);
    } else if (worker && !returns && c->running) {
        uint64_t step = seat->last.place.step;
        if (step > 0)
            snprintf(text, sizeof text, "waits until step %" PRIu64 " is done", step);
        seat_note(c, seat, step > 0 ? text : "waits for the end of the running step");
        generation_announce(c, step);
    }
}

/* Another server's SUMMON. The waiting server only needs its job and the address. */
static void hear_summon(struct coordinator *c, struct seat *seat)
{
    struct coordinator_job *job = &c->job;
    union address there;
    char from[MEMBER_ADDRESS_BYTES];
    if (address_of_peer(seat->socket, &there) != 0) {
        seat_lost(c, seat, "has ended: killed, or crashed");
        return;
    }
    address_set_port(&there, (int)(seat->last.port & 0xffff));
    address_uri(&there, from);
    bool again = job->summoned && job->index == seat->last.index &&
                 job->first_id == seat->last.id && strcmp(job->address, from) == 0;
    if (c->has_job && !again) {
        seat_refuse(c, seat, STATUS_USAGE,
                    "this server has a job already; end it, or name another one");
        return;
    }
    if (seat->last.id != 0 && !c->options.checkpoint) {
        seat_refuse(c, seat, STATUS_USAGE,
                    "the first server has --checkpoint, this one not; give it to all servers");
        return;
    }
    membership_say(seat->socket, c->own_job, MEMBERSHIP_END, 0, STATUS_OK, NULL);
    job->summoned = c->has_job = true;
    job->index = seat->last.index;
    job->generation = seat->last.head.group;
    job->first_id = seat->last.id;
    snprintf(job->options, sizeof job->options, "%s", seat->reader.text);
    memcpy(job->address, from, sizeof job->address);
    monitor_wake(&c->monitor);
    coordinator_forget(c, seat);
}

/* A worker that has left does not come back, but its images stay. */
static void await_no_more(struct coordinator *c, const struct seat *seat)
{
    if (coordinator_count(c, seat)) { /* it is the first of those that are done */
        int at = c->worker_count - c->done--;
        c->workers[at] = c->workers[--c->worker_count];
    }
}

/* The member leaves the job. */
static void leaves(struct coordinator *c, struct seat *seat, bool in)
{
    char name[96];
    if (c->ended) {
        if (!seat_is_worker(seat))
            c->left[seat->last.index] = true;
        coordinator_forget(c, seat);
        return;
    }
    bool unaware = seat->state == SEAT_RUNNING && !in;
    seat_name(seat, name, sizeof name);
    if (seat->last.place.step == MEMBER_NO_STEP)
        log_info("%s leaves before its first step", name);
    else
        log_info("%s leaves after step %" PRIu64, name, seat->last.place.step);
    if (in)
        comes_out(c, seat);
    c->accounted += unaware;
    await_no_more(c, seat);
    coordinator_record(c);
    coordinator_forget(c, seat);
    if (unaware) /* it left before it knew that this generation has begun with it */
        generation_over(c, "a worker left just as the generation began: all workers meet again");
}

/* A member sends its role and number once. Later messages only change its place. */
static void take_word(struct seat *seat, const struct membership_frame *frame)
{
    if (seat->state == SEAT_NEW) {
        seat->last = *frame;
        return;
    }
    seat->last.head = frame->head;
    seat->last.port = frame->port;
    seat->last.place = frame->place;
}

static void hear_frame(struct coordinator *c, struct seat *seat)
{
    const struct membership_frame *frame = &seat->reader.frame;
    bool in = seat->state == SEAT_RUNNING && frame->head.group == c->generation;
    if (frame->head.type == MEMBERSHIP_BEAT)
        return;
    if (frame->head.type == MEMBERSHIP_ABORT && in && frame->place.ended != STATUS_OK) {
        if (!c->ended)
            coordinator_end_all(c, (enum status)frame->place.ended, seat->reader.text);
        return;
    }
    take_word(seat, frame);
    bool comes = frame->head.type == MEMBERSHIP_JOIN || frame->head.type == MEMBERSHIP_RETURN ||
                 (frame->head.type == MEMBERSHIP_DONE && frame->role == MEMBER_WORKER);
    if (comes && seat->state == SEAT_NEW &&
        (frame->role == MEMBER_WORKER || frame->role == MEMBER_SERVER)) {
        hear_join(c, seat);
    } else if (frame->head.type == MEMBERSHIP_SUMMON && seat->state == SEAT_NEW) {
        hear_summon(c, seat);
    } else if (frame->head.type == MEMBERSHIP_READY && in) {
        comes_out(c, seat);
        seat->state = SEAT_WAITING;
        if (seat_is_worker(seat))
            take_place(seat);
    } else if (frame->head.type == MEMBERSHIP_DONE && in) {
        hear_done(c, seat);
    } else if (frame->head.type == MEMBERSHIP_LEAVE && seat->state != SEAT_NEW) {
        leaves(c, seat, in);
    } else {
        seat_lost(c, seat, "sent an unexpected message");
    }
}

static void seat_hear(struct coordinator *c, struct seat *seat)
{
    enum control_read got = membership_read(&seat->reader, seat->socket);
    char name[96];
    seat->heard_ns = clock_now_ns();
    if (seat->silent_since_ns > 0 && got != CONTROL_CLOSED)
        log_info("%s continued after %lld s", seat_name(seat, name, sizeof name),
                 (long long)((seat->heard_ns - seat->silent_since_ns) / NS_PER_S));
    seat->silent_since_ns = 0;
    if (got == CONTROL_MESSAGE)
        hear_frame(c, seat);
    else if (got == CONTROL_CLOSED)
        seat_lost(c, seat, "has ended: killed, or crashed");
}

/* -------- the thread -------------------------------------------------------------------------- */

/* Sends the reason to a connection that gets no seat, and closes it. Any process can connect, so
 * only the first one is reported. */
static void turn_away(struct coordinator *c, const struct hello *hello, int socket,
                      enum status status, const char *text)
{
    if (!c->warned)
        log_warn("a process%s%s was refused: %s; the next ones are refused without a message",
                 hello->host[0] ? " on " : "", hello->host, text);
    c->warned = true;
    membership_say(socket, hello->head.job, MEMBERSHIP_END, 0, status, text);
    stream_close(&socket);
}

/* Sends the reason in the format of protocol version 1. */
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

/* Whether the process and this server are from one build. */
static bool is_of_this_build(struct coordinator *c, const struct hello *hello, int socket)
{
    char text[200];
    if (hello->head.protocol == CONTROL_PROTOCOL && strcmp(hello->version, PSRING_VERSION) == 0)
        return true;
    snprintf(
        text, sizeof text,
        "this process is psring %s, the server is psring %s; start all from one build of psring",
        hello->version[0] ? hello->version : "of another version", PSRING_VERSION);
    if (hello->head.protocol < CONTROL_PROTOCOL)
        answer_old(socket, STATUS_USAGE, text);
    turn_away(c, hello, socket, STATUS_USAGE, text);
    return false;
}

static bool has_token(struct coordinator *c, const struct hello *hello, int socket)
{
    if (hello->head.job == membership_job(c->options.token, 0))
        return true;
    turn_away(c, hello, socket, STATUS_USAGE,
              "this process gave another token than the server; give psring serve and all workers "
              "the same --token (or PSRING_TOKEN), or the same ~/.psring-token");
    return false;
}

static void let_in(struct coordinator *c, const struct hello *hello, int socket)
{
    char text[300];
    bool token_is_known = hello->head.protocol == CONTROL_PROTOCOL;
    if ((token_is_known && !has_token(c, hello, socket)) || !is_of_this_build(c, hello, socket))
        return;
    struct seat *seat = calloc(1, sizeof *seat);
    if (!seat || c->count >= c->seats_most) {
        snprintf(text, sizeof text,
                 "the server has no seat left: %d processes are connected, at most %d can be; try "
                 "again when some have left",
                 c->count, c->seats_most);
        free(seat);
        turn_away(c, hello, socket, STATUS_UNSUPPORTED, text);
        return;
    }
    seat->socket = socket;
    seat->came_ns = seat->heard_ns = clock_now_ns();
    memcpy(seat->host, hello->host, sizeof seat->host);
    c->sockets[c->count] = socket;
    c->seats[c->count++] = seat;
    if (c->ended && c->end_status != STATUS_OK)
        seat_refuse(c, seat, c->end_status, c->end_text);
    else if (c->ended && !c->ended_well)
        seat_refuse(c, seat, STATUS_USAGE, JOB_HAS_ENDED);
}

/* Whether unread input is there: then this process was stopped or is behind with reading. */
static bool has_spoken(const struct seat *seat)
{
    char byte;
    return recv(seat->socket, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Warns once: the member may come back. */
static void warn_of_silence(const struct coordinator *c, struct seat *seat, int64_t now_ns)
{
    char name[96];
    int64_t silent_ns = now_ns - seat->heard_ns, limit_ms = c->options.stall_warning_ms;
    const int64_t least_ms = 3 * (int64_t)MEMBERSHIP_BEAT_MS;
    if (limit_ms > 0 && limit_ms < least_ms)
        limit_ms = least_ms; /* all members are silent between two beats */
    if (limit_ms <= 0 || c->ended || seat->silent_since_ns > 0 ||
        silent_ns < limit_ms * NS_PER_MS || has_spoken(seat))
        return;
    seat->silent_since_ns = seat->heard_ns;
    log_warn("%s has not given a sign of life for %lld s: its process is stopped, or its host "
             "cannot be reached; after %g s it is dropped (--timeout)",
             seat_name(seat, name, sizeof name), (long long)(silent_ns / NS_PER_S),
             (double)c->options.timeout_ms / 1000);
}

static bool does_not_join(const struct seat *seat, int64_t now_ns)
{
    return seat->state == SEAT_NEW && now_ns - seat->came_ns >= MEMBERSHIP_JOIN_MS * NS_PER_MS &&
           !has_spoken(seat);
}

/* due_ns: when this look should have been. */
static void look_at_all(struct coordinator *c, int64_t due_ns, int64_t now_ns)
{
    for (int i = c->count - 1; i >= 0; i--) {
        struct seat *seat = c->seats[i];
        seat->heard_ns = membership_heard_ns(seat->heard_ns, due_ns, now_ns);
        if (now_ns - seat->heard_ns >= c->options.timeout_ms * NS_PER_MS && !has_spoken(seat))
            seat_drop(c, seat, "has not given a sign of life for too long",
                      "this process was silent for too long: stopped, or its host could not be "
                      "reached; the job continues without it, and a worker can join again");
        else if (does_not_join(seat, now_ns))
            seat_refuse(c, seat, STATUS_TIMEOUT,
                        "this process connected, but did not ask to take part in time");
        else {
            warn_of_silence(c, seat, now_ns);
            membership_say(seat->socket, c->own_job, MEMBERSHIP_BEAT, 0, STATUS_OK, NULL);
        }
    }
}

/* Adds the time for which this process was stopped. */
static void put_off_deadlines(struct coordinator *c, int64_t due_ns, int64_t now_ns)
{
    int64_t *deadlines[] = {&c->return_by_ns, &c->leave_by_ns, &c->close_by_ns};
    int64_t pause_ns = now_ns - due_ns;
    for (size_t i = 0; i < sizeof deadlines / sizeof *deadlines; i++) {
        if (*deadlines[i] != 0 && pause_ns >= MEMBERSHIP_BEAT_MS * NS_PER_MS)
            *deadlines[i] += pause_ns;
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
            put_off_deadlines(c, look_ns, now_ns);
            look_at_all(c, look_ns, now_ns);
            look_ns = now_ns + MEMBERSHIP_BEAT_MS * NS_PER_MS;
        }
        generation_settle(c, now_ns);
        bool goes_on = !c->closing;
        monitor_leave(&c->monitor);
        if (!goes_on)
            return NULL;
    }
}

/* -------- a durable job ----------------------------------------------------------------------- */

enum status coordinator_record(const struct coordinator *c)
{
    if (!job_is_durable(c))
        return STATUS_OK;
    struct job_record record = {.token = c->options.token,
                                .job = c->job,
                                .generation = c->generation,
                                .servers = c->servers,
                                .first_id = c->first_id,
                                .next_id = c->first_id + (uint32_t)c->next_age,
                                .step = c->step,
                                .images = c->images,
                                .worker_count = c->worker_count,
                                .done = c->done,
                                .ended = c->ended_well};
    memcpy(record.workers, c->workers, sizeof record.workers);
    return job_save(c->options.checkpoint, &record);
}

/* Continues the job of the record, if it has begun. */
static void take_record(struct coordinator *c, const struct job_record *record)
{
    c->first_id = record->first_id;
    c->own_job = membership_job(c->options.token, c->first_id);
    if (record->generation == 0)
        return;
    c->has_job = c->complete = c->has_weights = true;
    c->job = record->job;
    memcpy(c->job.address, c->address, sizeof c->job.address);
    c->servers = record->servers;
    c->generation = record->generation;
    c->next_age = record->next_id - record->first_id;
    c->step = record->step;
    c->images = record->images;
    c->worker_count = record->worker_count;
    c->done = record->done;
    memcpy(c->workers, record->workers, sizeof c->workers);
    if (!record->ended)
        c->return_by_ns = clock_now_ns() + c->options.timeout_ms * NS_PER_MS;
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

/* OTHERS: descriptors for files, the server's own connections, and connections without a hello. */
static int seats_most(void)
{
    enum { OTHERS = 128, SEATS_LEAST = 8 };
    struct descriptors found = descriptors_for(COORDINATOR_MEMBERS + OTHERS);
    int lacking = found.needs - found.limit, seats = COORDINATOR_MEMBERS - lacking;
    return lacking <= 0 ? COORDINATOR_MEMBERS : seats > SEATS_LEAST ? seats : SEATS_LEAST;
}

enum status coordinator_open(struct coordinator **out, const struct coordinator_options *options,
                             const struct job_record *record)
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
    take_record(c, record);
    TRY(thread_start(&c->thread, "psring-members", run, c));
    *out = c;
    return STATUS_OK;
out:
    coordinator_close(&c);
    return status;
}

void coordinator_wait_job(struct coordinator *c, struct coordinator_job *job)
{
    monitor_enter(&c->monitor);
    while (!c->has_job || (!c->job.summoned && !c->complete))
        monitor_wait(&c->monitor);
    *job = c->job;
    monitor_leave(&c->monitor);
}

void coordinator_set_servers(struct coordinator *c, int servers)
{
    monitor_enter(&c->monitor);
    c->servers = servers;
    monitor_leave(&c->monitor);
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
    monitor_wake(&c->monitor);
    monitor_leave(&c->monitor);
    for (int i = 0; i < c->other_count; i++)
        thread_join(&c->others[i].thread);
    free(c->others);
    thread_join(&c->thread);
    while (c->count > 0)
        coordinator_forget(c, c->seats[0]);
    listener_close(&c->listener);
    monitor_fini(&c->monitor);
    free(c);
}
