/* The watchdog: its thread on all ranks, the decisions of rank 0, and the interface. */
#include "common/net/watchdog.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/status.h"
#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/net/control.h"
#include "common/net/secure.h"
#include "common/net/watchdog_impl.h"
#include "common/net/world_impl.h"

/*
 * The connections of the watchdog form a star with rank 0 in the middle. All frames have one size
 * in both directions.
 */

enum watchdog_frame_type {
    WATCHDOG_BEAT = CONTROL_WATCH, /* to rank 0 and from it: alive, with this activity */
    WATCHDOG_BYE,                  /* to rank 0: not ALIVE any more, closes */
    WATCHDOG_END,                  /* from rank 0: end with the exit code */
};

struct watchdog_frame {
    struct control_head head; /* value: the exit code */
    uint32_t state;           /* BYE: an enum watchdog_rank_state */
    uint32_t told;
    struct watchdog_beat beat;
};

struct watchdog_link {
    int fd; /* -1: none */
    struct control_input input;
    struct watchdog_frame frame;
};

/* The state of the watchdog's thread. */

enum watchdog_phase {
    WATCHDOG_STARTING, /* no other rank is known yet */
    WATCHDOG_ALONE,    /* there is no other rank */
    WATCHDOG_JOINED,
};

struct watchdog {
    struct watchdog_options options;
    struct activity activity;
    struct thread thread;
    int wake_fd; /* an eventfd: the thread must check the fields below */
    _Atomic int phase;
    _Atomic bool signalled, closing;

    /* Set before the phase is JOINED. */
    int rank, size;
    struct watchdog_rank *ranks; /* (size): on rank 0 the state of each rank, else only the hosts */
    struct watchdog_link *links; /* (size): on rank 0 one for each other rank, else links[0]
                                  * alone */
    struct pollfd *polled;       /* (size): the links, and wake_fd at this rank's index */

    /* Used by the thread only. */
    int64_t tick_ns, timeout_ns; /* time between beats; limit of a silence */
    int64_t started_ns, next_beat_ns, asked_ns /* start of a failure or signal */;
    struct {
        uint64_t moves;
        int64_t since_ns;
    } seen[ACTIVITY_THREADS];
    bool gave_up; /* its BYE has been sent */
    enum watchdog_trouble trouble;
    int64_t trouble_ns;        /* start of the trouble */
    struct stall_watch stalls; /* rank 0: of all ranks; rank 1: silence of rank 0 */
};

enum { EXIT_FAILED = 1, EXIT_SIGNALLED = 143 };

/* A line needs at most this time to the user, and a frame to the other ranks. */
#define WATCHDOG_LINGER_NS (200 * NS_PER_MS)

enum { WATCHDOG_LAST_WORD_S = 5 };

/* SIGALRM now ends the process after WATCHDOG_LAST_WORD_S. stderr may have no reader, and another
 * thread may hold the lock of the messages while it waits for one. */
static void limit_last_word(void)
{
    alarm(WATCHDOG_LAST_WORD_S);
}

/* Makes the thread check its state now. */
static void wake(struct watchdog *watchdog)
{
    uint64_t one = 1;
    ssize_t written = write(watchdog->wake_fd, &one, sizeof one);
    (void)written;
}

/* Never waits. A frame that does not fit in the socket's buffer, or has no reader, is lost. The
 * `last` frame wakes its reader at once. */
static void send_frame(struct watchdog_link *link, struct watchdog_frame *frame, bool last)
{
    frame->head.job = link->input.job;
    int error = control_send(link->fd, frame, sizeof *frame, NULL, 0, -1);
    /* After a part of a frame the reader cannot find the next frame. A peer that has left the
     * buffer full for this time counts as gone. */
    if (last || error == ETIMEDOUT)
        secure_end_output(link->fd);
}

/* Reads the next frame into link->frame. */
static enum control_read read_frame(struct watchdog_link *link)
{
    return control_read(link->fd, &link->frame, sizeof link->frame, sizeof link->frame,
                        &link->input);
}

/*
 * Called before the last message: from now on no other thread of this process writes to stderr or
 * stdout. MPI reports every connection that closes between the end of the first rank and the end of
 * the last one. Another thread may be about to print the line of a step. Sleeps until earlier
 * output has reached the user.
 */
