/* Threads: the name, the masked signals, and joining a thread that was never started. */
#include <criterion/criterion.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>

#include "common/base/status.h"
#include "common/base/thread.h"

struct probe {
    sem_t go;
    char name[THREAD_NAME_MAX + 1];
    sigset_t masked;
    int runs;
};

/* Replaces the real function (see tests/CMakeLists.txt). */
static bool refuse;
int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *handle, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument)
{
    return refuse ? EAGAIN : __real_pthread_create(handle, attributes, function, argument);
}

static void *run(void *argument)
{
    struct probe *probe = argument;
    pthread_getname_np(pthread_self(), probe->name, sizeof probe->name);
    while (sem_wait(&probe->go) != 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, NULL, &probe->masked);
    probe->runs++;
    return NULL;
}

Test(thread, is_named_and_leaves_signals_to_the_main_thread)
{
    struct probe probe = {.runs = 0};
    struct thread thread = {.running = false};
    sigset_t before, after;
    sem_init(&probe.go, 0, 0);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    cr_assert_eq(thread_start(&thread, "psring-15-bytes", run, &probe), STATUS_OK);
    cr_expect(thread.running);
    sem_post(&probe.go);
    thread_join(&thread);
    cr_expect(!thread.running);
    cr_expect_eq(probe.runs, 1);
    cr_expect_str_eq(probe.name, "psring-15-bytes"); /* set before the function runs */
    const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        cr_expect_eq(sigismember(&probe.masked, signals[i]), 1, "signal %d", signals[i]);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int signal = 1; signal < NSIG; signal++)
        cr_expect_eq(sigismember(&before, signal), sigismember(&after, signal),
                     "the caller's mask of signal %d must not change", signal);
    sem_destroy(&probe.go);
}

Test(thread, is_joined_once_and_can_be_started_again)
{
    struct probe probe = {.runs = 0};
    struct thread thread = {.running = false};
    sem_init(&probe.go, 0, 2);
    thread_join(&thread); /* never started */
    for (int round = 1; round <= 2; round++) {
        cr_assert_eq(thread_start(&thread, "psring-test", run, &probe), STATUS_OK);
        thread_join(&thread);
        thread_join(&thread);
        cr_expect_eq(probe.runs, round);
    }
    sem_destroy(&probe.go);
}

Test(thread, says_when_it_cannot_be_started)
{
    struct probe probe = {.runs = 0};
    struct thread thread = {.running = false};
    log_set_level(LOG_SILENT);
    refuse = true;
    cr_expect_eq(thread_start(&thread, "psring-test", run, &probe), STATUS_IO);
    cr_expect(!thread.running);
    thread_join(&thread);
    cr_expect_eq(probe.runs, 0);
}
