#include <limits.h>
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

/* Worker 0 gets the weights and the optimizer's state of a worker that has done one step more. */
static enum status catch_up(struct generation *g, struct world *world, int ahead)
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
    if (world->rank == 0) {
        memcpy(g->weights, both + count, g->weight_count * sizeof *both);
        memcpy(g->state, both + count + g->weight_count, g->state_count * sizeof *both);
    }
out:
    world_group_free(&group, world);
    free(mine);
    free(both);
    return status;
}

/* The next generation continues where the worker ends that has done the most steps. Workers are at
 * most one step apart, and all have weights once one has done a step. */
static enum status agree_on_start(struct generation *g, struct world *world)
{
    enum status status = STATUS_OK;
    struct position mine = g->weights ? g->own : (struct position){0};
    struct position *all = calloc((size_t)world->size, sizeof *all);
    int ahead = 0;
    if (!all)
        TRY(FAIL(STATUS_NO_MEMORY, "no memory for %d workers", world->size));
    TRY(world_gather(world, NULL, &mine, sizeof mine, all));
    for (int rank = 1; rank < world->size; rank++)
        ahead = all[rank].step > all[ahead].step ? rank : ahead;
    g->start = all[ahead];
    if (ahead > 0)
        status = catch_up(g, world, ahead);
out:
    free(all);
    return status;
}

/* Worker 0 reports which ranks of the world `before` are not in `world`. */
static enum status report_lost(const struct world *before, struct world *world, uint64_t step)
{
    enum status status;
    int *ranks = calloc((size_t)world->size, sizeof *ranks);
    if (!ranks)
        return FAIL(STATUS_NO_MEMORY, "no memory for %d workers", world->size);
    TRY(world_gather(world, NULL, &before->rank, sizeof before->rank, ranks));
    for (int rank = 0, i = 0; world->rank == 0 && rank < before->size; rank++) {
        if (i < world->size && ranks[i] == rank)
            i++;
        else
            log_warn(
                "worker %d on %s is lost or has left: %d of %d workers continue after step %llu",
                rank, before->hosts[rank], world->size, before->size, (unsigned long long)step);
    }
out:
    free(ranks);
    return status;
}

/* `before`: the world of the last generation; NULL: this is the first. */
static enum status one_generation(const struct config *job, struct generation *g,
                                  struct world *world, const struct world *before)
{
    enum status status;
    struct config config = *job; /* config_resolve fills in values of this world */
    TRY(config_resolve(&config, world));
    TRY(agree_on_start(g, world));
    if (before)
        TRY(report_lost(before, world, g->start.step));
    TRY(train_generation(&config, world, g));
    status = world_barrier(world, NULL); /* a worker that has lost the last average gets it */
out:
    return status;
}

static enum status survive(const struct config *config)
{
    enum status status;
    struct world *world = NULL, *before = NULL, *next;
    const int64_t timeout_ms = (int64_t)(config->timeout * 1000);
    const uint64_t leave_after = (uint64_t)config->elastic.leave_after;
    uint64_t token;
    char name[24];
    struct generation g = {.watch = watch_nobody,
                           .asked_until = nobody_joins,
                           .leave_after = leave_after > 0 ? leave_after : UINT64_MAX};
    stop_init(&g.stop, true);
    snprintf(name, sizeof name, "rank %d", (int)config->rank);
    log_set_name(name);
    TRY(launch_job(config, &token));
    TRY(world_open(&world, NULL, NULL,
                   &(struct world_options){
                       .subnet = config->subnet,
                       .startup_timeout_ms = (int64_t)(config->startup_timeout * 1000),
                       .rendezvous = config->rendezvous,
                       .token = token,
                       .rank = (int)config->rank,
                       .size = (int)config->world_size,
                       .shrinks = true,
                   }));
    for (;;) {
        world->stall_warning_ms = (int64_t)(config->stall_warning * 1000);
        status = one_generation(config, &g, world, before);
        world_close(&before);
        if (status == STATUS_OK || !elastic_goes_on(status) || wants_to_leave(&g))
            break;
        world_fail(world, status, "another rank has left this world");
        TRY(world_shrink(&next, world, status == STATUS_TIMEOUT, timeout_ms));
        before = world;
        world = next;
    }
    if (status == STATUS_OK || wants_to_leave(&g)) {
        printf("%s after step %llu; the weights contain %llu images of this worker\n",
               status == STATUS_OK ? "ended" : "left", (unsigned long long)g.own.step,
               (unsigned long long)g.own_images);
        status = STATUS_OK;
    }
out:
    if (world && status != STATUS_OK)
        world_fail(world, status, "another rank has ended with an error");
    world_close(&before);
    world_close(&world);
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