static void silence_output(void)
{
    limit_last_word();
    log_take_over();
    clock_sleep_until_ns(clock_now_ns() + WATCHDOG_LINGER_NS);
}

/* -------- what this rank is doing ------------------------------------------------------------- */

/* The beat that this rank would send now. */
static void sample(struct watchdog *watchdog, int64_t now_ns, struct watchdog_beat *beat)
{
    bool started = atomic_load_explicit(&watchdog->activity.started, memory_order_relaxed);
    int64_t limit_ms =
        started ? watchdog->options.timeout_ms : watchdog->options.startup_timeout_ms;
    beat->starting = !started;
    for (int thread = 0; thread < ACTIVITY_THREADS; thread++) {
        struct activity_view *view = &beat->threads[thread].view;
        activity_view(&watchdog->activity, thread, view);
        if (view->moves != watchdog->seen[thread].moves || watchdog->seen[thread].since_ns == 0) {
            watchdog->seen[thread].moves = view->moves;
            watchdog->seen[thread].since_ns = now_ns;
        }
        int64_t still_ms = (now_ns - watchdog->seen[thread].since_ns) / NS_PER_MS;
        beat->threads[thread].still_ms = (uint32_t)(still_ms < UINT32_MAX ? still_ms : UINT32_MAX);
        beat->threads[thread].overdue = view->first != ACTIVITY_NOBODY && still_ms >= limit_ms;
    }
}

/* stderr may have no reader; the watchdog does not wait to print a warning. */
static bool may_print(void)
{
    struct pollfd errors = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&errors, 1, 0) > 0;
}

/* Warns of a stall that has begun or ended, if this rank is responsible for the warning. */
static void watch_stalls(struct watchdog *watchdog, int64_t now_ns)
{
    char text[700];
    if (watchdog->asked_ns == 0 &&
        stall_watch_look(&watchdog->stalls, watchdog->ranks, now_ns, text, sizeof text) &&
        may_print())
        log_message(watchdog->stalls.told ? LOG_WARN : LOG_INFO, "%s", text);
}

/* -------- the thread before it knows the other ranks ------------------------------------------ */

/* The lower ranks report first. mpirun may end all ranks after the first one, so that only one line
 * appears. */
static int64_t turn_ns(int rank)
{
    enum { RANKS_APART = 8 };
    return (rank < RANKS_APART ? rank : RANKS_APART) * NS_PER_S / 4;
}

static void watch_start(struct watchdog *watchdog, int64_t now_ns)
{
    const struct watchdog_options *options = &watchdog->options;
    struct activity_view view;
    char doing[96];
    activity_view(&watchdog->activity, ACTIVITY_MAIN, &view);
    activity_describe(&view, doing, sizeof doing);
    if (watchdog->asked_ns && now_ns - watchdog->asked_ns >= NS_PER_S / 2) {
        /* The rank that ended first has logged its reason, or its launcher has. This rank is not at
         * fault. */
        limit_last_word();
        log_message(options->rank == 0 ? LOG_INFO : LOG_DEBUG,
                    "asked to end (SIGTERM) while %s: if no user asked for this, another rank "
                    "ended first",
                    doing);
        options->end(EXIT_SIGNALLED);
    }
    int64_t limit_ns = options->meet_timeout_ms * NS_PER_MS + turn_ns(options->rank);
    if (now_ns - watchdog->started_ns < limit_ns)
        return;
    limit_last_word();
    log_error("rank %d is still %s after %g s: some rank was not started, is stopped, or its host "
              "cannot be reached; a slow start needs a larger --startup-timeout",
              options->rank, doing, (double)options->meet_timeout_ms / 1000);
    options->end(EXIT_FAILED);
}

/* A rank that is silent for this time is at fault. The time is shorter once this process is asked
 * to end: the launcher may have missed the same rank earlier. */
static int64_t silence_ns(const struct watchdog *watchdog)
{
    return watchdog->asked_ns ? watchdog->tick_ns * 5 / 2 : watchdog->timeout_ns;
}

/* -------- the thread of rank 0: receiving ----------------------------------------------------- */

