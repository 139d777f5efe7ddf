/*
 * The MPI transport. A message is two MPI messages with one tag each: the header, then the payload
 * (sent even if empty, so that a posted pair always matches). MPI keeps messages of one sender and
 * tag in order, so headers and payloads pair up. Payloads are sent from and received into the
 * caller's memory. A borrowed slot has a staging buffer of its capacity.
 *
 * Embedded in a program that continues after an error, the transport copies payloads at both ends.
 * MPI cannot cancel a message that has begun: after an error it may still use the copies, which are
 * then never freed. A payload's receive begins only after the expected header, because Open MPI 4.1
 * wrote beyond a buffer that was too short for the message. If another thread calls MPI too,
 * headers may complete in any order here. The tag of a payload therefore contains its number.
 *
 * A process may host a worker and a server: the tag gives the roles of sender and receiver.
 * Messages without a slot have a separate tag, and a wait probes for them every LOOK_MS.
 *
 * Waiting: MPI can only test or spin, so a wait tests, and backs off (yields, then sleeps briefly)
 * while nothing moves.
 *
 * A build without MPI does not define PSRING_HAVE_MPI. It has only the table after #else.
 */
#include "common/net/transport/transport_impl.h"

#ifdef PSRING_HAVE_MPI

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "common/net/world_impl.h"

enum mpi_part { PART_HEADER, PART_PAYLOAD };

enum {
    TAG_NOTICE = 8,      /* greater than all of tag_of */
    TAG_PAYLOADS = 9,    /* embedded: the first tag of payloads, */
    PAYLOAD_TAGS = 4096, /* and their number; MPI has tags up to 32767 */
};

/* Two MPI requests that complete together: a send, or a slot's receive. */
struct transfer {
    int pending;
    int64_t received_bytes;      /* header and payload */
    struct transport_slot *slot; /* NULL: a send */
};

struct transport_slot_impl {
    struct transfer transfer;
    uint8_t header[MESSAGE_HEADER_BYTES];
    bool awaits_header; /* embedded: the payload's receive has not begun */
    void *staging;      /* slot->capacity bytes, allocated at the first borrowed post */
};

struct send {
    struct transfer transfer;
    uint8_t header[MESSAGE_HEADER_BYTES];
    void *copy; /* embedded: copy of the payload; `size` bytes */
    size_t size;
    struct send *next; /* in flight to this peer, oldest first; or free, in the pool */
};

/* A message without a slot: header and payload in one. */
struct notice {
    MPI_Request request;
    struct notice *next;
    uint8_t bytes[MESSAGE_HEADER_BYTES + TRANSPORT_WORDS_BYTES];
};

/* All requests in flight: parallel arrays of `active` entries, room for `size`, in order of
 * starting. */
struct requests {
    MPI_Request *requests;
    struct transfer **transfers;
    int *indices; /* results of MPI_Testsome, with statuses */
    MPI_Status *statuses;
    int active, size;
};

struct mpi_peer {
    struct send *first, **last; /* in flight, oldest first */
    uint64_t completed;
};

/* One communicator for both endpoints of a process, freed with the last. Main thread only. */
struct mpi_shared {
    MPI_Comm comm;
    int users;
    bool abandoned; /* messages are in flight after an error: the communicator stays */
};

struct mpi_endpoint {
    struct transport base;
    struct mpi_shared *shared;
    struct send *pool;
    struct notice *notices; /* may still be in flight */
    struct requests requests;
    struct backoff backoff;
    struct mpi_peer peers[]; /* by node */
};

static struct mpi_endpoint *endpoint_of(struct transport *transport)
{
    return (struct mpi_endpoint *)transport;
}

static int tag_of(enum node_role from, enum node_role to, enum mpi_part part)
{
    return ((int)from * 2 + (int)to) * 2 + part;
}

/* The tag of a payload. `number`: its index among the messages from one rank to the other. */
static int payload_tag(const struct transport *transport, enum node_role from, enum node_role to,
                       uint64_t number)
{
    return transport->embedded ? TAG_PAYLOADS + (int)(number % PAYLOAD_TAGS)
                               : tag_of(from, to, PART_PAYLOAD);
}

static enum status out_of_memory(void)
{
    return FAIL(STATUS_NO_MEMORY, "MPI transport: out of memory");
}

