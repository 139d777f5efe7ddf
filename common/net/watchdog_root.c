/* Rank 0's part of the watchdog: it hears all ranks, and decides. */
#include "common/base/clock.h"
#include "common/net/watchdog_impl.h"

/* -------- hearing ----------------------------------------------------------------------------- */

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
    while ((got = watchdog_read(link)) == CONTROL_MESSAGE)
        hear_frame(rank, &link->frame, now_ns);
    if (got != CONTROL_CLOSED)
        return;
    if (rank->state == WATCHDOG_ALIVE)
        rank->state = WATCHDOG_GONE;
    /* The others' ends stay open: what is to be told to them goes out all the same. */
    watchdog->polled[from].fd = -1;
}

static void hear_all(struct watchdog *watchdog, int64_t now_ns)
{
    struct watchdog_rank *own = &watchdog->ranks[0];
    int failed = atomic_load(&watchdog->activity.failed);
    watchdog_sample(watchdog, now_ns, &own->beat);
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

/* -------- deciding ---------------------------------------------------------------------------- */

/* How long a trouble must last before it is the one to be told: its cause may be on its way. */
static int64_t grace_ns(const struct watchdog *watchdog, enum watchdog_trouble trouble)
{
    switch (trouble) {
    case WATCHDOG_NONE:
        return INT64_MAX / 2;
    case WATCHDOG_OVERDUE: /* until all have told what they do since then */
        return watchdog->tick_ns * 3 / 2;
    case WATCHDOG_QUIET_ERROR: /* until rank 0 has met and logged it */
        return 2 * NS_PER_S;
    case WATCHDOG_ERROR:
    case WATCHDOG_SIGNAL: /* another process's end may be behind it */
        return 3 * NS_PER_S / 10;
    case WATCHDOG_SILENT: /* others of its host */
        return watchdog->asked_ns ? 0 : watchdog->tick_ns;
    case WATCHDOG_ENDED:
        return NS_PER_S / 20;
    }
    return 0;
}

static void end_all(struct watchdog *watchdog, int64_t now_ns)
{
    char text[700];
    int code = watchdog_blame(watchdog->ranks, watchdog->size, watchdog->trouble, now_ns,
                              watchdog_silence_ns(watchdog), text, sizeof text);
    struct watchdog_frame frame = {.head = {.type = WATCHDOG_END, .value = code}};
    for (int rank = 1; rank < watchdog->size; rank++)
        watchdog_send(&watchdog->links[rank], &frame, true);
    watchdog_silence_output(); /* the others are silent, too, when this returns */
    if (text[0])
        log_error("%s", text);
    clock_sleep_until_ns(clock_now_ns() + WATCHDOG_LINGER_NS);
    watchdog->options.end(code);
}

/* Others have given up on this rank meanwhile. Where all were stopped (a scheduler makes room, a
 * user presses Ctrl-Z) none has, and the run goes on. */
static void was_stopped(struct watchdog *watchdog, int64_t late_ns)
{
    bool left = false;
    for (int rank = 1; rank < watchdog->size; rank++)
        left = left || watchdog->ranks[rank].state == WATCHDOG_GONE;
    if (!left)
        return;
    log_error(
        "rank 0 on %s was stopped, or its host suspended, for %lld s: too long for the others",
        watchdog->ranks[0].host, (long long)(late_ns / NS_PER_S));
    watchdog->options.end(1);
}

bool watchdog_lead(struct watchdog *watchdog, int64_t now_ns, int64_t late_ns)
{
    bool all_done = atomic_load(&watchdog->closing);
    for (int rank = 0; rank < watchdog->size; rank++)
        watchdog->ranks[rank].heard_ns += late_ns;
    hear_all(watchdog, now_ns);
    if (late_ns >= watchdog->timeout_ns)
        was_stopped(watchdog, late_ns);
    for (int rank = 1; rank < watchdog->size; rank++)
        all_done = all_done && watchdog->ranks[rank].state == WATCHDOG_DONE;
    enum watchdog_trouble trouble =
        watchdog_find(watchdog->ranks, watchdog->size, now_ns, watchdog_silence_ns(watchdog));
    if (trouble != watchdog->trouble)
        watchdog->trouble_ns = now_ns;
    watchdog->trouble = trouble;
    if (trouble && now_ns - watchdog->trouble_ns >= grace_ns(watchdog, trouble))
        end_all(watchdog, now_ns);
    watchdog_watch_stalls(watchdog, now_ns);
    if (now_ns >= watchdog->next_beat_ns) {
        struct watchdog_frame frame = {.head.type = WATCHDOG_BEAT, .beat = watchdog->ranks[0].beat};
        for (int rank = 1; rank < watchdog->size; rank++)
            watchdog_send(&watchdog->links[rank], &frame, false);
        watchdog->next_beat_ns = now_ns + watchdog->tick_ns;
    }
    return !all_done;
}

int64_t watchdog_lead_next_ns(const struct watchdog *watchdog)
{
    int64_t decides_ns = watchdog->trouble_ns + grace_ns(watchdog, watchdog->trouble);
    bool decides = watchdog->trouble && decides_ns < watchdog->next_beat_ns;
    return decides ? decides_ns : watchdog->next_beat_ns;
}
