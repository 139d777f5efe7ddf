/*
 * Who sends which elements when: the halving-doubling all-reduce as arithmetic. Pure, but for the
 * memory of its lists; halving.c moves the bytes.
 *
 * A vector of `count` elements is cut into K *slices*, each of which goes through the whole
 * algorithm by itself, and a slice into N *chunks*, one for each worker: chunk r of every slice is
 * complete at worker r after reduce-scatter. All slices but the last are multiples of N elements,
 * so the chunks r of all slices have as many elements as chunk_of(count, N, r) has.
 *
 * A *group* is a run of workers that still add up the chunks of just these workers; at first all N
 * are one. A step of reduce-scatter cuts every group of n into p equal subgroups, the groups of the
 * next step; p is the least prime that divides n, 2 wherever n is even. Worker j of a subgroup
 * exchanges with worker j of each of the p-1 others: it gives the chunks of the other's subgroup,
 * and adds what it gets to those of its own. All-gather is reduce-scatter run backwards: what was
 * received is sent back, now complete. So S = the number of prime factors of N, at most lg N, and
 * there are 2 S *steps*.
 *
 * Elements that worker r sends: in reduce-scatter all chunks but its own, count - L[r]; in
 * all-gather as many as it received in reduce-scatter, the sum over the steps of p-1 times the
 * chunks of its new group. It receives the same number. If N divides count both are (N-1)/N count,
 * for every N and every step's links are equally busy.
 *
 * An *exchange* is what goes between a worker and one other, each way in one order that both know;
 * no two steps of reduce-scatter use the same exchange. Slices follow each other at equal
 * distances, so that HALVING_SLICES_UNDER_WAY are in different steps at a time: while one waits for
 * its next message, others use the links. Messages without elements do not exist.
 *
 * Sources: Rabenseifner 2004, "Optimization of collective reduction operations", section 4; Thakur,
 * Rabenseifner, Gropp 2005, "Optimization of collective communication operations in MPICH", section
 * 4.5; factors other than two: as in Ruefenacht, Bull, Booth 2017, "Generalisation of recursive
 * doubling for AllReduce". Slices are ours.
 */
#ifndef PSRING_RING_HALVING_SCHEDULE_H
#define PSRING_RING_HALVING_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/util.h"
#include "common/base/status.h"

enum { HALVING_SLICES_UNDER_WAY = 4 };

/* One message. */
struct halving_item {
    size_t slice;
    int step; /* 0 .. 2 S - 1 */
    struct chunk span;
    /* A receive: how many others of its slice are dealt with before it, so that sums always have
     * the same order. A send: how many of its slice's receives must have been. */
    size_t after;
    size_t order;   /* of two that may be sent, the one with the lower number goes first */
    bool reduces;   /* of reduce-scatter: is added. Else it replaces what is there. */
    bool completes; /* a receive: the last addition to its elements, the sum is complete */
    /* A receive of all-gather: the send of its exchange with these same elements, on whose memory
     * it lands. */
    size_t replaces;
};

struct halving_exchange {
    int peer;
    struct halving_item *sends, *receives;
    size_t send_count, receive_count;
};

struct halving_schedule {
    int workers, rank;
    size_t count;
    size_t slice_count; /* elements of a slice, at most; a multiple of N */
    size_t slices;      /* K */
    struct halving_exchange *exchanges;
    size_t exchange_count;
    size_t receives;            /* over all exchanges */
    struct halving_item *items; /* of all exchanges; the schedule's own */
};

/* `segment_bytes`: wanted length of the longest message, 0 = chosen. STATUS_NO_MEMORY is logged. */
enum status halving_schedule_init(struct halving_schedule *schedule, int workers, int rank,
                                  size_t count, size_t segment_bytes);
void halving_schedule_fini(struct halving_schedule *schedule);

int halving_steps(int workers); /* 2 S */
int halving_parts(int n);       /* p: into how many subgroups a group of n is cut */

/* K, 0 of an empty vector. */
size_t halving_slices(int workers, size_t count, size_t segment_bytes);

/* -------- short vectors: recursive doubling (halving.c) --------------------------------------- */

/* A longer vector is halved: at 200 Mbit/s its bytes would take longer than the steps saved. */
enum { DOUBLING_BYTES_MAX = 2048, DOUBLING_STEPS_MAX = 30 };

/* Whether so many bytes, in so many of halving's slices, go this way if they are not compressed. */
bool doubling_is_short(int workers, size_t slices, size_t bytes);
int doubling_steps(int workers); /* lg N */

#endif
