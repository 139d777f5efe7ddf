/*
 * Who sends which elements when: the ring all-reduce as arithmetic. Pure; ring.c moves the bytes.
 *
 * A vector of `count` elements is cut into N *chunks*, one for each worker (chunk_of), and every
 * chunk into K *segments*, which are what travels in one message. There are 2(N-1) *steps*: N-1 of
 * reduce-scatter, then N-1 of all-gather. In step s worker r sends chunk (r - s) mod N to worker
 * r+1 and receives chunk (r - s - 1) mod N from worker r-1; that one formula covers both phases.
 *
 * An *item* is one segment of one step. Items are numbered i = s K + k, in the order in which they
 * go over the wire. What arrives as item i leaves (reduced, or as it is) as item i + K.
 *
 * Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
 * workstations", section 4; segments: as in any pipelined broadcast.
 */
#ifndef PSRING_RING_SCHEDULE_H
#define PSRING_RING_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/util.h"

/*
 * Which chunks: all N of a vector, or one of several schedules' part of them. With `parts` P the
 * vector is cut into N P chunks, and chunk i of the schedule of part p is number i P + p. With
 * `returns`, a chunk goes all the way round, to where it started, before it is complete: one step
 * more of reduce-scatter, N (hierarchical.c needs that).
 */
struct schedule_part {
    int parts, part;
    bool returns;
};

struct schedule {
    int workers, rank;
    size_t count;    /* elements of the vector */
    size_t segments; /* K, of each chunk */
    size_t pieces;   /* messages of two workers that go by pair.c; else 0 */
    struct schedule_part part;
};

/* `segment_bytes`: wanted size, 0 = schedule_segment_bytes. `part` NULL: all chunks. */
void schedule_init(struct schedule *schedule, int workers, int rank, size_t count,
                   size_t segment_bytes, const struct schedule_part *part);

/*
 * How long a segment should be for a vector of `count` floats. Long enough that a message's fixed
 * cost is small beside its bytes; short enough that a chunk has several, because the next step can
 * begin as soon as the first segment is in: with K segments the wire idles for about 1/K of what it
 * would.
 */
size_t schedule_segment_bytes(int workers, size_t count);

int schedule_next(int workers, int rank);     /* the worker that `rank` sends to */
int schedule_previous(int workers, int rank); /* the worker that it receives from */
size_t schedule_reduce_steps(const struct schedule *schedule); /* N-1, or N: see returns */
size_t schedule_steps(const struct schedule *schedule);        /* those, and N-1 */
size_t schedule_items(const struct schedule *schedule);        /* K of each step */
/* Elements of the longest message, also of those of pair.c. */
size_t schedule_message_count_max(const struct schedule *schedule);

/* The chunk that is sent in a step; the one received is the one that `previous` sends. */
int schedule_chunk_sent(int workers, int rank, size_t step);

/* The elements of item i. May be empty (a vector shorter than the world); empty ones do not travel.
 */
struct chunk schedule_send(const struct schedule *schedule, size_t item);
struct chunk schedule_receive(const struct schedule *schedule, size_t item);

/* The chunk that is complete at this worker after reduce-scatter. */
struct chunk schedule_own(const struct schedule *schedule);

/* Reduce-scatter: what is received is added. Else (all-gather) it replaces what is there. */
bool schedule_reduces(const struct schedule *schedule, size_t item);
/* The last addition to its elements: the sum is complete. */
bool schedule_completes(const struct schedule *schedule, size_t item);
/* That, of a chunk that set out from here (see `returns`). */
bool schedule_returns(const struct schedule *schedule, size_t item);

#endif
