#include <stdlib.h>

#include "common/base/util.h"
#include "common/library/library.h"
#include "ring/hierarchical.h"
#include "ring/ring.h"

static void shape_close(struct library_shape *shape)
{
    if (shape->self && shape->backend->close)
        shape->backend->close(shape->self);
    *shape = (struct library_shape){0};
}

static enum status shape_open(struct library_shape *shape, const struct library_shapes *shapes,
                              const struct backend *backend, const struct group *group,
                              const struct reduction *reduction, size_t count)
{
    enum status status = STATUS_OK;
    *shape = (struct library_shape){
        .backend = backend, .group = group, .reduction = reduction, .count = count};
    shape->options =
        (struct comm_options){.group = group, .reduction = reduction, .bucket_counts_max = count};
    shape->layout = (struct comm_layout){.counts = &shape->count, .buckets = 1, .scale = 1.0f};
    shape->site = (struct backend_env){.world = shapes->world,
                                       .group = group,
                                       .transport = shapes->transport,
                                       .topology = {.workers = shapes->world->size},
                                       .workers = group->size,
                                       .index = group->rank,
                                       .hosts = shapes->hosts,
                                       .options = &shape->options,
                                       .layout = &shape->layout};
    if (backend == &backend_hierarchical) /* its memory is the communicator's */
        TRY(hierarchical_open_in(&shape->self, &shape->site, shapes->groups));
    else
        TRY(backend->open(&shape->self, &shape->site));
    TRY(backend->plan(shape->self));
    return STATUS_OK;
out:
    shape_close(shape);
    return status;
}

/* The shape of `count` elements in `group` (borrowed), prepared if it is not yet. On the
 * transport's thread. Errors: logged. */
static enum status shapes_get(struct library_shapes *shapes, const struct backend *backend,
                              const struct group *group, const struct reduction *reduction,
                              size_t count, struct library_shape **found)
{
    struct library_shape *oldest = &shapes->list[0];
    for (int i = 0; i < SHAPES_KEPT; i++) {
        struct library_shape *shape = &shapes->list[i];
        if (shape->backend == backend && shape->group == group && shape->count == count &&
            shape->reduction == reduction) {
            shape->used = ++shapes->uses;
            *found = shape;
            return STATUS_OK;
        }
        if (shape->used < oldest->used)
            oldest = shape;
    }
    shape_close(oldest);
    enum status status = shape_open(oldest, shapes, backend, group, reduction, count);
    if (status == STATUS_OK)
        oldest->used = ++shapes->uses;
    *found = oldest;
    return status;
}

/* Frees all; before the transport is closed. */
static void shapes_fini(struct library_shapes *shapes)
{
    for (int i = 0; i < SHAPES_KEPT; i++)
        shape_close(&shapes->list[i]);
}

enum { SEGMENT_BYTES = 256 << 10 };

/* Borrows `transport` until broadcast_close, which may be called without. Errors: logged. */
static enum status broadcast_open(struct broadcast *broadcast, struct transport *transport,
                                  const struct group *group)
{
    enum status status = STATUS_OK;
    int size = group->size;
    *broadcast = (struct broadcast){.transport = transport,
                                    .size = size,
                                    .rank = group->rank,
                                    .next = group->ranks[(group->rank + 1) % size],
                                    .previous = group->ranks[(group->rank + size - 1) % size]};
    for (int i = 0; i < BROADCAST_SLOTS; i++)
        TRY(transport_slot_init(&broadcast->slots[i], transport, broadcast->previous,
                                SEGMENT_BYTES));
out:
    return status;
}

static void broadcast_close(struct broadcast *broadcast)
{
    for (int i = 0; broadcast->transport && i < BROADCAST_SLOTS; i++)
        transport_slot_fini(&broadcast->slots[i], broadcast->transport);
    *broadcast = (struct broadcast){0};
}

/* One operation, in segments. */
struct operation_state {
    struct broadcast *broadcast;
    char *data;
    size_t bytes, segments;
    enum message_dtype dtype;
};

static struct message segment_of(const struct operation_state *run, size_t segment)
{
    size_t offset = segment * SEGMENT_BYTES;
    return (struct message){.kind = MESSAGE_SEGMENT,
                            .step = run->broadcast->step,
                            .offset = offset,
                            .length = size_smaller(run->bytes - offset, SEGMENT_BYTES),
                            .dtype = run->dtype};
}

