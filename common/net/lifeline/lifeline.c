#include "common/net/lifeline/lifeline.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/status.h"
#include "common/base/clock.h"
#include "common/net/lifeline/lifeline_impl.h"

void lifeline_wake(struct lifeline *lifeline)
{
    uint64_t one = 1;
    ssize_t written = write(lifeline->wake_fd, &one, sizeof one);
    (void)written;
}

void lifeline_take_the_word(void)
{
    alarm(LIFELINE_LAST_WORD_S);
    log_take_over();
    clock_sleep_until_ns(clock_now_ns() + LIFELINE_LINGER_NS);
}

/* -------- what this rank is doing ------------------------------------------------------------- */

void lifeline_sample(struct lifeline *lifeline, int64_t now_ns, struct lifeline_beat *beat)
{
    bool started = atomic_load_explicit(&lifeline->activity.started, memory_order_relaxed);
    int64_t limit_ms =
        started ? lifeline->options.timeout_ms : lifeline->options.startup_timeout_ms;
    beat->starting = !started;
    for (int thread = 0; thread < ACTIVITY_THREADS; thread++) {
        struct activity_view *view = &beat->threads[thread].view;
        activity_view(&lifeline->activity, thread, view);
        if (view->moves != lifeline->seen[thread].moves || lifeline->seen[thread].since_ns == 0) {
            lifeline->seen[thread].moves = view->moves;
            lifeline->seen[thread].since_ns = now_ns;
        }
        int64_t still_ms = (now_ns - lifeline->seen[thread].since_ns) / NS_PER_MS;
        beat->threads[thread].still_ms = (uint32_t)(still_ms < UINT32_MAX ? still_ms : UINT32_MAX);
        beat->threads[thread].overdue = view->first != ACTIVITY_NOBODY && still_ms >= limit_ms;
    }
}

/* Nobody may be reading what is printed: for a warning the lifeline does not wait. */
static bool may_print(void)
{
    struct pollfd errors = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&errors, 1, 0) > 0;
}

void lifeline_watch_stalls(struct lifeline *lifeline, int64_t now_ns)
{
    char text[700];
    if (lifeline->asked_ns == 0 &&
        stall_watch_look(&lifeline->stalls, lifeline->ranks, now_ns, text, sizeof text) &&
        may_print())
        log_message(lifeline->stalls.told ? LOG_WARN : LOG_INFO, "%s", text);
}

/* -------- the thread before it knows the others ----------------------------------------------- */

/* The lower ranks speak first. Where mpirun ends all after the first, one line is all there is. */
static int64_t turn_ns(int rank)
{
    enum { RANKS_APART = 8 };
    return (rank < RANKS_APART ? rank : RANKS_APART) * NS_PER_S / 4;
}

static void watch_start(struct lifeline *lifeline, int64_t now_ns)
{
    const struct lifeline_options *options = &lifeline->options;
    struct activity_view view;
    char doing[96];
    activity_view(&lifeline->activity, ACTIVITY_MAIN, &view);
    activity_describe(&view, doing, sizeof doing);
    if (lifeline->asked_ns && now_ns - lifeline->asked_ns >= NS_PER_S / 2) {
        /* The rank that ended first has said why, or its launcher does: this one is not to blame.
         */
        log_message(options->rank == 0 ? LOG_INFO : LOG_DEBUG,
                    "told to end (SIGTERM) while %s: where nobody asked for that, another rank "
                    "ended first",
                    doing);
        options->end(EXIT_SIGNALLED);
    }
    int64_t limit_ns = options->meet_timeout_ms * NS_PER_MS + turn_ns(options->rank);
    if (now_ns - lifeline->started_ns < limit_ns)
        return;
    log_error("rank %d is still %s after %g s: some rank was not started, is stopped, or its host "
              "cannot be reached; a slow start needs a larger --startup-timeout",
              options->rank, doing, (double)options->meet_timeout_ms / 1000);
    options->end(EXIT_FAILED);
}

