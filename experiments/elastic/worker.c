#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/address.h"
#include "common/net/world.h"
#include "experiments/config/launch.h"
#include "experiments/elastic/elastic.h"
#include "experiments/train/train.h"

_Static_assert(sizeof(struct position) <= MEMBER_NOTE_BYTES, "it is sent as a member's note");

bool elastic_goes_on(enum status status)
{
    return status == STATUS_OK || status == STATUS_STOPPED || status_is_loss(status);
}

/* Ends waits of set-up. Otherwise they would wait for a rank that was lost meanwhile. */
static bool is_over(void *member)
{
    return member_over(member);
}

/* A wait for gradients lasts this much longer than the members' wait for a sign of life (member.h),
 * so that the silent member is named first. */
enum { LONGER_S = 2 };

/* The last step of a worker. */
static uint64_t last_step(const struct config *config)
{
    return config->elastic.leave_after > 0 ? (uint64_t)config->elastic.leave_after : UINT64_MAX;
}

enum status elastic_generation(const struct config *job, struct generation *generation,
                               const struct member_generation *place)
{
    enum status status = STATUS_OK;
    struct config config = *job; /* config_resolve fills in values of this world */
    struct world *world = NULL;
    config.timeout += LONGER_S;
    memcpy(&generation->start, place->note, sizeof generation->start);
    TRY(world_open(&world, NULL, NULL,
                   &(struct world_options){
                       .subnet = config.subnet,
                       .startup_timeout_ms = (int64_t)(config.startup_timeout * 1000),
                       .rendezvous = place->address,
                       .token = place->token,
                       .listening = place->listening,
                       .rank = place->rank,
                       .size = place->workers + place->servers,
                       .elastic = true,
                       .cancelled = is_over,
                       .cancel_context = generation->member,
                   }));
    TRY(config_resolve(&config, world));
    if (place->durable)
        TRY(durable_share_state(&config, world, place->workers, generation));
    status = train_generation(&config, world, generation);
out:
    world_close(&world);
    return status;
}

/* -------- a worker ---------------------------------------------------------------------------- */

struct member_place elastic_place(const struct config *config, const struct generation *g,
                                  enum status ended)
{
    struct member_place place = {.step = g->weights ? g->own.step : MEMBER_NO_STEP,
                                 .images = g->own_images,
                                 .batch = (uint64_t)config->batch,
                                 .workers_most = generation_workers_most(config, g->dataset),
                                 .ended = ended};
    memcpy(place.note, &g->own, sizeof g->own);
    return place;
}

static void leave(struct generation *g, const struct member_place *place)
{
    member_leave(g->member, place);
    printf("left after step %llu; the weights contain %llu images of this worker\n",
           (unsigned long long)g->own.step, (unsigned long long)g->own_images);
}

static bool wants_to_leave(const struct generation *g)
{
    return stop_requested() || (g->weights && g->own.step >= g->leave_after);
}

/* Runs from the meeting before the first generation to the end of the last one. */
static enum status take_part(const struct config *config, struct generation *g)
{
    enum status status = STATUS_OK, ended = STATUS_OK;
    struct member_place place = elastic_place(config, g, ended);
    for (;;) {
        struct member_generation next;
        status = member_meet(g->member, &place, stop_requested, &next);
        if (status == STATUS_STOPPED && stop_requested())
            leave(g, &place);
        if (status != STATUS_OK)
            return status == STATUS_STOPPED ? STATUS_OK : status;
        if (next.rank > 0) /* worker 0 prints more */
            log_info("is now worker %d of %d, after step %llu", next.rank, next.workers,
                     (unsigned long long)next.step);
        ended = elastic_generation(config, g, &next);
        place = elastic_place(config, g, ended == STATUS_STOPPED ? STATUS_OK : ended);
        if (ended == STATUS_OK) {
            status = member_done(g->member, &place, stop_requested);
            if (status == STATUS_OK)
                printf("the weights contain %llu images of this worker\n",
                       (unsigned long long)g->own_images);
            if (status != STATUS_STOPPED)
                return status;
        }
        if (ended == STATUS_DIVERGED)
            member_abort(g->member, ended, "training diverged; start again with a smaller --lr");
        if (ended == STATUS_WRONG)
            member_abort(g->member, ended, "the workers' weights differ: discard the run");
        if (!elastic_goes_on(ended))
            return ended;
        if (wants_to_leave(g) && !member_ended(g->member)) {
            leave(g, &place);
            return STATUS_OK;
        }
    }
}

