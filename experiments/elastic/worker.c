#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/world.h"
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

enum status elastic_train(struct config *config)
{
    enum { JOB_BYTES = 4000 };
    enum status status = STATUS_OK;
    char job[JOB_BYTES], address[300];
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