/* -------- the thread of all ranks but 0 ------------------------------------------------------- */

/*
 * Rank 0 cannot tell of its own end: rank 1 does, and the first rank on another host. Not before
 * all have noticed and are silent, which by a silence takes a tick; but where the launcher ends
 * this process, it grants a second.
 */
static int64_t follower_turn_ns(const struct lifeline *lifeline)
{
    bool soon = lifeline->trouble == LIFELINE_ENDED || lifeline->asked_ns;
    int64_t noticed_ns = LIFELINE_LINGER_NS + (soon ? 0 : lifeline->tick_ns);
    int other = 1;
    while (other < lifeline->size &&
           strcmp(lifeline->ranks[other].host, lifeline->ranks[0].host) == 0)
        other++;
    if (lifeline->rank == 1)
        return noticed_ns;
    return noticed_ns + (lifeline->rank == other ? 3 * NS_PER_S / 10 : 3 * NS_PER_S / 2);
}

static void rank0_lost(struct lifeline *lifeline, bool closed, int64_t now_ns)
{
    if (lifeline->trouble == LIFELINE_NONE) {
        lifeline->trouble = closed ? LIFELINE_ENDED : LIFELINE_SILENT;
        lifeline->trouble_ns = now_ns;
        log_take_over();
    }
    if (now_ns - lifeline->trouble_ns < follower_turn_ns(lifeline))
        return;
    if (closed)
        log_error("rank 0 on %s has ended in the middle of the run: killed, or crashed",
                  lifeline->ranks[0].host);
    else
        log_error("rank 0 on %s has not given a sign of life for %lld s to rank %d on %s: its "
                  "process is stopped, or its host cannot be reached",
                  lifeline->ranks[0].host,
                  (long long)((now_ns - lifeline->ranks[0].heard_ns) / NS_PER_S), lifeline->rank,
                  lifeline->ranks[lifeline->rank].host);
    lifeline->options.end(EXIT_FAILED);
}

int64_t lifeline_silence_ns(const struct lifeline *lifeline)
{
    return lifeline->asked_ns ? lifeline->tick_ns * 5 / 2 : lifeline->timeout_ns;
}

static void hear_rank0(struct lifeline *lifeline, int64_t now_ns, int64_t late_ns)
{
    struct lifeline_link *link = &lifeline->links[0];
    struct lifeline_rank *rank0 = &lifeline->ranks[0];
    enum lifeline_read got;
    rank0->heard_ns += late_ns;
    while ((got = lifeline_read(link)) == LIFELINE_READ_FRAME) {
        rank0->heard_ns = now_ns;
        rank0->beat = link->frame.beat;
        if (link->frame.type == LIFELINE_END) {
            lifeline_take_the_word();
            /* mpirun ends everything once the first process has ended: rank 0 speaks before. */
            clock_sleep_until_ns(clock_now_ns() + 2 * LIFELINE_LINGER_NS);
            lifeline->options.end(link->frame.exit_code);
        }
    }
    bool closed = got == LIFELINE_READ_CLOSED;
    if (closed)
        lifeline->polled[0].fd = -1;
    /* Rank 0, which knows more, is the first to speak of a silence between the two. */
    int64_t later_ns = lifeline->asked_ns ? 0 : 2 * lifeline->tick_ns;
    if (lifeline->trouble || closed ||
        now_ns - rank0->heard_ns >= lifeline_silence_ns(lifeline) + later_ns)
        rank0_lost(lifeline, closed, now_ns);
}

static void say_bye(struct lifeline *lifeline, enum lifeline_rank_state state, int exit_code)
{
    lifeline_send_last(&lifeline->links[0], &(struct lifeline_frame){.type = LIFELINE_BYE,
                                                                     .state = state,
                                                                     .told = log_errors() > 0,
                                                                     .exit_code = exit_code});
}

