/*
 * One process that plays all workers in turn: what the distributed runs must equal to the bit, with
 * --reduce-order ring. Each worker has its slice of the batch and its stream of dropout; their
 * gradients are kept apart and then added in the order in which the ring would have added them.
 */
#include "experiments/train/trainer.h"

#include "common/comm/reduce.h"

static enum status play_worker(struct trainer *t, const struct batch *all, size_t worker,
                               struct net_loss *loss)
{
    enum status status = STATUS_OK;
    struct net_step step = {.training = true,
                            .seed = (uint64_t)t->config->seed,
                            .step = t->step,
                            .rank = (uint32_t)worker};
    size_t batch = all->count / t->workers;
    size_t parameters = net_parameter_count(t->net);
    struct net_loss mine;
    feed_put(&t->feed, all, worker * batch, batch);
    feed_gather(&t->feed, FEED_TRAIN, batch);
    TRY(net_forward(t->net, t->feed.images, t->feed.labels, batch, &step, &mine));
    TRY(net_backward(t->net, NULL, NULL));
    TRY(device_download(t->device, t->virtual_gradients + worker * parameters,
                        net_gradients(t->net), parameters * sizeof(float)));
    loss->loss_sum += mine.loss_sum;
    loss->correct += mine.correct;
out:
    return status;
}

static void average(struct trainer *t)
{
    size_t parameters = net_parameter_count(t->net);
    float scale = 1.0f / (float)t->workers;
    for (size_t b = 0; b < t->bucket_count; b++) {
        const struct bucket *bucket = &t->buckets[b];
        for (size_t w = 0; w < t->workers; w++)
            t->virtual_sources[w] = t->virtual_gradients + w * parameters + bucket->first;
        reduce_in_order(t->host + bucket->first, t->virtual_sources, (int)t->workers,
                        (struct reduce_span){.count = bucket->count, .total = bucket->count},
                        t->config->reduce_order, scale);
    }
    device_upload(t->device, net_gradients(t->net), t->host, parameters * sizeof(float));
}

enum status train_step_virtual(struct trainer *t, const struct batch *batch, struct net_loss *loss)
{
    enum status status = STATUS_OK;
    for (size_t worker = 0; worker < t->workers; worker++)
        TRY(play_worker(t, batch, worker, loss));
    average(t);
    train_update(t);
    TRY(device_sync(t->device));
out:
    return status;
}
