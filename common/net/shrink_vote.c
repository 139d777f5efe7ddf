/* The leader's vote on who continues, and whose end it may trust. shrink.c has the rules. */
#include <time.h>

#include "common/base/clock.h"
#include "common/net/shrink_impl.h"

/* -------- whether this process took part ------------------------------------------------------ */

/* It counts while the host is suspended. */
static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

void shrink_acts(struct reunion *m)
{
    int64_t acts_ns = now_ns();
    int64_t gap_ns = acts_ns - atomic_exchange(&m->acted_ns, acts_ns);
    int64_t longest_ns = atomic_load(&m->gaps_ns[0]);
    while (gap_ns > longest_ns &&
           !atomic_compare_exchange_weak(&m->gaps_ns[0], &longest_ns, gap_ns)) {
    }
}

bool shrink_waited(struct reunion *m, int64_t most_ms)
{
    int64_t acts_ns = now_ns();
    bool waited = acts_ns - atomic_load(&m->acted_ns) <= most_ms * NS_PER_MS;
    if (waited)
        atomic_store(&m->acted_ns, acts_ns);
    else
        shrink_acts(m);
    return waited;
}

void shrink_acts_anew(struct reunion *m)
{
    atomic_store(&m->acted_ns, now_ns());
    for (int i = 0; i < SHRINK_GAPS; i++)
        atomic_store(&m->gaps_ns[i], 0);
}

bool shrink_was_away(const struct reunion *m, int64_t limit_ms)
{
    bool away = false;
    for (int i = 0; i < SHRINK_GAPS; i++)
        away = away || atomic_load(&m->gaps_ns[i]) > limit_ms * NS_PER_MS;
    return away && limit_ms > 0;
}

void world_acts(const struct world *world)
{
    if (world->reunion)
        shrink_acts(world->reunion);
}

/* A gap before an operation is harmless once another operation has followed that one: to begin it,
 * all ranks needed what this rank had sent after the gap. */
void world_has_met(const struct world *world)
{
    struct reunion *m = world->reunion;
    world_acts(world);
    for (int i = SHRINK_GAPS - 1; m && i > 0; i--)
        atomic_store(&m->gaps_ns[i], atomic_load(&m->gaps_ns[i - 1]));
    if (m)
        atomic_store(&m->gaps_ns[0], 0);
}

/* -------- the vote ---------------------------------------------------------------------------- */

/* One that was silent first, or that may have excluded this rank, may have continued before it
 * ended. */
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
