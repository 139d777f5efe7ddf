/*
 * The transport of a simulation. Messages take simulated time (simulated_network.h), and their data
 * moves through memory. Messages between ranks of one host take no time. Links carry the payload,
 * plus the header size of the platform per message.
 *
 * Nothing polls. A waiting node sleeps on the bell of its inbox, and the network delivers there.
 * All actors run in one process and take turns. An actor is never interrupted between two calls of
 * SimGrid.
 */
#include <simgrid/host.h>
#include <simgrid/semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/simulate/simulated_network.h"
#include "experiments/simulate/simulated_world.h"
#include "common/net/transport/transport_impl.h"

struct simulated_endpoint;

struct parcel {
    struct crossing crossing; /* the first member */
    uint8_t header[MESSAGE_HEADER_BYTES];
    const void *payload; /* `copy`, or shared memory */
    void *copy;
    struct office *office;
    struct simulated_endpoint *from; /* invalid if its inbox is closed */
    int sender, receiver;
    struct parcel *next; /* in the inbox */
};

struct queue {
    struct parcel *first, **last;
};

/* The arrived messages of a node. */
struct inbox {
    sg_host_t host;
    sg_sem_t bell;
    bool asleep;    /* its node waits for the bell */
    bool for_sends; /* completed sends wake it, too */
    bool closed;
    struct queue queue;
};

/* All inboxes, by node. All endpoints of one transport_open share it. */
struct office {
    int users; /* endpoints, and travelling messages */
    int nodes;
    struct inbox inboxes[];
};

struct simulated_endpoint {
    struct transport base;
    struct office *office;
    struct inbox *inbox;
    struct simulated_peer {
        struct lane *lane; /* NULL: nothing was sent there, or it is on the same host */
        uint64_t completed;
    } peers[]; /* by node */
};

static struct simulated_endpoint *endpoint_of(struct transport *transport)
{
    return (struct simulated_endpoint *)transport;
}

static enum status out_of_memory(void)
{
    return FAIL(STATUS_NO_MEMORY, "simulated transport: out of memory");
}

static void ring_bell(sg_sem_t bell, bool *asleep)
{
    if (!*asleep)
        return;
    *asleep = false;
    sg_sem_release(bell);
}

/* -------- queues ------------------------------------------------------------------------------ */

static void queue_init(struct queue *queue)
{
    *queue = (struct queue){.last = &queue->first};
}

static void queue_push(struct queue *queue, struct parcel *parcel)
{
    parcel->next = NULL;
    *queue->last = parcel;
    queue->last = &parcel->next;
}

static struct parcel *queue_pop(struct queue *queue)
{
    struct parcel *parcel = queue->first;
    if (!parcel)
        return NULL;
    queue->first = parcel->next;
    if (!queue->first)
        queue->last = &queue->first;
    return parcel;
}

static void parcel_free(struct parcel *parcel)
{
    free(parcel->copy);
    free(parcel);
}

static void queue_clear(struct queue *queue)
{
    for (struct parcel *parcel; (parcel = queue_pop(queue));)
        parcel_free(parcel);
}

static void office_leave(struct office *office)
{
    if (--office->users > 0)
        return;
    for (int node = 0; node < office->nodes; node++) {
        queue_clear(&office->inboxes[node].queue);
        sg_sem_destroy(office->inboxes[node].bell);
    }
    free(office);
}

/* -------- sending ----------------------------------------------------------------------------- */

static struct inbox *inbox_of(const struct parcel *parcel, int node)
{
    return &parcel->office->inboxes[node];
}

static void arrive(struct parcel *parcel)
{
    struct inbox *inbox = inbox_of(parcel, parcel->receiver);
    if (inbox->closed) {
        parcel_free(parcel);
        return;
    }
    queue_push(&inbox->queue, parcel);
    ring_bell(inbox->bell, &inbox->asleep);
}

static void crossing_left(struct crossing *crossing)
{
    struct parcel *parcel = (struct parcel *)crossing;
    struct inbox *inbox = inbox_of(parcel, parcel->sender);
    if (inbox->closed)
        return;
    parcel->from->peers[parcel->receiver].completed++;
    if (inbox->for_sends)
        ring_bell(inbox->bell, &inbox->asleep);
}

static void crossing_arrived(struct crossing *crossing)
{
    struct parcel *parcel = (struct parcel *)crossing;
    struct office *office = parcel->office;
    arrive(parcel);
    office_leave(office);
}

/* Copies the payload, because the sender may close its endpoint before the payload has left. NULL:
 * no memory (logged). */
static struct parcel *parcel_new(struct simulated_endpoint *endpoint, int receiver,
                                 const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                                 size_t length)
{
    const void *shared = simulated_shared_payload(endpoint->base.world);
    struct parcel *parcel = malloc(sizeof *parcel);
    void *copy = !shared && length > 0 ? malloc(length) : NULL;
    if (!parcel || (!shared && length > 0 && !copy)) {
        out_of_memory();
        free(parcel);
        free(copy);
        return NULL;
    }
    if (copy)
        memcpy(copy, payload, length);
    *parcel = (struct parcel){
        .crossing = {.bytes = (double)length, .left = crossing_left, .arrived = crossing_arrived},
        .payload = shared ? shared : copy,
        .copy = copy,
        .office = endpoint->office,
        .from = endpoint,
        .sender = endpoint->base.node,
        .receiver = receiver};
    memcpy(parcel->header, header, sizeof parcel->header);
    return parcel;
}

