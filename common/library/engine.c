#include "common/library/library.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"

/* -------- who has the transport --------------------------------------------------------------- */

/* Waits until nothing runs or is queued; then the caller has it. */
static void take(struct engine *engine)
{
    monitor_enter(&engine->monitor);
    while (engine->busy || engine->queue)
        monitor_wait(&engine->monitor);
    engine->busy = true;
    monitor_leave(&engine->monitor);
}

/* Inside the monitor. */
static void leave_locked(struct engine *engine)
{
    engine->busy = false;
    monitor_wake(&engine->monitor);
}

static void leave(struct engine *engine)
{
    monitor_enter(&engine->monitor);
    leave_locked(engine);
    monitor_leave(&engine->monitor);
}

/* -------- one operation ----------------------------------------------------------------------- */

/* Inside the monitor. */
static void count(struct engine *engine, int64_t ns)
{
    struct transport_counters counters = {0};
    if (engine->connection.endpoint[NODE_WORKER])
        transport_counters(engine->connection.endpoint[NODE_WORKER], &counters);
    engine->statistics.operations++;
    engine->statistics.sent_bytes = counters.sent_bytes;
    engine->statistics.received_bytes = counters.received_bytes;
    engine->statistics.sent_messages = counters.sent_messages;
    engine->statistics.received_messages = counters.received_messages;
    engine->statistics.seconds += (double)ns / (double)NS_PER_S;
}

/* The first failure. Reports it to all other ranks, and cuts the connections, so that the data is
 * the caller's. Called by the thread that has the transport, before it enters the monitor. */
static void cut(struct engine *engine, enum status status)
{
    errors_take(engine->why);
    const char *why = engine->why[0] ? engine->why : status_name(status);
    transport_fail(engine->connection.endpoint[NODE_WORKER], status, why);
    for (struct psring *comm = engine->communicators; comm; comm = comm->next)
        communicator_fail(comm);
    forks_hold();
    transport_stop(engine->connection.endpoint);
    if (engine->connection.world)
        world_fail(engine->connection.world, status, why);
    forks_release();
}

/* By the thread that has the transport; returns inside the monitor. Only that thread writes
 * engine->failed. */
static void end_and_lock(struct engine *engine, enum status status, int64_t begun_ns)
{
    int64_t ns = clock_now_ns() - begun_ns;
    if (engine->heard != STATUS_OK)
        status = engine->heard;
    bool first = engine->failed == STATUS_OK && status != STATUS_OK;
    if (first)
        cut(engine, status);
    monitor_enter(&engine->monitor);
    if (first)
        engine->failed = status;
    count(engine, ns);
}

static void run_and_lock(struct engine *engine, struct psring *comm,
                         const struct operation *operation)
{
    int64_t begun_ns = clock_now_ns();
    enum status status = engine->failed;
    if (status == STATUS_OK)
        status = operation_run(comm, operation);
    end_and_lock(engine, status, begun_ns);
}

/* Inside the monitor. */
static enum psring_status failure_locked(const struct engine *engine)
{
    if (engine->failed == STATUS_OK)
        return PSRING_OK;
    return errors_set(errors_status(engine->failed), "%s",
                      engine->why[0] ? engine->why : status_name(engine->failed));
}

enum psring_status engine_run(struct engine *engine, struct psring *comm,
                              const struct operation *operation)
{
    take(engine);
    run_and_lock(engine, comm, operation);
    enum psring_status status = failure_locked(engine);
    leave_locked(engine);
    monitor_leave(&engine->monitor);
    return status;
}

/* -------- operations by handle ---------------------------------------------------------------- */

/* The next one that was started, once the transport is free; NULL at the end. Locks. */
static struct psring_handle *next_started(struct engine *engine)
{
    monitor_enter(&engine->monitor);
    while (engine->busy || (!engine->queue && !engine->ending))
        monitor_wait(&engine->monitor);
    struct psring_handle *handle = engine->queue;
    if (handle) {
        engine->queue = handle->next_queued;
        if (!engine->queue)
            engine->queue_end = &engine->queue;
        engine->busy = true;
    }
    monitor_leave(&engine->monitor);
    return handle;
}

static void *run_started(void *argument)
{
    struct engine *engine = argument;
    for (struct psring_handle *handle; (handle = next_started(engine));) {
        run_and_lock(engine, handle->comm, &handle->operation);
        handle->failed = engine->failed != STATUS_OK;
        handle->done = true;
        leave_locked(engine);
        monitor_leave(&engine->monitor);
    }
    return NULL;
}

