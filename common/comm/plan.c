#include "common/comm/plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/status.h"

enum status plan_init(struct plan *plan, const struct comm_layout *layout, size_t counts_max)
{
    size_t buckets = layout->buckets;
    *plan = (struct plan){.layout = *layout};
    plan->counts = calloc(buckets + 1, sizeof *plan->counts);
    plan->order = layout->order ? calloc(buckets + 1, sizeof *plan->order) : NULL;
    plan->started = calloc(buckets + 1, sizeof *plan->started);
    plan->ranges = calloc(buckets + 1, sizeof *plan->ranges);
    if (!plan->counts || (layout->order && !plan->order) || !plan->started || !plan->ranges) {
        log_error("comm: no memory for %zu buckets", buckets);
        return STATUS_NO_MEMORY;
    }
    for (size_t b = 0; b < buckets; b++) {
        struct bucket_ranges *ranges = &plan->ranges[b];
        CHECK(layout->counts[b] <= counts_max);
        plan->counts[b] = layout->counts[b];
        if (layout->order)
            plan->order[b] = layout->order[b];
        snprintf(ranges->name, sizeof ranges->name, "bucket %zu", b);
        snprintf(ranges->allreduce, sizeof ranges->allreduce, "bucket %zu allreduce", b);
    }
    plan->layout.counts = plan->counts;
    plan->layout.order = plan->order;
    return STATUS_OK;
}

void plan_fini(struct plan *plan)
{
    overlap_free(&plan->overlap);
    staging_free(&plan->staging);
    free(plan->counts);
    free(plan->order);
    free(plan->started);
    free(plan->ranges);
    *plan = (struct plan){0};
}
