/* Finds the rank at fault when a run makes no progress, and stalls, which are not an error yet. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/net/watchdog_impl.h"

/* -------- the trouble ------------------------------------------------------------------------- */

static bool silent(const struct watchdog_rank *rank, const struct watchdog_scene *s)
{
    return rank->state == WATCHDOG_ALIVE && s->now_ns - rank->heard_ns >= s->limit_ns;
}

static bool overdue(const struct watchdog_rank *rank)
{
    bool any = false;
    for (int thread = 0; thread < ACTIVITY_THREADS; thread++)
        any = any || rank->beat.threads[thread].overdue;
    return any && rank->state == WATCHDOG_ALIVE;
}

static enum watchdog_trouble trouble_of(const struct watchdog_rank *rank,
                                        const struct watchdog_scene *s)
{
    switch (rank->state) {
    case WATCHDOG_GONE:
        return WATCHDOG_ENDED;
    case WATCHDOG_SIGNALLED:
        return WATCHDOG_SIGNAL;
    case WATCHDOG_FAILED:
        return rank->told ? WATCHDOG_ERROR : WATCHDOG_QUIET_ERROR;
    case WATCHDOG_DONE:
        return WATCHDOG_NONE;
    case WATCHDOG_ALIVE:
        break;
    }
    return silent(rank, s) ? WATCHDOG_SILENT : overdue(rank) ? WATCHDOG_OVERDUE : WATCHDOG_NONE;
}

enum watchdog_trouble watchdog_find(const struct watchdog_scene *s)
{
    enum watchdog_trouble worst = WATCHDOG_NONE;
    for (int rank = 0; rank < s->count; rank++) {
        enum watchdog_trouble trouble = trouble_of(&s->ranks[rank], s);
        worst = trouble > worst ? trouble : worst;
    }
    return worst;
}

/* -------- the ranks at fault ------------------------------------------------------------------ */

static const struct activity_view *view_of(const struct watchdog_scene *s, int rank,
                                           enum activity_thread thread)
{
    return &s->ranks[rank].beat.threads[thread].view;
}

static bool waits(const struct watchdog_rank *rank, enum activity_thread thread)
{
    return rank->beat.threads[thread].view.first != ACTIVITY_NOBODY;
}

/* A colocated server's thread waits for the worker of its own process as for any other worker. */
static bool waits_for(const struct watchdog_scene *s, int rank, enum activity_thread thread,
                      int other)
{
    const struct activity_view *view = view_of(s, rank, thread);
    return s->ranks[rank].state == WATCHDOG_ALIVE && waits(&s->ranks[rank], thread) &&
           view->first <= other && other <= view->last &&
           (rank != other || thread == ACTIVITY_SERVER);
}

static unsigned still_s(const struct watchdog_scene *s, int rank, enum activity_thread thread)
{
    return s->ranks[rank].beat.threads[thread].still_ms / 1000;
}

/* The rank has work to do itself: no other rank blocks it. */
static bool has_the_turn(const struct watchdog_rank *rank)
{
    bool serves = rank->beat.threads[ACTIVITY_MAIN].view.kind == ACTIVITY_SERVE;
    return !waits(rank, ACTIVITY_MAIN) && !waits(rank, ACTIVITY_WORKER) && !serves;
}

/* Marks in `reached` the ranks that overdue ranks wait for, directly or through other ranks. */
static void follow_waits(const struct watchdog_scene *s, bool *reached)
{
    bool more = true;
    for (int rank = 0; rank < s->count; rank++)
        reached[rank] = false;
    while (more) {
        more = false;
        for (int rank = 0; rank < s->count; rank++) {
            for (int thread = 0; thread < ACTIVITY_THREADS; thread++) {
                if (!s->ranks[rank].beat.threads[thread].overdue && !reached[rank])
                    continue;
                for (int other = 0; other < s->count; other++) {
                    if (reached[other] || s->ranks[other].state != WATCHDOG_ALIVE ||
                        !waits_for(s, rank, thread, other))
                        continue;
                    more = reached[other] = true;
                }
            }
        }
    }
}

