/*
 * The MPI transport. A message is two MPI messages of one tag each: the header, then the payload
 * (sent even when empty, so that a posted pair is always matched). MPI keeps messages of one sender
 * and tag in order, so headers and payloads pair up by themselves. Payloads are sent from and
 * received into the caller's memory; a borrowed slot has a staging buffer of its capacity.
 *
 * A process may host a worker and a server: the tag says which role sends and which receives.
 *
 * Waiting: MPI knows no sleep, so we test, and back off (yield, then short sleeps) while nothing
 * moves.
 */
#include "common/net/transport_impl.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/net/mpi_impl.h"

enum { PART_HEADER, PART_PAYLOAD };

/* Two MPI requests that complete together: a send, or a slot's receive. */
struct transfer {
    int pending;
    int received_bytes;          /* of the payload */
    struct transport_slot *slot; /* NULL: a send */
};

struct send {
    struct transfer transfer;
    uint8_t header[MESSAGE_HEADER_BYTES];
    struct send *next; /* in flight to this peer, oldest first; or in the pool of free ones */
};

struct transport_slot_impl {
    struct transfer transfer;
    uint8_t header[MESSAGE_HEADER_BYTES];
    void *staging; /* slot->capacity bytes, made at the first borrowed post */
};

struct mpi_peer {
    struct send *first, **last; /* in flight, oldest first */
    uint64_t completed;
};

/* One communicator for both endpoints of a process; freed with the last. Main thread only. */
struct mpi_shared {
    MPI_Comm comm;
    int users;
};

struct mpi_endpoint {
    struct transport base;
    struct mpi_shared *shared;
    MPI_Comm comm;          /* shared->comm */
    struct mpi_peer *peers; /* by node */
    struct send *pool;
    /* All that is in flight: parallel arrays of `active` entries, room for `size`. */
    MPI_Request *requests;
    struct transfer **transfers;
    int *parts;
    int *indices;
    MPI_Status *statuses;
    int active, size;
    struct backoff backoff;
};

static struct mpi_endpoint *endpoint_of(struct transport *transport)
{
    return (struct mpi_endpoint *)transport;
}

static int tag_of(enum node_role from, enum node_role to, int part)
{
    return ((int)from * 2 + (int)to) * 2 + part;
}

static enum status out_of_memory(void)
{
    log_error("MPI transport: out of memory");
    return STATUS_NO_MEMORY;
}

/* Doubles the room for requests; only while the number in flight still grows. */
static enum status reserve(struct mpi_endpoint *endpoint, int more)
{
    if (endpoint->active + more <= endpoint->size)
        return STATUS_OK;
    int size = endpoint->size ? 2 * endpoint->size : 64;
    size_t count = (size_t)size;
    MPI_Request *requests = realloc(endpoint->requests, count * sizeof *requests);
    if (requests)
        endpoint->requests = requests;
    struct transfer **transfers = realloc(endpoint->transfers, count * sizeof *transfers);
    if (transfers)
        endpoint->transfers = transfers;
    int *parts = realloc(endpoint->parts, count * sizeof *parts);
    if (parts)
        endpoint->parts = parts;
    int *indices = realloc(endpoint->indices, count * sizeof *indices);
    if (indices)
        endpoint->indices = indices;
    MPI_Status *statuses = realloc(endpoint->statuses, count * sizeof *statuses);
    if (statuses)
        endpoint->statuses = statuses;
    if (!requests || !transfers || !parts || !indices || !statuses)
        return out_of_memory();
    endpoint->size = size;
    return STATUS_OK;
}

static void track(struct mpi_endpoint *endpoint, MPI_Request request, struct transfer *transfer,
                  int part)
{
    endpoint->requests[endpoint->active] = request;
    endpoint->transfers[endpoint->active] = transfer;
    endpoint->parts[endpoint->active] = part;
    endpoint->active++;
}

/* ---- Sending ----------------------------------------------------------------------------------
 */

static enum status mpi_send(struct transport *transport, int node,
                            const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                            size_t length)
{
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    struct mpi_peer *peer = &endpoint->peers[node];
    enum status status = reserve(endpoint, 2);
    if (status != STATUS_OK)
        return status;
    struct send *send = endpoint->pool;
    if (send)
        endpoint->pool = send->next;
    else if (!(send = malloc(sizeof *send)))
        return out_of_memory();
    send->transfer = (struct transfer){.pending = 2};
    memcpy(send->header, header, MESSAGE_HEADER_BYTES);
    send->next = NULL;
    *peer->last = send;
    peer->last = &send->next;

    const struct topology *topology = &transport->topology;
    enum node_role to = topology_role(topology, node);
    int rank = topology_rank(topology, node);
    MPI_Request requests[2];
    CHECK(length <= INT_MAX);
    int code = MPI_Isend(send->header, MESSAGE_HEADER_BYTES, MPI_BYTE, rank,
                         tag_of(transport->role, to, PART_HEADER), endpoint->comm, &requests[0]);
    if (code != MPI_SUCCESS)
        return status_from_mpi(code, "MPI_Isend");
    track(endpoint, requests[0], &send->transfer, PART_HEADER);
    code = MPI_Isend(payload, (int)length, MPI_BYTE, rank,
                     tag_of(transport->role, to, PART_PAYLOAD), endpoint->comm, &requests[1]);
    if (code != MPI_SUCCESS)
        return status_from_mpi(code, "MPI_Isend");
    track(endpoint, requests[1], &send->transfer, PART_PAYLOAD);
    return STATUS_OK;
}

