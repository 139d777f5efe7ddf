#include "ps/policy.h"

struct policy policy_of(const struct consistency *consistency, int workers)
{
    int needed = workers - consistency->backup_workers;
    switch (consistency->kind) {
    case CONSISTENCY_SSP:
        return (struct policy){1, workers, consistency->staleness, true};
    case CONSISTENCY_ASYNC:
        return (struct policy){1, 0, 0, true};
    default:
        return (struct policy){needed, needed, 0, false};
    }
}

/* At least `needed` workers have done all steps before `clock`. */
static bool have_reached(const uint64_t *clocks, int workers, uint64_t clock, int needed)
{
    for (int worker = 0; worker < workers && needed > 0; worker++)
        needed -= clocks[worker] >= clock;
    return needed <= 0;
}

bool policy_may_apply(const struct policy *policy, const uint64_t *clocks, int workers,
                      uint64_t step)
{
    return have_reached(clocks, workers, step + 1, policy->to_apply);
}

bool policy_may_answer(const struct policy *policy, const uint64_t *clocks, int workers,
                       uint64_t step)
{
    uint64_t clock = step + 1;
    return clock <= policy->slack ||
           have_reached(clocks, workers, clock - policy->slack, policy->to_answer);
}

uint64_t policy_next_step(const struct consistency *consistency, uint64_t next, uint64_t first,
                          uint64_t end)
{
    bool backed_up = consistency->backup_workers > 0;
    uint64_t behind = first > next ? first - next : 0;
    if (behind == 0 || (consistency->late_steps == 0 && !backed_up))
        return next;
    return first >= end || backed_up || behind >= consistency->late_steps ? first : next;
}