/* An error or a signal is rank 0's to tell; it answers with an END, or does not live. */
static void give_up(struct lifeline *lifeline, int failed, int64_t now_ns)
{
    enum { ANSWER_S = 4 };
    bool signalled = !failed;
    int code = failed ? failed : EXIT_SIGNALLED;
    int64_t patience_ns = signalled ? NS_PER_S / 2 : 0;
    if (lifeline->asked_ns == 0)
        lifeline->asked_ns = now_ns;
    if (!lifeline->gave_up && now_ns - lifeline->asked_ns >= patience_ns) {
        say_bye(lifeline, failed ? LIFELINE_FAILED : LIFELINE_SIGNALLED, code);
        lifeline->gave_up = true;
    }
    if (now_ns - lifeline->asked_ns >= ANSWER_S * NS_PER_S)
        lifeline->options.end(code);
}

/* False once this rank is done. */
static bool follow(struct lifeline *lifeline, int64_t now_ns, int64_t late_ns)
{
    int failed = atomic_load(&lifeline->activity.failed);
    hear_rank0(lifeline, now_ns, late_ns);
    if (failed || lifeline->asked_ns) {
        give_up(lifeline, failed, now_ns);
        return true;
    }
    if (atomic_load(&lifeline->closing)) {
        say_bye(lifeline, LIFELINE_DONE, 0);
        return false;
    }
    if (now_ns >= lifeline->next_beat_ns) {
        struct lifeline_frame frame = {.type = LIFELINE_BEAT};
        lifeline_sample(lifeline, now_ns, &frame.beat);
        lifeline_send(&lifeline->links[0], &frame);
        lifeline->next_beat_ns = now_ns + lifeline->tick_ns;
        lifeline->ranks[lifeline->rank].beat = frame.beat;
        lifeline->ranks[lifeline->rank].heard_ns = now_ns;
        lifeline_watch_stalls(lifeline, now_ns);
    }
    return true;
}

/* -------- the thread -------------------------------------------------------------------------- */

/* Beats are read when the next one is due. What cannot wait closes its connection, which wakes. */
static void sleep_until(struct lifeline *lifeline, int64_t deadline_ns)
{
    bool joined = atomic_load(&lifeline->phase) == LIFELINE_JOINED;
    struct pollfd own = {.fd = lifeline->wake_fd, .events = POLLIN};
    struct pollfd *polled = joined ? lifeline->polled : &own;
    nfds_t count = joined ? (nfds_t)lifeline->size : 1;
    int64_t wait_ns = deadline_ns - clock_now_ns();
    /* Rounded up: a millisecond early would be a round for nothing. */
    poll(polled, count, wait_ns > 0 ? (int)(wait_ns / NS_PER_MS) + 1 : 0);
    uint64_t wakes;
    ssize_t got = read(lifeline->wake_fd, &wakes, sizeof wakes);
    (void)got;
}

static int64_t next_look_ns(const struct lifeline *lifeline, int64_t now_ns)
{
    bool joined = atomic_load(&lifeline->phase) == LIFELINE_JOINED;
    if (lifeline->asked_ns || (lifeline->trouble && lifeline->rank != 0))
        return now_ns + NS_PER_S / 10;
    if (!joined)
        return now_ns + NS_PER_S;
    return lifeline->rank == 0 ? lifeline_lead_next_ns(lifeline) : lifeline->next_beat_ns;
}

