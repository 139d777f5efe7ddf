#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/text.h"
#include "common/net/transport/transport.h"
#include "experiments/bench/bench.h"
#include "experiments/config/backends.h"
#include "experiments/predict/predict.h"
#include "experiments/predict/training.h"
#include "models/published.h"

/* Kinds of ways to average: those of predict_topologies before ps, hierarchical, and ps by its
 * placement. The second best way is of another kind than the best. */
enum { HIERARCHICAL = PREDICT_PS, SERVED, KINDS = SERVED + PLACEMENT_SWITCH + 1 };

struct auto_search {
    const struct auto_job *job;
    struct auto_way best[KINDS];
    struct auto_way alone;
    /* The way being tried: */
    const struct predict_model *model; /* as fitted */
    struct predict_model there;        /* scaled to the links of the job */
    enum transport_kind transport;
    double bucket_mb;
    const struct predict_step *step; /* NULL: one vector */
};

/* -------- models ------------------------------------------------------------------------------ */

static bool is_of(const struct predict_model *model, const char *network)
{
    return strcmp(model->network, network) == 0 && model->fit.error_count > 0;
}

/* The model of a network and transport, or NULL. */
static const struct predict_model *model_over(const struct predict_models *models,
                                              const char *network, enum transport_kind kind)
{
    for (size_t m = 0; m < models->count; m++) {
        if (is_of(&models->models[m], network) &&
            strcmp(models->models[m].transport, transport_kind_name(kind)) == 0)
            return &models->models[m];
    }
    return NULL;
}

/* The model of that network with the most fitted rows, or NULL. */
static const struct predict_model *nearest_model(const struct predict_models *models,
                                                 const char *network)
{
    const struct predict_model *nearest = NULL;
    for (int kind = 0; kind < TRANSPORT_KINDS; kind++) {
        const struct predict_model *model = model_over(models, network, kind);
        if (model && (!nearest || model->fitted > nearest->fitted))
            nearest = model;
    }
    return nearest;
}

static enum status no_model(const struct predict_models *models, const char *network)
{
    char known[256] = "";
    struct line line = line_in(known, sizeof known);
    for (size_t m = 0; m < models->count; m++) {
        if (predict_is_first(models, m))
            line_add(&line, "%s%s", m > 0 ? ", " : "", models->models[m].network);
    }
    return FAIL(
        STATUS_USAGE,
        "--backend auto: no transport was fitted for the network %s, only for %s; fit rows of this "
        "network, name one of those with --network, or name a backend",
        network, known);
}

/* The model scaled to the job's links. */
static struct predict_model model_there(const struct predict_model *model,
                                        const struct auto_job *job)
{
    const struct predict_cluster cluster = {
        .workers = job->workers,
        .bytes_per_s = job->bytes_per_s,
        .shares_cores = true}; /* cores are shared as in the fitted network */
    bool other = job->bytes_per_s > 0 && model->nominal_bytes_per_s > 0 &&
                 fabs(job->bytes_per_s / model->nominal_bytes_per_s - 1) > 1e-6;
    return other ? predict_model_on(model, &cluster) : *model;
}

/* -------- ways -------------------------------------------------------------------------------- */

/* Whether some of these ranks share a host, but not all. `hosts` NULL: one each. */
static bool share_hosts(const int *hosts, int ranks)
{
    bool shared = false, apart = false;
    for (int rank = 1; hosts && rank < ranks; rank++) {
        apart = apart || hosts[rank] != hosts[0];
        for (int other = 0; other < rank && !shared; other++)
            shared = hosts[other] == hosts[rank];
    }
    return shared && apart;
}

static bool is_served(const struct predict_way *way)
{
    return strcmp(way->backend, "ps") == 0;
}

static int kind_of(const struct predict_way *way)
{
    int topology = predict_topology(way->backend);
    return is_served(way)          ? SERVED + (int)way->placement
           : topology < PREDICT_PS ? topology
                                   : HIERARCHICAL;
}

static void keep(struct auto_way *kept, const struct auto_way *way)
{
    if (!kept->model || way->seconds.seconds < kept->seconds.seconds)
        *kept = *way;
}

static void try_way(const struct auto_search *search, struct auto_way *kept, struct predict_way way)
{
    const struct auto_job *job = search->job;
    const struct predict_model *there = &search->there;
    const struct backend *backend = predict_backend(way.backend);
    const struct predict_training training = {.compute_s = job->compute_s,
                                              .compress = job->compress};
    struct auto_way tried = {.way = way,
                             .transport = search->transport,
                             .bucket_mb = search->bucket_mb,
                             .buckets = search->step ? search->step->bucket_count : 1,
                             .bytes = search->step ? predict_step_most(search->step)
                                                   : job->count * sizeof(float),
                             .model = search->model};
    struct predict_terms terms;
    bool known;
    if ((job->ordered && !backend->obeys_reduce_order) ||
        (job->compress != COMPRESS_NONE && !backend->compresses))
        return;
    if (search->step)
        known = predict_training_step(there, &way, job->workers, job->hosts, search->step,
                                      &training, &tried.seconds);
    else if ((known = predict_way_terms(there, &way, job->workers, job->hosts, job->count,
                                        job->compress, &terms)))
        tried.seconds = predict_time(&there->fit, &terms);
    if (known)
        keep(kept, &tried);
}

