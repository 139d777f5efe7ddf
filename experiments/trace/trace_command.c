#include "experiments/trace/trace_command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "experiments/trace/trace_file.h"
#include "experiments/trace/trace_parts.h"
#include "experiments/trace/trace_path.h"
#include "experiments/trace/verdict.h"

struct request {
    const char *path;
    long long step; /* whose critical path is shown, from 1; 0: the median one's */
};

static double ms(int64_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

/* -------- where the time went ----------------------------------------------------------------- */

static void print_row(const char *name, size_t count, const double *median_ms)
{
    printf("%-36s %6zu", name, count);
    for (int part = 0; part < TRACE_PARTS; part++)
        printf(" %9.3f", median_ms[part]);
    printf("\n");
}

static void print_parts(const struct trace_file *file, const struct trace_step *steps, size_t count)
{
    double median_ms[TRACE_PARTS];
    static const char *const parts[TRACE_PARTS] = {[TRACE_PART_STEP] = "step",
                                                   [TRACE_PART_COMPUTE] = "compute",
                                                   [TRACE_PART_EXPOSED] = "exposed",
                                                   [TRACE_PART_DATA] = "data",
                                                   [TRACE_PART_OPTIMIZER] = "optimizer",
                                                   [TRACE_PART_OTHER] = "other",
                                                   [TRACE_PART_REST] = "rest"};
    printf("ms a step, medians\n%-36s %6s", "", "steps");
    for (int part = 0; part < TRACE_PARTS; part++)
        printf(" %9s", parts[part]);
    printf("\n");
    for (int rank = 0; rank < file->rank_count; rank++) {
        size_t found = trace_medians(steps, count, rank, median_ms);
        if (found > 0)
            print_row(file->ranks[rank].name, found, median_ms);
    }
    print_row("slowest rank of each step", trace_medians(steps, count, -1, median_ms), median_ms);
    printf("exposed: the step waits for averaging, or averages itself; rest: all but that and "
           "data, compute_ms of train.csv\n");
}

static void print_messages(const struct trace_file *file)
{
    size_t beyond, pairs, disordered = trace_file_disordered(file, &beyond, &pairs);
    int64_t error_ns = 0;
    for (int rank = 0; rank < file->rank_count; rank++) {
        if (file->ranks[rank].clock_error_ns > error_ns)
            error_ns = file->ranks[rank].clock_error_ns;
        if (file->ranks[rank].dropped > 0)
            printf("rank %d had no room for %llu events\n", rank,
                   (unsigned long long)file->ranks[rank].dropped);
    }
    printf("messages %zu; received before they were sent: %zu, beyond the clocks' errors (at most "
           "%.1f us): %zu\n",
           pairs, disordered, (double)error_ns / (double)NS_PER_US, beyond);
}

/* -------- the critical path ------------------------------------------------------------------- */

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

static void print_stretch(const struct trace_step *step, const struct trace_stretch *stretch)
{
    char text[160];
    describe(stretch, text, sizeof text);
    printf("%10.3f %+10.3f ms  %s\n", ms(stretch->begin_ns - step->begin_ns),
           ms(stretch->end_ns - stretch->begin_ns), text);
}

/* Of a computation what others interrupted for a moment only is one. */
static bool goes_on(const struct trace_stretch *last, const struct trace_stretch *stretch)
{
    return last->end_ns > last->begin_ns && last->place == TRACE_PLACE_COMPUTE &&
           stretch->place == TRACE_PLACE_COMPUTE && last->rank == stretch->rank;
}

static void print_path(const struct trace_step *step, const struct trace_path *path)
{
    const int64_t short_ns = step->ns[TRACE_PART_STEP] / 500;
    struct trace_stretch last = {0};
    int64_t left_out_ns = 0;
    size_t left_out = 0;
    printf("\ncritical path of step %lld (%.3f ms on rank %d, which ends last)\n",
           (long long)step->number + 1, ms(step->ns[TRACE_PART_STEP]), step->rank);
    for (size_t i = 0; i < path->count; i++) {
        const struct trace_stretch *stretch = &path->stretches[i];
        int64_t ns = stretch->end_ns - stretch->begin_ns;
        if (ns < short_ns) {
            left_out_ns += ns;
            left_out++;
            continue;
        }
        if (goes_on(&last, stretch)) {
            last.end_ns = stretch->end_ns;
            memcpy(last.last, stretch->last, sizeof last.last);
            continue;
        }
        if (last.end_ns > last.begin_ns)
            print_stretch(step, &last);
        last = *stretch;
    }
    if (last.end_ns > last.begin_ns)
        print_stretch(step, &last);
    if (left_out > 0)
        printf("%10s %+10.3f ms  in %zu shorter stretches\n", "", ms(left_out_ns), left_out);
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

static void print_shares(struct share *shares, size_t count, size_t steps)
{
    enum { SHOWN = 12 };
    char text[160];
    int64_t all_ns = 0;
    for (size_t i = 0; i < count; i++)
        all_ns += shares[i].ns;
    qsort(shares, count, sizeof *shares, compare_shares);
    printf("\ncritical paths of all %zu steps\n", steps);
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

static enum status print_paths(const struct trace_file *file, struct trace_step *steps,
                               size_t count, const struct request *request)
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
    for (size_t i = 0; i < count; i++) {
        struct trace_path path;
        TRY(trace_path_find(file, steps[i].range, &path));
        if (request->step ? steps[i].number + 1 == request->step : i == count / 2) {
            print_path(&steps[i], &path);
            shown = true;
        }
        found = add_path(shares, found, SHARES_MOST, &path);
        trace_path_free(&path);
    }
    print_shares(shares, found, count);
    if (!shown) {
        log_error("--step %lld: that step is not in the timeline, which has %zu steps",
                  request->step, count);
        status = STATUS_USAGE;
    }
out:
    free(shares);
    return status;
}

/* -------- what limited the run ---------------------------------------------------------------- */

/* ms a step, on average: what a rank averaged, on whichever thread. */
static double averaging_ms(const struct trace_file *file, int rank, size_t steps)
{
    int64_t ns = 0;
    for (size_t i = 0; i < file->range_count; i++) {
        const struct trace_range *range = &file->ranges[i];
        if (range->rank == rank && range->kind == RANGE_ALLREDUCE)
            ns += range->end_ns - range->begin_ns;
    }
    return ms(ns) / (double)steps;
}

/* As psring train does at its end, but of what the timeline has: neither the link's rate nor when a
 * thread had a processor is in it. */
static enum status print_verdict(const struct trace_file *file, const struct trace_step *steps,
                                 size_t count)
{
    char text[400];
    double median_ms[TRACE_PARTS];
    if (!file->in_step) {
        printf("the workers were not held in one step: no verdict on what limited them\n");
        return STATUS_OK;
    }
    struct verdict_rank *ranks = calloc((size_t)file->rank_count, sizeof *ranks);
    if (!ranks) {
        log_error("psring trace: out of memory");
        return STATUS_NO_MEMORY;
    }
    struct verdict_facts facts = {.ranks = ranks, .waits = true, .compressed = true};
    for (int rank = 0; rank < file->rank_count; rank++) {
        size_t found = trace_medians(steps, count, rank, median_ms);
        if (found == 0)
            continue;
        ranks[facts.workers++] = (struct verdict_rank){
            .step = median_ms[TRACE_PART_STEP],
            .exposed = median_ms[TRACE_PART_EXPOSED],
            .data = median_ms[TRACE_PART_DATA],
            .comm = averaging_ms(file, rank, found),
            .cpu = (double)NAN,
        };
    }
    struct verdict verdict = verdict_of(&facts);
    printf("limited by %s\n", verdict_describe(&facts, &verdict, text, sizeof text));
    free(ranks);
    return STATUS_OK;
}

/* -------- the command ------------------------------------------------------------------------- */

static const char usage[] =
    "usage: psring trace FILE [--step N]\n"
    "Where the time of a run went, from what psring train --timeline FILE has written.\n\n"
    "      --step N    The step whose critical path is shown; else the one of median length.\n"
    "  -h, --help      Print this and exit.\n";

static enum status parse(int argc, char **argv, struct request *request)
{
    for (int i = 1; i < argc; i++) {
        const char *value = NULL;
        if (strncmp(argv[i], "--step=", 7) == 0)
            value = argv[i] + 7;
        else if (strcmp(argv[i], "--step") == 0 && i + 1 < argc)
            value = argv[++i];
        if (value) {
            char *end = NULL;
            request->step = strtoll(value, &end, 10);
            if (request->step < 1 || *end) {
                log_error("--step: found '%s', expected the number of a step, from 1", value);
                return STATUS_USAGE;
            }
        } else if (argv[i][0] == '-' || request->path) {
            log_error("%s: not expected here; see psring trace --help", argv[i]);
            return STATUS_USAGE;
        } else {
            request->path = argv[i];
        }
    }
    if (request->path)
        return STATUS_OK;
    log_error("psring trace: of which run? name the file that psring train --timeline has written");
    return STATUS_USAGE;
}

enum status trace_command(int argc, char **argv)
{
    enum status status = STATUS_OK;
    struct request request = {0};
    struct trace_file file = {0};
    struct trace_step *steps = NULL;
    size_t count = 0;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return STATUS_OK;
    }
    TRY(parse(argc, argv, &request));
    TRY(trace_file_read(&file, request.path));
    TRY(trace_steps(&file, &steps, &count));
    if (count == 0) {
        log_error("%s: no whole step was recorded; were there as many as --timeline-steps asks "
                  "for?",
                  request.path);
        status = STATUS_INPUT;
        goto out;
    }
    print_parts(&file, steps, count);
    TRY(print_verdict(&file, steps, count));
    print_messages(&file);
    TRY(print_paths(&file, steps, count, &request));
out:
    free(steps);
    trace_file_free(&file);
    return status;
}
