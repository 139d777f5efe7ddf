/* In place of ../monitor.c in builds for simulation: what stops a thread of the kernel there would
 * stop all actors. */
#include "common/base/monitor.h"

#include <simgrid/cond.h>
#include <simgrid/mutex.h>

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
