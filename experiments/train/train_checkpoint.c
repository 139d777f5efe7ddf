/* The position of a run in steps, epochs and images. Pure functions of the step, and
 * in an elastic job also of the position at which this generation began. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/checkpoint/checkpoint.h"
#include "common/comm/comm.h"
#include "experiments/config/backends.h"
#include "experiments/train/trainer.h"

/* Steps of this generation's first epoch: all, or what earlier generations left. */
static uint64_t first_steps(const struct trainer *t)
{
    uint64_t images = t->dataset ? t->dataset->train.count : TRAINER_PACED_IMAGES;
    if (t->start.epoch_images == 0)
        return t->steps_per_epoch;
    if (images <= t->start.epoch_images)
        return 0;
    return (images - t->start.epoch_images) / t->workers / (uint64_t)t->config->batch;
}

static uint64_t images_of(const struct trainer *t, uint64_t steps)
{
    return steps * t->workers * (uint64_t)t->config->batch;
}

/* For --last-batch partial, where an epoch's last step is shorter. Not in an elastic job. */
static uint64_t images_of_epoch(const struct trainer *t)
{
    return t->dataset->train.count * (t->config->train.no_shard ? t->workers : 1);
}

uint64_t trainer_images(const struct trainer *t)
{
    if (trainer_joins(t))
        return trainer_epoch(t, t->step) * images_of_epoch(t) +
               trainer_epoch_images(t, trainer_epoch(t, t->step));
    return t->start.images + images_of(t, t->step - t->start.step);
}

uint64_t trainer_epoch_images(const struct trainer *t, uint64_t epoch)
{
    uint64_t before = epoch == t->start.epoch ? t->start.epoch_images : 0;
    return before + images_of(t, t->step - trainer_epoch_begin(t, epoch));
}

uint64_t trainer_epoch(const struct trainer *t, uint64_t step)
{
    uint64_t end = t->start.step + first_steps(t);
    return step < end ? t->start.epoch : t->start.epoch + 1 + (step - end) / t->steps_per_epoch;
}

uint64_t trainer_epoch_begin(const struct trainer *t, uint64_t epoch)
{
    if (epoch <= t->start.epoch)
        return t->start.step;
    return t->start.step + first_steps(t) + (epoch - t->start.epoch - 1) * t->steps_per_epoch;
}

/* -------- parameters -------------------------------------------------------------------------- */

/* Broadcasts (count) floats of device memory from worker 0. */
static enum status share(struct trainer *t, float *data, size_t count)
{
    enum status status = STATUS_OK;
    TRY(device_download(t->device, t->host, data, count * sizeof *data));
    TRY(comm_broadcast(t->sync.comm, t->host, count));
    device_upload(t->device, data, t->host, count * sizeof *data);
    TRY(device_sync(t->device));
out:
    return status;
}

enum status train_check_weights(struct trainer *t)
{
    enum status status = STATUS_OK;
    size_t bytes = net_parameter_count(t->net) * sizeof(float);
    int workers = comm_workers(t->sync.comm);
    const float *data = t->config->train.paced ? net_gradients(t->net) : net_parameters(t->net);
    char(*all)[SHA256_HEX_SIZE] = calloc((size_t)workers, sizeof *all);
    if (!all)
        return FAIL(STATUS_NO_MEMORY, "no memory for the weights' sums of %d workers", workers);
    TRY(device_download(t->device, t->host, data, bytes));
    TRY(sha256_hex(t->host, bytes, t->report.weights_sha256));
    TRY(world_gather(t->world, comm_group(t->sync.comm), t->report.weights_sha256, SHA256_HEX_SIZE,
                     all));
    for (int w = 1; w < workers; w++) {
        if (strcmp(all[w], all[0]) == 0)
            continue;
        if (t->rank == 0)
            log_error("after step %llu the %s of worker %d (SHA-256 %.12s...) differ from those of "
                      "worker 0 (%.12s...): --backend %s did not give all workers the same result; "
                      "discard the run and please report this",
                      (unsigned long long)t->step, t->config->train.paced ? "gradients" : "weights",
                      w, all[w], all[0], t->backend->name);
        (void)comm_barrier(t->sync.comm); /* rank 0 must log it before a rank ends the others */
        status = STATUS_WRONG;
        break;
    }
out:
    free(all);
    return status;
}

