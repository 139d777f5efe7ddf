#include "experiments/job/job.h"

#include <stdio.h>
#include <string.h>

#include "common/net/socket/address.h"
#include "common/net/world/launcher.h"
#include "experiments/config/backends.h"

/* -------- what goes together ------------------------------------------------------------------ */

bool config_server(const struct config *config, int number, char *text, size_t size)
{
    const char *at = config->server;
    for (int i = 0; i < number && at; i++) {
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    if (!at)
        return false;
    snprintf(text, size, "%.*s", (int)strcspn(at, ","), at);
    return true;
}

static enum status check_address(const char *option, const char *text)
{
    char host[ADDRESS_HOST_BYTES];
    int port;
    if (address_parse(text, host, sizeof host, &port) && port > 0)
        return STATUS_OK;
    log_error("--%s: found '%s', expected tcp://HOST:PORT, where HOST is a name or an address and "
              "PORT is 1 to 65535, e.g. tcp://10.0.0.1:29600 or tcp://[fd00::1]:29600",
              option, text);
    return STATUS_USAGE;
}

static enum status check_servers(struct config *config)
{
    enum status status = STATUS_OK;
    char address[ADDRESS_HOST_BYTES + 16];
    int count = 0;
    for (; config_server(config, count, address, sizeof address); count++)
        TRY(check_address("server", address));
    if (config->servers != CONFIG_SERVERS_NOT_GIVEN && config->servers != count) {
        log_error("--servers %lld: --server names %d; leave --servers out",
                  (long long)config->servers, count);
        return STATUS_USAGE;
    }
    config->servers = count;
out:
    return status;
}

/* What does not go with --server, and why; NULL: nothing. */
static const char *objection(const struct config *config)
{
    if (strcmp(config_backend(config)->name, "ps") != 0)
        return "only --backend ps has servers; add that";
    if (config->placement != PLACEMENT_DEDICATED)
        return "its servers are processes of their own; leave --placement out";
    if (strcmp(config->sync, "bsp") != 0 || config->backup_workers > 0)
        return "workers come and go between steps, which only --sync bsp without --backup-workers "
               "has";
    if (config->transport == CONFIG_TRANSPORT_MPI)
        return "workers come and go, which MPI's ranks cannot; use --transport zmq or tcp";
    if (config->rendezvous || config->rank >= 0 || config->world >= 0)
        return "the server numbers the workers; leave --rendezvous, --rank and --world out";
    if (launcher_mpi_rank() >= 0)
        return "start each worker by itself, without mpirun or srun";
    if (config->global_batch > 0 || config->epochs_divided)
        return "what is divided among the workers would change with them; leave --global-batch and "
               "--epochs-divided out";
    if (config->straggler)
        return "a worker's number changes as others come and go; leave --straggler out";
    if (config->last_batch == CONFIG_LAST_BATCH_JOIN)
        return "what is left of an epoch would change with the workers; leave --last-batch out";
    if (config->unsharded)
        return "its position in the data is one for all workers; leave --unsharded out";
    if (config->timeline)
        return "a timeline is of ranks that stay; leave --timeline out";
    if (config->target_accuracy > 0)
        return "workers that join know no earlier test; leave --target-accuracy out";
    if (config->checkpoint)
        return "the workers keep the state of an elastic job; leave --checkpoint out";
    return NULL;
}

enum status job_check(struct config *config)
{
    enum status status = STATUS_OK;
    if (config->command == CONFIG_SERVE)
        return check_address("listen", config->listen);
    const char *wrong = objection(config);
    if (wrong) {
        log_error("--server %s: %s", config->server, wrong);
        return STATUS_USAGE;
    }
    TRY(check_servers(config));
out:
    return status;
}
