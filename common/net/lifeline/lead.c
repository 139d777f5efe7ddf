/* Rank 0's part of the lifeline: it hears all ranks, and decides. */
#include "common/base/clock.h"
#include "common/net/lifeline/lifeline_impl.h"

/* -------- hearing ----------------------------------------------------------------------------- */

static void hear_frame(struct lifeline_rank *rank, const struct lifeline_frame *frame,
                       int64_t now_ns)
{
    rank->heard_ns = now_ns;
    if (frame->type == LIFELINE_BEAT)
        rank->beat = frame->beat;
    if (frame->type != LIFELINE_BYE)
        return;
    rank->state =
        frame->state <= LIFELINE_GONE ? (enum lifeline_rank_state)frame->state : LIFELINE_GONE;
    rank->told = frame->told;
    rank->exit_code = frame->exit_code;
}

static void hear(struct lifeline *lifeline, int from, int64_t now_ns)
{
    struct lifeline_rank *rank = &lifeline->ranks[from];
    struct lifeline_link *link = &lifeline->links[from];
    enum lifeline_read got;
    while ((got = lifeline_read(link)) == LIFELINE_READ_FRAME)
        hear_frame(rank, &link->frame, now_ns);
    if (got != LIFELINE_READ_CLOSED)
        return;
    if (rank->state == LIFELINE_ALIVE)
        rank->state = LIFELINE_GONE;
    /* The others' ends stay open: what is to be told to them goes out all the same. */
    lifeline->polled[from].fd = -1;
}

static void hear_all(struct lifeline *lifeline, int64_t now_ns)
{
    struct lifeline_rank *own = &lifeline->ranks[0];
    int failed = atomic_load(&lifeline->activity.failed);
    lifeline_sample(lifeline, now_ns, &own->beat);
    own->heard_ns = now_ns;
    if (failed) {
        own->state = LIFELINE_FAILED;
        own->exit_code = failed;
        own->told = log_errors() > 0;
    } else if (lifeline->asked_ns && now_ns - lifeline->asked_ns >= NS_PER_S / 2) {
        own->state = LIFELINE_SIGNALLED;
        own->exit_code = EXIT_SIGNALLED;
    }
    for (int rank = 1; rank < lifeline->size; rank++) {
        if (lifeline->polled[rank].fd >= 0)
            hear(lifeline, rank, now_ns);
    }
}

/* -------- deciding ---------------------------------------------------------------------------- */

/* How long a trouble must last before it is the one to be told: its cause may be on its way. */
static int64_t grace_ns(const struct lifeline *lifeline, enum lifeline_trouble trouble)
{
    switch (trouble) {
    case LIFELINE_NONE:
        return INT64_MAX / 2;
    case LIFELINE_OVERDUE: /* until all have told what they do since then */
        return lifeline->tick_ns * 3 / 2;
    case LIFELINE_QUIET_ERROR: /* until rank 0 has met and logged it */
        return 2 * NS_PER_S;
    case LIFELINE_ERROR:
    case LIFELINE_SIGNAL: /* another process's end may be behind it */
        return 3 * NS_PER_S / 10;
    case LIFELINE_SILENT: /* others of its host */
        return lifeline->asked_ns ? 0 : lifeline->tick_ns;
    case LIFELINE_ENDED:
        return NS_PER_S / 20;
    }
    return 0;
}

static void end_all(struct lifeline *lifeline, int64_t now_ns)
{
    char text[700];
    int code = lifeline_blame(lifeline->ranks, lifeline->size, lifeline->trouble, now_ns,
                              lifeline_silence_ns(lifeline), text, sizeof text);
    struct lifeline_frame frame = {.type = LIFELINE_END, .exit_code = code};
    for (int rank = 1; rank < lifeline->size; rank++)
        lifeline_send_last(&lifeline->links[rank], &frame);
    lifeline_take_the_word(); /* the others are silent, too, when this returns */
    if (text[0])
        log_error("%s", text);
    clock_sleep_until_ns(clock_now_ns() + LIFELINE_LINGER_NS);
    lifeline->options.end(code);
}

/* Others have given up on this rank meanwhile. Where all were stopped (a scheduler makes room, a
 * user presses Ctrl-Z) none has, and the run goes on. */
static void was_stopped(struct lifeline *lifeline, int64_t late_ns)
{
    bool left = false;
    for (int rank = 1; rank < lifeline->size; rank++)
        left = left || lifeline->ranks[rank].state == LIFELINE_GONE;
    if (!left)
        return;
    log_error(
        "rank 0 on %s was stopped, or its host suspended, for %lld s: too long for the others",
        lifeline->ranks[0].host, (long long)(late_ns / NS_PER_S));
    lifeline->options.end(1);
}

bool lifeline_lead(struct lifeline *lifeline, int64_t now_ns, int64_t late_ns)
{
    bool all_done = atomic_load(&lifeline->closing);
    for (int rank = 0; rank < lifeline->size; rank++)
        lifeline->ranks[rank].heard_ns += late_ns;
    hear_all(lifeline, now_ns);
    if (late_ns >= lifeline->timeout_ns)
        was_stopped(lifeline, late_ns);
    for (int rank = 1; rank < lifeline->size; rank++)
        all_done = all_done && lifeline->ranks[rank].state == LIFELINE_DONE;
    enum lifeline_trouble trouble =
        lifeline_find(lifeline->ranks, lifeline->size, now_ns, lifeline_silence_ns(lifeline));
    if (trouble != lifeline->trouble)
        lifeline->trouble_ns = now_ns;
    lifeline->trouble = trouble;
    if (trouble && now_ns - lifeline->trouble_ns >= grace_ns(lifeline, trouble))
        end_all(lifeline, now_ns);
    lifeline_watch_stalls(lifeline, now_ns);
    if (now_ns >= lifeline->next_beat_ns) {
        struct lifeline_frame frame = {.type = LIFELINE_BEAT, .beat = lifeline->ranks[0].beat};
        for (int rank = 1; rank < lifeline->size; rank++)
            lifeline_send(&lifeline->links[rank], &frame);
        lifeline->next_beat_ns = now_ns + lifeline->tick_ns;
    }
    return !all_done;
}

int64_t lifeline_lead_next_ns(const struct lifeline *lifeline)
{
    int64_t decides_ns = lifeline->trouble_ns + grace_ns(lifeline, lifeline->trouble);
    bool decides = lifeline->trouble && decides_ns < lifeline->next_beat_ns;
    return decides ? decides_ns : lifeline->next_beat_ns;
}
