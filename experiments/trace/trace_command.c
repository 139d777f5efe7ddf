#include "experiments/trace/trace_command.h"

#include <stdio.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/options.h"
#include "common/base/status.h"
#include "experiments/trace/trace_file.h"
#include "experiments/trace/trace_parts.h"
#include "experiments/trace/trace_print_path.h"
#include "experiments/trace/trace_bottleneck.h"

enum { SHOWN = TRACE_PART_REST + 1 }; /* of trace_part */

struct trace_request {
    const char *path;
    int64_t step; /* whose critical path is shown, from 1; 0: the median one's */
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
    static const char *const parts[SHOWN] = {[TRACE_PART_STEP] = "step",
                                             [TRACE_PART_COMPUTE] = "compute",
                                             [TRACE_PART_EXPOSED] = "exposed",
                                             [TRACE_PART_DATA] = "data",
                                             [TRACE_PART_OPTIMIZER] = "optimizer",
                                             [TRACE_PART_OTHER] = "other",
                                             [TRACE_PART_REST] = "rest"};
    printf("ms a step, medians\n%-36s %6s", "", "steps");
    for (int part = 0; part < SHOWN; part++)
        printf(" %9s", parts[part]);
    printf("\n");
    for (int rank = 0; rank < file->rank_count; rank++) {
        size_t found = trace_medians(steps, count, rank, median_ms);
        if (found > 0)
            print_row(file->ranks[rank].name, found, median_ms);
    }
    if (file->in_step)
        print_row("busiest rank of each step", trace_medians(steps, count, -1, median_ms),
                  median_ms);
    printf("exposed: the step waits for averaging, or averages itself; rest: all but that and "
           "data, compute_ms of train.csv\n");
    if (file->in_step)
        printf(
            "in the last row parts are the busiest rank's; step is the time of all, exposed what "
            "that is beyond rest and data\n");
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

/* -------- the command ------------------------------------------------------------------------- */

static const struct option_spec specs[] = {
    {"step", 0, OPTION_INT, .offset = offsetof(struct trace_request, step), NULL, 1, 1e15,
     .help = "The step whose critical path is shown; else the one of median length."},
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
            "Where the time of a run went, from what psring train --timeline FILE has written.",
        .specs = specs,
        .operands = "FILE",
        .operands_error =
            "of which run? name the one file that psring train --timeline has written",
        .found = &request.path,
        .operand_count = 1,
    };
    TRY(options_parse(&options, argc, argv, &request, &helped));
    if (helped)
        return STATUS_OK;
    TRY(trace_file_read(&file, request.path));
    TRY(trace_steps(&file, &steps, &count));
    if (count == 0) {
        log_error("%s: no whole step was recorded; were there as many as --timeline-steps asks "
                  "for?",
                  request.path);
        status = STATUS_INPUT;
        goto out;
    }
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
