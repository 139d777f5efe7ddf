#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/base/util.h"
#include "experiments/trace/trace.h"

/* A walk backwards in time: the current thread and time. */
struct walk {
    const struct trace_file *file;
    struct trace_path *path;
    size_t room;
    int64_t begin_ns, now_ns;
    int rank, row;
    enum status status;
};

/* The state of a thread just before a moment. */
struct moment {
    const struct trace_range *in; /* the innermost range; NULL: none */
    int64_t since_ns;             /* end of the last nested range, or begin of `in` */
};

/* -------- looking things up ------------------------------------------------------------------- */

/* Counts the ranges of a row, from *first on, that begin before `ns`. */
static size_t begun_before(const struct trace_file *file, int rank, int row, int64_t ns,
                           size_t *first)
{
    size_t low, high;
    trace_file_row(file, rank, row, first, &high);
    low = *first;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (file->ranges[middle].begin_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low - *first;
}

static struct moment look(const struct trace_file *file, int rank, int row, int64_t ns)
{
    size_t first, count = begun_before(file, rank, row, ns, &first);
    struct moment moment = {NULL, INT64_MIN};
    int64_t at = count > 0 ? (int64_t)(first + count) - 1 : -1;
    for (; at >= 0 && file->ranges[at].end_ns < ns; at = file->ranges[at].parent)
        moment.since_ns = file->ranges[at].end_ns;
    if (at < 0)
        return moment;
    moment.in = &file->ranges[at];
    if (moment.since_ns < moment.in->begin_ns)
        moment.since_ns = moment.in->begin_ns;
    return moment;
}

/* The last averaging of a bucket (-1: any) on this rank that began before `ns`; with `ended`, that
 * ended by `ns`. */
static const struct trace_range *last_allreduce(const struct trace_file *file, int rank, int bucket,
                                                bool ended, int64_t ns)
{
    const struct trace_range *found = NULL;
    for (int row = 1; row < TRACE_ROW_BUCKET; row++) {
        size_t first, count = begun_before(file, rank, row, ns, &first);
        for (size_t i = first + count; i-- > first;) {
            const struct trace_range *range = &file->ranges[i];
            if (range->kind != RANGE_ALLREDUCE || (bucket >= 0 && range->bucket != bucket) ||
                (ended && range->end_ns > ns))
                continue;
            if (!found || range->end_ns > found->end_ns)
                found = range;
            break;
        }
    }
    return found;
}

/* The last time before `ns` at which the averaging of a bucket was requested. */
static int64_t asked_for(const struct trace_file *file, int rank, int bucket, int64_t ns)
{
    size_t first, count = begun_before(file, rank, TRACE_ROW_BUCKET + bucket, ns + 1, &first);
    return count > 0 ? file->ranges[first + count - 1].begin_ns : INT64_MIN;
}

/* The row of the training thread: the one with a step. */
static int training_row(const struct trace_file *file, int rank, int64_t ns)
{
    for (int row = 1; row < TRACE_ROW_BUCKET; row++) {
        size_t first, count = begun_before(file, rank, row, ns, &first);
        for (size_t i = first; i < first + count; i++) {
            if (file->ranges[i].kind == RANGE_STEP)
                return row;
        }
    }
    return -1;
}

/* The last message that the current thread received between `from_ns` and now, or NULL. */
static const struct trace_message *last_message(const struct walk *walk, int64_t from_ns)
{
    const struct trace_file *file = walk->file;
    size_t low = 0, high = file->message_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct trace_message *message = &file->messages[middle];
        bool before = message->to != walk->rank      ? message->to < walk->rank
                      : message->to_row != walk->row ? message->to_row < walk->row
                                                     : message->received_ns <= walk->now_ns;
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    const struct trace_message *message = low > 0 ? &file->messages[low - 1] : NULL;
    bool fits = message && message->to == walk->rank && message->to_row == walk->row &&
                message->received_ns >= from_ns && message->from >= 0;
    return fits ? message : NULL;
}

/* -------- the path ---------------------------------------------------------------------------- */

/* Whether both do the same, at different times. */
static bool are_alike(const struct trace_stretch *one, const struct trace_stretch *two)
{
    return one->place == two->place && one->rank == two->rank && one->peer == two->peer &&
           one->bucket == two->bucket && one->step == two->step;
}

static void add_stretch(struct walk *walk, struct trace_stretch stretch)
{
    struct trace_path *path = walk->path;
    struct trace_stretch *last = path->count > 0 ? &path->stretches[path->count - 1] : NULL;
    stretch.begin_ns = stretch.begin_ns > walk->begin_ns ? stretch.begin_ns : walk->begin_ns;
    if (stretch.end_ns <= stretch.begin_ns)
        return;
    if (last && are_alike(last, &stretch)) {
        last->begin_ns = stretch.begin_ns;
        memcpy(last->first, stretch.first, sizeof last->first);
        return;
    }
    struct trace_stretch *grown = memory_grow(path->stretches, &walk->room, path->count,
                                              sizeof *grown, "stretches of a path");
    if (!grown) {
        walk->status = STATUS_NO_MEMORY;
        return;
    }
    path->stretches = grown;
    path->stretches[path->count++] = stretch;
}

/* Adds the time since `from_ns` to the current thread and moves there. */
static void stay(struct walk *walk, enum trace_place place, const struct trace_range *in,
                 int64_t from_ns)
{
    struct trace_stretch stretch = {.place = place,
                                    .rank = walk->rank,
                                    .peer = -1,
                                    .bucket = -1,
                                    .step = -1,
                                    .begin_ns = from_ns,
                                    .end_ns = walk->now_ns};
    if (place == TRACE_PLACE_COMPUTE) {
        snprintf(stretch.first, sizeof stretch.first, "%s", in->name);
        snprintf(stretch.last, sizeof stretch.last, "%s", in->name);
    }
    add_stretch(walk, stretch);
    walk->now_ns = from_ns;
}

static void go_to(struct walk *walk, int rank, int row, int64_t ns)
{
    walk->rank = rank;
    walk->row = row;
    walk->now_ns = ns;
}

/* The step waits for a bucket. Moves to its averaging, if that ended during the wait. */
static void leave_exposed(struct walk *walk, const struct trace_range *in, int64_t since_ns)
{
    const struct trace_range *averaged =
        last_allreduce(walk->file, walk->rank, in->bucket, true, walk->now_ns);
    if (!averaged || averaged->end_ns <= in->begin_ns || averaged->row == walk->row) {
        stay(walk, TRACE_PLACE_WAKE, in, since_ns);
        return;
    }
    int row = averaged->row;
    stay(walk, TRACE_PLACE_WAKE, in, averaged->end_ns);
    walk->row = row;
}

/* Leaves a bucket's averaging at its begin. Moves to the thread that requested it, or stays if the
 * previous averaging ended after the request. */
static void leave_allreduce(struct walk *walk, const struct trace_range *in)
{
    int row = training_row(walk->file, walk->rank, in->end_ns);
    int64_t asked_ns = asked_for(walk->file, walk->rank, in->bucket, in->begin_ns);
    stay(walk, TRACE_PLACE_ADD, in, in->begin_ns);
    struct moment before = look(walk->file, walk->rank, walk->row, walk->now_ns);
    if (before.in || row < 0 || row == walk->row)
        return;
    if (before.since_ns > asked_ns || asked_ns == INT64_MIN) {
        stay(walk, TRACE_PLACE_WAKE, in, before.since_ns);
        return;
    }
    stay(walk, TRACE_PLACE_WAKE, in, asked_ns);
    walk->row = row;
}

/* Finds the bucket and the step of the algorithm that a range belongs to. */
static void find_purpose(const struct trace_file *file, const struct trace_range *in,
                         struct trace_stretch *stretch)
{
    stretch->bucket = -1;
    stretch->step = -1;
    for (; in; in = in->parent >= 0 ? &file->ranges[in->parent] : NULL) {
        if (in->kind == RANGE_TRANSFER && stretch->step < 0)
            stretch->step = in->step;
        if ((in->kind == RANGE_TRANSFER || in->kind == RANGE_ALLREDUCE) && stretch->bucket < 0)
            stretch->bucket = in->bucket;
    }
}

/* Leaves a wait for a message. The time on its link counts only during the wait. If the message was
 * sent during the wait, the path continues with its sender. If it was sent before, the path
 * continues with the activity that delayed this rank. */
static void leave_wait(struct walk *walk, const struct trace_range *in, int64_t since_ns)
{
    const struct trace_message *message = last_message(walk, in->begin_ns);
    if (!message || message->sent_ns >= walk->now_ns) {
        stay(walk, TRACE_PLACE_SENDS, in, since_ns);
        return;
    }
    struct trace_stretch stretch = {.place = TRACE_PLACE_LINK,
                                    .rank = message->from,
                                    .peer = walk->rank,
                                    .begin_ns = message->sent_ns,
                                    .end_ns = walk->now_ns};
    bool waits = message->sent_ns >= in->begin_ns;
    if (!waits)
        stretch.begin_ns = in->begin_ns;
    find_purpose(walk->file, in, &stretch);
    add_stretch(walk, stretch);
    if (waits)
        go_to(walk, message->from, message->from_row, message->sent_ns);
    else
        walk->now_ns = in->begin_ns;
}

/* Leaves a wait for another rank of the host. Moves to that rank, unless it waits, too. */
static void leave_wait_host(struct walk *walk, const struct trace_range *in, int64_t since_ns)
{
    const struct trace_range *there =
        last_allreduce(walk->file, in->peer_rank, -1, false, walk->now_ns);
    struct moment moment = {0};
    if (there)
        moment = look(walk->file, in->peer_rank, there->row, walk->now_ns);
    if (moment.in && moment.in->kind != RANGE_WAIT_HOST)
        go_to(walk, in->peer_rank, there->row, walk->now_ns);
    else
        stay(walk, TRACE_PLACE_WAKE, in, since_ns);
}

static void step_back(struct walk *walk)
{
    struct moment moment = look(walk->file, walk->rank, walk->row, walk->now_ns);
    const struct trace_range *in = moment.in;
    if (!in) {
        stay(walk, TRACE_PLACE_OTHER, NULL, moment.since_ns);
        return;
    }
    /* The place of each kind of range. Other kinds have their own function below. */
    static const enum trace_place places[RANGE_KINDS] = {
        [RANGE_STEP] = TRACE_PLACE_OTHER,    [RANGE_COMPUTE] = TRACE_PLACE_COMPUTE,
        [RANGE_DATA] = TRACE_PLACE_DATA,     [RANGE_OPTIMIZER] = TRACE_PLACE_OPTIMIZER,
        [RANGE_BUCKET] = TRACE_PLACE_OTHER,  [RANGE_ALLREDUCE] = TRACE_PLACE_ADD,
        [RANGE_TRANSFER] = TRACE_PLACE_ADD,  [RANGE_SHARD] = TRACE_PLACE_OTHER,
        [RANGE_SERVER] = TRACE_PLACE_SERVER, [RANGE_SEND] = TRACE_PLACE_ADD,
        [RANGE_RECEIVE] = TRACE_PLACE_OTHER, [RANGE_GPU] = TRACE_PLACE_OTHER,
        [RANGE_CPU] = TRACE_PLACE_OTHER};
    bool serves = in->parent >= 0 && walk->file->ranges[in->parent].kind == RANGE_SERVER;
    if (in->kind == RANGE_EXPOSED)
        leave_exposed(walk, in, moment.since_ns);
    else if (in->kind == RANGE_ALLREDUCE && moment.since_ns <= in->begin_ns)
        leave_allreduce(walk, in);
    else if (in->kind == RANGE_WAIT)
        leave_wait(walk, in, moment.since_ns);
    else if (in->kind == RANGE_WAIT_HOST)
        leave_wait_host(walk, in, moment.since_ns);
    else if (in->kind == RANGE_SEND && serves)
        stay(walk, TRACE_PLACE_SERVER, in, moment.since_ns);
    else
        stay(walk, places[in->kind], in, moment.since_ns);
}

enum status trace_path_find(const struct trace_file *file, size_t at, struct trace_path *path)
{
    /* Each step goes back in time or to another thread. Threads of an invalid file may all wait for
     * each other. */
    enum { THREADS_MOST = 100 };
    const struct trace_range *whole = &file->ranges[at];
    struct walk walk = {.file = file,
                        .path = path,
                        .begin_ns = whole->begin_ns,
                        .now_ns = whole->end_ns,
                        .rank = whole->rank,
                        .row = whole->row};
    *path = (struct trace_path){0};
    for (int threads = 0; walk.now_ns > walk.begin_ns && walk.status == STATUS_OK; threads++) {
        int64_t before_ns = walk.now_ns;
        if (threads < THREADS_MOST)
            step_back(&walk);
        else
            stay(&walk, TRACE_PLACE_OTHER, NULL, walk.begin_ns);
        threads = walk.now_ns < before_ns ? 0 : threads;
    }
    for (size_t i = 0; i < path->count / 2; i++) {
        struct trace_stretch other = path->stretches[i];
        path->stretches[i] = path->stretches[path->count - 1 - i];
        path->stretches[path->count - 1 - i] = other;
    }
    if (walk.status != STATUS_OK)
        trace_path_free(path);
    return walk.status;
}

void trace_path_free(struct trace_path *path)
{
    free(path->stretches);
    *path = (struct trace_path){0};
}

static double ms(int64_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

static void describe(const struct trace_stretch *stretch, char *text, size_t size)
{
    static const char *const does[TRACE_PLACES] = {
        [TRACE_PLACE_DATA] = "gets its batch",
        [TRACE_PLACE_OPTIMIZER] = "updates its parameters",
        [TRACE_PLACE_WAKE] = "continues in another thread",
        [TRACE_PLACE_ADD] = "adds, sends, copies",
        [TRACE_PLACE_SENDS] = "waits for its sends",
        [TRACE_PLACE_OTHER] = "does something else",
    };
    struct line line = line_in(text, size);
    if (stretch->place == TRACE_PLACE_SERVER) {
        line_add(&line, "the server of rank %d adds and answers", stretch->rank);
        return;
    }
    if (stretch->place == TRACE_PLACE_COMPUTE) {
        bool several = strcmp(stretch->first, stretch->last) != 0;
        line_add(&line, "rank %d computes: %s%s%s", stretch->rank, stretch->first,
                 several ? " to " : "", several ? stretch->last : "");
        return;
    }
    if (stretch->place != TRACE_PLACE_LINK) {
        line_add(&line, "rank %d %s", stretch->rank, does[stretch->place]);
        return;
    }
    if (stretch->rank == stretch->peer)
        line_add(&line, "within rank %d, to its own server or back", stretch->rank);
    else
        line_add(&line, "link from rank %d to rank %d", stretch->rank, stretch->peer);
    if (stretch->step >= 0)
        line_add(&line, ", step %lld of bucket %d", (long long)stretch->step, stretch->bucket);
    else if (stretch->bucket >= 0)
        line_add(&line, ", bucket %d", stretch->bucket);
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

/* A contiguous part of a path: one computation, or one averaging. The pieces of an averaging
 * alternate between ranks; each direction gets one line. */
struct passage {
    struct {
        struct trace_stretch whole; /* from the first begin to the last end */
        int64_t ns;
        size_t times;
    } lines[64];
    size_t count;
    int64_t short_ns, left_out_ns; /* shorter lines are left out and counted */
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

/* Adds a stretch to an existing line. Returns false if there is none. */
static bool joins(struct passage *passage, const struct trace_stretch *stretch)
{
    size_t i = 0;
    while (i < passage->count && !are_alike(&passage->lines[i].whole, stretch))
        i++;
    if (i == passage->count)
        return false;
    struct trace_stretch *whole = &passage->lines[i].whole;
    int64_t ns = stretch->end_ns - stretch->begin_ns;
    bool goes_on = stretch->place == TRACE_PLACE_COMPUTE; /* apart from short interruptions */
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

/* One kind of stretch: the computation of a rank, a link, ... */
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

/* Adds a path to the shares. `shares` has space for `most` kinds. Returns the new number. */
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

/* Prints the shares. `warms`: the first step is the run's first and is not included. */
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
               warms ? " except the first (warm-up)" : "");
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

/* Keeps the last rank of each step, in place. Returns their number. */
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

/* Whether there are several steps and one is the run's first. */
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
    if (!shares)
        return FAIL(STATUS_NO_MEMORY, "psring trace: out of memory");
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
        log_error("--step %lld: not in the timeline, which has %zu step%s", wanted, count,
                  count == 1 ? "" : "s");
        status = STATUS_USAGE;
    }
out:
    free(shares);
    return status;
}
