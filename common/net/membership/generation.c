/* The coordinator's decisions: when a generation is over, and who is in the next one. */
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/net/membership/coordinator_impl.h"

enum { FAILURES_MOST = 3, TEXT_BYTES = 300 };

static void send_to(const struct seat *seat, const struct membership_frame *frame, const char *text)
{
    membership_send(seat->socket, *frame, text); /* if it fails, it is lost: it is silent */
}

static const struct membership_frame note = {.type = MEMBERSHIP_NOTE};

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
    const struct membership_frame over = {.type = MEMBERSHIP_OVER, .generation = c->generation};
    c->over = true;
    for (int i = 0; i < c->count; i++) {
        if (c->seats[i]->state == SEAT_RUNNING)
            send_to(c->seats[i], &over, text);
    }
}

/* -------- who is in the next generation --------------------------------------------------------
 */

/* The step that the job's weights are after; MEMBER_NO_STEP: nobody has trained. */
static uint64_t step_of(const struct coordinator *c)
{
    uint64_t step = MEMBER_NO_STEP;
    for (int i = 0; i < c->count; i++) {
        const struct seat *seat = c->seats[i];
        if (seat_is_worker(seat) && seat->state == SEAT_WAITING && seat->trained &&
            (step == MEMBER_NO_STEP || seat->last.step > step))
            step = seat->last.step;
    }
    return step;
}

/* A newcomer that wants to come later waits on. */
static bool takes_part(const struct seat *seat, uint64_t step)
{
    return seat->state == SEAT_WAITING &&
           (seat->trained || !seat_is_worker(seat) || seat->last.step == 0 ||
            (step != MEMBER_NO_STEP && seat->last.step <= step));
}

/* Whose weights are the newest comes first; then who has been there longest. */
static int compare_seats(const void *a, const void *b)
{
    const struct seat *const *x = a, *const *y = b;
    if ((*x)->trained != (*y)->trained)
        return (*x)->trained ? -1 : 1;
    if ((*x)->trained && (*x)->last.step != (*y)->last.step)
        return (*x)->last.step > (*y)->last.step ? -1 : 1;
    return (*x)->age < (*y)->age ? -1 : 1;
}

/* Fills `order` with the workers by rank, then the servers by number; returns how many workers. */
static int choose(struct coordinator *c, struct seat **order)
{
    int workers = 0;
    uint64_t step = step_of(c);
    for (int i = 0; i < c->count; i++) {
        if (seat_is_worker(c->seats[i]) && takes_part(c->seats[i], step))
            order[workers++] = c->seats[i];
    }
    qsort(order, (size_t)workers, sizeof *order, compare_seats);
    for (int i = 0; i < c->count; i++) {
        struct seat *seat = c->seats[i];
        if (!seat_is_worker(seat) && seat->state == SEAT_WAITING)
            order[workers + seat->last.index] = seat;
    }
    return workers;
}

/* Where the others can reach what rank 0 listens at: its address as it is seen from here. */
static uint32_t address_of(const struct seat *seat)
{
    struct sockaddr_in there = {0};
    socklen_t bytes = sizeof there;
    getpeername(seat->socket, (struct sockaddr *)&there, &bytes);
    return there.sin_addr.s_addr;
}

void generation_announce(struct coordinator *c, const struct seat *newcomer)
{
    const struct membership_frame change = {
        .type = MEMBERSHIP_CHANGE, .generation = c->generation, .step = newcomer->last.step};
    for (int i = 0; i < c->count; i++) {
        if (c->seats[i]->state == SEAT_RUNNING)
            send_to(c->seats[i], &change, NULL);
    }
}