static void *run(void *argument)
{
    struct lifeline *lifeline = argument;
    bool goes_on = true;
    int64_t now_ns = lifeline->started_ns = clock_now_ns();
    while (goes_on) {
        int64_t due_ns = next_look_ns(lifeline, now_ns);
        due_ns = due_ns > now_ns ? due_ns : now_ns;
        sleep_until(lifeline, due_ns);
        now_ns = clock_now_ns();
        /* This process was stopped, or its host suspended: the others' frames wait to be read. */
        int64_t late_ns = now_ns - due_ns > 2 * lifeline->tick_ns ? now_ns - due_ns : 0;
        /* Nobody's waits went on meanwhile, as far as this process can know. */
        for (int thread = 0; thread < ACTIVITY_THREADS; thread++)
            lifeline->seen[thread].since_ns += lifeline->seen[thread].since_ns ? late_ns : 0;
        if (atomic_load(&lifeline->signalled) && lifeline->asked_ns == 0)
            lifeline->asked_ns = now_ns;
        switch (atomic_load(&lifeline->phase)) {
        case LIFELINE_STARTING:
            lifeline->started_ns += late_ns;
            watch_start(lifeline, now_ns);
            goes_on = !atomic_load(&lifeline->closing);
            break;
        case LIFELINE_JOINED:
            goes_on = lifeline->rank == 0 ? lifeline_lead(lifeline, now_ns, late_ns)
                                          : follow(lifeline, now_ns, late_ns);
            break;
        default:
            if (lifeline->asked_ns || atomic_load(&lifeline->activity.failed))
                lifeline->options.end(lifeline->asked_ns ? EXIT_SIGNALLED : EXIT_FAILED);
            goes_on = !atomic_load(&lifeline->closing);
            break;
        }
    }
    return NULL;
}

/* -------- the interface ----------------------------------------------------------------------- */

enum status lifeline_new(struct lifeline **out, const struct lifeline_options *options)
{
    enum status status = STATUS_OK;
    *out = NULL;
    struct lifeline *lifeline = calloc(1, sizeof *lifeline);
    if (!lifeline) {
        log_error("lifeline: out of memory");
        return STATUS_NO_MEMORY;
    }
    lifeline->options = *options;
    int64_t timeout_ns = options->timeout_ms * NS_PER_MS;
    lifeline->timeout_ns = timeout_ns > NS_PER_S ? timeout_ns : NS_PER_S;
    lifeline->tick_ns = lifeline->timeout_ns < 5 * NS_PER_S ? lifeline->timeout_ns / 5 : NS_PER_S;
    activity_init(&lifeline->activity);
    lifeline->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (lifeline->wake_fd < 0) {
        log_error("lifeline: no eventfd: %s", strerror(errno));
        status = status_from_errno(errno);
        goto out;
    }
    TRY(thread_start(&lifeline->thread, "psring-lifeline", run, lifeline));
    *out = lifeline;
    return STATUS_OK;
out:
    if (lifeline->wake_fd >= 0)
        close(lifeline->wake_fd);
    free(lifeline);
    return status;
}

struct activity *lifeline_activity(struct lifeline *lifeline)
{
    return &lifeline->activity;
}

void lifeline_fail(struct lifeline *lifeline, int exit_code)
{
    CHECK(exit_code != 0);
    if (atomic_load(&lifeline->phase) != LIFELINE_JOINED)
        return;
    atomic_store(&lifeline->activity.failed, exit_code);
    lifeline_wake(lifeline);
    thread_join(&lifeline->thread); /* it ends the process */
}

void lifeline_signalled(struct lifeline *lifeline)
{
    atomic_store(&lifeline->signalled, true);
    lifeline_wake(lifeline);
}

void lifeline_close(struct lifeline **out)
{
    struct lifeline *lifeline = *out;
    if (!lifeline)
        return;
    *out = NULL;
    if (atomic_load(&lifeline->phase) == LIFELINE_JOINED)
        activity_wait(&lifeline->activity, ACTIVITY_MAIN, 0, lifeline->size - 1,
                      ACTIVITY_NO_OFFSET);
    atomic_store(&lifeline->closing, true);
    lifeline_wake(lifeline);
    thread_join(&lifeline->thread);
    for (int rank = 0; lifeline->links && rank < lifeline->size; rank++)
        lifeline_link_close(&lifeline->links[rank]);
    close(lifeline->wake_fd);
    stall_watch_fini(&lifeline->stalls);
    free(lifeline->ranks);
    free(lifeline->links);
    free(lifeline->polled);
    free(lifeline);
}