/* -------- without servers --------------------------------------------------------------------
 *
 * psring train --elastic: the ranks meet at a rendezvous. Whenever one is lost or leaves, or
 * newcomers want to join, the others agree on the next world (common/net/shrink.c). */

/* The workers that have been in a world of this process, by identity (world_identity). */
struct roll {
    int count;
    struct present {
        char host[WORLD_HOST_BYTES];
        bool here; /* in the last world, with this rank */
        int rank;
    } * workers;
};

static enum status roll_extend(struct roll *roll, int count)
{
    if (count <= roll->count)
        return STATUS_OK;
    struct present *workers = realloc(roll->workers, (size_t)count * sizeof *workers);
    if (!workers)
        return FAIL(STATUS_NO_MEMORY, "no memory for %d workers", count);
    memset(workers + roll->count, 0, (size_t)(count - roll->count) * sizeof *workers);
    roll->workers = workers;
    roll->count = count;
    return STATUS_OK;
}

/* Every worker that was in an earlier world reports who is lost (*lost: their number) and how it
 * continues. Worker 0 also reports who has come. */
static enum status call_roll(struct roll *roll, const struct world *world, uint64_t step, int *lost)
{
    enum status status = STATUS_OK;
    const bool again = roll->count > 0;
    int rank = 0, last = world_identity(world, world->size - 1);
    char renamed[32] = "";
    *lost = 0;
    TRY(roll_extend(roll, last + 1));
    const struct present *self = &roll->workers[world_identity(world, world->rank)];
    if (again && self->rank != world->rank)
        snprintf(renamed, sizeof renamed, ", this one as worker %d", world->rank);
    for (int i = 0; i < roll->count; i++) {
        struct present *worker = &roll->workers[i];
        bool here = rank < world->size && world_identity(world, rank) == i;
        if (again && worker->here && !here) {
            log_warn("worker %d on %s is lost or has left: %d %s after step %llu%s", worker->rank,
                     worker->host, world->size,
                     world->size == 1 ? "worker continues" : "workers continue",
                     (unsigned long long)step, renamed);
            ++*lost;
        }
        if (again && world->rank == 0 && here && !worker->here)
            log_info("worker %d on %s has joined: %d workers continue after step %llu", rank,
                     world->hosts[rank], world->size, (unsigned long long)step);
        worker->here = here;
        worker->rank = rank;
        if (here)
            memcpy(worker->host, world->hosts[rank++], sizeof worker->host);
    }
out:
    return status;
}

/* Worker 0 prints the command with which newcomers can join. */
static void open_doors(const struct config *config, const struct world *world)
{
    enum { LINE_BYTES = 800 };
    union address door;
    char at[ADDRESS_URI_BYTES], options[LINE_BYTES];
    if (world->rank != 0 || !world_door(world, &door))
        return;
    if (!elastic_options_line(config, options, sizeof options))
        snprintf(options, sizeof options, "OPTION...");
    log_info("workers can join: psring train --join %s %s%s%s%s", address_uri(&door, at), options,
             config->data ? " --data DIR" : "", config->token ? " --token TOKEN" : "",
             config->secure ? " --secure DIR" : "");
}

/* Worker 0 gets the weights and the optimizer's state of a worker that has done one step more. */
static enum status catch_up(struct generation *g, struct world *world, int ahead, int64_t batch)
{
    enum status status = STATUS_OK;
    struct group *group = NULL;
    const struct generation held = {
        .weight_count = g->weight_count, .state_count = g->state_count, .own = g->start};
    bool takes_part = world->rank == 0 || world->rank == ahead;
    if (takes_part && (!g->weights || !g->state)) /* the others continue without this worker */
        return FAIL(STATUS_NO_MEMORY, "no memory had been left for the weights");
    TRY(world_group_new(&group, world, takes_part ? 0 : GROUP_NONE));
    if (!takes_part)
        goto out;
    TRY(generation_fetch(g, world, group, &held));
    if (world->rank == 0) /* its own gradient is in that step */
        g->own_images += (uint64_t)batch;
out:
    world_group_free(&group, world);
    return status;
}

