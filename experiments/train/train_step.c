/* One training step of one process, from top to bottom: a real one, and one of --compute paced. */
#include "experiments/train/trainer.h"

#include <string.h>

#include "common/base/status.h"
#include "experiments/config/backends.h"
#include "experiments/step/pace.h"

/* Gradients are complete in the range: of a straggler, later. The first layer's are the last. */
static void start_buckets(void *context, size_t first, size_t count)
{
    struct trainer *t = context;
    straggler_delay(&t->straggler, t->device, t->exchange.blocked_ns, first == 0);
    exchange_start(&t->exchange, first, count);
}

/*
 * What a step asks of the device. Nothing is uploaded and, where no other process takes part,
 * nothing waited for: so a device may record it and repeat it without calling this again. It may
 * also call it once more for the same step, after a recording that failed: so what a step leaves
 * on the host is reset here.
 */
static enum status ask_for_step(void *context)
{
    enum status status = STATUS_OK;
    struct trainer *t = context;
    size_t batch = (size_t)t->step_images;
    /* Of the mean of all, times the workers, of whom the exchange makes the mean. */
    double world = t->config->unsharded ? 1 : (double)t->workers;
    struct net_step step = {.training = true,
                            .seed = (uint64_t)t->config->seed,
                            .step = t->step,
                            .rank = (uint32_t)trainer_rank(t),
                            .divisor = (double)batches_of_all(&t->batches) / world};
    exchange_begin(&t->exchange);
    straggler_begin(&t->straggler);
    trainer_gather(t, 0, batch);
    TRY(net_forward(t->net, t->batches.images, t->batches.labels, batch, &step, NULL));
    TRY(net_backward(t->net, start_buckets, t));
    TRY(exchange_end(&t->exchange, trainer_lr(t)));
out:
    return status;
}

/* A step in which this worker has no image: its part of the sum is zero. */
static enum status take_part(struct trainer *t)
{
    enum status status = STATUS_OK;
    size_t count = net_parameter_count(t->net);
    TRY(exchange_finish(&t->exchange)); /* what the step before has deferred to a forward pass */
    exchange_begin(&t->exchange);
    memset(t->host, 0, count * sizeof *t->host);
    device_upload(t->device, net_gradients(t->net), t->host, count * sizeof *t->host);
    TRY(device_sync(t->device));
    exchange_start_layers(&t->exchange);
    TRY(exchange_end(&t->exchange, trainer_lr(t)));
out:
    return status;
}

enum status train_step_real(struct trainer *t, struct net_loss *loss)
{
    enum status status = STATUS_OK;
    size_t count = trainer_next_batch(t);
    bool whole = count == (size_t)t->config->batch;
    CHECK(whole || trainer_joins(t));
    t->step_images = count;
    if (count == 0)
        return take_part(t);
    net_set_step(t->net, t->step);
    optimizer_set_lr(t->optimizer, trainer_lr(t));
    TRY(t->backend->graph_capturable && whole ? device_repeat(t->device, ask_for_step, t)
                                              : ask_for_step(t));
    loss_queue_put(&t->losses, t->net);
    TRY(loss_queue_take(&t->losses, device_steps_ahead(t->device), loss));
out:
    return status;
}

/* Images are loaded, for nothing but the time, where there are any; gradients are trainer_open's.
 */
enum status train_step_paced(struct trainer *t, struct net_loss *loss)
{
    (void)loss;
    if (t->dataset)
        trainer_gather(t, 0, trainer_next_batch(t));
    return pace_step(&t->exchange, t->config->paced_ms * t->straggler.factor);
}
