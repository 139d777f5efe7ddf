/* One training step of one process: computed (real), or waited for (paced). */
#include "experiments/train/trainer.h"

#include "common/base/check.h"
#include "common/base/clock.h"
#include "experiments/config/backends.h"

/* -------- real ------------------------------------------------------------------------------- */

/* What a step asks of the device. Nothing is uploaded and, where no other process takes part,
 * nothing waited for: so it can be recorded and repeated. */
static enum status ask_for_step(void *context)
{
    enum status status = STATUS_OK;
    struct trainer *t = context;
    size_t batch = (size_t)t->config->batch;
    struct net_step step = {.training = true,
                            .seed = (uint64_t)t->config->seed,
                            .step = t->step,
                            .rank = (uint32_t)trainer_rank(t)};
    feed_gather(&t->feed, FEED_TRAIN, batch);
    TRY(net_forward(t->net, t->feed.images, t->feed.labels, batch, &step, NULL));
    TRY(t->exchange.status); /* of what train_need waited for */
    TRY(net_backward(t->net, train_start_buckets, t));
    TRY(train_end_step(t));
out:
    return status;
}

enum status train_step_real(struct trainer *t, const struct batch *batch, struct net_loss *loss)
{
    enum status status = STATUS_OK;
    CHECK(batch->count == (size_t)t->config->batch);
    feed_put(&t->feed, batch, 0, batch->count);
    net_set_step(t->net, t->step);
    optimizer_set_lr(t->optimizer, (float)lr_at(&t->lr, t->step));
    TRY(t->config->backend == BACKEND_NONE ? device_repeat(t->device, ask_for_step, t)
                                           : ask_for_step(t));
    loss_queue_put(&t->losses, t->net);
    TRY(loss_queue_take(&t->losses, device_steps_ahead(t->device), loss));
out:
    return status;
}

enum status train_settle(struct trainer *t)
{
    enum status status = STATUS_OK;
    struct net_loss loss = {0};
    uint64_t steps = loss_queue_length(&t->losses);
    if (steps == 0)
        return STATUS_OK;
    TRY(loss_queue_take(&t->losses, 0, &loss));
    t->interval.loss_sum += loss.loss_sum;
    t->interval.losses += steps;
    t->interval.ended_ns = clock_now_ns();
out:
    return status;
}

/* -------- paced ------------------------------------------------------------------------------ */

enum pass { FORWARD, BACKWARD };

/* Waits for the time of a layer's pass, which needs its parameters, or makes its gradient final,
 * part by part. *deadline_ns: when what was before it had ended, and when it has. */
static void pace_layer(struct trainer *t, const struct net_layer *layer, enum pass pass,
                       double pass_ns, double *deadline_ns)
{
    size_t parts = layer->gradient_parts, end = layer->count;
    for (size_t part = parts; part-- > 0;) {
        int64_t blocked_ns = t->exchange.blocked_ns;
        size_t first = layer->count / parts * part;
        if (pass == FORWARD && layer->count > 0)
            train_need(t, layer->first + first, end - first);
        *deadline_ns += pass_ns / (double)parts + (double)(t->exchange.blocked_ns - blocked_ns);
        clock_sleep_until_ns((int64_t)*deadline_ns);
        blocked_ns = t->exchange.blocked_ns;
        if (pass == BACKWARD && layer->count > 0)
            train_start_buckets(t, layer->first + first, end - first);
        *deadline_ns += (double)(t->exchange.blocked_ns - blocked_ns); /* no computing meanwhile */
        end = first;
    }
}

/*
 * Waits as long as computing would take, layer by layer in proportion to their operations, so that
 * buckets are complete, and needed, when they would be. The gradients are those set once by
 * trainer_open; from the first average on they are the same on all ranks and stay what they are.
 */
enum status train_step_paced(struct trainer *t, const struct batch *batch, struct net_loss *loss)
{
    size_t layer_count;
    const struct net_layer *layers = net_layers(t->net, &layer_count);
    double flops = 0, deadline_ns = (double)clock_now_ns();
    for (size_t l = 0; l < layer_count; l++)
        flops += layers[l].forward_flops + layers[l].backward_flops;
    double ns_per_flop = t->config->paced_ms * (double)NS_PER_MS / flops;
    for (size_t l = 0; l < layer_count; l++)
        pace_layer(t, &layers[l], FORWARD, layers[l].forward_flops * ns_per_flop, &deadline_ns);
    for (size_t l = layer_count; l-- > 0;)
        pace_layer(t, &layers[l], BACKWARD, layers[l].backward_flops * ns_per_flop, &deadline_ns);
    (void)batch;
    (void)loss;
    return train_end_step(t);
}
