/*
 * A server on a worker's rank that fails: the worker's call returns the server's status instead of
 * a time-out. A comm whose server is still at work can be closed. The time-out is longer than the
 * test's limit, so a wait for the time-out would fail the test. A server without answers names the
 * silent workers.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ps/ps.h"
#include "tests/lib/allreduce_lib.h"
#include "tests/lib/spawn.h"

enum { COUNT = 5000 };

static _Thread_local struct world *world;
static _Thread_local float data[COUNT];

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
    rank_assert_eq(started != STATUS_OK ? started : waited, STATUS_NO_MEMORY);
    /* Closing cuts the connections of the rank's server: first all workers must get the failure. */
    rank_assert_ok(world_barrier(world, NULL));
    comm_close(&comm);

    failing.serve = fails_at_the_end;
    comm = open_colocated(&failing, transport, overlap);
    allreduce_average(comm, 0, data);
    rank_assert_eq(comm_finish(comm), STATUS_IO);
    comm_close(&comm);
}

/* Closes a comm whose server still works, as after an error of the caller. */
static void check_close(enum transport_kind transport, bool overlap)
{
    struct comm *comm = open_colocated(&backend_ps, transport, overlap);
    allreduce_average(comm, 0, data);
    /* Closing ends the answers of the rank's server: first all workers must have their answers. */
    rank_assert_ok(world_barrier(world, NULL));
    comm_close(&comm);
    rank_assert(!comm);
}

static void failures_reach_the_caller(struct world *of, void *context)
{
    const enum transport_kind *transport = context;
    world = of;
    for (int overlap = 0; overlap < 2; overlap++) {
        check_failures(*transport, overlap);
        check_close(*transport, overlap);
    }
}

static void check_sizes(enum transport_kind transport)
{
    spawn(1, failures_reach_the_caller, &transport);
    spawn(3, failures_reach_the_caller, &transport);
}

static _Thread_local char last_error[512];

static void keep_error(enum log_level level, const char *line)
{
    if (level == LOG_ERROR)
        snprintf(last_error, sizeof last_error, "%s", line);
}

/* Worker 0 pushes a chunk, and its window is full. Worker 1 pushes nothing. */
static void one_worker_is_silent(struct world *of, void *context)
{
    static const size_t count = COUNT;
    struct comm *comm = NULL;
    const struct shape shape = {.backend = &backend_ps,
                                .transport = TRANSPORT_TCP,
                                .servers = 1,
                                .placement = PLACEMENT_DEDICATED};
    (void)context;
    world = of;
    struct allreduce_setup setup = allreduce_setup(&shape, &count, 1, 1);
    setup.options.window = 1;
    setup.options.timeout_ms = 500;
    allreduce_open(&comm, world, &shape, &setup);
    if (comm_is_server(comm)) {
        rank_assert_eq(comm_serve(comm), STATUS_TIMEOUT);
        rank_assert(strstr(last_error, "waiting for worker 1 (rank 1);"), "%s", last_error);
    } else if (comm_rank(comm) == 0) {
        enum status status = comm_start(comm, 0, data);
        if (status == STATUS_OK)
            status = comm_wait(comm, 0);
        rank_assert(status != STATUS_OK);
    }
    rank_assert_ok(world_barrier(world, NULL));
    comm_close(&comm);
}

Test(server, a_time_out_names_only_the_silent_worker)
{
    log_set_sink(keep_error);
    spawn(3, one_worker_is_silent, NULL);
}

Test(server, failures_reach_the_caller_over_tcp)
{
    check_sizes(TRANSPORT_TCP);
}

Test(server, failures_reach_the_caller_over_zmq)
{
    check_sizes(TRANSPORT_ZMQ);
}
