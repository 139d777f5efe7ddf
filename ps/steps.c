#include "ps/steps.h"

#include "ps/policy.h"

static void start_step(struct steps *steps)
{
    *steps =
        (struct steps){.progress = steps->progress, .end = steps->end, .ahead_least = UINT16_MAX};
}

void steps_begin(struct steps *steps, uint64_t step, uint64_t end)
{
    steps->progress.step = step;
    steps->end = end;
    start_step(steps);
}

void steps_answered(struct steps *steps, const struct message *answer)
{
    steps->answers++;
    steps->elements += answer->length;
    steps->late += answer->late ? answer->length : 0;
    if (answer->staleness > steps->staleness)
        steps->staleness = answer->staleness;
    if (answer->ahead < steps->ahead_least)
        steps->ahead_least = answer->ahead;
    if (answer->ahead > steps->ahead_most)
        steps->ahead_most = answer->ahead;
}

/*
 * Chunks are at different steps. A step that waits for backed up workers is over only where all of
 * its chunks are, and may need this worker till then: the least counts. Else the most: in ssp the
 * first worker waits in its first chunks.
 */
static uint64_t ahead_of(const struct steps *steps, const struct consistency *consistency)
{
    if (steps->answers == 0)
        return 0;
    return consistency->backup_workers > 0 ? steps->ahead_least : steps->ahead_most;
}

uint64_t steps_next(struct steps *steps, const struct consistency *consistency)
{
    struct comm_progress *progress = &steps->progress;
    uint64_t next = progress->step + 1, first = next + ahead_of(steps, consistency);
    size_t bin = steps->staleness < COMM_STALENESS_MOST ? steps->staleness : COMM_STALENESS_MOST;
    progress->step = policy_next_step(consistency, next, first, steps->end);
    progress->left_out += progress->step - next;
    progress->done++;
    progress->staleness[bin]++;
    if (steps->elements > 0)
        progress->dropped += (double)steps->late / (double)steps->elements;
    start_step(steps);
    return progress->step;
}