/* If ranks are at different steps, as with --sync ssp, those at the lowest step block the others.
 */
static void keep_the_last(const struct watchdog_scene *s, bool *blamed)
{
    uint64_t last = UINT64_MAX;
    for (int rank = 0; rank < s->count; rank++) {
        uint64_t step = view_of(s, rank, ACTIVITY_MAIN)->step;
        last = blamed[rank] && step < last ? step : last;
    }
    for (int rank = 0; rank < s->count; rank++)
        blamed[rank] = blamed[rank] && view_of(s, rank, ACTIVITY_MAIN)->step == last;
}

static bool to_blame(const struct watchdog_scene *s, const struct watchdog_rank *rank, bool reached)
{
    if (s->trouble == WATCHDOG_OVERDUE)
        return reached && has_the_turn(rank);
    return trouble_of(rank, s) == s->trouble;
}

/* -------- the message ------------------------------------------------------------------------- */

/* "rank 1 on a, rank 2 on b and 3 more have": the ranks in `blamed` (count). */
static void add_names(struct line *line, const struct watchdog_scene *s, const bool *blamed,
                      const char *one, const char *many)
{
    enum { NAMES_MOST = 8 };
    int all = 0, named = 0;
    for (int rank = 0; rank < s->count; rank++)
        all += blamed[rank];
    int names = all > NAMES_MOST ? NAMES_MOST : all;
    for (int rank = 0; rank < s->count && named < names; rank++) {
        if (!blamed[rank])
            continue;
        const char *before = named == 0 ? "" : named + 1 == all ? " and " : ", ";
        line_add(line, "%srank %d on %s", before, rank, s->ranks[rank].host);
        named++;
    }
    if (all > names)
        line_add(line, " and %d more", all - names);
    line_add(line, " %s", all == 1 ? one : many);
}

/* A rank that waits for one of the blamed, preferably for as few other ranks as possible. */
static int find_waiter(const struct watchdog_scene *s, const bool *blamed,
                       enum activity_thread *thread)
{
    int found = -1, found_width = 0;
    for (int rank = 0; rank < s->count; rank++) {
        for (int t = 0; t < ACTIVITY_THREADS; t++) {
            const struct activity_view *view = view_of(s, rank, t);
            bool waiting = false;
            for (int other = 0; other < s->count; other++)
                waiting = waiting || (blamed[other] && waits_for(s, rank, t, other));
            if (!waiting || (blamed[rank] && t != ACTIVITY_SERVER))
                continue;
            int width = view->last - view->first;
            if (found >= 0 && width >= found_width)
                continue;
            found = rank;
            found_width = width;
            *thread = (enum activity_thread)t;
        }
    }
    return found;
}

/* The state of a worker that waits for server `rank`: it names the bucket of the server's wait. */
static const struct activity_view *find_client(const struct watchdog_scene *s, int rank)
{
    for (int r = 0; r < s->count; r++) {
        if (r != rank && waits_for(s, r, ACTIVITY_WORKER, rank))
            return view_of(s, r, ACTIVITY_WORKER);
    }
    return NULL;
}

/* "sent bucket 0 of step 17 (from byte 4096 on)": what thread `thread` of `waiter` waits for. */
static void add_awaited(struct line *line, const struct watchdog_scene *s, int waiter,
                        enum activity_thread thread)
{
    const struct activity_view *view = view_of(s, waiter, thread);
    const struct activity_view *client;
    char doing[96];
    const char *verb = view->offset == ACTIVITY_SENDS ? "taken" : "sent";
    switch (thread) {
    case ACTIVITY_SERVER:
        line_add(line, " sent what a server waits for");
        client = find_client(s, waiter);
        if (client)
            line_add(line, " (bucket %" PRIu32 " of step %" PRIu64 ")", client->bucket,
                     client->step);
        break;
    case ACTIVITY_WORKER:
        line_add(line, " %s bucket %" PRIu32 " of step %" PRIu64, verb, view->bucket, view->step);
        if (view->offset < ACTIVITY_SENDS)
            line_add(line, " (from byte %" PRIu64 " on)", view->offset);
        break;
    default:
        line_add(line, " joined the others, who are %s",
                 activity_describe(view, doing, sizeof doing));
        break;
    }
}