static void hear_frame(struct watchdog_rank *rank, const struct watchdog_frame *frame,
                       int64_t now_ns)
{
    rank->heard_ns = now_ns;
    if (frame->head.type == WATCHDOG_BEAT)
        rank->beat = frame->beat;
    if (frame->head.type != WATCHDOG_BYE)
        return;
    rank->state =
        frame->state <= WATCHDOG_GONE ? (enum watchdog_rank_state)frame->state : WATCHDOG_GONE;
    rank->told = frame->told;
    rank->exit_code = frame->head.value;
}

static void hear(struct watchdog *watchdog, int from, int64_t now_ns)
{
    struct watchdog_rank *rank = &watchdog->ranks[from];
    struct watchdog_link *link = &watchdog->links[from];
    enum control_read got;
    while ((got = read_frame(link)) == CONTROL_MESSAGE)
        hear_frame(rank, &link->frame, now_ns);
    if (got == CONTROL_NOTHING)
        return;
    if (rank->state == WATCHDOG_ALIVE)
        rank->state = WATCHDOG_GONE;
    /* The connections stay open, because they may still have to carry an END. */
    watchdog->polled[from].fd = -1;
}

static void hear_all(struct watchdog *watchdog, int64_t now_ns)
{
    struct watchdog_rank *own = &watchdog->ranks[0];
    int failed = atomic_load(&watchdog->activity.failed);
    sample(watchdog, now_ns, &own->beat);
    own->heard_ns = now_ns;
    if (failed) {
        own->state = WATCHDOG_FAILED;
        own->exit_code = failed;
        own->told = log_errors() > 0;
    } else if (watchdog->asked_ns && now_ns - watchdog->asked_ns >= NS_PER_S / 2) {
        own->state = WATCHDOG_SIGNALLED;
        own->exit_code = EXIT_SIGNALLED;
    }
    for (int rank = 1; rank < watchdog->size; rank++) {
        if (watchdog->polled[rank].fd >= 0)
            hear(watchdog, rank, now_ns);
    }
}

/* -------- the thread of rank 0: deciding ------------------------------------------------------ */

/* The time that a trouble must last before it is reported: a message about its cause may be on its
 * way. */
static int64_t grace_ns(const struct watchdog *watchdog, enum watchdog_trouble trouble)
{
    switch (trouble) {
    case WATCHDOG_NONE:
        return INT64_MAX / 2;
    case WATCHDOG_OVERDUE: /* until newer beats have arrived */
        return watchdog->tick_ns * 3 / 2;
    case WATCHDOG_QUIET_ERROR: /* until rank 0 has had and logged the error */
        return 2 * NS_PER_S;
    case WATCHDOG_ERROR:
    case WATCHDOG_SIGNAL: /* another process's end may be the cause */
        return 3 * NS_PER_S / 10;
    case WATCHDOG_SILENT: /* other ranks of its host may be silent, too */
        return watchdog->asked_ns ? 0 : watchdog->tick_ns;
    case WATCHDOG_ENDED:
        return NS_PER_S / 20;
    }
    return 0;
}

static struct watchdog_scene scene_of(const struct watchdog *watchdog, int64_t now_ns)
{
    return (struct watchdog_scene){watchdog->ranks, watchdog->size, now_ns, silence_ns(watchdog),
                                   watchdog->trouble};
}

static void end_all(struct watchdog *watchdog, int64_t now_ns)
{
    char text[700];
    struct watchdog_scene scene = scene_of(watchdog, now_ns);
    int code = watchdog_blame(&scene, text, sizeof text);
    struct watchdog_frame frame = {.head = {.type = WATCHDOG_END, .value = code}};
    for (int rank = 1; rank < watchdog->size; rank++)
        send_frame(&watchdog->links[rank], &frame, true);
    silence_output(); /* when this returns the other ranks are silent, too */
    if (text[0])
        log_error("%s", text);
    clock_sleep_until_ns(clock_now_ns() + WATCHDOG_LINGER_NS);
    watchdog->options.end(code);
}

/* Other ranks may have given up on this rank meanwhile. If all were stopped (by a scheduler, or by
 * Ctrl-Z) none has, and the run continues. */
static void was_stopped(struct watchdog *watchdog, int64_t late_ns)
{
    bool left = false;
    for (int rank = 1; rank < watchdog->size; rank++)
        left = left || watchdog->ranks[rank].state == WATCHDOG_GONE;
    if (!left)
        return;
    limit_last_word();
    log_error(
        "rank 0 on %s was stopped, or its host suspended, for %lld s: longer than the others wait",
        watchdog->ranks[0].host, (long long)(late_ns / NS_PER_S));
    watchdog->options.end(1);
}