/* MPI counts in int. */
static enum status check_length(size_t length)
{
    if (length <= INT_MAX)
        return STATUS_OK;
    return FAIL(STATUS_UNSUPPORTED,
                "--transport mpi: a message of up to %zu bytes, but MPI takes at most %d; use a "
                "smaller --segment-bytes or more --servers, or --transport zmq",
                length, INT_MAX);
}

/* -------- requests ---------------------------------------------------------------------------- */

/* Returns the array with room for `count`. Without memory returns it unchanged, and sets *good to
 * false. */
static void *grown(void *array, int count, size_t element_bytes, bool *good)
{
    void *resized = realloc(array, (size_t)count * element_bytes);
    *good &= resized != NULL;
    /* cppcheck-suppress memleak ; the caller owns it */
    return resized ? resized : array;
}

/* Makes room for `more` requests. Allocates only while the number in flight still grows. */
static enum status requests_reserve(struct requests *requests, int more)
{
    enum { SIZE_FIRST = 64 };
    if (requests->active + more <= requests->size)
        return STATUS_OK;
    int size = requests->size ? 2 * requests->size : SIZE_FIRST;
    bool good = true;
    requests->requests = grown(requests->requests, size, sizeof *requests->requests, &good);
    requests->transfers = grown(requests->transfers, size, sizeof *requests->transfers, &good);
    requests->indices = grown(requests->indices, size, sizeof *requests->indices, &good);
    requests->statuses = grown(requests->statuses, size, sizeof *requests->statuses, &good);
    if (!good)
        return FAIL(STATUS_NO_MEMORY, "MPI transport: no memory for %d messages", size);
    requests->size = size;
    return STATUS_OK;
}

/* Removes completed requests (now MPI_REQUEST_NULL) and keeps the order. */
static void requests_compact(struct requests *requests)
{
    int kept = 0;
    for (int i = 0; i < requests->active; i++) {
        if (requests->requests[i] == MPI_REQUEST_NULL)
            continue;
        requests->requests[kept] = requests->requests[i];
        requests->transfers[kept] = requests->transfers[i];
        kept++;
    }
    requests->active = kept;
}

/* Removes the requests of `transfer`, a receive. False: MPI may still write to its memory, because
 * it cannot cancel a receive whose message has begun to arrive. */
static bool requests_cancel(struct requests *requests, const struct transfer *transfer)
{
    enum { CANCEL_TESTS = 100 };
    bool written = false;
    for (int i = 0; i < requests->active; i++) {
        if (requests->transfers[i] != transfer)
            continue;
        int done = 0;
        MPI_Cancel(&requests->requests[i]);
        for (int tests = 0; tests < CANCEL_TESTS && !done; tests++)
            MPI_Test(&requests->requests[i], &done, MPI_STATUS_IGNORE);
        written |= !done;
        requests->requests[i] = MPI_REQUEST_NULL;
    }
    requests_compact(requests);
    return !written;
}

