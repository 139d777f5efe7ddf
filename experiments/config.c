#include "experiments/config.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/options.h"
#include "common/device/device.h"
#include "experiments/backends.h"
#include "experiments/config_check.h"
#include "models/cnn.h"
#include "models/optim.h"
#include "ring/library.h"
#include "ring/nccl_env.h"

static const char *const transport_words[] = {"auto", "zmq", "mpi", NULL};
static const char *const placement_words[] = {"dedicated", "colocated", "mixed", NULL};
static const char *const feedback_words[] = {"auto", "on", "off", NULL};
static const char *const graph_words[] = {"auto", "on", "off", NULL}; /* enum device_graph */
static const char *const probe_words[] = {"auto", "on", "off", NULL};
static const char *const reduce_order_words[] = {"any", "ring", NULL};

/* -------- the option table -------------------------------------------------------------------- */

struct row {
    unsigned commands; /* enum config_command, or-ed */
    struct option_spec spec;
};

#define FIELD(name) .offset = offsetof(struct config, name)

enum { COMM = CONFIG_TRAIN | CONFIG_BENCH, ALL = COMM | CONFIG_INFO };

static const struct row rows[] = {
    {COMM,
     {"backend", 0, OPTION_CHOICE, FIELD(backend), "ring", .choices = backend_names,
      .help = "How gradients are averaged."}},
    {COMM,
     {"transport", 0, OPTION_CHOICE, FIELD(transport), "auto", .choices = transport_words,
      .help = "What ps, ring and rhd talk over; auto: zmq for ps, mpi for ring and rhd."}},
    {COMM,
     {"servers", 0, OPTION_INT, FIELD(servers), NULL, 0, 4096, .metavar = "K",
      .help = "Parameter servers (ps only); 1 unless given. 0 only with --placement mixed."}},
    {COMM,
     {"placement", 0, OPTION_CHOICE, FIELD(placement), "dedicated", .choices = placement_words,
      .help = "Servers as K further ranks, as threads inside the first K workers, or both: mixed, "
              "one in each worker and K further ranks, with shards that load all links alike."}},
    {CONFIG_TRAIN,
     {"sync", 0, OPTION_STRING, FIELD(sync), "bsp", .metavar = "MODE",
      .help = "Consistency; this version has bsp: all workers step together."}},
    {COMM,
     {"reduce-order", 0, OPTION_CHOICE, FIELD(reduce_order), "any", .choices = reduce_order_words,
      .help = "ring: ps, too, adds in the ring's order, to the same bits. Not for mpi or rhd."}},
    {COMM,
     {"compress", 0, OPTION_CHOICE, FIELD(compress), "none", .choices = compress_names,
      .help = "Gradients travel as numbers of 16 bits (ps, ring, rhd); added in float32."}},
    {COMM,
     {"error-feedback", 0, OPTION_CHOICE, FIELD(error_feedback), "auto", .choices = feedback_words,
      .help = "What --compress rounds off is added at the next step; auto: on."}},
    {COMM,
     {"segment", 0, OPTION_SIZE, FIELD(segment), "0", 0, 1 << 30, .metavar = "BYTES",
      .help = "Bytes of one message; 0: chosen from the size of the bucket."}},
    {COMM,
     {"window", 0, OPTION_INT, FIELD(window), "0", 0, 1024,
      .help = "Chunks that a worker may have unanswered with a server (ps only); 0: chosen."}},
    {COMM,
     {"interface", 0, OPTION_STRING, FIELD(subnet), .metavar = "CIDR",
      .help = "Network to bind to, e.g. 10.0.0.0/24 (else PSRING_BIND_SUBNET, else chosen)."}},
    {COMM,
     {"timeout", 0, OPTION_DOUBLE, FIELD(timeout), "30", 0.1, 86400, .metavar = "SECONDS",
      .help = "A peer that is silent for longer is an error."}},
    {COMM,
     {"network", 0, OPTION_STRING, FIELD(network), .metavar = "LABEL",
      .help = "Name of the network in result rows (else PSRING_NETWORK, else by hosts)."}},
    {COMM,
     {"link-rate", 0, OPTION_DOUBLE, FIELD(link_rate), "0", 0, 1e15, .metavar = "BITS",
      .help = "Bits/s each way of a host's link, e.g. 200e6 (else PSRING_LINK_BITS); 0: unknown."}},

    {COMM,
     {"device", 0, OPTION_CHOICE, FIELD(device), "cpu", .choices = device_kind_names,
      .help = "Where a rank computes."}},
    {COMM,
     {"share-gpu", 0, OPTION_FLAG, FIELD(share_gpu),
      .help = "Lets several ranks have one GPU: right results, but times of time-slicing."}},
    {CONFIG_TRAIN,
     {"tf32", 0, OPTION_FLAG, FIELD(tf32),
      .help = "GPUs: products with 10 bits of mantissa, on tensor cores; faster, less exact."}},
    {CONFIG_TRAIN,
     {"cuda-graph", 0, OPTION_CHOICE, FIELD(graph), "auto", .choices = graph_words,
      .help = "GPUs: a step is one launch of a CUDA graph; auto: with --backend none."}},
    {COMM,
     {"threads", 0, OPTION_INT, FIELD(threads), "1", 0, 1024,
      .help = "Compute threads per rank; 0: the machine's cores, shared among its ranks."}},
    {CONFIG_TRAIN,
     {"compute", 0, OPTION_STRING, FIELD(compute), "real", .metavar = "real|paced:MS",
      .help = "paced: a timed wait of MS ms a step instead of computing; gradients of real size."}},

    {COMM,
     {"model", 0, OPTION_CHOICE, FIELD(model), "keras-cnn", .choices = cnn_names,
      .help = "What is trained."}},
    {CONFIG_TRAIN | CONFIG_INFO,
     {"data", 0, OPTION_STRING, FIELD(data), .metavar = "DIR",
      .help = "Folder with the four IDX files (else PSRING_DATA)."}},
    {CONFIG_TRAIN,
     {"epochs", 0, OPTION_INT, FIELD(epochs), "2", 1, 100000, .help = "Passes over the data."}},
    {CONFIG_TRAIN,
     {"steps", 0, OPTION_INT, FIELD(steps), "0", 0, 1e12,
      .help = "Ends after N steps in all; 0: after --epochs."}},
    {COMM,
     {"batch", 0, OPTION_INT, FIELD(batch), "32", 1, 65536, .help = "Images a step, per worker."}},
    {COMM,
     {"optimizer", 0, OPTION_CHOICE, FIELD(optimizer), "sgd", .choices = optimizer_kind_names,
      .help = "How parameters follow from gradients."}},
    {CONFIG_TRAIN,
     {"lr", 0, OPTION_DOUBLE, FIELD(lr), "0", 0, 1000, .metavar = "RATE",
      .help = "Highest learning rate; 0: by optimizer and images a step."}},
    {CONFIG_TRAIN,
     {"seed", 0, OPTION_INT, FIELD(seed), "1", 0, 9e15,
      .help = "Of parameters, shuffling and dropout; the same seed gives the same run."}},
    {CONFIG_TRAIN,
     {"bucket-mb", 0, OPTION_DOUBLE, FIELD(bucket_mb), "4", 0, 65536, .metavar = "MB",
      .help = "Gradients are averaged in buckets of about this size; 0: in one."}},
    {CONFIG_TRAIN,
     {"virtual-workers", 0, OPTION_INT, FIELD(virtual_workers), "0", 0, 4096,
      .help = "With --backend none: this process plays N workers in turn."}},
    {CONFIG_TRAIN,
     {"checkpoint", 0, OPTION_STRING, FIELD(checkpoint), .metavar = "DIR",
      .help = "Saves the state of training there after every epoch."}},
    {CONFIG_TRAIN,
     {"resume", 0, OPTION_FLAG, FIELD(resume),
      .help = "Continues from --checkpoint, to the same bits unless --error-feedback is on."}},
    {CONFIG_TRAIN,
     {"metrics", 0, OPTION_STRING, FIELD(metrics), .metavar = "FILE",
      .help = "Appends a CSV row per epoch (and per --log-steps)."}},
    {CONFIG_TRAIN,
     {"log-steps", 0, OPTION_INT, FIELD(log_steps), "0", 0, 1e9,
      .help = "Reports every N steps too; 0: per epoch."}},

    {CONFIG_BENCH,
     {"compute", 0, OPTION_FLAG, FIELD(bench_compute),
      .help = "Times a training step layer by layer instead, on all ranks at once."}},
    {CONFIG_BENCH,
     {"min-bytes", 'b', OPTION_SIZE, FIELD(min_bytes), "1k", 0, 1e12, .metavar = "BYTES",
      .help = "First size."}},
    {CONFIG_BENCH,
     {"max-bytes", 'e', OPTION_SIZE, FIELD(max_bytes), "16m", 0, 1e12, .metavar = "BYTES",
      .help = "Last size."}},
    {CONFIG_BENCH,
     {"factor", 'f', OPTION_DOUBLE, FIELD(factor), "4", 1.01, 1e6,
      .help = "Each size is the last times this."}},
    {CONFIG_BENCH,
     {"sizes", 0, OPTION_STRING, FIELD(sizes), .metavar = "LIST",
      .help = "These sizes instead of -b to -e: bytes, with commas between, e.g. 65536,4799528."}},
    {CONFIG_BENCH,
     {"iters", 'n', OPTION_INT, FIELD(iters), "0", 0, 1e9,
      .help = "Timed iterations a size; 0: 20 or more, but of 2 s at most, and 5 at least."}},
    {CONFIG_BENCH,
     {"warmup", 'w', OPTION_INT, FIELD(warmup), "5", 0, 1e9,
      .help = "Iterations before them that are not timed."}},
    {CONFIG_BENCH,
     {"mpi-algorithm", 0, OPTION_CHOICE, FIELD(mpi_algorithm), "default",
      .choices = library_algorithm_names,
      .help = "What MPI_Allreduce uses (mpi only, and only Open MPI obeys)."}},
    {CONFIG_BENCH,
     {"probe", 0, OPTION_CHOICE, FIELD(probe), "auto", .choices = probe_words,
      .help = "Measures what a TCP stream reaches on the links, first; auto: not on loopback."}},
    {CONFIG_BENCH,
     {"limits", 0, OPTION_FLAG, FIELD(limits),
      .help = "Measures the speed of memory, ZeroMQ's round trip and a TCP stream, too."}},
    {CONFIG_BENCH | CONFIG_INFO,
     {"json", 0, OPTION_STRING, FIELD(json), .metavar = "FILE",
      .help = "Writes the results, with configuration and machine, as JSON; -: to stdout (info)."}},
    {CONFIG_BENCH,
     {"csv", 0, OPTION_STRING, FIELD(csv), .metavar = "FILE", .help = "Appends rows as CSV."}},

    {ALL, {"verbose", 'v', OPTION_FLAG, FIELD(verbose), .help = "Says more on stderr."}},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* Options that not every run obeys. To give one to another run is a mistake worth a word. */
static const struct limited {
    const char *name;
    unsigned backends; /* that obey it: 1 << enum backend_kind, or-ed */
    bool computes;     /* only runs that compute, not paced ones */
} limited[] = {
    {"placement", 1 << BACKEND_PS, false},
    {"segment", 1 << BACKEND_PS | 1 << BACKEND_RING | 1 << BACKEND_RHD, false},
    {"window", 1 << BACKEND_PS, false},
    {"mpi-algorithm", 1 << BACKEND_MPI, false},
    {"compress", 1 << BACKEND_PS | 1 << BACKEND_RING | 1 << BACKEND_RHD, false},
    {"error-feedback", 1 << BACKEND_PS | 1 << BACKEND_RING | 1 << BACKEND_RHD, false},
    {"data", ~0u, true},
    {"optimizer", ~0u, true},
    {"lr", ~0u, true},
};

/* The rows of one command as options.h wants them. */
struct table {
    struct option_spec specs[ROWS + 1];
    bool given[ROWS];
    struct options options;
};

static void table_init(struct table *table, enum config_command command)
{
    int count = 0;
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].commands & (unsigned)command)
            table->specs[count++] = rows[i].spec;
    }
    table->specs[count] = (struct option_spec){0};
    memset(table->given, 0, sizeof table->given);
    table->options = (struct options){.specs = table->specs, .given = table->given};
    switch (command) {
    case CONFIG_TRAIN:
        table->options.command = "psring train";
        table->options.summary = "Trains a CNN data-parallel: alone, or on all ranks of mpirun.";
        break;
    case CONFIG_BENCH:
        table->options.command = "psring bench";
        table->options.summary =
            "Times averaging over the ranks of mpirun by size; checks every element.";
        break;
    case CONFIG_INFO:
        table->options.command = "psring info";
        table->options.summary = "Lists what this build and this machine have.";
        break;
    }
}