/* Whether the job's ranks can average in this way. All ranks that are reserved for servers run one.
 * Larger radices of rhd are no candidates: no term of the model describes many senders into one
 * fast port.
 */
static bool is_possible(const struct auto_job *job, const struct predict_way *way)
{
    if (!is_served(way))
        return job->workers > 1 && way->radix <= 2;
    return job->placements >> way->placement & 1 &&
           (way->placement == PLACEMENT_COLOCATED || way->servers == job->spare);
}

static void try_over(struct auto_search *search, enum transport_kind kind,
                     const struct predict_model *model)
{
    const struct auto_job *job = search->job;
    const struct predict_cluster cluster = {.workers = job->workers,
                                            .spare = job->spare,
                                            .inside = job->colocated,
                                            .in_switch = job->spare,
                                            .shares_hosts = share_hosts(job->hosts, job->workers)};
    struct predict_way ways[PREDICT_WAYS_MOST];
    size_t count;
    search->transport = kind;
    search->model = model;
    search->there = model_there(model, job);
    predict_ways(&cluster, ways, &count);
    for (size_t w = 0; w < count; w++) {
        bool alone = job->spare > 0 && !is_served(&ways[w]);
        struct auto_way *kept = alone ? &search->alone : &search->best[kind_of(&ways[w])];
        if (is_possible(job, &ways[w]))
            try_way(search, kept, ways[w]);
    }
    if (job->spare == 0 && job->placements >> PLACEMENT_MIXED & 1) /* one in each worker */
        try_way(search, &search->best[SERVED + PLACEMENT_MIXED],
                (struct predict_way){.backend = "ps", .placement = PLACEMENT_MIXED, .servers = 0});
}

/* Tries each allowed transport that was fitted. If none was fitted, tries one allowed transport,
 * preferably tcp, with the nearest model, and returns true. */
static bool try_transports(struct auto_search *search, const struct predict_models *models)
{
    const struct auto_job *job = search->job;
    bool stands_in = true;
    for (int kind = 0; kind < TRANSPORT_KINDS; kind++) {
        const struct predict_model *model = model_over(models, job->network, kind);
        if (!model || !(job->transports >> kind & 1))
            continue;
        try_over(search, kind, model);
        stands_in = false;
    }
    for (int i = 0; stands_in && i < TRANSPORT_KINDS; i++) {
        int kind = (TRANSPORT_TCP + i) % TRANSPORT_KINDS;
        if (job->transports >> kind & 1) {
            try_over(search, kind, nearest_model(models, job->network));
            break;
        }
    }
    return stands_in;
}

static enum status try_buckets(struct auto_search *search, const struct predict_models *models,
                               double bucket_mb, bool *stands_in)
{
    enum status status;
    struct predict_step step;
    TRY(predict_step_open(&step, search->job->model, (size_t)(bucket_mb * 1048576)));
    search->step = &step;
    search->bucket_mb = bucket_mb;
    *stands_in = try_transports(search, models);
out:
    predict_step_free(&step);
    search->step = NULL;
    return status;
}

/* -------- the choice -------------------------------------------------------------------------- */

static void find_best(const struct auto_search *search, struct auto_choice *choice)
{
    int best = -1;
    for (int kind = 0; kind < KINDS; kind++) {
        const struct auto_way *way = &search->best[kind];
        if (way->model && (best < 0 || way->seconds.seconds < search->best[best].seconds.seconds))
            best = kind;
    }
    CHECK(best >= 0); /* the caller leaves at least one way */
    choice->best = search->best[best];
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind != best && search->best[kind].model)
            keep(&choice->next, &search->best[kind]);
    }
    choice->alone = search->alone;
}

enum status auto_choose_way(const struct predict_models *models, const struct auto_job *job,
                            struct auto_choice *choice)
{
    enum status status = STATUS_OK;
    struct auto_search search = {.job = job, .bucket_mb = fmax(job->bucket_mb, 0)};
    *choice = (struct auto_choice){0};
    if (!nearest_model(models, job->network))
        return no_model(models, job->network);
    if (!job->model)
        choice->stands_in = try_transports(&search, models);
    else if (job->bucket_mb >= 0)
        TRY(try_buckets(&search, models, job->bucket_mb, &choice->stands_in));
    for (size_t b = 0; job->model && job->bucket_mb < 0 && b < PREDICT_BUCKET_SIZES; b++)
        TRY(try_buckets(&search, models, predict_bucket_mb[b], &choice->stands_in));
    find_best(&search, choice);
out:
    return status;
}

