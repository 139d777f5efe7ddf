#include "experiments/trace/trace_bottleneck.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/status.h"

/* What the run itself knew, or the least that is sure: nothing of links and processors. */
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
    printf("in steps %lld to %lld, which were recorded; psring train judges all of a run\n",
           (long long)first + 1, (long long)last + 1);
    if (!file->has_facts)
        printf("of loaders, processors, servers and the links' rate nothing is in this file: an "
               "earlier psring wrote it\n");
}

enum status trace_print_bottleneck(const struct trace_file *file, const struct trace_step *steps,
                                   size_t count)
{
    char text[400];
    double median_ms[TRACE_PARTS];
    if (!file->in_step) {
        printf("the workers were not held in one step: so nothing limited them in common\n");
        return STATUS_OK;
    }
    struct bottleneck_facts facts = facts_of(file);
    struct bottleneck_rank *ranks = calloc((size_t)file->rank_count, sizeof *ranks);
    if (!ranks) {
        log_error("psring trace: out of memory");
        return STATUS_NO_MEMORY;
    }
    facts.ranks = ranks;
    for (int rank = 0; rank < file->rank_count; rank++) {
        if (trace_medians(steps, count, rank, median_ms) == 0)
            continue;
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
