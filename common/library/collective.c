/* The library's collective operations, blocking and by handle, and a gradient in buckets. */
#include <stdint.h>
#include <stdlib.h>

#include "common/base/util.h"
#include "common/comm/bucket.h"
#include "common/library/library.h"

/* Checks the caller's arguments. If `data` is (size, count), sets count to that of all blocks. */
static enum psring_status check_operation(const char *call, const struct psring *comm,
                                          struct operation *operation)
{
    enum psring_status status = check_communicator(call, comm);
    if (status != PSRING_OK)
        return status;
    size_t count = operation->count, size = (size_t)comm->group->size;
    bool blocks =
        operation->what == MESSAGE_REDUCE_SCATTER || operation->what == MESSAGE_ALL_GATHER;
    if ((unsigned)operation->type > PSRING_INT64)
        return errors_set(PSRING_ERROR_USAGE, "%s: %u is no type", call, (unsigned)operation->type);
    if ((unsigned)operation->op > PSRING_MAX)
        return errors_set(PSRING_ERROR_USAGE, "%s: %u is no operation", call,
                          (unsigned)operation->op);
    if (operation->root < 0 || operation->root >= comm->group->size)
        return errors_set(PSRING_ERROR_USAGE, "%s: root %d, expected 0 to %d", call,
                          operation->root, comm->group->size - 1);
    size_t element_bytes = operation_element_bytes(operation->type);
    operation->count *= blocks ? size : 1;
    if (count > SIZE_MAX / 2 / element_bytes / (blocks ? size : 1))
        return errors_set(PSRING_ERROR_USAGE, "%s: %zu elements are more than memory can hold",
                          call, count);
    if (!operation->data && count > 0)
        return errors_set(PSRING_ERROR_USAGE, "%s: no data (NULL) for %zu elements", call, count);
    if ((uintptr_t)operation->data % element_bytes != 0)
        return errors_set(PSRING_ERROR_USAGE,
                          "%s: data is not aligned to its elements of %zu bytes", call,
                          element_bytes);
    return PSRING_OK;
}

/* Runs an operation on the calling thread. */
static enum psring_status run_checked(struct psring *comm, const struct operation *operation)
{
    struct engine *engine = comm->engine;
    struct psring_handle call = {.comm = comm, .operation = *operation};
    return errors_explain(overlap_run(&engine->overlap, &call.task), engine->why);
}

static enum psring_status run(const char *call, struct psring *comm, struct operation operation)
{
    enum psring_status status = check_operation(call, comm, &operation);
    return status == PSRING_OK ? run_checked(comm, &operation) : status;
}

/* Without a thread, operations run in start: an error of this rank alone would leave the others
 * waiting. */
static void begin_thread(struct engine *engine)
{
    char why[ERROR_BYTES];
    bool may = engine->place.options.transport != TRANSPORT_MPI || engine->world->concurrent;
    if (!may || overlap_begin(&engine->overlap, "psring-library") == STATUS_OK)
        return;
    errors_take(why);
    if (!atomic_exchange(&engine->warned, true))
        log_warn("%s; an operation by handle runs in the call that starts it instead", why);
}

/* Starts an operation. The engine owns its handle until psring_wait. */
static enum psring_status start(const char *call, struct psring *comm, struct operation operation,
                                struct psring_handle **out)
{
    if (!out)
        return errors_set(PSRING_ERROR_USAGE, "%s: handle is NULL", call);
    *out = NULL;
    enum psring_status checked = check_operation(call, comm, &operation);
    if (checked != PSRING_OK)
        return checked;
    struct engine *engine = comm->engine;
    struct psring_handle *handle = calloc(1, sizeof *handle);
    if (!handle) /* the other ranks must not wait for this one */
        return run_checked(comm, &(struct operation){.what = MESSAGE_NO_CALL});
    *handle = (struct psring_handle){.engine = engine, .comm = comm, .operation = operation};
    begin_thread(engine);
    monitor_enter(&engine->overlap.monitor);
    handle->next = engine->handles;
    handle->previous = &engine->handles;
    if (handle->next)
        handle->next->previous = &handle->next;
    engine->handles = handle;
    monitor_leave(&engine->overlap.monitor);
    (void)overlap_start(&engine->overlap, &handle->task); /* psring_wait returns the status */
    *out = handle;
    return PSRING_OK;
}

