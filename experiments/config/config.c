#include "experiments/config/config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/status.h"
#include "common/base/options.h"
#include "common/device/device.h"
#include "common/net/host.h"
#include "common/net/topology.h"
#include "experiments/config/backends.h"
#include "experiments/config/config_table.h"
#include "experiments/config/launch.h"
#include "experiments/config/learning.h"
#include "models/cnn.h"
#include "models/published.h"

/* -------- options that do not go together ----------------------------------------------------- */

static enum config_run run_of(const struct config *config)
{
    if (config->command == CONFIG_BENCH)
        return config->bench.layers            ? CONFIG_RUN_LAYERS
               : config->bench.model_gradients ? CONFIG_RUN_MODEL
                                               : CONFIG_RUN_SWEEP;
    if (config->command == CONFIG_INFO)
        return CONFIG_RUN_INFO;
    if (config->command == CONFIG_SERVE)
        return CONFIG_RUN_SERVE;
    if (config->command == CONFIG_PREDICT)
        return CONFIG_RUN_PREDICT;
    return config->train.paced ? CONFIG_RUN_PACED : CONFIG_RUN_REAL;
}

static void log_unused(const struct config *config, const struct config_row *row)
{
    const char *name = row->spec.name;
    if (config->train.paced)
        log_error("--%s: --compute %s trains nothing and does not use it; leave it out", name,
                  config->train.compute);
    else if (config->bench.layers)
        log_error("--%s: --layers exchanges nothing and does not use it; leave it out", name);
    else if (config->bench.model_gradients)
        log_error(
            "--%s: --model-gradients %s exchanges all gradients of the model at once and does "
            "not use it; leave it out",
            name, published_names[config->bench.model_gradients]);
    else if (row->runs & CONFIG_RUN_MODEL)
        log_error("--%s: bench uses it only with --model-gradients; add that, or leave it out",
                  name);
    else
        log_error("--%s: bench computes only with --layers; add that, or leave it out", name);
}

struct obeyed {
    const struct config *config;
    const struct config_table *table;
    int visited;
    enum status status;
};

/* Refuses an option that the run would ignore: it is probably a mistake. */
static void check_obeyed(void *context, const char *name, const char *value)
{
    struct obeyed *obeyed = context;
    const struct backend *backend = config_backend(obeyed->config);
    const struct config_row *row = obeyed->table->rows[obeyed->visited];
    bool given = obeyed->table->given[obeyed->visited++];
    bool asks = !row->neutral || strcmp(value, row->neutral) != 0;
    char others[64];
    if (!given || obeyed->status != STATUS_OK)
        return;
    if (!(row->runs & (unsigned)run_of(obeyed->config))) {
        log_unused(obeyed->config, row);
        obeyed->status = STATUS_USAGE;
    } else if (row->ability && asks && !backend_can(backend, row->ability)) {
        log_error("--%s %s: --backend %s does not use it; leave it out, or use one that does (%s)",
                  name, value, backend->name, backends_that(row->ability, others, sizeof others));
        obeyed->status = STATUS_USAGE;
    }
}

/* Only a given value is checked: the default suits the default time-out. */
static enum status check_stall_warning(const struct config *config,
                                       const struct config_table *table)
{
    if (!config_table_given(table, "stall-warning") || config->stall_warning < config->timeout)
        return STATUS_OK;
    return FAIL(STATUS_USAGE,
                "--stall-warning %g: --timeout ends the run after %g s, before any warning; give "
                "less than that, or 0 for no warnings",
                config->stall_warning, config->timeout);
}

/* -------- the environment --------------------------------------------------------------------- */

/* Only without --link-rate: a given 0 means unknown. A server of psring serve is given the rate of
 * its workers, which cut a vector into the same chunks only with the same rate. */
static enum status link_rate_from_environment(struct config *config,
                                              const struct config_table *table)
{
    const char *text = launcher_variable("PSRING_LINK_BITS");
    if (config_table_given(table, "link-rate") || !text)
        return STATUS_OK;
    if (options_parse_rate(text, &config->link_rate))
        return STATUS_OK;
    return FAIL(STATUS_USAGE,
                "PSRING_LINK_BITS: found '%s', expected bits per second or a rate like 200mbit; "
                "correct or unset it",
                text);
}

