#include "experiments/trace/trace.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/options.h"
#include "common/base/stats.h"
#include "common/base/status.h"
#include "experiments/trace/timeline.h"

/* The parts of a step that ranges are. TRACE_PART_STEP: the range belongs to the enclosing part. */
static const enum trace_part parts[RANGE_KINDS] = {[RANGE_COMPUTE] = TRACE_PART_COMPUTE,
                                                   [RANGE_EXPOSED] = TRACE_PART_EXPOSED,
                                                   [RANGE_DATA] = TRACE_PART_DATA,
                                                   [RANGE_OPTIMIZER] = TRACE_PART_OPTIMIZER};

/* Computes the parts of the step ranges[at]. Its row ends before `end`. */
static void add_parts(const struct trace_file *file, size_t at, size_t end, struct trace_step *step)
{
    enum { DEPTH = 32 };
    const struct trace_range *whole = &file->ranges[at];
    const struct trace_range *open[DEPTH]; /* open ranges that are parts */
    int depth = 0;
    *step = (struct trace_step){whole->rank, at, whole->step, whole->begin_ns, whole->end_ns, {0}};
    step->ns[TRACE_PART_STEP] = step->ns[TRACE_PART_OTHER] = whole->end_ns - whole->begin_ns;
    step->ns[TRACE_PART_CPU] = -1;
    for (size_t i = at + 1; i < end && file->ranges[i].begin_ns < whole->end_ns; i++) {
        const struct trace_range *range = &file->ranges[i];
        enum trace_part part = parts[range->kind];
        if (range->kind == RANGE_CPU)
            step->ns[TRACE_PART_CPU] = range->step;
        if (part == TRACE_PART_STEP)
            continue;
        while (depth > 0 && open[depth - 1]->end_ns <= range->begin_ns)
            depth--;
        int64_t ns = range->end_ns - range->begin_ns;
        step->ns[part] += ns;
        step->ns[depth > 0 ? parts[open[depth - 1]->kind] : TRACE_PART_OTHER] -= ns;
        if (depth < DEPTH)
            open[depth++] = range;
    }
    step->ns[TRACE_PART_REST] =
        step->ns[TRACE_PART_STEP] - step->ns[TRACE_PART_EXPOSED] - step->ns[TRACE_PART_DATA];
}

/* Adds an averaging to all steps of its rank that it overlaps. */
static void add_averaging(const struct trace_range *range, struct trace_step *steps, size_t count)
{
    size_t low = 0, high = count;
    while (low < high) { /* find the first step of the rank that ends later */
        size_t middle = low + (high - low) / 2;
        const struct trace_step *step = &steps[middle];
        if (step->rank < range->rank ||
            (step->rank == range->rank && step->end_ns <= range->begin_ns))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < count && steps[low].rank == range->rank && steps[low].begin_ns < range->end_ns;
         low++) {
        struct trace_step *step = &steps[low];
        int64_t from = step->begin_ns > range->begin_ns ? step->begin_ns : range->begin_ns;
        int64_t to = step->end_ns < range->end_ns ? step->end_ns : range->end_ns;
        if (to > from) /* steps of an invalid file may overlap, so that their ends have no order */
            step->ns[TRACE_PART_COMM] += to - from;
    }
}

enum status trace_steps(const struct trace_file *file, struct trace_step **out, size_t *count)
{
    size_t steps = 0, end = 0;
    for (size_t i = 0; i < file->range_count; i++)
        steps += file->ranges[i].kind == RANGE_STEP;
    *count = steps;
    struct trace_step *step = *out = calloc(steps + 1, sizeof *step);
    if (!step)
        return FAIL(STATUS_NO_MEMORY, "psring trace: no memory for %zu steps", steps);
    for (size_t i = 0; i < file->range_count; i++) {
        const struct trace_range *range = &file->ranges[i];
        size_t first;
        if (range->kind != RANGE_STEP)
            continue;
        trace_file_row(file, range->rank, range->row, &first, &end);
        add_parts(file, i, end, step++);
    }
    for (size_t i = 0; i < file->range_count; i++) {
        if (file->ranges[i].kind == RANGE_ALLREDUCE)
            add_averaging(&file->ranges[i], *out, steps);
    }
    return STATUS_OK;
}

/* -------- medians ----------------------------------------------------------------------------- */

static size_t of_rank(const struct trace_step *steps, size_t count, int rank,
                      struct trace_step *found)
{
    size_t number = 0;
    for (size_t i = 0; i < count; i++) {
        if (steps[i].rank == rank)
            found[number++] = steps[i];
    }
    return number;
}

