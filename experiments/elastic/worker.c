#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/world.h"
#include "experiments/config/launch.h"
#include "experiments/elastic/elastic.h"
#include "experiments/train/train.h"

_Static_assert(sizeof(struct position) <= MEMBER_NOTE_BYTES, "it is sent as a member's note");

bool elastic_goes_on(enum status status)
{
    return status == STATUS_OK || status == STATUS_STOPPED || status == STATUS_TRANSPORT ||
           status == STATUS_TIMEOUT || status == STATUS_PROTOCOL;
}

/* Ends waits of set-up. Otherwise they would wait for a rank that was lost meanwhile. */
static bool is_over(void *member)
{
    return member_over(member);
}

/* A wait for gradients lasts this much longer than the members' wait for a sign of life (member.h),
 * so that the silent member is named first. */
enum { LONGER_S = 2 };

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
                       .cancelled = is_over,
                       .cancel_context = generation->member,
                   }));
    TRY(config_resolve(&config, world));
    status = train_generation(&config, world, generation);
out:
    world_close(&world);
    return status;
}

/* -------- a worker ---------------------------------------------------------------------------- */

/* The largest number of workers with which an epoch has a step. */
static int workers_most(const struct config *config, const struct generation *g)
{
    size_t most = g->dataset ? g->dataset->train.count / (size_t)config->batch : 0;
    return most < INT_MAX ? (int)most : 0;
}

