/* The times of training steps, by part, and their medians over the steps of an interval. */
#ifndef PSRING_EXPERIMENTS_STEP_STEP_TIMES_H
#define PSRING_EXPERIMENTS_STEP_STEP_TIMES_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/world.h"

enum step_time {
    STEP_TIME_ALL,     /* the whole step; a rank's own: the sum of COMPUTE, EXPOSED and DATA */
    STEP_TIME_COMPUTE, /* forward, backward, update */
    STEP_TIME_COMM,    /* averaging, on whichever thread */
    STEP_TIME_EXPOSED, /* the part of averaging that computing waited for */
    STEP_TIME_DATA,    /* until the batch was there */
    STEP_TIME_CPU,     /* of COMPUTE, that the training thread ran on a processor */
    STEP_TIME_KINDS,
};

struct step_times {
    double *ms[STEP_TIME_KINDS]; /* (capacity) each */
    double *ended_ms;            /* (capacity): since the first step began */
    double *scratch;             /* (capacity) */
    size_t count, capacity;
};

/* Room for `capacity` steps between two calls of step_times_medians. STATUS_NO_MEMORY (logged). */
enum status step_times_init(struct step_times *times, size_t capacity);
void step_times_fini(struct step_times *times);

/* Notes one step, which ended so long after the first of those noted since the last call of
 * step_times_medians had begun. */
void step_times_add(struct step_times *times, int64_t ended_ns, const int64_t ns[STEP_TIME_KINDS]);

/* This rank's own medians, in ms, over the steps noted so far; NAN if there were none. */
void step_times_own(struct step_times *times, double median_ms[STEP_TIME_KINDS]);

/*
 * Collective over the group, in which the caller is `rank`; all ranks have noted as many steps.
 * A step is the time of all: from when the last rank had ended the step before (for the first: from
 * its beginning) to when the last one has ended this. Ranks that wait for each other, but not all
 * for the same, may end early and late in turn: two of them each other step, though they do as many
 * steps a second; the slowest rank of each step is always one that is late. COMPUTE, DATA and the
 * others are those of the busiest rank, with the most COMPUTE and DATA: the others wait for it, so
 * what they wait is no communication. (Not those of the rank that ends last: ranks that have waited
 * for each other end at nearly the same time, and any of them may be the last.) EXPOSED is the
 * rest: what the step took beyond the busiest rank's own time, whoever was late; it may be more
 * than that rank averaged, and is 0 where that rank began so early that there is none. All ranks
 * have begun the first noted step together, as they leave a barrier: they may be as far apart as
 * that leaves them. median_ms: the median of each kind over the steps, NAN if there were none.
 * Forgets the steps.
 */
enum status step_times_medians(struct step_times *times, struct world *world,
                               const struct group *group, size_t rank,
                               double median_ms[STEP_TIME_KINDS]);

/* The same of ranks that step apart, as often as each can: the mean of what the median step took
 * each of them. */
enum status step_times_medians_apart(struct step_times *times, struct world *world,
                                     const struct group *group, double median_ms[STEP_TIME_KINDS]);

#endif