static void begin(struct coordinator *c, struct seat **order, int workers)
{
    const struct seat *first = order[0];
    c->generation++;
    c->running = true;
    c->over = false;
    c->leave_by_ns = 0;
    c->told_workers = 0;
    c->accounted = 0;
    c->failures = first->trained && first->last.step > c->step ? 0 : c->failures;
    c->step = first->trained ? first->last.step : 0;
    c->has_weights = c->has_weights || first->trained;
    struct membership_frame frame = {.type = MEMBERSHIP_GENERATION,
                                     .generation = c->generation,
                                     .workers = workers,
                                     .servers = c->servers,
                                     .address = address_of(first),
                                     .port = first->last.port,
                                     .step = c->step};
    memcpy(frame.note, first->last.note, sizeof frame.note);
    log_info("generation %u: %d worker%s, after step %" PRIu64, c->generation, workers,
             workers == 1 ? "" : "s", c->step);
    for (int rank = 0; rank < workers + c->servers; rank++) {
        order[rank]->state = SEAT_RUNNING;
        order[rank]->rank = frame.index = rank;
        send_to(order[rank], &frame, NULL);
    }
    for (int i = 0; i < c->count; i++) {
        if (c->seats[i]->state == SEAT_WAITING)
            generation_announce(c, c->seats[i]);
    }
}

/* Once for each that comes or goes. */
static void say_who_is_missing(struct coordinator *c, int workers, int wanted)
{
    char text[TEXT_BYTES];
    if (c->told_workers == workers)
        return;
    c->told_workers = workers;
    snprintf(text, sizeof text, "waits: %d of %d workers are there", workers, wanted);
    for (int i = 0; i < c->count; i++) {
        if (c->seats[i]->state == SEAT_WAITING && seat_is_worker(c->seats[i]))
            send_to(c->seats[i], &note, text);
    }
}

/* -------- the end ----------------------------------------------------------------------------- */

static void end_well(struct coordinator *c)
{
    log_info("training has ended; in the weights are %" PRIu64 " images, by the account of the "
             "workers that left or trained to the end",
             c->images);
    coordinator_end_all(c, STATUS_OK, "");
}

static void end_without_workers(struct coordinator *c)
{
    coordinator_end_all(c, STATUS_TRANSPORT,
                        "no worker is left, and with the last one the weights are lost; start the "
                        "job again");
}

/* Whoever is left has never had the weights that were trained. */
static bool weights_are_lost(const struct coordinator *c)
{
    bool anybody = false;
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

/* Whoever does not come out of a generation that the others have left. */
static void lose_the_late(struct coordinator *c, int64_t now_ns)
{
    char name[96];
    if (c->leave_by_ns == 0 || now_ns < c->leave_by_ns)
        return;
    for (int i = c->count - 1; i >= 0; i--) {
        struct seat *seat = c->seats[i];
        if (seat->state != SEAT_RUNNING)
            continue;
        log_warn("%s has not come out of generation %u, which others left: lost",
                 seat_name(seat, name, sizeof name), c->generation);
        coordinator_forget(c, seat);
    }
}

void generation_settle(struct coordinator *c, int64_t now_ns)
{
    struct seat *order[COORDINATOR_MEMBERS];
    if (c->ended)
        return;
    if (c->running)
        lose_the_late(c, now_ns);
    if (c->ended || count_in(c, MEMBER_WORKER, SEAT_RUNNING) > 0)
        return;
    if (c->finished) {
        end_well(c);
        return;
    }
    if (count_in(c, MEMBER_SERVER, SEAT_RUNNING) > 0)
        return;
    if (c->running)
        c->failures += c->over;
    if (c->running && c->accounted == 0) /* they may have trained, and are gone */
        c->has_weights = true;
    c->running = false;
    if (c->generation > 0 && weights_are_lost(c)) {
        end_without_workers(c);
        return;
    }
    if (c->failures >= FAILURES_MOST) {
        coordinator_end_all(c, STATUS_TRANSPORT,
                            "three generations in a row could do no step; see what the workers "
                            "say, then start the job again");
        return;
    }
    if (c->servers == 0 || count_in(c, MEMBER_SERVER, SEAT_WAITING) < c->servers)
        return;
    int workers = choose(c, order);
    int wanted = c->generation == 0 ? c->options.workers_first : c->options.workers_min;
    if (workers > 0 && workers >= wanted)
        begin(c, order, workers);
    else
        say_who_is_missing(c, workers, wanted);
}
