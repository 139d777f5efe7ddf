/*
 * Collectives in groups: 4, 6 and 8 ranks in two rows. Groups without a common rank work at the
 * same time. Every element is compared. Bytes are compared with the formulas.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "ps/ps.h"
#include "ring/hierarchical.h"
#include "ring/ring.h"
#include "tests/lib/allreduce_lib.h"
#include "tests/lib/spawn.h"

enum { ROWS = 2, COUNT_MAX = 65537 };

static _Thread_local struct world *world;
static _Thread_local struct group *row;

static struct comm_options options_in(const struct group *group, enum transport_kind transport)
{
    return (struct comm_options){.transport = transport,
                                 .group = group,
                                 .bucket_counts_max = COUNT_MAX,
                                 .timeout_ms = 20000};
}

static struct comm *open_in(const struct group *group, const struct backend *backend,
                            enum transport_kind transport)
{
    struct comm *comm = NULL;
    const struct comm_options options = options_in(group, transport);
    rank_assert_ok(comm_open(&comm, world, backend, &options));
    rank_assert_eq(comm_workers(comm), group->size);
    rank_assert_eq(comm_rank(comm), group->rank);
    return comm;
}

static void plan(struct comm *comm, const size_t *count)
{
    const struct comm_layout layout = {.counts = count, .buckets = 1, .scale = 1};
    rank_assert_ok(comm_plan(comm, &layout));
}

static void fill(float *data, size_t count, int operation)
{
    for (size_t i = 0; i < count; i++)
        data[i] = allreduce_element(world->rank, i, operation);
}

/* Checks that every element of data is the sum over these ranks. */
static void check_sum(const float *data, size_t count, const int *ranks, int size, int operation)
{
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (int r = 0; r < size; r++)
            sum += allreduce_element(ranks ? ranks[r] : r, i, operation);
        rank_assert_eq(data[i], sum, "rank %d, element %zu of %zu: %g, expected %g", world->rank, i,
                       count, (double)data[i], (double)sum);
    }
}

static void check_bytes(const struct comm *comm, struct cost_traffic one, uint64_t operations)
{
    struct comm_counters counters;
    comm_counters(comm, &counters);
    rank_assert_eq(counters.worker.sent_bytes, operations * one.sent_bytes);
    rank_assert_eq(counters.worker.received_bytes, operations * one.received_bytes);
}

static struct cost_shape shape_in(const struct group *group, size_t count)
{
    return (struct cost_shape){.topology = {.workers = group->size},
                               .count = count,
                               .element_bytes = sizeof(float),
                               .pipeline = 1};
}

/* Rows do not wait for each other: one row has twice as many operations as the other. */
static void check_apart(const struct backend *backend, enum transport_kind transport, size_t count)
{
    float *data = calloc(count + 1, sizeof *data);
    struct comm *comm = open_in(row, backend, transport);
    int operations = row->ranks[0] == 0 ? 3 : 6;
    plan(comm, &count);
    for (int operation = 0; operation < operations; operation++) {
        fill(data, count, operation);
        allreduce_average(comm, 0, data);
        check_sum(data, count, row->ranks, row->size, operation);
    }
    allreduce_check_same(comm, data, count);
    rank_assert_ok(comm_finish(comm));
    struct cost_shape shape = shape_in(row, count);
    shape.hosts = comm_hosts(comm);
    check_bytes(comm, cost_node_traffic(backend->cost, &shape, row->rank), operations);
    comm_close(&comm);
    free(data);
}

/* A row on hosts with equal numbers of ranks works, although the other row's hosts are uneven. */
static void check_uneven_row(enum transport_kind transport)
{
    enum { COUNT = 1003 };
    float data[COUNT];
    const size_t count = COUNT;
    int length = world->size / ROWS, *real = world->host_numbers, *played;
    if (length < 3)
        return;
    played = world->host_numbers = calloc((size_t)world->size, sizeof *played);
    for (int rank = length; rank < world->size; rank++)
        played[rank] = rank == length ? 1 : 2;
    if (row->ranks[0] == 0) {
        struct comm *comm = open_in(row, &backend_hierarchical, transport);
        plan(comm, &count);
        fill(data, count, 0);
        allreduce_average(comm, 0, data);
        check_sum(data, count, row->ranks, row->size, 0);
        rank_assert_ok(comm_finish(comm));
        comm_close(&comm);
    } else {
        struct comm *comm = NULL;
        const struct comm_options options = options_in(row, transport);
        rank_assert_eq(comm_open(&comm, world, &backend_hierarchical, &options), STATUS_USAGE);
        rank_assert(!comm);
    }
    world->host_numbers = real;
    free(played);
}

static void check_refused(void)
{
    struct comm *comm = NULL;
    const struct comm_options options = {
        .group = row, .servers = 1, .placement = PLACEMENT_COLOCATED, .timeout_ms = 20000};
    rank_assert_eq(comm_open(&comm, world, &backend_ps, &options), STATUS_UNSUPPORTED);
}

static void rows_apart(struct world *of, void *context)
{
    const enum transport_kind *transport = context;
    world = of;
    int length = world->size / ROWS;
    rank_assert_ok(world_group_new(&row, world, world->rank / length));
    check_apart(&backend_ring, *transport, 20011);
    check_apart(&backend_rhd, *transport, 20011);
    check_apart(&backend_rhd, *transport, 100);
    check_apart(&backend_tree, *transport, 20011);
    check_apart(&backend_hierarchical, *transport, 20011);
    check_uneven_row(*transport);
    check_refused();
    world_group_free(&row, world);
}

static void check_sizes(enum transport_kind transport)
{
    for (int ranks = 4; ranks <= 8; ranks += 2)
        spawn(ranks, rows_apart, &transport);
}

Test(grid, over_tcp)
{
    check_sizes(TRANSPORT_TCP);
}

Test(grid, over_zmq)
{
    check_sizes(TRANSPORT_ZMQ);
}
