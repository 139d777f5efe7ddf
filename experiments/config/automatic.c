#include "experiments/config/automatic.h"

#include <stdlib.h>

#include "experiments/config/backends.h"

bool config_is_auto(const struct config *config)
{
    return config->backend == (int)backend_count();
}

void config_apply(struct config *config, const struct config_pick *pick)
{
    config->backend = pick->backend;
    config->transport = pick->transport;
    config->servers = pick->servers;
    config->placement = pick->placement;
    config->bucket_mb = pick->bucket_mb;
}

void config_free(struct config *config)
{
    free(config->picks);
    config->picks = NULL;
}

enum status automatic_check(const struct config *config)
{
    if (!config_is_auto(config) && config->cost_model) {
        log_error("--cost-model %s: only --backend auto goes by it; add that, or leave it out",
                  config->cost_model);
        return STATUS_USAGE;
    }
    if (config_is_auto(config) && !config->cost_model) {
        log_error("--backend auto: by which model? add --cost-model MODEL.JSON, which psring "
                  "predict --fit BENCH.CSV --cost-model MODEL.JSON makes of measurements, or name "
                  "a backend, e.g. --backend ring");
        return STATUS_USAGE;
    }
    if (config_is_auto(config) && config->device != DEVICE_CPU) {
        log_error("--backend auto: the model knows what averages in host memory only; with "
                  "--device %s name a backend, e.g. --backend nccl",
                  device_kind_names[config->device]);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

enum status automatic_settle(struct config *config, struct world *world)
{
    enum status status = STATUS_OK;
    if (!config_is_auto(config))
        return STATUS_OK;
    if (!config->choose) {
        if (world->rank == 0)
            log_error("--backend auto: this program cannot choose one; name one, e.g. --backend "
                      "ring");
        return STATUS_USAGE;
    }
    TRY(config->choose(config, world));
    config_apply(config, &config->picks[0]);
out:
    return status;
}
