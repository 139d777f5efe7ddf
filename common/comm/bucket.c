#include "common/comm/bucket.h"

struct plan {
    struct bucket *buckets; /* NULL: only count */
    size_t used;
    struct bucket open;
    size_t limit, first_limit; /* elements; 0: none */
};

static size_t wanted(const struct plan *plan)
{
    return plan->used == 0 ? plan->first_limit : plan->limit;
}

static void close_bucket(struct plan *plan)
{
    if (plan->buckets)
        plan->buckets[plan->used] = plan->open;
    plan->used++;
    plan->open.count = 0;
}

/* Takes `count` more elements, downwards. */
static void extend(struct plan *plan, size_t count, bool closes)
{
    plan->open.first -= count;
    plan->open.count += count;
    if (closes)
        close_bucket(plan);
}

static void add_whole(struct plan *plan, size_t count)
{
    bool full = plan->limit > 0 && plan->open.count + count >= wanted(plan);
    extend(plan, count, full);
}

/* The first bucket takes what it lacks; the rest is cut evenly. */
static void add_pieces(struct plan *plan, size_t count)
{
    if (plan->used == 0 && plan->open.count < plan->first_limit) {
        size_t lacks = plan->first_limit - plan->open.count;
        extend(plan, lacks, true);
        count -= lacks;
    }
    for (size_t pieces = (count + plan->limit - 1) / plan->limit; pieces > 0; pieces--) {
        size_t piece = count / pieces;
        extend(plan, piece, true);
        count -= piece;
    }
}

size_t bucket_plan(const size_t *counts, size_t layers, const struct bucket_limits *limits,
                   struct bucket *buckets)
{
    size_t bytes = limits->bytes, first = BUCKET_FIRST_BYTES < bytes ? BUCKET_FIRST_BYTES : bytes;
    size_t unit = sizeof(float);
    struct plan plan = {
        .buckets = buckets, .limit = (bytes + unit - 1) / unit, .first_limit = first / unit};
    for (size_t l = 0; l < layers; l++)
        plan.open.first += counts[l];
    for (size_t l = layers; l-- > 0;) {
        if (counts[l] == 0)
            continue;
        if (limits->cut && plan.limit > 0 && counts[l] > plan.limit)
            add_pieces(&plan, counts[l]);
        else
            add_whole(&plan, counts[l]);
    }
    if (plan.open.count > 0 || plan.used == 0)
        close_bucket(&plan);
    return plan.used;
}
