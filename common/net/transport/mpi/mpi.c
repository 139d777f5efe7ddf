/*
 * The MPI transport. A message is two MPI messages of one tag each: the header, then the payload
 * (sent even when empty, so that a posted pair is always matched). MPI keeps messages of one sender
 * and tag in order, so headers and payloads pair up by themselves. Payloads are sent from and
 * received into the caller's memory; a borrowed slot has a staging buffer of its capacity.
 *
 * A process may host a worker and a server: the tag says which role sends and which receives.
 *
 * Waiting: MPI can only test or spin, so we test, and back off (yield, then sleep for a little)
 * while nothing moves. What is in flight: requests.c. Opening: open.c.
 */
#include "common/net/transport/mpi/endpoint.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/world/mpi.h"

enum mpi_part { PART_HEADER, PART_PAYLOAD };

struct transport_slot_impl {
    struct transfer transfer;
    uint8_t header[MESSAGE_HEADER_BYTES];
    void *staging; /* slot->capacity bytes, made at the first borrowed post */
};

static int tag_of(enum node_role from, enum node_role to, enum mpi_part part)
{
    return ((int)from * 2 + (int)to) * 2 + part;
}

static enum status out_of_memory(void)
{
    log_error("MPI transport: out of memory");
    return STATUS_NO_MEMORY;
}

/* MPI counts in int. */
static enum status check_length(size_t length)
{
    if (length <= INT_MAX)
        return STATUS_OK;
    log_error("--transport mpi: a message of up to %zu bytes, but MPI takes at most %d; use a "
              "smaller --segment or more --servers, or --transport zmq",
              length, INT_MAX);
    return STATUS_UNSUPPORTED;
}

/* One of the two MPI messages of `transfer` is under way, if `code` says so. */
static enum status begun(struct mpi_endpoint *endpoint, int code, MPI_Request request,
                         struct transfer *transfer, const char *what)
{
    if (code == MPI_SUCCESS)
        requests_add(&endpoint->requests, request, transfer);
    return status_from_mpi(code, what);
}

/* -------- sending ----------------------------------------------------------------------------- */

static enum status mpi_send(struct transport *transport, int node,
                            const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                            size_t length)
{
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    struct mpi_peer *peer = &endpoint->peers[node];
    enum status status = check_length(length);
    if (status == STATUS_OK)
        status = requests_reserve(&endpoint->requests, 2);
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
    MPI_Comm comm = endpoint->shared->comm;
    MPI_Request request;
    int code = MPI_Isend(send->header, MESSAGE_HEADER_BYTES, MPI_BYTE, rank,
                         tag_of(transport->role, to, PART_HEADER), comm, &request);
    TRY(begun(endpoint, code, request, &send->transfer, "MPI_Isend"));
    code = MPI_Isend(payload, (int)length, MPI_BYTE, rank,
                     tag_of(transport->role, to, PART_PAYLOAD), comm, &request);
    TRY(begun(endpoint, code, request, &send->transfer, "MPI_Isend"));
out:
    return status;
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

/* -------- receiving --------------------------------------------------------------------------- */

static enum status mpi_slot_init(struct transport *transport, struct transport_slot *slot)
{
    (void)transport;
    enum status status = check_length(slot->capacity);
    if (status != STATUS_OK)
        return status;
    slot->impl = calloc(1, sizeof *slot->impl);
    return slot->impl ? STATUS_OK : out_of_memory();
}

/*
 * A slot that goes away while posted (a server's, after the last BYE): nothing will come for it.
 * Only after an error, when a peer stopped in the middle of a message, MPI may yet write to the
 * slot's memory, which then has to stay.
 */
static void mpi_slot_fini(struct transport *transport, struct transport_slot *slot)
{
    if (!requests_cancel(&endpoint_of(transport)->requests, &slot->impl->transfer))
        return;
    free(slot->impl->staging);
    free(slot->impl);
}

static enum status mpi_post(struct transport *transport, struct transport_slot *slot)
{
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    struct transport_slot_impl *impl = slot->impl;
    enum status status = requests_reserve(&endpoint->requests, 2);
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
    MPI_Comm comm = endpoint->shared->comm;
    MPI_Request request;
    int code = MPI_Irecv(impl->header, MESSAGE_HEADER_BYTES, MPI_BYTE, rank,
                         tag_of(from, transport->role, PART_HEADER), comm, &request);
    TRY(begun(endpoint, code, request, &impl->transfer, "MPI_Irecv"));
    code = MPI_Irecv(buffer, (int)slot->capacity, MPI_BYTE, rank,
                     tag_of(from, transport->role, PART_PAYLOAD), comm, &request);
    TRY(begun(endpoint, code, request, &impl->transfer, "MPI_Irecv"));
out:
    return status;
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
    int64_t payload_bytes = transfer->received_bytes - MESSAGE_HEADER_BYTES;
    if (payload_bytes < 0 || message.length != (uint64_t)payload_bytes) {
        log_error("MPI: a payload of %lld bytes came with a header that says %llu",
                  (long long)payload_bytes, (unsigned long long)message.length);
        return STATUS_INPUT;
    }
    return transport_complete(&endpoint->base, slot, &message,
                              slot->into ? slot->into : slot->impl->staging);
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
        const struct transport_slot *slot =
            endpoint->requests.transfers[endpoint->requests.indices[i]]->slot;
        int class = MPI_SUCCESS;
        MPI_Error_class(endpoint->requests.statuses[i].MPI_ERROR, &class);
        if (class == MPI_ERR_TRUNCATE && slot)
            status = refuse_long(endpoint, slot);
        else
            status = status_from_mpi(endpoint->requests.statuses[i].MPI_ERROR, "MPI_Testsome");
    }
    requests_compact(&endpoint->requests);
    return status == STATUS_OK ? status_from_mpi(code, "MPI_Testsome") : status;
}

static enum status mpi_progress(struct transport *transport, int64_t wait_ns, bool for_sends,
                                bool *moved)
{
    (void)for_sends; /* a poll finds both */
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    int count = 0;
    *moved = false;
    if (endpoint->requests.active > 0) {
        int code = MPI_Testsome(endpoint->requests.active, endpoint->requests.requests, &count,
                                endpoint->requests.indices, endpoint->requests.statuses);
        if (code != MPI_SUCCESS)
            return testsome_failed(endpoint, code, count);
    }
    if (count <= 0 || count == MPI_UNDEFINED) {
        if (wait_ns > 0)
            backoff_wait(&endpoint->backoff, endpoint->crowded);
        return STATUS_OK;
    }
    *moved = true;
    endpoint->backoff = (struct backoff){0};
    enum status status = STATUS_OK;
    for (int i = 0; i < count && status == STATUS_OK; i++) {
        struct transfer *transfer = endpoint->requests.transfers[endpoint->requests.indices[i]];
        int bytes = 0;
        if (transfer->slot)
            MPI_Get_count(&endpoint->requests.statuses[i], MPI_BYTE, &bytes);
        transfer->received_bytes += bytes;
        if (--transfer->pending == 0 && transfer->slot)
            status = receive_done(endpoint, transfer);
    }
    requests_compact(&endpoint->requests);
    return status;
}

const struct transport_ops transport_mpi_ops = {
    .send = mpi_send,
    .completed = mpi_completed,
    .slot_init = mpi_slot_init,
    .slot_fini = mpi_slot_fini,
    .post = mpi_post,
    .progress = mpi_progress,
    .close = transport_mpi_close,
};
