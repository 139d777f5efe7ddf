/* The library's collective operations, blocking and by handle. */
#include "common/library/check.h"
#include "common/library/engine.h"

/* Blocking, or by handle where there is a place for one. */
static enum psring_status perform(const char *call, struct psring *comm, enum message_what what,
                                  const struct arguments *arguments)
{
    struct operation operation;
    enum psring_status status = check_operation(call, comm, arguments, &operation);
    if (status != PSRING_OK)
        return status;
    operation.what = what;
    return engine_run(comm->engine, comm, &operation);
}

static enum psring_status start(const char *call, struct psring *comm, enum message_what what,
                                const struct arguments *arguments, struct psring_handle **handle)
{
    struct operation operation;
    if (!handle)
        return errors_set(PSRING_ERROR_USAGE, "%s: no place for the handle", call);
    *handle = NULL;
    enum psring_status status = check_operation(call, comm, arguments, &operation);
    if (status != PSRING_OK)
        return status;
    operation.what = what;
    return engine_start(comm->engine, comm, &operation, handle);
}

/* -------- all-reduce -------------------------------------------------------------------------- */

enum psring_status psring_allreduce(struct psring *comm, void *data, size_t count,
                                    enum psring_type type, enum psring_op op)
{
    const struct arguments arguments = {.data = data, .count = count, .type = type, .op = op};
    return perform(__func__, comm, MESSAGE_ALLREDUCE, &arguments);
}

enum psring_status psring_allreduce_start(struct psring *comm, void *data, size_t count,
                                          enum psring_type type, enum psring_op op,
                                          struct psring_handle **handle)
{
    const struct arguments arguments = {.data = data, .count = count, .type = type, .op = op};
    return start(__func__, comm, MESSAGE_ALLREDUCE, &arguments, handle);
}

/* -------- its two phases ---------------------------------------------------------------------- */

enum psring_status psring_reduce_scatter(struct psring *comm, void *data, size_t count,
                                         enum psring_type type, enum psring_op op)
{
    const struct arguments arguments = {
        .data = data, .count = count, .blocks = true, .type = type, .op = op};
    return perform(__func__, comm, MESSAGE_REDUCE_SCATTER, &arguments);
}

enum psring_status psring_reduce_scatter_start(struct psring *comm, void *data, size_t count,
                                               enum psring_type type, enum psring_op op,
                                               struct psring_handle **handle)
{
    const struct arguments arguments = {
        .data = data, .count = count, .blocks = true, .type = type, .op = op};
    return start(__func__, comm, MESSAGE_REDUCE_SCATTER, &arguments, handle);
}

enum psring_status psring_all_gather(struct psring *comm, void *data, size_t count,
                                     enum psring_type type)
{
    const struct arguments arguments = {.data = data, .count = count, .blocks = true, .type = type};
    return perform(__func__, comm, MESSAGE_ALL_GATHER, &arguments);
}

enum psring_status psring_all_gather_start(struct psring *comm, void *data, size_t count,
                                           enum psring_type type, struct psring_handle **handle)
{
    const struct arguments arguments = {.data = data, .count = count, .blocks = true, .type = type};
    return start(__func__, comm, MESSAGE_ALL_GATHER, &arguments, handle);
}

/* -------- broadcast, barrier ------------------------------------------------------------------ */

enum psring_status psring_broadcast(struct psring *comm, void *data, size_t count,
                                    enum psring_type type, int root)
{
    const struct arguments arguments = {.data = data, .count = count, .type = type, .root = root};
    return perform(__func__, comm, MESSAGE_BROADCAST, &arguments);
}

enum psring_status psring_broadcast_start(struct psring *comm, void *data, size_t count,
                                          enum psring_type type, int root,
                                          struct psring_handle **handle)
{
    const struct arguments arguments = {.data = data, .count = count, .type = type, .root = root};
    return start(__func__, comm, MESSAGE_BROADCAST, &arguments, handle);
}

/* A sum that no rank has before every rank has given its part. */
enum psring_status psring_barrier(struct psring *comm)
{
    int32_t nothing = 0;
    const struct arguments arguments = {.data = &nothing, .count = 1, .type = PSRING_INT32};
    return perform(__func__, comm, MESSAGE_BARRIER, &arguments);
}

/* -------- handles ----------------------------------------------------------------------------- */

static enum psring_status check_handle(const char *call, const struct psring_handle *handle)
{
    if (!handle)
        return errors_set(PSRING_ERROR_USAGE, "%s: no handle (NULL)", call);
    return check_process(call, handle->engine);
}

enum psring_status psring_test(struct psring_handle *handle, int *done)
{
    enum psring_status status = check_handle(__func__, handle);
    if (status == PSRING_OK && !done)
        return errors_set(PSRING_ERROR_USAGE, "%s: no place for the answer", __func__);
    if (status == PSRING_OK)
        *done = engine_done(handle);
    return status;
}

enum psring_status psring_wait(struct psring_handle **handle)
{
    enum psring_status status = check_handle(__func__, handle ? *handle : NULL);
    if (status == PSRING_OK) {
        status = engine_wait(*handle);
        *handle = NULL;
    }
    return status;
}