static enum status post(const struct operation_state *run, size_t segment)
{
    struct transport_slot *slot = &run->broadcast->slots[segment % BROADCAST_SLOTS];
    struct message expected = segment_of(run, segment);
    transport_slot_expect(slot, &expected);
    return transport_post(run->broadcast->transport, slot, run->data + expected.offset);
}

static enum status receive(const struct operation_state *run, size_t segment)
{
    enum status status = STATUS_OK;
    struct transport *transport = run->broadcast->transport;
    struct transport_slot *slot = &run->broadcast->slots[segment % BROADCAST_SLOTS];
    TRY(transport_wait(transport, slot));
    transport_release(transport, slot);
    if (segment + BROADCAST_SLOTS < run->segments)
        TRY(post(run, segment + BROADCAST_SLOTS));
out:
    return status;
}

/* `count` elements at `data`, root's to all. On the transport's thread. Errors: logged. */
static enum status broadcast_run(struct broadcast *broadcast, void *data, size_t count,
                                 enum message_dtype dtype, int root)
{
    enum status status = STATUS_OK;
    int position = (broadcast->rank - root + broadcast->size) % broadcast->size;
    struct operation_state run = {.broadcast = broadcast,
                                  .data = data,
                                  .bytes = count * message_element_bytes(dtype),
                                  .dtype = dtype};
    run.segments = size_divide_up(run.bytes, SEGMENT_BYTES);
    for (size_t i = 0; position > 0 && i < run.segments && i < BROADCAST_SLOTS; i++)
        TRY(post(&run, i));
    for (size_t i = 0; i < run.segments; i++) {
        struct message message = segment_of(&run, i);
        if (position > 0)
            TRY(receive(&run, i));
        if (position < broadcast->size - 1)
            TRY(transport_send(broadcast->transport, broadcast->next, &message,
                               run.data + message.offset, NULL));
    }
    TRY(transport_flush(broadcast->transport));
    broadcast->step++;
out:
    return status;
}

/* A list of the group's ranks that ends with its first one. */
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

static int *hosts_of(const struct group *group, const struct world *world)
{
    int *hosts = calloc((size_t)group->size, sizeof *hosts);
    for (int i = 0; hosts && i < group->size; i++)
        hosts[i] = world->host_numbers[group->ranks[i]];
    return hosts;
}

enum status communicator_new(struct psring **out, struct engine *engine, struct group *group,
                             uint16_t number)
{
    struct psring *comm = calloc(1, sizeof *comm);
    struct group *shifted = shift(group);
    int *hosts = hosts_of(group, engine->connection.world);
    *out = comm;
    if (!comm || !shifted || !hosts) {
        log_error("no memory for a communicator of %d ranks", group->size);
        free(comm);
        free(hosts);
        group_free(&shifted);
        group_free(&group);
        *out = NULL;
        return STATUS_NO_MEMORY;
    }
    *comm = (struct psring){
        .engine = engine,
        .number = number,
        .group = group,
        .shifted = shifted,
        .hosts = hosts,
        .shapes = {.world = engine->connection.world,
                   .transport = engine->connection.endpoint[NODE_WORKER],
                   .hosts = hosts,
                   .groups = &comm->host_groups},
    };
    return STATUS_OK;
}

/* -------- memory that the ranks of a host share ----------------------------------------------- */

/* Of each rank's vector there: longer ones go through it in pieces. */
enum { SHARED_BYTES = 4 << 20 };

/* As for the world (psring.c); a group on one host needs it only if asked for. */
static bool suits(const struct psring *comm, const struct connection *connection)
{
    int locals = hosts_locals(comm->hosts, comm->group->size, 0);
    return hosts_uneven(comm->hosts, comm->group->size) < 0 &&
           (connection->backend || (locals > 1 && locals < comm->group->size));
}

enum status communicator_share(struct psring *comm, const struct connection *connection)
{
    struct host_groups none, *groups = comm ? &comm->host_groups : &none;
    bool takes_part = comm && suits(comm, connection);
    const struct comm_options options = {.timeout_ms = connection->world->timeout_ms};
    const struct backend_env site = {
        .world = connection->world,
        .group = takes_part ? comm->group : NULL,
        .transport = connection->endpoint[NODE_WORKER],
        .workers = takes_part ? comm->group->size : 0,
        .hosts = takes_part ? comm->hosts : NULL,
        .options = &options,
    };
    enum status status = host_groups_open(groups, &site, NULL, SHARED_BYTES);
    if (status == STATUS_OK && comm)
        comm->hierarchical = takes_part;
    bool unheard = status == STATUS_TIMEOUT || status == STATUS_TRANSPORT ||
                   status == STATUS_PROTOCOL; /* then ranks may not know the same */
    if (status == STATUS_OK || connection->backend || unheard)
        return status;
    char why[ERROR_BYTES];
    errors_take(why);
    log_warn("%s; all-reduces go over the ring instead", why);
    return STATUS_OK;
}

