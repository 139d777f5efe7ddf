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

#endif