/* -------- the operations ---------------------------------------------------------------------- */

static struct operation reduction(enum message_what what, void *data, size_t count,
                                  enum psring_type type, enum psring_op op)
{
    return (struct operation){.what = what, .data = data, .count = count, .type = type, .op = op};
}

static struct operation broadcast(void *data, size_t count, enum psring_type type, int root)
{
    return (struct operation){
        .what = MESSAGE_BROADCAST, .data = data, .count = count, .type = type, .root = root};
}

enum psring_status psring_allreduce(struct psring *comm, void *data, size_t count,
                                    enum psring_type type, enum psring_op op)
{
    return run(__func__, comm, reduction(MESSAGE_ALLREDUCE, data, count, type, op));
}

enum psring_status psring_allreduce_start(struct psring *comm, void *data, size_t count,
                                          enum psring_type type, enum psring_op op,
                                          struct psring_handle **handle)
{
    return start(__func__, comm, reduction(MESSAGE_ALLREDUCE, data, count, type, op), handle);
}

enum psring_status psring_reduce_scatter(struct psring *comm, void *data, size_t count,
                                         enum psring_type type, enum psring_op op)
{
    return run(__func__, comm, reduction(MESSAGE_REDUCE_SCATTER, data, count, type, op));
}

enum psring_status psring_reduce_scatter_start(struct psring *comm, void *data, size_t count,
                                               enum psring_type type, enum psring_op op,
                                               struct psring_handle **handle)
{
    return start(__func__, comm, reduction(MESSAGE_REDUCE_SCATTER, data, count, type, op), handle);
}

enum psring_status psring_all_gather(struct psring *comm, void *data, size_t count,
                                     enum psring_type type)
{
    return run(__func__, comm, reduction(MESSAGE_ALL_GATHER, data, count, type, PSRING_SUM));
}

enum psring_status psring_all_gather_start(struct psring *comm, void *data, size_t count,
                                           enum psring_type type, struct psring_handle **handle)
{
    return start(__func__, comm, reduction(MESSAGE_ALL_GATHER, data, count, type, PSRING_SUM),
                 handle);
}

enum psring_status psring_broadcast(struct psring *comm, void *data, size_t count,
                                    enum psring_type type, int root)
{
    return run(__func__, comm, broadcast(data, count, type, root));
}

enum psring_status psring_broadcast_start(struct psring *comm, void *data, size_t count,
                                          enum psring_type type, int root,
                                          struct psring_handle **handle)
{
    return start(__func__, comm, broadcast(data, count, type, root), handle);
}

/* A sum: no rank has it before every rank has contributed. */
enum psring_status psring_barrier(struct psring *comm)
{
    int32_t nothing = 0;
    return run(__func__, comm, reduction(MESSAGE_BARRIER, &nothing, 1, PSRING_INT32, PSRING_SUM));
}

enum psring_status psring_split(struct psring *world, int color, struct psring **group)
{
    enum psring_status status = check_world(__func__, world);
    if (!group)
        return errors_set(PSRING_ERROR_USAGE, "psring_split: group is NULL");
    *group = NULL;
    if (status != PSRING_OK)
        return status;
    size_t size = (size_t)world->group->size;
    int *colors = calloc(size, sizeof *colors); /* operation_run reports a failed allocation */
    struct operation split = reduction(MESSAGE_SPLIT, colors, size, PSRING_INT32, PSRING_SUM);
    split.group = group;
    if (colors)
        colors[world->group->rank] = color;
    status = run_checked(world, &split);
    free(colors);
    return status;
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
        return errors_set(PSRING_ERROR_USAGE, "%s: done is NULL", __func__);
    if (status == PSRING_OK)
        *done = overlap_done(&handle->engine->overlap, &handle->task);
    return status;
}

enum psring_status psring_wait(struct psring_handle **out)
{
    struct psring_handle *handle = out ? *out : NULL;
    enum psring_status status = check_handle(__func__, handle);
    if (status != PSRING_OK)
        return status;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): check_handle refuses NULL */
    struct engine *engine = handle->engine;
    status = errors_explain(overlap_wait(&engine->overlap, &handle->task), engine->why);
    monitor_enter(&engine->overlap.monitor);
    *handle->previous = handle->next;
    if (handle->next)
        handle->next->previous = handle->previous;
    monitor_leave(&engine->overlap.monitor);
    free(handle);
    *out = NULL;
    return status;
}