/* Advice if `waiter` waits too long. */
static void add_larger(struct line *line, const struct watchdog_rank *waiter)
{
    line_add(line, waiter->beat.starting
                       ? "; a slow start needs a larger --startup-timeout"
                       : "; slow networks and uneven ranks need a larger --timeout");
}

/* All ranks wait for each other: lists which waits for which. Returns one of them. */
static int add_circle(struct line *line, const struct watchdog_scene *s)
{
    enum { SHOWN_MOST = 4 };
    int shown = 0, last = 0;
    char doing[96];
    line_add(line, "the ranks wait for each other:");
    for (int rank = 0; rank < s->count && shown < SHOWN_MOST; rank++) {
        for (int thread = 0; thread < ACTIVITY_THREADS && shown < SHOWN_MOST; thread++) {
            const struct activity_view *view = view_of(s, rank, thread);
            if (!s->ranks[rank].beat.threads[thread].overdue)
                continue;
            line_add(line, "%s rank %d on %s, %s, for rank %d", shown++ ? ";" : "", rank,
                     s->ranks[rank].host, activity_describe(view, doing, sizeof doing),
                     view->first);
            if (view->last > view->first)
                line_add(line, " to %d", view->last);
            line_add(line, " for %u s", still_s(s, rank, thread));
            last = rank;
        }
    }
    line_add(line, "; can each host reach the others over the network in use (see --subnet)?");
    return last;
}

/* Returns the waiting rank. */
static int add_overdue(struct line *line, const struct watchdog_scene *s, const bool *blamed,
                       int first)
{
    enum activity_thread thread = ACTIVITY_MAIN;
    char doing[96];
    int waiter = find_waiter(s, blamed, &thread);
    if (first < 0 || waiter < 0)
        return add_circle(line, s);
    add_names(line, s, blamed, "has not", "have not");
    add_awaited(line, s, waiter, thread);
    line_add(line, " for %u s: rank %d waits for it", still_s(s, waiter, thread), waiter);
    const struct activity_view *main = view_of(s, first, ACTIVITY_MAIN);
    line_add(line, "; rank %d has been %s for %u s", first,
             activity_describe(main, doing, sizeof doing), still_s(s, first, ACTIVITY_MAIN));
    return waiter;
}

static void add_silent(struct line *line, const struct watchdog_scene *s, const bool *blamed,
                       int first)
{
    enum activity_thread thread = ACTIVITY_MAIN;
    char doing[96];
    long long silent_s = (s->now_ns - s->ranks[first].heard_ns) / NS_PER_S;
    int waiter = find_waiter(s, blamed, &thread);
    add_names(line, s, blamed, "has not", "have not");
    if (waiter >= 0) {
        add_awaited(line, s, waiter, thread);
        line_add(line, ", nor");
    }
    const struct activity_view *seen = view_of(s, first, ACTIVITY_MAIN);
    line_add(
        line,
        " given a sign of life for %lld s: its process is stopped, or its host cannot be reached; "
        "last seen %s",
        silent_s, activity_describe(seen, doing, sizeof doing));
    if (waiter >= 0 && thread == ACTIVITY_WORKER && view_of(s, waiter, thread)->step > seen->step)
        line_add(line, ", but a rank reports this about once a second only: it is at a later step");
}

/* Marks the ranks at fault in `blamed` (count). Returns the first one; -1: all wait for each
 * other. */
