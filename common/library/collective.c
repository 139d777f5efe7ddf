/* The library's collective operations, blocking and by handle. */
#include <stdint.h>
#include <stdlib.h>

#include "common/base/thread.h"
#include "common/comm/bucket.h"
#include "common/library/library.h"

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

/* A gradient in buckets: bookkeeping over operations by handle. */

enum { BUCKET_BYTES = 25 << 20 };

/* One of them, which begins as part of a tensor and ends as part of another. */
struct psring_part {
    struct bucket range;          /* of elements */
    size_t missing;               /* elements that are not ready */
    struct psring_handle *handle; /* started and not waited for */
};

struct psring_buckets {
    struct psring *comm; /* borrowed */
    char *data;          /* borrowed */
    enum psring_type type;
    enum psring_op op;
    size_t element_bytes;
    size_t tensors, *first; /* (tensors + 1): where each begins */
    size_t count;
    /* Any thread may call: what follows is read and written inside the monitor. */
    struct monitor monitor;
    bool *ready; /* (tensors) */
    size_t started;
    struct psring_part *parts; /* (count): the last elements first */
};

/* -------- making ------------------------------------------------------------------------------ */

static void free_memory(struct psring_buckets *buckets)
{
    free(buckets->first);
    free(buckets->ready);
    free(buckets->parts);
    monitor_fini(&buckets->monitor);
    free(buckets);
}

/* Limits in terms of bucket_plan's elements, which are floats. */
static struct bucket_limits limits_of(const struct psring_buckets *buckets, size_t bucket_bytes)
{
    size_t elements = (bucket_bytes > 0 ? bucket_bytes : BUCKET_BYTES) / buckets->element_bytes;
    return (struct bucket_limits){.bytes = (elements > 0 ? elements : 1) * sizeof(float),
                                  .cut = true};
}

static bool cut(struct psring_buckets *buckets, const size_t *counts, size_t bucket_bytes)
{
    const struct bucket_limits limits = limits_of(buckets, bucket_bytes);
    buckets->count = bucket_plan(counts, buckets->tensors, &limits, NULL);
    struct bucket *ranges = calloc(buckets->count, sizeof *ranges);
    buckets->parts = calloc(buckets->count, sizeof *buckets->parts);
    if (ranges && buckets->parts) {
        bucket_plan(counts, buckets->tensors, &limits, ranges);
        for (size_t b = 0; b < buckets->count; b++)
            buckets->parts[b] =
                (struct psring_part){.range = ranges[b], .missing = ranges[b].count};
    }
    bool complete = ranges && buckets->parts;
    free(ranges);
    return complete;
}

enum psring_status psring_buckets_new(struct psring_buckets **out, struct psring *comm, void *data,
                                      const size_t *counts, size_t tensors, size_t bucket_bytes,
                                      enum psring_type type, enum psring_op op)
{
    struct operation operation;
    size_t total = 0;
    if (!out || (!counts && tensors > 0))
        return errors_set(PSRING_ERROR_USAGE, "%s: no %s (NULL)", __func__,
                          out ? "counts" : "place for the buckets");
    *out = NULL;
    for (size_t t = 0; t < tensors; t++) {
        if (counts[t] > SIZE_MAX - total)
            return errors_set(PSRING_ERROR_USAGE, "%s: the counts are too large", __func__);
        total += counts[t];
    }
    const struct arguments arguments = {.data = data, .count = total, .type = type, .op = op};
    enum psring_status status = check_operation(__func__, comm, &arguments, &operation);
    if (status != PSRING_OK)
        return status;
    struct psring_buckets *buckets = calloc(1, sizeof *buckets);
    if (!buckets)
        return errors_set(PSRING_ERROR_NO_MEMORY, "%s: out of memory", __func__);
    *buckets = (struct psring_buckets){.comm = comm,
                                       .data = data,
                                       .type = type,
                                       .op = op,
                                       .element_bytes = message_element_bytes(operation.dtype),
                                       .tensors = tensors};
    monitor_init(&buckets->monitor);
    buckets->first = calloc(tensors + 1, sizeof *buckets->first);
    buckets->ready = calloc(tensors + 1, sizeof *buckets->ready);
    if (!buckets->first || !buckets->ready || !cut(buckets, counts, bucket_bytes)) {
        free_memory(buckets);
        return errors_set(PSRING_ERROR_NO_MEMORY, "%s: no memory for %zu tensors", __func__,
                          tensors);
    }
    for (size_t t = 0; t < tensors; t++)
        buckets->first[t + 1] = buckets->first[t] + counts[t];
    *out = buckets;
    return PSRING_OK;
}

