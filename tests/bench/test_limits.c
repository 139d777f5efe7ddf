/* Limits of a machine, and a server on plain sockets with peers that fail. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "experiments/bench/baselines.h"
#include "tests/lib/ranks.h"

Test(limits, memory_has_a_speed)
{
    struct limits found;
    cr_assert_eq(limits_memory(1 << 16, &found), STATUS_OK);
    for (enum message_dtype dtype = MESSAGE_FLOAT32; dtype < MESSAGE_DTYPES; dtype++)
        cr_expect(found.type_bytes_per_s[dtype] > 0 && isfinite(found.type_bytes_per_s[dtype]));
    cr_expect(found.add_bytes_per_s > 0 && isfinite(found.add_bytes_per_s));
    cr_expect(found.reduce_bytes_per_s > 0 && isfinite(found.reduce_bytes_per_s));
}

Test(limits, arrays_are_zeroed_and_aligned)
{
    const size_t sizes[] = {
        0, 1, 4096, MEMORY_HUGE_BYTES - 1, MEMORY_HUGE_BYTES, 3 * MEMORY_HUGE_BYTES + 1};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        unsigned char *memory = memory_array(sizes[s]);
        cr_assert(memory);
        cr_expect_eq((uintptr_t)memory % 64, 0);
        if (sizes[s] >= MEMORY_HUGE_BYTES)
            cr_expect_eq((uintptr_t)memory % MEMORY_HUGE_BYTES, 0);
        for (size_t i = 0; i < sizes[s]; i++)
            cr_assert_eq(memory[i], 0);
        memset(memory, 1, sizes[s]);
        free(memory);
    }
    cr_expect_null(memory_array(SIZE_MAX));
}

/* -------- a server on plain sockets, with ranks as processes ---------------------------------- */

enum { BYTES = 300004, SEVERAL_WINDOWS = 5 * BYTES, SHORT_MS = 300 };

/* A rank that takes part. Its exit code is 1 after an error. */
static int serve(struct world *world)
{
    struct limits limits = {0};
    enum status status = limits_server(&limits, world, NULL, 20000, SEVERAL_WINDOWS);
    return status != STATUS_OK || limits.server_us <= 0 || limits.server_workers != 2;
}

/* The exit code is 0 after an error. */
static int expect_failure(struct world *world)
{
    struct limits limits = {0};
    return limits_server(&limits, world, NULL, SHORT_MS, BYTES) == STATUS_OK;
}

static int expect_wrong(struct world *world)
{
    struct limits limits = {0};
    return limits_server(&limits, world, NULL, 20000, BYTES) != STATUS_WRONG;
}

/* Connects as a worker does, and returns the connection. */
static int join(struct world *world)
{
    union address address;
    int socket = -1;
    if (world_broadcast(world, NULL, &address, sizeof address) == STATUS_OK)
        listener_join(&address, world->run_id, world->rank, 5000, &socket);
    return socket;
}

static int join_and_send_nothing(struct world *world)
{
    char byte;
    stream_receive(join(world), &byte, 1, 20000); /* until the server gives up */
    return 0;
}

static int join_and_trickle(struct world *world)
{
    int socket = join(world);
    while (send(socket, "....", 4, MSG_NOSIGNAL) == 4)
        usleep(10000);
    return 0;
}

static int join_and_end(struct world *world)
{
    int socket = join(world);
    send(socket, "....", 4, MSG_NOSIGNAL);
    close(socket);
    return 0;
}

/* A server that answers each vector with another one. */
static int serve_wrong_sums(struct world *world)
{
    static char vector[BYTES];
    int sockets[] = {-1, LISTENER_AWAITED};
    struct listener listener;
    union address address;
    if (world_choose_address(world, NULL, &address) != STATUS_OK ||
        listener_open(&listener, &address, 0) != 0)
        return 1;
    address = listener.address;
    if (world_broadcast(world, NULL, &address, sizeof address) != STATUS_OK ||
        listener_let_in(&listener, world->run_id, 5000, sockets, 2) >= 0)
        return 1;
    stream_receive(sockets[1], vector, sizeof vector, 5000);
    vector[BYTES / 2]++;
    stream_send(sockets[1], vector, sizeof vector, 5000);
    stream_receive(sockets[1], vector, 1, 5000); /* until the worker ends */
    return 0;
}

Test(limits, a_server_on_sockets_has_a_time)
{
    struct rank ranks[3];
    for (int r = 0; r < 3; r++)
        ranks[r] = (struct rank){.number = r, .world_size = 3, .run = serve};
    ranks_run(ranks, 3);
    ranks_all_well(ranks, 3);
}

static void expect_named(int (*faulty)(struct world *), const char *words)
{
    struct rank ranks[] = {{.number = 0, .world_size = 3, .run = expect_failure},
                           {.number = 1, .world_size = 3, .run = expect_failure},
                           {.number = 2, .world_size = 3, .run = faulty}};
    ranks_run(ranks, 3);
    cr_expect(ranks[0].code == 0 && strstr(ranks[0].said, words), "exit %d: %s", ranks[0].code,
              ranks[0].said);
    cr_expect(ranks[1].code == 0 && strstr(ranks[1].said, "rank 0"), "exit %d: %s", ranks[1].code,
              ranks[1].said);
}

Test(limits, a_silent_worker_is_named)
{
    expect_named(join_and_send_nothing, "rank 2: Connection timed out");
}

/* The time-out is the turn's: single bytes do not move it. */
Test(limits, a_trickling_worker_is_named)
{
    expect_named(join_and_trickle, "rank 2: Connection timed out");
}

Test(limits, an_ended_worker_is_named)
{
    expect_named(join_and_end, "rank 2: Connection reset");
}

Test(limits, wrong_sums_are_an_error)
{
    struct rank ranks[] = {{.number = 0, .world_size = 2, .run = serve_wrong_sums},
                           {.number = 1, .world_size = 2, .run = expect_wrong}};
    ranks_run(ranks, 2);
    cr_expect(ranks[1].code == 0 && strstr(ranks[1].said, "1 of 75001 elements differ"),
              "exit %d: %s", ranks[1].code, ranks[1].said);
}
