#include "common/comm/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/comm/codec.h"
#include "common/comm/overlap.h"
#include "common/comm/staging.h"
#include "common/obs/range.h"

/* What profilers call a bucket on its way, and its averaging. */
struct bucket_ranges {
    char name[32], allreduce[48];
    uint64_t open; /* between start and wait */
};

struct comm {
    const struct backend *backend;
    struct comm_options options; /* bucket_counts is our copy */
    size_t *bucket_counts;
    struct world *world;
    struct group *workers_group;
    struct transport *endpoints[2]; /* by enum node_role; NULL where this process hosts none */
    struct comm_site worker_site, server_site;
    void *self; /* the backend's worker side */
    bool self_open;
    bool *started; /* by bucket: between start and wait */
    struct bucket_ranges *ranges;
    struct overlap *overlap; /* NULL: comm_start does the work */
    struct staging *staging; /* NULL: buckets are averaged where they are */
    int64_t busy_ns;         /* without overlap */

    struct thread server_thread; /* colocated */
    enum status server_status;
};

static struct comm_site site_of(const struct comm *comm, enum node_role role,
                                const struct topology *topology)
{
    int node = topology_node(topology, comm->world->rank, role);
    return (struct comm_site){
        .world = comm->world,
        .workers_group = comm->workers_group,
        .transport = comm->endpoints[role],
        .topology = *topology,
        .index = node < 0              ? -1
                 : role == NODE_SERVER ? node - topology->workers
                                       : node,
        .options = &comm->options,
    };
}

/* The longest payload that can be legal: a whole bucket. */
static size_t payload_bytes_max(const struct comm_options *options)
{
    size_t most = 1;
    for (size_t b = 0; b < options->buckets; b++) {
        if (options->bucket_counts[b] > most)
            most = options->bucket_counts[b];
    }
    return most * sizeof(float);
}

static void *run_server(void *argument)
{
    struct comm *comm = argument;
    comm->server_status = comm->backend->serve(&comm->server_site);
    /* Its worker would wait for an answer until the time-out, and all others with it. The reason
     * has been logged. */
    if (comm->server_status != STATUS_OK)
        world_abort(comm->world, 1);
    return NULL;
}

static enum status copy_layout(struct comm *comm, const struct comm_options *options)
{
    comm->options = *options;
    comm->bucket_counts = calloc(options->buckets + 1, sizeof *comm->bucket_counts);
    comm->started = calloc(options->buckets + 1, sizeof *comm->started);
    comm->ranges = calloc(options->buckets + 1, sizeof *comm->ranges);
    if (!comm->bucket_counts || !comm->started || !comm->ranges) {
        log_error("comm: no memory for %zu buckets", options->buckets);
        return STATUS_NO_MEMORY;
    }
    memcpy(comm->bucket_counts, options->bucket_counts,
           options->buckets * sizeof *comm->bucket_counts);
    comm->options.bucket_counts = comm->bucket_counts;
    for (size_t b = 0; b < options->buckets; b++) {
        struct bucket_ranges *ranges = &comm->ranges[b];
        snprintf(ranges->name, sizeof ranges->name, "bucket %zu", b);
        snprintf(ranges->allreduce, sizeof ranges->allreduce, "bucket %zu allreduce", b);
    }
    /* Backends plan in float32, whatever travels. */
    comm->options.segment_bytes = compress_float_bytes(options->compress, options->segment_bytes);
    return STATUS_OK;
}

/* The averaging thread and the caller may both be inside MPI at a time, unless the backend talks
 * over ZeroMQ. An MPI that allows one thread only (a simulator's) averages in comm_start instead.
 */
static bool can_overlap(const struct comm *comm)
{
    bool uses_mpi = !comm->backend->uses_transport || comm->options.transport == TRANSPORT_MPI;
    return comm->options.overlap && !comm->backend->device_memory &&
           (!uses_mpi || comm->world->concurrent);
}