/* bench either exchanges vectors or computes. */
static enum status check_bench_kind(const char *name, bool computes)
{
    static const char *const swept[] = {"backend", "transport", "servers", "min-bytes", "max-bytes",
                                        "factor",  "sizes",     "probe",   "limits",    "compress"};
    static const char *const computed[] = {"threads", "model", "batch", "optimizer"};
    for (size_t i = 0; computes && i < sizeof swept / sizeof *swept; i++) {
        if (strcmp(name, swept[i]) == 0) {
            log_error("--%s: --compute exchanges nothing and does not use it; leave it out", name);
            return STATUS_USAGE;
        }
    }
    for (size_t i = 0; !computes && i < sizeof computed / sizeof *computed; i++) {
        if (strcmp(name, computed[i]) == 0) {
            log_error("--%s: bench computes only with --compute; add that, or leave it out", name);
            return STATUS_USAGE;
        }
    }
    return STATUS_OK;
}

static enum status check_obeyed(const struct table *table, const struct config *config)
{
    for (int i = 0; table->specs[i].name; i++) {
        if (config->command == CONFIG_BENCH && table->given[i] &&
            check_bench_kind(table->specs[i].name, config->bench_compute) != STATUS_OK)
            return STATUS_USAGE;
        for (size_t l = 0; table->given[i] && l < sizeof limited / sizeof limited[0]; l++) {
            const struct limited *limit = &limited[l];
            if (strcmp(limit->name, table->specs[i].name) != 0)
                continue;
            if (!(limit->backends & 1u << config->backend)) {
                log_error("--%s: --backend %s does not use it; leave it out", limit->name,
                          backend_names[config->backend]);
                return STATUS_USAGE;
            }
            if (limit->computes && config->paced) {
                log_error("--%s: --compute %s trains nothing and does not use it; leave it out",
                          limit->name, config->compute);
                return STATUS_USAGE;
            }
        }
    }
    return STATUS_OK;
}

