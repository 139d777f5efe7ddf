#include "experiments/config/learning.h"

#include <math.h>
#include <stdbool.h>

#include "common/net/topology.h"
#include "experiments/config/config_table.h"

/* -------- options that do not go together ----------------------------------------------------- */

#define KIND(name) (1u << OPTIMIZER_##name)

/* The optimizers that use an option. */
static const struct {
    const char *option;
    unsigned kinds;
    const char *names;
} uses[] = {
    {"momentum", KIND(SGD) | KIND(LARS), "sgd or lars"},
    {"nesterov", KIND(SGD), "sgd"},
    {"beta1", KIND(ADAM), "adam"},
    {"beta2", KIND(ADAM), "adam"},
    {"epsilon", KIND(ADAGRAD) | KIND(ADADELTA) | KIND(ADAM), "adagrad, adadelta or adam"},
    {"lars-coefficient", KIND(LARS), "lars"},
};

static enum status check_optimizer(const struct config *config, const struct config_table *table)
{
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        if (!config_table_given(table, uses[i].option) ||
            uses[i].kinds & (1u << config->learning.optimizer))
            continue;
        return FAIL(STATUS_USAGE, "--%s: --optimizer %s does not use it; leave it out, or use %s",
                    uses[i].option, optimizer_kind_names[config->learning.optimizer],
                    uses[i].names);
    }
    if (config_table_given(table, "nesterov") && config->learning.momentum == 0)
        return FAIL(
            STATUS_USAGE,
            "--nesterov: looks ahead by the momentum, and --momentum is 0; leave it out, or "
            "give a --momentum");
    return STATUS_OK;
}

static enum status no_end_of_warmup(const struct config *config, uint64_t epochs)
{
    return FAIL(STATUS_USAGE,
                "--warmup-epochs %g: the run ends after %llu epoch%s, before its rate is at the "
                "highest; give fewer, or more --epochs",
                config->learning.warmup_epochs, (unsigned long long)epochs, epochs == 1 ? "" : "s");
}

enum status learning_check(const struct config *config, const struct config_table *table)
{
    enum status status = STATUS_OK;
    if (config->command != CONFIG_TRAIN)
        return STATUS_OK;
    TRY(check_optimizer(config, table));
    if (config->train.global_batch > 0 && config_table_given(table, "batch"))
        return FAIL(STATUS_USAGE,
                    "--batch: --global-batch %lld already sets the images of each worker; leave "
                    "one of the two out",
                    (long long)config->train.global_batch);
    if (config->train.global_batch > 0 && (config->learning.lr_scale == LR_SCALE_LINEAR ||
                                           config->learning.lr_scale == LR_SCALE_SQRT))
        return FAIL(STATUS_USAGE,
                    "--lr-scale %s: with --global-batch the images per step do not depend on the "
                    "number of workers, so the rate must not either; leave one of the two out",
                    lr_scale_names[config->learning.lr_scale]);
    if (config->train.no_shard && config->train.virtual_workers > 0)
        return FAIL(STATUS_USAGE,
                    "--no-shard: the process that plays all workers (--virtual-workers %lld) reads "
                    "the data once for all of them; start as many processes, or leave out "
                    "--no-shard or the --recipe that sets it",
                    (long long)config->train.virtual_workers);
    if (config_table_given(table, "epochs-divided") && config_table_given(table, "steps"))
        return FAIL(STATUS_USAGE, "--epochs-divided: --steps ends the run, so epochs do not "
                                  "matter; leave one of the two out");
    if (config->train.steps == 0 && config->learning.warmup_epochs >= (double)config->epochs)
        return no_end_of_warmup(config, (uint64_t)config->epochs);
out:
    return status;
}

/* -------- what follows from them -------------------------------------------------------------- */

enum status learning_share_batch(struct config *config, int world_size)
{
    enum status status = STATUS_OK;
    struct topology topology;
    if (config->train.global_batch == 0)
        return STATUS_OK;
    TRY(topology_init(&topology, world_size, (int)config->servers, config->placement));
    int64_t workers =
        config->train.virtual_workers > 0 ? config->train.virtual_workers : topology.workers;
    config->batch = config->train.global_batch / workers;
    if (config->train.global_batch % workers != 0 || config->batch > CONFIG_BATCH_MOST) {
        int64_t least = config->batch > 0 ? config->batch : 1;
        least = least < CONFIG_BATCH_MOST ? least : CONFIG_BATCH_MOST;
        return FAIL(
            STATUS_USAGE,
            "--global-batch %lld: found %lld worker%s, expected a multiple of that, with at "
            "most %d images for each, such as %lld",
            (long long)config->train.global_batch, (long long)workers, workers == 1 ? "" : "s",
            CONFIG_BATCH_MOST, (long long)(least * workers));
    }
out:
    return status;
}

uint64_t learning_epochs(const struct config *config, size_t workers)
{
    uint64_t epochs = (uint64_t)config->epochs;
    return config->train.epochs_divided ? (epochs + workers - 1) / workers : epochs;
}

struct optimizer_parameters learning_optimizer(const struct config *config)
{
    struct optimizer_parameters parameters = optimizer_parameters_default;
    parameters.momentum = (float)config->learning.momentum;
    parameters.nesterov = config->learning.nesterov;
    parameters.beta1 = (float)config->learning.beta1;
    parameters.beta2 = (float)config->learning.beta2;
    parameters.epsilon = (float)config->learning.epsilon;
    parameters.trust = (float)config->learning.lars_coefficient;
    parameters.weight_decay = (float)config->learning.weight_decay;
    return parameters;
}

enum status learning_schedule(const struct config *config, size_t workers, uint64_t steps_per_epoch,
                              uint64_t total_steps, struct lr_schedule *schedule)
{
    size_t batch = (size_t)config->batch;
    bool scales =
        config->learning.lr_scale == LR_SCALE_LINEAR || config->learning.lr_scale == LR_SCALE_SQRT;
    size_t images = config->learning.lr_scale == LR_SCALE_AUTO ? batch * workers : batch;
    double one = config->learning.lr > 0 ? config->learning.lr
                                         : lr_default(config->learning.optimizer, images);
    *schedule = (struct lr_schedule){
        .shape = config->learning.lr_schedule,
        .start = scales ? one : 0,
        .peak = one * lr_scale_factor(config->learning.lr_scale, workers),
        .warmup_steps = lr_warmup_default(total_steps),
        .total_steps = total_steps,
    };
    if (config->learning.warmup_epochs < 0)
        return STATUS_OK;
    schedule->warmup_steps =
        (uint64_t)llround(config->learning.warmup_epochs * (double)steps_per_epoch);
    if (config->train.steps == 0 && schedule->warmup_steps >= total_steps)
        return no_end_of_warmup(config, total_steps / steps_per_epoch);
    return STATUS_OK;
}
