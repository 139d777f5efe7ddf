/*
 * Under mpirun every backend over the mpi transport gives the same bits as over tcp and zmq with
 * ranks as threads (spawn.h). All other tests of collectives use only threads. Each backend is one
 * test, selected with --filter, because a process can initialise MPI only once. Rank 0 runs the
 * threads.
 *
 * The data are rough numbers, so their sums show the order of addition. For the backend mpi, whose
 * library chooses the order, they are whole numbers.
 */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdlib.h>

#include "ps/ps.h"
#include "ring/baselines/baselines.h"
#include "ring/hierarchical.h"
#include "ring/ring.h"
#include "tests/lib/allreduce_lib.h"
#include "tests/lib/spawn.h"

enum { BUCKETS = 5, LONGEST = 65537, OPERATIONS = 2 };

static const size_t counts[BUCKETS] = {1003, 0, LONGEST, 1, 5};

/* One way to average. */
struct way {
    struct shape shape;
    bool in_rows; /* in two groups of half the ranks each */
    bool overlap;
    bool whole_numbers;
};

/* The result of one rank. A dedicated server has none. */
struct found {
    bool is_worker;
    float data[BUCKETS][LONGEST];
};

static void fill(const struct way *way, int rank, size_t bucket, float *data, int operation)
{
    allreduce_fill_rough(data, rank, counts[bucket]);
    for (size_t i = 0; way->whole_numbers && i < counts[bucket]; i++)
        data[i] = allreduce_element(rank, i, operation);
}

static void average(struct world *world, const struct way *way, struct found *found)
{
    struct group *row = NULL;
    struct comm *comm = NULL;
    struct allreduce_setup setup = allreduce_setup(&way->shape, counts, BUCKETS, 1.0f / 3);
    setup.layout.overlap = way->overlap;
    if (way->in_rows) {
        rank_assert_ok(world_group_new(&row, world, world->rank / ((world->size + 1) / 2)));
        setup.options.group = row;
    }
    if (way->shape.locals > 0)
        allreduce_play_hosts(world, &way->shape);
    allreduce_open(&comm, world, &way->shape, &setup);
    found->is_worker = !comm_is_server(comm);
    if (!found->is_worker)
        rank_assert_ok(comm_serve(comm));
    for (int operation = 0; found->is_worker && operation < OPERATIONS; operation++) {
        for (size_t b = 0; b < BUCKETS; b++) {
            fill(way, world->rank, b, found->data[b], operation);
            rank_assert_ok(comm_start(comm, b, found->data[b]));
        }
        for (size_t b = 0; b < BUCKETS; b++)
            rank_assert_ok(comm_wait(comm, b));
    }
    if (found->is_worker)
        rank_assert_ok(comm_finish(comm));
    comm_close(&comm);
    if (row)
        world_group_free(&row, world);
}

/* -------- comparison of mpirun and threads ---------------------------------------------------- */

struct comparison {
    struct way way;
    const struct found *expected; /* (ranks) under mpirun */
};

static void compare(struct world *world, void *context)
{
    const struct comparison *comparison = context;
    const struct found *expected = &comparison->expected[world->rank];
    struct found *found = calloc(1, sizeof *found);
    average(world, &comparison->way, found);
    rank_assert_eq(found->is_worker, expected->is_worker);
    for (size_t b = 0; b < BUCKETS && found->is_worker; b++) {
        for (size_t i = 0; i < counts[b]; i++)
            rank_assert(memcmp(&found->data[b][i], &expected->data[b][i], sizeof(float)) == 0,
                        "%s over %s, bucket %zu, element %zu: %a, under mpirun %a",
                        comparison->way.shape.backend->name,
                        transport_kind_name(comparison->way.shape.transport), b, i,
                        (double)found->data[b][i], (double)expected->data[b][i]);
    }
    free(found);
}

static void check_way(struct world *world, struct way way)
{
    struct found *mine = calloc(1, sizeof *mine);
    struct found *all = calloc((size_t)world->size, sizeof *all);
    bool is_library = way.shape.backend == &backend_mpi;
    way.shape.transport = TRANSPORT_MPI;
    average(world, &way, mine);
    rank_assert_ok(world_collect(world, NULL, mine, sizeof *mine, all));
    if (is_library)
        way.shape.backend = &backend_ring;
    for (enum transport_kind t = TRANSPORT_ZMQ; t < TRANSPORT_KINDS; t++) {
        struct comparison comparison = {.way = way, .expected = all};
        comparison.way.shape.transport = t;
        if (world->rank == 0 && t != TRANSPORT_MPI)
            spawn(world->size, compare, &comparison);
    }
    free(all);
    free(mine);
}

static struct world *open_world(void)
{
    struct world *world;
    cr_assert_eq(world_open(&world, NULL, NULL, NULL), STATUS_OK);
    return world;
}

static void check_ways(struct world *world, const struct way *ways, size_t count)
{
    for (size_t w = 0; w < count; w++)
        check_way(world, ways[w]);
}

