/* Internal to the watchdog: whom watchdog_diagnosis.c blames, and which stalls it sees, of what
 * watchdog.c has heard. */
#ifndef PSRING_COMMON_NET_WATCHDOG_IMPL_H
#define PSRING_COMMON_NET_WATCHDOG_IMPL_H

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/base/thread.h"
#include "common/net/watchdog.h"
#include "common/net/activity.h"
#include "common/net/control.h"
#include "common/net/world.h"

/*
 * What rank 0 knows of every rank, and whom it blames when the run does not go on. Pure functions
 * of that knowledge.
 */

/* What a rank tells of itself, about once a second. */
struct watchdog_beat {
    struct {
        struct activity_view view;
        uint32_t still_ms; /* it has not come on for so long */
        bool overdue;      /* and waits, longer than it may */
    } threads[ACTIVITY_THREADS];
    bool starting; /* and may wait for longer than later */
};

enum watchdog_rank_state {
    WATCHDOG_ALIVE,     /* connected */
    WATCHDOG_DONE,      /* has ended as it should */
    WATCHDOG_FAILED,    /* has met an error of its own */
    WATCHDOG_SIGNALLED, /* was told to end by a signal */
    WATCHDOG_GONE,      /* its connection closed and it had said nothing */
};

struct watchdog_rank {
    enum watchdog_rank_state state;
    char host[WORLD_HOST_BYTES];
    bool told;        /* FAILED: it has logged its error */
    int exit_code;    /* FAILED, SIGNALLED */
    int64_t heard_ns; /* when its last beat came */
    struct watchdog_beat beat;
};

/* What keeps the run from going on, the surest cause last. */
enum watchdog_trouble {
    WATCHDOG_NONE,
    WATCHDOG_OVERDUE,     /* someone waits for longer than the time-out */
    WATCHDOG_QUIET_ERROR, /* a rank failed, and left it to rank 0 to say why */
    WATCHDOG_ERROR,       /* a rank failed and has said why */
    WATCHDOG_SIGNAL,      /* a rank was told to end */
    WATCHDOG_SILENT,      /* a rank sends nothing */
    WATCHDOG_ENDED,       /* a rank's process has ended */
};

/* All ranks at one moment. */
struct watchdog_scene {
    const struct watchdog_rank *ranks;
    int count;
    int64_t now_ns, limit_ns; /* a silence of this length is one */
    enum watchdog_trouble trouble;
};

/* Does not read `trouble`. */
enum watchdog_trouble watchdog_find(const struct watchdog_scene *scene);

/*
 * Writes a line to `text` that names the ranks and hosts at fault for the `trouble`, as
 * watchdog_find has found it. Empty where rank 0's own message says all. Returns the exit code for
 * all ranks.
 */
int watchdog_blame(const struct watchdog_scene *scene, char *text, size_t size);

/*
 * Stalls: waits and silences that are longer than usual, but not yet an error. For whoever hears
 * all ranks: it says once who keeps the others waiting, for what, and what that rank was last seen
 * doing; and once that it goes on. What would end the run, at a lower limit (watchdog_blame).
 *
 * A rank tells of itself once a tick, about a second. So three ticks are the least after which
 * there is a warning, and it comes up to two ticks after the limit: at every look of the last one
 * and a half the same rank must have been the one that the others waited for.
 *
 * Pure: no clock, no log. Cost of a look: a copy of all beats, once a second.
 * Source of the idea: Horovod's stall inspector.
 */

struct stall_watch {
    int64_t limit_ns;   /* 0: says nothing */
    int64_t tick_ns;    /* between a rank's beats */
    int64_t timeout_ns; /* that ends the run */
    bool silence_only;  /* what the ranks wait for is another one's to tell */
    int count;
    struct watchdog_rank *ranks; /* (count) as they would be if --timeout were that limit */
    bool *late;                  /* (count) who was told of */
    bool *suspects;              /* (count) who have kept the others waiting since trouble_ns;
                                    none: all wait for each other, if there is `trouble` */
    bool *found;                 /* (count) the same of one look */
    bool trouble;
    int64_t trouble_ns;
    int64_t since_ns; /* the wait, or the silence, has begun */
    bool told;
};

/* Sets the arrays; the caller has set limit_ns, tick_ns, timeout_ns. STATUS_NO_MEMORY: not
 * logged. */
enum status stall_watch_init(struct stall_watch *watch, int count);
void stall_watch_fini(struct stall_watch *watch);

/* One look at all ranks (count). True: `text` is to be told, one line. */
bool stall_watch_look(struct stall_watch *watch, const struct watchdog_rank *ranks, int64_t now_ns,
                      char *text, size_t size);

#endif
