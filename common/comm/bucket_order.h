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
#ifndef PSRING_COMMON_COMM_BUCKET_ORDER_H
#define PSRING_COMMON_COMM_BUCKET_ORDER_H

#include <stddef.h>

#include "common/comm/bucket.h"

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