/* Inside the monitor. */
static void link_handle(struct engine *engine, struct psring_handle *handle)
{
    handle->next = engine->handles;
    handle->previous = &engine->handles;
    if (handle->next)
        handle->next->previous = &handle->next;
    engine->handles = handle;
}

/* Inside the monitor. */
static void unlink_handle(struct psring_handle *handle)
{
    *handle->previous = handle->next;
    if (handle->next)
        handle->next->previous = handle->previous;
}

enum psring_status engine_start(struct engine *engine, struct psring *comm,
                                const struct operation *operation, struct psring_handle **out)
{
    enum status status = STATUS_OK;
    struct psring_handle *handle = calloc(1, sizeof *handle);
    if (!handle)
        return errors_set(PSRING_ERROR_NO_MEMORY, "no memory for a handle");
    handle->engine = engine;
    handle->comm = comm;
    handle->operation = *operation;
    if (!engine->threaded) {
        handle->failed = engine_run(engine, comm, operation) != PSRING_OK; /* engine_wait says */
        handle->done = true;
    }
    monitor_enter(&engine->monitor);
    if (engine->threaded && !engine->thread.running)
        status = thread_start(&engine->thread, "psring-library", run_started, engine);
    if (status == STATUS_OK) {
        link_handle(engine, handle);
        *out = handle;
    }
    if (status == STATUS_OK && engine->threaded) {
        *engine->queue_end = handle;
        engine->queue_end = &handle->next_queued;
        monitor_wake(&engine->monitor);
    }
    monitor_leave(&engine->monitor);
    if (status != STATUS_OK)
        free(handle);
    return errors_return(status);
}

bool engine_done(const struct psring_handle *handle)
{
    struct engine *engine = handle->engine;
    monitor_enter(&engine->monitor);
    bool done = handle->done;
    monitor_leave(&engine->monitor);
    return done;
}

enum psring_status engine_wait(struct psring_handle *handle)
{
    struct engine *engine = handle->engine;
    monitor_enter(&engine->monitor);
    while (!handle->done)
        monitor_wait(&engine->monitor);
    enum psring_status status = handle->failed ? failure_locked(engine) : PSRING_OK;
    unlink_handle(handle);
    monitor_leave(&engine->monitor);
    free(handle);
    return status;
}

void engine_statistics(struct engine *engine, struct psring_statistics *statistics)
{
    monitor_enter(&engine->monitor);
    *statistics = engine->statistics;
    monitor_leave(&engine->monitor);
}

/* -------- communicators ----------------------------------------------------------------------- */

/* Of the ranks of this rank's color; NULL below 0. Collective over the world. */
static enum status add_communicator(struct engine *engine, const int *colors, struct psring **comm)
{
    enum status status;
    struct group *group;
    struct psring *added = NULL;
    const struct world *world = engine->connection.world;
    TRY(group_from_colors(&group, colors, world->size, world->rank));
    if (group) {
        TRY(communicator_new(&added, engine, group, engine->splits));
        added->next = engine->communicators;
        engine->communicators = added;
    }
    if (engine->connection.shares_memory)
        TRY(communicator_share(added, &engine->connection));
    *comm = added;
out:
    return status;
}

/* `colors`: (size). After an error the transport may read it until end_and_lock. */
static enum status gather_and_add(struct engine *engine, int *colors, int color,
                                  struct psring **comm)
{
    enum status status;
    struct world *world = engine->connection.world;
    if (!colors) {
        log_error("no memory for %d ranks", world->size);
        return STATUS_NO_MEMORY;
    }
    const struct operation gather = {.what = MESSAGE_SPLIT,
                                     .data = colors,
                                     .count = (size_t)world->size,
                                     .dtype = MESSAGE_INT32};
    engine->splits++;
    colors[world->rank] = color;
    TRY(operation_run(engine->all, &gather));
    TRY(add_communicator(engine, colors, comm));
out:
    return status;
}

enum psring_status engine_split(struct engine *engine, int color, struct psring **group)
{
    take(engine);
    int64_t begun_ns = clock_now_ns();
    int *colors = calloc((size_t)engine->connection.world->size, sizeof *colors);
    enum status status = engine->failed;
    if (status == STATUS_OK)
        status = gather_and_add(engine, colors, color, group);
    end_and_lock(engine, status, begun_ns);
    enum psring_status result = failure_locked(engine);
    leave_locked(engine);
    monitor_leave(&engine->monitor);
    free(colors);
    return result;
}

