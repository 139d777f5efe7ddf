/* What the coordinator hears of its members: what they say, and that they are lost. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "experiments/elastic/coordinator.h"
#include "common/net/control.h"

/* -------- members ------------------------------------------------------------------------------
 */

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
        free(seat->reader);
        free(seat);
        return;
    }
}

void coordinator_end_all(struct coordinator *c, enum status status, const char *text)
{
    c->ended = true;
    for (int i = c->count - 1; i >= 0; i--)
        membership_say(c->sockets[i], MEMBERSHIP_END, 0, status, text);
}

void seat_refuse(struct coordinator *c, struct seat *seat, enum status status, const char *text)
{
    membership_say(seat->socket, MEMBERSHIP_END, 0, status, text);
    log_info("%s was not let in: %s", seat->host, text);
    coordinator_forget(c, seat);
}

/* What has become of a member that will not be heard of again. */
void seat_lost(struct coordinator *c, struct seat *seat, const char *how)
{
    char name[96], text[300];
    seat_name(seat, name, sizeof name);
    bool server = !seat_is_worker(seat) && seat->state != SEAT_NEW;
    bool in = seat->state == SEAT_RUNNING;
    bool known = seat->state != SEAT_NEW && seat->state != SEAT_DONE;
    coordinator_forget(c, seat);
    if (server && !c->ended) {
        snprintf(text, sizeof text, "%s %s: the job cannot go on without it; start the job again",
                 name, how);
        coordinator_end_all(c, STATUS_TRANSPORT, text);
    } else if (in && !c->ended) {
        snprintf(text, sizeof text, "%s %s: the others go on without it", name, how);
        generation_over(c, text);
    } else if (known && !c->ended) {
        log_info("%s, which waited, %s", name, how);
    }
}

/* -------- what members say -------------------------------------------------------------------- */

/* The first line in which the two differ, as "--batch=8" and "--batch=16". */
static bool find_difference(const char *job, const char *own, char *text, size_t size)
{
    while (*job || *own) {
        int a = (int)strcspn(job, "\n"), b = (int)strcspn(own, "\n");
        if (a != b || strncmp(job, own, (size_t)a) != 0) {
            snprintf(text, size,
                     "it was started with %.*s, the job with %.*s; start all workers "
                     "with the same options",
                     b > 0 ? b : 7, b > 0 ? own : "nothing", a > 0 ? a : 7,
                     a > 0 ? job : "nothing");
            return true;
        }
        job += a + (job[a] != '\0');
        own += b + (own[b] != '\0');
    }
    return false;
}

static void take_job(struct coordinator *c, const struct seat *seat)
{
    struct coordinator_job *job = &c->job;
    snprintf(job->options, sizeof job->options, "%s", seat->reader->text);
    memcpy(job->address, c->address, sizeof job->address);
    c->has_job = true;
    monitor_wake(&c->monitor);
}

static bool server_is_missing(const struct coordinator *c, const struct seat *newcomer)
{
    int number = newcomer->last.index;
    for (int i = 0; i < c->count; i++) {
        const struct seat *seat = c->seats[i];
        if (seat->state != SEAT_NEW && !seat_is_worker(seat) && seat->last.index == number)
            return false;
    }
    return number >= 0 && number < c->servers;
}

static void hear_join(struct coordinator *c, struct seat *seat)
{
    char text[600];
    bool worker = seat_is_worker(seat);
    if (c->has_job && c->job.summoned) {
        seat_refuse(c, seat, STATUS_USAGE,
                    "this server serves another server's job; give the workers that job's --join");
        return;
    }
    if (!worker && !server_is_missing(c, seat)) {
        seat_refuse(c, seat, STATUS_USAGE, "the job has this server already, or needs none");
        return;
    }
    if (worker && !c->has_job)
        take_job(c, seat);
    else if (worker && find_difference(c->job.options, seat->reader->text, text, sizeof text)) {
        seat_refuse(c, seat, STATUS_USAGE, text);
        return;
    }
    seat->age = c->next_age++;
    seat->state = SEAT_WAITING;
    if (worker && c->running) {
        uint64_t step = seat->last.place.step;
        if (step > 0)
            snprintf(text, sizeof text, "waits until step %" PRIu64 " is done", step);
        membership_say(seat->socket, MEMBERSHIP_NOTE, 0, STATUS_OK,
                       step > 0 ? text : "waits for the end of the running step");
        generation_announce(c, seat);
    }
}

