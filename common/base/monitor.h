/*
 * What threads wait for: a lock, and word that what it guards has changed.
 *
 *     monitor_enter(monitor);
 *     while (!ready)
 *         monitor_wait(monitor);
 *     ...
 *     monitor_leave(monitor);
 *
 * In builds for simulation (simulated/monitor.c) actors of SimGrid wait so.
 */
#ifndef PSRING_COMMON_BASE_MONITOR_H
#define PSRING_COMMON_BASE_MONITOR_H

#include <pthread.h>

struct monitor {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void *actors_lock, *actors_changed; /* in a simulation, in their place */
};

void monitor_init(struct monitor *monitor);
/* Nobody waits any more, or is inside. */
void monitor_fini(struct monitor *monitor);

void monitor_enter(struct monitor *monitor);
void monitor_leave(struct monitor *monitor);

/* From inside: leaves, waits for monitor_wake, or wakes for no reason, and enters again. */
void monitor_wait(struct monitor *monitor);
/* From inside: wakes all that wait. */
void monitor_wake(struct monitor *monitor);

#endif