static enum status send_away(struct simulated_endpoint *endpoint, struct parcel *parcel)
{
    enum status status;
    struct lane **lane = &endpoint->peers[parcel->receiver].lane;
    if (!*lane)
        TRY(network_lane_open(lane, simulated_network(endpoint->base.world), endpoint->inbox->host,
                              inbox_of(parcel, parcel->receiver)->host));
    endpoint->office->users++;
    status = network_send(*lane, &parcel->crossing);
    if (status != STATUS_OK)
        endpoint->office->users--;
out:
    return status;
}

static enum status simulated_send(struct transport *transport, int peer,
                                  const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                                  size_t length)
{
    struct simulated_endpoint *endpoint = endpoint_of(transport);
    struct parcel *parcel = parcel_new(endpoint, peer, header, payload, length);
    if (!parcel)
        return STATUS_NO_MEMORY;
    if (inbox_of(parcel, peer)->host == endpoint->inbox->host) {
        endpoint->peers[peer].completed++;
        arrive(parcel);
        return STATUS_OK;
    }
    enum status status = send_away(endpoint, parcel);
    if (status != STATUS_OK)
        parcel_free(parcel);
    return status;
}

static uint64_t simulated_completed(struct transport *transport, int peer)
{
    return endpoint_of(transport)->peers[peer].completed;
}

/* -------- receiving --------------------------------------------------------------------------- */

/* Delivers all arrived messages to the slots, or to the queue for future slots. */
static enum status take_arrivals(struct simulated_endpoint *endpoint, bool *moved)
{
    enum status status = STATUS_OK;
    for (struct parcel *parcel; (parcel = queue_pop(&endpoint->inbox->queue));) {
        struct message message;
        struct payload payload = {parcel->payload, parcel->copy ? free : NULL, parcel->copy};
        status = transport_accept(&endpoint->base, parcel->header, sizeof parcel->header,
                                  parcel->sender, &message);
        if (status == STATUS_OK) {
            status = transport_deliver(&endpoint->base, &message, payload);
            parcel->copy = NULL;
        }
        parcel_free(parcel);
        TRY(status);
        *moved = true;
    }
out:
    return status;
}

/* The wait has no time-out: if no rank can continue, SimGrid ends the run. */
static enum status simulated_progress(struct transport *transport, int64_t wait_ns, bool for_sends,
                                      bool *moved)
{
    enum status status;
    struct simulated_endpoint *endpoint = endpoint_of(transport);
    TRY(take_arrivals(endpoint, moved));
    if (*moved || wait_ns <= 0)
        return STATUS_OK;
    endpoint->inbox->for_sends = for_sends;
    endpoint->inbox->asleep = true;
    sg_sem_acquire(endpoint->inbox->bell);
    *moved = true;
    TRY(take_arrivals(endpoint, moved));
out:
    return status;
}

/* -------- opening and closing ----------------------------------------------------------------- */

static void simulated_close(struct transport *transport)
{
    struct simulated_endpoint *endpoint = endpoint_of(transport);
    for (uint32_t node = 0; node < transport->limits.nodes; node++) {
        if (endpoint->peers[node].lane)
            network_lane_close(endpoint->peers[node].lane);
    }
    if (endpoint->inbox)
        endpoint->inbox->closed = true;
    if (endpoint->office)
        office_leave(endpoint->office);
    transport_base_fini(transport);
    free(endpoint);
}

static struct office *office_new(int nodes)
{
    struct office *office = calloc(1, sizeof *office + (size_t)nodes * sizeof *office->inboxes);
    if (!office)
        return NULL;
    *office = (struct office){.nodes = nodes};
    for (int node = 0; node < nodes; node++) {
        office->inboxes[node].bell = sg_sem_init(0);
        queue_init(&office->inboxes[node].queue);
    }
    return office;
}

static enum status simulated_open(struct transport *endpoint[2], struct world *world,
                                  const struct transport_options *options)
{
    enum status status;
    struct office *office = NULL;
    if (world->rank == 0)
        office = office_new(topology_nodes(&options->topology));
    TRY(world_broadcast(world, NULL, &office, sizeof(void *)));
    if (!office)
        return out_of_memory();
    for (int role = 0; role < 2; role++) {
        if (!endpoint[role])
            continue;
        struct simulated_endpoint *simulated = endpoint_of(endpoint[role]);
        simulated->office = office;
        office->users++;
        simulated->inbox = &office->inboxes[endpoint[role]->node];
        simulated->inbox->host = sg_host_self();
    }
    TRY(world_barrier(world, NULL));
out:
    return status;
}

/* Replaces common/net/transport/mpi.c. */
const struct transport_ops transport_mpi_ops = {
    .name = "mpi",
    .summary = "messages that SimGrid times",
    .endpoint_bytes = sizeof(struct simulated_endpoint),
    .peer_bytes = sizeof(struct simulated_peer),
    .open = simulated_open,
    .send = simulated_send,
    .completed = simulated_completed,
    .progress = simulated_progress,
    .close = simulated_close,
};