/* One look of rank 0's thread at all ranks. Ends them and this process if necessary. False once all
 * ranks are done. `late_ns`: this thread did not look for this time, so all ranks seem silent. */
static bool lead(struct watchdog *watchdog, int64_t now_ns, int64_t late_ns)
{
    bool all_done = atomic_load(&watchdog->closing);
    for (int rank = 0; rank < watchdog->size; rank++)
        watchdog->ranks[rank].heard_ns += late_ns;
    hear_all(watchdog, now_ns);
    if (late_ns >= watchdog->timeout_ns)
        was_stopped(watchdog, late_ns);
    for (int rank = 1; rank < watchdog->size; rank++)
        all_done = all_done && watchdog->ranks[rank].state == WATCHDOG_DONE;
    struct watchdog_scene scene = scene_of(watchdog, now_ns);
    enum watchdog_trouble trouble = watchdog_find(&scene);
    if (trouble != watchdog->trouble)
        watchdog->trouble_ns = now_ns;
    watchdog->trouble = trouble;
    if (trouble && now_ns - watchdog->trouble_ns >= grace_ns(watchdog, trouble))
        end_all(watchdog, now_ns);
    watch_stalls(watchdog, now_ns);
    if (now_ns >= watchdog->next_beat_ns) {
        struct watchdog_frame frame = {.head.type = WATCHDOG_BEAT, .beat = watchdog->ranks[0].beat};
        for (int rank = 1; rank < watchdog->size; rank++)
            send_frame(&watchdog->links[rank], &frame, false);
        watchdog->next_beat_ns = now_ns + watchdog->tick_ns;
    }
    return !all_done;
}

/* The latest time of its next look. */
static int64_t lead_next_ns(const struct watchdog *watchdog)
{
    int64_t decides_ns = watchdog->trouble_ns + grace_ns(watchdog, watchdog->trouble);
    bool decides = watchdog->trouble && decides_ns < watchdog->next_beat_ns;
    return decides ? decides_ns : watchdog->next_beat_ns;
}

/* -------- the thread of all ranks but 0 ------------------------------------------------------- */

/*
 * Rank 0 cannot report its own end. Rank 1 reports it first, then the first rank on another host,
 * then all others. Rank 1 waits until all ranks have noticed and are silent. If rank 0 is silent,
 * that takes a tick. There is no such tick if rank 0's connection has closed, or if the launcher
 * ends this process: it grants only one second.
 */
static int64_t follower_turn_ns(const struct watchdog *watchdog)
{
    bool soon = watchdog->trouble == WATCHDOG_ENDED || watchdog->asked_ns;
    int64_t noticed_ns = WATCHDOG_LINGER_NS + (soon ? 0 : watchdog->tick_ns);
    int other = 1;
    while (other < watchdog->size &&
           strcmp(watchdog->ranks[other].host, watchdog->ranks[0].host) == 0)
        other++;
    if (watchdog->rank == 1)
        return noticed_ns;
    return noticed_ns + (watchdog->rank == other ? 3 * NS_PER_S / 10 : 3 * NS_PER_S / 2);
}

static void rank0_lost(struct watchdog *watchdog, bool closed, int64_t now_ns)
{
    if (watchdog->trouble == WATCHDOG_NONE) {
        watchdog->trouble = closed ? WATCHDOG_ENDED : WATCHDOG_SILENT;
        watchdog->trouble_ns = now_ns;
        limit_last_word();
        log_take_over();
        alarm(0); /* this rank's turn may be later */
    }
    if (now_ns - watchdog->trouble_ns < follower_turn_ns(watchdog))
        return;
    limit_last_word();
    if (closed)
        log_error("rank 0 on %s has ended in the middle of the run: killed, or crashed",
                  watchdog->ranks[0].host);
    else
        log_error("rank 0 on %s has not given a sign of life for %lld s to rank %d on %s: its "
                  "process is stopped, or its host cannot be reached",
                  watchdog->ranks[0].host,
                  (long long)((now_ns - watchdog->ranks[0].heard_ns) / NS_PER_S), watchdog->rank,
                  watchdog->ranks[watchdog->rank].host);
    watchdog->options.end(EXIT_FAILED);
}

