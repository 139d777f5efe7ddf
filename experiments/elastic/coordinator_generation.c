/* The coordinator's decisions: the end of a generation, and the members of the next one. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "experiments/elastic/coordinator.h"
#include "common/net/address.h"

enum { FAILURES_MOST = 3, TEXT_BYTES = 300 };

static int count_in(const struct coordinator *c, enum member_role role, enum seat_state state)
{
    int count = 0;
    for (int i = 0; i < c->count; i++)
        count += c->seats[i]->state == state && (int)role == c->seats[i]->last.role;
    return count;
}

void generation_over(struct coordinator *c, const char *text)
{
    if (!c->running || c->over)
        return;
    c->over = true;
    for (int i = 0; i < c->count; i++) {
        if (c->seats[i]->state == SEAT_RUNNING)
            membership_say(c->seats[i]->socket, c->own_job, MEMBERSHIP_OVER, c->generation,
                           STATUS_OK, text);
    }
}

/* -------- members of the next generation ------------------------------------------------------ */

/* The seat with the job's newest weights. A worker's, else, in a durable job, the first server's,
 * which has read a file. NULL: no member has any. */
static const struct seat *newest(const struct coordinator *c)
{
    const struct seat *found = NULL, *server = NULL;
    for (int i = 0; i < c->count; i++) {
        const struct seat *seat = c->seats[i];
        if (seat->state != SEAT_WAITING || seat->last.place.step == MEMBER_NO_STEP)
            continue;
        if (!seat_is_worker(seat) && seat->last.index == 0 && c->first_id != 0)
            server = seat;
        if (seat->trained && (!found || seat->last.place.step > found->last.place.step))
            found = seat;
    }
    return found ? found : server;
}

/* A newcomer with a later --join-after keeps waiting. */
static bool takes_part(const struct seat *seat, uint64_t step)
{
    return seat->state == SEAT_WAITING &&
           (seat->trained || !seat_is_worker(seat) || seat->last.place.step == 0 ||
            (step != MEMBER_NO_STEP && seat->last.place.step <= step));
}

/* Sorts by newest weights first, then by longest membership. */
static int compare_seats(const void *a, const void *b)
{
    const struct seat *const *x = a, *const *y = b;
    if ((*x)->trained != (*y)->trained)
        return (*x)->trained ? -1 : 1;
    if ((*x)->trained && (*x)->last.place.step != (*y)->last.place.step)
        return (*x)->last.place.step > (*y)->last.place.step ? -1 : 1;
    return (*x)->age < (*y)->age ? -1 : 1;
}

/* Refuses the last workers if there is too little data for all. These are newcomers, because the
 * data sufficed for the other workers. Returns the remaining number of workers. */
static int refuse_too_many(struct coordinator *c, struct seat **order, int workers)
{
    char text[TEXT_BYTES];
    int most = workers > 0 && order[0]->trained ? order[0]->last.place.workers_most : 0;
    snprintf(text, sizeof text,
             "the job has %d worker%s, and an epoch has no step for more; wait until one leaves",
             most, most == 1 ? "" : "s");
    while (most > 0 && workers > most && !order[workers - 1]->trained)
        seat_refuse(c, order[--workers], STATUS_USAGE, text);
    return workers;
}

/* Fills `order` with the workers by rank, then the servers by number. Returns the number of
 * workers. */
static int choose(struct coordinator *c, struct seat **order)
{
    int workers = 0;
    const struct seat *ahead = newest(c);
    uint64_t step = ahead ? ahead->last.place.step : MEMBER_NO_STEP;
    for (int i = 0; i < c->count; i++) {
        if (seat_is_worker(c->seats[i]) && takes_part(c->seats[i], step))
            order[workers++] = c->seats[i];
    }
    /* cppcheck-suppress uninitvar ; the loop fills the first `workers` elements */
    qsort(order, (size_t)workers, sizeof *order, compare_seats);
    workers = refuse_too_many(c, order, workers);
    /* The largest number of workers for this data is not known yet. Surplus workers join later,
     * when it is known. */
    if (c->generation == 0 && workers > c->options.workers_first)
        workers = c->options.workers_first;
    for (int i = 0; i < c->count; i++) {
        struct seat *seat = c->seats[i];
        if (!seat_is_worker(seat) && seat->state == SEAT_WAITING)
            order[workers + seat->last.index] = seat;
    }
    return workers;
}

