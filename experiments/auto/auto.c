#include "experiments/auto/auto.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/net/transport/transport.h"
#include "experiments/bench/bench.h"
#include "experiments/config/backends.h"
#include "models/published.h"

enum { TEXT_BYTES = 1024 };

/* By enum config_transport, but for auto. */
static const enum transport_kind kinds[] = {[CONFIG_TRANSPORT_ZMQ] = TRANSPORT_ZMQ,
                                            [CONFIG_TRANSPORT_MPI] = TRANSPORT_MPI,
                                            [CONFIG_TRANSPORT_TCP] = TRANSPORT_TCP};

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
    predict_outside(best->model, &cluster, best->way.servers, best->bytes, outside, sizeof outside);
    line_add(line, "; rests on %zu rows over %s and %s", best->model->fitted, best->model->network,
             best->model->transport);
    if (choice->stands_in)
        line_add(line, ", the nearest to %s, of which none were fitted",
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
                                  : " a step beside computing",
             predict_interval_text(best->seconds, 1e3, 3, between));
    if (next->model) {
        line_add(&line, "; next is ");
        add_way(&line, job, next);
        line_add(&line, ", %.4g ms%s", next->seconds.seconds * 1e3,
                 next->seconds.low <= best->seconds.high ? " (their intervals touch)" : "");
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

/* Ranks for servers alone, and where servers may be, from --servers and --placement. */
static enum status place_servers(struct auto_job *job, const struct config *config, int ranks)
{
    bool given = config->placement_given;
    bool inside = given && config->placement == PLACEMENT_COLOCATED;
    int64_t servers = config->servers > 0 ? config->servers : 0;
    if (given && config->placement == PLACEMENT_DEDICATED && servers == 0)
        servers = 1;
    if (servers >= ranks + inside) {
        log_error("--servers %lld: there are %d ranks, which leaves no worker; start more ranks, "
                  "or ask for fewer servers",
                  (long long)servers, ranks);
        return STATUS_USAGE;
    }
    job->spare = inside ? 0 : (int)servers;
    job->workers = ranks - job->spare;
    job->colocated = inside ? (int)servers : 0;
    if (given)
        job->placements = 1u << config->placement;
    else if (job->spare > 0)
        job->placements = 1u << PLACEMENT_DEDICATED | 1u << PLACEMENT_MIXED;
    else
        job->placements = 1u << PLACEMENT_COLOCATED;
    if (job->workers == 1 && job->spare > 0)
        job->placements = 1u << PLACEMENT_DEDICATED;
    return STATUS_OK;
}

static unsigned transports_of(const struct config *config, const struct world *world)
{
    unsigned allowed = 0;
    if (config->transport != CONFIG_TRANSPORT_AUTO)
        return 1u << kinds[config->transport];
    for (int kind = 0; kind < TRANSPORT_KINDS; kind++) {
        if (!transport_kind_unavailable(kind) && (kind != TRANSPORT_MPI || world_is_mpi(world)))
            allowed |= 1u << kind;
    }
    return allowed;
}

/* Whether some ranks, and not all, share a host: else each counts as having one. */
static bool share_hosts(const struct world *world)
{
    bool shared = false, apart = false;
    for (int rank = 0; rank < world->size; rank++) {
        shared = shared || world->host_numbers[rank] != rank;
        apart = apart || world->host_numbers[rank] != world->host_numbers[0];
    }
    return shared && apart;
}

static enum status job_of(struct auto_job *job, const struct config *config,
                          const struct world *world)
{
    *job = (struct auto_job){.hosts = share_hosts(world) ? world->host_numbers : NULL,
                             .network = config->network,
                             .bytes_per_s = config->link_rate / 8,
                             .transports = transports_of(config, world),
                             .compress = config->compress,
                             .ordered = config->reduce_order == REDUCE_ORDER_RING,
                             .bucket_mb = config->bucket_mb};
    if (config->command == CONFIG_TRAIN) {
        job->model = config_model_name(config);
        job->compute_s = (config->paced ? config->paced_ms : config->real_ms) * 1e-3;
    } else if (config->model_gradients) {
        job->model = published_names[config->model_gradients];
        job->compute_s = config->compute_ms * 1e-3;
    }
    /* How far a bucket hides behind computing is not known where that is not. */
    if (job->model && !config->bucket_given && job->compute_s > 0)
        job->bucket_mb = -1;
    return place_servers(job, config, world->size);
}

/* -------- the choice -------------------------------------------------------------------------- */

static struct config_pick pick_of(const struct auto_way *way)
{
    struct config_pick pick = {.backend = backend_find(way->way.backend),
                               .servers = way->way.servers,
                               .placement = way->way.placement,
                               .bucket_mb = way->bucket_mb};
    for (int t = CONFIG_TRANSPORT_ZMQ; t <= CONFIG_TRANSPORT_TCP; t++) {
        if (kinds[t] == way->transport)
            pick.transport = t;
    }
    return pick;
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

/* How right such choices were where it is known: of rows that the model was not fitted to. */
static void say_held_out(const struct predict_held_out *choice, const char *start)
{
    if (choice->cases > 0)
        printf("%sauto: in %zu cases held out of the fit its choices were %.1f%% slower than the "
               "fastest measured (geometric mean), at worst %.1f%%\n",
               start, choice->cases, 100 * choice->mean, 100 * choice->worst);
    else
        printf("%sauto: the model's file has no held-out cases that say how right such choices "
               "are\n",
               start);
}

/* On rank 0. */
static enum status choose_all(struct config *config, const struct world *world)
{
    enum status status;
    struct auto_job job;
    struct predict_models models = {0};
    uint64_t bytes = 0;
    TRY(job_of(&job, config, world));
    status = predict_models_read(&models, config->cost_model);
    if (status != STATUS_OK) {
        status = STATUS_USAGE; /* a file that was named, and is none */
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
        say_held_out(&models.choice, job.model ? "" : "# ");
    fflush(stdout);
out:
    predict_models_free(&models);
    return status;
}

static size_t count_picks(const struct config *config)
{
    size_t count = 0;
    uint64_t bytes = 0;
    if (config->command != CONFIG_BENCH || config->model_gradients)
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
