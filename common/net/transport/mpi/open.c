/* Opening and closing the endpoints of the MPI transport. What moves over them: mpi.c. */
#include "common/net/transport/mpi/endpoint.h"

#include <stdlib.h>

#include "common/net/world_mpi.h"

static enum status out_of_memory(void)
{
    log_error("MPI transport: out of memory");
    return STATUS_NO_MEMORY;
}

static void shared_release(struct mpi_shared *shared)
{
    if (--shared->users > 0)
        return;
    if (shared->comm != MPI_COMM_NULL && !shared->abandoned)
        MPI_Comm_free(&shared->comm);
    free(shared);
}

void transport_mpi_close(struct transport *transport)
{
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    /* A send still in flight (only after an error) keeps its header: MPI may yet read it. */
    for (uint32_t node = 0; endpoint->peers && node < transport->limits.nodes; node++)
        transport->ops->completed(transport, (int)node);
    while (endpoint->pool) {
        struct send *next = endpoint->pool->next;
        free(endpoint->pool->copy);
        free(endpoint->pool);
        endpoint->pool = next;
    }
    (void)transport_mpi_free_told(endpoint);
    endpoint->shared->abandoned |= transport->failed;
    shared_release(endpoint->shared);
    free(endpoint->peers);
    requests_fini(&endpoint->requests);
    transport_base_fini(transport);
    free(endpoint);
}

static enum status open_endpoint(struct transport **out, struct world *world,
                                 const struct transport_options *options, enum node_role role,
                                 struct mpi_shared *shared)
{
    struct mpi_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint ||
        !transport_base_init(&endpoint->base, &transport_mpi_ops, world, options, role)) {
        free(endpoint);
        return STATUS_NO_MEMORY;
    }
    *out = &endpoint->base;
    endpoint->shared = shared;
    shared->users++;
    bool both = topology_node(&options->topology, world->rank, !role) >= 0;
    endpoint->crowded = world_crowded(world, 1 + both);
    int nodes = topology_nodes(&options->topology);
    endpoint->peers = calloc((size_t)nodes, sizeof *endpoint->peers);
    if (!endpoint->peers)
        return out_of_memory();
    for (int node = 0; node < nodes; node++)
        endpoint->peers[node].last = &endpoint->peers[node].first;
    return STATUS_OK;
}

const char *const transport_mpi_unavailable = NULL;

enum status transport_mpi_open(struct transport *endpoint[2], struct world *world,
                               const struct transport_options *options)
{
    enum status status = STATUS_OK;
    if (options->topology.servers > topology_spare(&options->topology) && !world->concurrent) {
        log_error("this MPI does not let two threads call it at once, which a colocated server "
                  "needs: use --transport zmq or --placement dedicated");
        return STATUS_UNSUPPORTED;
    }
    struct mpi_shared *shared = malloc(sizeof *shared);
    if (!shared)
        return out_of_memory();
    *shared = (struct mpi_shared){.comm = MPI_COMM_NULL, .users = 1 /* this function */};
    TRY(status_from_mpi(MPI_Comm_dup(world->impl->comm, &shared->comm), "MPI_Comm_dup"));
    MPI_Comm_set_errhandler(shared->comm, MPI_ERRORS_RETURN);
    for (int role = 0; role < 2; role++) {
        if (topology_node(&options->topology, world->rank, role) >= 0)
            TRY(open_endpoint(&endpoint[role], world, options, role, shared));
    }
out:
    shared_release(shared);
    return status;
}
