#include "common/net/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "common/base/status.h"
#include "common/base/descriptors.h"
#include "common/net/control.h"
#include "common/net/host.h"
#include "common/net/world_impl.h"

void backoff_wait(struct backoff *backoff, bool crowded)
{
    enum { SPINS = 1000, YIELDS = 50, SLEEPS = 50 };
    uint32_t round = backoff->rounds++;
    /* With more ranks than cores even a yield costs a system call and a poll of every connection,
     * at the expense of ranks that have work. During a sleep more packets arrive before the next
     * check. */
    if (crowded)
        round += SPINS + YIELDS;
    if (round < SPINS)
        return;
    if (round < SPINS + YIELDS) {
        sched_yield();
        return;
    }
    long first_ns = crowded ? 50000 : 20000, later_ns = crowded ? 200000 : 100000;
    struct timespec pause = {.tv_nsec = round < SPINS + YIELDS + SLEEPS ? first_ns : later_ns};
    nanosleep(&pause, NULL);
}

/* -------- giving up --------------------------------------------------------------------------- */

bool world_cancelled(const struct world *world)
{
    world_acts(world);
    return world->cancelled && world->cancelled(world->cancel_context);
}

bool world_looks(void *world)
{
    return world_cancelled(world);
}

int world_let_in(struct world *world, struct listener *listener, int *sockets, int count)
{
    listener->cancelled = world_looks;
    listener->context = world;
    return listener_let_in(listener, world->run_id, world->timeout_ms, sockets, count);
}

/* -------- waiting for all --------------------------------------------------------------------- */

/* Reports that this rank waits for all ranks of the group, until `passed`. */
static void wait_for_all(const struct world *world, const struct group *group,
                         enum activity_thread thread)
{
    int first = group ? group->ranks[0] : 0;
    int last = group ? group->ranks[group->size - 1] : world->size - 1;
    activity_wait(world->activity, thread, first, last, ACTIVITY_NO_OFFSET);
}

static enum status passed(const struct world *world, enum activity_thread thread,
                          enum status status)
{
    activity_go_on(world->activity, thread);
    return status;
}

/* -------- opening and closing ----------------------------------------------------------------- */

static enum status find_neighbours(struct world *world)
{
    enum status status;
    struct host_identity mine = host_identify(world->host), *all = NULL;
    world->cores = CPU_COUNT(&mine.cpus);
    all = calloc((size_t)world->size, sizeof *all);
    world->hosts = calloc((size_t)world->size, sizeof *world->hosts);
    world->host_numbers = calloc((size_t)world->size, sizeof *world->host_numbers);
    if (!all || !world->hosts || !world->host_numbers)
        TRY(FAIL(STATUS_NO_MEMORY, "world: no memory for %d ranks", world->size));
    TRY(world_gather(world, NULL, world->host, sizeof world->host, world->hosts));
    for (int rank = 0; rank < world->size; rank++)
        world->hosts[rank][WORLD_HOST_BYTES - 1] = '\0'; /* a rank may send anything */
    TRY(world_gather(world, NULL, &mine, sizeof mine, all));
    struct host_place place = host_place_of(all, world->size, world->rank);
    world->local_rank = place.local_rank;
    world->local_size = place.local_size;
    world->machine = place.machine;
    world->sharing_cpus = place.sharing_cpus;
    for (int rank = 0; rank < world->size; rank++)
        world->host_numbers[rank] = host_number_of(all, rank);
out:
    free(all);
    return status;
}

static enum status agree_on_run_id(struct world *world)
{
    /* Random, because it keeps strangers out: see common/net/transport/zmq_auth.c. */
    uint64_t run_id;
    if (getrandom(&run_id, sizeof run_id, 0) != (ssize_t)sizeof run_id)
        return FAIL(STATUS_IO, "world: getrandom: %s", strerror(errno));
    enum status status = world_broadcast(world, NULL, &run_id, sizeof run_id);
    world->run_id = run_id; /* the broadcast has the earlier one */
    return status;
}

enum status world_settle(struct world *world, const char *subnet)
{
    enum status status;
    TRY(find_neighbours(world));
    TRY(agree_on_run_id(world));
    TRY(world_find_address(world, subnet));
out:
    return status;
}

enum status world_open(struct world **out, int *argc, char ***argv,
                       const struct world_options *options)
{
    static const struct world_options defaults = {0};
    enum status status;
    *out = NULL;
    struct world *world = calloc(1, sizeof *world);
    if (!world)
        return FAIL(STATUS_NO_MEMORY, "world: out of memory");
    if (!options)
        options = &defaults;
    world->timeout_ms = options->startup_timeout_ms;
    world->elastic = options->elastic;
    host_name(world->host, sizeof world->host);
    if (options->rendezvous)
        TRY(world_rendezvous_open(world, options));
    else if (options->alone)
        TRY(world_rendezvous_open(world, &(struct world_options){.size = 1}));
    else
        TRY(world_mpi_open(world, argc, argv, options));
    TRY(world_settle(world, options->subnet));
    if (options->shrinks && options->rendezvous && (world->size > 1 || options->job))
        TRY(reunion_open(world, options));
    *out = world;
    return STATUS_OK;
out:
    world->failed = options->embedded; /* MPI_Finalize may wait for ranks: not now */
    world_close(&world);
    return status;
}

void world_close(struct world **world)
{
    if (!*world)
        return;
    if ((*world)->ops) {
        wait_for_all(*world, NULL, ACTIVITY_MAIN); /* MPI_Finalize waits for all ranks */
        (*world)->ops->close(*world);
        activity_go_on((*world)->activity, ACTIVITY_MAIN);
    }
    reunion_close(&(*world)->reunion);
    free((*world)->address);
    free((*world)->host_numbers);
    free((*world)->hosts);
    free(*world);
    *world = NULL;
}