/* -------- the environment -------------------------------------------------------------------- */

/* What a variable of the environment says, or NULL if it is unset or empty. */
static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

bool config_speaks(void)
{
    static const char *const rank_names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                             "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof rank_names / sizeof rank_names[0]; i++) {
        const char *rank = environment(rank_names[i]);
        if (rank)
            return strcmp(rank, "0") == 0;
    }
    return true;
}

static enum status link_rate_from_environment(struct config *config)
{
    const char *text = environment("PSRING_LINK_BITS");
    if (config->link_rate > 0 || !text)
        return STATUS_OK;
    char *end = NULL;
    double bits = strtod(text, &end);
    if (end == text || *end || !isfinite(bits) || bits < 0) {
        log_error("PSRING_LINK_BITS: found '%s', expected bits per second, e.g. 200000000; "
                  "correct or unset it",
                  text);
        return STATUS_USAGE;
    }
    config->link_rate = bits;
    return STATUS_OK;
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

enum status config_parse(enum config_command command, int argc, char **argv, struct config *config,
                         bool *helped)
{
    enum status status;
    struct table table;
    table_init(&table, command);
    *config = (struct config){.command = command,
                              .servers = CONFIG_SERVERS_NOT_GIVEN,
                              .data = environment("PSRING_DATA"),
                              .network = environment("PSRING_NETWORK"),
                              .subnet = environment("PSRING_BIND_SUBNET")};
    if (!config_speaks())
        log_set_level(LOG_SILENT);
    TRY(options_parse(&table.options, argc, argv, config, helped, NULL));
    if (*helped)
        return STATUS_OK;
    TRY(link_rate_from_environment(config));
    TRY(config_check(config));
    TRY(check_obeyed(&table, config));
    log_set_level(config->verbose ? LOG_DEBUG : LOG_INFO);
out:
    return status;
}

void config_visit(const struct config *config,
                  void (*visit)(void *context, const char *name, const char *value), void *context)
{
    struct table table;
    table_init(&table, config->command);
    options_visit(&table.options, config, visit, context);
}

enum status config_settle(struct config *config, struct world *world)
{
    enum status status;
    double hosts = world->local_rank == 0 ? 1 : 0; /* one rank of each host counts it */
    if (world->rank != 0)
        log_set_level(LOG_SILENT); /* all find the same: one of them says it */
    status = config_check_world(config, world->size);
    log_set_level(config->verbose ? LOG_DEBUG : LOG_INFO);
    TRY(status);
    if (config->backend == BACKEND_NCCL)
        nccl_env_set(&(struct nccl_env_options){.share_gpu = config->share_gpu, .world = world},
                     &config->library_log);
    TRY(world_sum(world, NULL, &hosts, 1));
    if (config->share_gpu)
        config->network = CONFIG_TIME_SLICING;
    if (config->network)
        return STATUS_OK;
    if (hosts > 1)
        snprintf(config->network_text, sizeof config->network_text, "%.0f-hosts", hosts);
    else
        snprintf(config->network_text, sizeof config->network_text, "loopback");
    config->network = config->network_text;
out:
    return status;
}

bool config_probes(const struct config *config, const struct world *world)
{
    bool link = world->local_size < world->size || config->link_rate > 0;
    return world->size > 1 &&
           (config->probe == CONFIG_PROBE_ON || (config->probe == CONFIG_PROBE_AUTO && link));
}

void config_comm_options(const struct config *config, const struct backend *backend,
                         struct comm_options *options)
{
    *options = (struct comm_options){
        .transport = config->transport == CONFIG_TRANSPORT_ZMQ   ? TRANSPORT_ZMQ
                     : config->transport == CONFIG_TRANSPORT_MPI ? TRANSPORT_MPI
                                                                 : backend->default_transport,
        .servers = (int)config->servers,
        .placement = config->placement,
        .reduce_order = config->reduce_order,
        .scale = 1,
        .segment_bytes = config->segment,
        .window = (int)config->window,
        .link_bytes_per_s = config->link_rate / 8,
        .compress = config->compress,
        .error_feedback =
            config->compress != COMPRESS_NONE && config->error_feedback != CONFIG_FEEDBACK_OFF,
        .subnet = config->subnet,
        .timeout_ms = (int64_t)(config->timeout * 1000),
        .library_log = config->library_log,
    };
}

void config_device_options(const struct config *config, const struct world *world,
                           struct device_options *options)
{
    *options = (struct device_options){
        .kind = config->device,
        .threads = 1,
        .local_rank = world->local_rank,
        .share_gpu = config->share_gpu,
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
    return has_servers ? placement_words[config->placement] : "none";
}

const char *config_error_feedback_name(const struct config *config)
{
    if (config->compress == COMPRESS_NONE)
        return "none";
    return config->error_feedback == CONFIG_FEEDBACK_OFF ? "off" : "on";
}

const char *config_reduce_order_name(const struct config *config)
{
    return reduce_order_words[config->reduce_order];
}

const char *config_model_name(const struct config *config)
{
    return cnn_names[config->model];
}

const char *config_device_name(const struct config *config)
{
    return device_kind_names[config->device];
}