/* The address at which other ranks reach rank 0: its address as seen from here. */
static void address_of(const struct seat *seat, unsigned char packed[16])
{
    union address there;
    if (address_of_peer(seat->socket, &there) != 0)
        there = address_loopback(); /* the connection is lost */
    address_pack(&there, packed);
}

void generation_announce(struct coordinator *c, uint64_t step)
{
    const struct membership_frame change = {
        .head = {.type = MEMBERSHIP_CHANGE, .group = c->generation, .job = c->own_job},
        .place.step = step};
    for (int i = 0; i < c->count; i++) {
        if (c->seats[i]->state == SEAT_RUNNING)
            membership_send(c->seats[i]->socket, change, NULL);
    }
}

/* Notes the next generation's number and workers, in a durable job also in its record. Without
 * trained workers, the images in the weights are those in the server's file. After an error the
 * last generation is noted again, and only the first error in a row is logged. */
static enum status record_next(struct coordinator *c, struct seat **order, int workers,
                               const struct seat *ahead)
{
    uint32_t last_workers[COORDINATOR_MEMBERS];
    const uint64_t images = c->images;
    const int count = c->worker_count;
    memcpy(last_workers, c->workers, sizeof last_workers);
    c->generation++;
    if (!order[0]->trained)
        c->images = ahead ? ahead->last.place.images : 0;
    for (int i = 0; i < workers; i++)
        c->workers[i] = c->first_id + (uint32_t)order[i]->age;
    c->worker_count = workers;
    if (c->record_again_ns > 0)
        log_hold();
    enum status status = coordinator_record(c);
    if (c->record_again_ns > 0)
        log_release(false);
    if (status != STATUS_OK) {
        c->generation--;
        c->images = images;
        memcpy(c->workers, last_workers, sizeof last_workers);
        c->worker_count = count;
    }
    return status;
}

/* The record cannot be written. A restarted server would refuse the members of a generation that it
 * does not know, so none begins before there is space. Each worker reads this once, and then waits
 * for --startup-timeout. */
static void wait_for_space(struct coordinator *c)
{
    enum { TOLD = INT_MIN }; /* as no count: say_who_is_there */
    if (c->generation == 0) {
        coordinator_end_all(c, STATUS_IO,
                            "the server cannot write the job's file; free space in the folder of "
                            "its --checkpoint, then start the job again");
        return;
    }
    if (c->record_again_ns == 0)
        log_warn("the job waits until its file can be written; free space in the folder of "
                 "--checkpoint before the workers give up (their --startup-timeout)");
    c->record_again_ns = clock_now_ns() + MEMBERSHIP_BEAT_MS * NS_PER_MS;
    for (int i = 0; i < c->count; i++) {
        struct seat *seat = c->seats[i];
        if (seat->state != SEAT_WAITING || !seat_is_worker(seat) || seat->told == TOLD)
            continue;
        seat->told = TOLD;
        seat_note(c, seat,
                  "waits: the server cannot write the job's file; free space in the folder of its "
                  "--checkpoint");
    }
}

static void begin(struct coordinator *c, struct seat **order, int workers)
{
    const struct seat *first = order[0], *ahead = first->trained ? first : newest(c);
    if (c->record_again_ns > clock_now_ns())
        return;
    if (record_next(c, order, workers, ahead) != STATUS_OK) {
        wait_for_space(c);
        return;
    }
    c->record_again_ns = 0;
    c->return_by_ns = 0;
    c->running = true;
    c->over = false;
    c->leave_by_ns = 0;
    c->accounted = 0;
    c->failures = first->trained && first->last.place.step > c->step ? 0 : c->failures;
    c->step = ahead ? ahead->last.place.step : 0;
    if (c->has_weights && !ahead)
        log_warn("neither the server nor a worker has the weights any more: training begins again");
    c->has_weights = c->has_weights || first->trained;
    struct membership_frame frame = {
        .head = {.type = MEMBERSHIP_GENERATION, .group = c->generation, .job = c->own_job},
        .workers = workers,
        .servers = c->servers,
        .port = first->last.port,
        .place = ahead ? ahead->last.place : first->last.place};
    frame.place.step = c->step;
    address_of(first, frame.address);
    log_info("generation %u: %d worker%s, after step %" PRIu64, c->generation, workers,
             workers == 1 ? "" : "s", c->step);
    for (int rank = 0; rank < workers + c->servers; rank++) {
        order[rank]->state = SEAT_RUNNING;
        order[rank]->told = 0;
        order[rank]->rank = frame.index = rank;
        frame.id = c->first_id ? c->first_id + (uint32_t)order[rank]->age : 0;
        membership_send(order[rank]->socket, frame, NULL);
    }
    for (int i = 0; i < c->count; i++) {
        if (c->seats[i]->state == SEAT_WAITING)
            generation_announce(c, c->seats[i]->last.place.step);
    }
    if (c->options.checkpoint_steps > 0)
        generation_announce(c, c->step + c->options.checkpoint_steps);
}

