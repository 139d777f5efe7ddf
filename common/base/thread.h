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

#endif