static int64_t own_ns(const struct trace_step *step)
{
    return step->ns[TRACE_PART_REST] + step->ns[TRACE_PART_DATA];
}

/* The steps of all ranks, as in train.csv, by the clocks of the recording: the parts of the busiest
 * rank, and the end of the last rank. */
static size_t of_all(const struct trace_step *steps, size_t count, struct trace_step *found)
{
    size_t number = 0;
    int64_t first = INT64_MAX, before_ns = INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        first = steps[i].number < first ? steps[i].number : first;
        before_ns = steps[i].begin_ns < before_ns ? steps[i].begin_ns : before_ns;
    }
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)(steps[i].number - first);
        if (at >= count)
            continue;
        int64_t end_ns = found[at].end_ns;
        if (end_ns == 0 || own_ns(&steps[i]) >= own_ns(&found[at]))
            found[at] = steps[i];
        found[at].end_ns = steps[i].end_ns > end_ns ? steps[i].end_ns : end_ns;
    }
    for (; number < count && found[number].end_ns != 0; number++) {
        int64_t *ns = found[number].ns;
        ns[TRACE_PART_STEP] = found[number].end_ns - before_ns;
        before_ns = found[number].end_ns;
        int64_t exposed_ns = ns[TRACE_PART_STEP] - own_ns(&found[number]);
        ns[TRACE_PART_EXPOSED] = exposed_ns > 0 ? exposed_ns : 0;
    }
    return number;
}

size_t trace_medians(const struct trace_step *steps, size_t count, int rank,
                     double median_ms[TRACE_PARTS])
{
    double *values = calloc(count + 1, sizeof *values);
    struct trace_step *chosen = calloc(count + 1, sizeof *chosen);
    size_t found = 0;
    if (values && chosen)
        found = rank >= 0 ? of_rank(steps, count, rank, chosen) : of_all(steps, count, chosen);
    for (int part = 0; part < TRACE_PARTS; part++) {
        for (size_t i = 0; i < found; i++)
            values[i] = (double)chosen[i].ns[part] / (double)NS_PER_MS;
        median_ms[part] = found > 0 ? stats_median(values, found) : 0;
    }
    free(values);
    free(chosen);
    return found;
}

/* The facts of the run. Without them, nothing is assumed about links and processors. */
static struct bottleneck_facts facts_of(const struct trace_file *file)
{
    struct bottleneck_facts facts = {.waits = true, .compressed = true};
    if (file->has_facts)
        facts = file->facts;
    facts.backend = file->backend;
    return facts;
}

static void print_steps(const struct trace_file *file, const struct trace_step *steps, size_t count)
{
    int64_t first = steps[0].number, last = first;
    for (size_t i = 1; i < count; i++) {
        first = steps[i].number < first ? steps[i].number : first;
        last = steps[i].number > last ? steps[i].number : last;
    }
    printf("in steps %lld to %lld, the recorded ones; psring train judges all steps of a run\n",
           (long long)first + 1, (long long)last + 1);
    if (!file->has_facts)
        printf("this file of an earlier psring has no facts about loaders, processors, servers and "
               "the "
               "link rate\n");
}

/* Prints the bottleneck of the recorded steps to stdout, in the words of psring train.
 * STATUS_NO_MEMORY is logged. */
static enum status trace_print_bottleneck(const struct trace_file *file,
                                          const struct trace_step *steps, size_t count)
{
    char text[400];
    double median_ms[TRACE_PARTS];
    if (!file->in_step) {
        printf("no common bottleneck: the workers did not synchronise in every step\n");
        return STATUS_OK;
    }
    struct bottleneck_facts facts = facts_of(file);
    struct bottleneck_rank *ranks = calloc((size_t)file->rank_count, sizeof *ranks);
    if (!ranks)
        return FAIL(STATUS_NO_MEMORY, "psring trace: out of memory");
    facts.ranks = ranks;
    facts.steps = UINT64_MAX;
    for (int rank = 0; rank < file->rank_count; rank++) {
        size_t found = trace_medians(steps, count, rank, median_ms);
        if (found == 0)
            continue;
        facts.steps = found < facts.steps ? found : facts.steps;
        double cpu = median_ms[TRACE_PART_CPU];
        ranks[facts.workers++] = (struct bottleneck_rank){
            .step = median_ms[TRACE_PART_STEP],
            .exposed = median_ms[TRACE_PART_EXPOSED],
            .data = median_ms[TRACE_PART_DATA],
            .comm = median_ms[TRACE_PART_COMM],
            .cpu = cpu < 0 ? (double)NAN : cpu,
        };
    }
    struct bottleneck bottleneck = bottleneck_of(&facts);
    printf("limited by %s\n", bottleneck_describe(&facts, &bottleneck, text, sizeof text));
    print_steps(file, steps, count);
    free(ranks);
    return STATUS_OK;
}

