/*
 * The MPI transport. A message is two MPI messages of one tag each: the header, then the payload
 * (sent even when empty, so that a posted pair is always matched). MPI keeps messages of one sender
 * and tag in order, so headers and payloads pair up by themselves. Payloads are sent from and
 * received into the caller's memory; a borrowed slot has a staging buffer of its capacity.
 *
 * Embedded in a program that lives on after an error, the transport copies payloads at both ends.
 * MPI cannot take back a message that has begun. After an error it may still use the copies, and
 * they are never freed then. A payload's receive begins only when the header is the expected one,
 * because Open MPI 4.1 wrote beyond a buffer that was too short for the message. If another thread
 * calls MPI too, headers may complete in any order here, so the tag of a payload has its number.
 *
 * A process may host a worker and a server: the tag says which role sends and which receives.
 * Messages without a slot have a separate tag, and a wait probes for them every LOOK_MS.
 *
 * Waiting: MPI can only test or spin, so we test, and back off (yield, then sleep for a little)
 * while nothing moves. What is in flight: mpi_requests.c.
 *
 * Where the build has no MPI and does not define PSRING_HAVE_MPI, the same names say so: they are
 * after #else.
 */
#include "common/net/transport/transport_impl.h"

#ifdef PSRING_HAVE_MPI

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/net/transport/mpi_impl.h"
#include "common/net/world_impl.h"

enum mpi_part { PART_HEADER, PART_PAYLOAD };

enum {
    TAG_TOLD = 8,        /* beyond those of tag_of */
    TAG_PAYLOADS = 9,    /* embedded: the first tag of payloads, */
    PAYLOAD_TAGS = 4096, /* of which there are so many; MPI has tags up to 32767 */
};

struct transport_slot_impl {
    struct transfer transfer;
    uint8_t header[MESSAGE_HEADER_BYTES];
    bool awaits_header; /* embedded: and the payload's receive has not begun */
    void *staging;      /* slot->capacity bytes, made at the first borrowed post */
};

static int tag_of(enum node_role from, enum node_role to, enum mpi_part part)
{
    return ((int)from * 2 + (int)to) * 2 + part;
}

/* Of a payload; `number`: of the message, among those from one rank to the other. */
static int payload_tag(const struct transport *transport, enum node_role from, enum node_role to,
                       uint64_t number)
{
    return transport->embedded ? TAG_PAYLOADS + (int)(number % PAYLOAD_TAGS)
                               : tag_of(from, to, PART_PAYLOAD);
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
              "smaller --segment-bytes or more --servers, or --transport zmq",
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

static enum status copy_payload(struct send *send, const void *payload, size_t length)
{
    if (length > send->size) {
        free(send->copy);
        send->copy = malloc(length);
        send->size = send->copy ? length : 0;
        if (!send->copy)
            return out_of_memory();
    }
    if (length > 0)
        memcpy(send->copy, payload, length);
    return STATUS_OK;
}

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
    else if (!(send = calloc(1, sizeof *send)))
        return out_of_memory();
    send->transfer = (struct transfer){.pending = 2};
    if (transport->embedded) {
        status = copy_payload(send, payload, length);
        payload = send->copy;
        if (status != STATUS_OK) {
            free(send);
            return status;
        }
    }
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
                     payload_tag(transport, transport->role, to, transport->peers[node].sends),
                     comm, &request);
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

/* -------- without a slot ---------------------------------------------------------------------- */

static bool transport_mpi_free_told(struct mpi_endpoint *endpoint)
{
    struct mpi_told **link = &endpoint->told;
    while (*link) {
        struct mpi_told *told = *link;
        int left = 0;
        if (MPI_Test(&told->request, &left, MPI_STATUS_IGNORE) == MPI_SUCCESS && !left) {
            link = &told->next;
            continue;
        }
        *link = told->next;
        free(told);
    }
    return endpoint->told == NULL;
}

