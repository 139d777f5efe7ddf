/* A communicator: chooses the backend and the plan of an operation. Also the broadcast, the
 * library's only own algorithm. */
#include <stdlib.h>

#include "common/base/util.h"
#include "common/comm/reduce.h"
#include "common/library/library.h"
#include "ring/ring.h"

static const enum message_dtype dtypes[] = {
    [PSRING_FLOAT32] = MESSAGE_FLOAT32, [PSRING_FLOAT64] = MESSAGE_FLOAT64,
    [PSRING_FLOAT16] = MESSAGE_FP16,    [PSRING_BFLOAT16] = MESSAGE_BF16,
    [PSRING_INT32] = MESSAGE_INT32,     [PSRING_INT64] = MESSAGE_INT64,
};

static const enum reduce_op ops[] = {
    [PSRING_SUM] = REDUCE_SUM,
    [PSRING_AVERAGE] = REDUCE_AVERAGE,
    [PSRING_MIN] = REDUCE_MIN,
    [PSRING_MAX] = REDUCE_MAX,
};

size_t operation_element_bytes(enum psring_type type)
{
    return message_element_bytes(dtypes[type]);
}

/* -------- broadcast ----------------------------------------------------------------------------
 *
 * From any rank of a group to all others, along the ring. The root's right neighbour receives the
 * data in segments and forwards each one at once. The last rank is the root's left neighbour.
 *
 *    root          [0][1][2][3]
 *    root + 1         [0][1][2][3]
 *    root + 2            [0][1][2][3]        time ->
 *
 * Bytes: every rank except the last sends all data once. Time: M/B plus N-2 segments, if
 * two credits (below) fill the link for a round trip. Every rank receives from its left neighbour,
 * so the slots are the same for every root.
 *
 * Credits: after every CREDIT_SEGMENTS segments, counted over all broadcasts of the communicator, a
 * rank sends an empty message to its left neighbour. That one is never more than two credits ahead,
 * even if its right neighbour waits in another call: no memory grows with the data. A credit is
 * received in the call in which it was sent, before other messages from that rank. */

enum { SEGMENT_BYTES = 256 << 10, CREDIT_SEGMENTS = 16 };

/* One broadcast, in segments. */
struct broadcast {
    struct psring *comm;
    struct transport *transport;
    const struct operation *operation;
    int next, previous;
    size_t bytes, segments;
    uint64_t sent_before;   /* segments of earlier broadcasts to the right neighbour */
    uint64_t credits;       /* from it so far */
    uint64_t credited[2];   /* tickets of the segments that the next two credits confirm */
    uint64_t credit_ticket; /* of the last credit to the left neighbour */
    bool has_credited;
};

static struct message segment_of(const struct broadcast *run, size_t segment)
{
    size_t offset = segment * SEGMENT_BYTES;
    return (struct message){.kind = MESSAGE_SEGMENT,
                            .step = run->comm->broadcasts,
                            .offset = offset,
                            .length = size_smaller(run->bytes - offset, SEGMENT_BYTES),
                            .dtype = dtypes[run->operation->type]};
}

static enum status post(const struct broadcast *run, size_t segment)
{
    struct transport_slot *slot = &run->comm->slots[segment % BROADCAST_SLOTS];
    struct message expected = segment_of(run, segment);
    transport_slot_expect(slot, &expected);
    return transport_post(run->transport, slot, (char *)run->operation->data + expected.offset);
}

/* The empty message that confirms the first `segments` segments of this broadcast. */
static struct message credit_for(const struct broadcast *run, size_t segments)
{
    return (struct message){.kind = MESSAGE_SEGMENT,
                            .step = run->comm->broadcasts,
                            .offset = segments * SEGMENT_BYTES,
                            .dtype = dtypes[run->operation->type]};
}

static enum status give_credit(struct broadcast *run, size_t segments)
{
    enum status status = STATUS_OK;
    struct message credit = credit_for(run, segments);
    if (run->has_credited)
        TRY(transport_wait_sent(run->transport, run->previous, run->credit_ticket));
    TRY(transport_send(run->transport, run->previous, &credit, NULL, &run->credit_ticket));
    run->has_credited = true;
out:
    return status;
}