static int find_blamed(const struct watchdog_scene *s, bool *blamed)
{
    int first = -1;
    if (s->trouble == WATCHDOG_OVERDUE)
        follow_waits(s, blamed);
    for (int rank = 0; rank < s->count; rank++)
        blamed[rank] = to_blame(s, &s->ranks[rank], blamed[rank]);
    if (s->trouble == WATCHDOG_OVERDUE)
        keep_the_last(s, blamed);
    for (int rank = s->count - 1; rank >= 0; rank--)
        first = blamed[rank] ? rank : first;
    return first;
}

int watchdog_blame(const struct watchdog_scene *s, char *text, size_t size)
{
    struct line line = line_in(text, size);
    char doing[96];
    bool *blamed = calloc((size_t)s->count, sizeof *blamed);
    if (!blamed) {
        line_add(&line, "a rank makes no progress, and there is no memory to find out which");
        return 1;
    }
    int first = find_blamed(s, blamed);
    switch (s->trouble) {
    case WATCHDOG_NONE:
        break;
    case WATCHDOG_OVERDUE:
        add_larger(&line, &s->ranks[add_overdue(&line, s, blamed, first)]);
        break;
    case WATCHDOG_QUIET_ERROR:
    case WATCHDOG_ERROR:
        if (first > 0) {
            add_names(&line, s, blamed, "has", "have");
            line_add(&line, " ended with an error%s: all ranks end",
                     s->trouble == WATCHDOG_ERROR ? ", see its message" : "");
        }
        break;
    case WATCHDOG_SIGNAL:
        if (first > 0) {
            add_names(&line, s, blamed, "was", "were");
            line_add(&line, " asked to end (SIGTERM): all ranks end");
        }
        break;
    case WATCHDOG_SILENT:
        add_silent(&line, s, blamed, first);
        break;
    case WATCHDOG_ENDED:
        add_names(&line, s, blamed, "has", "have");
        line_add(&line, " ended in the middle of the run: killed, or crashed; last seen %s",
                 activity_describe(view_of(s, first, ACTIVITY_MAIN), doing, sizeof doing));
        break;
    }
    free(blamed);
    return first >= 0 ? watchdog_exit_code(s->ranks[first].exit_code) : 1;
}

/* -------- stalls ------------------------------------------------------------------------------ */

enum status stall_watch_init(struct stall_watch *watch, int count)
{
    watch->count = count;
    watch->ranks = calloc((size_t)count, sizeof *watch->ranks);
    watch->late = calloc(3 * (size_t)count, sizeof *watch->late);
    if (!watch->ranks || !watch->late)
        return STATUS_NO_MEMORY;
    watch->suspects = watch->late + count;
    watch->found = watch->suspects + count;
    return STATUS_OK;
}

void stall_watch_fini(struct stall_watch *watch)
{
    free(watch->ranks);
    free(watch->late);
    *watch = (struct stall_watch){0};
}

/* The ranks' states if this were the limit. Waits of the start-up may be long and do not count. */
static struct watchdog_scene scene_of(struct stall_watch *watch, const struct watchdog_rank *ranks,
                                      int64_t now_ns, int64_t limit_ns)
{
    struct watchdog_scene s = {watch->ranks, watch->count, now_ns, limit_ns, WATCHDOG_NONE};
    memcpy(watch->ranks, ranks, (size_t)watch->count * sizeof *ranks);
    for (int rank = 0; rank < watch->count; rank++) {
        struct watchdog_beat *beat = &watch->ranks[rank].beat;
        for (int thread = 0; thread < ACTIVITY_THREADS; thread++)
            beat->threads[thread].overdue = !watch->silence_only && !beat->starting &&
                                            beat->threads[thread].view.first != ACTIVITY_NOBODY &&
                                            beat->threads[thread].still_ms * NS_PER_MS >= limit_ns;
    }
    s.trouble = watchdog_find(&s);
    return s;
}

