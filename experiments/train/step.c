/* One training step of one process, from top to bottom: a real one, and one of --compute paced. */
#include <string.h>

#include "common/base/clock.h"
#include "common/base/range.h"
#include "common/base/status.h"
#include "experiments/config/backends.h"
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

/* Asks for the loss of the last net_forward. */
static void loss_queue_put(struct loss_queue *queue, struct net *net)
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

/* -------- a worker that computes longer ------------------------------------------------------- */

void straggler_init(struct straggler *straggler, double factor, double least_ms)
{
    *straggler =
        (struct straggler){.factor = factor, .least_ns = (int64_t)(least_ms * (double)NS_PER_MS)};
}

static bool is_none(const struct straggler *straggler)
{
    return straggler->factor <= 1 && straggler->least_ns == 0;
}

/* A step begins; no part of it has been blocked. */
static void straggler_begin(struct straggler *straggler)
{
    if (is_none(straggler))
        return;
    straggler->computed_ns = straggler->blocked_ns = 0;
    straggler->since_ns = clock_now_ns();
}

/* Waits for the device, then until computing would have come as far. `blocked_ns`: of the step,
 * spent waiting for others. `last`: the step has no more to compute. */
static void straggler_delay(struct straggler *straggler, struct device *device, int64_t blocked_ns,
                            bool last)
{
    if (is_none(straggler))
        return;
    device_sync(device); /* whatever it fails with, the step finds out */
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

/* -------- the batch --------------------------------------------------------------------------- */

/* What is between these two counts as waiting for data. */
static int64_t begin_data(const char *name)
{
    int64_t start_ns = clock_now_ns();
    range_begin_at(name, &(struct range_about){.kind = RANGE_DATA}, start_ns);
    return start_ns;
}

static void end_data(struct trainer *t, int64_t start_ns)
{
    int64_t now_ns = clock_now_ns();
    t->data_ns += now_ns - start_ns;
    range_end_at(now_ns);
}

size_t train_next_batch(struct trainer *t)
{
    /* A look-up by the device costs less than to ask. */
    bool loads = t->config->loaders == 0 && augments(&t->config->augmentation);
    int64_t start_ns = begin_data("next batch"), ran_ns = loads ? clock_thread_ns() : 0;
    size_t count = batches_next(&t->batches, BATCHES_TRAIN);
    t->loaded_ns += loads ? clock_thread_ns() - ran_ns : 0;
    end_data(t, start_ns);
    /* A device that is still at earlier ones is not waited for as data. */
    batches_upload(&t->batches);
    return count;
}

void train_gather(struct trainer *t, size_t first, size_t count)
{
    int64_t start_ns = begin_data("data");
    batches_gather(&t->batches, BATCHES_TRAIN, first, count);
    end_data(t, start_ns);
}

/* -------- the step ---------------------------------------------------------------------------- */

/* Gradients are complete in the range: of a straggler, later. The first layer's are the last. */
static void start_buckets(void *context, size_t first, size_t count)
{
    struct trainer *t = context;
    straggler_delay(&t->straggler, t->device, t->sync.blocked_ns, first == 0);
    gradient_sync_start(&t->sync, first, count);
}

/*
 * What a step asks of the device. Nothing is uploaded and, where no other process takes part,
 * nothing waited for: so a device may record it and repeat it without calling this again. It may
 * also call it once more for the same step, after a recording that failed: so what a step leaves
 * on the host is reset here.
 */
static enum status enqueue_step(void *context)
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
    gradient_sync_begin(&t->sync);
    straggler_begin(&t->straggler);
    train_gather(t, 0, batch);
    TRY(net_forward(t->net, t->batches.images, t->batches.labels, batch, &step, NULL));
    TRY(net_backward(t->net, start_buckets, t));
    TRY(gradient_sync_end(&t->sync, trainer_lr(t)));
out:
    return status;
}

/* A step in which this worker has no image: its part of the sum is zero. */
static enum status contribute_zero_gradient(struct trainer *t)
{
    enum status status = STATUS_OK;
    size_t count = net_parameter_count(t->net);
    TRY(gradient_sync_finish(&t->sync)); /* what the step before has deferred to a forward pass */
    gradient_sync_begin(&t->sync);
    memset(t->host, 0, count * sizeof *t->host);
    device_upload(t->device, net_gradients(t->net), t->host, count * sizeof *t->host);
    TRY(device_sync(t->device));
    gradient_sync_start_layers(&t->sync);
    TRY(gradient_sync_end(&t->sync, trainer_lr(t)));
out:
    return status;
}

enum status train_step_real(struct trainer *t, struct net_loss *loss)
{
    enum status status = STATUS_OK;
    size_t count = train_next_batch(t);
    bool whole = count == (size_t)t->config->batch;
    CHECK(whole || trainer_joins(t));
    t->step_images = count;
    if (count == 0)
        return contribute_zero_gradient(t);
    /* The device gets these together with the batch, in one upload, and not in a recording. */
    net_set_step(t->net, t->step);
    optimizer_set_lr(t->optimizer, trainer_lr(t));
    TRY(t->backend->graph_capturable && whole ? device_repeat(t->device, enqueue_step, t)
                                              : enqueue_step(t));
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
        train_gather(t, 0, train_next_batch(t));
    return pace_step(&t->sync, t->config->paced_ms * t->straggler.factor);
}
