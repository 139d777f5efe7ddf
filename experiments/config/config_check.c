/* Checks that an option's type and range cannot express: values with a special form, and
 * combinations of options. */
#include "experiments/config/config_table.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/net/address.h"
#include "common/net/host.h"
#include "common/net/topology.h"
#include "experiments/config/backends.h"
#include "models/optim.h"

/* -------- what does not go together ----------------------------------------------------------- */

/* A rule applies if its option is asked for: the option differs from its default, or, if `value` is
 * set, equals `value`. */
struct config_conflict {
    const char *option, *value;
    enum { NEEDS, EXCLUDES } rule;
    const char *with, *with_value;
    const char *why; /* the reason, and what to do */
};

/* A rule holds for the commands that have both options. */
static const struct config_conflict conflicts[] = {
    {"join", NULL, EXCLUDES, "placement", NULL,
     "its servers are separate processes; leave --placement out"},
    {"join", NULL, NEEDS, "sync", "bsp",
     "workers join and leave between steps, which needs --sync bsp without --backup-workers"},
    {"join", NULL, EXCLUDES, "backup-workers", NULL,
     "workers join and leave between steps, which needs --sync bsp without --backup-workers"},
#define NUMBERED "the job numbers its workers; leave --rendezvous, --rank and --world-size out"
    {"join", NULL, EXCLUDES, "rendezvous", NULL, NUMBERED},
    {"join", NULL, EXCLUDES, "rank", NULL, NUMBERED},
    {"join", NULL, EXCLUDES, "world-size", NULL, NUMBERED},
#define ELASTIC                                                                                    \
    "applies only to a worker of an elastic job; add --join tcp://HOST:PORT, or leave it out"
    {"join-after", NULL, NEEDS, "join", NULL, ELASTIC},
#define CLEAR "sends in the clear, which --secure cannot change; "
    {"secure", NULL, EXCLUDES, "transport", "mpi", "MPI " CLEAR "use --transport zmq or tcp"},
    {"secure", NULL, EXCLUDES, "backend", "mpi", "MPI " CLEAR "use --backend ring or ps"},
    {"secure", NULL, EXCLUDES, "backend", "nccl", "NCCL " CLEAR "use --backend ring or ps"},
    {"secure", NULL, EXCLUDES, "probe", "on", "--probe " CLEAR "leave it out"},
    {"secure", NULL, EXCLUDES, "probe", "only", "--probe " CLEAR "leave it out"},
    {"secure", NULL, EXCLUDES, "baselines", NULL, "--baselines " CLEAR "leave it out"},
    {"cost-model", NULL, NEEDS, "backend", "auto",
     "only --backend auto uses it; add that, or leave it out"},
    {"tf32", NULL, NEEDS, "device", "cuda",
     "--device cpu has no such products; leave it out, or add --device cuda"},
    {"share-gpu", NULL, NEEDS, "device", "cuda",
     "--device cpu uses no GPU; leave it out, or add --device cuda"},
    {"error-feedback", NULL, NEEDS, "compress", NULL,
     "without --compress nothing is rounded; leave it out, or add --compress fp16 or bf16"},
    /* Backends give the same bits only if sums are not rounded on their way. */
    {"reduce-order", "ring", EXCLUDES, "compress", NULL,
     "backends round at different places with --compress, so their bits differ in any order; leave "
     "one of the two out"},
    {"backup-workers", NULL, NEEDS, "sync", "bsp",
     "without --sync bsp no worker waits for the last workers; leave one of the two out"},
    {"prefetch-batches", NULL, NEEDS, "data-threads", NULL,
     "without threads no batch is made ahead; add --data-threads 1 or more, or leave it out"},
    {"resume", NULL, NEEDS, "checkpoint", NULL,
     "the run to continue is unknown; add --checkpoint DIR, the folder of that run"},
#define SAVED "nothing is saved without a folder; add --checkpoint DIR"
    {"checkpoint-steps", NULL, NEEDS, "checkpoint", NULL, SAVED},
    {"keep-checkpoints", NULL, NEEDS, "checkpoint", NULL, SAVED},
#define TOGETHER ", which measures ranks that start together; leave one of the two out"
    {"skew", NULL, EXCLUDES, "overlap", NULL, "found --overlap" TOGETHER},
    {"skew", NULL, EXCLUDES, "model-gradients", NULL, "found --model-gradients" TOGETHER},
    {"skew", NULL, EXCLUDES, "require-efficiency", NULL, "found --require-efficiency" TOGETHER},
#define ALONE ", which needs a barrier before each iteration; leave one of the two out"
    {"back-to-back", NULL, EXCLUDES, "overlap", NULL, "found --overlap" ALONE},
    {"back-to-back", NULL, EXCLUDES, "skew", NULL, "found --skew" ALONE},
    {"back-to-back", NULL, EXCLUDES, "model-gradients", NULL, "found --model-gradients" ALONE},
    {"require-efficiency", NULL, EXCLUDES, "probe", "only",
     "found --probe only, which measures no row; use --probe on"},
#define NO_ROW "found --probe only, which writes no file; leave it out, or use --probe on"
    {"csv", NULL, EXCLUDES, "probe", "only", NO_ROW},
    {"json", NULL, EXCLUDES, "probe", "only", NO_ROW},
    {"csv", NULL, NEEDS, "fit", NULL,
     "its rows compare measured with predicted times; add --fit BENCH.CSV"},
    {"hold-out", NULL, NEEDS, "fit", NULL,
     "only a fit leaves rows out; add --fit BENCH.CSV, or leave it out"},
    {"sizes", NULL, NEEDS, "workers", NULL,
     "sizes are predicted for a number of workers; add --workers N, or leave it out"},
};

