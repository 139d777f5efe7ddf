/* A thread: with a name, with all signals masked, and joined by whoever owns the struct. */
#ifndef PSRING_COMMON_BASE_THREAD_H
#define PSRING_COMMON_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "common/base/status.h"

enum { THREAD_NAME_MAX = 15 }; /* bytes of a name; Linux keeps no more */

/* Zero it before the first start. It stays where it is, and is its owner's alone, but for what the
 * thread begins with. */
struct thread {
    pthread_t handle;
    bool running;         /* started and not joined yet */
    void *(*run)(void *); /* the thread begins with these */
    void *argument;
    char name[THREAD_NAME_MAX + 1];
};

/* Starts a thread that runs `run(argument)`. `name` is at most THREAD_NAME_MAX bytes long and shows
 * in ps, top and debuggers: psring-... All signals are masked in the thread, so that they reach the
 * main one. Not while `thread` is running. On an error, which is logged, it is not running. */
enum status thread_start(struct thread *thread, const char *name, void *(*run)(void *),
                         void *argument);

/* Waits until the thread has returned. Does nothing if it is not running. */
void thread_join(struct thread *thread);

/*
 * What threads wait for: a lock, and word that what it guards has changed.
 *
 *     monitor_enter(monitor);
 *     while (!ready)
 *         monitor_wait(monitor);
 *     ...
 *     monitor_leave(monitor);
 *
 * In builds for simulation (experiments/simulate/simulated_thread.c) actors of SimGrid wait so.
 */

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