/* Only worker 0 sees the loss. If the training diverged, all workers have such weights. */
static enum status check_finite(const struct generation *g)
{
    for (size_t i = 0; g->weights && i < g->weight_count; i++) {
        if (!isfinite(g->weights[i]))
            return FAIL(STATUS_DIVERGED,
                        "weight %zu is not finite after step %llu; start again with a "
                        "smaller --lr",
                        i, (unsigned long long)g->own.step);
    }
    return STATUS_OK;
}

/* The next generation continues where the worker ends that has done the most steps. Workers are at
 * most one step apart, and all but newcomers have weights once one has done a step. `newcomer`:
 * this process is one. If worker 0 should have weights and no worker has any, they are lost.
 * *leaving: workers that want to leave before the next step. */
static enum status agree_on_start(struct generation *g, struct world *world, int64_t batch,
                                  bool newcomer, int *leaving)
{
    enum status status = STATUS_OK;
    struct standing {
        struct position position;
        int32_t has_weights, has_begun, leaves, unused;
    } mine = {.has_weights = g->weights != NULL,
              .has_begun = newcomer || g->began,
              .leaves = wants_to_leave(g)};
    struct standing *all = calloc((size_t)world->size, sizeof *all);
    int ahead = 0, with_weights = 0;
    *leaving = 0;
    if (!all)
        TRY(FAIL(STATUS_NO_MEMORY, "no memory for %d workers", world->size));
    if (g->weights)
        mine.position = g->own;
    TRY(check_finite(g));
    TRY(world_gather(world, NULL, &mine, sizeof mine, all));
    for (int rank = 0; rank < world->size; rank++) {
        with_weights += all[rank].has_weights;
        *leaving += all[rank].leaves;
        ahead = all[rank].position.step > all[ahead].position.step ? rank : ahead;
    }
    bool stays = with_weights == 0 || *leaving == world->size; /* the newest weights */
    for (int rank = 0; rank < world->size; rank++)
        stays = stays || (!all[rank].leaves && all[rank].has_weights &&
                          all[rank].position.step == all[ahead].position.step);
    *leaving = stays ? *leaving : 0; /* a step first, for which the others get them */
    if (with_weights == 0 && all[0].has_begun)
        TRY(FAIL(STATUS_WRONG, "no worker has the weights any more; start the job again"));
    g->start = all[ahead].position;
    if (ahead > 0)
        status = catch_up(g, world, ahead, batch);
out:
    free(all);
    return status;
}

static enum status one_generation(const struct config *job, struct generation *g,
                                  struct world *world, struct roll *roll, bool newcomer)
{
    enum status status;
    const bool again = roll->count > 0;
    int lost, leaving;
    struct config config = *job; /* config_resolve fills in values of this world */
    if ((newcomer || again) && config.radix > world->size)
        config.radix = world->size > 2 ? world->size : 2;
    TRY(config_resolve(&config, world));
    TRY(agree_on_start(g, world, config.batch, newcomer, &leaving));
    TRY(call_roll(roll, world, g->start.step, &lost));
    if (lost == 0) /* an error had another reason than an end */
        log_release_errors();
    log_hold_errors();
    if (world->rank > 0 && lost == 0 && (newcomer || again)) /* else printed already */
        log_info("is now worker %d of %d, after step %llu", world->rank, world->size,
                 (unsigned long long)g->start.step);
    open_doors(job, world);
    if (leaving > 0) {
        TRY(world_barrier(world, NULL)); /* worker 0 may still get weights, with more time */
        return STATUS_STOPPED;
    }
    TRY(train_generation(&config, world, g));
    status = world_barrier(world, NULL); /* a worker that has lost the last average gets it */
out:
    return status;
}