static struct member_place place_of(const struct config *config, const struct generation *g,
                                    enum status ended)
{
    struct member_place place = {.step = g->weights ? g->own.step : MEMBER_NO_STEP,
                                 .images = g->own_images,
                                 .workers_most = workers_most(config, g),
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
    struct member_place place = place_of(config, g, ended);
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
        place = place_of(config, g, ended == STATUS_STOPPED ? STATUS_OK : ended);
        if (ended == STATUS_OK) {
            member_done(g->member, &place);
            printf("the weights contain %llu images of this worker\n",
                   (unsigned long long)g->own_images);
            return STATUS_OK;
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
 * psring train --elastic: the ranks meet at a rendezvous. Whenever one is lost or leaves, the
 * others agree on a world without it (common/net/shrink.c). */

static void watch_nobody(struct member *member, void (*interrupt)(void *context), void *context)
{
    (void)member;
    (void)interrupt;
    (void)context;
}

static uint64_t nobody_joins(const struct member *member)
{
    (void)member;
    return UINT64_MAX;
}

/* The ranks of the first world, and those that are lost. */
struct ranks {
    int count;
    char (*hosts)[WORLD_HOST_BYTES];
    bool *gone;
};

static enum status ranks_init(struct ranks *ranks, const struct world *world)
{
    size_t count = (size_t)world->size;
    ranks->count = world->size;
    ranks->hosts = calloc(count, sizeof *ranks->hosts);
    ranks->gone = calloc(count, sizeof *ranks->gone);
    if (!ranks->hosts || !ranks->gone)
        return FAIL(STATUS_NO_MEMORY, "no memory for %zu workers", count);
    memcpy(ranks->hosts, world->hosts, count * sizeof *ranks->hosts);
    return STATUS_OK;
}

static void ranks_fini(struct ranks *ranks)
{
    free(ranks->hosts);
    free(ranks->gone);
}

/* Worker 0 reports which ranks have been lost since the last call. `rank`: this process's. */
static enum status report_lost(struct ranks *ranks, struct world *world, int rank, uint64_t step)
{
    enum status status;
    int *present = calloc((size_t)world->size, sizeof *present);
    if (!present)
        return FAIL(STATUS_NO_MEMORY, "no memory for %d workers", world->size);
    TRY(world_gather(world, NULL, &rank, sizeof rank, present));
    for (int r = 0, i = 0; r < ranks->count; r++) {
        bool here = i < world->size && present[i] == r;
        i += here;
        if (!here && !ranks->gone[r] && world->rank == 0)
            log_warn("rank %d on %s is lost or has left: %d of %d workers continue after step %llu",
                     r, ranks->hosts[r], world->size, ranks->count, (unsigned long long)step);
        ranks->gone[r] = !here;
    }
out:
    free(present);
    return status;
}

/* Worker 0 gets the weights and the optimizer's state of a worker that has done one step more. */
static enum status catch_up(struct generation *g, struct world *world, int ahead, int64_t batch)
{
    enum status status = STATUS_OK;
    size_t count = g->weight_count + g->state_count;
    struct group *group = NULL;
    float *mine = NULL, *both = NULL;
    bool takes_part = world->rank == 0 || world->rank == ahead;
    if (takes_part && (!g->weights || !g->state)) /* the others continue without this worker */
        return FAIL(STATUS_NO_MEMORY, "no memory had been left for the weights");
    TRY(world_group_new(&group, world, takes_part ? 0 : GROUP_NONE));
    if (!takes_part)
        goto out;
    mine = malloc((count + 1) * sizeof *mine);
    both = malloc((2 * count + 1) * sizeof *both);
    if (!mine || !both)
        TRY(FAIL(STATUS_NO_MEMORY, "no memory to pass on %zu weights", g->weight_count));
    memcpy(mine, g->weights, g->weight_count * sizeof *mine);
    memcpy(mine + g->weight_count, g->state, g->state_count * sizeof *mine);
    TRY(world_collect(world, group, mine, count * sizeof *mine, both));
    if (world->rank == 0) { /* its own gradient is in that step */
        memcpy(g->weights, both + count, g->weight_count * sizeof *both);
        memcpy(g->state, both + count + g->weight_count, g->state_count * sizeof *both);
        g->own = g->start;
        g->own_images += (uint64_t)batch;
    }
out:
    world_group_free(&group, world);
    free(mine);
    free(both);
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
 * most one step apart, and all have weights once one has done a step. */
static enum status agree_on_start(struct generation *g, struct world *world, int64_t batch)
{
    enum status status = STATUS_OK;
    struct position mine = g->weights ? g->own : (struct position){0};
    struct position *all = calloc((size_t)world->size, sizeof *all);
    int ahead = 0;
    if (!all)
        TRY(FAIL(STATUS_NO_MEMORY, "no memory for %d workers", world->size));
    TRY(check_finite(g));
    TRY(world_gather(world, NULL, &mine, sizeof mine, all));
    for (int rank = 1; rank < world->size; rank++)
        ahead = all[rank].step > all[ahead].step ? rank : ahead;
    g->start = all[ahead];
    if (ahead > 0)
        status = catch_up(g, world, ahead, batch);
out:
    free(all);
    return status;
}

static enum status one_generation(const struct config *job, struct generation *g,
                                  struct world *world, struct ranks *ranks)
{
    enum status status;
    struct config config = *job; /* config_resolve fills in values of this world */
    if (world->size < ranks->count && config.radix > world->size)
        config.radix = world->size > 2 ? world->size : 2;
    TRY(config_resolve(&config, world));
    TRY(agree_on_start(g, world, config.batch));
    TRY(report_lost(ranks, world, (int)job->rank, g->start.step));
    TRY(train_generation(&config, world, g));
    status = world_barrier(world, NULL); /* a worker that has lost the last average gets it */
out:
    return status;
}

static enum status open_first(const struct config *config, struct world **world)
{
    enum status status;
    uint64_t token;
    char name[24];
    snprintf(name, sizeof name, "rank %d", (int)config->rank);
    log_set_name(name);
    TRY(launch_job(config, &token));
    status = world_open(world, NULL, NULL,
                        &(struct world_options){
                            .subnet = config->subnet,
                            .startup_timeout_ms = (int64_t)(config->startup_timeout * 1000),
                            .rendezvous = config->rendezvous,
                            .token = token,
                            .rank = (int)config->rank,
                            .size = (int)config->world_size,
                            .shrinks = true,
                        });
out:
    return status;
}

/* Trains in one world after the other. *left: this worker leaves as agreed. */
static enum status train_in_worlds(const struct config *config, struct generation *g,
                                   struct ranks *ranks, struct world **world, bool *left)
{
    enum status status;
    for (;;) {
        struct world *next;
        (*world)->stall_warning_ms = (int64_t)(config->stall_warning * 1000);
        status = one_generation(config, g, *world, ranks);
        *left = status == STATUS_STOPPED && wants_to_leave(g);
        if (status == STATUS_OK || *left || !elastic_goes_on(status))
            return status;
        world_fail(*world, status, "another rank has left this world");
        TRY(world_shrink(&next, *world, status == STATUS_TIMEOUT,
                         (int64_t)(config->timeout * 1000)));
        next->timeout_ms = (int64_t)(config->startup_timeout * 1000); /* for its set-up */
        world_close(world);
        *world = next;
    }
out:
    return status;
}

static enum status survive(const struct config *config)
{
    enum status status;
    struct world *world = NULL;
    struct ranks ranks = {0};
    const uint64_t leave_after = (uint64_t)config->elastic.leave_after;
    bool left = false;
    struct generation g = {.watch = watch_nobody,
                           .asked_until = nobody_joins,
                           .leave_after = leave_after > 0 ? leave_after : UINT64_MAX};
    status = open_first(config, &world);
    if (status != STATUS_OK)
        return status;
    stop_init(&g.stop, true); /* until here a signal ends the process */
    TRY(ranks_init(&ranks, world));
    status = train_in_worlds(config, &g, &ranks, &world, &left);
    if (status == STATUS_OK || left)
        printf("%s after step %llu; the weights contain %llu images of this worker\n",
               left ? "left" : "ended", (unsigned long long)g.own.step,
               (unsigned long long)g.own_images);
    status = left ? STATUS_OK : status;
out:
    if (status != STATUS_OK)
        world_fail(world, status, "another rank has ended with an error");
    world_close(&world);
    ranks_fini(&ranks);
    stop_fini(&g.stop);
    generation_fini(&g);
    return status;
}

/* -------- the interface ----------------------------------------------------------------------- */

enum status elastic_train(struct config *config)
{
    enum { JOB_BYTES = 4000 };
    enum status status = STATUS_OK;
    char job[JOB_BYTES], address[300];
    if (!config->elastic.join)
        return survive(config);
    struct generation generation = {.watch = member_watch,
                                    .asked_until = member_until,
                                    .leave_after = config->elastic.leave_after > 0
                                                       ? (uint64_t)config->elastic.leave_after
                                                       : UINT64_MAX};
    stop_init(&generation.stop, true);
    config_server(config, 0, address, sizeof address);
    if (!elastic_options_write(config, job, sizeof job))
        TRY(FAIL(STATUS_USAGE,
                 "--join: the list of servers is too long, expected at most %d bytes; use shorter "
                 "host names",
                 JOB_BYTES));
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