size_t psring_buckets_count(const struct psring_buckets *buckets)
{
    return buckets->count;
}

/* -------- a step ------------------------------------------------------------------------------ */

/* How many of the elements from `first` to before `end` are in the range. */
static size_t overlap(struct bucket range, size_t first, size_t end)
{
    size_t from = range.first > first ? range.first : first;
    size_t range_end = range.first + range.count, to = range_end < end ? range_end : end;
    return from < to ? to - from : 0;
}

/* Inside the monitor, so that all ranks start buckets in the same order. */
static enum psring_status start_complete(struct psring_buckets *buckets)
{
    enum psring_status status = PSRING_OK;
    while (status == PSRING_OK && buckets->started < buckets->count &&
           buckets->parts[buckets->started].missing == 0) {
        struct psring_part *part = &buckets->parts[buckets->started];
        void *data =
            buckets->data ? buckets->data + part->range.first * buckets->element_bytes : NULL;
        status = psring_allreduce_start(buckets->comm, data, part->range.count, buckets->type,
                                        buckets->op, &part->handle);
        if (status == PSRING_OK)
            buckets->started++;
    }
    return status;
}

/* Inside the monitor. */
static enum psring_status mark_ready(const char *call, struct psring_buckets *buckets,
                                     size_t tensor)
{
    if (buckets->ready[tensor])
        return errors_set(PSRING_ERROR_USAGE,
                          "%s: tensor %zu was ready before; psring_buckets_wait ends a step", call,
                          tensor);
    buckets->ready[tensor] = true;
    for (size_t b = 0; b < buckets->count; b++) {
        struct psring_part *part = &buckets->parts[b];
        part->missing -= overlap(part->range, buckets->first[tensor], buckets->first[tensor + 1]);
    }
    return start_complete(buckets);
}

enum psring_status psring_buckets_ready(struct psring_buckets *buckets, size_t tensor)
{
    if (!buckets || tensor >= buckets->tensors)
        return errors_set(PSRING_ERROR_USAGE, "%s: no tensor %zu", __func__, tensor);
    enum psring_status status = check_communicator(__func__, buckets->comm);
    if (status != PSRING_OK) /* a child of fork() might wait for the monitor for ever */
        return status;
    monitor_enter(&buckets->monitor);
    status = mark_ready(__func__, buckets, tensor);
    monitor_leave(&buckets->monitor);
    return status;
}

/* Waits for what has been started; the first error of them. Inside the monitor. */
static enum psring_status wait_for_started(struct psring_buckets *buckets)
{
    enum psring_status first = PSRING_OK;
    for (size_t b = 0; b < buckets->started; b++) {
        enum psring_status status = psring_wait(&buckets->parts[b].handle);
        first = first == PSRING_OK ? status : first;
    }
    return first;
}

/* Inside the monitor. */
static enum psring_status end_step(const char *call, struct psring_buckets *buckets)
{
    for (size_t t = 0; t < buckets->tensors; t++) {
        if (!buckets->ready[t] && buckets->first[t + 1] > buckets->first[t])
            return errors_set(PSRING_ERROR_USAGE,
                              "%s: tensor %zu is not ready; call psring_buckets_ready for it first",
                              call, t);
    }
    enum psring_status started = start_complete(buckets);
    size_t count = buckets->started;
    enum psring_status status = wait_for_started(buckets);
    buckets->started = 0;
    for (size_t b = 0; b < buckets->count; b++)
        buckets->parts[b].missing = buckets->parts[b].range.count;
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