/* Sends the counts to each waiting worker, once per change. The worker then waits for
 * --startup-timeout. */
static void say_who_is_there(struct coordinator *c, enum member_role role, int count, int wanted)
{
    char text[TEXT_BYTES];
    int told = role == MEMBER_WORKER ? 1 + count : -1 - count; /* 0: nothing */
    snprintf(text, sizeof text, "waits: %d of %d %ss are %s", count, wanted,
             role == MEMBER_WORKER ? "worker" : "server", c->return_by_ns ? "back" : "there");
    for (int i = 0; i < c->count; i++) {
        struct seat *seat = c->seats[i];
        if (seat->state != SEAT_WAITING || !seat_is_worker(seat) || seat->told == told)
            continue;
        seat->told = told;
        seat_note(c, seat, text);
    }
}

/* -------- the end ----------------------------------------------------------------------------- */

/* The first server hears END when the other servers of a durable job have removed their files and
 * left. Its own file brings the end back until then. */
static void end_first_server(struct coordinator *c, int64_t now_ns)
{
    int left = 0;
    struct seat *first = coordinator_server(c, 0);
    for (int i = 1; i < c->servers; i++)
        left += c->left[i];
    bool waits = c->ended_well && left < c->servers - 1;
    if (!first || (waits && now_ns < c->close_by_ns))
        return;
    if (waits)
        log_warn("%d of %d other servers have left; if one still has files of this job in its "
                 "--checkpoint, remove them",
                 left, c->servers - 1);
    membership_say(first->socket, c->own_job, MEMBERSHIP_END, 0, STATUS_OK, NULL);
    coordinator_forget(c, first);
}

/* A worker that waits may have lost the answer to its last message, or that of the last step. */
static void say_training_has_ended(struct coordinator *c, const struct seat *seat)
{
    char text[TEXT_BYTES] = "";
    if (seat->state == SEAT_WAITING && seat->trained)
        snprintf(text, sizeof text,
                 "training has ended after step %" PRIu64 "; the weights contain %" PRIu64
                 " images of this worker",
                 c->step, coordinator_images(c, seat));
    membership_say(seat->socket, c->own_job, MEMBERSHIP_END, 0, STATUS_OK, text);
}

static void end_well(struct coordinator *c, int64_t now_ns)
{
    int servers =
        count_in(c, MEMBER_SERVER, SEAT_WAITING) + count_in(c, MEMBER_SERVER, SEAT_RUNNING);
    for (int i = 0; i < c->count; i++) {
        if (c->seats[i]->state == SEAT_WAITING)
            coordinator_count(c, c->seats[i]);
    }
    log_info("training has ended; the weights contain %" PRIu64
             " images, without those of lost workers",
             c->images);
    if (servers < c->servers)
        log_warn("%d of %d servers are there; waits at most %g s until the others are started "
                 "again and hear of the end",
                 servers, c->servers, (double)c->options.startup_timeout_ms / 1000);
    c->ended = true;
    c->ended_well = job_is_durable(c);
    c->done = c->worker_count; /* a server that starts again waits for no worker */
    coordinator_record(c);
    c->close_by_ns = now_ns + c->options.startup_timeout_ms * NS_PER_MS;
    for (int i = c->count - 1; i >= 0; i--) { /* one that is new may be the first server */
        if (c->seats[i]->state != SEAT_NEW && c->seats[i] != coordinator_server(c, 0))
            say_training_has_ended(c, c->seats[i]);
    }
    end_first_server(c, now_ns);
}

static void end_without_workers(struct coordinator *c)
{
    coordinator_end_all(c, STATUS_TRANSPORT,
                        c->generation == 0
                            ? "no worker is left; start the job again"
                            : "no worker is left, so the weights are lost; start the job again");
}

/* Number of the last generation's workers that wait for the next one. */
static int count_back(const struct coordinator *c)
{
    int back = 0;
    for (int i = 0; i < c->count; i++)
        back += c->seats[i]->state == SEAT_WAITING && coordinator_awaited(c, c->seats[i]) >= 0;
    return back;
}

