/*
 * What ends a run that cannot go on: on every rank a thread of its own, from the first lines of
 * main to the exit, connected to rank 0 (TCP, a star). About once a second each rank tells rank 0
 * what it is doing (common/net/activity.h). Rank 0 sees whose process has ended, who sends
 * nothing, who waits for whom; it writes one line that names the rank at fault, and ends all. A
 * rank that hears nothing from rank 0 says so and ends by itself. It covers whatever a rank may be
 * blocked in: a library, the disk, a lock.
 *
 *     watchdog_new(&watchdog, &options)      before anything can block: bounds the start-up
 *     world_open(...); watchdog_join(watchdog, world)
 *     ...                                    an error: watchdog_fail(watchdog, exit code)
 *     world_close(...); watchdog_close(&watchdog)
 *
 * Cost: a frame of some 200 bytes a second and rank; the thread sleeps in between.
 */
#ifndef PSRING_COMMON_NET_WATCHDOG_H
#define PSRING_COMMON_NET_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/activity.h"
#include "common/net/world.h"

struct watchdog;

struct watchdog_options {
    int rank;                   /* as the launcher says; 0 where it does not. For messages. */
    int64_t startup_timeout_ms; /* for a wait before activity.started */
    int64_t meet_timeout_ms;    /* from watchdog_new to watchdog_join */
    int64_t timeout_ms;         /* for a wait after it; and for silence, at least a second */
    int64_t stall_warning_ms;   /* for either: from then on there is a warning; 0: none */
    const char *subnet;         /* as world_choose_address has it. Borrowed. */
    /* Ends the process, at once and without waiting for any other thread. Called on the watchdog's
     * thread once the reason has been logged, on this rank or on another one. */
    void (*end)(int exit_code);
};

/* Starts the thread. Errors: logged. */
enum status watchdog_new(struct watchdog **watchdog, const struct watchdog_options *options);

/* What this process is doing: for those who have no world yet. Lives as long as the watchdog. */
struct activity *watchdog_activity(struct watchdog *watchdog);

/* Connects all ranks and sets world->activity. Collective. Errors: logged. */
enum status watchdog_join(struct watchdog *watchdog, struct world *world);

/* This rank has met an error, and logged it unless all ranks meet it alike and rank 0 logs it. Ends
 * all ranks with `exit_code`: returns only if there is no other to be told. */
void watchdog_fail(struct watchdog *watchdog, int exit_code);

/* For a signal handler: this process is asked to end. It does so a moment later, when it is known
 * whether another rank's end is the reason. */
void watchdog_signalled(struct watchdog *watchdog);

/* Waits until all ranks have called this (bounded: see timeout_ms), frees *watchdog and sets it to
 * NULL. */
void watchdog_close(struct watchdog **watchdog);

#endif