/* Rules of --join and --elastic, whose workers come and go. `option` is the one that is given. */
#define DIVIDED                                                                                    \
    "values that are divided among the workers would change when workers join or leave; leave "    \
    "--global-batch and --epochs-divided out"
static const struct config_conflict elastic_conflicts[] = {
    {NULL, NULL, EXCLUDES, "transport", "mpi",
     "workers come and go, but MPI's ranks cannot; use --transport zmq or tcp"},
    {NULL, NULL, EXCLUDES, "global-batch", NULL, DIVIDED},
    {NULL, NULL, EXCLUDES, "epochs-divided", NULL, DIVIDED},
    {NULL, NULL, EXCLUDES, "straggler", NULL,
     "a worker's number changes as others come and go; leave --straggler out"},
    {NULL, NULL, EXCLUDES, "last-batch", NULL,
     "the last images of an epoch would change with the number of workers; leave --last-batch out"},
    {NULL, NULL, EXCLUDES, "no-shard", NULL,
     "all workers share one position in the data; leave --no-shard out"},
    {NULL, NULL, EXCLUDES, "timeline", NULL,
     "a timeline needs ranks that stay to the end; leave --timeline out"},
    {NULL, NULL, EXCLUDES, "pin", NULL,
     "cores are divided among ranks that start together; leave --pin out, or start each process "
     "with taskset"},
    {NULL, NULL, EXCLUDES, "target-accuracy", NULL,
     "workers that join do not know earlier tests; leave --target-accuracy out"},
    {NULL, NULL, EXCLUDES, "checkpoint", NULL,
     "the workers keep the state of an elastic job; leave --checkpoint out"},
};

/* Options of training steps, which psring predict predicts only with --model. Other commands have
 * options of these names, too, and always use them. */
#define STEPS "only predicted training steps use it; add --model NAME, or leave it out"
static const struct config_conflict predict_conflicts[] = {
    {"compute-ms", NULL, NEEDS, "model", NULL, STEPS},
    {"batch", NULL, NEEDS, "model", NULL, STEPS},
    {"images", NULL, NEEDS, "model", NULL, STEPS},
    {"epochs", NULL, NEEDS, "model", NULL, STEPS},
    {"bucket-mb", NULL, NEEDS, "model", NULL, STEPS},
    {"cost-per-hour", NULL, NEEDS, "model", NULL, STEPS},
};

struct config_values {
    const struct config_table *table;
    int count;
    char of[CONFIG_OPTIONS_MAX][64]; /* longer values are cut */
};

