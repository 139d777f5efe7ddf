#include "experiments/train/generation.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "experiments/train/trainer.h"

void generation_fini(struct generation *generation)
{
    free(generation->weights);
    free(generation->state);
    dataset_free(&generation->dataset);
    *generation = (struct generation){0};
}

enum status generation_allocate(struct generation *g)
{
    if (!g->weights)
        g->weights = malloc((g->weight_count + 1) * sizeof *g->weights);
    if (!g->state)
        g->state = malloc((g->state_count + 1) * sizeof *g->state);
    if (g->weights && g->state)
        return STATUS_OK;
    return FAIL(STATUS_NO_MEMORY, "no memory to keep %zu weights for the next generation",
                g->weight_count);
}

void generation_take(struct generation *g, struct generation *from)
{
    free(g->weights);
    free(g->state);
    g->weights = from->weights;
    g->state = from->state;
    g->weight_count = from->weight_count;
    g->state_count = from->state_count;
    g->own = from->own;
    from->weights = from->state = NULL;
}

/* Rank 0 gets the array of the other rank. There `both` has space for those of both. */
static enum status fetch(struct world *world, const struct group *group, float *array, size_t count,
                         float *both)
{
    enum status status = world_collect(world, group, array, count * sizeof *array, both);
    if (status == STATUS_OK && both)
        memcpy(array, both + count, count * sizeof *array);
    return status;
}

enum status generation_fetch(struct generation *g, struct world *world, const struct group *group,
                             const struct generation *held)
{
    enum status status = STATUS_OK;
    struct generation got = *held;
    float *both = NULL;
    bool receives = group->rank == 0;
    size_t weights = held->weight_count, states = held->state_count;
    if (!receives) {
        TRY(fetch(world, group, g->weights, weights, NULL));
        return fetch(world, group, g->state, states, NULL);
    }
    TRY(generation_allocate(&got));
    both = malloc((2 * (weights > states ? weights : states) + 1) * sizeof *both);
    if (!both)
        TRY(FAIL(STATUS_NO_MEMORY, "no memory to receive %zu weights", weights));
    TRY(fetch(world, group, got.weights, weights, both));
    TRY(fetch(world, group, got.state, states, both));
    generation_take(g, &got);
out:
    free(both);
    generation_fini(&got);
    return status;
}

int generation_workers_most(const struct config *config, const struct dataset *dataset)
{
    size_t most = dataset ? dataset->train.count / (size_t)config->batch : 0;
    return most < INT_MAX ? (int)most : 0;
}

/* -------- its beginning ----------------------------------------------------------------------- */

void generation_start(struct trainer *t)
{
    struct generation *g = t->generation;
    t->start = g->start;
    t->step = g->start.step;
    t->report.trained_s = g->start.trained_s;
    g->shared = false;
    g->closed = g->start.epoch;
    g->until = UINT64_MAX;
    g->stop.asked_ns = 0;
    g->stop.next_step = 0;
}

enum status generation_restore(struct trainer *t)
{
    const struct generation *g = t->generation;
    size_t count;
    if (!g->weights || !t->optimizer)
        return STATUS_OK;
    float *state = optimizer_state(t->optimizer, &count);
    if (g->weight_count != net_parameter_count(t->net) || g->state_count != count)
        return FAIL(STATUS_INPUT,
                    "found %zu weights and %zu optimizer values of the earlier generation, "
                    "expected %zu and %zu; start all from one build of psring",
                    g->weight_count, g->state_count, net_parameter_count(t->net), count);
    device_upload(t->device, net_parameters(t->net), g->weights,
                  g->weight_count * sizeof *g->weights);
    device_upload(t->device, state, g->state, g->state_count * sizeof *g->state);
    return device_sync(t->device);
}

static void interrupt(void *comm)
{
    comm_interrupt(comm);
}

void generation_watch(struct trainer *t)
{
    if (t->generation->watch)
        t->generation->watch(t->generation->member, interrupt, t->sync.comm);
}

void generation_shared(struct trainer *t)
{
    struct generation *g = t->generation;
    if (!g)
        return;
    /* The other workers did one more step. It contains this worker's gradient; only the answer was
     * lost. */
    if (g->weights && g->start.step == g->own.step + 1)
        g->own_images += (uint64_t)t->config->batch;
    g->shared = g->began = true;
}

/* -------- its end ----------------------------------------------------------------------------- */

static enum status keep(struct trainer *t)
{
    enum status status = STATUS_OK;
    struct generation *g = t->generation;
    size_t weights = net_parameter_count(t->net), states = 0;
    const float *state = t->optimizer ? optimizer_state(t->optimizer, &states) : NULL;
    const struct interval *interval = &t->report.interval;
    int64_t unreported_ns = interval->steps > 0 ? interval->ended_ns - interval->started_ns : 0;
    double unreported_s = (double)unreported_ns / (double)NS_PER_S;
    g->weight_count = weights;
    g->state_count = states;
    TRY(generation_allocate(g));
    TRY(device_download(t->device, g->weights, net_parameters(t->net), weights * sizeof(float)));
    if (state)
        TRY(device_download(t->device, g->state, state, states * sizeof(float)));
    g->own = (struct position){
        .step = t->step,
        .images = trainer_images(t),
        .trained_s = t->report.trained_s + unreported_s,
        .epoch = g->closed,
        .epoch_images = trainer_epoch_images(t, g->closed),
    };
    g->own_images += (t->step - t->start.step) * (uint64_t)t->config->batch;
out:
    return status;
}

void generation_end(struct trainer *t)
{
    struct generation *g = t->generation;
    if (g->watch)
        g->watch(g->member, NULL, NULL);
    /* Without memory the worker keeps no weights and continues like a newcomer. */
    if (g->shared && keep(t) != STATUS_OK) {
        log_warn("this worker could not keep its weights, and continues like a newcomer");
        free(g->weights);
        g->weights = NULL;
    }
    if (t->dataset)
        g->dataset = t->dataset;
    t->dataset = NULL;
}

/* -------- epochs ------------------------------------------------------------------------------ */

void generation_closed(struct trainer *t)
{
    if (t->generation)
        t->generation->closed = trainer_epoch(t, t->step);
}

bool generation_owes(const struct trainer *t)
{
    return t->generation && trainer_epoch(t, t->step) > t->generation->closed;
}

/* -------- who joins or leaves ----------------------------------------------------------------- */

/* The step after which, as far as this worker knows, the generation should end. */
static uint64_t wanted(const struct trainer *t)
{
    const struct generation *g = t->generation;
    int most = generation_workers_most(t->config, t->dataset);
    uint64_t joins =
        g->asked_until ? g->asked_until(g->member) : world_newcomers(t->world, t->step, most);
    uint64_t leaves = stop_requested() ? 0 : g->leave_after;
    return joins < leaves ? joins : leaves;
}

enum status generation_agree(struct trainer *t)
{
    enum status status = STATUS_OK;
    struct generation *g = t->generation;
    double largest = -(double)wanted(t);
    TRY(stop_ask(&g->stop, t->world, comm_group(t->sync.comm), t->step, &largest));
    if (-largest < (double)g->until)
        g->until = (uint64_t)-largest;
out:
    return status;
}

bool generation_ends(const struct trainer *t)
{
    return t->generation && t->step >= t->generation->until;
}
