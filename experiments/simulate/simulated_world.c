/* The world of a simulation. smpirun starts the ranks. Collective calls go through memory and a
 * barrier, and take no simulated time. */
#include "experiments/simulate/simulated_world.h"

#include <mpi.h>
#include <simgrid/barrier.h>
#include <simgrid/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/simulate/simulated_network.h"
#include "common/net/world_impl.h"

/* The shared state of the ranks of a group. */
struct meeting {
    int members; /* members that have not left */
    sg_bar_t barrier;
    const void *given[]; /* (initial members), by index in the group */
};

struct group_impl {
    struct meeting *meeting;
};

/* The shared state of a world. Rank 0 makes it. */
struct common {
    struct meeting *meeting;
    struct network *network;
};

struct world_impl {
    struct common common;
    const void *shared_payload;
};

static enum status meeting_new(struct meeting **out, int members)
{
    struct meeting *meeting = calloc(1, sizeof *meeting + (size_t)members * sizeof(void *));
    *out = meeting;
    if (!meeting)
        return FAIL(STATUS_NO_MEMORY, "world: no memory for %d ranks to meet", members);
    meeting->members = members;
    meeting->barrier = sg_barrier_init((unsigned)members);
    return STATUS_OK;
}

/* Returns true when the last member leaves. */
static bool meeting_leave(struct meeting *meeting)
{
    if (--meeting->members > 0)
        return false;
    sg_barrier_destroy(meeting->barrier);
    free(meeting);
    return true;
}

/* One member's view of a group. */
struct simulated_place {
    struct meeting *meeting;
    int index, size;
};

static struct simulated_place place_in(const struct world *world, const struct group *group)
{
    if (group)
        return (struct simulated_place){group->impl->meeting, group->rank, group->size};
    return (struct simulated_place){world->impl->common.meeting, world->rank, world->size};
}

/* -------- collective calls -------------------------------------------------------------------- */

/* Each rank publishes its input, then copies its part. */
static enum status simulated_call(struct world *world, const struct group *group,
                                  enum world_call call, const void *in, void *out, size_t bytes)
{
    struct simulated_place place = place_in(world, group);
    bool takes_all = call == WORLD_GATHER || (call == WORLD_COLLECT && place.index == 0);
    bool takes_one = call == WORLD_BROADCAST || call == WORLD_SCATTER;
    size_t skipped = call == WORLD_SCATTER ? (size_t)place.index * bytes : 0;
    place.meeting->given[place.index] = in;
    sg_barrier_wait(place.meeting->barrier);
    for (int index = 0; index < (takes_all ? place.size : takes_one); index++) {
        char *to = (char *)out + (size_t)index * bytes;
        const char *from = (const char *)place.meeting->given[index] + skipped;
        if (to != from)
            memcpy(to, from, bytes);
    }
    sg_barrier_wait(place.meeting->barrier); /* inputs stay valid until all ranks have copied */
    return STATUS_OK;
}

/* -------- groups ------------------------------------------------------------------------------ */

/* Opens a group. Its first rank makes the meeting. */
static enum status simulated_group_open(struct world *world, struct group *group, int color)
{
    (void)color;
    enum status status = STATUS_OK;
    struct meeting *mine = NULL, **all = calloc((size_t)world->size, sizeof(void *));
    struct group_impl *impl = group ? calloc(1, sizeof *impl) : NULL;
    if (!all || (group && !impl))
        TRY(FAIL(STATUS_NO_MEMORY, "world: out of memory"));
    if (group && group->rank == 0)
        TRY(meeting_new(&mine, group->size));
    TRY(world_gather(world, NULL, &mine, sizeof(void *), all));
    if (group) {
        impl->meeting = all[group->ranks[0]];
        group->impl = impl;
        impl = NULL;
    }
out:
    free(all);
    free(impl);
    return status;
}

static void simulated_group_close(struct group *group)
{
    meeting_leave(group->impl->meeting);
    free(group->impl);
    group->impl = NULL;
}

/* -------- opening and closing ----------------------------------------------------------------- */

static void simulated_close(struct world *world)
{
    struct common common = world->impl->common;
    if (common.meeting && meeting_leave(common.meeting) && common.network)
        network_close(common.network);
    free(world->impl);
    MPI_Finalize();
}

/* A numeric property of the caller's host; 0: absent. */
static double host_number(const char *property)
{
    const char *value = sg_host_get_property_value(sg_host_self(), property);
    return value ? strtod(value, NULL) : 0;
}

/* Has no .abort: the process that world_abort ends contains all ranks. */
static const struct world_ops simulated_ops = {
    .in_one_process = true,
    .call = simulated_call,
    .group_open = simulated_group_open,
    .group_close = simulated_group_close,
    .close = simulated_close,
};

enum status world_mpi_open(struct world *world, int *argc, char ***argv,
                           const struct world_options *options)
{
    (void)options;
    world->ops = &simulated_ops;
    world->impl = calloc(1, sizeof *world->impl);
    if (!world->impl)
        return FAIL(STATUS_NO_MEMORY, "world: out of memory");
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world->size);
    world->concurrent = true;
    world->round_trip_s = 2 * simulated_latency_s();
    snprintf(world->host, sizeof world->host, "%s", sg_host_self_get_name());
    struct common common = {0};
    if (world->rank == 0) {
        (void)meeting_new(&common.meeting, world->size);
        common.network = network_new((struct network_traits){.latency_s = simulated_latency_s(),
                                                             .header_bytes = host_number("header"),
                                                             .burst_bytes = host_number("burst")});
    }
    MPI_Bcast(&common, sizeof common, MPI_BYTE, 0, MPI_COMM_WORLD);
    world->impl->common = common;
    return common.meeting && common.network ? STATUS_OK : STATUS_NO_MEMORY;
}

bool world_mpi_version(char *text, size_t size)
{
    snprintf(text, size, "SimGrid's");
    return true;
}

void simulated_share_payloads(struct world *world, const void *memory)
{
    world->impl->shared_payload = memory;
}

struct network *simulated_network(const struct world *world)
{
    return world->impl->common.network;
}

const void *simulated_shared_payload(const struct world *world)
{
    return world->impl->shared_payload;
}

double simulated_latency_s(void)
{
    return host_number("latency");
}
