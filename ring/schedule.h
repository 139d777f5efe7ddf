/*
 * The ring all-reduce as arithmetic: which worker sends which elements when. Pure. ring.c moves the
 * bytes.
 *
 * A vector of `count` elements is cut into N *chunks*, one for each worker (chunk_of). Every chunk
 * is cut into K *segments*. A segment travels as one message. There are 2(N-1) *steps*: N-1 of
 * reduce-scatter, then N-1 of all-gather. In step s worker r sends chunk (r - s) mod N to worker
 * r+1 and receives chunk (r - s - 1) mod N from worker r-1. This one formula covers both phases.
 *
 * An *item* is one segment of one step. Items are numbered i = s K + k, in the order in which they
 * go over the wire. A segment that arrives as item i leaves as item i + K: with our part added in
 * reduce-scatter, unchanged in all-gather.
 *
 * Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
 * workstations", section 4. Segments are those of any pipelined broadcast.
 */
#ifndef PSRING_RING_SCHEDULE_H
#define PSRING_RING_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/util.h"
#include "common/comm/comm_options.h"

/*
 * Selects the chunks of a schedule: all N of a vector, or the part that belongs to one of several
 * schedules. With `parts` P the vector is cut into N P chunks, and chunk i of the schedule of part
 * p is number i P + p. With `returns`, a chunk travels all the way round, back to where it started,
 * before it is complete. Reduce-scatter then takes N steps, one more (hierarchical.c needs this).
 */
struct schedule_part {
    int parts, part;
    bool returns;
};

struct schedule {
    int workers, rank;
    size_t count;    /* elements of the vector */
    size_t segments; /* K, of each chunk */
    size_t pieces;   /* messages between two workers that use pair.c; else 0 */
    struct schedule_part part;
};

/* `segment_bytes`: from schedule_segment_bytes. `part` NULL: all chunks. */
void schedule_init(struct schedule *schedule, int workers, int rank, size_t count,
                   size_t segment_bytes, const struct schedule_part *part);

/*
 * The segment length for a vector of `count` floats: the user's, or that of a fast link. 0:
 * schedule_init chooses. A segment must be long enough that a message's fixed cost is small
 * compared with its bytes. A chunk must have several segments, because the next step can begin as
 * soon as the first segment has arrived. With K segments the wire is idle for about 1/K of the time
 * it would be idle with one. On a fast link messages cost more than that.
 */
size_t schedule_segment_bytes(int workers, size_t count, const struct comm_options *options,
                              const struct schedule_part *part);

int schedule_next(int workers, int rank);     /* the worker that `rank` sends to */
int schedule_previous(int workers, int rank); /* the worker that `rank` receives from */
size_t schedule_reduce_steps(const struct schedule *schedule); /* N-1, or N with `returns` */
size_t schedule_steps(const struct schedule *schedule);        /* those, plus N-1 */
size_t schedule_items(const struct schedule *schedule);        /* K in each step */
/* Elements of the longest message, including the messages of pair.c. */
size_t schedule_message_count_max(const struct schedule *schedule);

/* The chunk that `rank` sends in a step. It receives the chunk that `previous` sends. */
int schedule_chunk_sent(int workers, int rank, size_t step);

/* Chunk `index` of this schedule. Its segments are chunk_of(its elements, K, k). */
struct chunk schedule_chunk(const struct schedule *schedule, int index);

/* The elements of item i. May be empty, for example if the vector is shorter than the number of
 * chunks. Empty items do not travel. */
struct chunk schedule_send(const struct schedule *schedule, size_t item);
struct chunk schedule_receive(const struct schedule *schedule, size_t item);

/* True in reduce-scatter: a received item is added. In all-gather it replaces the present data. */
bool schedule_reduces(const struct schedule *schedule, size_t item);
/* True if this is the last addition to the item's elements: the sum is complete. */
bool schedule_completes(const struct schedule *schedule, size_t item);
/* True if the item completes a chunk that started at this worker (see `returns`). */
bool schedule_returns(const struct schedule *schedule, size_t item);

#endif