/* -------- a gradient in buckets ----------------------------------------------------------------
 *
 * Bookkeeping for operations by handle. The first bucket has the last elements, because a backward
 * pass computes these first. The buckets thus become complete one after the other. */

enum { BUCKET_BYTES = 25 << 20 };

struct psring_buckets {
    struct psring *comm; /* borrowed */
    char *data;          /* borrowed */
    enum psring_type type;
    enum psring_op op;
    size_t element_bytes;
    size_t tensors, *first; /* (tensors + 1): index of each tensor's first element */
    size_t count;
    struct bucket *ranges; /* (count): the buckets' elements; the last elements first */
    /* Any thread may call. The members below are read and written inside the monitor. */
    struct monitor monitor;
    bool *ready;                    /* (tensors) */
    size_t complete;                /* all tensors from this one on are ready or empty */
    size_t started;                 /* number of buckets */
    struct psring_handle **handles; /* (count): of the started buckets */
};

static void free_memory(struct psring_buckets *buckets)
{
    free(buckets->first);
    free(buckets->ready);
    free(buckets->ranges);
    free(buckets->handles);
    monitor_fini(&buckets->monitor);
    free(buckets);
}

/* Returns false if out of memory. */
static bool cut(struct psring_buckets *buckets, const size_t *counts, size_t bucket_bytes)
{
    size_t tensors = buckets->tensors, element_bytes = buckets->element_bytes;
    size_t elements = (bucket_bytes > 0 ? bucket_bytes : BUCKET_BYTES) / element_bytes;
    const struct bucket_limits limits = {.bytes = size_larger(elements, 1) * element_bytes,
                                         .cut = true,
                                         .element_bytes = element_bytes};
    buckets->count = bucket_plan(counts, tensors, &limits, NULL);
    buckets->first = calloc(tensors + 1, sizeof *buckets->first);
    buckets->ready = calloc(tensors + 1, sizeof *buckets->ready);
    buckets->ranges = calloc(buckets->count, sizeof *buckets->ranges);
    buckets->handles = calloc(buckets->count, sizeof(struct psring_handle *));
    if (!buckets->first || !buckets->ready || !buckets->ranges || !buckets->handles)
        return false;
    bucket_plan(counts, tensors, &limits, buckets->ranges);
    for (size_t t = 0; t < tensors; t++)
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): psring_buckets_new refuses NULL */
        buckets->first[t + 1] = buckets->first[t] + counts[t];
    buckets->complete = tensors;
    return true;
}

enum psring_status psring_buckets_new(struct psring_buckets **out, struct psring *comm, void *data,
                                      const size_t *counts, size_t tensors, size_t bucket_bytes,
                                      enum psring_type type, enum psring_op op)
{
    size_t total = 0;
    if (!out || (!counts && tensors > 0))
        return errors_set(PSRING_ERROR_USAGE, "%s: %s is NULL", __func__,
                          out ? "counts" : "buckets");
    *out = NULL;
    for (size_t t = 0; t < tensors; t++) {
        if (counts[t] > SIZE_MAX - total)
            return errors_set(PSRING_ERROR_USAGE, "%s: the counts are too large", __func__);
        total += counts[t];
    }
    struct operation whole = reduction(MESSAGE_ALLREDUCE, data, total, type, op);
    enum psring_status status = check_operation(__func__, comm, &whole);
    if (status != PSRING_OK)
        return status;
    struct psring_buckets *buckets = calloc(1, sizeof *buckets);
    if (!buckets)
        return errors_set(PSRING_ERROR_NO_MEMORY, "%s: out of memory", __func__);
    *buckets = (struct psring_buckets){.comm = comm,
                                       .data = data,
                                       .type = type,
                                       .op = op,
                                       .element_bytes = operation_element_bytes(type),
                                       .tensors = tensors};
    monitor_init(&buckets->monitor);
    if (!cut(buckets, counts, bucket_bytes)) {
        free_memory(buckets);
        return errors_set(PSRING_ERROR_NO_MEMORY, "%s: no memory for %zu tensors", __func__,
                          tensors);
    }
    *out = buckets;
    return PSRING_OK;
}