enum { SHOWN = TRACE_PART_REST + 1 }; /* the first parts of trace_part */

struct trace_request {
    const char *path;
    int64_t step; /* step of the printed critical path, from 1; 0: the median step */
};

/* -------- where the time went ----------------------------------------------------------------- */

static void print_row(const char *name, size_t count, const double *median_ms)
{
    printf("%-36s %6zu", name, count);
    for (int part = 0; part < SHOWN; part++)
        printf(" %9.3f", median_ms[part]);
    printf("\n");
}

static void print_parts(const struct trace_file *file, const struct trace_step *steps, size_t count)
{
    double median_ms[TRACE_PARTS];
    static const char *const names[SHOWN] = {[TRACE_PART_STEP] = "step",
                                             [TRACE_PART_COMPUTE] = "compute",
                                             [TRACE_PART_EXPOSED] = "exposed",
                                             [TRACE_PART_DATA] = "data",
                                             [TRACE_PART_OPTIMIZER] = "optimizer",
                                             [TRACE_PART_OTHER] = "other",
                                             [TRACE_PART_REST] = "rest"};
    printf("ms a step, medians\n%-36s %6s", "", "steps");
    for (int part = 0; part < SHOWN; part++)
        printf(" %9s", names[part]);
    printf("\n");
    for (int rank = 0; rank < file->rank_count; rank++) {
        size_t found = trace_medians(steps, count, rank, median_ms);
        if (found > 0)
            print_row(file->ranks[rank].name, found, median_ms);
    }
    if (file->in_step)
        print_row("busiest rank of each step", trace_medians(steps, count, -1, median_ms),
                  median_ms);
    printf(
        "exposed: the step waits for averaging, or averages itself; rest: step without exposed and "
        "data, as compute_ms of train.csv\n");
    if (file->in_step)
        printf("last row: parts of the busiest rank; step is the time of all ranks; exposed is "
               "step without "
               "rest and data\n");
}

static void print_messages(const struct trace_file *file)
{
    size_t beyond, pairs, disordered = trace_file_disordered(file, &beyond, &pairs);
    int64_t error_ns = 0;
    for (int rank = 0; rank < file->rank_count; rank++) {
        if (file->ranks[rank].clock_error_ns > error_ns)
            error_ns = file->ranks[rank].clock_error_ns;
        if (file->ranks[rank].dropped > 0)
            printf("rank %d dropped %llu events: its buffers were full\n", rank,
                   (unsigned long long)file->ranks[rank].dropped);
    }
    printf(
        "messages %zu; received before they were sent: %zu, by more than the clock errors (at most "
        "%.1f us): %zu\n",
        pairs, disordered, (double)error_ns / (double)NS_PER_US, beyond);
}

/* -------- the command ------------------------------------------------------------------------- */

static const struct option_spec specs[] = {
    {"step", 0, OPTION_INT, .offset = offsetof(struct trace_request, step), NULL, 1, 1e15,
     .help = "Print the critical path of this step. Default: the step of median length."},
    {.name = NULL},
};

enum status trace_command(int argc, char **argv)
{
    enum status status = STATUS_OK;
    struct trace_request request = {0};
    struct trace_file file = {0};
    struct trace_step *steps = NULL;
    size_t count = 0;
    bool helped;
    const struct options options = {
        .command = "psring trace",
        .summary =
            "Print where the time of a run went, from the file of psring train --timeline FILE.",
        .specs = specs,
        .operands = "FILE",
        .operands_error = "expected one FILE, written by psring train --timeline",
        .found = &request.path,
        .operand_count = 1,
    };
    TRY(options_parse(&options, argc, argv, &request, &helped));
    if (helped)
        return STATUS_OK;
    TRY(trace_file_read(&file, request.path));
    TRY(trace_steps(&file, &steps, &count));
    if (count == 0)
        TRY(FAIL(STATUS_INPUT,
                 "%s: no whole step was recorded; check that the run has the steps of "
                 "--timeline-steps",
                 request.path));
    TRY(trace_print_bottleneck(&file, steps, count));
    printf("\n");
    print_parts(&file, steps, count);
    print_messages(&file);
    TRY(trace_print_paths(&file, steps, count, request.step));
out:
    free(steps);
    trace_file_free(&file);
    return status;
}
