/*
 * What this process is doing, and which ranks it waits for: written by its threads as they go on,
 * read by the watchdog (common/net/watchdog.h), which tells it to rank 0. Each thread that
 * can wait has a state of its own, which it alone writes.
 *
 * Cost: relaxed stores, no clock and no text. A pointer of NULL (a program without a watchdog) is
 * allowed everywhere, and does nothing.
 */
#ifndef PSRING_COMMON_NET_ACTIVITY_H
#define PSRING_COMMON_NET_ACTIVITY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum activity_kind {
    ACTIVITY_START,      /* from the first line of main */
    ACTIVITY_MEET,       /* joining the other ranks */
    ACTIVITY_SET_UP,     /* opening its files, device, model */
    ACTIVITY_CONNECT,    /* to the other ranks, for the gradients */
    ACTIVITY_COLLECTIVE, /* a barrier, a gathering of results: of all ranks */
    ACTIVITY_COMPUTE,    /* step */
    ACTIVITY_MEASURE,    /* step: the repetition */
    ACTIVITY_AVERAGE,    /* step, bucket */
    ACTIVITY_SERVE,
    ACTIVITY_TEST,       /* step */
    ACTIVITY_CHECKPOINT, /* step */
    ACTIVITY_FINISH,
    ACTIVITY_KINDS
};

/* MAIN: the caller's. WORKER: whichever owns a worker's transport. SERVER: a server's. */
enum activity_thread { ACTIVITY_MAIN, ACTIVITY_WORKER, ACTIVITY_SERVER, ACTIVITY_THREADS };

#define ACTIVITY_NOBODY (-1)
#define ACTIVITY_NO_OFFSET UINT64_MAX
#define ACTIVITY_SENDS (UINT64_MAX - 1) /* in place of an offset: it is to take what was sent */

struct activity_state {
    _Atomic uint64_t moves; /* another number whenever this thread has come on */
    _Atomic uint32_t kind;
    _Atomic uint32_t bucket;
    _Atomic uint64_t step;
    _Atomic uint64_t offset; /* of the awaited message, in bytes; or ACTIVITY_NO_OFFSET */
    /* Ranks, one or more of which it waits for; first == ACTIVITY_NOBODY: it does not wait. */
    _Atomic int32_t first, last;
};

struct activity {
    struct activity_state threads[ACTIVITY_THREADS];
    _Atomic bool started; /* start-up, with its longer time-out, is over */
    _Atomic int failed;   /* an error has been met: the exit code; 0: none */
};

/* All threads: starting, waiting for nobody. */
void activity_init(struct activity *activity);

static inline void activity_moved(struct activity *activity, enum activity_thread thread)
{
    if (!activity)
        return;
    _Atomic uint64_t *moves = &activity->threads[thread].moves;
    atomic_store_explicit(moves, atomic_load_explicit(moves, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* From now on the thread does this; it waits for nobody. */
void activity_set(struct activity *activity, enum activity_thread thread, enum activity_kind kind,
                  uint64_t step, uint32_t bucket);

/* The thread waits for a rank between `first` and `last`, until activity_moved says that something
 * has come, or activity_go_on that the wait is over. */
void activity_wait(struct activity *activity, enum activity_thread thread, int first, int last,
                   uint64_t offset);
void activity_go_on(struct activity *activity, enum activity_thread thread);

/* From here on waits are bounded by the time-out of a running program. */
void activity_start_up_done(struct activity *activity);

/* An error has been met: the process is to end, even if what frees its memory is blocked. */
void activity_fail(struct activity *activity);

/* The step that the main thread is at. */
uint64_t activity_step(const struct activity *activity);

/* A state at one moment. */
struct activity_view {
    uint64_t moves, step, offset;
    uint32_t kind, bucket;
    int32_t first, last;
};
void activity_view(const struct activity *activity, enum activity_thread thread,
                   struct activity_view *view);

/* "computing step 17" into `text`; returns it. */
const char *activity_describe(const struct activity_view *view, char *text, size_t size);

#endif
