/* From comm_plan to comm_finish: the buckets of one plan are averaged, on a thread of their own
 * where that is possible, beside a server where this process hosts one. */
#include "common/base/status.h"
#include "common/base/clock.h"
#include "common/comm/comm.h"
#include "common/comm/comm_impl.h"
#include "common/comm/state/state.h"
#include "common/obs/range.h"

/* -------- planning ---------------------------------------------------------------------------- */

/* The averaging thread and the caller may both be inside MPI at a time, unless the backend talks
 * over ZeroMQ. An MPI that allows one thread only (a simulator's) averages in comm_start instead.
 */
static bool can_overlap(const struct comm *comm)
{
    bool uses_mpi = !comm->backend->uses_transport || comm->options.transport == TRANSPORT_MPI;
    return comm->plan.layout.overlap && !comm->backend->device_memory &&
           (!uses_mpi || comm->world->concurrent);
}

/* Through host memory, unless the backend's library averages the device's own; then the device
 * multiplies by the scale, too, and the backend is not asked to. */
static enum status open_staging(struct comm *comm)
{
    const struct backend *backend = comm->backend;
    struct device *device = comm->options.device;
    struct plan *plan = &comm->plan;
    if (!device || device_memory_is_host(device) || backend->device_memory)
        return STATUS_OK;
    if (!backend->takes_device_memory || !backend->takes_device_memory())
        return staging_new(&plan->staging, device, plan->counts, plan->layout.buckets);
    float scale = plan->layout.scale;
    plan->layout.scale = 1.0f;
    if (comm->worker_site.index == 0)
        log_info("--backend %s: the GPU's memory is averaged where it is", backend->name);
    return staging_new_in_place(&plan->staging, device, plan->counts, plan->layout.buckets, scale);
}

/* A server that fails inside a worker's process: the worker would wait for an answer until its
 * time-out. So its waits end, and report this. */
static void *run_server(void *argument)
{
    struct comm *comm = argument;
    bool paused; /* comm_go_on makes another thread */
    comm->server_status = comm->backend->serve(comm->server, &paused);
    if (comm->server_status != STATUS_OK) {
        atomic_store(&comm->server_failed, true);
        transport_interrupt(comm->endpoints[NODE_WORKER]);
    }
    return NULL;
}

enum status comm_blame(const struct comm *comm, enum status status)
{
    bool failed = status != STATUS_OK && atomic_load(&comm->server_failed);
    return failed ? comm->server_status : status;
}

static struct range_about about_bucket(const struct comm *comm, enum range_kind kind, size_t bucket)
{
    return (struct range_about){.kind = kind,
                                .bucket = (uint32_t)bucket,
                                .number = comm->plan.ranges[bucket].step,
                                .bytes = comm->plan.counts[bucket] * sizeof(float)};
}

static void begin_allreduce(const struct comm *comm, size_t bucket)
{
    const struct range_about about = about_bucket(comm, RANGE_ALLREDUCE, bucket);
    range_begin(comm->plan.ranges[bucket].allreduce, &about);
}

static enum status average(void *context, size_t bucket, float *data)
{
    struct comm *comm = context;
    enum status status = STATUS_OK;
    if (comm->plan.staging)
        status = staging_arrive(comm->plan.staging, bucket);
    if (status != STATUS_OK)
        return status;
    activity_set(comm->world->activity, ACTIVITY_WORKER, ACTIVITY_AVERAGE,
                 comm->plan.ranges[bucket].step, (uint32_t)bucket);
    begin_allreduce(comm, bucket);
    status = comm->backend->allreduce(comm->self, bucket, data);
    range_end();
    return comm_blame(comm, status);
}

enum status comm_plan(struct comm *comm, const struct comm_layout *layout)
{
    enum status status = STATUS_OK;
    struct plan *plan = &comm->plan;
    CHECK(!plan->running && !comm->server_thread.running);
    plan_fini(plan);
    TRY(plan_init(plan, layout, comm->options.bucket_counts_max));
    /* No message of this plan may meet a slot that a server has still posted for the last one. */
    TRY(world_barrier(comm->world, comm->everyone));
    activity_start_up_done(comm->world->activity);
    comm_count_since_open(comm, &plan->before);
    plan->running = true;
    if (comm_is_server(comm))
        return STATUS_OK;
    TRY(open_staging(comm));
    if (comm->backend->plan)
        TRY(comm->backend->plan(comm->self));
    if (comm->server_open)
        TRY(thread_start(&comm->server_thread, "psring-server", run_server, comm));
    if (can_overlap(comm))
        TRY(overlap_new(&plan->overlap, average, comm, plan->layout.buckets, plan->order));
out:
    return status;
}

/* -------- averaging --------------------------------------------------------------------------- */

enum status comm_serve(struct comm *comm)
{
    CHECK(comm_is_server(comm) && comm->plan.running);
    activity_set(comm->world->activity, ACTIVITY_MAIN, ACTIVITY_SERVE, 0, 0);
    enum status status;
    bool paused = false;
    do {
        status = comm->backend->serve(comm->server, &paused);
        if (status == STATUS_OK && paused)
            status = comm_state_join(comm);
    } while (status == STATUS_OK && paused);
    comm->plan.running = false;
    return status;
}