static void add_value(void *context, const char *name, const char *value)
{
    struct config_values *values = context;
    (void)name;
    snprintf(values->of[values->count++], sizeof values->of[0], "%s", value);
}

/* The value of an option that is asked for, otherwise NULL. *has: the command has the option. */
static const char *asked(const struct config_values *values, const char *option, const char *value,
                         bool *has)
{
    *has = false;
    for (int i = 0; i < values->count; i++) {
        const struct option_spec *spec = &values->table->specs[i];
        const char *text = values->of[i], *initial = spec->initial ? spec->initial : "";
        if (strcmp(spec->name, option) != 0)
            continue;
        *has = true;
        if (spec->type == OPTION_FLAG)
            initial = "false";
        else if (spec->type == OPTION_INT && !spec->initial)
            initial = "-1"; /* not given */
        return (value ? strcmp(text, value) == 0 : strcmp(text, initial) != 0) ? text : NULL;
    }
    return NULL;
}

/* `given`: the option of rules that name none. */
static enum status check_rules(const struct config_values *values,
                               const struct config_conflict *rules, size_t count, const char *given)
{
    for (size_t i = 0; i < count; i++) {
        const struct config_conflict *rule = &rules[i];
        const char *option = rule->option ? rule->option : given;
        bool has, has_with;
        const char *found = asked(values, option, rule->value, &has);
        bool with = asked(values, rule->with, rule->with_value, &has_with) != NULL;
        if (!found || !has_with || with == (rule->rule == NEEDS))
            continue;
        bool flag = strcmp(found, "true") == 0;
        return FAIL(STATUS_USAGE, "--%s%s%s: %s", option, flag ? "" : " ", flag ? "" : found,
                    rule->why);
    }
    return STATUS_OK;
}

static enum status check_conflicts(const struct config *config)
{
    enum status status;
    struct config_table table;
    struct config_values values = {.table = &table};
    config_table_init(&table, config->command);
    options_visit(&table.options, config, add_value, &values);
    const size_t elastic = sizeof elastic_conflicts / sizeof *elastic_conflicts;
    TRY(check_rules(&values, conflicts, sizeof conflicts / sizeof *conflicts, ""));
    TRY(check_rules(&values, elastic_conflicts, elastic, "join"));
    TRY(check_rules(&values, elastic_conflicts, elastic, "elastic"));
    if (config->command == CONFIG_PREDICT)
        TRY(check_rules(&values, predict_conflicts,
                        sizeof predict_conflicts / sizeof *predict_conflicts, ""));
out:
    return status;
}

/* -------- --sync, --backup-workers, --straggler: who waits for whom, and for how long --------- */

static enum status parse_consistency(struct config *config)
{
    enum { STALENESS_MOST = 1000, ASYNC_LATE_STEPS = 8 };
    const char *text = config->train.sync, *number = text + strlen("ssp:");
    struct consistency *consistency = &config->consistency;
    *consistency = (struct consistency){.backup_workers = (int)config->train.backup_workers};
    if (strcmp(text, "async") == 0) {
        consistency->kind = CONSISTENCY_ASYNC;
        consistency->late_steps = ASYNC_LATE_STEPS;
    } else if (strncmp(text, "ssp:", strlen("ssp:")) == 0 && isdigit((unsigned char)*number)) {
        char *end = NULL;
        unsigned long long staleness = strtoull(number, &end, 10);
        if (*end || staleness > STALENESS_MOST)
            return FAIL(STATUS_USAGE,
                        "--sync %s: expected ssp:S with S from 0 to %d, the steps that workers may "
                        "be apart",
                        text, STALENESS_MOST);
        consistency->kind = CONSISTENCY_SSP;
        consistency->staleness = staleness;
        /* Half of the bound: at the full bound other workers already wait. */
        consistency->late_steps = (staleness + 1) / 2;
    } else if (strcmp(text, "bsp") != 0)
        return FAIL(STATUS_USAGE, "--sync: found '%s', expected bsp, ssp:S (e.g. ssp:3) or async",
                    text);
    if (config->train.late_steps == CONFIG_LATE_KEEP && consistency->kind == CONSISTENCY_BSP)
        return FAIL(STATUS_USAGE,
                    "--late-steps keep: with --sync bsp no worker may be late%s; leave it out, or "
                    "add --sync ssp:S or async",
                    config->train.backup_workers > 0 ? ", and --backup-workers drops late pushes"
                                                     : "");
    if (config->train.late_steps == CONFIG_LATE_KEEP)
        consistency->late_steps = 0;
    return STATUS_OK;
}

