#include "experiments/step/step_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/clock.h"
#include "common/base/stats.h"

enum status step_times_init(struct step_times *times, size_t capacity)
{
    *times = (struct step_times){.capacity = capacity};
    bool whole = (times->scratch = calloc(capacity + 1, sizeof(double))) != NULL;
    whole = (times->ended_ms = calloc(capacity + 1, sizeof(double))) && whole;
    for (int kind = 0; kind < STEP_TIME_KINDS; kind++)
        whole = (times->ms[kind] = calloc(capacity + 1, sizeof(double))) && whole;
    if (whole)
        return STATUS_OK;
    log_error("no memory for the times of %zu steps; use a smaller --log-steps", capacity);
    step_times_fini(times);
    return STATUS_NO_MEMORY;
}

void step_times_fini(struct step_times *times)
{
    for (int kind = 0; kind < STEP_TIME_KINDS; kind++)
        free(times->ms[kind]);
    free(times->scratch);
    free(times->ended_ms);
    *times = (struct step_times){0};
}

void step_times_add(struct step_times *times, int64_t ended_ns, const int64_t ns[STEP_TIME_KINDS])
{
    CHECK(times->count < times->capacity);
    for (int kind = 0; kind < STEP_TIME_KINDS; kind++)
        times->ms[kind][times->count] = (double)ns[kind] / (double)NS_PER_MS;
    times->ended_ms[times->count++] = (double)ended_ns / (double)NS_PER_MS;
}

/* Of ms that are differences of such. */
static double whole_ns(double ms)
{
    return round(ms * (double)NS_PER_MS) / (double)NS_PER_MS;
}

/* Of every step leaves, on all ranks, when the last one ended it, and the times of the busiest; of
 * several the highest. */
static enum status keep_busiest(struct step_times *times, struct world *world,
                                const struct group *group, double rank)
{
    enum status status;
    double *all = times->ms[STEP_TIME_ALL], *compute = times->ms[STEP_TIME_COMPUTE],
           *exposed = times->ms[STEP_TIME_EXPOSED], *data = times->ms[STEP_TIME_DATA],
           *busiest = times->scratch; /* first the highest own time, then whose it is */
    for (size_t i = 0; i < times->count; i++)
        busiest[i] = compute[i] + data[i];
    TRY(world_max(world, group, busiest, times->count));
    for (size_t i = 0; i < times->count; i++)
        busiest[i] = compute[i] + data[i] >= busiest[i] ? rank : -1;
    TRY(world_max(world, group, busiest, times->count));
    for (int kind = STEP_TIME_ALL + 1; kind < STEP_TIME_KINDS; kind++) {
        if (kind == STEP_TIME_EXPOSED) /* is what is left, below */
            continue;
        for (size_t i = 0; i < times->count; i++) {
            if (busiest[i] != rank)
                times->ms[kind][i] = 0;
        }
        TRY(world_sum(world, group, times->ms[kind], times->count));
    }
    memcpy(all, times->ended_ms, times->count * sizeof *all);
    TRY(world_max(world, group, all, times->count));
    for (size_t i = times->count; i-- > 0;) {
        all[i] = whole_ns(all[i] - (i > 0 ? all[i - 1] : 0));
        exposed[i] = fmax(whole_ns(all[i] - compute[i] - data[i]), 0);
    }
out:
    return status;
}

void step_times_own(struct step_times *times, double median_ms[STEP_TIME_KINDS])
{
    for (int kind = 0; kind < STEP_TIME_KINDS; kind++) {
        memcpy(times->scratch, times->ms[kind], times->count * sizeof *times->scratch);
        median_ms[kind] =
            times->count > 0 ? stats_median(times->scratch, times->count) : (double)NAN;
    }
}

enum status step_times_medians(struct step_times *times, struct world *world,
                               const struct group *group, size_t rank,
                               double median_ms[STEP_TIME_KINDS])
{
    enum status status = STATUS_OK;
    if (times->count > 0)
        TRY(keep_busiest(times, world, group, (double)rank));
    for (int kind = 0; kind < STEP_TIME_KINDS; kind++)
        median_ms[kind] =
            times->count > 0 ? stats_median(times->ms[kind], times->count) : (double)NAN;
    times->count = 0;
out:
    return status;
}

enum status step_times_medians_apart(struct step_times *times, struct world *world,
                                     const struct group *group, double median_ms[STEP_TIME_KINDS])
{
    enum status status = STATUS_OK;
    double sums[STEP_TIME_KINDS + 1] = {0}; /* then the ranks that have taken a step */
    for (int kind = 0; kind < STEP_TIME_KINDS && times->count > 0; kind++)
        sums[kind] = stats_median(times->ms[kind], times->count);
    sums[STEP_TIME_KINDS] = times->count > 0;
    TRY(world_sum(world, group, sums, STEP_TIME_KINDS + 1));
    for (int kind = 0; kind < STEP_TIME_KINDS; kind++)
        median_ms[kind] = sums[kind] / sums[STEP_TIME_KINDS]; /* of nobody: NAN */
    times->count = 0;
out:
    return status;
}
