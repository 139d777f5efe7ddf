#include <stddef.h>

#include "common/base/clock.h"
#include "common/comm/comm_parts.h"

void overlap_init(struct overlap *overlap, overlap_function *work, void *context)
{
    *overlap = (struct overlap){.work = work, .context = context};
    overlap->queue_end = &overlap->queue;
    monitor_init(&overlap->monitor);
}

/* Waits until no thread uses the connections and the queue is empty. Inside the monitor. */
static void wait_for_turn(struct overlap *overlap)
{
    while (overlap->busy || overlap->queue)
        monitor_wait(&overlap->monitor);
}

/* Inside the monitor; leaves it during the task. */
static void do_task(struct overlap *overlap, struct overlap_task *task)
{
    enum status status = overlap->status; /* only the busy thread writes it */
    int64_t start_ns = clock_now_ns();
    overlap->busy = true;
    monitor_leave(&overlap->monitor);
    if (status == STATUS_OK)
        status = overlap->work(overlap->context, task);
    monitor_enter(&overlap->monitor);
    task->status = overlap->status = status;
    task->done = true;
    overlap->busy = false;
    overlap->ended++;
    overlap->busy_ns += clock_now_ns() - start_ns;
    monitor_wake(&overlap->monitor);
}

static void *run_queue(void *argument)
{
    struct overlap *overlap = argument;
    monitor_enter(&overlap->monitor);
    while (overlap->queue || !overlap->ending) {
        struct overlap_task *task = overlap->queue;
        if (!task || overlap->busy) {
            monitor_wait(&overlap->monitor);
            continue;
        }
        overlap->queue = task->next;
        if (!overlap->queue)
            overlap->queue_end = &overlap->queue;
        do_task(overlap, task);
    }
    monitor_leave(&overlap->monitor);
    return NULL;
}

enum status overlap_begin(struct overlap *overlap, const char *name)
{
    enum status status = STATUS_OK;
    monitor_enter(&overlap->monitor);
    if (!overlap->thread.running)
        status = thread_start(&overlap->thread, name, run_queue, overlap);
    monitor_leave(&overlap->monitor);
    return status;
}

enum status overlap_run(struct overlap *overlap, struct overlap_task *task)
{
    monitor_enter(&overlap->monitor);
    wait_for_turn(overlap);
    do_task(overlap, task);
    monitor_leave(&overlap->monitor);
    return task->status;
}

enum status overlap_start(struct overlap *overlap, struct overlap_task *task)
{
    *task = (struct overlap_task){0};
    monitor_enter(&overlap->monitor);
    bool threaded = overlap->thread.running;
    if (threaded) {
        *overlap->queue_end = task;
        overlap->queue_end = &task->next;
        monitor_wake(&overlap->monitor);
    }
    monitor_leave(&overlap->monitor);
    return threaded ? STATUS_OK : overlap_run(overlap, task);
}

bool overlap_done(struct overlap *overlap, const struct overlap_task *task)
{
    monitor_enter(&overlap->monitor);
    bool done = task->done;
    monitor_leave(&overlap->monitor);
    return done;
}

enum status overlap_wait(struct overlap *overlap, const struct overlap_task *task)
{
    monitor_enter(&overlap->monitor);
    while (!task->done)
        monitor_wait(&overlap->monitor);
    monitor_leave(&overlap->monitor);
    return task->status;
}

void overlap_take(struct overlap *overlap)
{
    monitor_enter(&overlap->monitor);
    wait_for_turn(overlap);
    overlap->busy = true;
    monitor_leave(&overlap->monitor);
}

void overlap_leave(struct overlap *overlap)
{
    monitor_enter(&overlap->monitor);
    overlap->busy = false;
    monitor_wake(&overlap->monitor);
    monitor_leave(&overlap->monitor);
}

int64_t overlap_busy_ns(struct overlap *overlap)
{
    monitor_enter(&overlap->monitor);
    int64_t busy_ns = overlap->busy_ns;
    monitor_leave(&overlap->monitor);
    return busy_ns;
}

void overlap_end(struct overlap *overlap)
{
    if (!overlap->work)
        return;
    monitor_enter(&overlap->monitor);
    overlap->ending = true;
    monitor_wake(&overlap->monitor);
    monitor_leave(&overlap->monitor);
    thread_join(&overlap->thread);
}

void overlap_fini(struct overlap *overlap)
{
    overlap_end(overlap);
    if (overlap->work)
        monitor_fini(&overlap->monitor);
    *overlap = (struct overlap){0};
}