static uint64_t mpi_completed(struct transport *transport, int node)
{
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    struct mpi_peer *peer = &endpoint->peers[node];
    while (peer->first && peer->first->transfer.pending == 0) {
        struct send *done = peer->first;
        peer->first = done->next;
        if (!peer->first)
            peer->last = &peer->first;
        done->next = endpoint->pool;
        endpoint->pool = done;
        peer->completed++;
    }
    return peer->completed;
}

/* ---- Receiving --------------------------------------------------------------------------------
 */

static enum status mpi_slot_init(struct transport *transport, struct transport_slot *slot)
{
    (void)transport;
    slot->impl = calloc(1, sizeof *slot->impl);
    if (!slot->impl)
        return out_of_memory();
    return STATUS_OK;
}

static enum status mpi_post(struct transport *transport, struct transport_slot *slot)
{
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    struct transport_slot_impl *impl = slot->impl;
    enum status status = reserve(endpoint, 2);
    if (status != STATUS_OK)
        return status;
    void *buffer = slot->into;
    if (!buffer) {
        if (!impl->staging && slot->capacity && !(impl->staging = malloc(slot->capacity)))
            return out_of_memory();
        buffer = impl->staging;
    }
    impl->transfer = (struct transfer){.pending = 2, .slot = slot};
    const struct topology *topology = &transport->topology;
    enum node_role from = topology_role(topology, slot->peer);
    int rank = topology_rank(topology, slot->peer);
    CHECK(slot->capacity <= INT_MAX);
    MPI_Request requests[2];
    int code = MPI_Irecv(impl->header, MESSAGE_HEADER_BYTES, MPI_BYTE, rank,
                         tag_of(from, transport->role, PART_HEADER), endpoint->comm, &requests[0]);
    if (code != MPI_SUCCESS)
        return status_from_mpi(code, "MPI_Irecv");
    track(endpoint, requests[0], &impl->transfer, PART_HEADER);
    code = MPI_Irecv(buffer, (int)slot->capacity, MPI_BYTE, rank,
                     tag_of(from, transport->role, PART_PAYLOAD), endpoint->comm, &requests[1]);
    if (code != MPI_SUCCESS)
        return status_from_mpi(code, "MPI_Irecv");
    track(endpoint, requests[1], &impl->transfer, PART_PAYLOAD);
    return STATUS_OK;
}

/* Both parts of a slot's message are here. */
static enum status receive_done(struct mpi_endpoint *endpoint, struct transfer *transfer)
{
    struct transport_slot *slot = transfer->slot;
    struct message message;
    enum status status = transport_accept(&endpoint->base, slot->impl->header, MESSAGE_HEADER_BYTES,
                                          slot->peer, &message);
    if (status != STATUS_OK)
        return status;
    if (message.length != (uint64_t)transfer->received_bytes) {
        log_error("MPI: a payload of %d bytes came with a header that says %llu",
                  transfer->received_bytes, (unsigned long long)message.length);
        return STATUS_INPUT;
    }
    return transport_complete(&endpoint->base, slot, &message,
                              slot->into ? slot->into : slot->impl->staging);
}

/* Takes the completed requests (now MPI_REQUEST_NULL) out of the arrays, keeping the order. */
static void compact(struct mpi_endpoint *endpoint)
{
    int kept = 0;
    for (int i = 0; i < endpoint->active; i++) {
        if (endpoint->requests[i] == MPI_REQUEST_NULL)
            continue;
        endpoint->requests[kept] = endpoint->requests[i];
        endpoint->transfers[kept] = endpoint->transfers[i];
        endpoint->parts[kept] = endpoint->parts[i];
        kept++;
    }
    endpoint->active = kept;
}

/* A payload longer than its slot. Its header, if it is here, may say why. */
static enum status refuse_long(struct mpi_endpoint *endpoint, const struct transport_slot *slot)
{
    static const uint8_t none[MESSAGE_HEADER_BYTES];
    const uint8_t *header = slot->impl->header;
    enum status status = STATUS_OK;
    struct message message;
    if (memcmp(header, none, sizeof none) != 0)
        status = transport_accept(&endpoint->base, header, sizeof none, slot->peer, &message);
    return status != STATUS_OK ? status : transport_too_long(&endpoint->base, slot);
}

