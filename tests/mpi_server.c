/*
 * A server inside a worker's process that fails: the worker is told so, with the server's own
 * status, not after a time-out; and a comm whose server is still at work can be closed. Run under
 * mpirun. The time-out is longer than ctest's: waiting for it would fail.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "ps/ps.h"
#include "tests/allreduce_lib.h"

enum { COUNT = 5000 };

static struct world *world;
static float data[COUNT];

static enum status fails_at_once(void *server, bool *paused)
{
    (void)server;
    (void)paused;
    return STATUS_NO_MEMORY;
}

static enum status fails_at_the_end(void *server, bool *paused)
{
    enum status status = ps_serve(server, paused);
    return status == STATUS_OK ? STATUS_IO : status;
}

static struct comm *open_colocated(const struct backend *backend, enum transport_kind transport,
                                   bool overlap)
{
    static const size_t count = COUNT;
    struct comm *comm = NULL;
    struct shape shape = {.backend = backend,
                          .transport = transport,
                          .servers = world->size,
                          .placement = PLACEMENT_COLOCATED};
    struct allreduce_setup setup = allreduce_setup(&shape, &count, 1, 1);
    setup.options.timeout_ms = 3600 * 1000;
    setup.layout.overlap = overlap;
    allreduce_open(&comm, world, &shape, &setup);
    return comm;
}

static void check_failures(enum transport_kind transport, bool overlap)
{
    struct backend failing = backend_ps;
    failing.serve = fails_at_once;
    struct comm *comm = open_colocated(&failing, transport, overlap);
    enum status started = comm_start(comm, 0, data), waited = STATUS_OK;
    if (started == STATUS_OK)
        waited = comm_wait(comm, 0);
    cr_assert_eq(started != STATUS_OK ? started : waited, STATUS_NO_MEMORY);
    /* Who closes cuts the connections of its server: all must have met their own one's failure. */
    cr_assert_eq(world_barrier(world, NULL), STATUS_OK);
    comm_close(&comm);

    failing.serve = fails_at_the_end;
    comm = open_colocated(&failing, transport, overlap);
    allreduce_average(comm, 0, data);
    cr_assert_eq(comm_finish(comm), STATUS_IO);
    comm_close(&comm);
}

/* After an error of the caller's, say. */
static void check_close(enum transport_kind transport, bool overlap)
{
    struct comm *comm = open_colocated(&backend_ps, transport, overlap);
    allreduce_average(comm, 0, data);
    /* Who closes takes the answers of its server along: all must have theirs. */
    cr_assert_eq(world_barrier(world, NULL), STATUS_OK);
    comm_close(&comm);
    cr_assert_null(comm);
}

Test(mpi_server, failures_reach_the_caller)
{
    cr_assert_eq(world_open(&world, NULL, NULL, NULL), STATUS_OK);
    for (enum transport_kind t = TRANSPORT_ZMQ; t < TRANSPORT_KINDS; t++) {
        struct shape shape = {.transport = t, .placement = PLACEMENT_COLOCATED};
        for (int overlap = 0; overlap < 2 && allreduce_can_judge(&shape); overlap++) {
            check_failures(t, overlap);
            check_close(t, overlap);
        }
    }
    world_close(&world);
}