/* --racks, or PSRING_RACKS for a run that obeys it. */
static enum status take_racks(struct config *config, const struct config_table *table)
{
    const char *variable = launcher_variable("PSRING_RACKS");
    char *end = NULL;
    if (!config->racks && (run_of(config) & (CONFIG_RUN_SWEEP | CONFIG_RUN_MODEL)))
        config->racks = variable;
    if (!config->racks)
        return STATUS_OK;
    unsigned long ranks = strtoul(config->racks, &end, 10);
    if (isdigit((unsigned char)*config->racks) && *end == ':' && ranks > 0 &&
        ranks < CONFIG_RANKS_MOST) {
        const char *number = end + 1;
        config->rack_ranks = (int)ranks;
        config->oversubscribed = strtod(number, &end);
        if (isdigit((unsigned char)*number) && !*end && config->oversubscribed >= 1 &&
            config->oversubscribed <= CONFIG_RANKS_MOST)
            return STATUS_OK;
    }
    return FAIL(STATUS_USAGE,
                "%s: found '%s', expected RANKS:FACTOR with the ranks of a rack and the rate of "
                "their links together over the uplink's, from 1, e.g. 16:4",
                config_table_given(table, "racks") ? "--racks" : "PSRING_RACKS", config->racks);
}

static bool says_how_messages_travel(const char *name)
{
    static const char *const starts[] = {"btl",  "pml=",      "pml_", "mtl",
                                         "coll", "mpi_yield", "osc",  "oob_tcp_if"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        if (strncmp(name, starts[i], strlen(starts[i])) == 0)
            return true;
    }
    return false;
}

void config_visit_mca(void (*visit)(void *context, const char *name, const char *value),
                      void *context)
{
    static const char prefix[] = "OMPI_MCA_";
    for (char **variable = environ; variable && *variable; variable++) {
        const char *entry = *variable, *equals = strchr(entry, '=');
        char name[128];
        if (!equals || strncmp(entry, prefix, sizeof prefix - 1) != 0)
            continue;
        entry += sizeof prefix - 1;
        if (!says_how_messages_travel(entry))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(equals - entry), entry);
        visit(context, name, equals + 1);
    }
}

/* -------- the interface ----------------------------------------------------------------------- */

struct config config_initial(enum config_command command)
{
    return (struct config){.command = command,
                           .servers = CONFIG_SERVERS_NOT_GIVEN,
                           .learning.warmup_epochs = LEARNING_WARMUP_NOT_GIVEN,
                           .rank = CONFIG_RANK_NOT_GIVEN,
                           .world_size = CONFIG_RANK_NOT_GIVEN,
                           .data = launcher_variable("PSRING_DATA"),
                           .network = launcher_variable("PSRING_NETWORK"),
                           .subnet = launcher_variable("PSRING_BIND_SUBNET"),
                           .token = launcher_variable("PSRING_TOKEN"),
                           .secure = launcher_variable("PSRING_SECURE")};
}

enum status config_parse(enum config_command command, int argc, char **argv, struct config *config,
                         bool *helped)
{
    enum status status;
    struct config_table table;
    config_table_init(&table, command);
    *config = config_initial(command);
    TRY(options_parse(&table.options, argc, argv, config, helped));
    if (!*helped)
        TRY(recipes_apply(&table, config, helped));
    if (*helped)
        return STATUS_OK;
    config->placement_given = config_table_given(&table, "placement");
    config->bucket_given = config_table_given(&table, "bucket-mb");
    TRY(link_rate_from_environment(config, &table));
    TRY(take_racks(config, &table));
    TRY(config_check(config));
    if (config->train.paced && !config_table_given(&table, "data"))
        config->data = NULL;
    TRY(learning_check(config, &table));
    TRY(launch_check(config));
    TRY(check_stall_warning(config, &table));
    struct obeyed obeyed = {.config = config, .table = &table};
    options_visit(&table.options, config, check_obeyed, &obeyed);
    TRY(obeyed.status);
    if (!config_backend(config)->uses_servers)
        config->servers = 0;
    log_set_level(config->verbose ? LOG_DEBUG : LOG_INFO);
out:
    return status;
}

void config_visit(const struct config *config,
                  void (*visit)(void *context, const char *name, const char *value), void *context)
{
    struct config_table table;
    config_table_init(&table, config->command);
    options_visit(&table.options, config, visit, context);
}

/* -------- resolving on the ranks -------------------------------------------------------------- */

/* Options that may differ between hosts, and options that only rank 0 uses. All other options
 * decide messages or bits of results. */