static enum status average(void *context, size_t bucket, float *data)
{
    struct comm *comm = context;
    enum status status = STATUS_OK;
    if (comm->staging)
        status = staging_arrive(comm->staging, bucket);
    if (status != STATUS_OK)
        return status;
    range_begin(comm->ranges[bucket].allreduce);
    status = comm->backend->allreduce(comm->self, bucket, data);
    range_end();
    return status;
}

/* The backend averages device memory: the host only asks for it. */
static enum status enqueue(struct comm *comm, size_t bucket, float *data)
{
    range_begin(comm->ranges[bucket].allreduce);
    enum status status = comm->backend->start(comm->self, bucket, data);
    range_end();
    return status;
}

static bool needs_staging(const struct comm *comm)
{
    const struct device *device = comm->options.device;
    return device && !device_memory_is_host(device) && !comm->backend->device_memory;
}

/* Through host memory, unless the backend's library averages the device's own. */
static enum status open_staging(struct comm *comm, const struct comm_options *options)
{
    const struct backend *backend = comm->backend;
    if (!backend->takes_device_memory || !backend->takes_device_memory())
        return staging_new(&comm->staging, options->device, comm->bucket_counts, options->buckets);
    comm->options.scale = 1.0f;
    if (comm->worker_site.index == 0)
        log_info("--backend %s: the GPU's memory is averaged where it is", backend->name);
    return staging_new_in_place(&comm->staging, options->device, comm->bucket_counts,
                                options->buckets, options->scale);
}

enum status comm_open(struct comm **out, struct world *world, const struct backend *backend,
                      const struct comm_options *options)
{
    enum status status = STATUS_OK;
    struct topology topology;
    *out = NULL;
    struct comm *comm = calloc(1, sizeof *comm);
    if (!comm) {
        log_error("comm: out of memory");
        return STATUS_NO_MEMORY;
    }
    comm->backend = backend;
    comm->world = world;
    if (backend->unavailable) {
        log_error("--backend %s: %s", backend->name, backend->unavailable);
        status = STATUS_UNSUPPORTED;
        goto out;
    }
    TRY(copy_layout(comm, options));
    TRY(topology_init(&topology, world->size, backend->uses_servers ? options->servers : 0,
                      options->placement));
    TRY(world_group_new(&comm->workers_group, world,
                        world->rank < topology.workers ? 0 : GROUP_NONE));
    if (backend->uses_transport) {
        struct transport_options transport = {
            .kind = options->transport,
            .topology = topology,
            .payload_bytes_max = payload_bytes_max(options),
            .dtype = codec_dtype(options->compress),
            .subnet = options->subnet,
            .timeout_ms = options->timeout_ms,
        };
        TRY(transport_open(comm->endpoints, world, &transport));
    }
    comm->worker_site = site_of(comm, NODE_WORKER, &topology);
    comm->server_site = site_of(comm, NODE_SERVER, &topology);
    if (comm->worker_site.index >= 0) {
        TRY(backend->open(&comm->self, &comm->worker_site));
        comm->self_open = true;
        if (comm->server_site.index >= 0)
            TRY(thread_start(&comm->server_thread, "psring-server", run_server, comm));
        if (needs_staging(comm))
            TRY(open_staging(comm, options));
        if (can_overlap(comm))
            TRY(overlap_new(&comm->overlap, average, comm, options->buckets,
                            options->bucket_order));
    }
    /* Until here ranks may be far apart: the first one reads the data for all, say. */
    world->timeout_ms = options->timeout_ms;
    *out = comm;
    return STATUS_OK;
out:
    comm_close(&comm);
    return status;
}

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
    return comm->worker_site.topology.workers;
}

bool comm_updates_on_server(const struct comm *comm)
{
    return comm->backend->updates_on_server;
}

bool comm_overlaps(const struct comm *comm)
{
    return comm->overlap != NULL;
}