static void hear_rank0(struct watchdog *watchdog, int64_t now_ns, int64_t late_ns)
{
    struct watchdog_link *link = &watchdog->links[0];
    struct watchdog_rank *rank0 = &watchdog->ranks[0];
    enum control_read got;
    rank0->heard_ns += late_ns;
    while ((got = read_frame(link)) == CONTROL_MESSAGE) {
        rank0->heard_ns = now_ns;
        rank0->beat = link->frame.beat;
        if (link->frame.head.type == WATCHDOG_END) {
            silence_output();
            /* mpirun ends all processes once the first one has ended: rank 0 must report before. */
            clock_sleep_until_ns(clock_now_ns() + 2 * WATCHDOG_LINGER_NS);
            watchdog->options.end(watchdog_exit_code(link->frame.head.value));
        }
    }
    bool closed = got != CONTROL_NOTHING;
    if (closed)
        watchdog->polled[0].fd = -1;
    /* Rank 0 knows more, so it is the first to report a silence between the two ranks. */
    int64_t later_ns = watchdog->asked_ns ? 0 : 2 * watchdog->tick_ns;
    if (watchdog->trouble || closed || now_ns - rank0->heard_ns >= silence_ns(watchdog) + later_ns)
        rank0_lost(watchdog, closed, now_ns);
}

static void say_bye(struct watchdog *watchdog, enum watchdog_rank_state state, int exit_code)
{
    struct watchdog_frame frame = {.head = {.type = WATCHDOG_BYE, .value = exit_code},
                                   .state = state,
                                   .told = log_errors() > 0};
    send_frame(&watchdog->links[0], &frame, true);
}

/* Rank 0 reports an error or a signal. It answers with an END, unless its process has ended. */
static void give_up(struct watchdog *watchdog, int failed, int64_t now_ns)
{
    enum { ANSWER_S = 4 };
    bool signalled = !failed;
    int code = failed ? failed : EXIT_SIGNALLED;
    int64_t patience_ns = signalled ? NS_PER_S / 2 : 0;
    if (watchdog->asked_ns == 0)
        watchdog->asked_ns = now_ns;
    if (!watchdog->gave_up && now_ns - watchdog->asked_ns >= patience_ns) {
        say_bye(watchdog, failed ? WATCHDOG_FAILED : WATCHDOG_SIGNALLED, code);
        watchdog->gave_up = true;
    }
    if (now_ns - watchdog->asked_ns >= ANSWER_S * NS_PER_S)
        watchdog->options.end(code);
}

/* False once this rank is done. */
static bool follow(struct watchdog *watchdog, int64_t now_ns, int64_t late_ns)
{
    int failed = atomic_load(&watchdog->activity.failed);
    hear_rank0(watchdog, now_ns, late_ns);
    if (failed || watchdog->asked_ns) {
        give_up(watchdog, failed, now_ns);
        return true;
    }
    if (atomic_load(&watchdog->closing)) {
        say_bye(watchdog, WATCHDOG_DONE, 0);
        return false;
    }
    if (now_ns >= watchdog->next_beat_ns) {
        struct watchdog_frame frame = {.head.type = WATCHDOG_BEAT};
        sample(watchdog, now_ns, &frame.beat);
        send_frame(&watchdog->links[0], &frame, false);
        watchdog->next_beat_ns = now_ns + watchdog->tick_ns;
        watchdog->ranks[watchdog->rank].beat = frame.beat;
        watchdog->ranks[watchdog->rank].heard_ns = now_ns;
        watch_stalls(watchdog, now_ns);
    }
    return true;
}

/* -------- the thread -------------------------------------------------------------------------- */

/* Beats are read when the next one is due. An urgent frame is followed by a close, which wakes. */
static void sleep_until(struct watchdog *watchdog, int64_t deadline_ns)
{
    bool joined = atomic_load(&watchdog->phase) == WATCHDOG_JOINED;
    struct pollfd own = {.fd = watchdog->wake_fd, .events = POLLIN};
    struct pollfd *polled = joined ? watchdog->polled : &own;
    nfds_t count = joined ? (nfds_t)watchdog->size : 1;
    int64_t wait_ns = deadline_ns - clock_now_ns();
    /* Rounded up: a wake one millisecond early would be useless. */
    poll(polled, count, wait_ns > 0 ? (int)(wait_ns / NS_PER_MS) + 1 : 0);
    uint64_t wakes;
    ssize_t got = read(watchdog->wake_fd, &wakes, sizeof wakes);
    (void)got;
}