void communicator_fail(struct psring *comm)
{
    if (comm->host_groups.shared)
        shared_fail(comm->host_groups.shared);
}

void communicator_free(struct psring **out)
{
    struct psring *comm = *out;
    if (!comm)
        return;
    *out = NULL;
    shapes_fini(&comm->shapes);
    broadcast_close(&comm->broadcast);
    host_groups_close(&comm->host_groups);
    free(comm->hosts);
    group_free(&comm->shifted);
    group_free(&comm->group);
    free(comm);
}

/* -------- one operation ----------------------------------------------------------------------- */

/* Up to here fewer steps count for more than how well they fill the links. Measured with four ranks
 * over tcp (common/net/transport/README.md): where links are no limit rhd is ahead up to 256 KB, at
 * 200 Mbit/s it is not from there on. */
enum { SHORT_BYTES = 64 << 10 };

static const struct backend *backend_for(const struct psring *comm, size_t bytes)
{
    const struct backend *asked = comm->engine->connection.backend;
    if (asked && asked != &backend_hierarchical)
        return asked;
    if (!asked && comm->group->size > 2 && bytes <= SHORT_BYTES)
        return &backend_rhd;
    return comm->hierarchical ? &backend_hierarchical : &backend_ring;
}

static enum status allreduce(struct psring *comm, const struct operation *operation)
{
    enum status status = STATUS_OK;
    size_t element_bytes = message_element_bytes(operation->dtype), piece = operation->count;
    const struct backend *backend = backend_for(comm, operation->count * element_bytes);
    if (backend == &backend_hierarchical && piece > SHARED_BYTES / element_bytes) {
        piece = SHARED_BYTES / element_bytes;
        piece -= piece % (size_t)comm->group->size; /* the bytes are those of one all-reduce */
    }
    for (size_t done = 0; done < operation->count; done += piece) {
        struct library_shape *shape;
        if (piece > operation->count - done)
            piece = operation->count - done;
        TRY(shapes_get(&comm->shapes, backend, comm->group,
                       reduction_of(operation->dtype, operation->op), piece, &shape));
        TRY(shape->backend->allreduce(shape->self, 0,
                                      (char *)operation->data + done * element_bytes));
    }
out:
    return status;
}

/* The two phases of the ring. An all-gather is one whatever its reduction is: the sum's, so that it
 * shares its shape with a reduce-scatter. */
static enum status phase(struct psring *comm, const struct operation *operation)
{
    enum status status;
    struct library_shape *shape;
    bool gathers = operation->what != MESSAGE_REDUCE_SCATTER;
    TRY(shapes_get(&comm->shapes, &backend_ring, comm->shifted,
                   reduction_of(operation->dtype, gathers ? REDUCE_SUM : operation->op),
                   operation->count, &shape));
    status = gathers ? shape->backend->all_gather(shape->self, 0, operation->data)
                     : shape->backend->reduce_scatter(shape->self, 0, operation->data);
out:
    return status;
}

static enum status broadcast(struct psring *comm, const struct operation *operation)
{
    enum status status;
    if (!comm->broadcast.transport)
        TRY(broadcast_open(&comm->broadcast, comm->engine->connection.endpoint[NODE_WORKER],
                           comm->group));
    status = broadcast_run(&comm->broadcast, operation->data, operation->count, operation->dtype,
                           operation->root);
out:
    return status;
}

enum status operation_run(struct psring *comm, const struct operation *operation)
{
    uint32_t number = ++comm->calls; /* also where nothing is sent: others may call otherwise */
    if (comm->group->size == 1 || operation->count == 0)
        return STATUS_OK; /* the average of one is itself */
    const struct message_call call = {.what = operation->what,
                                      .group = comm->number,
                                      .number = number,
                                      .op = (uint8_t)operation->op,
                                      .dtype = operation->dtype,
                                      .root = (uint16_t)operation->root,
                                      .count = operation->count & MESSAGE_COUNT_MOST};
    transport_set_call(comm->engine->connection.endpoint[NODE_WORKER], &call);
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