/* Opens the first world of this process. *config becomes that of the workers of the first world. */
static enum status open_first(struct config *config, struct world **world)
{
    enum status status;
    uint64_t token;
    char name[24], job[ELASTIC_JOB_BYTES];
    const char *door = config->elastic.join;
    struct world_options options = {
        .subnet = config->subnet,
        .startup_timeout_ms = (int64_t)(config->startup_timeout * 1000),
        .rendezvous = door ? door : config->rendezvous,
        .rank = (int)config->rank,
        .size = (int)config->world_size,
        .shrinks = true,
        .elastic = true,
        .job = job,
        .join_after = (uint64_t)config->elastic.join_after,
    };
    config->elastic.join = NULL;
    TRY(launch_job(config, &token));
    options.token = token;
    if (!elastic_options_write(config, job, sizeof job))
        TRY(FAIL(STATUS_USAGE, "--elastic: the options are too long, expected at most %d bytes",
                 ELASTIC_JOB_BYTES));
    if (!door) {
        snprintf(name, sizeof name, "rank %d", (int)config->rank);
        log_set_name(name);
        return world_open(world, NULL, NULL, &options);
    }
    log_set_name("newcomer");
    TRY(world_join(world, &options));
out:
    return status;
}

/* Failed generations that follow each other without a step and with the same members. */
struct failures {
    int count, size, newest; /* newest: identity of the last worker, which rises with newcomers */
    uint64_t step;
};

/* Counts this failure. True: they will not end. Logged. */
static bool fails_for_ever(struct failures *failures, const struct config *config,
                           const struct generation *g, const struct world *world)
{
    enum { FAILURES_MOST = 3 };
    const uint64_t step = g->start.step;
    const int newest = world_identity(world, world->size - 1);
    if (world->size != failures->size || newest != failures->newest || step != failures->step)
        *failures = (struct failures){0, world->size, newest, step};
    if (++failures->count < FAILURES_MOST)
        return false;
    log_error("--elastic: %d generations in a row failed after step %llu with the same %d workers, "
              "expected a step within --timeout %g; read the errors before, and start the job "
              "again, with a larger --timeout for slow workers",
              FAILURES_MOST, (unsigned long long)step, world->size, config->timeout);
    return true;
}

enum departure { STAYS, LEAVES, ALL_LEAVE };

/* Whether this worker leaves now that all have agreed to meet. No worker leaves if only newcomers
 * without weights would stay. */
static enum status agree_on_departure(const struct generation *g, struct world *world,
                                      enum departure *departure)
{
    enum status status;
    struct intention {
        int32_t leaves, has_weights;
    } mine = {wants_to_leave(g), g->weights != NULL};
    struct intention *all = calloc((size_t)world->size, sizeof *all);
    int staying = 0, with_weights = 0;
    *departure = STAYS;
    if (!all)
        TRY(FAIL(STATUS_NO_MEMORY, "no memory for %d workers", world->size));
    TRY(world_gather(world, NULL, &mine, sizeof mine, all));
    for (int rank = 0; rank < world->size; rank++) {
        staying += !all[rank].leaves;
        with_weights += !all[rank].leaves && all[rank].has_weights;
    }
    if (staying == 0)
        *departure = ALL_LEAVE;
    else if (mine.leaves && (with_weights > 0 || !mine.has_weights))
        *departure = LEAVES;
out:
    free(all);
    return status;
}

/* Trains in one world after the other. *departure: this worker leaves as agreed.
 *
 * When a rank is lost, its neighbours in the ring get an error and leave the world. Their
 * neighbours then see them close connections, and so on: most errors name a rank that is alive.
 * They are held until the next world shows who is lost, and written if no world follows. */
