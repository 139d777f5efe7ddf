#include "experiments/trace/trace_parts.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/stats.h"

/* TRACE_PARTS: it is part of whatever it is in. */
static enum trace_part part_of(enum range_kind kind)
{
    switch (kind) {
    case RANGE_COMPUTE:
        return TRACE_PART_COMPUTE;
    case RANGE_EXPOSED:
        return TRACE_PART_EXPOSED;
    case RANGE_DATA:
        return TRACE_PART_DATA;
    case RANGE_OPTIMIZER:
        return TRACE_PART_OPTIMIZER;
    default:
        return TRACE_PARTS;
    }
}

/* The parts of the step that is ranges[at], of the row that ends before `end`. */
static void add_parts(const struct trace_file *file, size_t at, size_t end, struct trace_step *step)
{
    enum { DEPTH = 32 };
    const struct trace_range *whole = &file->ranges[at];
    const struct trace_range *open[DEPTH]; /* that count as a part, nested */
    int depth = 0;
    *step = (struct trace_step){whole->rank, at, whole->step, whole->begin_ns, whole->end_ns, {0}};
    step->ns[TRACE_PART_STEP] = step->ns[TRACE_PART_OTHER] = whole->end_ns - whole->begin_ns;
    step->ns[TRACE_PART_CPU] = -1;
    for (size_t i = at + 1; i < end && file->ranges[i].begin_ns < whole->end_ns; i++) {
        const struct trace_range *range = &file->ranges[i];
        enum trace_part part = part_of(range->kind);
        if (range->kind == RANGE_CPU)
            step->ns[TRACE_PART_CPU] = range->step;
        if (part == TRACE_PARTS)
            continue;
        while (depth > 0 && open[depth - 1]->end_ns <= range->begin_ns)
            depth--;
        int64_t ns = range->end_ns - range->begin_ns;
        step->ns[part] += ns;
        step->ns[depth > 0 ? part_of(open[depth - 1]->kind) : TRACE_PART_OTHER] -= ns;
        if (depth < DEPTH)
            open[depth++] = range;
    }
    step->ns[TRACE_PART_REST] =
        step->ns[TRACE_PART_STEP] - step->ns[TRACE_PART_EXPOSED] - step->ns[TRACE_PART_DATA];
}

/* An averaging that lasts from one step into the next counts in both. */
static void add_averaging(const struct trace_range *range, struct trace_step *steps, size_t count)
{
    size_t low = 0, high = count;
    while (low < high) { /* the first step of the rank that ends later */
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
    if (!step) {
        log_error("psring trace: no memory for %zu steps", steps);
        return STATUS_NO_MEMORY;
    }
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

/* The steps of all ranks as step_times.h has them, by the clocks of the recording: the busiest
 * rank's parts, until the last rank's end. */
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