const struct group *comm_group(const struct comm *comm)
{
    return comm->workers_group;
}

enum status comm_serve(struct comm *comm)
{
    CHECK(comm_is_server(comm));
    return comm->backend->serve(&comm->server_site);
}

enum status comm_start(struct comm *comm, size_t bucket, float *data)
{
    CHECK(bucket < comm->options.buckets && !comm->started[bucket]);
    comm->started[bucket] = true;
    comm->ranges[bucket].open = range_open(comm->ranges[bucket].name);
    if (comm->backend->device_memory)
        return enqueue(comm, bucket, data);
    if (comm->staging)
        data = staging_down(comm->staging, bucket, data);
    if (comm->overlap) {
        overlap_start(comm->overlap, bucket, data);
        return STATUS_OK;
    }
    int64_t start_ns = clock_now_ns();
    enum status status = average(comm, bucket, data);
    comm->busy_ns += clock_now_ns() - start_ns;
    return status;
}

enum status comm_wait(struct comm *comm, size_t bucket)
{
    CHECK(bucket < comm->options.buckets && comm->started[bucket]);
    comm->started[bucket] = false;
    enum status status = STATUS_OK;
    if (comm->backend->device_memory)
        status = comm->backend->wait(comm->self, bucket);
    else if (comm->overlap)
        status = overlap_wait(comm->overlap, bucket);
    if (status == STATUS_OK && comm->staging)
        staging_up(comm->staging, bucket);
    range_close(comm->ranges[bucket].open);
    return status;
}

int64_t comm_busy_ns(const struct comm *comm)
{
    int64_t busy_ns = comm->overlap ? overlap_busy_ns(comm->overlap) : comm->busy_ns;
    return busy_ns - (comm->staging ? staging_waited_ns(comm->staging) : 0);
}

enum status comm_broadcast(struct comm *comm, float *data, size_t count)
{
    return world_broadcast(comm->world, comm->workers_group, data, count * sizeof *data);
}

enum status comm_barrier(struct comm *comm)
{
    return world_barrier(comm->world, comm->workers_group);
}

enum status comm_finish(struct comm *comm)
{
    enum status status = STATUS_OK;
    overlap_free(&comm->overlap); /* from here on, this thread owns the transport */
    if (comm->backend->finish)
        status = comm->backend->finish(comm->self);
    if (status == STATUS_OK && comm->server_thread.running) {
        thread_join(&comm->server_thread);
        status = comm->server_status;
    }
    return status;
}

void comm_counters(const struct comm *comm, struct comm_counters *counters)
{
    *counters = (struct comm_counters){0};
    if (comm->endpoints[NODE_WORKER])
        transport_counters(comm->endpoints[NODE_WORKER], &counters->worker);
    if (comm->endpoints[NODE_SERVER])
        transport_counters(comm->endpoints[NODE_SERVER], &counters->server);
}

void comm_algorithm(const struct comm *comm, char text[COMM_ALGORITHM_BYTES])
{
    text[0] = '\0';
    if (comm->self_open && comm->backend->algorithm)
        comm->backend->algorithm(comm->self, text);
}

void comm_close(struct comm **out)
{
    struct comm *comm = *out;
    if (!comm)
        return;
    *out = NULL;
    /* After an error it may be in the middle of a bucket, which it ends or gives up in time. */
    overlap_free(&comm->overlap);
    /* A colocated server that still runs uses what would be freed here. Only after an error, and
     * the process is about to end. */
    if (comm->server_thread.running)
        return;
    if (comm->self_open)
        comm->backend->close(comm->self);
    staging_free(&comm->staging);
    transport_close(&comm->endpoints[NODE_WORKER]);
    transport_close(&comm->endpoints[NODE_SERVER]);
    world_group_free(&comm->workers_group, comm->world);
    free(comm->bucket_counts);
    free(comm->started);
    free(comm->ranges);
    free(comm);
}