size_t psring_buckets_count(const struct psring_buckets *buckets)
{
    return buckets->count;
}

/* -------- a step ------------------------------------------------------------------------------ */

static bool is_empty(const struct psring_buckets *buckets, size_t tensor)
{
    return buckets->first[tensor] == buckets->first[tensor + 1];
}

/* Inside the monitor, so that all ranks start buckets in the same order. */
static enum psring_status start_complete(struct psring_buckets *buckets)
{
    enum psring_status status = PSRING_OK;
    size_t *tensor = &buckets->complete, *b = &buckets->started;
    while (*tensor > 0 && (buckets->ready[*tensor - 1] || is_empty(buckets, *tensor - 1)))
        --*tensor;
    while (status == PSRING_OK && *b < buckets->count &&
           buckets->ranges[*b].first >= buckets->first[*tensor]) {
        const struct bucket *range = &buckets->ranges[*b];
        void *data = buckets->data ? buckets->data + range->first * buckets->element_bytes : NULL;
        status = psring_allreduce_start(buckets->comm, data, range->count, buckets->type,
                                        buckets->op, &buckets->handles[*b]);
        *b += status == PSRING_OK;
    }
    return status;
}

enum psring_status psring_buckets_ready(struct psring_buckets *buckets, size_t tensor)
{
    if (!buckets || tensor >= buckets->tensors)
        return errors_set(PSRING_ERROR_USAGE, "%s: no tensor %zu", __func__, tensor);
    enum psring_status status = check_communicator(__func__, buckets->comm);
    if (status != PSRING_OK) /* a child of fork() could wait for the monitor for ever */
        return status;
    monitor_enter(&buckets->monitor);
    if (buckets->ready[tensor])
        status =
            errors_set(PSRING_ERROR_USAGE,
                       "%s: tensor %zu is already ready; call psring_buckets_wait to end the step",
                       __func__, tensor);
    else
        buckets->ready[tensor] = true;
    if (status == PSRING_OK)
        status = start_complete(buckets);
    monitor_leave(&buckets->monitor);
    return status;
}

/* Waits for the started buckets and returns their first error. Inside the monitor. */
static enum psring_status wait_for_started(struct psring_buckets *buckets)
{
    enum psring_status first = PSRING_OK;
    for (size_t b = 0; b < buckets->started; b++) {
        enum psring_status status = psring_wait(&buckets->handles[b]);
        first = first == PSRING_OK ? status : first;
    }
    buckets->started = 0;
    return first;
}

/* Inside the monitor. */
static enum psring_status end_step(const char *call, struct psring_buckets *buckets)
{
    for (size_t t = 0; t < buckets->tensors; t++) {
        if (!buckets->ready[t] && !is_empty(buckets, t))
            return errors_set(PSRING_ERROR_USAGE,
                              "%s: tensor %zu is not ready; call psring_buckets_ready for it first",
                              call, t);
    }
    enum psring_status started = start_complete(buckets);
    size_t count = buckets->started;
    enum psring_status status = wait_for_started(buckets);
    buckets->complete = buckets->tensors;
    for (size_t t = 0; t < buckets->tensors; t++)
        buckets->ready[t] = false;
    if (started == PSRING_OK && status == PSRING_OK && count < buckets->count)
        return errors_set(PSRING_ERROR_STATE, "%s: %zu of %zu buckets were started", call, count,
                          buckets->count);
    return started != PSRING_OK ? started : status;
}

enum psring_status psring_buckets_wait(struct psring_buckets *buckets)
{
    if (!buckets)
        return errors_set(PSRING_ERROR_USAGE, "%s: no buckets (NULL)", __func__);
    enum psring_status status = check_communicator(__func__, buckets->comm);
    if (status != PSRING_OK)
        return status;
    monitor_enter(&buckets->monitor);
    status = end_step(__func__, buckets);
    monitor_leave(&buckets->monitor);
    return status;
}

void psring_buckets_free(struct psring_buckets **buckets)
{
    if (!buckets || !*buckets)
        return;
    if (check_communicator(__func__, (*buckets)->comm) == PSRING_OK)
        (void)wait_for_started(*buckets);
    free_memory(*buckets);
    *buckets = NULL;
}
