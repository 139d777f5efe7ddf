/*
 * The communication of training steps: buckets start as the backward pass completes them. Then the
 * step waits for all; or the next one does, each bucket before its forward pass needs it:
 *
 *     compute   |forward 1|backward 1       |forward 2|backward 2       |
 *     network             [2 ][1a ][0][1b  ]          [2 ][1a ][0][1b  ]
 *
 * A bucket's gradients are averaged and applied before its parameters are read, so before the
 * backward pass overwrites them, and with the numbers that waiting for all would have given. What
 * reads weights (tests, checkpoints, sums) comes after steps that wait for all.
 */
#include "experiments/train/trainer.h"

#include "common/base/check.h"
#include "common/base/clock.h"
#include "experiments/config/backends.h"

bool train_may_defer(const struct trainer *t)
{
    return t->bucket_count > 1 && t->config->backend != BACKEND_NONE &&
           t->config->virtual_workers == 0 && !t->backend->updates_on_server &&
           device_memory_is_host(t->device);
}

/* Buckets are complete that begin in the range or beyond. */
void train_start_buckets(void *context, size_t first, size_t count)
{
    struct trainer *t = context;
    struct exchange *exchange = &t->exchange;
    (void)count;
    while (exchange->status == STATUS_OK && exchange->started < t->bucket_count &&
           first <= t->buckets[exchange->started].first) {
        int64_t now_ns = clock_now_ns();
        size_t bucket = exchange->started++;
        CHECK(!t->pending[bucket]);
        t->pending[bucket] = true;
        exchange->status =
            comm_start(t->comm, bucket, net_gradients(t->net) + t->buckets[bucket].first);
        exchange->blocked_ns += clock_now_ns() - now_ns;
    }
}

static enum status wait_for_bucket(struct trainer *t, size_t bucket)
{
    int64_t start_ns = clock_now_ns();
    enum status status = comm_wait(t->comm, bucket);
    t->pending[bucket] = false;
    t->exchange.blocked_ns += clock_now_ns() - start_ns;
    return status;
}

static enum status finish_bucket(struct trainer *t, size_t b)
{
    enum status status = STATUS_OK;
    TRY(wait_for_bucket(t, b));
    if (t->optimizer)
        optimizer_step_range(t->optimizer, t->buckets[b].first, t->buckets[b].count,
                             net_parameters(t->net), net_gradients(t->net), t->pending_lr);
out:
    return status;
}

void train_need(void *context, size_t first, size_t count)
{
    struct trainer *t = context;
    for (size_t b = 0; b < t->bucket_count; b++) {
        const struct bucket *bucket = &t->buckets[b];
        if (t->exchange.status == STATUS_OK && t->pending[b] && bucket->first < first + count &&
            first < bucket->first + bucket->count)
            t->exchange.status = finish_bucket(t, b);
    }
}

enum status train_finish_buckets(struct trainer *t)
{
    enum status status = STATUS_OK;
    for (size_t b = 0; b < t->bucket_count; b++) {
        if (t->pending[b])
            TRY(finish_bucket(t, b));
    }
out:
    return status;
}

void train_update(struct trainer *t)
{
    float lr = (float)lr_at(&t->lr, t->step);
    optimizer_step(t->optimizer, net_parameters(t->net), net_gradients(t->net), lr);
}

enum status train_end_step(struct trainer *t)
{
    enum status status = STATUS_OK;
    TRY(t->exchange.status);
    CHECK(t->exchange.started == t->bucket_count);
    t->pending_lr = (float)lr_at(&t->lr, t->step);
    if (t->defers)
        return t->exchange.finishes ? train_finish_buckets(t) : STATUS_OK;
    for (size_t b = 0; b < t->bucket_count; b++)
        TRY(wait_for_bucket(t, b));
    if (t->optimizer)
        train_update(t);
out:
    return status;
}
