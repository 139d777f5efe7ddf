/* Replaces common/base/thread.c in builds for simulation. A thread is a SimGrid actor on the host
 * of the thread that starts it. Actors take turns; each runs until it waits in SimGrid. */
#include <simgrid/actor.h>
#include <simgrid/cond.h>
#include <simgrid/host.h>
#include <simgrid/mutex.h>
#include <stdint.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/thread.h"

static void begin(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct thread *thread = sg_actor_self_get_data();
    thread->run(thread->argument);
}

enum status thread_start(struct thread *thread, const char *name, void *(*run)(void *),
                         void *argument)
{
    CHECK(!thread->running && strlen(name) <= THREAD_NAME_MAX);
    thread->run = run;
    thread->argument = argument;
    strcpy(thread->name, name);
    sg_actor_t actor = sg_actor_init(name, sg_host_self());
    sg_actor_ref(actor);
    sg_actor_set_data(actor, thread);
    thread->handle = (pthread_t)(uintptr_t)actor;
    thread->running = true;
    sg_actor_start(actor, begin, 0, NULL);
    return STATUS_OK;
}

void thread_join(struct thread *thread)
{
    if (!thread->running)
        return;
    sg_actor_t actor = (sg_actor_t)(uintptr_t)thread->handle;
    sg_actor_join(actor, -1);
    sg_actor_unref(actor);
    thread->running = false;
}

/* The monitor in builds for simulation. Blocking a kernel thread would block all actors. */

void monitor_init(struct monitor *monitor)
{
    *monitor = (struct monitor){.actors_lock = sg_mutex_init(), .actors_changed = sg_cond_init()};
}

void monitor_fini(struct monitor *monitor)
{
    sg_cond_destroy(monitor->actors_changed);
    sg_mutex_destroy(monitor->actors_lock);
}

void monitor_enter(struct monitor *monitor)
{
    sg_mutex_lock(monitor->actors_lock);
}

void monitor_leave(struct monitor *monitor)
{
    sg_mutex_unlock(monitor->actors_lock);
}

void monitor_wait(struct monitor *monitor)
{
    sg_cond_wait(monitor->actors_changed, monitor->actors_lock);
}

void monitor_wake(struct monitor *monitor)
{
    sg_cond_notify_all(monitor->actors_changed);
}
