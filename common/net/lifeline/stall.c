#include "common/net/lifeline/stall.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"

enum status stall_watch_init(struct stall_watch *watch, int count)
{
    watch->count = count;
    watch->ranks = calloc((size_t)count, sizeof *watch->ranks);
    watch->late = calloc((size_t)count, sizeof *watch->late);
    watch->suspects = calloc((size_t)count, sizeof *watch->suspects);
    watch->found = calloc((size_t)count, sizeof *watch->found);
    bool whole = watch->ranks && watch->late && watch->suspects && watch->found;
    return whole ? STATUS_OK : STATUS_NO_MEMORY;
}

void stall_watch_fini(struct stall_watch *watch)
{
    free(watch->ranks);
    free(watch->late);
    free(watch->suspects);
    free(watch->found);
    *watch = (struct stall_watch){0};
}

/* What the ranks would be blamed for with this limit. Waits of the start-up, which may be long, are
 * none. */
static enum lifeline_trouble find(struct stall_watch *watch, const struct lifeline_rank *ranks,
                                  int64_t now_ns, int64_t limit_ns)
{
    memcpy(watch->ranks, ranks, (size_t)watch->count * sizeof *ranks);
    for (int rank = 0; rank < watch->count; rank++) {
        struct lifeline_beat *beat = &watch->ranks[rank].beat;
        for (int thread = 0; thread < ACTIVITY_THREADS; thread++)
            beat->threads[thread].overdue = !watch->silence_only && !beat->starting &&
                                            beat->threads[thread].view.first != ACTIVITY_NOBODY &&
                                            beat->threads[thread].still_ms * NS_PER_MS >= limit_ns;
    }
    return lifeline_find(watch->ranks, watch->count, now_ns, limit_ns);
}

/* Notes who keeps the others waiting, and since when it has been the same ones. Their kind of
 * trouble may change: who is waited for is silent some time later. */
static void suspect(struct stall_watch *watch, const struct lifeline_rank *ranks, int64_t now_ns,
                    int64_t limit_ns)
{
    enum lifeline_trouble trouble = find(watch, ranks, now_ns, limit_ns);
    bool had = watch->trouble, any = false, had_any = false;
    watch->trouble = trouble == LIFELINE_OVERDUE || trouble == LIFELINE_SILENT;
    if (!watch->trouble)
        return;
    lifeline_find_blamed(watch->ranks, watch->count, trouble, now_ns, limit_ns, watch->found);
    bool same = false;
    for (int rank = 0; rank < watch->count; rank++) {
        any = any || watch->found[rank];
        had_any = had_any || watch->suspects[rank];
        same = same || (watch->found[rank] && watch->suspects[rank]);
    }
    same = had && (same || (!any && !had_any));
    for (int rank = 0; rank < watch->count; rank++)
        watch->suspects[rank] = watch->found[rank] && (!same || watch->suspects[rank]);
    watch->trouble_ns = same ? watch->trouble_ns : now_ns;
}

/* When the longest of these waits or silences has begun. */
static int64_t began_ns(const struct stall_watch *watch, enum lifeline_trouble trouble,
                        int64_t now_ns)
{
    int64_t began = now_ns;
    for (int rank = 0; rank < watch->count; rank++) {
        const struct lifeline_rank *r = &watch->ranks[rank];
        if (trouble == LIFELINE_SILENT && watch->late[rank] && r->heard_ns < began)
            began = r->heard_ns;
        for (int t = 0; trouble == LIFELINE_OVERDUE && t < ACTIVITY_THREADS; t++) {
            int64_t since_ns = r->heard_ns - r->beat.threads[t].still_ms * NS_PER_MS;
            if (r->beat.threads[t].overdue && since_ns < began)
                began = since_ns;
        }
    }
    return began;
}

static void tell(struct stall_watch *watch, enum lifeline_trouble trouble, int64_t now_ns,
                 int64_t limit_ns, struct line *line)
{
    lifeline_describe_stall(watch->ranks, watch->count, trouble, now_ns, limit_ns, watch->late,
                            line);
    watch->since_ns = began_ns(watch, trouble, now_ns);
    watch->told = true;
    line_add(line, "; --timeout ends the run after %g s",
             (double)watch->timeout_ns / (double)NS_PER_S);
}

static void tell_end(struct stall_watch *watch, int64_t now_ns, struct line *line)
{
    bool anybody = false;
    for (int rank = 0; rank < watch->count; rank++)
        anybody = anybody || watch->late[rank];
    if (anybody)
        lifeline_add_names(line, watch->ranks, watch->count, watch->late, "went on", "went on");
    else
        line_add(line, "the ranks went on");
    line_add(line, " after %lld s", (long long)((now_ns - watch->since_ns) / NS_PER_S));
    watch->told = false;
}

bool stall_watch_look(struct stall_watch *watch, const struct lifeline_rank *ranks, int64_t now_ns,
                      char *text, size_t size)
{
    struct line line = line_in(text, size);
    int64_t patience_ns = watch->tick_ns * 3 / 2;
    int64_t limit_ns = watch->limit_ns > 2 * patience_ns ? watch->limit_ns : 2 * patience_ns;
    if (watch->limit_ns <= 0 || !watch->found)
        return false;
    suspect(watch, ranks, now_ns, limit_ns - patience_ns);
    if (!watch->told && watch->trouble && now_ns - watch->trouble_ns >= patience_ns) {
        enum lifeline_trouble trouble = find(watch, ranks, now_ns, limit_ns);
        if (trouble == LIFELINE_OVERDUE || trouble == LIFELINE_SILENT)
            tell(watch, trouble, now_ns, limit_ns, &line);
    } else if (watch->told && find(watch, ranks, now_ns, limit_ns) == LIFELINE_NONE) {
        tell_end(watch, now_ns, &line);
    }
    return line.used > 0;
}
