/*
 * A communicator: opening, planning, averaging, closing. From comm_plan to comm_finish it averages
 * the buckets of one plan, on a separate thread if possible. A server in this process also has a
 * thread.
 */
#include "common/comm/comm.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/status.h"
#include "common/base/util.h"
#include "common/comm/comm_impl.h"
#include "common/base/range.h"

/* -------- a layout of buckets ----------------------------------------------------------------- */

/* Copies `layout`, whose buckets have at most `counts_max` elements. */
static enum status plan_init(struct comm_plan *plan, const struct comm_layout *layout,
                             size_t counts_max)
{
    size_t buckets = layout->buckets;
    plan->layout = *layout;
    plan->counts = calloc(buckets + 1, sizeof *plan->counts);
    plan->order = layout->order ? calloc(buckets + 1, sizeof *plan->order) : NULL;
    plan->buckets = calloc(buckets + 1, sizeof *plan->buckets);
    if (!plan->counts || (layout->order && !plan->order) || !plan->buckets)
        return FAIL(STATUS_NO_MEMORY, "comm: no memory for %zu buckets", buckets);
    for (size_t b = 0; b < buckets; b++) {
        struct comm_bucket *bucket = &plan->buckets[b];
        CHECK(layout->counts[b] <= counts_max);
        plan->counts[b] = layout->counts[b];
        if (layout->order)
            plan->order[b] = layout->order[b];
        snprintf(bucket->name, sizeof bucket->name, "bucket %zu", b);
        snprintf(bucket->allreduce, sizeof bucket->allreduce, "bucket %zu allreduce", b);
    }
    plan->layout.counts = plan->counts;
    plan->layout.order = plan->order;
    return STATUS_OK;
}

/* Hands over, in the plan's order, the buckets that have been started. At the end it skips buckets
 * that were never started. */
static void start_in_order(struct comm_plan *plan, bool at_end)
{
    for (size_t i = 0; i < plan->layout.buckets; i++) {
        struct comm_bucket *bucket = &plan->buckets[plan->order[plan->next]];
        if (!bucket->held && !at_end)
            break;
        if (bucket->held)
            (void)overlap_start(&plan->overlap, &bucket->task); /* overlap_wait returns the
                                                                 * status */
        bucket->held = false;
        plan->next = (plan->next + 1) % plan->layout.buckets;
    }
}

/* Ends the thread once it has done the started buckets. */
static void plan_end(struct comm_plan *plan)
{
    if (plan->order && plan->overlap.thread.running)
        start_in_order(plan, true);
    overlap_end(&plan->overlap);
}

/* Ends the thread and the staging. Frees everything and zeroes `plan`. */
static void plan_fini(struct comm_plan *plan)
{
    plan_end(plan);
    overlap_fini(&plan->overlap);
    staging_free(&plan->staging);
    free(plan->counts);
    free(plan->order);
    free(plan->buckets);
    *plan = (struct comm_plan){0};
}

/* -------- counting ---------------------------------------------------------------------------- */

static void comm_count_since_open(const struct comm *comm, struct comm_counters *counters)
{
    *counters = (struct comm_counters){0};
    if (comm->place.endpoints[NODE_WORKER])
        transport_counters(comm->place.endpoints[NODE_WORKER], &counters->worker);
    if (comm->place.endpoints[NODE_SERVER])
        transport_counters(comm->place.endpoints[NODE_SERVER], &counters->server);
}

static void subtract(struct transport_counters *counters, const struct transport_counters *before)
{
    counters->sent_bytes -= before->sent_bytes;
    counters->received_bytes -= before->received_bytes;
    counters->sent_messages -= before->sent_messages;
    counters->received_messages -= before->received_messages;
    counters->sent_header_bytes -= before->sent_header_bytes;
    counters->received_header_bytes -= before->received_header_bytes;
    counters->uplink_sent_bytes -= before->uplink_sent_bytes;
    counters->uplink_received_bytes -= before->uplink_received_bytes;
}

void comm_counters(const struct comm *comm, struct comm_counters *counters)
{
    comm_count_since_open(comm, counters);
    subtract(&counters->worker, &comm->plan.before.worker);
    subtract(&counters->server, &comm->plan.before.server);
}

void comm_interrupt(struct comm *comm)
{
    transport_interrupt(comm->place.endpoints[NODE_WORKER]);
    transport_interrupt(comm->place.endpoints[NODE_SERVER]);
}

/* -------- planning ---------------------------------------------------------------------------- */

/* The averaging thread and the caller may be inside MPI at the same time, unless the backend
 * communicates over tcp or ZeroMQ. If MPI allows only one thread (a simulator's), comm_start
 * averages instead. */