/* -------- test -------------------------------------------------------------------------------- */

/* Each worker tests a share of the test set. Paced runs have nothing to test. */
enum status train_test(struct trainer *t, struct test_result *result)
{
    enum status status = STATUS_OK;
    struct net_step step = {.training = false};
    size_t count;
    double sums[3] = {0}; /* loss, correct, images */
    *result = (struct test_result){NAN, NAN};
    if (t->config->train.paced)
        return STATUS_OK;
    progress_clear(&t->report.progress);
    batches_start_epoch(&t->batches, BATCHES_TEST, 0, 0);
    while ((count = batches_next(&t->batches, BATCHES_TEST)) > 0) {
        struct loss_sum loss;
        batches_gather(&t->batches, BATCHES_TEST, 0, count);
        TRY(net_forward(t->net, t->batches.images, t->batches.labels, count, &step, &loss));
        sums[0] += loss.loss;
        sums[1] += (double)loss.correct;
        sums[2] += (double)count;
    }
    TRY(world_sum(t->world, comm_group(t->sync.comm), sums, 3));
    *result = (struct test_result){sums[0] / sums[2], sums[1] / sums[2]};
out:
    return status;
}

/* The accuracy is a fraction, the target a percentage. Both are rounded; the tolerance is far below
 * one image. */
bool train_on_target(const struct trainer *t, const struct test_result *result)
{
    double target = t->config->train.target_accuracy;
    return target > 0 && 100 * result->accuracy > target - 1e-9;
}

/* -------- at the start ------------------------------------------------------------------------ */

