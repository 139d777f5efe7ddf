#include "tests/lib/spawn.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/net/address.h"
#include "common/net/control.h"

enum { LIMIT_MS = 120000, LONG_LIMIT_MS = 3600000, STARTUP_TIMEOUT_MS = 60000 };

struct rank_thread {
    struct spawned *all;
    int rank, listening; /* rank 0: the socket of the rendezvous; the world takes it */
    bool returned;
    pthread_t thread;
};

/* On the heap, because ranks may still run after a failure. */
struct spawned {
    pthread_mutex_t lock; /* guards `running`, `failure`, and each rank's `returned` */
    pthread_cond_t changed;
    int ranks, running;
    char failure[SPAWN_TEXT_BYTES]; /* the first failure; empty: none */
    char address[64];
    spawn_function *function;
    void *context;
    struct rank_thread threads[SPAWN_RANKS_MOST];
};

static struct spawned *_Atomic current;             /* NULL: the main thread is the only rank */
static _Thread_local const struct rank_thread *own; /* NULL: a thread that a rank has started */

/* -------- failing ----------------------------------------------------------------------------- */

/* A thread of the library cannot end in the middle of its work, but it must not continue. */
static _Noreturn void end_thread(void)
{
    if (own)
        pthread_exit(NULL);
    for (;;)
        clock_sleep_until_ns(clock_now_ns() + NS_PER_S);
}

void rank_fail(const char *file, int line, const char *condition, const char *format, ...)
{
    struct spawned *all = atomic_load(&current);
    char text[SPAWN_TEXT_BYTES];
    struct line said = line_in(text, sizeof text);
    va_list arguments;
    if (own)
        line_add(&said, "rank %d of %d: ", own->rank, own->all->ranks);
    else if (all)
        line_add(&said, "a thread of %d ranks: ", all->ranks);
    line_add(&said, "%s:%d: expected %s:", file, line, condition);
    size_t used = strlen(text);
    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - used, format, arguments);
    va_end(arguments);
    if (!all) {
        cr_assert_fail("%s", text);
        abort();
    }
    pthread_mutex_lock(&all->lock);
    if (all->failure[0] == '\0')
        memcpy(all->failure, text, sizeof text);
    pthread_cond_signal(&all->changed);
    pthread_mutex_unlock(&all->lock);
    end_thread();
}

/* -------- a rank ------------------------------------------------------------------------------ */

static void *run_rank(void *argument)
{
    struct rank_thread *rank = argument;
    struct spawned *all = rank->all;
    struct world *world = NULL;
    const struct world_options options = {.startup_timeout_ms = STARTUP_TIMEOUT_MS,
                                          .rendezvous = all->address,
                                          .rank = rank->rank,
                                          .size = all->ranks,
                                          .listening = rank->listening};
    own = rank;
    rank_assert_ok(world_open(&world, NULL, NULL, &options));
    all->function(world, all->context);
    world_close(&world);
    pthread_mutex_lock(&all->lock);
    rank->returned = true;
    all->running--;
    pthread_cond_signal(&all->changed);
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* The kernel chooses the port; the socket listens before any rank calls. */
static int listen_for_ranks(char *address, size_t size)
{
    union address at = address_loopback();
    int listening;
    cr_assert_eq(stream_listen(&at, &listening), 0);
    cr_assert_eq(address_of_socket(listening, &at), 0);
    snprintf(address, size, "tcp://127.0.0.1:%d", address_port(&at));
    return listening;
}

static struct spawned *start(int ranks, spawn_function *function, void *context)
{
    struct spawned *all = calloc(1, sizeof *all);
    pthread_condattr_t attributes;
    cr_assert(all && ranks >= 1 && ranks <= SPAWN_RANKS_MOST);
    /* ThreadSanitizer has a separate allocator, so glibc's is not initialized. Ranks whose
     * ZeroMQ transports call mallopt at the same time would initialize it twice, and glibc aborts.
     */
    mallopt(M_PERTURB, 0);
    all->ranks = all->running = ranks;
    all->function = function;
    all->context = context;
    pthread_mutex_init(&all->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&all->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    atomic_store(&current, all);
    for (int rank = 0; rank < ranks; rank++)
        all->threads[rank] = (struct rank_thread){.all = all, .rank = rank};
    all->threads[0].listening = listen_for_ranks(all->address, sizeof all->address);
    for (int rank = 0; rank < ranks; rank++) {
        struct rank_thread *one = &all->threads[rank];
        cr_assert_eq(pthread_create(&one->thread, NULL, run_rank, one), 0);
    }
    return all;
}

/* -------- all ranks --------------------------------------------------------------------------- */

/* Returns when all ranks have returned, one has failed, or the time is over. */
static void await(struct spawned *all, int64_t limit_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += limit_ms / 1000;
    until.tv_nsec += limit_ms % 1000 * NS_PER_MS;
    if (until.tv_nsec >= NS_PER_S) {
        until.tv_nsec -= NS_PER_S;
        until.tv_sec++;
    }
    int error = 0;
    while (all->running > 0 && all->failure[0] == '\0' && error == 0)
        error = pthread_cond_timedwait(&all->changed, &all->lock, &until);
}

static void describe(const struct spawned *all, int64_t limit_ms, char failure[SPAWN_TEXT_BYTES])
{
    struct line said = line_in(failure, SPAWN_TEXT_BYTES);
    line_add(&said, "%s", all->failure);
    if (all->failure[0] == '\0')
        line_add(&said, "%d ranks: after %g s", all->ranks, (double)limit_ms / 1000);
    line_add(&said, "; not returned:");
    for (int rank = 0; rank < all->ranks; rank++) {
        if (!all->threads[rank].returned)
            line_add(&said, " %d", rank);
    }
}

bool spawn_try(int ranks, spawn_function *function, void *context, int64_t limit_ms,
               char failure[SPAWN_TEXT_BYTES])
{
    struct spawned *all = start(ranks, function, context);
    pthread_mutex_lock(&all->lock);
    await(all, limit_ms);
    bool passed = all->running == 0 && all->failure[0] == '\0';
    if (!passed)
        describe(all, limit_ms, failure);
    pthread_mutex_unlock(&all->lock);
    for (int rank = 0; rank < ranks; rank++) {
        if (passed)
            pthread_join(all->threads[rank].thread, NULL);
        else
            pthread_detach(all->threads[rank].thread);
    }
    if (!passed)
        return false; /* `all` stays allocated and current: ranks use it */
    atomic_store(&current, NULL);
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->lock);
    free(all);
    return true;
}

void spawn(int ranks, spawn_function *function, void *context)
{
    char failure[SPAWN_TEXT_BYTES];
    int64_t limit_ms = spawn_is_long() ? LONG_LIMIT_MS : LIMIT_MS;
    bool passed = spawn_try(ranks, function, context, limit_ms, failure);
    if (passed)
        return;
    cr_expect_fail("%s", failure);
    fflush(NULL);
    _exit(EXIT_FAILURE); /* ranks that still run use the caller's stack */
}

bool spawn_is_long(void)
{
    const char *asked = getenv("PSRING_TEST_LONG");
    return asked && strcmp(asked, "1") == 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

void spawn_sizes(int least, int most, spawn_function *function, void *context)
{
    for (int ranks = least; ranks <= most; ranks++) {
        bool in_short = ranks <= 4 || (!is_sanitized && (ranks == 5 || ranks == 8));
        if (in_short || spawn_is_long())
            spawn(ranks, function, context);
    }
}