static enum status train_in_worlds(const struct config *config, struct generation *g,
                                   struct roll *roll, struct world **world, bool newcomer,
                                   enum departure *departure)
{
    enum status status;
    struct failures failures = {0};
    log_hold_errors();
    for (;;) {
        struct world *next;
        (*world)->stall_warning_ms = (int64_t)(config->stall_warning * 1000);
        (*world)->timeout_ms = (int64_t)(config->startup_timeout * 1000); /* for its set-up */
        status = one_generation(config, g, *world, roll, newcomer);
        if (status == STATUS_STOPPED) {
            (*world)->timeout_ms = (int64_t)(config->timeout * 1000);
            enum status agreed = agree_on_departure(g, *world, departure);
            status = agreed == STATUS_OK ? status : agreed;
        }
        if (status == STATUS_OK || *departure != STAYS || !elastic_goes_on(status))
            goto out;
        if (status != STATUS_STOPPED && fails_for_ever(&failures, config, g, *world))
            goto out;
        world_newcomers(*world, g->weights ? g->own.step : 0,
                        generation_workers_most(config, g->dataset));
        world_fail(*world, status, "another rank has left this world");
        if (status != STATUS_STOPPED) /* else all have agreed to meet */
            log_info("the workers have failed to average: looks for those that are left");
        TRY(world_shrink(&next, *world, status, (int64_t)(config->timeout * 1000)));
        world_close(world);
        *world = next;
    }
out:
    log_release_errors();
    return status;
}

static enum status survive(struct config *config)
{
    enum status status;
    struct world *world = NULL;
    struct roll roll = {0};
    enum departure departure = STAYS;
    bool newcomer = config->elastic.join;
    struct generation g = {.leave_after = last_step(config)};
    status = open_first(config, &world);
    if (status != STATUS_OK)
        return status;
    stop_init(&g.stop, true); /* until here a signal ends the process */
    status = train_in_worlds(config, &g, &roll, &world, newcomer, &departure);
    if (departure != STAYS && g.weights && g.start.step == g.own.step + 1)
        g.own_images += (uint64_t)config->batch; /* in the average that this worker has lost */
    if (status == STATUS_OK || departure != STAYS)
        printf("%s after step %llu; the weights contain %llu images of this worker\n",
               departure == STAYS ? "ended" : "left", (unsigned long long)g.own.step,
               (unsigned long long)g.own_images);
    status = departure == LEAVES ? STATUS_OK : status;
    if (departure == ALL_LEAVE)
        status =
            FAIL(STATUS_TRANSPORT,
                 "%s left: the job has ended, and its weights are lost; start it again, or let "
                 "others join before",
                 world->size == 1 ? "the last worker has" : "all workers have");
    if (status != STATUS_OK)
        world_fail(world, status, "another rank has ended with an error");
    world_close(&world);
    free(roll.workers);
    stop_fini(&g.stop);
    generation_fini(&g);
    return status;
}

/* -------- the interface ----------------------------------------------------------------------- */

enum status elastic_train(struct config *config)
{
    enum status status = STATUS_OK;
    char job[ELASTIC_JOB_BYTES], address[300];
    if (config->elastic.survives)
        return survive(config);
    struct generation generation = {
        .watch = member_watch, .asked_until = member_until, .leave_after = last_step(config)};
    stop_init(&generation.stop, true);
    config_server(config, 0, address, sizeof address);
    if (!elastic_options_write(config, job, sizeof job))
        TRY(FAIL(STATUS_USAGE,
                 "--join: the list of servers is too long, expected at most %d bytes; use shorter "
                 "host names",
                 ELASTIC_JOB_BYTES));
    uint64_t token;
    TRY(elastic_token(config, &token));
    status = member_open(
        &generation.member,
        &(struct member_options){.token = token,
                                 .address = address,
                                 .role = MEMBER_WORKER,
                                 .job = job,
                                 .join_after = (uint64_t)config->elastic.join_after,
                                 .timeout_ms = (int64_t)(config->timeout * 1000),
                                 .startup_timeout_ms = (int64_t)(config->startup_timeout * 1000),
                                 .stop = stop_requested});
    if (status == STATUS_STOPPED) { /* by a signal, before the worker took part */
        status = STATUS_OK;
        goto out;
    }
    TRY(status);
    status = take_part(config, &generation);
out:
    member_close(&generation.member);
    stop_fini(&generation.stop);
    generation_fini(&generation);
    return status;
}