static enum status await_credit(struct broadcast *run)
{
    enum status status = STATUS_OK;
    struct transport_slot *slot = &run->comm->credit;
    uint64_t *ticket = &run->credited[run->credits % 2];
    uint64_t confirmed = ++run->credits * CREDIT_SEGMENTS;
    struct message expected = credit_for(run, (size_t)(confirmed - run->sent_before));
    transport_slot_expect(slot, &expected);
    TRY(transport_post(run->transport, slot, run->operation->data)); /* nothing is written */
    TRY(transport_wait(run->transport, slot));
    transport_release(run->transport, slot);
    TRY(transport_wait_sent(run->transport, run->next, *ticket));
out:
    return status;
}

static enum status receive(struct broadcast *run, size_t segment)
{
    enum status status = STATUS_OK;
    struct transport_slot *slot = &run->comm->slots[segment % BROADCAST_SLOTS];
    TRY(transport_wait(run->transport, slot));
    transport_release(run->transport, slot);
    if (segment + BROADCAST_SLOTS < run->segments)
        TRY(post(run, segment + BROADCAST_SLOTS));
    if (++run->comm->segments_received % CREDIT_SEGMENTS == 0)
        TRY(give_credit(run, segment + 1));
out:
    return status;
}

static enum status send(struct broadcast *run, size_t segment)
{
    enum status status = STATUS_OK;
    struct message message = segment_of(run, segment);
    uint64_t *sent = &run->comm->segments_sent, ticket;
    if (*sent == (run->credits + 2) * CREDIT_SEGMENTS)
        TRY(await_credit(run));
    TRY(transport_send(run->transport, run->next, &message,
                       (char *)run->operation->data + message.offset, &ticket));
    run->credited[*sent / CREDIT_SEGMENTS % 2] = ticket;
    ++*sent;
out:
    return status;
}

static enum status open_slots(struct psring *comm, int previous, int next)
{
    enum status status = STATUS_OK;
    struct transport *transport = comm->place.endpoints[NODE_WORKER];
    comm->slots_open = true;
    for (int i = 0; i < BROADCAST_SLOTS; i++)
        TRY(transport_slot_init(&comm->slots[i], transport, previous, SEGMENT_BYTES));
    TRY(transport_slot_init(&comm->credit, transport, next, 0));
out:
    return status;
}

static enum status broadcast(struct psring *comm, const struct operation *operation)
{
    enum status status = STATUS_OK;
    int size = comm->group->size, rank = comm->group->rank;
    int place = (rank - operation->root + size) % size; /* position after the root */
    struct broadcast run = {.comm = comm,
                            .transport = comm->place.endpoints[NODE_WORKER],
                            .operation = operation,
                            .next = comm->group->ranks[(rank + 1) % size],
                            .previous = comm->group->ranks[(rank + size - 1) % size],
                            .bytes = operation->count * operation_element_bytes(operation->type),
                            .sent_before = comm->segments_sent,
                            .credits = comm->segments_sent / CREDIT_SEGMENTS};
    run.segments = size_divide_up(run.bytes, SEGMENT_BYTES);
    if (!comm->slots_open)
        TRY(open_slots(comm, run.previous, run.next));
    for (size_t i = 0; place > 0 && i < run.segments && i < BROADCAST_SLOTS; i++)
        TRY(post(&run, i));
    for (size_t i = 0; i < run.segments; i++) {
        if (place > 0)
            TRY(receive(&run, i));
        if (place < size - 1)
            TRY(send(&run, i));
    }
    while (run.credits < comm->segments_sent / CREDIT_SEGMENTS)
        TRY(await_credit(&run));
    TRY(transport_flush(run.transport));
    comm->broadcasts++;
out:
    return status;
}

/* -------- a communicator: begin and end ------------------------------------------------------- */

/* Returns the group's ranks with the first one last. */
static struct group *shift(const struct group *group)
{
    struct shifted {
        struct group group;
        int ranks[];
    } *shifted = calloc(1, sizeof *shifted + (size_t)group->size * sizeof *shifted->ranks);
    if (!shifted)
        return NULL;
    int size = group->size;
    for (int i = 0; i < size; i++)
        shifted->ranks[i] = group->ranks[(i + 1) % size];
    shifted->group = (struct group){
        .size = size, .rank = (group->rank + size - 1) % size, .ranks = shifted->ranks};
    return &shifted->group;
}