static enum status mpi_tell(struct transport *transport, int node,
                            const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                            size_t length)
{
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    (void)transport_mpi_free_told(endpoint);
    struct mpi_told *told = calloc(1, sizeof *told);
    if (!told)
        return out_of_memory();
    memcpy(told->bytes, header, MESSAGE_HEADER_BYTES);
    if (length > 0)
        memcpy(told->bytes + MESSAGE_HEADER_BYTES, payload, length);
    int code = MPI_Isend(told->bytes, (int)(MESSAGE_HEADER_BYTES + length), MPI_BYTE,
                         topology_rank(&transport->topology, node), TAG_TOLD,
                         endpoint->shared->comm, &told->request);
    if (code != MPI_SUCCESS) {
        free(told);
        return status_from_mpi(code, "MPI_Isend");
    }
    told->next = endpoint->told;
    endpoint->told = told;
    return STATUS_OK;
}

static enum status mpi_look(struct transport *transport)
{
    enum status status = STATUS_OK;
    MPI_Comm comm = endpoint_of(transport)->shared->comm;
    for (;;) {
        uint8_t bytes[MESSAGE_HEADER_BYTES + TRANSPORT_WORDS_BYTES];
        struct message message;
        MPI_Status about;
        int here = 0;
        TRY(status_from_mpi(MPI_Iprobe(MPI_ANY_SOURCE, TAG_TOLD, comm, &here, &about),
                            "MPI_Iprobe"));
        if (!here)
            break;
        TRY(status_from_mpi(MPI_Recv(bytes, (int)sizeof bytes, MPI_BYTE, about.MPI_SOURCE, TAG_TOLD,
                                     comm, MPI_STATUS_IGNORE),
                            "MPI_Recv"));
        int node = topology_node(&transport->topology, about.MPI_SOURCE, transport->role);
        TRY(transport_accept(transport, bytes, MESSAGE_HEADER_BYTES, node, &message));
        TRY(transport_hear(transport, &message, bytes + MESSAGE_HEADER_BYTES));
    }
out:
    return status;
}

/* A header that no receive was posted for. */
static enum status mpi_check_end(struct transport *transport)
{
    enum status status = STATUS_OK;
    MPI_Comm comm = endpoint_of(transport)->shared->comm;
    int tag = tag_of(transport->role, transport->role, PART_HEADER), here = 0;
    uint8_t header[MESSAGE_HEADER_BYTES];
    struct message message;
    MPI_Status about;
    TRY(status_from_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &here, &about), "MPI_Iprobe"));
    if (!here)
        goto out;
    TRY(status_from_mpi(MPI_Recv(header, MESSAGE_HEADER_BYTES, MPI_BYTE, about.MPI_SOURCE, tag,
                                 comm, MPI_STATUS_IGNORE),
                        "MPI_Recv"));
    int node = topology_node(&transport->topology, about.MPI_SOURCE, transport->role);
    TRY(transport_accept(transport, header, sizeof header, node, &message));
    status = transport_check_unread(transport, node, &message.call);
out:
    return status;
}

static void mpi_linger(struct transport *transport, int64_t deadline_ns)
{
    while (!transport_mpi_free_told(endpoint_of(transport)) && clock_now_ns() < deadline_ns)
        clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
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
    void *buffer = transport->embedded ? NULL : slot->into;
    if (!buffer) {
        if (!impl->staging && slot->capacity && !(impl->staging = malloc(slot->capacity)))
            return out_of_memory();
        buffer = impl->staging;
    }
    impl->transfer = (struct transfer){.pending = 2, .slot = slot};
    memset(impl->header, 0, sizeof impl->header); /* of the last message */
    const struct topology *topology = &transport->topology;
    enum node_role from = topology_role(topology, slot->peer);
    int rank = topology_rank(topology, slot->peer);
    MPI_Comm comm = endpoint->shared->comm;
    MPI_Request request;
    int code = MPI_Irecv(impl->header, MESSAGE_HEADER_BYTES, MPI_BYTE, rank,
                         tag_of(from, transport->role, PART_HEADER), comm, &request);
    TRY(begun(endpoint, code, request, &impl->transfer, "MPI_Irecv"));
    if (transport->embedded) {
        impl->transfer.pending = 1;
        impl->awaits_header = true;
        goto out;
    }
    code = MPI_Irecv(buffer, (int)slot->capacity, MPI_BYTE, rank,
                     payload_tag(transport, from, transport->role, slot->number), comm, &request);
    TRY(begun(endpoint, code, request, &impl->transfer, "MPI_Irecv"));
out:
    return status;
}

