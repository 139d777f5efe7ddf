#include "experiments/config/job.h"

#include <stdio.h>
#include <string.h>

#include "common/base/check.h"
#include "common/net/socket/address.h"
#include "common/net/world/launcher.h"
#include "experiments/config/backends.h"
#include "experiments/config/config_same.h"
#include "experiments/config/config_table.h"

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
    log_error("--%s: found '%s', expected tcp://HOST:PORT, where HOST is a name or an IPv4 address "
              "and PORT is 1 to 65535, e.g. tcp://10.0.0.1:29600",
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

/* -------- one process's options for others ---------------------------------------------------- */

struct lines {
    const struct config_table *table;
    unsigned run;
    int visited;
    char *text;
    size_t size, used;
};

static void add_line(void *context, const char *name, const char *value)
{
    struct lines *lines = context;
    const struct config_row *row = lines->table->rows[lines->visited++];
    bool flag = row->spec.type == OPTION_FLAG;
    bool numbers = strcmp(name, "world") == 0; /* generations have such */
    if (config_is_free(name) || numbers || !(row->runs & lines->run) || !value[0] ||
        (flag && strcmp(value, "true") != 0))
        return;
    size_t left = lines->used < lines->size ? lines->size - lines->used : 0;
    lines->used += (size_t)snprintf(lines->text + lines->used, left, "--%s%s%s\n", name,
                                    flag ? "" : "=", flag ? "" : value);
}

bool config_job(const struct config *config, char *text, size_t size)
{
    struct config_table table;
    config_table_init(&table, config->command);
    struct lines lines = {.table = &table,
                          .run = config->paced ? CONFIG_RUN_PACED : CONFIG_RUN_REAL,
                          .text = text,
                          .size = size};
    text[0] = '\0';
    options_visit(&table.options, config, add_line, &lines);
    return lines.used < size;
}

/* What decides which messages a server gets. It adds on the CPU, and its host may have no GPU. */
static bool concerns_servers(const char *line)
{
    static const char *const names[] = {"server",       "backend",        "transport", "sync",
                                        "reduce-order", "compress",       "segment",   "window",
                                        "link-rate",    "error-feedback", "compute",   "model",
                                        "bucket-mb",    "optimizer"};
    const char *name = line + strlen("--");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(name, names[i], length) == 0 && name[length] == '=')
            return true;
    }
    return false;
}

enum status config_of_job(struct config *config, const struct config *serve, char *job)
{
    enum status status = STATUS_OK;
    static char name[] = "train";
    char *argv[CONFIG_OPTIONS_MAX + 2] = {name};
    int argc = 1;
    bool helped, cuda = false;
    for (char *line = strtok(job, "\n"); line; line = strtok(NULL, "\n")) {
        cuda = cuda || strcmp(line, "--device=cuda") == 0;
        if (argc <= CONFIG_OPTIONS_MAX && concerns_servers(line))
            argv[argc++] = line;
    }
    TRY(config_parse(CONFIG_TRAIN, argc, argv, config, &helped));
    if (cuda)
        config->device = DEVICE_CUDA;
    config->subnet = serve->subnet;
    config->timeout = serve->timeout;
    config->startup_timeout = serve->startup_timeout;
    config->verbose = serve->verbose;
    log_set_level(config->verbose ? LOG_DEBUG : LOG_INFO);
out:
    return status;
}
