/* A thread with a name and with all signals masked. The owner of the struct joins it. */
#ifndef PSRING_COMMON_BASE_THREAD_H
#define PSRING_COMMON_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "common/base/status.h"

enum { THREAD_NAME_MAX = 15 }; /* bytes of a name; Linux keeps no more */

/* Zero it before the first start and do not move it. Only its owner uses it, except for `run`,
 * `argument` and `name`, which the new thread reads. */
struct thread {
    pthread_t handle;
    bool running;         /* started and not joined yet */
    void *(*run)(void *); /* the thread begins with these */
    void *argument;
    char name[THREAD_NAME_MAX + 1];
};

/* Starts a thread that runs `run(argument)`. `name` has at most THREAD_NAME_MAX bytes and is shown
 * by ps, top and debuggers: psring-... All signals are masked in the thread, so that the main
 * thread gets them. `thread` must not be running. After an error (logged) it is not running. */
enum status thread_start(struct thread *thread, const char *name, void *(*run)(void *),
                         void *argument);

/* Waits until the thread has returned. Does nothing if it is not running. */
void thread_join(struct thread *thread);

/*
 * A lock, and a signal that the state it guards has changed.
 *
 *     monitor_enter(monitor);
 *     while (!ready)
 *         monitor_wait(monitor);
 *     ...
 *     monitor_leave(monitor);
 *
 * In builds for simulation (experiments/simulate/simulated_thread.c) actors of SimGrid wait in the
 * same way.
 */

struct monitor {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void *actors_lock, *actors_changed; /* replace the two above in a simulation */
};

void monitor_init(struct monitor *monitor);
/* No thread may wait or be inside. */
void monitor_fini(struct monitor *monitor);

void monitor_enter(struct monitor *monitor);
void monitor_leave(struct monitor *monitor);

/* Call inside. Leaves, waits for monitor_wake (or wakes spuriously), and enters again. */
void monitor_wait(struct monitor *monitor);
/* Call inside. Wakes all waiting threads. */
void monitor_wake(struct monitor *monitor);

#endif