static int64_t next_look_ns(const struct watchdog *watchdog, int64_t now_ns)
{
    bool joined = atomic_load(&watchdog->phase) == WATCHDOG_JOINED;
    if (watchdog->asked_ns || (watchdog->trouble && watchdog->rank != 0))
        return now_ns + NS_PER_S / 10;
    if (!joined)
        return now_ns + NS_PER_S;
    return watchdog->rank == 0 ? lead_next_ns(watchdog) : watchdog->next_beat_ns;
}

static void *run(void *argument)
{
    struct watchdog *watchdog = argument;
    bool goes_on = true;
    int64_t now_ns = watchdog->started_ns = clock_now_ns();
    while (goes_on) {
        int64_t due_ns = next_look_ns(watchdog, now_ns);
        due_ns = due_ns > now_ns ? due_ns : now_ns;
        sleep_until(watchdog, due_ns);
        now_ns = clock_now_ns();
        /* This process was stopped, or its host suspended: the other ranks' frames wait to be
         * read. */
        int64_t late_ns = now_ns - due_ns > 2 * watchdog->tick_ns ? now_ns - due_ns : 0;
        /* As far as this process knows, no wait became longer meanwhile. */
        for (int thread = 0; thread < ACTIVITY_THREADS; thread++)
            watchdog->seen[thread].since_ns += watchdog->seen[thread].since_ns ? late_ns : 0;
        if (atomic_load(&watchdog->signalled) && watchdog->asked_ns == 0)
            watchdog->asked_ns = now_ns;
        switch (atomic_load(&watchdog->phase)) {
        case WATCHDOG_STARTING:
            watchdog->started_ns += late_ns;
            watch_start(watchdog, now_ns);
            goes_on = !atomic_load(&watchdog->closing);
            break;
        case WATCHDOG_JOINED:
            goes_on = watchdog->rank == 0 ? lead(watchdog, now_ns, late_ns)
                                          : follow(watchdog, now_ns, late_ns);
            break;
        default:
            if (watchdog->asked_ns || atomic_load(&watchdog->activity.failed))
                watchdog->options.end(watchdog->asked_ns ? EXIT_SIGNALLED : EXIT_FAILED);
            goes_on = !atomic_load(&watchdog->closing);
            break;
        }
    }
    return NULL;
}

/* -------- the interface ----------------------------------------------------------------------- */

enum status watchdog_new(struct watchdog **out, const struct watchdog_options *options)
{
    enum status status = STATUS_OK;
    *out = NULL;
    struct watchdog *watchdog = calloc(1, sizeof *watchdog);
    if (!watchdog)
        return FAIL(STATUS_NO_MEMORY, "watchdog: out of memory");
    watchdog->options = *options;
    int64_t timeout_ns = options->timeout_ms * NS_PER_MS;
    watchdog->timeout_ns = timeout_ns > NS_PER_S ? timeout_ns : NS_PER_S;
    watchdog->tick_ns = watchdog->timeout_ns < 5 * NS_PER_S ? watchdog->timeout_ns / 5 : NS_PER_S;
    activity_init(&watchdog->activity);
    watchdog->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (watchdog->wake_fd < 0)
        TRY(FAIL(status_from_errno(errno), "watchdog: no eventfd: %s", strerror(errno)));
    TRY(thread_start(&watchdog->thread, "psring-watchdog", run, watchdog));
    *out = watchdog;
    return STATUS_OK;
out:
    if (watchdog->wake_fd >= 0)
        close(watchdog->wake_fd);
    free(watchdog);
    return status;
}

/* -------- joining ----------------------------------------------------------------------------- */

static enum status out_of_memory(void)
{
    return FAIL(STATUS_NO_MEMORY, "watchdog: out of memory");
}