static const char *const free_options[] = {
    "rendezvous", "rank",    "world-size",      "subnet",       "threads",          "data",
    "timeout",    "network", "startup-timeout", "data-threads", "prefetch-batches", "metrics",
    "json",       "csv",     "verbose",         "join-after",   "leave-after",      "stall-warning",
    "cost-model", "token",   "secure"};

enum { VALUE_BYTES = 512 }; /* of a value that are compared: --sizes with the most sizes fits */

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
    /* Only rank 0 uses these names, but all ranks must agree whether they are given. */
    if (strcmp(name, "checkpoint") == 0 || strcmp(name, "timeline") == 0)
        value = value[0] ? "given" : "";
    CHECK(shared->count < CONFIG_OPTIONS_MAX);
    snprintf(shared->values.of[shared->count], VALUE_BYTES, "%s", value);
    shared->names[shared->count++] = name;
}

/* Collective. Checks that all ranks have the same command and options. mpirun gives all ranks one
 * command line; at a rendezvous each rank has its own. A different option could cause a message of
 * the wrong length or a rank that waits for ever. Some differences (the seed) would cause wrong
 * results without any error. STATUS_USAGE, logged, on every rank whose options differ from rank
 * 0's. */
static enum status check_same(const struct config *config, struct world *world)
{
    enum status status = STATUS_OK;
    struct shared_options mine = {.values.command = config->command};
    config_visit(config, add_option, &mine);
    struct values first = mine.values;
    TRY(world_broadcast(world, NULL, &first, sizeof first));
    if (first.command != mine.values.command)
        return FAIL(
            STATUS_USAGE,
            "rank %d was started with another command than rank 0; start all ranks with the "
            "same command and options",
            world->rank);
    for (size_t i = 0; i < mine.count; i++) {
        const char *here = mine.values.of[i], *there = first.of[i];
        if (strcmp(here, there) == 0)
            continue;
        return FAIL(
            STATUS_USAGE,
            "--%s is %s on rank %d and %s on rank 0; start all ranks with the same options%s",
            mine.names[i], here[0] ? here : "not given", world->rank,
            there[0] ? there : "not given",
            strcmp(mine.names[i], "link-rate") == 0 ? " and the same PSRING_LINK_BITS" : "");
    }
out:
    return status;
}

/* Collective. With --backend auto, chooses and applies the first pick. Otherwise does nothing. */
static enum status choose_backend(struct config *config, struct world *world)
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

/* Only workers take a GPU: servers sum received data on the CPU. */
static enum status choose_gpu(struct config *config, struct world *world)
{
    enum status status = STATUS_OK;
    struct topology topology;
    if (config->device != DEVICE_CUDA)
        return STATUS_OK;
    TRY(topology_init(&topology, world->size, (int)config->servers, config->placement));
    bool worker = topology_node(&topology, world->rank, NODE_WORKER) >= 0;
    status = gpus_choose(world, worker, config->share_gpu, &config->gpu);
    if (status != STATUS_UNSUPPORTED || !(config->elastic.join || config->elastic.survives))
        return status;
    /* An elastic job continues with the workers that have a GPU. */
    if (!worker || config->gpu >= 0)
        return STATUS_TRANSPORT;
    log_error("--device cuda: no GPU is left for this worker; start fewer on its machine, or all "
              "with --share-gpu");
out:
    return status;
}

/* Call before anything counts cores or starts threads. */
static enum status pin_rank(const struct config *config, struct world *world)
{
    enum status status = STATUS_OK;
    char cores[PIN_LIST_BYTES];
    if (config->pin)
        TRY(world_pin(world));
    pin_list_own(cores);
    log_debug("rank %d on %s may run on the cores %s", world->rank, world->host, cores);
out:
    return status;
}

/* Counts hosts: one rank of each host adds 1. */
static enum status name_network(struct config *config, struct world *world)
{
    enum status status;
    double hosts = world->local_rank == 0 ? 1 : 0;
    TRY(world_sum(world, NULL, &hosts, 1));
    if (hosts > 1)
        snprintf(config->network_text, sizeof config->network_text, "%.0f-hosts", hosts);
    else
        snprintf(config->network_text, sizeof config->network_text, "loopback");
    if (config->share_gpu)
        config->network = CONFIG_TIME_SLICING;
    else if (!config->network)
        config->network = config->network_text;
out:
    return status;
}