void engine_drop(struct engine *engine, struct psring **group)
{
    take(engine);
    struct psring **link = &engine->communicators;
    while (*link != *group)
        link = &(*link)->next;
    *link = (*group)->next;
    communicator_free(group);
    leave(engine);
}

/* -------- its life ---------------------------------------------------------------------------- */

static enum status add_world(struct engine *engine)
{
    struct psring *comm = NULL;
    int *colors = calloc((size_t)engine->connection.world->size, sizeof *colors);
    enum status status = colors ? add_communicator(engine, colors, &comm) : STATUS_NO_MEMORY;
    if (status == STATUS_OK) {
        comm->is_world = true;
        engine->all = comm;
    }
    free(colors);
    return status;
}

/* Asked by the world while it waits for ranks, on the thread that has the transport. */
static bool hears_a_failure(void *context)
{
    struct engine *engine = context;
    if (engine->heard == STATUS_OK)
        engine->heard = transport_listen(engine->connection.endpoint[NODE_WORKER], -1);
    return engine->heard != STATUS_OK;
}

enum status engine_new(struct engine **out, const struct psring_options *options)
{
    enum status status = STATUS_OK;
    struct engine *engine = calloc(1, sizeof *engine);
    *out = NULL;
    if (!engine) {
        log_error("out of memory");
        return STATUS_NO_MEMORY;
    }
    monitor_init(&engine->monitor);
    engine->queue_end = &engine->queue;
    engine->process = getpid();
    TRY(start_connect(options, &engine->connection));
    engine->threaded =
        engine->connection.kind != TRANSPORT_MPI || engine->connection.world->concurrent;
    engine->connection.world->cancelled = hears_a_failure;
    engine->connection.world->cancel_context = engine;
    TRY(add_world(engine));
    *out = engine;
    return STATUS_OK;
out:
    if (engine->heard != STATUS_OK)
        status = engine->heard;
    cut(engine, status);
    log_error("%s", engine->why[0] ? engine->why : status_name(status)); /* cut has taken it */
    engine->failed = status;                                             /* waits for no rank */
    (void)engine_free(&engine);
    return status;
}

/* Waits until all ranks have come to the end. The transport sees ranks in other calls. The barrier
 * of the world comes after it, because a closed connection is an error until transport_check_end.
 */
static enum status meet_at_the_end(struct engine *engine)
{
    enum status status;
    int32_t nothing = 0;
    const struct operation end = {
        .what = MESSAGE_FINALIZE, .data = &nothing, .count = 1, .dtype = MESSAGE_INT32};
    TRY(operation_run(engine->all, &end));
    TRY(transport_check_end(engine->connection.endpoint[NODE_WORKER]));
    TRY(world_barrier(engine->connection.world, NULL));
    return STATUS_OK;
out:
    if (engine->heard != STATUS_OK)
        status = engine->heard;
    cut(engine, status);
    log_error("%s", engine->why[0] ? engine->why : status_name(status));
    return status;
}

enum status engine_free(struct engine **out)
{
    enum status status = STATUS_OK;
    struct engine *engine = *out;
    *out = NULL;
    monitor_enter(&engine->monitor);
    engine->ending = true;
    monitor_wake(&engine->monitor);
    monitor_leave(&engine->monitor);
    thread_join(&engine->thread);
    if (engine->failed == STATUS_OK)
        status = meet_at_the_end(engine);
    transport_stop(engine->connection.endpoint);
    while (engine->communicators) {
        struct psring *comm = engine->communicators;
        engine->communicators = comm->next;
        communicator_free(&comm);
    }
    transport_close(&engine->connection.endpoint[NODE_WORKER]);
    if (engine->connection.world)
        world_close(&engine->connection.world);
    while (engine->handles) {
        struct psring_handle *handle = engine->handles;
        engine->handles = handle->next;
        free(handle);
    }
    monitor_fini(&engine->monitor);
    free(engine);
    return status;
}

void engine_close_in_child(const struct engine *engine)
{
    transport_close_in_child(engine->connection.endpoint[NODE_WORKER]);
    if (engine->connection.world)
        world_close_in_child(engine->connection.world);
}