/* Restores the residuals that averaging had when the checkpoint was written. */
static enum status share_carried(struct trainer *t)
{
    enum status status = STATUS_OK;
    struct checkpoint none = {0};
    const struct checkpoint *resumed = t->resumed ? t->resumed : &none;
    bool fits;
    TRY(comm_state_write(t->sync.comm, resumed->carried, resumed->carried_count, &fits));
    if (!fits && resumed->carried_count > 0)
        log_warn("--resume: the residuals of --error-feedback have another length here and are "
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
    if ((!t->config->train.resume && !t->generation) || !t->optimizer)
        return STATUS_OK;
    float *state = optimizer_state(t->optimizer, &state_count);
    TRY(share(t, state, state_count));
    TRY(world_broadcast(t->world, comm_group(t->sync.comm), &t->step, sizeof t->step));
    if (t->config->train.resume)
        TRY(share_carried(t));
out:
    return status;
}

/* Checkpoints: the options in them, and how a run continues from one. */

/* Everything that decides the bits of a run. Holds the texts that the checkpoint's options point
 * to. */
struct description {
    struct checkpoint_option options[24];
    char values[24][OPTIMIZER_TEXT_BYTES], done[48];
    size_t bits_count; /* these options decide all bits, if the order of sums is the same */
    struct checkpoint checkpoint; /* without the arrays */
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

static void describe_backend(const struct trainer *t, char text[OPTIMIZER_TEXT_BYTES])
{
    struct comm_options options;
    config_comm_options(t->config, t->backend, &options);
    backend_describe(t->backend, t->world, &t->topology, &options, text, OPTIMIZER_TEXT_BYTES);
}

/* Adds the owner of the residuals. Another backend rounds different sums, and other ranks round
 * different parts. */
static void add_carried(const struct trainer *t, struct description *run)
{
    const struct config *config = t->config;
    char backend[OPTIMIZER_TEXT_BYTES];
    describe_backend(t, backend);
    if (strcmp(config_error_feedback_name(config), "on") != 0)
        return;
    if (t->topology.servers > 0)
        add_option(run, "residuals", "%s's, %zu workers, %d %s servers", backend, t->workers,
                   t->topology.servers, config_placement_name(config))
            ->may_differ = true;
    else
        add_option(run, "residuals", "%s's, %zu workers", backend, t->workers)->may_differ = true;
}

static uint64_t number_of(const struct checkpoint *checkpoint, const char *option)
{
    const char *text = checkpoint_option(checkpoint, option);
    return text ? strtoull(text, NULL, 10) : 0;
}

static bool is_other_world(const struct trainer *t, const struct checkpoint *loaded)
{
    return checkpoint_option(loaded, "workers") && number_of(loaded, "workers") != t->workers;
}

static uint64_t step_of(const struct trainer *t, const struct checkpoint *loaded)
{
    return loaded->epoch * t->steps_per_epoch + loaded->step;
}

/* Whether the number of steps may change: --resume=extend asks for it, or the rate does not depend
 * on it. */
static bool may_extend(const struct trainer *t, const struct checkpoint *loaded)
{
    uint64_t step = step_of(t, loaded);
    return t->config->train.resume == CONFIG_RESUME_EXTEND ||
           (t->lr.shape == LR_CONSTANT && step >= t->lr.warmup_steps &&
            step >= number_of(loaded, "warmup"));
}

/* The warm-up's length decides bits. If --warmup-epochs is not given, the length follows from the
 * number of steps. Then a difference in steps is the one to report, so keep the saved value
 * here. */
static void add_warmup(const struct trainer *t, const struct checkpoint *loaded, bool may_differ,
                       struct description *run)
{
    const char *name = "warmup", *saved = loaded ? checkpoint_option(loaded, name) : NULL;
    struct checkpoint_option *warmup =
        add_option(run, name, "%" PRIu64 " steps from %.9g", t->lr.warmup_steps, t->lr.start);
    warmup->advice = "give the --warmup-epochs and --lr-scale of that run";
    warmup->may_differ = may_differ;
    if (saved && t->config->learning.warmup_epochs < 0 &&
        number_of(loaded, "steps") != t->total_steps)
        warmup->value = saved;
}

/* Describes the run. `loaded`: the checkpoint to continue from; NULL: the run is to be saved.
 * Options that decide bits must equal those of `loaded`. Exceptions are options that normally
 * follow from another number of workers or steps. */
static void describe(const struct trainer *t, const struct checkpoint *loaded,
                     struct description *run)
{
    char augmentation[AUGMENT_TEXT_BYTES], backend[OPTIMIZER_TEXT_BYTES];
    const struct config *config = t->config;
    bool other_world = loaded && is_other_world(t, loaded);
    bool too_short = loaded && !other_world && step_of(t, loaded) > t->total_steps;
    bool other_length = other_world || (loaded && may_extend(t, loaded) && !too_short);
    /* All backends then give the same bits, because no partial sum is rounded. */
    bool any_backend =
        config->reduce_order == REDUCE_ORDER_RING && config->compress == COMPRESS_NONE;
    run->checkpoint = (struct checkpoint){
        .model = config_model_name(config),
        .optimizer = optimizer_kind_names[config->learning.optimizer],
        .seed = (uint64_t)config->seed,
        .epoch = t->step / t->steps_per_epoch,
        .step = t->step % t->steps_per_epoch,
        .trained_ns = (uint64_t)(t->report.trained_s * (double)NS_PER_S),
        .images = train_images(t),
        .weight_count = net_parameter_count(t->net),
        .options = run->options,
    };
    optimizer_state(t->optimizer, &run->checkpoint.state_count);
    add_option(run, "workers", "%zu", t->workers)->may_differ = true;
    add_option(run, "batch", "%" PRId64, config->batch)->may_differ = other_world;
    add_option(run, "lr", "%.9g", t->lr.peak)->may_differ = other_world;
    add_option(run, "sync", "%s", config->train.sync);
    if (config->train.late_steps == CONFIG_LATE_KEEP)
        add_option(run, "late-steps", "keep");
    add_option(run, "backup-workers", "%" PRId64, config->train.backup_workers);
    add_option(run, "lr-schedule", "%s", lr_shape_names[t->lr.shape]);
    add_warmup(t, loaded, other_length, run);
    /* The name "unsharded" and the word "join" must match older checkpoints. */
    add_option(run, "unsharded", "%s", config->train.no_shard ? "true" : "false")->advice =
        "give --no-shard to both or to none";
    add_option(run, "augment", "%s", augment_text(&config->train.augmentation, augmentation));
    add_option(run, "last-batch", "%s", trainer_joins(t) ? "join" : "drop")->advice =
        "give --last-batch partial to both or to none";
    add_option(run, "optimizer-options", "%s", t->optimizer_text)->advice = "give the same";
    add_option(run, "dataset", "%s", t->dataset->name)->advice =
        "name that data set's folder with --data";
    /* The learning rate of a step depends on the total number of steps. */
    struct checkpoint_option *steps = add_option(run, "steps", "%" PRIu64, t->total_steps);
    steps->advice = "give the --epochs and --steps of that run, or --resume=extend to change them";
    steps->may_differ = other_length;
    if (too_short) {
        snprintf(run->done, sizeof run->done, "at least %" PRIu64, step_of(t, loaded));
        steps->expected = run->done;
        steps->advice = "this many are done; give more --epochs or --steps";
    }
    add_option(run, "bucket-mb", "%.9g", config->bucket_mb);
    add_option(run, "compress", "%s", compress_names[config->compress]);
    add_option(run, "error-feedback", "%s", config_error_feedback_name(config));
    run->bits_count = run->checkpoint.option_count;
    /* Sums depend on their order. The ring's order depends on chunk boundaries. */
    add_option(run, "reduce-order", "%s", config_reduce_order_name(config));
    /* Another order of sums or another processor gives other bits, but the same training. */
    describe_backend(t, backend);
    add_option(run, "backend", "%s", any_backend ? "any" : backend)->may_differ = true;
    add_option(run, "device", "%s", t->device->ops->name)->may_differ = true;
    add_option(run, "tf32", "%s", config->tf32 ? "on" : "off")->may_differ = true;
    add_carried(t, run);
}

enum status train_sum_settings(struct trainer *t)
{
    enum status status = STATUS_OK;
    struct description run = {0};
    struct sha256 sum;
    char text[OPTIMIZER_TEXT_BYTES + 64];
    describe(t, NULL, &run);
    TRY(sha256_init(&sum));
    snprintf(text, sizeof text, "%s %s %" PRIu64 " %s, from step %" PRIu64 "\n",
             run.checkpoint.model, run.checkpoint.optimizer, run.checkpoint.seed, t->data_sha256,
             t->first_step);
    sha256_update(&sum, text, strlen(text));
    for (size_t i = 0; i < run.bits_count; i++) {
        snprintf(text, sizeof text, "%s=%s\n", run.options[i].name, run.options[i].value);
        sha256_update(&sum, text, strlen(text));
    }
    sha256_final(&sum, t->report.settings_sha256);
out:
    return status;
}

enum status train_save(struct trainer *t)
{
    enum status status = STATUS_OK;
    const char *dir = t->config->train.checkpoint;
    struct description run;
    struct checkpoint *checkpoint = &run.checkpoint;
    float *weights = NULL, *carried = NULL;
    size_t carried_count;
    if (!dir)
        return STATUS_OK;
    TRY(train_gather_progress(t));
    TRY(comm_state_read(t->sync.comm, &carried, &carried_count));
    if (t->rank != 0)
        return STATUS_OK;
    describe(t, NULL, &run);
    size_t weight_bytes = checkpoint->weight_count * sizeof(float);
    weights = malloc(weight_bytes);
    if (!weights)
        TRY(FAIL(STATUS_NO_MEMORY, "%s: no memory to copy the weights", dir));
    TRY(device_download(t->device, weights, net_parameters(t->net), weight_bytes));
    TRY(device_download(t->device, t->host, optimizer_state(t->optimizer, &checkpoint->state_count),
                        checkpoint->state_count * sizeof(float)));
    checkpoint->weights = weights;
    checkpoint->state = checkpoint->state_count > 0 ? t->host : NULL;
    checkpoint->carried = carried;
    checkpoint->carried_count = carried_count;
    TRY(checkpoint_save_step(dir, checkpoint->model, t->step,
                             (size_t)t->config->train.keep_checkpoints, checkpoint));
out:
    free(weights);
    free(carried);
    return status;
}

/* -------- resuming ---------------------------------------------------------------------------- */

/* The step at which this run has seen the images that the other run has seen. The finished part of
 * an epoch is always the beginning of its permutation, for any number of workers and any batch. No
 * image is therefore left out. If the division leaves a remainder, images of less than one step are
 * seen again. */
static uint64_t position_of(const struct trainer *t, const struct checkpoint *loaded)
{
    bool unsharded = t->config->train.no_shard; /* then each worker reads all images */
    uint64_t theirs = number_of(loaded, "batch") * (unsharded ? 1 : number_of(loaded, "workers"));
    uint64_t ours = (uint64_t)t->config->batch * (unsharded ? 1 : t->workers);
    uint64_t step = loaded->step * theirs / ours;
    return loaded->epoch * t->steps_per_epoch +
           (step < t->steps_per_epoch ? step : t->steps_per_epoch);
}

/* Reports that there is no checkpoint. Fails with --resume=must or extend. */
static enum status start_anew(const struct trainer *t)
{
    const char *dir = t->config->train.checkpoint, *model = config_model_name(t->config);
    if (t->config->train.resume != CONFIG_RESUME_AUTO) {
        const char *word = t->config->train.resume == CONFIG_RESUME_MUST ? "must" : "extend";
        return FAIL(STATUS_IO,
                    "--resume=%s: found no checkpoint of %s in %s; name the folder of the run to "
                    "continue, or leave =%s out",
                    word, model, dir, word);
    }
    log_info("%s: no checkpoint of %s there yet, starts from step 0", dir, model);
    return STATUS_OK;
}

enum status train_load(struct trainer *t)
{
    enum status status = STATUS_OK;
    struct description run;
    struct checkpoint *loaded = NULL;
    char *path = NULL;
    TRY(checkpoint_load_newest(&loaded, &path, t->config->train.checkpoint,
                               config_model_name(t->config)));
    if (!loaded)
        return start_anew(t);
    describe(t, loaded, &run);
    TRY(checkpoint_check(loaded, &run.checkpoint, path));
    device_upload(t->device, net_parameters(t->net), loaded->weights,
                  loaded->weight_count * sizeof(float));
    device_upload(t->device, optimizer_state(t->optimizer, &run.checkpoint.state_count),
                  loaded->state, loaded->state_count * sizeof(float));
    TRY(device_sync(t->device));
    t->step = is_other_world(t, loaded) ? position_of(t, loaded) : step_of(t, loaded);
    t->report.trained_s = (double)loaded->trained_ns / (double)NS_PER_S;
    t->report.images_before = loaded->images;
    const char *theirs = checkpoint_option(loaded, "residuals");
    const char *ours = checkpoint_option(&run.checkpoint, "residuals");
    if (!theirs || !ours || strcmp(theirs, ours) != 0)
        loaded->carried_count = 0; /* checkpoint_check has warned about it */
    t->resumed = loaded;
    loaded = NULL;
out:
    checkpoint_free(&loaded);
    free(path);
    return status;
}