static bool is_stall(const struct watchdog_scene *s)
{
    return s->trouble == WATCHDOG_OVERDUE || s->trouble == WATCHDOG_SILENT;
}

/* Notes which ranks block the others, and since when they have been the same. The kind of trouble
 * may change: the awaited rank becomes silent some time later. */
static void suspect(struct stall_watch *watch, const struct watchdog_scene *s)
{
    bool had = watch->trouble, any = false, had_any = false, same = false;
    watch->trouble = is_stall(s);
    if (!watch->trouble)
        return;
    find_blamed(s, watch->found);
    for (int rank = 0; rank < watch->count; rank++) {
        any = any || watch->found[rank];
        had_any = had_any || watch->suspects[rank];
        same = same || (watch->found[rank] && watch->suspects[rank]);
    }
    same = had && (same || (!any && !had_any));
    for (int rank = 0; rank < watch->count; rank++)
        watch->suspects[rank] = watch->found[rank] && (!same || watch->suspects[rank]);
    watch->trouble_ns = same ? watch->trouble_ns : s->now_ns;
}

/* The start of the longest of these waits or silences. */
static int64_t began_ns(const struct stall_watch *watch, const struct watchdog_scene *s)
{
    int64_t began = s->now_ns;
    for (int rank = 0; rank < watch->count; rank++) {
        const struct watchdog_rank *r = &watch->ranks[rank];
        if (s->trouble == WATCHDOG_SILENT && watch->late[rank] && r->heard_ns < began)
            began = r->heard_ns;
        for (int t = 0; s->trouble == WATCHDOG_OVERDUE && t < ACTIVITY_THREADS; t++) {
            int64_t since_ns = r->heard_ns - r->beat.threads[t].still_ms * NS_PER_MS;
            if (r->beat.threads[t].overdue && since_ns < began)
                began = since_ns;
        }
    }
    return began;
}

static void tell(struct stall_watch *watch, const struct watchdog_scene *s, struct line *line)
{
    int first = find_blamed(s, watch->late);
    if (s->trouble == WATCHDOG_OVERDUE)
        add_overdue(line, s, watch->late, first);
    else
        add_silent(line, s, watch->late, first);
    watch->since_ns = began_ns(watch, s);
    watch->told = true;
    line_add(line, "; --timeout ends the run after %g s",
             (double)watch->timeout_ns / (double)NS_PER_S);
}

static void tell_end(struct stall_watch *watch, const struct watchdog_scene *s, struct line *line)
{
    bool anybody = false;
    for (int rank = 0; rank < watch->count; rank++)
        anybody = anybody || watch->late[rank];
    if (anybody)
        add_names(line, s, watch->late, "continued", "continued");
    else
        line_add(line, "the ranks continued");
    line_add(line, " after %lld s", (long long)((s->now_ns - watch->since_ns) / NS_PER_S));
    watch->told = false;
}

bool stall_watch_look(struct stall_watch *watch, const struct watchdog_rank *ranks, int64_t now_ns,
                      char *text, size_t size)
{
    struct line line = line_in(text, size);
    int64_t patience_ns = watch->tick_ns * 3 / 2;
    int64_t limit_ns = watch->limit_ns > 2 * patience_ns ? watch->limit_ns : 2 * patience_ns;
    if (watch->limit_ns <= 0 || !watch->found)
        return false;
    struct watchdog_scene s = scene_of(watch, ranks, now_ns, limit_ns - patience_ns);
    suspect(watch, &s);
    s = scene_of(watch, ranks, now_ns, limit_ns);
    if (!watch->told && watch->trouble && now_ns - watch->trouble_ns >= patience_ns && is_stall(&s))
        tell(watch, &s, &line);
    else if (watch->told && s.trouble == WATCHDOG_NONE)
        tell_end(watch, &s, &line);
    return line.used > 0;
}
