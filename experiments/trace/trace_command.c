#include "experiments/trace/trace_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "experiments/trace/trace_file.h"
#include "experiments/trace/trace_parts.h"
#include "experiments/trace/trace_print_path.h"
#include "experiments/trace/trace_bottleneck.h"

enum { SHOWN = TRACE_PART_REST + 1 }; /* of trace_part */

struct request {
    const char *path;
    long long step; /* whose critical path is shown, from 1; 0: the median one's */
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