/* Another server's word. The one that is waiting for it needs nothing but where to go. */
static void hear_summon(struct coordinator *c, struct seat *seat)
{
    struct coordinator_job *job = &c->job;
    union address there;
    if (c->has_job) {
        seat_refuse(c, seat, STATUS_USAGE,
                    "this server has a job already; end it, or name another one");
        return;
    }
    if (address_of_peer(seat->socket, &there) != 0) {
        seat_lost(c, seat, "has ended: killed, or crashed");
        return;
    }
    address_set_port(&there, (int)(seat->last.port & 0xffff));
    membership_say(seat->socket, MEMBERSHIP_END, 0, STATUS_OK, NULL);
    job->summoned = c->has_job = true;
    job->index = seat->last.index;
    snprintf(job->options, sizeof job->options, "%s", seat->reader->text);
    address_uri(&there, job->address);
    monitor_wake(&c->monitor);
    coordinator_forget(c, seat);
}

/* Its generation is over for this member. The others may still be in the midst of a step, or wait
 * for it where they set up. */
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
    if (seat->last.place.ended != STATUS_OK)
        generation_over(c, "a worker could not go on: all meet again");
}

/* It wants to take part no more. */
static void leaves(struct coordinator *c, struct seat *seat, bool in)
{
    char name[96];
    bool unaware = seat->state == SEAT_RUNNING && !in;
    seat_name(seat, name, sizeof name);
    if (seat->last.place.step == MEMBER_NO_STEP)
        log_info("%s leaves before its first step", name);
    else
        log_info("%s leaves after step %" PRIu64, name, seat->last.place.step);
    if (in)
        comes_out(c, seat);
    c->accounted += unaware;
    c->images += seat->last.place.images;
    coordinator_forget(c, seat);
    if (unaware) /* it said so before it heard that this generation has begun, with it */
        generation_over(c, "a worker left just as the generation began: all meet again");
}

/* A worker that was lost from before it had any weights is as new. */
static void take_place(struct seat *seat)
{
    seat->trained = seat->last.place.step != MEMBER_NO_STEP;
    if (!seat->trained)
        seat->last.place.step = 0;
}

/* Who it is, it says once; later, only where it stands. */
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
    const struct membership_frame *frame = &seat->reader->frame;
    bool in = seat->state == SEAT_RUNNING && frame->head.group == c->generation;
    if (frame->head.type == MEMBERSHIP_BEAT)
        return;
    if (frame->head.type == MEMBERSHIP_ABORT && in && frame->place.ended != STATUS_OK) {
        if (!c->ended)
            coordinator_end_all(c, (enum status)frame->place.ended, seat->reader->text);
        return;
    }
    take_word(seat, frame);
    if (frame->head.type == MEMBERSHIP_JOIN && seat->state == SEAT_NEW &&
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
        comes_out(c, seat);
        seat->state = SEAT_DONE;
        c->images += frame->place.images;
        c->finished = true;
    } else if (frame->head.type == MEMBERSHIP_LEAVE && seat->state != SEAT_NEW) {
        leaves(c, seat, in);
    } else {
        seat_lost(c, seat, "said what it should not have");
    }
}

void seat_hear(struct coordinator *c, struct seat *seat)
{
    enum control_read got = membership_read(seat->reader, seat->socket);
    char name[96];
    seat->heard_ns = clock_now_ns();
    if (seat->silent_since_ns > 0 && got != CONTROL_CLOSED)
        log_info("%s went on after %lld s", seat_name(seat, name, sizeof name),
                 (long long)((seat->heard_ns - seat->silent_since_ns) / NS_PER_S));
    seat->silent_since_ns = 0;
    if (got == CONTROL_MESSAGE)
        hear_frame(c, seat);
    else if (got == CONTROL_CLOSED)
        seat_lost(c, seat, "has ended: killed, or crashed");
}