enum { TEXT_BYTES = 1024 };

/* -------- in words ---------------------------------------------------------------------------- */

static void add_way(struct line *line, const struct auto_job *job, const struct auto_way *way)
{
    char words[32];
    predict_way_words(&way->way, words, sizeof words);
    line_add(line, "%s over %s", words, transport_kind_name(way->transport));
    if (job->model && way->buckets > 1)
        line_add(line, " in %zu buckets of %g MB", way->buckets, way->bucket_mb);
    else if (job->model)
        line_add(line, " in one bucket");
}

static void add_basis(struct line *line, const struct auto_job *job,
                      const struct auto_choice *choice)
{
    char outside[256];
    const struct auto_way *best = &choice->best;
    const struct predict_cluster cluster = {.workers = job->workers,
                                            .bytes_per_s = job->bytes_per_s};
    predict_outside(best->model, &cluster, best->way.servers, best->bytes, best->bytes, outside,
                    sizeof outside);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): find_best checks that there is one */
    line_add(line, "; based on %zu rows over %s and %s", best->model->fitted, best->model->network,
             best->model->transport);
    if (choice->stands_in)
        line_add(line, ", the nearest model for %s, which has no fitted rows",
                 transport_kind_name(best->transport));
    if (*outside)
        line_add(line, "; outside of what was fitted: %s", outside);
}

void auto_describe(const struct auto_job *job, const struct auto_choice *choice, char *text,
                   size_t size)
{
    char between[PREDICT_INTERVAL_BYTES];
    struct line line = line_in(text, size);
    const struct auto_way *best = &choice->best, *next = &choice->next, *alone = &choice->alone;
    if (!job->model)
        line_add(&line, "%zu bytes: ", job->count * sizeof(float));
    add_way(&line, job, best);
    line_add(&line, ", predicted to take %.4g ms%s %s", best->seconds.seconds * 1e3,
             !job->model          ? ""
             : job->compute_s > 0 ? " a step"
                                  : " a step (communication only)",
             predict_interval_text(best->seconds, 1e3, 3, between));
    if (next->model) {
        line_add(&line, "; next is ");
        add_way(&line, job, next);
        line_add(&line, ", %.4g ms%s", next->seconds.seconds * 1e3,
                 next->seconds.low <= best->seconds.high ? " (their intervals overlap)" : "");
    }
    if (alone->model && alone->seconds.seconds < best->seconds.seconds) {
        line_add(&line, "; without ranks for servers ");
        add_way(&line, job, alone);
        line_add(&line, " would take %.4g ms: start %d ranks without --servers",
                 alone->seconds.seconds * 1e3, job->workers);
    }
    add_basis(&line, job, choice);
}

/* -------- the job ----------------------------------------------------------------------------- */

/* Derives the ranks reserved for servers, and the allowed placements, from --servers and
 * --placement. */
static enum status place_servers(struct auto_job *job, const struct config *config, int ranks)
{
    bool given = config->placement_given;
    bool inside = given && config->placement == PLACEMENT_COLOCATED;
    bool in_switch = given && config->placement == PLACEMENT_SWITCH;
    int64_t servers = config->servers > 0 ? config->servers : 0;
    if (given && (in_switch || config->placement == PLACEMENT_DEDICATED) && servers == 0)
        servers = 1;
    if (servers >= ranks + inside)
        return FAIL(STATUS_USAGE,
                    "--servers %lld: there are %d ranks, which leaves no worker; start more ranks, "
                    "or ask for fewer servers",
                    (long long)servers, ranks);
    job->spare = inside ? 0 : (int)servers;
    job->workers = ranks - job->spare;
    job->colocated = inside ? (int)servers : 0;
    if (given)
        job->placements = 1u << config->placement;
    else if (job->spare > 0)
        job->placements = 1u << PLACEMENT_DEDICATED | 1u << PLACEMENT_MIXED;
    else
        job->placements = 1u << PLACEMENT_COLOCATED;
    if (job->workers == 1 && job->spare > 0 && !in_switch)
        job->placements = 1u << PLACEMENT_DEDICATED;
    return STATUS_OK;
}

static unsigned transports_of(const struct config *config, const struct world *world)
{
    unsigned allowed = 0;
    if (config->transport != CONFIG_TRANSPORT_AUTO)
        return 1u << (config->transport - 1);
    for (int kind = 0; kind < TRANSPORT_KINDS; kind++) {
        if (!transport_kind_unavailable(kind) && (kind != TRANSPORT_MPI || world_is_mpi(world)))
            allowed |= 1u << kind;
    }
    return allowed;
}

