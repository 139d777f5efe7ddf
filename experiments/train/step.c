/*
 * Variants of a training step (train.c): losses that the device still has to compute, a worker that
 * computes longer, the steps of --compute paced and --virtual-workers.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/range.h"
#include "common/base/status.h"
#include "common/comm/reduce.h"
#include "experiments/train/gradient_sync.h"
#include "experiments/train/trainer.h"

/* -------- losses on their way from the device ------------------------------------------------- */

enum status loss_queue_open(struct loss_queue *queue, struct device *device)
{
    enum status status = STATUS_OK;
    void *memory;
    *queue = (struct loss_queue){.device = device};
    CHECK(device_steps_ahead(device) < LOSS_QUEUE_MAX);
    TRY(device_host_alloc(device, "losses", LOSS_QUEUE_MAX * sizeof *queue->sums, &memory));
    queue->sums = memory;
    for (int i = 0; i < LOSS_QUEUE_MAX; i++)
        TRY(device_event_new(device, &queue->done[i]));
out:
    return status;
}

void loss_queue_close(struct loss_queue *queue)
{
    if (!queue->device)
        return;
    for (int i = 0; i < LOSS_QUEUE_MAX; i++)
        device_event_free(queue->device, &queue->done[i]);
    device_host_free(queue->device, queue->sums);
    *queue = (struct loss_queue){0};
}

void loss_queue_put(struct loss_queue *queue, struct net *net)
{
    CHECK(loss_queue_length(queue) < LOSS_QUEUE_MAX);
    uint64_t slot = queue->put++ % LOSS_QUEUE_MAX;
    net_download_loss(net, &queue->sums[slot]);
    device_event_record(queue->device, queue->done[slot], NULL);
}

enum status loss_queue_take(struct loss_queue *queue, int ahead, struct loss_sum *loss)
{
    enum status status = STATUS_OK;
    while (loss_queue_length(queue) > (uint64_t)ahead) {
        uint64_t slot = queue->taken % LOSS_QUEUE_MAX;
        TRY(device_event_wait(queue->device, queue->done[slot]));
        loss->loss += queue->sums[slot].loss;
        loss->correct += queue->sums[slot].correct;
        queue->taken++;
    }
out:
    return status;
}

/* -------- a worker that computes longer ------------------------------------------------------- */

void straggler_init(struct straggler *straggler, double factor, double least_ms)
{
    *straggler = (struct straggler){.delays = factor > 1 || least_ms > 0,
                                    .factor = factor,
                                    .least_ns = (int64_t)(least_ms * (double)NS_PER_MS)};
}

void straggler_begin(struct straggler *straggler)
{
    straggler->computed_ns = straggler->blocked_ns = 0;
    straggler->since_ns = clock_now_ns();
}

void straggler_delay(struct straggler *straggler, struct device *device, int64_t blocked_ns,
                     bool last)
{
    device_sync(device); /* the step finds an error later */
    int64_t now_ns = clock_now_ns();
    int64_t computed_ns = now_ns - straggler->since_ns - (blocked_ns - straggler->blocked_ns);
    straggler->computed_ns += computed_ns;
    double wait_ns = (straggler->factor - 1) * (double)computed_ns;
    if (last && straggler->computed_ns < straggler->least_ns)
        wait_ns += straggler->factor * (double)(straggler->least_ns - straggler->computed_ns);
    clock_sleep_until_ns(now_ns + (int64_t)wait_ns);
    straggler->since_ns = clock_now_ns();
    straggler->blocked_ns = blocked_ns;
}

/* -------- a step that only waits -------------------------------------------------------------- */

/* Loads a batch, if there is a data set, only for its cost. trainer_open filled the gradients
 * once. */
enum status train_step_paced(struct trainer *t, struct loss_sum *loss)
{
    (void)loss;
    t->step_images = trainer_step_images(t);
    if (t->dataset)
        batches_gather(&t->batches, BATCHES_TRAIN, 0, batches_next(&t->batches, BATCHES_TRAIN));
    return pace_step(&t->sync, t->config->train.paced_ms * t->straggler.factor);
}

/* -------- a step of virtual workers ----------------------------------------------------------- */

/*
 * One process that plays all workers in turn. With --reduce-order ring, distributed runs must equal
 * it to the bit. Each worker has its slice of the batch and its own dropout stream. The workers'
 * gradients are kept separate and then added in the ring's order.
 */

enum status train_virtual_open(struct trainer *t)
{
    t->virtual.gradients = calloc(t->workers * net_parameter_count(t->net), sizeof(float));
    t->virtual.sources = calloc(t->workers, sizeof *t->virtual.sources);
    if (t->virtual.gradients && t->virtual.sources)
        return STATUS_OK;
    return FAIL(STATUS_NO_MEMORY, "no memory for the gradients of all virtual workers");
}

void train_virtual_close(struct trainer *t)
{
    free(t->virtual.gradients);
    free(t->virtual.sources);
    t->virtual = (struct virtual_workers){0};
}

static enum status play_worker(struct trainer *t, size_t worker, struct loss_sum *loss)
{
    enum status status = STATUS_OK;
    struct net_step step = {.training = true,
                            .seed = (uint64_t)t->config->seed,
                            .step = t->step,
                            .rank = (uint32_t)worker,
                            .divisor = (double)t->step_images / (double)t->workers};
    struct chunk part = chunk_of((size_t)t->step_images, t->workers, worker);
    size_t parameters = net_parameter_count(t->net);
    struct loss_sum mine;
    if (part.count == 0) {
        memset(t->virtual.gradients + worker * parameters, 0, parameters * sizeof(float));
        return STATUS_OK;
    }
    batches_gather(&t->batches, BATCHES_TRAIN, part.offset, part.count);
    TRY(net_forward(t->net, t->batches.images, t->batches.labels, part.count, &step, &mine));
    TRY(net_backward(t->net, NULL, NULL));
    TRY(device_download(t->device, t->virtual.gradients + worker * parameters,
                        net_gradients(t->net), parameters * sizeof(float)));
    loss->loss += mine.loss;
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

enum status train_step_virtual(struct trainer *t, struct loss_sum *loss)
{
    enum status status = STATUS_OK;
    t->step_images = batches_next(&t->batches, BATCHES_TRAIN);
    for (size_t worker = 0; worker < t->workers; worker++)
        TRY(play_worker(t, worker, loss));
    average(t);
    optimizer_step(t->optimizer, net_parameters(t->net), net_gradients(t->net), t->step_lr);
    TRY(device_sync(t->device));
out:
    return status;
}
