/*
 * Which gradients are averaged together. A *bucket* is a run of whole layers, in the order in which
 * the backward pass finishes them (last layer first), so that a bucket can travel while earlier
 * layers are still computed. Pure.
 */
#ifndef PSRING_EXPERIMENTS_BUCKET_LAYOUT_H
#define PSRING_EXPERIMENTS_BUCKET_LAYOUT_H

#include <stddef.h>

#include "models/net.h"

/* Elements [first, first + count) of the gradient arena. */
struct bucket {
    size_t first, count;
};

/*
 * Fills buckets[0..layer_count) and returns how many were needed, at least one; bucket 0 is
 * complete first. A bucket is closed once it holds `bucket_bytes`, so it is larger than that by
 * less than its last layer; 0: everything in one. Together they cover the arena once.
 */
size_t bucket_layout(const struct net_layer *layers, size_t layer_count, size_t bucket_bytes,
                     struct bucket *buckets);

#endif