/* Begins one of the two MPI messages of `transfer`, with `node`. requests_reserve has made room. */
static enum status begin(struct mpi_endpoint *endpoint, struct transfer *transfer, int node,
                         int tag, void *bytes, size_t length)
{
    struct requests *requests = &endpoint->requests;
    int rank = topology_rank(&endpoint->base.topology, node);
    MPI_Request *request = &requests->requests[requests->active];
    MPI_Comm comm = endpoint->shared->comm;
    int code = transfer->slot ? MPI_Irecv(bytes, (int)length, MPI_BYTE, rank, tag, comm, request)
                              : MPI_Isend(bytes, (int)length, MPI_BYTE, rank, tag, comm, request);
    if (code == MPI_SUCCESS)
        requests->transfers[requests->active++] = transfer;
    return status_from_mpi(code, transfer->slot ? "MPI_Irecv" : "MPI_Isend");
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
    enum status status;
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    struct mpi_peer *peer = &endpoint->peers[node];
    TRY(check_length(length));
    TRY(requests_reserve(&endpoint->requests, 2));
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

    enum node_role from = transport->role, to = topology_role(&transport->topology, node);
    TRY(begin(endpoint, &send->transfer, node, tag_of(from, to, PART_HEADER), send->header,
              MESSAGE_HEADER_BYTES));
    TRY(begin(endpoint, &send->transfer, node,
              payload_tag(transport, from, to, transport->peers[node].sends),
              without_const(payload), length));
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

/* Frees notices that have left. True: all have. */
static bool free_notices(struct mpi_endpoint *endpoint)
{
    struct notice **link = &endpoint->notices;
    while (*link) {
        struct notice *notice = *link;
        int left = 0;
        if (MPI_Test(&notice->request, &left, MPI_STATUS_IGNORE) == MPI_SUCCESS && !left) {
            link = &notice->next;
            continue;
        }
        *link = notice->next;
        free(notice);
    }
    return endpoint->notices == NULL;
}

static enum status mpi_notify(struct transport *transport, int node,
                              const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                              size_t length)
{
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    (void)free_notices(endpoint);
    struct notice *notice = calloc(1, sizeof *notice);
    if (!notice)
        return out_of_memory();
    memcpy(notice->bytes, header, MESSAGE_HEADER_BYTES);
    if (length > 0)
        memcpy(notice->bytes + MESSAGE_HEADER_BYTES, payload, length);
    int code = MPI_Isend(notice->bytes, (int)(MESSAGE_HEADER_BYTES + length), MPI_BYTE,
                         topology_rank(&transport->topology, node), TAG_NOTICE,
                         endpoint->shared->comm, &notice->request);
    if (code != MPI_SUCCESS) {
        free(notice);
        return status_from_mpi(code, "MPI_Isend");
    }
    notice->next = endpoint->notices;
    endpoint->notices = notice;
    return STATUS_OK;
}

/* Takes a message with this tag and without a posted receive: up to `size` bytes. *here: there was
 * one. */
static enum status take_unposted(struct transport *transport, int tag, uint8_t *bytes, size_t size,
                                 struct message *message, bool *here)
{
    enum status status;
    MPI_Comm comm = endpoint_of(transport)->shared->comm;
    MPI_Status about;
    int found = 0, count = 0;
    TRY(status_from_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &found, &about), "MPI_Iprobe"));
    *here = found;
    if (!found)
        goto out;
    TRY(status_from_mpi(
        MPI_Recv(bytes, (int)size, MPI_BYTE, about.MPI_SOURCE, tag, comm, MPI_STATUS_IGNORE),
        "MPI_Recv"));
    TRY(status_from_mpi(MPI_Get_count(&about, MPI_BYTE, &count), "MPI_Get_count"));
    int node = topology_node(&transport->topology, about.MPI_SOURCE, transport->role);
    TRY(transport_accept(transport, bytes, size_smaller((size_t)count, MESSAGE_HEADER_BYTES), node,
                         message));
    bool notice = tag == TAG_NOTICE;
    if (notice != transport_comes_without_slot(message) ||
        (size_t)count != MESSAGE_HEADER_BYTES + (notice ? message->length : 0))
        TRY(FAIL(STATUS_PROTOCOL,
                 "%s sent a message of %d bytes that was refused: its header says another length "
                 "or kind; does every host run the same psring?",
                 transport_node_text(transport, node).text, count));
out:
    return status;
}

static enum status mpi_look(struct transport *transport)
{
    enum status status;
    for (bool here = true;;) {
        uint8_t bytes[MESSAGE_HEADER_BYTES + TRANSPORT_WORDS_BYTES];
        struct message message;
        TRY(take_unposted(transport, TAG_NOTICE, bytes, sizeof bytes, &message, &here));
        if (!here)
            break;
        TRY(transport_deliver(transport, &message,
                              (struct payload){.data = bytes + MESSAGE_HEADER_BYTES}));
    }
out:
    return status;
}

/* Looks for a header without a posted receive. */
static enum status mpi_check_end(struct transport *transport)
{
    enum status status;
    bool here;
    uint8_t header[MESSAGE_HEADER_BYTES];
    struct message message;
    TRY(take_unposted(transport, tag_of(transport->role, transport->role, PART_HEADER), header,
                      sizeof header, &message, &here));
    if (here)
        TRY(transport_check_unread(transport, (int)message.sender, &message.call));
out:
    return status;
}