static enum status job_of(struct auto_job *job, const struct config *config,
                          const struct world *world)
{
    bool shared = share_hosts(world->host_numbers, world->size);
    *job = (struct auto_job){.hosts = shared ? world->host_numbers : NULL,
                             .network = config->network,
                             .bytes_per_s = config->link_rate / 8,
                             .transports = transports_of(config, world),
                             .compress = config->compress,
                             .ordered = config->reduce_order == REDUCE_ORDER_RING,
                             .bucket_mb = config->bucket_mb};
    if (config->command == CONFIG_TRAIN) {
        job->model = config_model_name(config);
        job->compute_s =
            (config->train.paced ? config->train.paced_ms : config->train.real_ms) * 1e-3;
    } else if (config->bench.model_gradients) {
        job->model = published_names[config->bench.model_gradients];
        job->compute_s = config->compute_ms * 1e-3;
    }
    /* The best bucket size depends on the computation time, so choose it only if that is known. */
    if (job->model && !config->bucket_given && job->compute_s > 0)
        job->bucket_mb = -1;
    return place_servers(job, config, world->size);
}

/* -------- the choice -------------------------------------------------------------------------- */

static struct config_pick pick_of(const struct auto_way *way)
{
    return (struct config_pick){.backend = backend_find(way->way.backend),
                                .transport = (int)way->transport + 1,
                                .servers = way->way.servers,
                                .radix = way->way.radix,
                                .placement = way->way.placement,
                                .bucket_mb = way->bucket_mb};
}

static enum status choose_one(struct config_pick *pick, const struct predict_models *models,
                              const struct auto_job *job)
{
    enum status status;
    struct auto_choice choice;
    char text[TEXT_BYTES];
    TRY(auto_choose_way(models, job, &choice));
    *pick = pick_of(&choice.best);
    if (!job->model)
        pick->bucket_mb = job->bucket_mb;
    auto_describe(job, &choice, text, sizeof text);
    printf("%sauto: %s\n", job->model ? "" : "# ", text);
out:
    return status;
}

/* Prints the regret of such choices in rows that were not fitted. */
static void print_held_out(const struct predict_held_out *choice, const char *start)
{
    if (choice->cases > 0)
        printf("%sauto: in %zu cases held out of the fit its choices were %.1f%% slower than the "
               "fastest measured (geometric mean), at worst %.1f%%\n",
               start, choice->cases, 100 * choice->mean, 100 * choice->worst);
    else
        printf("%sauto: the model file has no held-out cases, so the error of such choices is "
               "unknown\n",
               start);
}

/* Reads the model and makes all choices. Only on rank 0. */
static enum status choose_all(struct config *config, const struct world *world)
{
    enum status status;
    struct auto_job job;
    struct predict_models models = {0};
    uint64_t bytes = 0;
    TRY(job_of(&job, config, world));
    status = predict_models_read(&models, config->cost_model);
    if (status != STATUS_OK) {
        status = STATUS_USAGE; /* the user named the file */
        goto out;
    }
    for (size_t i = 0; i < config->pick_count; i++) {
        struct config_pick *pick = &config->picks[i];
        if (job.workers == 1 && job.spare == 0) {
            *pick = (struct config_pick){.backend = backend_find("none"),
                                         .bucket_mb = config->bucket_mb};
            continue;
        }
        if (!job.model)
            bench_size(config, i, &bytes);
        job.count = bytes / sizeof(float);
        TRY(choose_one(pick, &models, &job));
    }
    if (job.workers == 1 && job.spare == 0)
        printf("%sauto: one worker, which has nothing to average\n", job.model ? "" : "# ");
    else
        print_held_out(&models.choice, job.model ? "" : "# ");
    fflush(stdout);
out:
    predict_models_free(&models);
    return status;
}

static size_t count_picks(const struct config *config)
{
    size_t count = 0;
    uint64_t bytes = 0;
    if (config->command != CONFIG_BENCH || config->bench.model_gradients)
        return 1;
    while (bench_size(config, count, &bytes))
        count++;
    return count;
}

enum status auto_choose(struct config *config, struct world *world)
{
    enum status status;
    config->pick_count = count_picks(config);
    config->picks = calloc(config->pick_count, sizeof *config->picks);
    int32_t found = config->picks ? STATUS_OK : STATUS_NO_MEMORY;
    if (!config->picks)
        log_error("--backend auto: no memory for %zu sizes", config->pick_count);
    else if (world->rank == 0)
        found = choose_all(config, world);
    TRY(world_broadcast(world, NULL, &found, sizeof found));
    TRY((enum status)found);
    TRY(config->picks ? STATUS_OK : STATUS_NO_MEMORY);
    TRY(world_broadcast(world, NULL, config->picks, config->pick_count * sizeof *config->picks));
out:
    return status;
}
