/*
 * Who sends which elements when: the halving-doubling all-reduce as arithmetic. Pure, but for the
 * memory of its lists; halving.c moves the bytes.
 *
 * A vector of `count` elements is cut into N *chunks* (chunk_of); chunk r is complete at worker r
 * after reduce-scatter. A *group* is a run of workers that still add up the chunks of just these
 * workers. At first all N are one group. In a step every group is cut into a low half of
 * ceil(n/2) and a high half of floor(n/2) workers, which are the groups of the next step:
 *
 *     low j  -> high j    the chunks of the high half        (j = 0, 1, ... floor(n/2) - 1)
 *     high j -> low j     the chunks of the low half, but not that of the odd one
 *     odd    -> high j    chunk of high j                    (n odd: the last of the low half
 *     high j -> odd       chunk of the odd one                has no partner and is the odd one)
 *
 * All-gather is reduce-scatter run backwards: what was received is sent back, now complete.
 *
 * Elements that worker r sends: in reduce-scatter each step gives away the half that it leaves, so
 * all chunks but its own, count - L[r]; in all-gather as many as it received in reduce-scatter,
 *     R[r] = sum over its steps of   the chunks of its new group (from its partner; less that of
 *                                    the odd one, if r is low and n is odd)
 *                                    + L[r] (from the odd one, if r is high and n is odd)
 *                                    floor(n/2) L[r] instead, if r is the odd one.
 * It receives the same number. If N divides count both are (N-1)/N count, for every N.
 *
 * What travels in one message is an *item*: a segment of a chunk, or several whole chunks if they
 * are no longer than a segment. A worker's sends are numbered in the order in which they leave, its
 * receives in the order in which they are dealt with; there are as many of the one as of the other.
 * Empty items do not exist.
 *
 * Sources: Rabenseifner 2004, "Optimization of collective reduction operations", section 4; Thakur,
 * Rabenseifner, Gropp 2005, "Optimization of collective communication operations in MPICH", section
 * 4.5. The odd one's direct exchange of single chunks, in place of their folding of workers
 * beyond a power of two, is ours.
 */
#ifndef PSRING_RING_HALVING_SCHEDULE_H
#define PSRING_RING_HALVING_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/comm/chunk.h"

/* Items that a worker sends to its partner before the first one of the same step has come back. */
enum { HALVING_IN_FLIGHT = 8 };

struct halving_item {
    int step; /* 0 .. 2 ceil(lg N) - 1 */
    int peer;
    struct chunk span;
    size_t needs;   /* a send: receives that must have been dealt with before */
    bool reduces;   /* a receive of reduce-scatter: is added. Else it replaces what is there. */
    bool completes; /* the last addition to its elements: the sum is complete */
    /* a receive of all-gather: number of the send, of just these elements and to the same peer,
     * that went before: what now comes lands on what was sent then */
    size_t replaces;
    /* The schedule's own: */
    bool paced;
    size_t unit, units; /* segments of chunks that it covers; chunk c has c K, ... (c+1) K - 1 */
};

struct halving_schedule {
    int workers, rank;
    size_t count;
    size_t segment_count;                  /* elements of a segment, at most */
    size_t segments;                       /* K, of each chunk */
    struct halving_item *sends, *receives; /* `items` each */
    size_t items;
    size_t reduce_sends, reduce_receives; /* the first so many belong to reduce-scatter */
};

/* `segment_bytes`: wanted size, 0 = schedule_segment_bytes (ring/schedule.h). STATUS_NO_MEMORY is
 * logged. */
enum status halving_schedule_init(struct halving_schedule *schedule, int workers, int rank,
                                  size_t count, size_t segment_bytes);
void halving_schedule_fini(struct halving_schedule *schedule);

int halving_steps(int workers); /* 2 ceil(lg N) */

#endif
