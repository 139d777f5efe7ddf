/*
 * libpsring over MPI. Run with nine ranks: worlds of two, three and four at the same time.
 *
 * MPI cannot take back a message, but after a time-out it must not use the caller's memory. Then
 * every kind of call meets every other kind. Without the argument `all` each world takes a third of
 * the pairs.
 */
#include "tests/library/psring_unlike.h"

#include <malloc.h>
#include <mpi.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/net/world.h"

enum { RANKS = 9, LONG = 250000, BLOCK = 1000, TOKEN = 7 };

static float memory[LONG];
static MPI_Comm everyone, world_comm; /* psring gets world_comm */
static int rank_here, size_here;

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "mpi_library: rank %d of %d: %s; psring_error: %s\n", rank_here, size_here,
            what, psring_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fill(float value)
{
    for (int i = 0; i < LONG; i++)
        memory[i] = value;
}

/* Whether the first block has one number, and all other elements have the other. */
static bool is_filled(float first, float value)
{
    for (int i = 0; i < LONG; i++) {
        if (memory[i] != (i < BLOCK ? first : value))
            return false;
    }
    return true;
}

/* Rank 1 starts an operation only after rank 0 has given up. Rank 0 waits until rank 1 is done. */
static void send_token(void)
{
    MPI_Send(NULL, 0, MPI_BYTE, !rank_here, TOKEN, everyone);
}

static void await_token(void)
{
    MPI_Recv(NULL, 0, MPI_BYTE, !rank_here, TOKEN, everyone, MPI_STATUS_IGNORE);
}

/* -------- the caller's memory ----------------------------------------------------------------- */

static enum psring_status reduce(struct psring *world)
{
    return psring_allreduce(world, memory, LONG, PSRING_FLOAT32, PSRING_SUM);
}

static enum psring_status gather(struct psring *world)
{
    return psring_all_gather(world, memory, BLOCK, PSRING_FLOAT32);
}

static enum psring_status broadcast(struct psring *world)
{
    return psring_broadcast(world, memory, LONG, PSRING_FLOAT32, 1);
}

static void come_late(enum psring_status (*run)(struct psring *world), float first, float right)
{
    const struct psring_options options = {.mpi_comm = &world_comm,
                                           .transport = "mpi",
                                           .backend = "ring",
                                           .timeout_s = rank_here == 0 ? 0.2 : 60};
    struct psring *world;
    must(psring_init(&world, &options) == PSRING_OK, "init");
    fill((float)(rank_here + 1));
    if (rank_here == 1)
        await_token();
    enum psring_status status = run(world);
    if (rank_here == 0) {
        must(status == PSRING_ERROR_TIMEOUT, "rank 0 did not time out");
        fill(1000);
        send_token();
        await_token();
        must(is_filled(1000, 1000), "the caller's memory changed after the error");
    } else {
        must(status != PSRING_OK || is_filled(first, right), "PSRING_OK with wrong numbers");
        send_token();
    }
    status = psring_finalize(&world); /* rank 1 may get rank 0's failure only now */
    must((status == PSRING_OK || rank_here == 1) && !world, "the end after an error");
}

/* The same for a world's collective calls. */
static void come_late_to_the_world(void)
{
    const struct world_options options = {.startup_timeout_ms = 60000, .mpi_comm = &world_comm};
    struct world *world;
    char mine = 'a', all[2];
    must(world_open(&world, NULL, NULL, &options) == STATUS_OK, "world_open");
    if (rank_here == 0) {
        world->timeout_ms = 200;
        must(world_gather(world, NULL, &mine, 1, all) == STATUS_TIMEOUT,
             "world_gather did not time out");
        memset(all, 'x', sizeof all);
        send_token();
        await_token();
        must(all[0] == 'x' && all[1] == 'x', "memory changed after world_gather");
    } else {
        await_token();
        (void)world_gather(world, NULL, &mine, 1, all);
        send_token();
    }
    world_fail(world, STATUS_TIMEOUT, "");
    world_close(&world);
}

/* -------- the library's memory ---------------------------------------------------------------- */

/* 0: a sanitizer has replaced malloc. */
static size_t heap_bytes(void)
{
    struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
}

/* The copies of a long broadcast need less memory than it has data. */
static void broadcast_long(void)
{
    enum { COUNT = 8 << 20, MOST = COUNT / 2 * sizeof(float) };
    const struct psring_options options = {
        .mpi_comm = &world_comm, .transport = "mpi", .timeout_s = 60};
    struct psring *world;
    float *data = calloc(COUNT, sizeof *data);
    must(psring_init(&world, &options) == PSRING_OK && data, "init");
    size_t before = heap_bytes();
    must(psring_broadcast(world, data, COUNT, PSRING_FLOAT32, 0) == PSRING_OK, "a long broadcast");
    must(heap_bytes() < before + MOST, "a broadcast has copied all data at once");
    must(psring_finalize(&world) == PSRING_OK, "the end after a long broadcast");
    free(data);
}

/* -------- different calls --------------------------------------------------------------------- */

static void meet_unlike(bool all)
{
    const struct psring_options options = {
        .mpi_comm = &world_comm, .transport = "mpi", .timeout_s = 60};
    for (int pair = 0; pair < unlike_pairs(); pair++) {
        struct psring *world;
        if (!all && pair % 3 != size_here - 2)
            continue;
        must(psring_init(&world, &options) == PSRING_OK, "init");
        unlike_meet(world, pair);
    }
}

int main(int argc, char **argv)
{
    int rank, size, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    must(size == RANKS, "mpi_library needs nine ranks");
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 2 : rank < 5 ? 3 : 4, rank, &everyone);
    MPI_Comm_dup(everyone, &world_comm);
    MPI_Comm_rank(everyone, &rank_here);
    MPI_Comm_size(everyone, &size_here);
    if (size_here == 2) {
        come_late(reduce, 3, 3);
        come_late(gather, 1, 2);
        come_late(broadcast, 2, 2);
        come_late_to_the_world();
    }
    if (size_here == 3)
        broadcast_long();
    meet_unlike(argc > 1 && strcmp(argv[1], "all") == 0);
    MPI_Finalize();
    return 0;
}