/* Takes ownership of `group`. */
static enum status communicator_new(struct psring **out, struct engine *engine, struct group *group)
{
    enum status status;
    struct psring *comm = calloc(1, sizeof *comm);
    *out = comm;
    if (!comm) {
        log_error("no memory for a communicator of %d ranks", group->size);
        group_free(&group);
        return STATUS_NO_MEMORY;
    }
    comm->engine = engine;
    comm->number = engine->splits;
    comm->group = group;
    TRY(comm_place_share(&comm->place, &engine->place, group));
    comm->place.options.host_groups = &comm->host_groups;
    comm->shifted = shift(group);
    if (comm->shifted)
        return STATUS_OK;
    log_error("no memory for a communicator of %d ranks", group->size);
    status = STATUS_NO_MEMORY;
out:
    communicator_free(out);
    return status;
}

void communicator_free(struct psring **out)
{
    struct psring *comm = *out;
    if (!comm)
        return;
    *out = NULL;
    comm_vectors_close(&comm->vectors);
    for (int i = 0; comm->slots_open && i < BROADCAST_SLOTS; i++)
        transport_slot_fini(&comm->slots[i], comm->place.endpoints[NODE_WORKER]);
    if (comm->slots_open)
        transport_slot_fini(&comm->credit, comm->place.endpoints[NODE_WORKER]);
    host_groups_close(&comm->host_groups);
    comm_place_close(&comm->place);
    group_free(&comm->shifted);
    group_free(&comm->group);
    free(comm);
}

/* Each rank's part of the memory that the ranks of a host share. Longer vectors go through it in
 * pieces. */
enum { SHARED_BYTES = 4 << 20 };

/* As for the world (psring.c). A group on one host uses it only if the caller asked for it. */
static bool suits(const struct psring *comm)
{
    const int *hosts = comm->place.hosts;
    int size = comm->group->size, locals = hosts_locals(hosts, size, 0);
    return hosts_uneven(hosts, size) < 0 &&
           (comm->engine->backend || (locals > 1 && locals < size));
}

/* Prepares a communicator for hierarchical all-reduces if its hosts suit. Collective over the
 * world; `comm` is NULL on a rank without a communicator. A silent rank is an error. */
static enum status share_memory(const struct engine *engine, struct psring *comm)
{
    /* cppcheck-suppress uninitvar ; host_groups_open fills it */
    struct host_groups none, *groups = comm ? &comm->host_groups : &none;
    struct backend_env env = comm_place_env(comm ? &comm->place : &engine->all->place, NODE_WORKER);
    if (!comm || !suits(comm))
        env.group = NULL;
    bool agreed = false;
    enum status status = host_groups_open(groups, &env, NULL, SHARED_BYTES, &agreed);
    if (status == STATUS_OK || engine->backend || !agreed)
        return status;
    char why[ERROR_BYTES];
    errors_take(why);
    log_warn("%s; all-reduces go over the ring instead", why);
    return STATUS_OK;
}

enum status communicator_add(struct engine *engine, const int *colors, struct psring **out)
{
    enum status status;
    struct group *group;
    struct psring *comm = NULL;
    TRY(group_from_colors(&group, colors, engine->world->size, engine->world->rank));
    if (group) {
        TRY(communicator_new(&comm, engine, group));
        comm->next = engine->communicators;
        engine->communicators = comm;
    }
    if (engine->shares_memory)
        TRY(share_memory(engine, comm));
    *out = comm;
out:
    return status;
}

/* -------- one operation ----------------------------------------------------------------------- */

/* Up to this length the number of steps matters more than how well they fill the links. Measured
 * with four ranks over tcp (common/net/transport/measured.csv): rhd is faster up to 64 KB, the ring
 * at 256 KB. */
enum { SHORT_BYTES = 64 << 10 };

