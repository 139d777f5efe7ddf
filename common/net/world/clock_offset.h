/*
 * How far the clocks of the ranks are apart (clock_now_ns: each host's has its own zero and rate).
 *
 * Nobody leaves a barrier before everybody has entered it. So with e and l for the times at which
 * ranks enter and leave, by their own clocks, and offset o of rank r's (to be added to r's times to
 * get rank 0's):
 *
 *     e_0 <= l_r + o      hence o >= e_0 - l_r      tight when rank 0 enters last
 *     e_r + o <= l_0      hence o <= l_0 - e_r      tight when rank r does
 *
 * In every round another rank is late on purpose; over all rounds the largest lower and the least
 * upper bound are kept. The offset is halfway between them, and cannot be further off than half of
 * what lies between (messages' latency, and how long a process sleeps between two looks) and of
 * what the clocks may have drifted since the first round, which is at most 100 in a million. That
 * is ping-pong's estimate (Cristian 1989, "Probabilistic clock synchronization"), for all ranks at
 * once.
 *
 * Ranks on one running kernel (world->machine) have one clock, unless what was measured rules that
 * out: with rank 0's the offset is 0, and elsewhere the bounds of all of them are one's.
 */
#ifndef PSRING_COMMON_NET_WORLD_CLOCK_OFFSET_H
#define PSRING_COMMON_NET_WORLD_CLOCK_OFFSET_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/world/world.h"

/* When one rank entered and left a barrier, by its own clock. */
struct clock_passage {
    int64_t entered_ns, left_ns;
};

struct clock_offset {
    int64_t at_ns;     /* this rank's time to which it belongs */
    int64_t offset_ns; /* added to this rank's times gives rank 0's */
    int64_t error_ns;  /* it is at most so far off */
};

/*
 * Of rank `own`, from the passages of all ranks (size, rounds). machines: (size) equal numbers, one
 * clock, they say.
 */
struct clock_offset clock_offset_of(const struct clock_passage *all, const int *machines, int size,
                                    size_t rounds, int own);

/* Collective over the world: this rank's. Some ten rounds a rank, half a millisecond each at least.
 * Errors: logged. */
enum status clock_offset_measure(struct world *world, struct clock_offset *offset);

/* A time of this rank's on rank 0's clock, from what was measured before and after: clocks that run
 * at steady rates are apart linearly in time. */
int64_t clock_offset_apply(const struct clock_offset *before, const struct clock_offset *after,
                           int64_t ns);

#endif