static bool can_overlap(const struct comm *comm)
{
    bool uses_mpi =
        !comm->backend->uses_transport || comm->place.options.transport == TRANSPORT_MPI;
    return comm->plan.layout.overlap && !comm->backend->device_memory &&
           (!uses_mpi || comm->place.world->concurrent);
}

/* Stages through host memory, unless the backend's library averages device memory directly. The
 * device then also applies the scale, and the backend's scale is 1. */
static enum status open_staging(struct comm *comm)
{
    const struct backend *backend = comm->backend;
    struct device *device = comm->place.options.device;
    struct comm_plan *plan = &comm->plan;
    if (!device || device_memory_is_host(device) || backend->device_memory)
        return STATUS_OK;
    bool in_place = backend->takes_device_memory && backend->takes_device_memory();
    float scale = plan->layout.scale;
    if (in_place)
        plan->layout.scale = 1.0f;
    if (in_place && comm->worker_site.index == 0)
        log_info("--backend %s: the GPU's memory is averaged in place", backend->name);
    return staging_new(&plan->staging, device, plan->counts, plan->layout.buckets, in_place, scale);
}

/* If a server in a worker's process fails, the worker would wait for its answer until the time-out.
 * This ends the worker's waits, and comm_blame reports the server's failure. */
static void *run_server(void *argument)
{
    struct comm *comm = argument;
    bool paused; /* comm_go_on starts another thread */
    comm->server_status = comm->backend->serve(comm->server, &paused);
    if (comm->server_status != STATUS_OK) {
        atomic_store(&comm->server_failed, true);
        transport_interrupt(comm->place.endpoints[NODE_WORKER]);
    }
    return NULL;
}

/* The status to report: a server's failure, if it caused this failure of its worker. */
static enum status comm_blame(const struct comm *comm, enum status status)
{
    bool failed = status != STATUS_OK && atomic_load(&comm->server_failed);
    return failed ? comm->server_status : status;
}

static struct range_about about_bucket(const struct comm *comm, enum range_kind kind, size_t bucket)
{
    return (struct range_about){.kind = kind,
                                .bucket = (uint32_t)bucket,
                                .number = comm->plan.buckets[bucket].step,
                                .bytes = comm->plan.counts[bucket] * sizeof(float)};
}

static void begin_allreduce(const struct comm *comm, size_t bucket)
{
    const struct range_about about = about_bucket(comm, RANGE_ALLREDUCE, bucket);
    range_begin(comm->plan.buckets[bucket].allreduce, &about);
}

static enum status average(void *context, struct overlap_task *task)
{
    struct comm *comm = context;
    const struct comm_bucket *bucket = (const struct comm_bucket *)task;
    size_t b = (size_t)(bucket - comm->plan.buckets);
    enum status status = STATUS_OK;
    if (comm->plan.staging)
        status = staging_arrive(comm->plan.staging, b);
    if (status != STATUS_OK)
        return status;
    activity_set(comm->place.world->activity, ACTIVITY_WORKER, ACTIVITY_AVERAGE, bucket->step,
                 (uint32_t)b);
    begin_allreduce(comm, b);
    status = comm->backend->allreduce(comm->self, b, bucket->data);
    range_end();
    return comm_blame(comm, status);
}

enum status comm_plan(struct comm *comm, const struct comm_layout *layout)
{
    enum status status = STATUS_OK;
    struct comm_plan *plan = &comm->plan;
    CHECK(!plan->running && !comm->server_thread.running);
    plan_fini(plan);
    overlap_init(&plan->overlap, average, comm);
    TRY(plan_init(plan, layout, comm->place.options.bucket_counts_max));
    /* Messages of this plan must not meet slots that a server posted for the last plan. */
    TRY(world_barrier(comm->place.world, comm->place.everyone));
    activity_start_up_done(comm->place.world->activity);
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
        TRY(overlap_begin(&plan->overlap, "psring-comm"));
out:
    return status;
}

/* -------- averaging --------------------------------------------------------------------------- */

