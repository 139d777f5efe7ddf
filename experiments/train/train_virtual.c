/*
 * One process that plays all workers in turn: what the distributed runs must equal to the bit, with
 * --reduce-order ring. Each worker has its slice of the batch and its stream of dropout; their
 * gradients are kept apart and then added in the order in which the ring would have added them.
 */
#include "experiments/train/trainer.h"

#include <stdlib.h>
#include <string.h>

#include "common/comm/reduce.h"

enum status train_virtual_open(struct trainer *t)
{
    t->virtual.gradients = calloc(t->workers * net_parameter_count(t->net), sizeof(float));
    t->virtual.sources = calloc(t->workers, sizeof *t->virtual.sources);
    if (t->virtual.gradients && t->virtual.sources)
        return STATUS_OK;
    log_error("no memory for the gradients of all virtual workers");
    return STATUS_NO_MEMORY;
}

void train_virtual_close(struct trainer *t)
{
    free(t->virtual.gradients);
    free(t->virtual.sources);
    t->virtual = (struct virtual_workers){0};
}

static enum status play_worker(struct trainer *t, size_t worker, struct net_loss *loss)
{
    enum status status = STATUS_OK;
    struct net_step step = {.training = true,
                            .seed = (uint64_t)t->config->seed,
                            .step = t->step,
                            .rank = (uint32_t)worker,
                            .divisor = (double)t->step_images / (double)t->workers};
    struct chunk part = chunk_of((size_t)t->step_images, t->workers, worker);
    size_t parameters = net_parameter_count(t->net);
    struct net_loss mine;
    if (part.count == 0) {
        memset(t->virtual.gradients + worker * parameters, 0, parameters * sizeof(float));
        return STATUS_OK;
    }
    train_gather(t, part.offset, part.count);
    TRY(net_forward(t->net, t->batches.images, t->batches.labels, part.count, &step, &mine));
    TRY(net_backward(t->net, NULL, NULL));
    TRY(device_download(t->device, t->virtual.gradients + worker * parameters,
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
    for (size_t b = 0; b < t->sync.count; b++) {
        const struct bucket *bucket = &t->sync.buckets[b];
        for (size_t w = 0; w < t->workers; w++)
            t->virtual.sources[w] = t->virtual.gradients + w * parameters + bucket->first;
        reduce_in_order(t->host + bucket->first, t->virtual.sources, (int)t->workers,
                        (struct reduce_span){.count = bucket->count, .total = bucket->count},
                        t->config->reduce_order, scale);
    }
    device_upload(t->device, net_gradients(t->net), t->host, parameters * sizeof(float));
}

enum status train_step_virtual(struct trainer *t, struct net_loss *loss)
{
    enum status status = STATUS_OK;
    t->step_images = train_next_batch(t);
    for (size_t worker = 0; worker < t->workers; worker++)
        TRY(play_worker(t, worker, loss));
    average(t);
    optimizer_step(t->optimizer, net_parameters(t->net), net_gradients(t->net), trainer_lr(t));
    TRY(device_sync(t->device));
out:
    return status;
}
