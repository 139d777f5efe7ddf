#include "common/comm/bucket.h"

#include <math.h>

struct bucket_cut {
    struct bucket *buckets; /* NULL: only count */
    size_t used;
    struct bucket open;
    size_t limit, first_limit; /* elements; 0: none */
};

static size_t wanted(const struct bucket_cut *plan)
{
    return plan->used == 0 ? plan->first_limit : plan->limit;
}

static void close_bucket(struct bucket_cut *plan)
{
    if (plan->buckets)
        plan->buckets[plan->used] = plan->open;
    plan->used++;
    plan->open.count = 0;
}

/* Adds `count` more elements, downwards. */
static void extend(struct bucket_cut *plan, size_t count, bool closes)
{
    plan->open.first -= count;
    plan->open.count += count;
    if (closes)
        close_bucket(plan);
}

static void add_whole(struct bucket_cut *plan, size_t count)
{
    bool full = plan->limit > 0 && plan->open.count + count >= wanted(plan);
    extend(plan, count, full);
}

/* Fills the first bucket up; cuts the remainder evenly. */
static void add_pieces(struct bucket_cut *plan, size_t count)
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
    size_t unit = limits->element_bytes ? limits->element_bytes : sizeof(float);
    struct bucket_cut plan = {
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

struct costs {
    const struct bucket_layer *layers;
    size_t layer_count, elements;
    double forward, backward;
};

static struct costs costs_of(const struct bucket_layer *layers, size_t layer_count)
{
    struct costs costs = {.layers = layers, .layer_count = layer_count};
    for (size_t l = 0; l < layer_count; l++) {
        costs.elements += layers[l].count;
        costs.forward += layers[l].forward;
        costs.backward += layers[l].backward;
    }
    return costs;
}

/* The part of a layer that contains its element `at`. */
static size_t part_of(const struct bucket_layer *layer, size_t at)
{
    size_t part = at / ((layer->count + layer->parts - 1) / layer->parts);
    return part < layer->parts ? part : layer->parts - 1;
}

/* The time at which the gradient of element `at` is complete. The backward pass begins at 0. */
static double ready_at(const struct costs *costs, size_t at)
{
    double time = 0;
    size_t end = costs->elements;
    for (size_t l = costs->layer_count; l-- > 0;) {
        const struct bucket_layer *layer = &costs->layers[l];
        size_t first = end - layer->count;
        if (at >= first && at < end) {
            size_t done = layer->parts - part_of(layer, at - first);
            return time + layer->backward * (double)done / (double)layer->parts;
        }
        time += layer->backward;
        end = first;
    }
    return time;
}

/* The time at which the next forward pass first needs an element of the bucket. That element is in
 * the bucket's first layer, whose last part is needed first. */
static double needed_at(const struct costs *costs, const struct bucket *bucket)
{
    double time = costs->backward;
    size_t first = 0, bucket_end = bucket->first + bucket->count;
    for (size_t l = 0; l < costs->layer_count; l++) {
        const struct bucket_layer *layer = &costs->layers[l];
        size_t end = first + layer->count;
        if (bucket->first < end && layer->count > 0) {
            size_t last = (bucket_end < end ? bucket_end : end) - 1 - first;
            size_t before = layer->parts - 1 - part_of(layer, last);
            return time + layer->forward * (double)before / (double)layer->parts;
        }
        time += layer->forward;
        first = end;
    }
    return time;
}

void bucket_order(const struct bucket *buckets, size_t bucket_count,
                  const struct bucket_layer *layers, size_t layer_count, size_t *order)
{
    struct costs costs = costs_of(layers, layer_count);
    double computation = costs.forward + costs.backward, now = 0;
    for (size_t b = 0; b < bucket_count; b++)
        order[b] = b; /* from `used` on: the remaining buckets, in the order of being ready */
    for (size_t used = 0; used < bucket_count; used++) {
        double ready = ready_at(&costs, buckets[order[used]].first);
        now = now > ready ? now : ready;
        size_t best = used;
        double best_needed = (double)INFINITY;
        for (size_t i = used; i < bucket_count; i++) {
            const struct bucket *bucket = &buckets[order[i]];
            double needed = needed_at(&costs, bucket);
            if (ready_at(&costs, bucket->first) <= now && needed < best_needed) {
                best = i;
                best_needed = needed;
            }
        }
        size_t chosen = order[best];
        for (size_t i = best; i > used; i--)
            order[i] = order[i - 1];
        order[used] = chosen;
        if (costs.elements > 0)
            now += computation * (double)buckets[chosen].count / (double)costs.elements;
    }
}