static const struct backend *backend_for(const struct psring *comm, size_t bytes)
{
    const struct backend *asked = comm->engine->backend;
    if (asked && asked != &backend_hierarchical)
        return asked;
    if (!asked && comm->group->size > 2 && bytes <= SHORT_BYTES)
        return &backend_rhd;
    return comm->host_groups.host ? &backend_hierarchical : &backend_ring;
}

static enum status allreduce(struct psring *comm, const struct operation *operation)
{
    enum status status = STATUS_OK;
    size_t element_bytes = operation_element_bytes(operation->type), most = operation->count;
    struct comm_vector vector = {.backend = backend_for(comm, operation->count * element_bytes),
                                 .group = comm->group,
                                 .reduction =
                                     reduction_of(dtypes[operation->type], ops[operation->op])};
    if (vector.backend == &backend_hierarchical && most > SHARED_BYTES / element_bytes) {
        most = SHARED_BYTES / element_bytes;
        most -= most % (size_t)comm->group->size; /* so that the pieces send as many bytes as one
                                                   * all-reduce */
    }
    for (size_t done = 0; done < operation->count; done += vector.count) {
        void *self;
        vector.count = size_smaller(most, operation->count - done);
        TRY(comm_vectors_plan(&comm->vectors, &comm->place, &vector, &self));
        TRY(vector.backend->allreduce(self, 0, (char *)operation->data + done * element_bytes));
    }
out:
    return status;
}

/* The two phases of the ring. An all-gather needs no reduction, but names the sum to share a
 * reduce-scatter's plan. */
static enum status phase(struct psring *comm, const struct operation *operation)
{
    enum status status;
    void *self;
    bool reduces = operation->what == MESSAGE_REDUCE_SCATTER;
    const struct comm_vector vector = {
        .backend = &backend_ring,
        .group = comm->shifted,
        .reduction =
            reduction_of(dtypes[operation->type], reduces ? ops[operation->op] : REDUCE_SUM),
        .count = operation->count};
    TRY(comm_vectors_plan(&comm->vectors, &comm->place, &vector, &self));
    status = reduces ? backend_ring.reduce_scatter(self, 0, operation->data)
                     : backend_ring.all_gather(self, 0, operation->data);
out:
    return status;
}

static enum status exchange(struct psring *comm, const struct operation *operation)
{
    uint32_t number = ++comm->calls; /* counts even if nothing is sent, because other ranks may make
                                      * another call */
    if (comm->group->size == 1 || operation->count == 0)
        return STATUS_OK; /* the average of one value is the value */
    const struct message_call call = {.what = operation->what,
                                      .group = comm->number,
                                      .number = number,
                                      .op = (uint8_t)ops[operation->op],
                                      .dtype = dtypes[operation->type],
                                      .root = (uint16_t)operation->root,
                                      .count = operation->count & MESSAGE_COUNT_MOST};
    transport_set_call(comm->place.endpoints[NODE_WORKER], &call);
    switch (operation->what) {
    case MESSAGE_REDUCE_SCATTER:
    case MESSAGE_ALL_GATHER:
    case MESSAGE_SPLIT:
        return phase(comm, operation);
    case MESSAGE_BROADCAST:
        return broadcast(comm, operation);
    case MESSAGE_ALLREDUCE:
    case MESSAGE_BARRIER:
    case MESSAGE_FINALIZE:
    case MESSAGE_NO_CALL:
        break;
    }
    return allreduce(comm, operation);
}

enum status operation_run(struct psring *comm, const struct operation *operation)
{
    enum status status;
    if (operation->what == MESSAGE_NO_CALL)
        return FAIL(STATUS_NO_MEMORY, "no memory for a handle");
    if (operation->what != MESSAGE_SPLIT)
        return exchange(comm, operation);
    if (!operation->data)
        return FAIL(STATUS_NO_MEMORY, "no memory for %d ranks", comm->group->size);
    if (comm->engine->splits == UINT16_MAX) /* a further group would repeat a number */
        return FAIL(STATUS_UNSUPPORTED, "psring_split: a world can be split at most %d times",
                    UINT16_MAX);
    comm->engine->splits++;
    TRY(exchange(comm, operation));
    TRY(communicator_add(comm->engine, operation->data, operation->group));
out:
    return status;
}