/* The backend averages device memory: the host only asks for it. */
static enum status enqueue(struct comm *comm, size_t bucket, float *data)
{
    begin_allreduce(comm, bucket);
    enum status status = comm->backend->start(comm->self, bucket, data);
    range_end();
    return status;
}

enum status comm_start(struct comm *comm, size_t bucket, float *data)
{
    struct plan *plan = &comm->plan;
    CHECK(plan->running && bucket < plan->layout.buckets && !plan->started[bucket]);
    plan->started[bucket] = true;
    plan->ranges[bucket].step = activity_step(comm->world->activity);
    const struct range_about about = about_bucket(comm, RANGE_BUCKET, bucket);
    range_open(&plan->ranges[bucket].open, plan->ranges[bucket].name, &about);
    if (comm->backend->device_memory)
        return enqueue(comm, bucket, data);
    if (plan->staging)
        data = staging_down(plan->staging, bucket, data);
    if (plan->overlap) {
        overlap_start(plan->overlap, bucket, data);
        return STATUS_OK;
    }
    int64_t start_ns = clock_now_ns();
    enum status status = average(comm, bucket, data);
    plan->busy_ns += clock_now_ns() - start_ns;
    return status;
}

enum status comm_flush(struct comm *comm)
{
    return comm->backend->flush ? comm->backend->flush(comm->self) : STATUS_OK;
}

enum status comm_wait(struct comm *comm, size_t bucket)
{
    struct plan *plan = &comm->plan;
    CHECK(bucket < plan->layout.buckets && plan->started[bucket]);
    plan->started[bucket] = false;
    enum status status = comm_flush(comm);
    if (status == STATUS_OK && comm->backend->device_memory)
        status = comm->backend->wait(comm->self, bucket);
    else if (plan->overlap)
        status = overlap_wait(plan->overlap, bucket);
    if (status == STATUS_OK && plan->staging)
        staging_up(plan->staging, bucket);
    range_close(&plan->ranges[bucket].open);
    return status;
}

bool comm_has_phases(const struct comm *comm)
{
    return comm->backend->reduce_scatter && !comm->plan.overlap &&
           comm->options.compress == COMPRESS_NONE;
}

enum status comm_reduce_scatter(struct comm *comm, size_t bucket, float *data)
{
    CHECK(comm->plan.running && comm_has_phases(comm) && bucket < comm->plan.layout.buckets);
    return comm->backend->reduce_scatter(comm->self, bucket, data);
}

enum status comm_all_gather(struct comm *comm, size_t bucket, float *data)
{
    CHECK(comm->plan.running && comm_has_phases(comm) && bucket < comm->plan.layout.buckets);
    return comm->backend->all_gather(comm->self, bucket, data);
}

struct chunk comm_part(const struct comm *comm, size_t bucket)
{
    CHECK(comm_has_phases(comm) && bucket < comm->plan.layout.buckets);
    return comm->backend->part(comm->self, bucket);
}

int64_t comm_busy_ns(const struct comm *comm)
{
    const struct plan *plan = &comm->plan;
    int64_t busy_ns = plan->overlap ? overlap_busy_ns(plan->overlap) : plan->busy_ns;
    return busy_ns - (plan->staging ? staging_waited_ns(plan->staging) : 0);
}

enum status comm_broadcast(struct comm *comm, float *data, size_t count)
{
    return world_broadcast(comm->world, comm->options.group, data, count * sizeof *data);
}

enum status comm_barrier(struct comm *comm)
{
    return world_barrier(comm->world, comm->options.group);
}

/* -------- pausing and finishing ----------------------------------------------------------------
 */

static enum status join_server(struct comm *comm)
{
    struct activity *activity = comm->world->activity;
    if (!comm->server_thread.running)
        return STATUS_OK;
    activity_wait(activity, ACTIVITY_MAIN, 0, comm_workers(comm) - 1, ACTIVITY_NO_OFFSET);
    thread_join(&comm->server_thread);
    activity_go_on(activity, ACTIVITY_MAIN);
    return comm->server_status;
}

enum status comm_pause(struct comm *comm)
{
    if (comm->backend->pause) { /* the averaging thread, if there is one, has nothing to do */
        enum status status = comm->backend->pause(comm->self);
        if (status != STATUS_OK)
            return comm_blame(comm, status);
    }
    return join_server(comm);
}

enum status comm_go_on(struct comm *comm)
{
    return comm->server_open ? thread_start(&comm->server_thread, "psring-server", run_server, comm)
                             : STATUS_OK;
}

enum status comm_finish(struct comm *comm)
{
    enum status status = STATUS_OK;
    CHECK(comm->plan.running);
    activity_set(comm->world->activity, ACTIVITY_MAIN, ACTIVITY_FINISH, 0, 0);
    overlap_free(&comm->plan.overlap); /* from here on, this thread owns the transport */
    if (comm->backend->finish)
        status = comm->backend->finish(comm->self);
    if (status != STATUS_OK)
        return comm_blame(comm, status);
    comm->plan.running = false;
    return join_server(comm);
}
