/* The state of a run beside the steps: parameters on all ranks, the test, checkpoints. */
#include "experiments/train/trainer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/checkpoint/checkpoint.h"

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
        status = STATUS_PROTOCOL;
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
    if (!t->dataset)
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

/* -------- checkpoints ------------------------------------------------------------------------ */

/* What decides the bits of a run. Holds the texts that the checkpoint's options point to. */
struct description {
    struct checkpoint_option options[16];
    char values[16][OPTIMIZER_TEXT_BYTES];
    struct checkpoint checkpoint; /* all but the arrays */
};

__attribute__((format(printf, 3, 4))) static struct checkpoint_option *
add_option(struct description *run, const char *name, const char *format, ...)
{
    size_t at = run->checkpoint.option_count++;
    va_list arguments;
    CHECK(at < sizeof run->options / sizeof *run->options);
    va_start(arguments, format);
    vsnprintf(run->values[at], sizeof run->values[at], format, arguments);
    va_end(arguments);
    run->options[at] = (struct checkpoint_option){.name = name, .value = run->values[at]};
    return &run->options[at];
}

static void describe(const struct trainer *t, struct description *run)
{
    const struct config *config = t->config;
    bool any_backend = config->reduce_order == REDUCE_ORDER_RING; /* gives the same bits */
    run->checkpoint = (struct checkpoint){
        .model = config_model_name(config),
        .optimizer = optimizer_kind_names[config->optimizer],
        .seed = (uint64_t)config->seed,
        .epoch = t->step / t->steps_per_epoch,
        .step = t->step % t->steps_per_epoch,
        .trained_ns = (uint64_t)(t->report.trained_s * (double)NS_PER_S),
        .weight_count = net_parameter_count(t->net),
        .options = run->options,
    };
    optimizer_state(t->optimizer, &run->checkpoint.state_count);
    add_option(run, "workers", "%zu", t->workers)->advice = "start as many workers";
    add_option(run, "batch", "%" PRId64, config->batch);
    add_option(run, "lr", "%.9g", t->lr.peak);
    add_option(run, "lr-schedule", "%s", lr_shape_names[t->lr.shape]);
    add_option(run, "warmup", "%" PRIu64 " steps from %.9g", t->lr.warmup_steps, t->lr.start)
        ->advice = "give the --warmup-epochs and --lr-scale of that run";
    add_option(run, "unsharded", "%s", config->unsharded ? "true" : "false")->advice =
        "give --unsharded to both or to none";
    add_option(run, "optimizer-options", "%s", t->optimizer_text)->advice = "give the same";
    add_option(run, "dataset", "%s", t->dataset->name)->advice =
        "name that data set's folder with --data";
    /* The learning rate of a step depends on how many there are to be. */
    add_option(run, "steps", "%" PRIu64, t->total_steps)->advice =
        "give the --epochs and --steps of that run";
    /* Sums depend on their order, and the ring's on where chunks begin and end. */
    add_option(run, "reduce-order", "%s", config_reduce_order_name(config));
    add_option(run, "bucket-mb", "%.9g", config->bucket_mb);
    add_option(run, "compress", "%s", compress_names[config->compress]);
    add_option(run, "error-feedback", "%s", config_error_feedback_name(config));
    /* Another sum's order, another processor: other bits, but the same training. */
    add_option(run, "backend", "%s", any_backend ? "any" : t->backend->name)->may_differ = true;
    add_option(run, "device", "%s", config_device_name(config))->may_differ = true;
    add_option(run, "tf32", "%s", config->tf32 ? "on" : "off")->may_differ = true;
}

enum status train_save(const struct trainer *t)
{
    enum status status = STATUS_OK;
    struct description run;
    struct checkpoint *checkpoint = &run.checkpoint;
    float *weights = NULL;
    if (!t->checkpoint_path)
        return STATUS_OK;
    describe(t, &run);
    size_t weight_bytes = checkpoint->weight_count * sizeof(float);
    weights = malloc(weight_bytes);
    if (!weights) {
        log_error("%s: no memory to copy the weights", t->checkpoint_path);
        return STATUS_NO_MEMORY;
    }
    TRY(device_download(t->device, weights, net_parameters(t->net), weight_bytes));
    TRY(device_download(t->device, t->host, optimizer_state(t->optimizer, &checkpoint->state_count),
                        checkpoint->state_count * sizeof(float)));
    checkpoint->weights = weights;
    checkpoint->state = checkpoint->state_count > 0 ? t->host : NULL;
    TRY(checkpoint_save(t->checkpoint_path, checkpoint));
out:
    free(weights);
    return status;
}

enum status train_load(struct trainer *t)
{
    enum status status = STATUS_OK;
    struct description run;
    struct checkpoint *loaded = NULL;
    if (t->config->resume == CONFIG_RESUME_AUTO && access(t->checkpoint_path, F_OK) != 0 &&
        errno == ENOENT) {
        log_info("%s: not there yet, starts anew", t->checkpoint_path);
        return STATUS_OK;
    }
    describe(t, &run);
    TRY(checkpoint_load(&loaded, t->checkpoint_path));
    TRY(checkpoint_check(loaded, &run.checkpoint, t->checkpoint_path));
    device_upload(t->device, net_parameters(t->net), loaded->weights,
                  loaded->weight_count * sizeof(float));
    device_upload(t->device, optimizer_state(t->optimizer, &run.checkpoint.state_count),
                  loaded->state, loaded->state_count * sizeof(float));
    t->step = loaded->epoch * t->steps_per_epoch + loaded->step;
    t->report.trained_s = (double)loaded->trained_ns / (double)NS_PER_S;
    if (strcmp(config_error_feedback_name(t->config), "on") == 0)
        log_warn(
            "--resume: rounding errors that --error-feedback carries from step to step are not "
            "in a checkpoint; the run continues without those of its last step, so not to "
            "the same bits");
    TRY(device_sync(t->device));
out:
    checkpoint_free(&loaded);
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
out:
    return status;
}
