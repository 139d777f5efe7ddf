#include "experiments/trace/trace_print_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "experiments/trace/trace_path.h"

static double ms(int64_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

static void describe(const struct trace_stretch *stretch, char *text, size_t size)
{
    char purpose[64] = "";
    switch (stretch->place) {
    case TRACE_PLACE_COMPUTE:
        if (strcmp(stretch->first, stretch->last) == 0)
            snprintf(text, size, "rank %d computes: %s", stretch->rank, stretch->first);
        else
            snprintf(text, size, "rank %d computes: %s to %s", stretch->rank, stretch->first,
                     stretch->last);
        break;
    case TRACE_PLACE_DATA:
        snprintf(text, size, "rank %d gets its batch", stretch->rank);
        break;
    case TRACE_PLACE_OPTIMIZER:
        snprintf(text, size, "rank %d updates its parameters", stretch->rank);
        break;
    case TRACE_PLACE_WAKE:
        snprintf(text, size, "rank %d goes on to another thread", stretch->rank);
        break;
    case TRACE_PLACE_ADD:
        snprintf(text, size, "rank %d adds up, sends, copies", stretch->rank);
        break;
    case TRACE_PLACE_SERVER:
        snprintf(text, size, "the server of rank %d adds up and answers", stretch->rank);
        break;
    case TRACE_PLACE_LINK:
        if (stretch->step >= 0)
            snprintf(purpose, sizeof purpose, ", step %lld of bucket %d", (long long)stretch->step,
                     stretch->bucket);
        else if (stretch->bucket >= 0)
            snprintf(purpose, sizeof purpose, ", bucket %d", stretch->bucket);
        if (stretch->rank == stretch->peer)
            snprintf(text, size, "within rank %d, to its own server or back%s", stretch->rank,
                     purpose);
        else
            snprintf(text, size, "link from rank %d to rank %d%s", stretch->rank, stretch->peer,
                     purpose);
        break;
    case TRACE_PLACE_SENDS:
        snprintf(text, size, "rank %d waits until its sends are gone", stretch->rank);
        break;
    default:
        snprintf(text, size, "rank %d does something else", stretch->rank);
        break;
    }
}

static void print_line(const struct trace_step *step, const struct trace_stretch *stretch,
                       int64_t ns, const char *more)
{
    char text[160];
    describe(stretch, text, sizeof text);
    printf("%10.3f %+10.3f ms  %s%s\n", ms(stretch->begin_ns - step->begin_ns), ms(ns), text, more);
}

static bool is_averaging(const struct trace_stretch *stretch)
{
    return stretch->place == TRACE_PLACE_ADD || stretch->place == TRACE_PLACE_SERVER ||
           stretch->place == TRACE_PLACE_LINK || stretch->place == TRACE_PLACE_SENDS;
}

static bool same_line(const struct trace_stretch *one, const struct trace_stretch *two)
{
    return one->place == two->place && one->rank == two->rank && one->peer == two->peer &&
           one->bucket == two->bucket && one->step == two->step;
}

/* What a path is in without a break: one computation, or an averaging, whose pieces go to and fro
 * between ranks: each way is a line. */
struct passage {
    struct {
        struct trace_stretch whole; /* from the first one's begin to the last one's end */
        int64_t ns;
        size_t times;
    } lines[64];
    size_t count;
    int64_t short_ns, left_out_ns; /* what takes less is left out, and counted */
    size_t left_out;
};

enum { LINES_MOST = sizeof((struct passage *)0)->lines / sizeof((struct passage *)0)->lines[0] };

static void print_passage(const struct trace_step *step, struct passage *passage)
{
    char more[64];
    for (size_t i = 0; i < passage->count; i++) {
        const struct trace_stretch *whole = &passage->lines[i].whole;
        if (passage->lines[i].ns < passage->short_ns) {
            passage->left_out_ns += passage->lines[i].ns;
            passage->left_out += passage->lines[i].times;
            continue;
        }
        bool repeats = passage->lines[i].times > 1 && is_averaging(whole);
        snprintf(more, sizeof more, ", %zu times until %.3f", passage->lines[i].times,
                 ms(whole->end_ns - step->begin_ns));
        print_line(step, whole, passage->lines[i].ns, repeats ? more : "");
    }
    passage->count = 0;
}

/* As one more of a line that is there; false: there is none. */
static bool joins(struct passage *passage, const struct trace_stretch *stretch)
{
    size_t i = 0;
    while (i < passage->count && !same_line(&passage->lines[i].whole, stretch))
        i++;
    if (i == passage->count)
        return false;
    struct trace_stretch *whole = &passage->lines[i].whole;
    int64_t ns = stretch->end_ns - stretch->begin_ns;
    bool goes_on = stretch->place == TRACE_PLACE_COMPUTE; /* but for a moment */
    passage->lines[i].ns = goes_on ? stretch->end_ns - whole->begin_ns : passage->lines[i].ns + ns;
    passage->lines[i].times++;
    whole->end_ns = stretch->end_ns;
    memcpy(whole->last, stretch->last, sizeof whole->last);
    return true;
}

static void print_path(const struct trace_step *step, const struct trace_path *path)
{
    struct passage passage = {.short_ns = step->ns[TRACE_PART_STEP] / 500};
    printf("\ncritical path of step %lld (%.3f ms on rank %d, which ends last)\n",
           (long long)step->number + 1, ms(step->ns[TRACE_PART_STEP]), step->rank);
    for (size_t i = 0; i < path->count; i++) {
        const struct trace_stretch *stretch = &path->stretches[i];
        int64_t ns = stretch->end_ns - stretch->begin_ns;
        if (joins(&passage, stretch))
            continue;
        bool goes_on = passage.count > 0 && passage.count < LINES_MOST && is_averaging(stretch) &&
                       is_averaging(&passage.lines[0].whole);
        if (!goes_on && ns < passage.short_ns) {
            passage.left_out_ns += ns;
            passage.left_out++;
            continue;
        }
        if (!goes_on)
            print_passage(step, &passage);
        passage.lines[passage.count].whole = *stretch;
        passage.lines[passage.count].ns = ns;
        passage.lines[passage.count++].times = 1;
    }
    print_passage(step, &passage);
    if (passage.left_out > 0)
        printf("%10s %+10.3f ms  in %zu shorter stretches\n", "", ms(passage.left_out_ns),
               passage.left_out);
}

/* One thing that paths go through: a rank's computation, a link, ... */
struct share {
    enum trace_place place;
    int rank, peer;
    int64_t ns;
};

static int compare_shares(const void *a, const void *b)
{
    const struct share *one = a, *two = b;
    return (one->ns < two->ns) - (one->ns > two->ns);
}

/* `shares` has room for all kinds; returns how many there are now. */
static size_t add_path(struct share *shares, size_t count, size_t most,
                       const struct trace_path *path)
{
    for (size_t i = 0; i < path->count; i++) {
        const struct trace_stretch *stretch = &path->stretches[i];
        size_t at = 0;
        while (at < count && (shares[at].place != stretch->place ||
                              shares[at].rank != stretch->rank || shares[at].peer != stretch->peer))
            at++;
        if (at == most)
            continue;
        if (at == count)
            shares[count++] = (struct share){stretch->place, stretch->rank, stretch->peer, 0};
        shares[at].ns += stretch->end_ns - stretch->begin_ns;
    }
    return count;
}

/* `warms`: the first of them is the run's first, and not among the shares. */
static void print_shares(struct share *shares, size_t count, size_t steps, bool warms)
{
    enum { SHOWN = 16 };
    char text[160];
    int64_t all_ns = 0;
    for (size_t i = 0; i < count; i++)
        all_ns += shares[i].ns;
    qsort(shares, count, sizeof *shares, compare_shares);
    if (steps > 1)
        printf("\ncritical paths of all %zu steps%s\n", steps,
               warms ? " but the first, which warms up" : "");
    else
        printf("\ncritical path of the one step\n");
    for (size_t i = 0; i < count && i < SHOWN && all_ns > 0; i++) {
        struct trace_stretch stretch = {.place = shares[i].place,
                                        .rank = shares[i].rank,
                                        .peer = shares[i].peer,
                                        .bucket = -1,
                                        .step = -1};
        describe(&stretch, text, sizeof text);
        if (stretch.place == TRACE_PLACE_COMPUTE)
            snprintf(text, sizeof text, "rank %d computes", stretch.rank);
        printf("%9.1f%%  %s\n", 100 * (double)shares[i].ns / (double)all_ns, text);
    }
}

static int compare_steps(const void *a, const void *b)
{
    const struct trace_step *one = a, *two = b;
    return (one->ns[TRACE_PART_STEP] > two->ns[TRACE_PART_STEP]) -
           (one->ns[TRACE_PART_STEP] < two->ns[TRACE_PART_STEP]);
}

/* Of each step the rank that ended last; in place, returns how many. */
static size_t keep_last_ranks(struct trace_step *steps, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < kept && steps[at].number != steps[i].number)
            at++;
        if (at == kept)
            steps[kept++] = steps[i];
        else if (steps[i].end_ns > steps[at].end_ns)
            steps[at] = steps[i];
    }
    qsort(steps, kept, sizeof *steps, compare_steps);
    return kept;
}

