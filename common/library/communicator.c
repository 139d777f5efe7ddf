#include "common/library/communicator.h"

#include <stdlib.h>

#include "common/library/engine.h"
#include "ring/ring.h"

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

enum status communicator_new(struct psring **out, struct engine *engine, struct group *group)
{
    struct psring *comm = calloc(1, sizeof *comm);
    struct group *shifted = shift(group);
    *out = comm;
    if (!comm || !shifted) {
        log_error("no memory for a communicator of %d ranks", group->size);
        free(comm);
        group_free(&shifted);
        group_free(&group);
        *out = NULL;
        return STATUS_NO_MEMORY;
    }
    *comm = (struct psring){
        .engine = engine,
        .group = group,
        .shifted = shifted,
        .shapes = {.world = engine->connection.world,
                   .transport = engine->connection.endpoint[NODE_WORKER]},
    };
    return STATUS_OK;
}

void communicator_free(struct psring **out)
{
    struct psring *comm = *out;
    if (!comm)
        return;
    *out = NULL;
    shapes_fini(&comm->shapes);
    broadcast_close(&comm->broadcast);
    group_free(&comm->shifted);
    group_free(&comm->group);
    free(comm);
}

/* -------- one operation ----------------------------------------------------------------------- */

static enum status allreduce(struct psring *comm, const struct operation *operation)
{
    enum status status;
    struct shape *shape;
    size_t bytes = operation->count * message_element_bytes(operation->dtype);
    TRY(shapes_get(&comm->shapes, engine_backend(comm->engine, comm->group->size, bytes),
                   comm->group, reduction_of(operation->dtype, operation->op), operation->count,
                   &shape));
    status = shape->backend->allreduce(shape->self, 0, operation->data);
out:
    return status;
}

/* The two phases of the ring. An all-gather is one whatever its reduction is: the sum's, so that it
 * shares its shape with a reduce-scatter. */
static enum status phase(struct psring *comm, const struct operation *operation)
{
    enum status status;
    struct shape *shape;
    bool gathers = operation->kind == OPERATION_ALL_GATHER;
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
    if (comm->group->size == 1 || operation->count == 0)
        return STATUS_OK; /* the average of one is itself */
    switch (operation->kind) {
    case OPERATION_ALLREDUCE:
        return allreduce(comm, operation);
    case OPERATION_REDUCE_SCATTER:
    case OPERATION_ALL_GATHER:
        return phase(comm, operation);
    case OPERATION_BROADCAST:
        break;
    }
    return broadcast(comm, operation);
}