void world_fail(struct world *world, enum status status, const char *why)
{
    world->failed = true;
    if (world->ops->fail)
        world->ops->fail(world, status, why);
}

void world_close_in_child(const struct world *world)
{
    reunion_close_in_child(world->reunion);
    if (world->ops->close_in_child)
        world->ops->close_in_child(world);
}

void world_abort(struct world *world, int exit_code)
{
    fflush(stdout);
    if (world->size > 1 && world->ops->abort)
        world->ops->abort(world, exit_code);
    _exit(exit_code);
}

bool world_is_mpi(const struct world *world)
{
    return world->ops->allreduce_float != NULL;
}

bool world_crowded(const struct world *world, int threads)
{
    return world->sharing_cpus * threads > world->cores;
}

/* -------- groups ------------------------------------------------------------------------------ */

enum status world_group_new(struct group **out, struct world *world, int color)
{
    enum status status;
    struct group *group = NULL;
    int *colors = calloc((size_t)world->size, sizeof *colors);
    *out = NULL;
    if (!colors)
        return FAIL(STATUS_NO_MEMORY, "world: no memory for %d ranks", world->size);
    TRY(world_gather(world, NULL, &color, sizeof color, colors));
    TRY(group_from_colors(&group, colors, world->size, world->rank));
    wait_for_all(world, NULL, ACTIVITY_MAIN);
    TRY(passed(world, ACTIVITY_MAIN, world->ops->group_open(world, group, color)));
    *out = group;
    group = NULL;
out:
    free(colors);
    group_free(&group);
    return status;
}

void world_group_free(struct group **group, struct world *world)
{
    if (!*group)
        return;
    world->ops->group_close(*group);
    group_free(group);
}

/* -------- collective calls -------------------------------------------------------------------- */

static enum status collective(struct world *world, const struct group *group, enum world_call call,
                              const void *in, void *out, size_t bytes)
{
    wait_for_all(world, group, ACTIVITY_MAIN);
    world_acts(world);
    enum status status = world->ops->call(world, group, call, in, out, bytes);
    if (status == STATUS_OK && !group && (call == WORLD_BARRIER || call == WORLD_GATHER))
        world_has_met(world);
    return passed(world, ACTIVITY_MAIN, status);
}

enum status world_barrier(struct world *world, const struct group *group)
{
    unsigned char nothing = 0;
    return collective(world, group, WORLD_BARRIER, &nothing, &nothing, 0);
}

enum status world_broadcast(struct world *world, const struct group *group, void *data,
                            size_t bytes)
{
    return collective(world, group, WORLD_BROADCAST, data, data, bytes);
}

enum status world_gather(struct world *world, const struct group *group, const void *mine,
                         size_t bytes, void *all)
{
    return collective(world, group, WORLD_GATHER, mine, all, bytes);
}

enum status world_collect(struct world *world, const struct group *group, const void *mine,
                          size_t bytes, void *all)
{
    return collective(world, group, WORLD_COLLECT, mine, all, bytes);
}

enum status world_scatter(struct world *world, const struct group *group, const void *all,
                          size_t bytes, void *mine)
{
    return collective(world, group, WORLD_SCATTER, all, mine, bytes);
}

enum status world_check_descriptors(struct world *world, int more)
{
    enum status status = STATUS_OK;
    if (world->ops->in_one_process)
        return STATUS_OK;
    struct descriptors mine = descriptors_for(more);
    struct descriptors *all = calloc((size_t)world->size, sizeof *all);
    char who[WORLD_HOST_BYTES + 32];
    if (!all)
        return FAIL(STATUS_NO_MEMORY, "world: no memory for %d ranks", world->size);
    TRY(world_gather(world, NULL, &mine, sizeof mine, all));
    for (int i = 0; i < world->size && status == STATUS_OK; i++) {
        int rank = world->elastic ? (world->rank + i) % world->size : i; /* this rank first */
        snprintf(who, sizeof who, "rank %d on %s", rank, world->hosts[rank]);
        status = descriptors_check(&all[rank], who);
        if (status != STATUS_OK && world->elastic && rank != world->rank)
            status = STATUS_TRANSPORT;
    }
out:
    free(all);
    return status;
}

static double sum_of(double a, double b)
{
    return a + b;
}

static double larger_of(double a, double b)
{
    return b > a ? b : a;
}

/* Combines in the order of the ranks, so that a sum is the same in every run. */
static enum status combine(struct world *world, const struct group *group, double *values,
                           size_t count, double (*two)(double, double))
{
    enum status status;
    size_t members = (size_t)(group ? group->size : world->size), bytes = count * sizeof *values;
    double *all = malloc(members * bytes + 1);
    if (!all)
        return FAIL(STATUS_NO_MEMORY, "world: no memory for %zu values of %zu ranks", count,
                    members);
    TRY(world_gather(world, group, values, bytes, all));
    memcpy(values, all, bytes);
    for (size_t i = count; i < members * count; i++)
        values[i % count] = two(values[i % count], all[i]);
out:
    free(all);
    return status;
}

enum status world_sum(struct world *world, const struct group *group, double *values, size_t count)
{
    return combine(world, group, values, count, sum_of);
}

enum status world_max(struct world *world, const struct group *group, double *values, size_t count)
{
    return combine(world, group, values, count, larger_of);
}

enum status world_allreduce_float(struct world *world, const struct group *group, float *data,
                                  size_t count)
{
    CHECK(world_is_mpi(world) && group);
    wait_for_all(world, group, ACTIVITY_WORKER);
    return passed(world, ACTIVITY_WORKER, world->ops->allreduce_float(world, group, data, count));
}