enum status comm_serve(struct comm *comm)
{
    CHECK(comm_is_server(comm) && comm->plan.running);
    activity_set(comm->place.world->activity, ACTIVITY_MAIN, ACTIVITY_SERVE, 0, 0);
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

/* The backend averages device memory: the host only queues the operation. */
static enum status enqueue(struct comm *comm, size_t bucket, float *data)
{
    begin_allreduce(comm, bucket);
    enum status status = comm->backend->start(comm->self, bucket, data);
    range_end();
    return status;
}

enum status comm_start(struct comm *comm, size_t b, float *data)
{
    struct comm_plan *plan = &comm->plan;
    CHECK(plan->running && b < plan->layout.buckets && !plan->buckets[b].started);
    struct comm_bucket *bucket = &plan->buckets[b];
    bucket->started = true;
    bucket->step = activity_step(comm->place.world->activity);
    const struct range_about about = about_bucket(comm, RANGE_BUCKET, b);
    range_open(&bucket->open, bucket->name, &about);
    if (comm->backend->device_memory)
        return enqueue(comm, b, data);
    bucket->data = plan->staging ? staging_down(plan->staging, b, data) : data;
    if (!comm_overlaps(comm) || !plan->order)
        return overlap_start(&plan->overlap, &bucket->task);
    bucket->task.done = false;
    bucket->held = true;
    start_in_order(plan, false);
    return STATUS_OK;
}

enum status comm_flush(struct comm *comm)
{
    return comm->backend->flush ? comm->backend->flush(comm->self) : STATUS_OK;
}

enum status comm_wait(struct comm *comm, size_t b)
{
    struct comm_plan *plan = &comm->plan;
    CHECK(b < plan->layout.buckets && plan->buckets[b].started);
    struct comm_bucket *bucket = &plan->buckets[b];
    bucket->started = false;
    enum status status = comm_flush(comm);
    if (!comm->backend->device_memory)
        status = overlap_wait(&plan->overlap, &bucket->task);
    else if (status == STATUS_OK && comm->backend->wait)
        status = comm->backend->wait(comm->self, b);
    if (status == STATUS_OK && plan->staging)
        staging_up(plan->staging, b);
    range_close(&bucket->open);
    return status;
}

int64_t comm_busy_ns(struct comm *comm)
{
    struct comm_plan *plan = &comm->plan;
    return overlap_busy_ns(&plan->overlap) - (plan->staging ? staging_waited_ns(plan->staging) : 0);
}

enum status comm_broadcast(struct comm *comm, float *data, size_t count)
{
    return world_broadcast(comm->place.world, comm->place.options.group, data,
                           count * sizeof *data);
}

enum status comm_barrier(struct comm *comm)
{
    return world_barrier(comm->place.world, comm->place.options.group);
}

/* -------- pausing and finishing --------------------------------------------------------------- */

static enum status join_server(struct comm *comm)
{
    struct activity *activity = comm->place.world->activity;
    if (!comm->server_thread.running)
        return STATUS_OK;
    activity_wait(activity, ACTIVITY_MAIN, 0, comm_workers(comm) - 1, ACTIVITY_NO_OFFSET);
    thread_join(&comm->server_thread);
    activity_go_on(activity, ACTIVITY_MAIN);
    return comm->server_status;
}

enum status comm_pause(struct comm *comm)
{
    if (comm->backend->pause) { /* the averaging thread, if any, is idle */
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
    activity_set(comm->place.world->activity, ACTIVITY_MAIN, ACTIVITY_FINISH, 0, 0);
    plan_end(&comm->plan); /* from here on, this thread owns the transport */
    if (comm->backend->finish)
        status = comm->backend->finish(comm->self);
    if (status != STATUS_OK)
        return comm_blame(comm, status);
    comm->plan.running = false;
    return join_server(comm);
}

/* -------- opening ----------------------------------------------------------------------------- */

enum status comm_open(struct comm **out, struct world *world, const struct backend *backend,
                      const struct comm_options *options)
{
    enum status status;
    *out = NULL;
    struct comm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return FAIL(STATUS_NO_MEMORY, "comm: out of memory");
    comm->backend = backend;
    activity_set(world->activity, ACTIVITY_MAIN, ACTIVITY_CONNECT, 0, 0);
    if (backend->unavailable)
        TRY(FAIL(STATUS_UNSUPPORTED, "--backend %s: %s", backend->name, backend->unavailable));
    TRY(comm_place_open(&comm->place, world, backend, options));
    comm->worker_site = comm_place_env(&comm->place, NODE_WORKER);
    comm->server_site = comm_place_env(&comm->place, NODE_SERVER);
    comm->worker_site.layout = comm->server_site.layout = &comm->plan.layout;
    if (comm->worker_site.index >= 0) {
        TRY(backend->open(&comm->self, &comm->worker_site));
        comm->self_open = true;
    }
    if (comm->server_site.index >= 0) {
        TRY(backend->server_open(&comm->server, &comm->server_site));
        comm->server_open = true;
    }
    /* Up to here ranks may be far apart: one may read the data for all ranks of its host. */
    world->timeout_ms = options->timeout_ms;
    world->stall_warning_ms = options->stall_warning_ms;
    *out = comm;
    return STATUS_OK;
out:
    comm_close(&comm);
    return status;
}

/* -------- properties -------------------------------------------------------------------------- */

bool comm_is_server(const struct comm *comm)
{
    return comm->worker_site.index < 0;
}

int comm_rank(const struct comm *comm)
{
    return comm->worker_site.index;
}

int comm_workers(const struct comm *comm)
{
    return comm->worker_site.workers;
}

bool comm_overlaps(const struct comm *comm)
{
    return comm->plan.overlap.thread.running;
}

const struct topology *comm_topology(const struct comm *comm)
{
    return &comm->worker_site.topology;
}

const struct group *comm_group(const struct comm *comm)
{
    return comm->place.options.group;
}

const struct comm_options *comm_options_of(const struct comm *comm)
{
    return &comm->place.options;
}

const int *comm_hosts(const struct comm *comm)
{
    return comm->place.hosts;
}

void comm_algorithm(const struct comm *comm, char text[COMM_ALGORITHM_BYTES])
{
    text[0] = '\0';
    if (comm->self_open && comm->backend->algorithm)
        comm->backend->algorithm(comm->self, text);
}

/* -------- closing ----------------------------------------------------------------------------- */

/*
 * After an error, buckets and a colocated server may still be active. A bucket ends, or is
 * abandoned in time. The server's waits are interrupted. The endpoints are cut before anything is
 * freed, so that nothing accesses freed memory.
 */
void comm_close(struct comm **out)
{
    struct comm *comm = *out;
    if (!comm)
        return;
    *out = NULL;
    /* After an error other ranks may never answer a bucket's wait. */
    if (comm->plan.running) {
        activity_fail(comm->place.world->activity);
        if (comm->place.endpoints[NODE_WORKER])
            transport_interrupt(comm->place.endpoints[NODE_WORKER]);
    }
    plan_end(&comm->plan);
    if (comm->server_thread.running) {
        transport_interrupt(comm->place.endpoints[NODE_SERVER]);
        thread_join(&comm->server_thread);
    }
    transport_stop(comm->place.endpoints);
    if (comm->self_open && comm->backend->close)
        comm->backend->close(comm->self);
    if (comm->server_open)
        comm->backend->server_close(comm->server);
    plan_fini(&comm->plan);
    comm_place_close(&comm->place);
    free(comm);
}

bool comm_updates_on_server(const struct comm *comm)
{
    return comm->backend->updates_on_server &&
           consistency_updates(&comm->place.options.consistency);
}

/* If servers update and no bucket is in flight, the averaging thread (if any) sleeps. Its lock has
 * made its writes visible to this thread. */

enum status comm_begin_steps(struct comm *comm, uint64_t step, uint64_t end)
{
    CHECK(comm->plan.running && comm_updates_on_server(comm));
    return comm_blame(comm, comm->backend->begin_steps(comm->self, step, end));
}

enum status comm_store(struct comm *comm, size_t bucket, size_t array, float *data)
{
    CHECK(comm->plan.running && comm_updates_on_server(comm));
    return comm_blame(comm, comm->backend->store(comm->self, bucket, array, data));
}

enum status comm_fetch(struct comm *comm, size_t bucket, size_t array, float *data)
{
    CHECK(comm->plan.running && comm_updates_on_server(comm));
    return comm_blame(comm, comm->backend->fetch(comm->self, bucket, array, data));
}

const struct comm_progress *comm_progress(const struct comm *comm)
{
    CHECK(comm_updates_on_server(comm));
    return comm->backend->progress(comm->self);
}

/* -------- the backend of a single process: nothing to average with ---------------------------- */

static enum status none_open(void **self, const struct backend_env *site)
{
    if (site->workers > 1)
        return FAIL(
            STATUS_USAGE,
            "--backend none is for one process, and %d were started; choose another backend "
            "to average over them",
            site->workers);
    *self = without_const(site); /* it stores only its site, and only reads it */
    return STATUS_OK;
}

/* A single worker's sum is its data, and its scale is 1: no work, on any device. */
static enum status none_start(void *self, size_t bucket, float *data)
{
    const struct backend_env *site = self;
    (void)bucket;
    (void)data;
    CHECK(site->layout->scale == 1.0f);
    return STATUS_OK;
}

const struct backend backend_none = {
    .name = "none",
    .summary = "one process, nothing to average with",
    .single_process = true,
    .obeys_reduce_order = true, /* of one summand */
    .counts_bytes = true,
    .device_memory = true,
    .graph_capturable = true,
    .cost = &cost_of_nothing,
    .open = none_open,
    .start = none_start,
};
