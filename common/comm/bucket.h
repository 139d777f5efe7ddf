/*
 * Buckets: which gradients are averaged together. A *bucket* is a run of the gradient arena.
 * Buckets go from the arena's end to its beginning, because the backward pass finishes gradients in
 * that order. A bucket can thus travel while earlier layers are computed. Pure.
 *
 * Small tensors are fused, because each message costs latency: with W workers a bucket of a few
 * hundred bytes needs as many messages as one of a megabyte (Sergeev and Del Balso 2018, "Horovod",
 * section 4, tensor fusion). Long tensors are cut if that is allowed: a single bucket with the
 * whole gradient leaves nothing to overlap. The first bucket is small, so that the idle link gets
 * work early (Li et al. 2020, "PyTorch Distributed", VLDB, section 3.2.3: buckets, 25 MB by
 * default; its implementation takes 1 MB for the first).
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
    /* Cuts a layer longer than `bytes` into equal pieces, each of which closes a bucket. */
    bool cut;
    size_t element_bytes; /* of the arena; 0: floats */
};

/*
 * The arena is layer 0's counts[0] elements, then layer 1's, and so on. A bucket closes with the
 * layer (or piece) that fills it. Bucket 0 is full at BUCKET_FIRST_BYTES, or at `bytes` if that is
 * less; other buckets are full at `bytes`. With `cut`, every bucket is shorter than twice `bytes`.
 * Without `cut`, a bucket exceeds its limit by less than its last layer.
 *
 * Returns the number of buckets, at least one; bucket 0 is complete first. Together they cover the
 * arena once. `buckets` must hold all of them; if it is NULL, they are only counted.
 */
size_t bucket_plan(const size_t *counts, size_t layers, const struct bucket_limits *limits,
                   struct bucket *buckets);

/*
 * The order in which buckets travel if the next step's forward pass need not wait for all of them.
 * A layer's parameters are needed only when that pass reaches the layer. The layers whose gradients
 * are complete last are needed first (Jayarajan et al. 2019, "Priority-based Parameter
 * Propagation"; Peng et al. 2019, "ByteScheduler").
 *
 *     time     0        backward        2          forward      3
 *     ready      dense2       dense1       conv
 *     needed                                conv  dense1 dense2
 *
 * Those systems choose among the ready buckets at each moment. All ranks must choose the same,
 * which would need messages. Therefore psring chooses the order once, from the layers' costs, as if
 * communication took as long as computation. With a faster link the thread may wait for a bucket
 * while another is ready, but then the link has time to spare. Pure.
 */

/* A layer's share of the arena, and of a step's computation in any unit. Both passes process
 * the layer in `parts` equal parts, last part first: the backward pass completes a part's gradient,
 * the forward pass needs the part. */
struct bucket_layer {
    size_t count, parts;
    double forward, backward;
};

/* Sets order (bucket_count): indices into bucket_plan's `buckets`, first to travel first. The next
 * bucket is the ready one that is needed first, and among equals the one that is ready first. */
void bucket_order(const struct bucket *buckets, size_t bucket_count,
                  const struct bucket_layer *layers, size_t layer_count, size_t *order);

#endif
