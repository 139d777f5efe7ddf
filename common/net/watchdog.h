/*
 * Ends a run that cannot continue. Every rank has a watchdog thread from the first lines of main to
 * the exit. The threads are connected to rank 0 (TCP, a star). About once a second each rank
 * reports its activity to rank 0 (common/net/activity.h). Rank 0 sees which process has ended,
 * which rank sends nothing, and which rank waits for which. It writes one line that names the rank
 * at fault, and ends all ranks. A rank that receives nothing from rank 0 logs this and ends itself.
 * The watchdog works whatever blocks a rank: a library, the disk, a lock.
 *
 *     watchdog_new(&watchdog, &options)      before anything can block: bounds the start-up
 *     world_open(...); watchdog_join(watchdog, world)
 *     ...                                    an error: watchdog_fail(watchdog, exit code)
 *     world_close(...); watchdog_close(&watchdog)
 *
 * Cost: a frame of some 200 bytes per second and rank; the thread sleeps in between.
 */
#ifndef PSRING_COMMON_NET_WATCHDOG_H
#define PSRING_COMMON_NET_WATCHDOG_H

#include <stdint.h>

#include "common/base/status.h"
#include "common/net/activity.h"
#include "common/net/world.h"

struct watchdog;

struct watchdog_options {
    int rank;                   /* from the launcher; 0 if it gives none. For messages. */
    int64_t startup_timeout_ms; /* for a wait before activity.started */
    int64_t meet_timeout_ms;    /* from watchdog_new to watchdog_join */
    int64_t timeout_ms;         /* for a later wait, and for silence (at least a second) */
    int64_t stall_warning_ms;   /* waits and silences longer than this are warned of; 0: never */
    const char *subnet;         /* as in world_choose_address. Borrowed. */
    /* Ends the process at once, without waiting for another thread. Called on the watchdog's thread
     * after this rank or another one has logged the reason. */
    void (*end)(int exit_code);
};

/* Starts the thread. Errors: logged. */
enum status watchdog_new(struct watchdog **watchdog, const struct watchdog_options *options);

/* This process's activity, for code that has no world yet. Lives as long as the watchdog. */
struct activity *watchdog_activity(struct watchdog *watchdog);

/* Connects all ranks and sets world->activity. Collective. Errors: logged. */
enum status watchdog_join(struct watchdog *watchdog, struct world *world);

/* This rank has an error. It has logged the error, unless all ranks have the same error and rank 0
 * logs it. Ends all ranks with `exit_code`. Returns only if there is no other rank. */
void watchdog_fail(struct watchdog *watchdog, int exit_code);

/* For a signal handler: this process is asked to end. It ends a moment later, when the watchdog
 * knows whether another rank's end is the reason. */
void watchdog_signalled(struct watchdog *watchdog);

/* Frees *watchdog and sets it to NULL. Rank 0 waits until all ranks have called this (bounded by
 * timeout_ms). Another rank does not wait, so it cannot hear of a later failure. */
void watchdog_close(struct watchdog **watchdog);

#endif
