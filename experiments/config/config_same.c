#include "experiments/config/config_same.h"

#include <stdio.h>
#include <string.h>

#include "common/base/check.h"
#include "experiments/config/config_table.h"

/* What a host has of its own, and what rank 0 alone uses. All other options decide which messages
 * there are, or bits. */
static const char *const free_options[] = {
    "rendezvous",      "rank",        "interface",     "threads",    "data", "timeout", "network",
    "startup-timeout", "loaders",     "prefetch",      "metrics",    "json", "csv",     "verbose",
    "join-after",      "leave-after", "stall-warning", "cost-model", "token"};

enum { VALUE_BYTES = 128 }; /* of longer values the beginning is compared */

struct values {
    int32_t command;
    char of[CONFIG_OPTIONS_MAX][VALUE_BYTES]; /* in the order of the option table */
};

struct shared_options {
    size_t count;
    const char *names[CONFIG_OPTIONS_MAX];
    struct values values;
};

bool config_is_free(const char *name)
{
    for (size_t i = 0; i < sizeof free_options / sizeof *free_options; i++) {
        if (strcmp(name, free_options[i]) == 0)
            return true;
    }
    return false;
}

static void add_option(void *context, const char *name, const char *value)
{
    struct shared_options *shared = context;
    if (config_is_free(name))
        return;
    /* It matters whether there are such names: only rank 0 uses them. */
    if (strcmp(name, "checkpoint") == 0 || strcmp(name, "timeline") == 0)
        value = value[0] ? "given" : "";
    CHECK(shared->count < CONFIG_OPTIONS_MAX);
    snprintf(shared->values.of[shared->count], VALUE_BYTES, "%s", value);
    shared->names[shared->count++] = name;
}

enum status config_same(const struct config *config, struct world *world)
{
    enum status status = STATUS_OK;
    struct shared_options mine = {.values.command = config->command};
    config_visit(config, add_option, &mine);
    struct values first = mine.values;
    TRY(world_broadcast(world, NULL, &first, sizeof first));
    if (first.command != mine.values.command) {
        log_error("rank %d was started with another command than rank 0; start all ranks with the "
                  "same command and options",
                  world->rank);
        return STATUS_USAGE;
    }
    for (size_t i = 0; i < mine.count; i++) {
        const char *here = mine.values.of[i], *there = first.of[i];
        if (strcmp(here, there) == 0)
            continue;
        log_error("--%s is %s on rank %d and %s on rank 0; start all ranks with the same options%s",
                  mine.names[i], here[0] ? here : "not given", world->rank,
                  there[0] ? there : "not given",
                  strcmp(mine.names[i], "link-rate") == 0 ? " and the same PSRING_LINK_BITS" : "");
        return STATUS_USAGE;
    }
out:
    return status;
}
