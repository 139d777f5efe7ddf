/* The state of a run beside the steps: parameters on all ranks, the test. */
#include "experiments/train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/comm/comm.h"

/* -------- parameters ------------------------------------------------------------------------- */

/* (count) floats of device memory from worker 0 to all. */
static enum status share(struct trainer *t, float *data, size_t count)
{
    enum status status = STATUS_OK;
    TRY(device_download(t->device, t->host, data, count * sizeof *data));
    TRY(comm_broadcast(t->exchange.comm, t->host, count));
    device_upload(t->device, data, t->host, count * sizeof *data);
    TRY(device_sync(t->device));
out:
    return status;
}

enum status train_check_weights(struct trainer *t)
{
    enum status status = STATUS_OK;
    size_t bytes = net_parameter_count(t->net) * sizeof(float);
    int workers = comm_workers(t->exchange.comm);
    const float *data = t->config->paced ? net_gradients(t->net) : net_parameters(t->net);
    char(*all)[SHA256_HEX_SIZE] = calloc((size_t)workers, sizeof *all);
    if (!all) {
        log_error("no memory for the weights' sums of %d workers", workers);
        return STATUS_NO_MEMORY;
    }
    TRY(device_download(t->device, t->host, data, bytes));
    TRY(sha256_hex(t->host, bytes, t->report.weights_sha256));
    TRY(world_gather(t->world, comm_group(t->exchange.comm), t->report.weights_sha256,
                     SHA256_HEX_SIZE, all));
    for (int w = 1; w < workers; w++) {
        if (strcmp(all[w], all[0]) == 0)
            continue;
        if (trainer_rank(t) == 0)
            log_error("after step %llu the %s of worker %d (SHA-256 %.12s...) differ from those of "
                      "worker 0 (%.12s...): --backend %s did not give all workers the same result; "
                      "the run is of no use, please report it",
                      (unsigned long long)t->step, t->config->paced ? "gradients" : "weights", w,
                      all[w], all[0], t->backend->name);
        status = STATUS_WRONG;
        break;
    }
out:
    free(all);
    return status;
}

/* -------- test ------------------------------------------------------------------------------- */

/* Every worker takes a share of the test set; paced runs train nothing that could be tested. */
enum status train_test(struct trainer *t, struct test_result *result)
{
    enum status status = STATUS_OK;
    struct net_step step = {.training = false};
    size_t count;
    double sums[3] = {0}; /* loss, correct, images */
    *result = (struct test_result){NAN, NAN};
    if (t->config->paced)
        return STATUS_OK;
    progress_clear(&t->report.progress);
    batches_start_epoch(&t->batches, BATCHES_TEST, 0, 0);
    while ((count = batches_next(&t->batches, BATCHES_TEST)) > 0) {
        struct net_loss loss;
        batches_gather(&t->batches, BATCHES_TEST, 0, count);
        TRY(net_forward(t->net, t->batches.images, t->batches.labels, count, &step, &loss));
        sums[0] += loss.loss_sum;
        sums[1] += (double)loss.correct;
        sums[2] += (double)count;
    }
    TRY(world_sum(t->world, comm_group(t->exchange.comm), sums, 3));
    *result = (struct test_result){sums[0] / sums[2], sums[1] / sums[2]};
out:
    return status;
}

/* An accuracy is a fraction of the images, the target per cent: both are rounded, but to less than
 * an image. */
bool train_on_target(const struct trainer *t, const struct test_result *result)
{
    double target = t->config->target_accuracy;
    return target > 0 && 100 * result->accuracy > target - 1e-9;
}

/* -------- at the start ------------------------------------------------------------------------ */

/* What the averaging carried when the checkpoint was written. */
static enum status share_carried(struct trainer *t)
{
    enum status status = STATUS_OK;
    struct checkpoint none = {0};
    const struct checkpoint *resumed = t->resumed ? t->resumed : &none;
    bool fits;
    TRY(comm_state_write(t->exchange.comm, resumed->carried, resumed->carried_count, &fits));
    if (!fits && resumed->carried_count > 0)
        log_warn("--resume: what --error-feedback has carried is of other length than here, and "
                 "dropped; the weights are those of the checkpoint");
    checkpoint_free(&t->resumed);
out:
    return status;
}

enum status train_share_state(struct trainer *t)
{
    enum status status = STATUS_OK;
    size_t state_count;
    TRY(share(t, net_parameters(t->net), net_parameter_count(t->net)));
    if ((!t->config->resume && !t->generation) || !t->optimizer)
        return STATUS_OK;
    float *state = optimizer_state(t->optimizer, &state_count);
    TRY(share(t, state, state_count));
    TRY(world_broadcast(t->world, comm_group(t->exchange.comm), &t->step, sizeof t->step));
    if (t->config->resume)
        TRY(share_carried(t));
out:
    return status;
}
