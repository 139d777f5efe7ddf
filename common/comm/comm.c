#include "common/comm/comm.h"

#include <stdlib.h>

#include "common/comm/codec.h"
#include "common/comm/comm_impl.h"

/* -------- opening ----------------------------------------------------------------------------- */

static struct backend_env site_of(const struct comm *comm, enum node_role role,
                                const struct topology *topology)
{
    int node = topology_node(topology, comm->world->rank, role);
    const struct group *group = comm->options.group;
    return (struct backend_env){
        .world = comm->world,
        .group = group,
        .transport = comm->endpoints[role],
        .topology = *topology,
        .workers = group ? group->size : topology->workers,
        .index = node < 0              ? -1
                 : role == NODE_SERVER ? node - topology->workers
                                       : group->rank,
        .hosts = comm->hosts,
        .options = &comm->options,
        .layout = &comm->plan.layout,
    };
}

/* The workers that average. A dedicated server belongs to none of their groups. */
static enum status choose_group(struct comm *comm, const struct topology *topology)
{
    bool worker = comm->world->rank < topology->workers;
    if (comm->options.group && topology->servers > 0) {
        log_error("comm: servers serve all workers, not a group of %d of them",
                  comm->options.group->size);
        return STATUS_UNSUPPORTED;
    }
    comm->everyone = comm->options.group;
    if (comm->options.group)
        return STATUS_OK;
    enum status status = world_group_new(&comm->own_group, comm->world, worker ? 0 : GROUP_NONE);
    comm->options.group = comm->own_group;
    return status;
}

static enum status find_hosts(struct comm *comm)
{
    const struct group *group = comm->everyone;
    int ranks = group ? group->size : comm->world->size;
    comm->hosts = calloc((size_t)ranks, sizeof *comm->hosts);
    if (!comm->hosts) {
        log_error("comm: no memory for %d ranks", ranks);
        return STATUS_NO_MEMORY;
    }
    for (int rank = 0; rank < ranks; rank++)
        comm->hosts[rank] = comm->world->host_numbers[group ? group->ranks[rank] : rank];
    return STATUS_OK;
}

static enum status open_transport(struct comm *comm, const struct topology *topology)
{
    const struct comm_options *options = &comm->options;
    size_t elements = options->bucket_counts_max > 0 ? options->bucket_counts_max : 1;
    struct transport_options transport = {
        .kind = options->transport,
        .topology = *topology,
        .payload_bytes_max = elements * sizeof(float), /* a whole bucket */
        /* Parameters are never rounded on their way. */
        .dtype = consistency_updates(&options->consistency) ? MESSAGE_ANY_DTYPE
                                                            : codec_dtype(options->compress),
        .subnet = options->subnet,
        .timeout_ms = options->timeout_ms,
        .stall_warning_ms = options->stall_warning_ms,
    };
    return transport_open(comm->endpoints, comm->world, &transport);
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
    comm->options = *options;
    activity_set(world->activity, ACTIVITY_MAIN, ACTIVITY_CONNECT, 0, 0);
    if (backend->unavailable) {
        log_error("--backend %s: %s", backend->name, backend->unavailable);
        status = STATUS_UNSUPPORTED;
        goto out;
    }
    TRY(topology_init(&topology, world->size, backend->uses_servers ? options->servers : 0,
                      options->placement));
    TRY(choose_group(comm, &topology));
    TRY(find_hosts(comm));
    if (backend->uses_transport)
        TRY(open_transport(comm, &topology));
    comm->worker_site = site_of(comm, NODE_WORKER, &topology);
    comm->server_site = site_of(comm, NODE_SERVER, &topology);
    if (comm->worker_site.index >= 0) {
        TRY(backend->open(&comm->self, &comm->worker_site));
        comm->self_open = true;
    }
    if (comm->server_site.index >= 0) {
        TRY(backend->server_open(&comm->server, &comm->server_site));
        comm->server_open = true;
    }
    *out = comm;
    return STATUS_OK;
out:
    comm_close(&comm);
    return status;
}

/* -------- what it is -------------------------------------------------------------------------- */

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
    return comm->plan.overlap != NULL;
}

const struct topology *comm_topology(const struct comm *comm)
{
    return &comm->worker_site.topology;
}

const struct group *comm_group(const struct comm *comm)
{
    return comm->options.group;
}

const int *comm_hosts(const struct comm *comm)
{
    return comm->hosts;
}

void comm_algorithm(const struct comm *comm, char text[COMM_ALGORITHM_BYTES])
{
    text[0] = '\0';
    if (comm->self_open && comm->backend->algorithm)
        comm->backend->algorithm(comm->self, text);
}

/* -------- counting ---------------------------------------------------------------------------- */

void comm_count_since_open(const struct comm *comm, struct comm_counters *counters)
{
    *counters = (struct comm_counters){0};
    if (comm->endpoints[NODE_WORKER])
        transport_counters(comm->endpoints[NODE_WORKER], &counters->worker);
    if (comm->endpoints[NODE_SERVER])
        transport_counters(comm->endpoints[NODE_SERVER], &counters->server);
}

static void subtract(struct transport_counters *counters, const struct transport_counters *before)
{
    counters->sent_bytes -= before->sent_bytes;
    counters->received_bytes -= before->received_bytes;
    counters->sent_messages -= before->sent_messages;
    counters->received_messages -= before->received_messages;
    counters->sent_header_bytes -= before->sent_header_bytes;
    counters->received_header_bytes -= before->received_header_bytes;
}

void comm_counters(const struct comm *comm, struct comm_counters *counters)
{
    comm_count_since_open(comm, counters);
    subtract(&counters->worker, &comm->plan.before.worker);
    subtract(&counters->server, &comm->plan.before.server);
}

void comm_interrupt(struct comm *comm)
{
    transport_interrupt(comm->endpoints[NODE_WORKER]);
    transport_interrupt(comm->endpoints[NODE_SERVER]);
}

/* -------- closing ----------------------------------------------------------------------------- */

/*
 * After an error buckets and a colocated server may be at work: the one is ended or given up in
 * time, the other is told to. Then the endpoints are cut, so that nothing reads or writes what is
 * freed after them.
 */
void comm_close(struct comm **out)
{
    struct comm *comm = *out;
    if (!comm)
        return;
    *out = NULL;
    /* After an error: others may not answer any more what a bucket waits for. */
    if (comm->plan.running) {
        activity_fail(comm->world->activity);
        if (comm->endpoints[NODE_WORKER])
            transport_interrupt(comm->endpoints[NODE_WORKER]);
    }
    overlap_free(&comm->plan.overlap);
    if (comm->server_thread.running) {
        transport_interrupt(comm->endpoints[NODE_SERVER]);
        thread_join(&comm->server_thread);
    }
    transport_stop(comm->endpoints);
    if (comm->self_open && comm->backend->close)
        comm->backend->close(comm->self);
    if (comm->server_open)
        comm->backend->server_close(comm->server);
    plan_fini(&comm->plan);
    transport_close(&comm->endpoints[NODE_WORKER]);
    transport_close(&comm->endpoints[NODE_SERVER]);
    world_group_free(&comm->own_group, comm->world);
    free(comm->hosts);
    free(comm);
}
