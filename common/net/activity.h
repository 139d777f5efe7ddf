/*
 * The current activity of this process, and the ranks that it waits for. The process's threads
 * write it as they make progress. The watchdog (common/net/watchdog.h) reads it and reports it to
 * rank 0. Each thread that can wait has a state that only this thread writes.
 *
 * Cost: relaxed stores, no clock and no text. A NULL pointer (a program without a watchdog) is
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
    ACTIVITY_COLLECTIVE, /* a collective call of all ranks: a barrier, a gathering of results */
    ACTIVITY_COMPUTE,    /* step */
    ACTIVITY_MEASURE,    /* step: the repetition */
    ACTIVITY_AVERAGE,    /* step, bucket */
    ACTIVITY_SERVE,
    ACTIVITY_TEST,       /* step */
    ACTIVITY_CHECKPOINT, /* step */
    ACTIVITY_FINISH,
    ACTIVITY_KINDS
};

/* MAIN: the main thread. WORKER: the thread that owns a worker's transport. SERVER: a server's
 * thread. */
enum activity_thread { ACTIVITY_MAIN, ACTIVITY_WORKER, ACTIVITY_SERVER, ACTIVITY_THREADS };

#define ACTIVITY_NOBODY (-1)
#define ACTIVITY_NO_OFFSET UINT64_MAX
/* Instead of an offset: the peer must take a message that was sent to it. */
#define ACTIVITY_SENDS (UINT64_MAX - 1)

struct activity_state {
    _Atomic uint64_t moves; /* changes whenever this thread makes progress */
    _Atomic uint32_t kind;
    _Atomic uint32_t bucket;
    _Atomic uint64_t step;
    _Atomic uint64_t offset; /* of the awaited message, in bytes; or ACTIVITY_NO_OFFSET */
    /* The thread waits for one or more ranks of this range. first == ACTIVITY_NOBODY: it does not
     * wait. */
    _Atomic int32_t first, last;
};

struct activity {
    struct activity_state threads[ACTIVITY_THREADS];
    _Atomic bool started; /* start-up, with its longer time-out, is over */
    _Atomic int failed;   /* the exit code after an error; 0: no error */
};

/* All threads are starting and wait for no rank. */
void activity_init(struct activity *activity);

static inline void activity_moved(struct activity *activity, enum activity_thread thread)
{
    if (!activity)
        return;
    _Atomic uint64_t *moves = &activity->threads[thread].moves;
    atomic_store_explicit(moves, atomic_load_explicit(moves, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* From now on the thread does this, and waits for no rank. */
void activity_set(struct activity *activity, enum activity_thread thread, enum activity_kind kind,
                  uint64_t step, uint32_t bucket);

/* The thread waits for a rank from `first` to `last`. activity_moved reports that something has
 * arrived; activity_go_on ends the wait. */
void activity_wait(struct activity *activity, enum activity_thread thread, int first, int last,
                   uint64_t offset);
void activity_go_on(struct activity *activity, enum activity_thread thread);

/* From now on waits are bounded by the time-out of a running program. */
void activity_start_up_done(struct activity *activity);

/* An error has occurred: the process must end, even if the code that frees its memory is
 * blocked. */
void activity_fail(struct activity *activity);

/* The current step of the main thread. */
uint64_t activity_step(const struct activity *activity);

/* A state at one moment. */
struct activity_view {
    uint64_t moves, step, offset;
    uint32_t kind, bucket;
    int32_t first, last;
};
void activity_view(const struct activity *activity, enum activity_thread thread,
                   struct activity_view *view);

/* Writes "computing step 17" into `text` and returns it. */
const char *activity_describe(const struct activity_view *view, char *text, size_t size);

#endif
