/* The leader's vote on who continues. shrink.c has the rules. */
#include "common/net/shrink_impl.h"

/* One that was silent first may have continued before it ended. */
static bool has_ended(const struct attempt *a, int identity)
{
    return a->comers[identity].fate == ENDED && !members_have(&a->reunion->silent, identity);
}

/* Whether `members` may follow the world of `set`. */
static bool may_follow(const struct attempt *a, const struct members *set,
                       const struct members *members)
{
    int all = 0, ours = 0, lowest = -1;
    bool known = true;
    for (int i = 0; i < SHRINK_RANKS_MOST; i++) {
        if (!members_have(set, i))
            continue;
        all++;
        ours += members_have(members, i);
        lowest = lowest < 0 ? i : lowest;
        known = known && (members_have(members, i) || has_ended(a, i));
    }
    return known || 2 * ours > all ||
           (2 * ours == all && lowest >= 0 && members_have(members, lowest));
}

const struct view *shrink_newest_base(const struct attempt *a)
{
    const struct view *newest = &a->reunion->base;
    for (int i = 0; i < a->reunion->count; i++) {
        const struct comer *comer = &a->comers[i];
        if (comer->fate == COME && comer->claim.base.epoch > newest->epoch)
            newest = &comer->claim.base;
    }
    return newest;
}

/* NULL: that rank is not here. */
static const struct view *promise_of(const struct attempt *a, int identity)
{
    const struct comer *comer = &a->comers[identity];
    if (identity == a->reunion->identity)
        return &a->reunion->promise;
    return comer->fate == COME ? &comer->claim.promise : NULL;
}

struct view shrink_inherited(const struct attempt *a)
{
    const struct view *base = shrink_newest_base(a);
    struct view next = *base;
    next.voters = base->members;
    for (int i = 0; i < a->reunion->count; i++) {
        const struct view *promise = promise_of(a, i);
        if (!promise || !members_have(&base->members, i) || promise->epoch <= base->epoch)
            continue;
        members_include(&next.voters, &promise->voters);
        members_include(&next.missing, &promise->missing);
    }
    return next;
}

struct members shrink_eligible(const struct attempt *a)
{
    const struct view *base = shrink_newest_base(a);
    struct members set = base->members;
    for (int i = 0; i < a->reunion->count; i++) {
        const struct view *promise = promise_of(a, i);
        if (promise && members_have(&base->members, i))
            members_narrow(&set, &promise->members);
    }
    return set;
}

bool shrink_decide(const struct attempt *a, const struct members *set, struct view *next)
{
    const struct view *base = shrink_newest_base(a);
    bool founded = false;
    *next = shrink_inherited(a);
    next->epoch = a->reunion->epoch;
    next->members = (struct members){0};
    for (int i = 0; i < SHRINK_RANKS_MOST; i++) {
        const struct comer *comer = &a->comers[i];
        if (comer->fate == COME && comer->claim.epoch > next->epoch)
            next->epoch = comer->claim.epoch;
        bool stays = promise_of(a, i) && members_have(set, i);
        if (stays)
            members_add(&next->members, i);
        else if (members_have(&next->voters, i))
            members_add(&next->missing, i);
        if (stays || comer->fate == ENDED) /* if it had continued, this world could not follow */
            members_remove(&next->missing, i);
        founded = founded || (stays && members_have(&base->founders, i));
    }
    next->epoch++;
    return founded && may_follow(a, &next->voters, &next->members);
}