/* Embedded, a send has its own copy of the payload, so only notices may still have to leave. */
static bool mpi_is_empty(struct transport *transport)
{
    return free_notices(endpoint_of(transport));
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
 * A server's slot may be freed while posted, after the last BYE: no message will arrive in it.
 * After an error a peer may have stopped in the middle of a message. MPI may then still write to
 * the slot's memory, which is therefore not freed.
 */
static void mpi_slot_fini(struct transport *transport, struct transport_slot *slot)
{
    if (!slot->impl || !requests_cancel(&endpoint_of(transport)->requests, &slot->impl->transfer))
        return;
    free(slot->impl->staging);
    free(slot->impl);
}

static enum status mpi_post(struct transport *transport, struct transport_slot *slot)
{
    enum status status;
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    struct transport_slot_impl *impl = slot->impl;
    TRY(requests_reserve(&endpoint->requests, 2));
    bool staged = transport->embedded || !slot->into;
    if (staged && !impl->staging && slot->capacity && !(impl->staging = malloc(slot->capacity)))
        return out_of_memory();
    impl->transfer = (struct transfer){.pending = 2, .slot = slot};
    memset(impl->header, 0, sizeof impl->header); /* clears the last message's */
    enum node_role from = topology_role(&transport->topology, slot->peer), to = transport->role;
    TRY(begin(endpoint, &impl->transfer, slot->peer, tag_of(from, to, PART_HEADER), impl->header,
              MESSAGE_HEADER_BYTES));
    if (transport->embedded) {
        impl->transfer.pending = 1;
        impl->awaits_header = true;
        goto out;
    }
    TRY(begin(endpoint, &impl->transfer, slot->peer, payload_tag(transport, from, to, slot->number),
              staged ? impl->staging : slot->into, slot->capacity));
out:
    return status;
}

/* Validates the header of a slot, which has arrived. */
static enum status accept_header(struct mpi_endpoint *endpoint, struct transport_slot *slot,
                                 struct message *message)
{
    return transport_accept(&endpoint->base, slot->impl->header, MESSAGE_HEADER_BYTES, slot->peer,
                            message);
}

/* Embedded: a slot's header has arrived, and the receive of its payload begins. */
static enum status receive_payload(struct mpi_endpoint *endpoint, struct transfer *transfer)
{
    enum status status;
    struct transport *transport = &endpoint->base;
    struct transport_slot *slot = transfer->slot;
    struct message message;
    TRY(accept_header(endpoint, slot, &message));
    TRY(transport_claim(transport, slot, &message));
    TRY(requests_reserve(&endpoint->requests, 1));
    transfer->pending = 1;
    slot->impl->awaits_header = false;
    enum node_role from = topology_role(&transport->topology, slot->peer);
    TRY(begin(endpoint, transfer, slot->peer,
              payload_tag(transport, from, transport->role, slot->number), slot->impl->staging,
              (size_t)message.length));
out:
    return status;
}

/* Both parts of a slot's message have arrived. Embedded, receive_payload has claimed the slot. */
static enum status receive_done(struct mpi_endpoint *endpoint, struct transfer *transfer)
{
    enum status status = STATUS_OK;
    struct transport_slot *slot = transfer->slot;
    const bool embedded = endpoint->base.embedded;
    struct message message = slot->message;
    if (!embedded)
        TRY(accept_header(endpoint, slot, &message));
    int64_t payload_bytes = transfer->received_bytes - MESSAGE_HEADER_BYTES;
    if (payload_bytes < 0 || message.length != (uint64_t)payload_bytes)
        return FAIL(STATUS_INPUT,
                    "MPI: found a payload of %lld bytes, expected the %llu of its header",
                    (long long)payload_bytes, (unsigned long long)message.length);
    if (!embedded)
        TRY(transport_claim(&endpoint->base, slot, &message));
    if (!slot->into)
        slot->held.data = slot->impl->staging;
    else if (embedded && message.length > 0)
        memcpy(slot->into, slot->impl->staging, (size_t)message.length);
    transport_complete(&endpoint->base, slot);
out:
    return status;
}

/* A payload was longer than its slot. If its header has arrived, it may give the reason. */
static enum status refuse_long(struct mpi_endpoint *endpoint, struct transport_slot *slot)
{
    static const uint8_t none[MESSAGE_HEADER_BYTES];
    enum status status = STATUS_OK;
    struct message message;
    if (memcmp(slot->impl->header, none, sizeof none) != 0)
        status = accept_header(endpoint, slot, &message);
    return status != STATUS_OK ? status : transport_too_long(&endpoint->base, slot);
}

static enum status testsome_failed(struct mpi_endpoint *endpoint, int code, int count)
{
    enum status status = STATUS_OK;
    for (int i = 0; code == MPI_ERR_IN_STATUS && i < count && status == STATUS_OK; i++) {
        struct transport_slot *slot =
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
    (void)for_sends; /* one poll finds both */
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    int count = 0;
    if (endpoint->requests.active > 0) {
        int code = MPI_Testsome(endpoint->requests.active, endpoint->requests.requests, &count,
                                endpoint->requests.indices, endpoint->requests.statuses);
        if (code != MPI_SUCCESS)
            return testsome_failed(endpoint, code, count);
    }
    if (count <= 0 || count == MPI_UNDEFINED) {
        if (wait_ns > 0)
            backoff_wait(&endpoint->backoff, transport->crowded);
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

/* -------- opening and closing ----------------------------------------------------------------- */

static void shared_release(struct mpi_shared *shared)
{
    if (--shared->users > 0)
        return;
    if (shared->comm != MPI_COMM_NULL && !shared->abandoned)
        MPI_Comm_free(&shared->comm);
    free(shared);
}

static void mpi_close(struct transport *transport)
{
    struct mpi_endpoint *endpoint = endpoint_of(transport);
    struct requests *requests = &endpoint->requests;
    /* A send still in flight (only after an error) keeps its header: MPI may still read it. */
    for (uint32_t node = 0; node < transport->limits.nodes; node++)
        mpi_completed(transport, (int)node);
    while (endpoint->pool) {
        struct send *next = endpoint->pool->next;
        free(endpoint->pool->copy);
        free(endpoint->pool);
        endpoint->pool = next;
    }
    (void)free_notices(endpoint);
    if (endpoint->shared) {
        endpoint->shared->abandoned |= transport->failed;
        shared_release(endpoint->shared);
    }
    free(requests->requests);
    free(requests->transfers);
    free(requests->indices);
    free(requests->statuses);
    transport_base_fini(transport);
    free(endpoint);
}

static enum status mpi_open(struct transport *endpoint[2], struct world *world,
                            const struct transport_options *options)
{
    enum status status = STATUS_OK;
    if (options->topology.servers > topology_spare(&options->topology) && !world->concurrent)
        return FAIL(STATUS_UNSUPPORTED,
                    "--transport mpi: this MPI does not let two threads call it at once, which a "
                    "colocated server needs; use --transport zmq or --placement dedicated");
    struct mpi_shared *shared = malloc(sizeof *shared);
    if (!shared)
        return out_of_memory();
    *shared = (struct mpi_shared){.comm = MPI_COMM_NULL, .users = 1 /* this function */};
    for (int role = 0; role < 2; role++) {
        if (!endpoint[role])
            continue;
        endpoint_of(endpoint[role])->shared = shared;
        shared->users++;
        for (int node = 0; node < topology_nodes(&options->topology); node++) {
            struct mpi_peer *peer = &endpoint_of(endpoint[role])->peers[node];
            peer->last = &peer->first;
        }
    }
    TRY(status_from_mpi(MPI_Comm_dup(world_mpi_comm(world), &shared->comm), "MPI_Comm_dup"));
    MPI_Comm_set_errhandler(shared->comm, MPI_ERRORS_RETURN);
out:
    shared_release(shared);
    return status;
}

const struct transport_ops transport_mpi_ops = {
    .name = "mpi",
    .summary = "MPI point-to-point messages",
    .endpoint_bytes = sizeof(struct mpi_endpoint),
    .peer_bytes = sizeof(struct mpi_peer),
    .open = mpi_open,
    .send = mpi_send,
    .completed = mpi_completed,
    .progress = mpi_progress,
    .close = mpi_close,
    .slot_init = mpi_slot_init,
    .slot_fini = mpi_slot_fini,
    .post = mpi_post,
    .notify = mpi_notify,
    .look = mpi_look,
    .check_end = mpi_check_end,
    .is_empty = mpi_is_empty,
};

#else

const struct transport_ops transport_mpi_ops = {
    .name = "mpi",
    .unavailable =
        "this build has no MPI; configure again without -DPSRING_MPI=OFF, or use --transport zmq",
};

#endif
