/* Internal to the watchdog. watchdog.c collects the ranks' reports; watchdog_diagnosis.c finds the
 * rank at fault and the stalls. */
#ifndef PSRING_COMMON_NET_WATCHDOG_IMPL_H
#define PSRING_COMMON_NET_WATCHDOG_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/watchdog.h"
#include "common/net/activity.h"
#include "common/net/world.h"

/*
 * Rank 0's knowledge of every rank, and the rank that it blames when the run stops. Pure functions
 * of that knowledge.
 */

/* A rank's report on itself, about once a second. */
struct watchdog_beat {
    struct {
        struct activity_view view;
        uint32_t still_ms; /* time since its last progress */
        bool overdue;      /* it waits for longer than the time-out */
    } threads[ACTIVITY_THREADS];
    bool starting; /* in start-up, with the longer time-out */
};

enum watchdog_rank_state {
    WATCHDOG_ALIVE,     /* connected */
    WATCHDOG_DONE,      /* has ended normally */
    WATCHDOG_FAILED,    /* has an error of its own */
    WATCHDOG_SIGNALLED, /* a signal asked it to end */
    WATCHDOG_GONE,      /* its connection closed without a last message */
};

struct watchdog_rank {
    enum watchdog_rank_state state;
    char host[WORLD_HOST_BYTES];
    bool told;        /* FAILED: it has logged its error */
    int exit_code;    /* FAILED, SIGNALLED */
    int64_t heard_ns; /* when its last beat arrived */
    struct watchdog_beat beat;
};

/* Why the run cannot continue, in ascending order of certainty. */
enum watchdog_trouble {
    WATCHDOG_NONE,
    WATCHDOG_OVERDUE,     /* a rank waits for longer than the time-out */
    WATCHDOG_QUIET_ERROR, /* a rank failed, and leaves the message to rank 0 */
    WATCHDOG_ERROR,       /* a rank failed and has logged its error */
    WATCHDOG_SIGNAL,      /* a signal asked a rank to end */
    WATCHDOG_SILENT,      /* a rank sends nothing */
    WATCHDOG_ENDED,       /* a rank's process has ended */
};

/* All ranks at one moment. */
struct watchdog_scene {
    const struct watchdog_rank *ranks;
    int count;
    int64_t now_ns, limit_ns; /* limit_ns: after this time a quiet rank is silent */
    enum watchdog_trouble trouble;
};

/* Does not read `trouble`. */
enum watchdog_trouble watchdog_find(const struct watchdog_scene *scene);

/* An exit code from another rank, which must not end this process as if it had succeeded. */
static inline int watchdog_exit_code(int given)
{
    return given > 0 && given < 256 ? given : 1;
}

/*
 * Writes a line to `text` that names the ranks and hosts at fault for the `trouble` found by
 * watchdog_find. The line is empty if rank 0's own message is sufficient. Returns the exit code for
 * all ranks.
 */
int watchdog_blame(const struct watchdog_scene *scene, char *text, size_t size);

/*
 * Stalls: waits and silences that are longer than usual but not yet an error. Used by the rank that
 * gets all reports. It reports once which rank blocks the others, what they wait for, and that
 * rank's last known activity. It reports once more when that rank continues. A stall is what would
 * end the run at a lower limit (watchdog_blame).
 *
 * A rank reports once per tick, about a second. Thus a warning needs at least three ticks, and it
 * comes up to two ticks after the limit. At every look of the last one and a half ticks, the others
 * must have waited for the same rank.
 *
 * Pure: no clock, no log. Cost of a look: a copy of all beats, once a second. Source of the idea:
 * Horovod's stall inspector.
 */

struct stall_watch {
    int64_t limit_ns;   /* 0: never warns */
    int64_t tick_ns;    /* time between a rank's beats */
    int64_t timeout_ns; /* the time-out that ends the run */
    bool silence_only;  /* report silences only; another rank reports the waits */
    int count;
    struct watchdog_rank *ranks; /* (count) the ranks' states if --timeout were that limit */
    bool *late;                  /* (count) ranks that a warning has named */
    bool *suspects;              /* (count) ranks that have blocked the others since trouble_ns;
                                  * none: all wait for each other, if there is `trouble` */
    bool *found;                 /* (count) the same for one look */
    bool trouble;
    int64_t trouble_ns;
    int64_t since_ns; /* start of the wait or the silence */
    bool told;
};

/* Sets the arrays; the caller has set limit_ns, tick_ns, timeout_ns. STATUS_NO_MEMORY: not
 * logged. */
enum status stall_watch_init(struct stall_watch *watch, int count);
void stall_watch_fini(struct stall_watch *watch);

/* One look at all ranks (count). True: the caller logs `text`, one line. */
bool stall_watch_look(struct stall_watch *watch, const struct watchdog_rank *ranks, int64_t now_ns,
                      char *text, size_t size);

#endif