/* Whether the run's own first step is among several. */
static bool has_first(const struct trace_step *steps, size_t count)
{
    bool has = false;
    for (size_t i = 0; i < count; i++)
        has = has || steps[i].number == 0;
    return has && count > 1;
}

enum status trace_print_paths(const struct trace_file *file, struct trace_step *steps, size_t count,
                              long long wanted)
{
    enum { SHARES_MOST = 4096 };
    enum status status = STATUS_OK;
    bool shown = false;
    size_t found = 0;
    struct share *shares = calloc(SHARES_MOST, sizeof *shares);
    if (!shares) {
        log_error("psring trace: out of memory");
        return STATUS_NO_MEMORY;
    }
    count = keep_last_ranks(steps, count);
    bool warms = has_first(steps, count);
    for (size_t i = 0; i < count; i++) {
        struct trace_path path;
        TRY(trace_path_find(file, steps[i].range, &path));
        if (wanted ? steps[i].number + 1 == wanted : i == count / 2) {
            print_path(&steps[i], &path);
            shown = true;
        }
        if (!warms || steps[i].number != 0)
            found = add_path(shares, found, SHARES_MOST, &path);
        trace_path_free(&path);
    }
    print_shares(shares, found, count, warms);
    if (!shown) {
        log_error("--step %lld: that step is not in the timeline, which has %zu step%s", wanted,
                  count, count == 1 ? "" : "s");
        status = STATUS_USAGE;
    }
out:
    free(shares);
    return status;
}
