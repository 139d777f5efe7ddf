/*
 * Stalls: waits and silences that are longer than usual, but not yet an error. For whoever hears
 * all ranks: it says once who keeps the others waiting, for what, and what that rank was last seen
 * doing; and once that it goes on. What would end the run, at a lower limit (verdict.h).
 *
 * A rank tells of itself once a tick, about a second. So three ticks are the least after which
 * there is a warning, and it comes up to two ticks after the limit: at every look of the last one
 * and a half the same rank must have been the one that the others waited for.
 *
 * Pure: no clock, no log. Cost of a look: a copy of all beats, once a second.
 * Source of the idea: Horovod's stall inspector.
 */
#ifndef PSRING_COMMON_NET_LIFELINE_STALL_H
#define PSRING_COMMON_NET_LIFELINE_STALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/lifeline/verdict.h"

struct stall_watch {
    int64_t limit_ns;   /* 0: says nothing */
    int64_t tick_ns;    /* between a rank's beats */
    int64_t timeout_ns; /* that ends the run */
    bool silence_only;  /* what the ranks wait for is another one's to tell */
    int count;
    struct lifeline_rank *ranks; /* (count) as they would be if --timeout were that limit */
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
bool stall_watch_look(struct stall_watch *watch, const struct lifeline_rank *ranks, int64_t now_ns,
                      char *text, size_t size);

#endif