static struct comm_library library_of(const struct config *config)
{
    return (struct comm_library){
        .share_gpu = config->share_gpu,
        .algorithm = config->nccl_algo == CONFIG_NCCL_AUTO
                         ? NULL
                         : config_nccl_algo_words[config->nccl_algo],
        .registers = config->nccl_register == CONFIG_NCCL_REGISTER_ON,
        .log = config->library_log,
    };
}

enum status config_resolve(struct config *config, struct world *world)
{
    enum status status;
    if (!config->elastic.join) /* an elastic job's server compared them before it admitted us */
        TRY(check_same(config, world));
    TRY(name_network(config, world));
    TRY(choose_backend(config, world));
    if (world->rank != 0)
        log_set_level(LOG_SILENT); /* all ranks find the same error: only rank 0 logs it */
    status = config_check_world(config, world->size);
    if (status == STATUS_OK)
        status = learning_share_batch(config, world->size);
    log_set_level(config->verbose ? LOG_DEBUG : LOG_INFO);
    TRY(status);
    TRY(pin_rank(config, world));
    if (config->command != CONFIG_INFO && config_backend(config)->prepare) {
        struct comm_library library = library_of(config);
        config_backend(config)->prepare(world, &library);
        config->library_log = library.log;
    }
    TRY(choose_gpu(config, world));
out:
    return status;
}

/* -------- what follows from the options ------------------------------------------------------- */

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
    config->radix = pick->radix;
    config->bucket_mb = pick->bucket_mb;
}

void config_free(struct config *config)
{
    free(config->picks);
    config->picks = NULL;
}

bool config_probes(const struct config *config, const struct world *world)
{
    bool link = !config->secure && (world->local_size < world->size || config->link_rate > 0);
    return world->size > 1 && (config->bench.probe == CONFIG_PROBE_ON ||
                               (config->bench.probe == CONFIG_PROBE_AUTO && link));
}

const struct backend *config_backend(const struct config *config)
{
    return config_is_auto(config) ? &backend_auto : backend_get((size_t)config->backend);
}

void config_comm_options(const struct config *config, const struct backend *backend,
                         struct comm_options *options)
{
    *options = (struct comm_options){
        .transport = config->transport == CONFIG_TRANSPORT_AUTO
                         ? backend->default_transport
                         : (enum transport_kind)(config->transport - 1),
        .servers = (int)config->servers,
        .placement = config->placement,
        .reduce_order = config->reduce_order,
        .segment_bytes = config->segment_bytes,
        .window = (int)config->push_window,
        .radix = (int)config->radix,
        .link_bytes_per_s = config->link_rate / 8,
        .rack_ranks = config->rack_ranks,
        .oversubscribed = config->oversubscribed,
        .compress = config->compress,
        .consistency = config->consistency,
        .error_feedback =
            config->compress != COMPRESS_NONE && config->error_feedback != CONFIG_FEEDBACK_OFF,
        .subnet = config->subnet,
        .timeout_ms = (int64_t)(config->timeout * 1000),
        .stall_warning_ms = (int64_t)(config->stall_warning * 1000),
        .library = library_of(config),
    };
}

void config_device_options(const struct config *config, struct device_options *options)
{
    *options = (struct device_options){
        .kind = config->device,
        .threads = 1,
        .gpu = config->gpu,
        .graph = config->graph,
        .tf32 = config->tf32,
    };
}

int config_threads(const struct config *config, const struct world *world)
{
    int cores_each = world->cores / world->sharing_cpus;
    return config->threads > 0 ? (int)config->threads : cores_each > 1 ? cores_each : 1;
}

const char *config_transport_name(const struct config *config, const struct backend *backend)
{
    struct comm_options options;
    if (!backend->uses_transport)
        return "none";
    config_comm_options(config, backend, &options);
    return transport_kind_name(options.transport);
}

const char *config_placement_name(const struct config *config)
{
    bool has_servers = config->servers > 0 || config->placement == PLACEMENT_MIXED;
    return has_servers ? config_placement_words[config->placement] : "none";
}

const char *config_error_feedback_name(const struct config *config)
{
    if (config->compress == COMPRESS_NONE)
        return "none";
    return config->error_feedback == CONFIG_FEEDBACK_OFF ? "off" : "on";
}

const char *config_reduce_order_name(const struct config *config)
{
    return config_reduce_order_words[config->reduce_order];
}

const char *config_model_name(const struct config *config)
{
    return cnn_names[config->model];
}

const char *config_device_name(const struct config *config)
{
    return device_kind_names[config->device];
}