static enum status testsome_failed(struct mpi_endpoint *endpoint, int code, int count)
{
    enum status status = STATUS_OK;
    for (int i = 0; code == MPI_ERR_IN_STATUS && i < count && status == STATUS_OK; i++) {
        const struct transport_slot *slot = endpoint->transfers[endpoint->indices[i]]->slot;
        int class = MPI_SUCCESS;
        MPI_Error_class(endpoint->statuses[i].MPI_ERROR, &class);
        if (class == MPI_ERR_TRUNCATE && slot)
            status = refuse_long(endpoint, slot);
        else
            status = status_from_mpi(endpoint->statuses[i].MPI_ERROR, "MPI_Testsome");
    }
    compact(endpoint);
    return status == STATUS_OK ? status_from_mpi(code, "MPI_Testsome") : status;
}

static enum status mpi_progress(struct transport *transport, int64_t wait_ns, bool for_sends,
                                bool *moved)
{
    (void)for_sends; /* a poll finds both */
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    int count = 0;
    *moved = false;
    if (endpoint->active > 0) {
        int code = MPI_Testsome(endpoint->active, endpoint->requests, &count, endpoint->indices,
                                endpoint->statuses);
        if (code != MPI_SUCCESS)
            return testsome_failed(endpoint, code, count);
    }
    if (count <= 0 || count == MPI_UNDEFINED) {
        if (wait_ns > 0)
            backoff_wait(&endpoint->backoff, world_crowded(transport->world));
        return STATUS_OK;
    }
    *moved = true;
    endpoint->backoff = (struct backoff){0};
    enum status status = STATUS_OK;
    for (int i = 0; i < count && status == STATUS_OK; i++) {
        int at = endpoint->indices[i];
        struct transfer *transfer = endpoint->transfers[at];
        if (transfer->slot && endpoint->parts[at] == PART_PAYLOAD)
            MPI_Get_count(&endpoint->statuses[i], MPI_BYTE, &transfer->received_bytes);
        if (--transfer->pending == 0 && transfer->slot)
            status = receive_done(endpoint, transfer);
    }
    compact(endpoint);
    return status;
}

/* ---- Opening and closing -----------------------------------------------------------------------
 */

/*
 * A slot that goes away while posted (a server's, after the last BYE): nothing will come for it.
 * MPI cannot cancel a receive whose message has begun to arrive; that happens only after an error,
 * when a peer stopped in the middle. Then MPI may yet write to the slot's memory, which has to
 * stay.
 */
static void mpi_slot_fini(struct transport *transport, struct transport_slot *slot)
{
    enum { CANCEL_TESTS = 100 };
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    bool written = false;
    for (int i = 0; i < endpoint->active; i++) {
        if (endpoint->transfers[i] != &slot->impl->transfer)
            continue;
        int done = 0;
        MPI_Cancel(&endpoint->requests[i]);
        for (int tests = 0; tests < CANCEL_TESTS && !done; tests++)
            MPI_Test(&endpoint->requests[i], &done, MPI_STATUS_IGNORE);
        written |= !done;
        endpoint->requests[i] = MPI_REQUEST_NULL;
    }
    compact(endpoint);
    if (written)
        return;
    free(slot->impl->staging);
    free(slot->impl);
}

static void free_sends(struct send *send)
{
    while (send) {
        struct send *next = send->next;
        free(send);
        send = next;
    }
}

static void shared_release(struct mpi_shared *shared)
{
    if (--shared->users > 0)
        return;
    if (shared->comm != MPI_COMM_NULL)
        MPI_Comm_free(&shared->comm);
    free(shared);
}

static void mpi_close(struct transport *transport)
{
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    /* A send still in flight (only after an error) keeps its header: MPI may yet read it. */
    for (uint32_t node = 0; endpoint->peers && node < transport->limits.nodes; node++)
        mpi_completed(transport, (int)node);
    free_sends(endpoint->pool);
    shared_release(endpoint->shared);
    free(endpoint->peers);
    free(endpoint->requests);
    free(endpoint->transfers);
    free(endpoint->parts);
    free(endpoint->indices);
    free(endpoint->statuses);
    transport_base_fini(transport);
    free(endpoint);
}

static const struct transport_ops mpi_ops = {
    .send = mpi_send,
    .completed = mpi_completed,
    .slot_init = mpi_slot_init,
    .slot_fini = mpi_slot_fini,
    .post = mpi_post,
    .progress = mpi_progress,
    .close = mpi_close,
};

static enum status open_endpoint(struct transport **out, struct world *world,
                                 const struct transport_options *options, enum node_role role,
                                 struct mpi_shared *shared)
{
    struct mpi_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint || !transport_base_init(&endpoint->base, &mpi_ops, world, options, role)) {
        free(endpoint);
        return STATUS_NO_MEMORY;
    }
    *out = &endpoint->base;
    endpoint->shared = shared;
    shared->users++;
    endpoint->comm = shared->comm;
    int nodes = topology_nodes(&options->topology);
    endpoint->peers = calloc((size_t)nodes, sizeof *endpoint->peers);
    if (!endpoint->peers)
        return out_of_memory();
    for (int node = 0; node < nodes; node++)
        endpoint->peers[node].last = &endpoint->peers[node].first;
    return STATUS_OK;
}

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
