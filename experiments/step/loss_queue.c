#include "experiments/step/loss_queue.h"

#include "common/base/status.h"

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

enum status loss_queue_take(struct loss_queue *queue, int ahead, struct net_loss *loss)
{
    enum status status = STATUS_OK;
    while (loss_queue_length(queue) > (uint64_t)ahead) {
        uint64_t slot = queue->taken % LOSS_QUEUE_MAX;
        TRY(device_event_wait(queue->device, queue->done[slot]));
        loss->loss_sum += queue->sums[slot].loss;
        loss->correct += queue->sums[slot].correct;
        queue->taken++;
    }
out:
    return status;
}

uint64_t loss_queue_length(const struct loss_queue *queue)
{
    return queue->put - queue->taken;
}