/* Embedded: a slot's header is here. */
static enum status receive_payload(struct mpi_endpoint *endpoint, struct transfer *transfer)
{
    enum status status;
    struct transport *transport = &endpoint->base;
    struct transport_slot *slot = transfer->slot;
    struct message message;
    MPI_Request request;
    TRY(transport_accept(transport, slot->impl->header, MESSAGE_HEADER_BYTES, slot->peer,
                         &message));
    TRY(transport_check_fit(transport, slot, &message));
    TRY(requests_reserve(&endpoint->requests, 1));
    enum node_role from = topology_role(&transport->topology, slot->peer);
    int code = MPI_Irecv(slot->impl->staging, (int)message.length, MPI_BYTE,
                         topology_rank(&transport->topology, slot->peer),
                         payload_tag(transport, from, transport->role, slot->number),
                         endpoint->shared->comm, &request);
    transfer->pending = 1;
    slot->impl->awaits_header = false;
    TRY(begun(endpoint, code, request, transfer, "MPI_Irecv"));
out:
    return status;
}

/* From the staging buffer to where the slot wants it, if it is what the slot expects. */
static enum status take_copy(struct mpi_endpoint *endpoint, struct transport_slot *slot,
                             const struct message *message)
{
    enum status status = transport_complete(&endpoint->base, slot, message, slot->into);
    if (status == STATUS_OK && message->length > 0)
        memcpy(slot->into, slot->impl->staging, (size_t)message->length);
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
    const void *payload = slot->into ? slot->into : slot->impl->staging;
    if (endpoint->base.embedded && slot->into)
        return take_copy(endpoint, slot, &message);
    return transport_complete(&endpoint->base, slot, &message, payload);
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
        if (--transfer->pending > 0 || !transfer->slot)
            continue;
        status = transfer->slot->impl->awaits_header ? receive_payload(endpoint, transfer)
                                                     : receive_done(endpoint, transfer);
    }
    requests_compact(&endpoint->requests);
    return status;
}

/* -------- opening and closing ------------------------------------------------------------------
 */

static void shared_release(struct mpi_shared *shared)
{
    if (--shared->users > 0)
        return;
    if (shared->comm != MPI_COMM_NULL && !shared->abandoned)
        MPI_Comm_free(&shared->comm);
    free(shared);
}

/* The operation close. */
static void transport_mpi_close(struct transport *transport)
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
    TRY(status_from_mpi(MPI_Comm_dup(world_mpi_comm(world), &shared->comm), "MPI_Comm_dup"));
    MPI_Comm_set_errhandler(shared->comm, MPI_ERRORS_RETURN);
    for (int role = 0; role < 2; role++) {
        if (topology_node(&options->topology, world->rank, role) >= 0)
            TRY(open_endpoint(&endpoint[role], world, options, role, shared));
    }
out:
    shared_release(shared);
    return status;
}

const struct transport_ops transport_mpi_ops = {
    .send = mpi_send,
    .completed = mpi_completed,
    .slot_init = mpi_slot_init,
    .slot_fini = mpi_slot_fini,
    .post = mpi_post,
    .progress = mpi_progress,
    .tell = mpi_tell,
    .look = mpi_look,
    .check_end = mpi_check_end,
    .linger = mpi_linger,
    .close = transport_mpi_close,
};

#else

const char *const transport_mpi_unavailable =
    "this build has no MPI; configure again without -DPSRING_MPI=OFF, or use --transport zmq";

enum status transport_mpi_open(struct transport *endpoint[2], struct world *world,
                               const struct transport_options *options)
{
    (void)endpoint;
    (void)world;
    (void)options;
    log_error("--transport mpi: %s", transport_mpi_unavailable);
    return STATUS_UNSUPPORTED;
}

#endif
