#include "common/comm/comm_impl.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/clock.h"
#include "common/base/thread.h"

/* A bucket between start and wait. */
struct task {
    float *data;
    bool queued, done;
    enum status status;
};

struct overlap {
    overlap_function *work;
    void *context;
    struct thread thread;
    struct monitor monitor; /* of all that follows; wakes: a task was queued or done, or `ending` */
    struct task *tasks;     /* by bucket */
    size_t *queue;          /* (buckets + 1): buckets to do, a ring buffer */
    size_t buckets, head, length;
    size_t *order;      /* (buckets); NULL: as started */
    size_t next;        /* (with order) which entry of it is done next */
    enum status status; /* the first failure */
    int64_t busy_ns;
    bool ending;
};

/* Whether the bucket that is to be done next has been started. At the end what was not, never will
 * be. */
static bool next_is_started(struct overlap *overlap)
{
    if (overlap->length == 0 || !overlap->order)
        return overlap->length > 0;
    while (overlap->ending && !overlap->tasks[overlap->order[overlap->next]].queued)
        overlap->next = (overlap->next + 1) % overlap->buckets;
    return overlap->tasks[overlap->order[overlap->next]].queued;
}

/* Takes the next task; false at the end. */
static bool next_task(struct overlap *overlap, size_t *bucket)
{
    monitor_enter(&overlap->monitor);
    while (!next_is_started(overlap) && !(overlap->ending && overlap->length == 0))
        monitor_wait(&overlap->monitor);
    bool found = overlap->length > 0;
    if (found) {
        *bucket = overlap->order ? overlap->order[overlap->next] : overlap->queue[overlap->head];
        overlap->tasks[*bucket].queued = false;
        overlap->head = (overlap->head + 1) % (overlap->buckets + 1);
        overlap->next = overlap->order ? (overlap->next + 1) % overlap->buckets : 0;
        overlap->length--;
    }
    monitor_leave(&overlap->monitor);
    return found;
}

static void *run(void *argument)
{
    struct overlap *overlap = argument;
    size_t bucket;
    while (next_task(overlap, &bucket)) {
        struct task *task = &overlap->tasks[bucket];
        int64_t start_ns = clock_now_ns();
        enum status status = overlap->status; /* only this thread writes it */
        if (status == STATUS_OK)
            status = overlap->work(overlap->context, bucket, task->data);
        monitor_enter(&overlap->monitor);
        task->status = overlap->status = status;
        task->done = true;
        overlap->busy_ns += clock_now_ns() - start_ns;
        monitor_wake(&overlap->monitor);
        monitor_leave(&overlap->monitor);
    }
    return NULL;
}

static void free_memory(struct overlap *overlap)
{
    if (!overlap)
        return;
    free(overlap->tasks);
    free(overlap->queue);
    free(overlap->order);
    free(overlap);
}

enum status overlap_new(struct overlap **out, overlap_function *work, void *context, size_t buckets,
                        const size_t *order)
{
    *out = NULL;
    struct overlap *overlap = calloc(1, sizeof *overlap);
    if (overlap) {
        overlap->tasks = calloc(buckets + 1, sizeof *overlap->tasks);
        overlap->queue = calloc(buckets + 1, sizeof *overlap->queue);
        overlap->order = order ? malloc((buckets + 1) * sizeof *order) : NULL;
    }
    if (!overlap || !overlap->tasks || !overlap->queue || (order && !overlap->order)) {
        log_error("comm: no memory for %zu buckets", buckets);
        free_memory(overlap);
        return STATUS_NO_MEMORY;
    }
    if (order)
        memcpy(overlap->order, order, buckets * sizeof *order);
    overlap->work = work;
    overlap->context = context;
    overlap->buckets = buckets;
    monitor_init(&overlap->monitor);
    enum status status = thread_start(&overlap->thread, "psring-comm", run, overlap);
    if (status != STATUS_OK) {
        monitor_fini(&overlap->monitor);
        free_memory(overlap);
        return status;
    }
    *out = overlap;
    return STATUS_OK;
}

void overlap_start(struct overlap *overlap, size_t bucket, float *data)
{
    monitor_enter(&overlap->monitor);
    CHECK(bucket < overlap->buckets && !overlap->tasks[bucket].queued);
    overlap->tasks[bucket] = (struct task){.data = data, .queued = true};
    overlap->queue[(overlap->head + overlap->length++) % (overlap->buckets + 1)] = bucket;
    monitor_wake(&overlap->monitor);
    monitor_leave(&overlap->monitor);
}

enum status overlap_wait(struct overlap *overlap, size_t bucket)
{
    CHECK(bucket < overlap->buckets);
    monitor_enter(&overlap->monitor);
    while (!overlap->tasks[bucket].done)
        monitor_wait(&overlap->monitor);
    enum status status = overlap->tasks[bucket].status;
    monitor_leave(&overlap->monitor);
    return status;
}

int64_t overlap_busy_ns(struct overlap *overlap)
{
    monitor_enter(&overlap->monitor);
    int64_t busy_ns = overlap->busy_ns;
    monitor_leave(&overlap->monitor);
    return busy_ns;
}

void overlap_free(struct overlap **out)
{
    struct overlap *overlap = *out;
    if (!overlap)
        return;
    *out = NULL;
    monitor_enter(&overlap->monitor);
    overlap->ending = true;
    monitor_wake(&overlap->monitor);
    monitor_leave(&overlap->monitor);
    thread_join(&overlap->thread);
    monitor_fini(&overlap->monitor);
    free_memory(overlap);
}