Test(bits, ring)
{
    static const struct way ways[] = {
        {.shape = {.backend = &backend_ring}},
        {.shape = {.backend = &backend_ring, .segment_bytes = 1000}, .in_rows = true},
        {.shape = {.backend = &backend_ring, .compress = COMPRESS_BF16, .feedback = true},
         .overlap = true},
    };
    struct world *world = open_world();
    check_ways(world, ways, sizeof ways / sizeof *ways);
    world_close(&world);
}

Test(bits, rhd)
{
    static const struct way ways[] = {
        {.shape = {.backend = &backend_rhd}},
        {.shape = {.backend = &backend_rhd, .segment_bytes = 1000}, .in_rows = true},
        {.shape = {.backend = &backend_rhd, .compress = COMPRESS_FP16}, .overlap = true},
    };
    struct world *world = open_world();
    check_ways(world, ways, sizeof ways / sizeof *ways);
    world_close(&world);
}

Test(bits, tree)
{
    static const struct way ways[] = {
        {.shape = {.backend = &backend_tree}},
        {.shape = {.backend = &backend_tree, .segment_bytes = 1000}, .in_rows = true},
        {.shape = {.backend = &backend_tree, .compress = COMPRESS_FP16}, .overlap = true},
    };
    struct world *world = open_world();
    check_ways(world, ways, sizeof ways / sizeof *ways);
    world_close(&world);
}

Test(bits, hierarchical)
{
    static const struct way ways[] = {
        {.shape = {.backend = &backend_hierarchical, .locals = 2}},
        {.shape = {.backend = &backend_hierarchical, .locals = 2, .dealt_out = true}},
        {.shape = {.backend = &backend_hierarchical, .locals = 1, .compress = COMPRESS_BF16},
         .overlap = true},
    };
    struct world *world = open_world();
    check_ways(world, ways, sizeof ways / sizeof *ways);
    world_close(&world);
}

/* In Open MPI one thread may write into another thread's receive buffers under a lock that
 * ThreadSanitizer does not see. It would report the reader. */
#ifdef __SANITIZE_THREAD__
enum { WITH_TWO_THREADS = 0 };
#else
enum { WITH_TWO_THREADS = 1 };
#endif

/* A comm can be closed while its servers are still at work. */
static void check_close(struct world *world)
{
    struct shape shape = {.backend = &backend_ps,
                          .transport = TRANSPORT_MPI,
                          .servers = world->size,
                          .placement = PLACEMENT_COLOCATED};
    struct allreduce_setup setup = allreduce_setup(&shape, counts, 1, 1);
    float data[LONGEST];
    struct comm *comm = NULL;
    allreduce_open(&comm, world, &shape, &setup);
    allreduce_check_exact(comm, 0, data, counts[0], 1, 0);
    rank_assert_ok(
        world_barrier(world, NULL)); /* first: a closing rank ends its server's answers */
    comm_close(&comm);
}

Test(bits, ps)
{
    static const struct way ways[] = {
        {.shape = {.backend = &backend_ps, .servers = 1, .placement = PLACEMENT_DEDICATED}},
        {.shape = {.backend = &backend_ps, .servers = 2, .placement = PLACEMENT_COLOCATED}},
        {.shape = {.backend = &backend_ps,
                   .servers = 1,
                   .placement = PLACEMENT_MIXED,
                   .compress = COMPRESS_FP16,
                   .feedback = true},
         .overlap = true},
    };
    struct world *world = open_world();
    check_ways(world, ways, WITH_TWO_THREADS ? sizeof ways / sizeof *ways : 1);
    if (WITH_TWO_THREADS)
        check_close(world);
    world_close(&world);
}

/* MPI's counts have type int. */
static void check_long_messages_are_refused(struct world *world)
{
    const struct transport_options options = {.kind = TRANSPORT_MPI,
                                              .topology = {.workers = world->size},
                                              .payload_bytes_max = (size_t)INT_MAX + 1,
                                              .dtype = MESSAGE_FLOAT32,
                                              .timeout_ms = 20000};
    struct transport *endpoint[2];
    struct transport_slot slot;
    int peer = (world->rank + 1) % world->size;
    rank_assert_ok(transport_open(endpoint, world, &options));
    log_set_level(LOG_SILENT);
    rank_assert_eq(transport_slot_init(&slot, endpoint[NODE_WORKER], peer, (size_t)INT_MAX + 1),
                   STATUS_UNSUPPORTED);
    log_set_level(LOG_INFO);
    transport_slot_fini(&slot, endpoint[NODE_WORKER]);
    rank_assert_ok(transport_slot_init(&slot, endpoint[NODE_WORKER], peer, INT_MAX));
    transport_slot_fini(&slot, endpoint[NODE_WORKER]);
    transport_close(&endpoint[NODE_WORKER]);
}

Test(bits, mpi)
{
    static const struct way ways[] = {
        {.shape = {.backend = &backend_mpi}, .whole_numbers = true},
        {.shape = {.backend = &backend_mpi}, .whole_numbers = true, .overlap = true},
    };
    struct world *world = open_world();
    check_ways(world, ways, sizeof ways / sizeof *ways);
    check_long_messages_are_refused(world);
    world_close(&world);
}
