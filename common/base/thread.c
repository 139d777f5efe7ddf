#include "common/base/thread.h"

#include <signal.h>
#include <string.h>

#include "common/base/status.h"

/* The thread sets its name before it calls `run`, which may ask for the name. */
static void *begin(void *argument)
{
    const struct thread *thread = argument;
    pthread_setname_np(pthread_self(), thread->name);
    return thread->run(thread->argument);
}

enum status thread_start(struct thread *thread, const char *name, void *(*run)(void *),
                         void *argument)
{
    CHECK(!thread->running && strlen(name) <= THREAD_NAME_MAX);
    /* A new thread inherits its creator's mask. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread->run = run;
    thread->argument = argument;
    /* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.strcpy): the length is checked above */
    strcpy(thread->name, name);
    int error = pthread_create(&thread->handle, NULL, begin, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return FAIL(status_from_errno(error),
                    "the thread %s cannot be started: %s; raise the limit of processes (ulimit -u)",
                    name, strerror(error));
    thread->running = true;
    return STATUS_OK;
}

void thread_join(struct thread *thread)
{
    if (!thread->running)
        return;
    pthread_join(thread->handle, NULL);
    thread->running = false;
}

void monitor_init(struct monitor *monitor)
{
    *monitor = (struct monitor){0};
    pthread_mutex_init(&monitor->lock, NULL);
    pthread_cond_init(&monitor->changed, NULL);
}

void monitor_fini(struct monitor *monitor)
{
    pthread_cond_destroy(&monitor->changed);
    pthread_mutex_destroy(&monitor->lock);
}

void monitor_enter(struct monitor *monitor)
{
    pthread_mutex_lock(&monitor->lock);
}

void monitor_leave(struct monitor *monitor)
{
    pthread_mutex_unlock(&monitor->lock);
}

void monitor_wait(struct monitor *monitor)
{
    pthread_cond_wait(&monitor->changed, &monitor->lock);
}

void monitor_wake(struct monitor *monitor)
{
    pthread_cond_broadcast(&monitor->changed);
}
