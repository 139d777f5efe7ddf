#include "experiments/config/config_same.h"

#include <stdio.h>
#include <string.h>

/* What decides messages and bits. Not those of a host (--data, --threads, --interface, ...). */
static const char *const names[] = {
    "backend",  "transport",      "servers",   "placement",  "sync",    "reduce-order",
    "compress", "error-feedback", "segment",   "window",     "compute", "model",
    "epochs",   "steps",          "batch",     "optimizer",  "lr",      "seed",
    "resume",   "bucket-mb",      "log-steps", "checkpoint",
};

enum { NAMES = sizeof names / sizeof *names, VALUE_BYTES = 32 };

struct values {
    char of[NAMES][VALUE_BYTES]; /* by name */
};

/* Of a checkpoint's folder it matters whether there is one: only rank 0 uses it. */
static void keep_value(void *context, const char *name, const char *value)
{
    struct values *values = context;
    if (strcmp(name, "checkpoint") == 0)
        value = value[0] ? "given" : "not given";
    for (int i = 0; i < NAMES; i++) {
        if (strcmp(name, names[i]) == 0)
            snprintf(values->of[i], VALUE_BYTES, "%s", value);
    }
}

enum status config_same(const struct config *config, struct world *world)
{
    enum status status = STATUS_OK;
    struct values mine = {0}, first;
    config_visit(config, keep_value, &mine);
    first = mine;
    TRY(world_broadcast(world, NULL, &first, sizeof first));
    for (int i = 0; i < NAMES && status == STATUS_OK; i++) {
        if (strcmp(mine.of[i], first.of[i]) == 0)
            continue;
        log_error("--%s is %s on rank %d and %s on rank 0; start all ranks with the same options",
                  names[i], mine.of[i], world->rank, first.of[i]);
        status = STATUS_USAGE;
    }
out:
    return status;
}
