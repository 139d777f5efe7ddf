#include "experiments/step_times.h"

#include <stdlib.h>

#include "common/base/check.h"
#include "common/base/stats.h"

enum status step_times_init(struct step_times *times, size_t capacity)
{
    *times = (struct step_times){.capacity = capacity};
    for (int kind = 0; kind < STEP_TIME_KINDS; kind++) {
        times->ms[kind] = calloc(capacity + 1, sizeof(double));
        if (!times->ms[kind]) {
            log_error("no memory for the times of %zu steps; use a smaller --log-steps", capacity);
            step_times_fini(times);
            return STATUS_NO_MEMORY;
        }
    }
    return STATUS_OK;
}

void step_times_fini(struct step_times *times)
{
    for (int kind = 0; kind < STEP_TIME_KINDS; kind++)
        free(times->ms[kind]);
    *times = (struct step_times){0};
}

void step_times_add(struct step_times *times, const double ms[STEP_TIME_KINDS])
{
    CHECK(times->count < times->capacity);
    for (int kind = 0; kind < STEP_TIME_KINDS; kind++)
        times->ms[kind][times->count] = ms[kind];
    times->count++;
}

enum status step_times_medians(struct step_times *times, struct world *world,
                               struct world_group *group, double median_ms[STEP_TIME_KINDS])
{
    enum status status = STATUS_OK;
    for (int kind = 0; kind < STEP_TIME_KINDS; kind++) {
        median_ms[kind] = 0;
        if (times->count == 0)
            continue;
        TRY(world_max(world, group, times->ms[kind], times->count));
        stats_sort(times->ms[kind], times->count);
        median_ms[kind] = stats_median(times->ms[kind], times->count);
    }
    times->count = 0;
out:
    return status;
}