static enum status allocate(struct watchdog *watchdog, const struct world *world)
{
    size_t size = (size_t)world->size;
    watchdog->rank = world->rank;
    watchdog->size = world->size;
    watchdog->ranks = calloc(size, sizeof *watchdog->ranks);
    watchdog->links = calloc(size, sizeof *watchdog->links);
    watchdog->polled = calloc(size, sizeof *watchdog->polled);
    if (!watchdog->ranks || !watchdog->links || !watchdog->polled)
        return out_of_memory();
    watchdog->stalls = (struct stall_watch){
        .limit_ns = watchdog->options.stall_warning_ms * NS_PER_MS,
        .tick_ns = watchdog->tick_ns,
        .timeout_ns = watchdog->timeout_ns,
        .silence_only = world->rank != 0,
    };
    if (world->rank <= 1 &&
        stall_watch_init(&watchdog->stalls, world->rank == 0 ? world->size : 2) != STATUS_OK)
        return out_of_memory();
    for (size_t rank = 0; rank < size; rank++) {
        watchdog->links[rank].fd = watchdog->polled[rank].fd = -1;
        memcpy(watchdog->ranks[rank].host, world->hosts[rank], WORLD_HOST_BYTES);
    }
    return STATUS_OK;
}

static enum status connect_all(struct watchdog *watchdog, struct world *world)
{
    enum status status, found = STATUS_OK;
    union address address;
    int *sockets = malloc((size_t)world->size * sizeof *sockets);
    if (!sockets)
        return out_of_memory();
    for (int rank = 0; rank < world->size; rank++)
        sockets[rank] = world->rank == 0 && rank > 0 ? LISTENER_AWAITED : -1;
    if (world->rank == 0)
        found = world_choose_address(world, watchdog->options.subnet, &address);
    bool listens = world->rank == 0 && found == STATUS_OK;
    status = world_connect_to_root(world, 0, listens ? &address : NULL, sockets);
    for (int rank = 0; rank < world->size; rank++) {
        watchdog->links[rank].fd = sockets[rank];
        watchdog->links[rank].input.job = world->run_id;
        watchdog->ranks[rank].heard_ns = clock_now_ns();
        watchdog->polled[rank] = (struct pollfd){.fd = sockets[rank], .events = POLLRDHUP};
    }
    /* Rank 0 beats once the last rank has connected, and that has the longer time-out. */
    if (world->rank > 0)
        watchdog->ranks[0].heard_ns += watchdog->options.startup_timeout_ms * NS_PER_MS;
    watchdog->polled[world->rank] = (struct pollfd){.fd = watchdog->wake_fd, .events = POLLIN};
    free(sockets);
    return found == STATUS_OK ? status : found;
}

enum status watchdog_join(struct watchdog *watchdog, struct world *world)
{
    enum status status = STATUS_OK;
    if (world->size > 1) {
        TRY(allocate(watchdog, world));
        TRY(connect_all(watchdog, world));
    }
    world->activity = &watchdog->activity;
    atomic_store(&watchdog->phase, world->size > 1 ? WATCHDOG_JOINED : WATCHDOG_ALONE);
    wake(watchdog);
out:
    return status;
}

/* -------- leaving ----------------------------------------------------------------------------- */

struct activity *watchdog_activity(struct watchdog *watchdog)
{
    return &watchdog->activity;
}

void watchdog_fail(struct watchdog *watchdog, int exit_code)
{
    CHECK(exit_code != 0);
    if (atomic_load(&watchdog->phase) != WATCHDOG_JOINED)
        return;
    atomic_store(&watchdog->activity.failed, exit_code);
    wake(watchdog);
    thread_join(&watchdog->thread); /* the thread ends the process */
}

void watchdog_signalled(struct watchdog *watchdog)
{
    atomic_store(&watchdog->signalled, true);
    wake(watchdog);
}

void watchdog_close(struct watchdog **out)
{
    struct watchdog *watchdog = *out;
    if (!watchdog)
        return;
    *out = NULL;
    if (atomic_load(&watchdog->phase) == WATCHDOG_JOINED)
        activity_wait(&watchdog->activity, ACTIVITY_MAIN, 0, watchdog->size - 1,
                      ACTIVITY_NO_OFFSET);
    atomic_store(&watchdog->closing, true);
    wake(watchdog);
    thread_join(&watchdog->thread);
    for (int rank = 0; watchdog->links && rank < watchdog->size; rank++)
        stream_close(&watchdog->links[rank].fd);
    close(watchdog->wake_fd);
    stall_watch_fini(&watchdog->stalls);
    free(watchdog->ranks);
    free(watchdog->links);
    free(watchdog->polled);
    free(watchdog);
}
