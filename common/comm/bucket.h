/*
 * Which gradients are averaged together. A *bucket* is a run of the gradient arena; buckets go from
 * its end to its beginning, as the backward pass finishes gradients, so that a bucket can travel
 * while earlier layers are still computed. Pure.
 *
 * Small tensors are fused: each message costs latency, and with W workers a bucket of a few hundred
 * bytes takes as many of them as one of a megabyte (Sergeev and Del Balso 2018, "Horovod", section
 * 4, tensor fusion). Long ones are cut, where they may be: a bucket that is all of the gradient
 * leaves nothing to overlap. The first bucket is small, so that the link, idle until then, has work
 * early (Li et al. 2020, "PyTorch Distributed", VLDB, section 3.2.3: buckets, 25 MB by default; its
 * implementation takes 1 MB for the first).
 */
#ifndef PSRING_COMMON_COMM_BUCKET_H
#define PSRING_COMMON_COMM_BUCKET_H

#include <stdbool.h>
#include <stddef.h>

enum { BUCKET_FIRST_BYTES = 1 << 20 };

/* Elements [first, first + count) of the gradient arena. */
struct bucket {
    size_t first, count;
};

struct bucket_limits {
    size_t bytes; /* wanted; 0: everything in one bucket */
    /* A layer longer than that is cut into equal pieces, of which each closes a bucket. */
    bool cut;
};

/*
 * The arena is layer 0's counts[0] elements, then layer 1's, ... A bucket is closed with the layer
 * (or piece) that fills it: bucket 0 with BUCKET_FIRST_BYTES, unless `bytes` is less, others with
 * `bytes`. So with `cut` none holds twice `bytes`; without it, a bucket is longer than wanted by
 * less than its last layer.
 *
 * Returns how many buckets there are, at least one; bucket 0 is complete first. Together they cover
 * the arena once. `buckets` has room for all of them, or is NULL: then they are only counted.
 */
size_t bucket_plan(const size_t *counts, size_t layers, const struct bucket_limits *limits,
                   struct bucket *buckets);

/*
 * In which order buckets travel where the next step's forward pass need not wait for all of them: a
 * layer's parameters are needed only when that pass reaches the layer, and the layers whose
 * gradients are complete last are needed first (Jayarajan et al. 2019, "Priority-based Parameter
 * Propagation"; Peng et al. 2019, "ByteScheduler").
 *
 *     time     0        backward        2          forward      3
 *     ready      dense2       dense1       conv
 *     needed                                conv  dense1 dense2
 *
 * Those choose among what is ready at each moment. All ranks must choose the same, which they could
 * only by talking; so here the order is chosen once, from the layers' costs, as it would be if the
 * communication took as long as the computation. With a faster link the thread may wait for a
 * bucket while another is ready, but then there is time for it. Pure.
 */

/* A layer's share of the arena and of a step's computation, in any unit. Both passes go through it
 * in `parts` equal parts, last first: backward its gradient is ready, forward it is needed. */
struct bucket_layer {
    size_t count, parts;
    double forward, backward;
};

/* Sets order (bucket_count): the numbers of bucket_plan's `buckets`, first to travel first. Of
 * those that are ready, the one needed first; of equals, the one ready first. */
void bucket_order(const struct bucket *buckets, size_t bucket_count,
                  const struct bucket_layer *layers, size_t layer_count, size_t *order);

#endif