/* Refuses what servers that own the parameters cannot do. */
static enum status check_consistency(const struct config *config)
{
    const char *backups = config->train.backup_workers > 0 ? " and --backup-workers" : "";
    if (!consistency_updates(&config->consistency))
        return STATUS_OK;
    if (!config->train.paced && (config->learning.optimizer == OPTIMIZER_ADAM ||
                                 config->learning.optimizer == OPTIMIZER_LARS))
        return FAIL(STATUS_USAGE,
                    "--optimizer %s: servers that update know only parts of tensors and count "
                    "updates, not steps; with --sync %s%s use sgd, adagrad or adadelta",
                    optimizer_kind_names[config->learning.optimizer], config->train.sync, backups);
    if (config->train.last_batch == CONFIG_LAST_BATCH_PARTIAL)
        return FAIL(STATUS_USAGE,
                    "--last-batch partial: with --sync %s%s workers are not in one step and do not "
                    "end a step together; leave it out",
                    config->train.sync, backups);
    if (config->reduce_order == REDUCE_ORDER_ANY)
        return STATUS_OK;
    return FAIL(STATUS_USAGE,
                "--reduce-order %s: with --sync %s%s gradients are applied as they arrive, in an "
                "order that cannot be repeated; leave it out",
                config_reduce_order_name(config), config->train.sync, backups);
}

static enum status parse_straggler(struct config *config)
{
    const char *text = config->train.straggler;
    char *end = NULL;
    config->train.straggler_rank = -1;
    config->train.straggler_factor = 1;
    if (!text)
        return STATUS_OK;
    if (config_backend(config)->single_process)
        return FAIL(
            STATUS_USAGE,
            "--straggler %s: --backend %s has no other workers that could wait; leave it out", text,
            config_backend(config)->name);
    unsigned long rank = strtoul(text, &end, 10);
    if (isdigit((unsigned char)*text) && *end == ':' && rank < CONFIG_RANKS_MOST) {
        const char *number = end + 1;
        double factor = strtod(number, &end);
        if (end != number && !*end && factor >= 1 && factor <= 1000) {
            config->train.straggler_rank = (int)rank;
            config->train.straggler_factor = factor;
            return STATUS_OK;
        }
    }
    return FAIL(STATUS_USAGE,
                "--straggler: found '%s', expected RANK:FACTOR with a worker's rank and a factor "
                "from 1 to 1000, e.g. 3:4",
                text);
}

static enum status check_sync(struct config *config)
{
    enum status status;
    TRY(parse_consistency(config));
    TRY(check_consistency(config));
    TRY(parse_straggler(config));
out:
    return status;
}

