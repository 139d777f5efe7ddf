#include "experiments/config/sync.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/config/backends.h"
#include "models/optim.h"

static enum status parse_consistency(struct config *config)
{
    enum { STALENESS_MOST = 1000, ASYNC_LATE_STEPS = 8 };
    const char *text = config->sync, *number = text + strlen("ssp:");
    struct consistency *consistency = &config->consistency;
    *consistency = (struct consistency){.backup_workers = (int)config->backup_workers};
    if (strcmp(text, "async") == 0) {
        consistency->kind = CONSISTENCY_ASYNC;
        consistency->late_steps = ASYNC_LATE_STEPS;
    } else if (strncmp(text, "ssp:", strlen("ssp:")) == 0 && isdigit((unsigned char)*number)) {
        char *end = NULL;
        unsigned long long staleness = strtoull(number, &end, 10);
        if (*end || staleness > STALENESS_MOST) {
            log_error("--sync %s: expected ssp:S with S from 0 to %d, the steps that workers may "
                      "be apart",
                      text, STALENESS_MOST);
            return STATUS_USAGE;
        }
        consistency->kind = CONSISTENCY_SSP;
        consistency->staleness = staleness;
        /* Half of the bound: at all of it the others wait already. */
        consistency->late_steps = (staleness + 1) / 2;
    } else if (strcmp(text, "bsp") != 0) {
        log_error("--sync: found '%s', expected bsp, ssp:S (e.g. ssp:3) or async", text);
        return STATUS_USAGE;
    }
    if (config->late_steps == CONFIG_LATE_KEEP && consistency->kind == CONSISTENCY_BSP) {
        log_error("--late-steps keep: with --sync bsp nobody may be late%s; leave it out, or add "
                  "--sync ssp:S or async",
                  config->backup_workers > 0 ? ", and --backup-workers drop who is" : "");
        return STATUS_USAGE;
    }
    if (config->late_steps == CONFIG_LATE_KEEP)
        consistency->late_steps = 0;
    if (consistency->kind != CONSISTENCY_BSP && config->backup_workers > 0) {
        log_error("--backup-workers %lld: with --sync %s nobody waits for the last workers; leave "
                  "one of the two out",
                  (long long)config->backup_workers, text);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* What servers that own the parameters cannot do. */
static enum status check_consistency(const struct config *config)
{
    if (!consistency_updates(&config->consistency))
        return STATUS_OK;
    if (!config->paced &&
        (config->optimizer == OPTIMIZER_ADAM || config->optimizer == OPTIMIZER_LARS)) {
        log_error("--optimizer %s: servers that update know parts of tensors, and updates rather "
                  "than steps; with --sync %s%s use sgd, adagrad or adadelta",
                  optimizer_kind_names[config->optimizer], config->sync,
                  config->backup_workers > 0 ? " and --backup-workers" : "");
        return STATUS_USAGE;
    }
    if (config->last_batch == CONFIG_LAST_BATCH_JOIN) {
        log_error("--last-batch join: with --sync %s%s workers are not in one step, and not at its "
                  "end together; leave it out",
                  config->sync, config->backup_workers > 0 ? " and --backup-workers" : "");
        return STATUS_USAGE;
    }
    if (config->reduce_order == REDUCE_ORDER_ANY)
        return STATUS_OK;
    log_error("--reduce-order %s: with --sync %s%s gradients are applied as they come, in no order "
              "that could be repeated; leave it out",
              config_reduce_order_name(config), config->sync,
              config->backup_workers > 0 ? " and --backup-workers" : "");
    return STATUS_USAGE;
}

static enum status parse_straggler(struct config *config)
{
    const char *text = config->straggler;
    char *end = NULL;
    config->straggler_rank = -1;
    config->straggler_factor = 1;
    if (!text)
        return STATUS_OK;
    if (config_backend(config)->alone) {
        log_error("--straggler %s: --backend %s has no other workers that could wait; leave it out",
                  text, config_backend(config)->name);
        return STATUS_USAGE;
    }
    unsigned long rank = strtoul(text, &end, 10);
    if (isdigit((unsigned char)*text) && *end == ':' && rank < CONFIG_RANKS_MOST) {
        const char *number = end + 1;
        double factor = strtod(number, &end);
        if (end != number && !*end && factor >= 1 && factor <= 1000) {
            config->straggler_rank = (int)rank;
            config->straggler_factor = factor;
            return STATUS_OK;
        }
    }
    log_error("--straggler: found '%s', expected RANK:FACTOR with a worker's rank and a factor "
              "from 1 to 1000, e.g. 3:4",
              text);
    return STATUS_USAGE;
}

enum status sync_parse(struct config *config)
{
    enum status status;
    TRY(parse_consistency(config));
    TRY(check_consistency(config));
    TRY(parse_straggler(config));
out:
    return status;
}

enum status sync_check_world(const struct config *config, const struct topology *topology)
{
    if (config->command != CONFIG_TRAIN)
        return STATUS_OK;
    if (config->consistency.backup_workers >= topology->workers) {
        log_error("--backup-workers %d: of %d worker%s at least one must be waited for; start "
                  "more, or give less",
                  config->consistency.backup_workers, topology->workers,
                  topology->workers == 1 ? "" : "s");
        return STATUS_USAGE;
    }
    if (config->straggler_rank >= topology->workers) {
        if (topology->workers == 1)
            log_error("--straggler %s: there is one worker, 0", config->straggler);
        else
            log_error("--straggler %s: there are %d workers, 0 to %d", config->straggler,
                      topology->workers, topology->workers - 1);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}
