/*
 * The halving-doubling all-reduce as arithmetic: which worker sends which elements when. Pure,
 * except for the memory of its lists. halving.c moves the bytes.
 *
 * A vector of `count` elements is cut into K *slices*. Each slice goes through the whole algorithm
 * separately. A slice is cut into N *chunks*, one for each worker (halving_chunk): the worker's
 * chunk of every slice is complete there after reduce-scatter. All slices but the last are
 * multiples of N elements. The chunks r of all slices together therefore have as many elements as
 * chunk_of(count, N, r).
 *
 * A *group* is the workers that still add up the same run of chunks, one for each of them. At first
 * all N workers are one group. A step of reduce-scatter deals every group of n out to p subgroups,
 * as cards are dealt, so neighbours get into different ones. Here p is the largest divisor of n
 * from 2 to the *radix* R; if n has none, its least prime factor. With R = 2, the default, p is
 * thus the least prime that divides n. With R >= N one step deals out all workers. Each subgroup
 * gets a p-th of the chunks. Worker j of a subgroup exchanges with worker j of each of the p-1
 * other subgroups. It sends the chunks of the other subgroup and adds the received chunks to those
 * of its subgroup. The first step, with the longest messages, is thus between neighbours, and the
 * last, with the shortest, between workers that are far apart. If neighbours share a rack, few
 * bytes leave it. All-gather is reduce-scatter in reverse: each worker sends back, complete, what
 * it received. Let S be the number of cuts. For R = 2 it is the number of N's prime factors, at
 * most lg N. It is log_R N if N is a power of R, and 1 for R >= N. There are 2 S *steps*.
 *
 * Elements that worker r sends: in reduce-scatter all chunks but its own, count - L[c]; in
 * all-gather as many as it received in reduce-scatter. The latter is the sum over the steps of p-1
 * times the chunks of its new group. It receives the same number. If N divides count, both are
 * (N-1)/N count, for every N, and the links are equally busy in every step.
 *
 * An *exchange* is the messages between a worker and one other worker. Each direction has one order
 * that both workers know. No two steps of reduce-scatter use the same exchange. Slices follow each
 * other at equal distances, so that U slices (halving_under_way) are in different steps at a time.
 * While one slice waits for its next message, the others use the links. Messages without elements
 * do not exist.
 *
 * Sources: Rabenseifner 2004, "Optimization of collective reduction operations", section 4. Thakur,
 * Rabenseifner, Gropp 2005, "Optimization of collective communication operations in MPICH", section
 * 4.5. Factors other than two, which R merges: Ruefenacht, Bull, Booth 2017, "Generalisation of
 * recursive doubling for AllReduce". Slices are ours.
 */
#ifndef PSRING_RING_HALVING_SCHEDULE_H
#define PSRING_RING_HALVING_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/util.h"
#include "common/base/status.h"
#include "common/comm/comm_options.h"

/* Of near workers. Distant ones: halving_under_way. */
enum { HALVING_SLICES_UNDER_WAY = 4 };

/* One message. */
struct halving_item {
    size_t slice;
    int step; /* 0 .. 2 S - 1 */
    struct chunk span;
    /* A receive: number of receives of its slice that come before it; this fixes the order of the
     * sums. A send: number of its slice's receives that must be processed before it. */
    size_t after;
    size_t order;   /* of two items that may be sent, the lower number goes first */
    bool reduces;   /* reduce-scatter: added; otherwise it replaces the present data */
    bool completes; /* a receive: the last addition to its elements, the sum is complete */
    /* A receive of all-gather: index of the send of the same elements in its exchange. The receive
     * lands on the memory of that send. */
    size_t replaces;
};

struct halving_exchange {
    int peer;
    struct halving_item *sends, *receives;
    size_t send_count, receive_count;
};

struct halving_schedule {
    int workers, radix, rank; /* radix: R */
    size_t count;
    size_t slice_count; /* elements of a slice, at most; a multiple of N */
    size_t slices;      /* K */
    struct halving_exchange *exchanges;
    size_t exchange_count;
    size_t receives;            /* of all exchanges */
    struct halving_item *items; /* of all exchanges; owned */
};

/* The wanted length of the longest message: the user's, or that of a fast link. 0: the schedule
 * chooses. */
size_t halving_segment_bytes(int workers, size_t count, const struct comm_options *options);

/* `segment_bytes`: from halving_segment_bytes. `under_way`: U, from halving_under_way.
 * STATUS_NO_MEMORY is logged. */
enum status halving_schedule_init(struct halving_schedule *schedule, int workers, int radix,
                                  int rank, size_t count, size_t segment_bytes, size_t under_way);
void halving_schedule_fini(struct halving_schedule *schedule);

/* Here and below a radix below 2 means 2, and one above the workers means all of them. */
int halving_steps(int workers, int radix); /* 2 S */
int halving_parts(int n, int radix); /* p: number of subgroups that a group of n is cut into */
/* The chunk that is complete at `rank` after reduce-scatter: its number in the mixed radix of the
 * cuts, with the digits reversed. */
int halving_chunk(int workers, int radix, int rank);

/* Elements of every slice but the last, which may have fewer. */
size_t halving_slice_count(int workers, int radix, size_t count, size_t segment_bytes);

/* K; 0 for an empty vector. */
size_t halving_slices(int workers, int radix, size_t count, size_t segment_bytes);

/*
 * U, the number of slices under way: HALVING_SLICES_UNDER_WAY among near workers, more at a
 * distance. The slices are as long as without it.
 *
 * The order has T = 2 S places from a slice to the next one, and U places from a step of a slice to
 * its next step. Therefore U/T slices pass between two steps of a slice. They must keep the link
 * busy until the slice's message has arrived, a latency a after it has left. At first only first
 * steps can leave: F = (p-1)/p of the bytes of a slice that is cut into p parts. On a link of B
 * bytes/s, therefore
 *
 *     U = T (1 + a B / F), rounded up; T K at most
 *
 * Later the other steps send, too: with p = 2, at least a round trip times B bytes pass between two
 * steps of a slice.
 *
 * Memory: no more of ours. A worker may be U slices ahead of a partner, T (F + a B) bytes: 2.6 MB
 * for four workers, 25 MB/s and 50 ms. A message that arrives before its receive is posted waits in
 * the transport: over TCP in the kernel, over ZeroMQ in its queue.
 */
size_t halving_under_way(int workers, size_t count, const struct comm_options *options);

/* -------- short vectors: recursive doubling (halving.c) --------------------------------------- */

/* Longer vectors are halved. At 200 Mbit/s four workers pay 41 us for the additional bytes of 2 KB
 * and save two steps of 20 to 30 us. On links without a limit even 64 KB was faster this way. MPICH
 * changes over at 2 KB too. */
enum { DOUBLING_BYTES_MAX = 2048 };

/* Whether a vector of `bytes` in `slices` slices of halving uses recursive doubling, if it is not
 * compressed. Only if halving cuts in halves, so that both add in the same order. */
bool doubling_is_short(int workers, int radix, size_t slices, size_t bytes);
int doubling_steps(int workers); /* lg N */

#endif