static enum status check_sync_world(const struct config *config, const struct topology *topology)
{
    if (config->command != CONFIG_TRAIN)
        return STATUS_OK;
    if (config->consistency.backup_workers >= topology->workers)
        return FAIL(STATUS_USAGE,
                    "--backup-workers %d: a step must wait for at least one of %d worker%s; start "
                    "more, or give less",
                    config->consistency.backup_workers, topology->workers,
                    topology->workers == 1 ? "" : "s");
    if (config->train.straggler_rank >= topology->workers) {
        if (topology->workers == 1)
            log_error("--straggler %s: there is one worker, 0", config->train.straggler);
        else
            log_error("--straggler %s: there are %d workers, 0 to %d", config->train.straggler,
                      topology->workers, topology->workers - 1);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* -------- an elastic job: psring serve and psring train --join -------------------------------- */

bool config_server(const struct config *config, int number, char *text, size_t size)
{
    const char *at = config->elastic.join;
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
    return FAIL(
        STATUS_USAGE,
        "--%s: found '%s', expected tcp://HOST:PORT, where HOST is a name or an address and "
        "PORT is 1 to 65535, e.g. tcp://10.0.0.1:29600 or tcp://[fd00::1]:29600",
        option, text);
}

static enum status check_elastic_servers(struct config *config)
{
    enum status status = STATUS_OK;
    char address[ADDRESS_HOST_BYTES + 16];
    int count = 0;
    for (; config_server(config, count, address, sizeof address); count++)
        TRY(check_address("join", address));
    if (config->servers != CONFIG_SERVERS_NOT_GIVEN && config->servers != count)
        return FAIL(STATUS_USAGE, "--servers %lld: --join names %d; leave --servers out",
                    (long long)config->servers, count);
    config->servers = count;
out:
    return status;
}

/* Checks the addresses. Sets config->servers to the number of servers that --join names. */
static enum status check_elastic(struct config *config)
{
    enum status status = STATUS_OK;
    if (config->command == CONFIG_SERVE)
        return check_address("listen", config->elastic.listen);
    if (launcher_mpi_rank() >= 0)
        return FAIL(STATUS_USAGE, "--join %s: start each worker by itself, without mpirun or srun",
                    config->elastic.join);
    if (config->elastic.survives)
        return check_address("join", config->elastic.join);
    if (strcmp(config_backend(config)->name, "ps") != 0)
        return FAIL(STATUS_USAGE,
                    "--join: found --backend %s, expected ps, whose servers it names; or add "
                    "--elastic to join a job without servers",
                    config_backend(config)->name);
    TRY(check_elastic_servers(config));
out:
    return status;
}

/* psring train --elastic. */
static enum status check_survival(const struct config *config)
{
    const char *backend = config_backend(config)->name;
    if (config->elastic.leave_after > 0 && !config->elastic.survives && !config->elastic.join)
        return FAIL(STATUS_USAGE,
                    "--leave-after %lld: applies only to a worker of an elastic job; add --elastic "
                    "or --join tcp://HOST:PORT, or leave it out",
                    (long long)config->elastic.leave_after);
    if (!config->elastic.survives)
        return STATUS_OK;
    if (!config->rendezvous && !config->elastic.join)
        return FAIL(STATUS_USAGE,
                    "--elastic: a launcher of MPI ends all ranks when one is lost; start "
                    "each rank by itself, with --rendezvous, --rank and --world-size, or with "
                    "--join to join a running job");
    if (config_is_auto(config) || (strcmp(backend, "ring") != 0 && strcmp(backend, "rhd") != 0))
        return FAIL(
            STATUS_USAGE,
            "--elastic: found --backend %s, expected ring or rhd; leave it out for a job with "
            "servers (psring serve), which is elastic without it",
            backend);
    return STATUS_OK;
}

/* -------- --backend auto ---------------------------------------------------------------------- */

/* Whether --backend auto goes together with --cost-model and with the device. */
static enum status check_automatic(const struct config *config)
{
    if (config_is_auto(config) && !config->cost_model)
        return FAIL(STATUS_USAGE,
                    "--backend auto: needs a fitted model; add --cost-model MODEL.JSON (written by "
                    "psring predict --fit BENCH.CSV --cost-model MODEL.JSON), or name a backend, "
                    "e.g. --backend ring");
    if (config_is_auto(config) && config->device != DEVICE_CPU)
        return FAIL(STATUS_USAGE,
                    "--backend auto: the model covers only backends that average in host memory; "
                    "with --device %s name a backend, e.g. --backend nccl",
                    device_kind_names[config->device]);
    return STATUS_OK;
}

/* -------- a command --------------------------------------------------------------------------- */

static enum status parse_compute(struct config *config)
{
    const char *text = config->train.compute;
    char *end = NULL;
    bool paced = strncmp(text, "paced:", 6) == 0;
    if (strcmp(text, "real") == 0)
        return STATUS_OK;
    if (paced || strncmp(text, "real:", 5) == 0) {
        const char *number = strchr(text, ':') + 1;
        double ms = strtod(number, &end);
        if (end != number && !*end && isfinite(ms) && ms >= 0 && ms <= 3.6e6) {
            config->train.paced = paced;
            *(paced ? &config->train.paced_ms : &config->train.real_ms) = ms;
            return STATUS_OK;
        }
    }
    return FAIL(STATUS_USAGE,
                "--compute: found '%s', expected real, or paced:MS with the milliseconds that a "
                "step's forward and backward take, e.g. paced:20, or real:MS with those that they "
                "take at least",
                text);
}

/* An empty name usually comes from a script whose command failed. */
static enum status check_named(const char *option, const char *value, const char *question)
{
    if (!value || value[0])
        return STATUS_OK;
    return FAIL(STATUS_USAGE, "--%s is empty, expected %s", option, question);
}

/* A name that others take as standard output would be that of a file here. */
static enum status check_written(const char *option, const char *value)
{
    if (value && strcmp(value, "-") == 0)
        return FAIL(STATUS_USAGE, "--%s -: standard output is for the table; name a file", option);
    return check_named(option, value, "a file");
}

static enum status check_names(const struct config *config)
{
    enum status status;
    TRY(check_named("data", config->data,
                    "a folder; check the command that should print its name, e.g. get_mnist.sh"));
    TRY(check_named("checkpoint", config->train.checkpoint, "a folder"));
    TRY(check_named("checkpoint", config->elastic.checkpoint, "a folder"));
    TRY(check_written("metrics", config->train.metrics));
    TRY(check_written("timeline", config->train.timeline));
    TRY(check_written("csv", config->csv));
    TRY(config->command == CONFIG_INFO ? check_named("json", config->json, "a file")
                                       : check_written("json", config->json));
    TRY(check_named("fit", config->predict.fit, "a bench.csv, or a folder with one"));
    TRY(check_named("train", config->predict.trained, "a train.csv, or a folder with one"));
    TRY(check_named("cost-model", config->cost_model, "a file"));
out:
    return status;
}

/* The label is a CSV field, and one word in plots and tables. */
static enum status check_network(const char *network)
{
    if (!network)
        return STATUS_OK;
    size_t length = strlen(network);
    bool good = length > 0 && length < CONFIG_NETWORK_BYTES;
    for (size_t i = 0; i < length; i++)
        good = good && (isalnum((unsigned char)network[i]) || strchr("-_.:/+", network[i]));
    if (good)
        return STATUS_OK;
    return FAIL(
        STATUS_USAGE,
        "--network (or PSRING_NETWORK): found '%s', expected 1 to %d letters, digits or any "
        "of -_.:/+",
        network, CONFIG_NETWORK_BYTES - 1);
}

static enum status check_servers(struct config *config, const struct backend *backend)
{
    if (!backend->uses_servers || config_is_auto(config))
        return STATUS_OK;
    if (config->servers == CONFIG_SERVERS_NOT_GIVEN)
        config->servers = 1;
    if (config->servers == 0 && config->placement != PLACEMENT_MIXED)
        return FAIL(STATUS_USAGE,
                    "--servers 0: --backend %s averages on servers and needs at least one; give "
                    "--servers 1 or more, or --placement mixed for one in every worker, or use "
                    "--backend ring, which has none",
                    backend->name);
    return STATUS_OK;
}

static enum status parse_timeline_steps(struct config *config)
{
    const char *text = config->train.timeline_steps ? config->train.timeline_steps : "1:100";
    unsigned long long first = 0, last = 0;
    int length = 0;
    bool good = isdigit((unsigned char)*text) &&
                sscanf(text, "%18llu:%18llu%n", &first, &last, &length) == 2 && !text[length];
    if (!good || first < 1 || last < first)
        return FAIL(
            STATUS_USAGE,
            "--timeline-steps: found '%s', expected FIRST:LAST, the first and the last step "
            "to record, counted from 1, e.g. 101:200",
            text);
    if (config->train.timeline_steps && !config->train.timeline)
        return FAIL(STATUS_USAGE,
                    "--timeline-steps %s: needs --timeline FILE; add that, or leave it out", text);
    if (config->train.steps > 0 && first > (uint64_t)config->train.steps)
        return FAIL(STATUS_USAGE,
                    "--timeline-steps %s: the run has %lld steps (--steps), so nothing would be "
                    "recorded; begin earlier",
                    text, (long long)config->train.steps);
    config->train.timeline_first = first - 1;
    config->train.timeline_end = last;
    return STATUS_OK;
}

static enum status check_training(struct config *config)
{
    enum status status;
    TRY(parse_compute(config));
    TRY(check_sync(config));
    TRY(parse_timeline_steps(config));
    TRY(augment_parse(&config->train.augmentation, "augment", config->train.augment));
    const struct backend *backend = config_backend(config);
    if (config->train.virtual_workers > 0 && !backend->single_process)
        return FAIL(
            STATUS_USAGE,
            "--virtual-workers %lld: one process plays all workers, so there is nothing for "
            "--backend %s to do; add --backend none",
            (long long)config->train.virtual_workers, backend->name);
    if (config->train.virtual_workers > 0 && config->train.paced)
        return FAIL(STATUS_USAGE,
                    "--virtual-workers %lld: virtual workers compute, and --compute %s does not; "
                    "omit one of them",
                    (long long)config->train.virtual_workers, config->train.compute);
    if (config->train.real_ms > 0 && backend->single_process)
        return FAIL(STATUS_USAGE,
                    "--compute %s: --backend %s has no other workers to compare the time with; use "
                    "--compute real",
                    config->train.compute, backend->name);
    if (config->train.target_accuracy > 0 && config->train.target_accuracy < 1)
        return FAIL(
            STATUS_USAGE,
            "--target-accuracy %g: expected per cent of the test images, from 1 to 100, e.g. "
            "98.5",
            config->train.target_accuracy);
    if (config->train.checkpoint && config->train.paced)
        return FAIL(
            STATUS_USAGE,
            "--checkpoint: --compute %s trains nothing that could be saved; omit one of them",
            config->train.compute);
    return STATUS_OK;
out:
    return status;
}

static enum status parse_sizes(struct config *config)
{
    const char *at = config->sizes;
    while (at) {
        char *end = NULL;
        unsigned long long bytes = strtoull(at, &end, 10);
        if (!isdigit((unsigned char)*at) || (*end && *end != ',') || bytes > 1000000000000 ||
            config->size_count == CONFIG_SIZES_MOST)
            return FAIL(
                STATUS_USAGE,
                "--sizes: found '%s', expected up to %d numbers of bytes with commas between, "
                "e.g. 65536,4799528",
                config->sizes, CONFIG_SIZES_MOST);
        config->size_list[config->size_count++] = bytes;
        at = *end ? end + 1 : NULL;
    }
    return STATUS_OK;
}

static enum status check_bench(struct config *config)
{
    if (config->bench.max_bytes < config->bench.min_bytes)
        return FAIL(STATUS_USAGE,
                    "-e %llu: the last size is below the first, -b %llu; give -e at least -b",
                    (unsigned long long)config->bench.max_bytes,
                    (unsigned long long)config->bench.min_bytes);
    return parse_sizes(config);
}

static enum status check_predict(struct config *config)
{
    if (!config->predict.fit && !config->cost_model)
        return FAIL(STATUS_USAGE, "predict: needs measurements or a model; give --fit DIR (fits "
                                  "its bench.csv), or --cost-model MODEL.JSON (written by --fit)");
    if (config->predict.workers == 1 ||
        (config->predict.workers == 0 &&
         (config->predict.spare > 0 || config->predict.latency > 0 ||
          (!config->predict.map && (config->predict.rate > 0 || config->racks)))))
        return FAIL(STATUS_USAGE,
                    "--workers %lld: expected at least 2 workers; give --workers 2 or more, or "
                    "leave it, --spare, --rate, --latency and --racks out",
                    (long long)config->predict.workers);
    if (config->predict.trains && (config->predict.workers == 0 || config->compute_ms <= 0))
        return FAIL(STATUS_USAGE,
                    "--model %s: needs the number of workers and the time that each computes; add "
                    "--workers N and --compute-ms MS (psring bench --layers)",
                    config->predict.trains);
    if (!config->predict.fit && config->predict.workers == 0 && !config->predict.trained &&
        !config->predict.map)
        return FAIL(STATUS_USAGE,
                    "--cost-model %s: no prediction is asked for; add --workers N, --map FILE, or "
                    "--train TRAIN.CSV",
                    config->cost_model);
    return parse_sizes(config);
}

/* Refuses options that libpsring does not obey. */
static enum status check_library(const struct config *config, const struct backend *backend)
{
    if (!config->bench.via_library)
        return STATUS_OK;
    if (strcmp(config_transport_name(config, backend), "mpi") == 0)
        return FAIL(STATUS_USAGE, "--via-library: --transport mpi needs MPI, but libpsring's ranks "
                                  "meet without it here; use tcp or zmq");
    if (config->device != DEVICE_CPU || config->compress != COMPRESS_NONE ||
        config->reduce_order != REDUCE_ORDER_ANY || config->segment_bytes > 0)
        return FAIL(
            STATUS_USAGE,
            "--via-library: libpsring sums uncompressed vectors in host memory, with its own order "
            "and segments; leave --device, --compress, --reduce-order and --segment-bytes out");
    return STATUS_OK;
}

/* Refuses what this build or the backend cannot do. */
static enum status check_backend(const struct config *config, const struct backend *backend)
{
    char reason[DEVICE_REASON_BYTES];
    const char *no_device = device_unavailable(config->device, reason);
    if (backend->unavailable)
        return FAIL(STATUS_UNSUPPORTED, "--backend %s: %s", backend->name, backend->unavailable);
    if (no_device)
        return FAIL(STATUS_UNSUPPORTED, "--device %s: %s", device_kind_names[config->device],
                    no_device);
    if (backend->gpu_only && config->device != DEVICE_CUDA)
        return FAIL(STATUS_USAGE,
                    "--backend %s: averages only in GPU memory; add --device cuda, or use another "
                    "backend, e.g. --backend ring between CPUs",
                    backend->name);
    if (config->graph == DEVICE_GRAPH_ON &&
        (config->device != DEVICE_CUDA || !backend->graph_capturable))
        return FAIL(STATUS_USAGE, "--cuda-graph on: only a step without communication can be "
                                  "recorded; use --device cuda --backend none, or leave it out");
    return STATUS_OK;
}

enum status config_check(struct config *config)
{
    enum status status;
    struct subnet subnet;
    const struct backend *backend = config_backend(config);
    TRY(check_network(config->network));
    if (config->subnet)
        TRY(subnet_parse(config->subnet, &subnet));
    TRY(check_names(config));
    if (config->command == CONFIG_INFO)
        return STATUS_OK;
    TRY(check_conflicts(config));
    if (config->command == CONFIG_SERVE || config->elastic.join)
        TRY(check_elastic(config));
    TRY(check_survival(config));
    if (config->command == CONFIG_SERVE)
        return STATUS_OK;
    if (config->command == CONFIG_PREDICT)
        return check_predict(config);
    TRY(check_automatic(config));
    TRY(check_backend(config, backend));
    TRY(check_servers(config, backend));
    TRY(check_library(config, backend));
    TRY(config->command == CONFIG_BENCH ? check_bench(config) : check_training(config));
out:
    return status;
}

enum status config_check_world(const struct config *config, int world_size)
{
    struct topology topology;
    if (config->command == CONFIG_INFO)
        return STATUS_OK;
    if (config->train.virtual_workers > 0 && world_size > 1)
        return FAIL(STATUS_USAGE,
                    "--virtual-workers %lld: one process plays all workers, and %d processes were "
                    "started; start it without mpirun",
                    (long long)config->train.virtual_workers, world_size);
    if (config_backend(config)->single_process && world_size > 1)
        return FAIL(
            STATUS_USAGE,
            "--backend %s: averages nothing, and %d processes were started; choose --backend "
            "ring, or another one",
            config_backend(config)->name, world_size);
    enum status status =
        topology_init(&topology, world_size, (int)config->servers, config->placement);
    if (config_backend(config)->obeys_radix && config->radix > 2 && config->radix > world_size)
        return FAIL(STATUS_USAGE,
                    "--radix %lld: found %d workers; give at most as many, which then exchange "
                    "directly",
                    (long long)config->radix, world_size);
    return status == STATUS_OK ? check_sync_world(config, &topology) : status;
}