/* In a durable job workers of the last generation may still come back, with newer weights than
 * those of the file, or to hear that training has ended. */
static bool waits_for_return(struct coordinator *c, int64_t now_ns)
{
    int there = count_back(c) + count_in(c, MEMBER_WORKER, SEAT_DONE);
    if (there < c->worker_count && now_ns < c->return_by_ns) {
        say_who_is_there(c, MEMBER_WORKER, there, c->worker_count);
        return true;
    }
    c->return_by_ns = 0;
    return false;
}

/* Whether no remaining worker has the trained weights. A durable job has a file. */
static bool weights_are_lost(const struct coordinator *c)
{
    bool anybody = false;
    if (job_is_durable(c))
        return false;
    for (int i = 0; i < c->count; i++) {
        const struct seat *seat = c->seats[i];
        if (seat->state == SEAT_NEW || !seat_is_worker(seat))
            continue;
        anybody = true;
        if (seat->trained)
            return false;
    }
    return c->has_weights || !anybody;
}

/* Drops members that do not leave a generation that other members have left. */
static void lose_the_late(struct coordinator *c, int64_t now_ns)
{
    char name[96], how[TEXT_BYTES];
    if (c->leave_by_ns == 0 || now_ns < c->leave_by_ns)
        return;
    snprintf(how, sizeof how, "did not leave generation %u in time after other members had left it",
             c->generation);
    for (int i = c->count - 1; i >= 0 && !c->ended; i--) {
        struct seat *seat = c->seats[i];
        if (seat->state != SEAT_RUNNING)
            continue;
        log_warn("%s %s: lost", seat_name(seat, name, sizeof name), how);
        seat_drop(c, seat, how,
                  "this process took too long to leave a generation that is over; the job "
                  "continues without it");
    }
}

/* No member is in a generation. Begins the next one if all that it needs are connected. */
static void begin_or_wait(struct coordinator *c)
{
    struct seat *order[2 * COORDINATOR_MEMBERS]; /* all workers, then one for each server number */
    int workers = choose(c, order), servers = count_in(c, MEMBER_SERVER, SEAT_WAITING);
    bool anew = c->generation == 0 || (c->first_id != 0 && count_back(c) == 0);
    int wanted = anew ? c->options.workers_first : c->options.workers_min;
    bool enough = workers > 0 && workers >= wanted;
    if (enough && !c->complete) {
        c->complete = true;
        monitor_wake(&c->monitor);
    } else if (!c->complete && !c->job.summoned && count_in(c, MEMBER_WORKER, SEAT_WAITING) == 0) {
        c->has_job = false;
    }
    if (!enough)
        say_who_is_there(c, MEMBER_WORKER, workers, wanted);
    else if (c->servers > 0 && servers < c->servers)
        say_who_is_there(c, MEMBER_SERVER, servers, c->servers);
    else if (c->servers > 0)
        begin(c, order, workers);
}

void generation_settle(struct coordinator *c, int64_t now_ns)
{
    if (c->ended_well)
        end_first_server(c, now_ns);
    if (c->ended)
        return;
    if (c->running)
        lose_the_late(c, now_ns);
    if (c->ended || count_in(c, MEMBER_WORKER, SEAT_RUNNING) > 0)
        return;
    bool all_are_gone = count_back(c) + count_in(c, MEMBER_WORKER, SEAT_DONE) == 0;
    if (c->running && c->first_id != 0 && all_are_gone && c->return_by_ns == 0)
        c->return_by_ns = now_ns + c->options.timeout_ms * NS_PER_MS; /* they may have lost it */
    if (c->done > 0) {
        c->running = false;
        if (!waits_for_return(c, now_ns))
            end_well(c, now_ns);
        return;
    }
    if (count_in(c, MEMBER_SERVER, SEAT_RUNNING) > 0)
        return;
    if (c->running)
        c->failures += c->over;
    if (c->running && c->accounted == 0) /* the lost workers may have had trained weights */
        c->has_weights = true;
    c->running = false;
    if (c->complete && weights_are_lost(c)) {
        end_without_workers(c);
        return;
    }
    if (c->failures >= FAILURES_MOST) {
        coordinator_end_all(c, STATUS_TRANSPORT,
                            "three generations in a row failed before a step was done; read the "
                            "workers' messages, then start the job again");
        return;
    }
    if (!waits_for_return(c, now_ns))
        begin_or_wait(c);
}
