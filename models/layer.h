/*
 * A layer: a const table of functions, its shapes, and views of its parameters and gradients in the
 * net's arenas. One file for each kind; layers_small.c has three. A layer allocates memory only in
 * prepare, for what forward must keep besides x and y (the positions of the maxima).
 */
#ifndef PSRING_MODELS_LAYER_H
#define PSRING_MODELS_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "models/cnn.h"
#include "models/net.h"

enum {
    LAYER_TENSORS = 2, /* weight and bias */
    LAYER_NAME_BYTES = 16,
    LAYER_RANGE_BYTES = LAYER_NAME_BYTES + sizeof "backward",
};

/* A parameter tensor as its layer describes it. Fans of 0: it starts as zeros. */
struct layer_tensor {
    const char *name; /* "weight" */
    size_t shape[NET_TENSOR_DIMS];
    int ndim;
    size_t fan_in, fan_out;
};

struct layer {
    const struct layer_ops *ops;
    struct device *device;
    char name[LAYER_NAME_BYTES];
    char forward_range[LAYER_RANGE_BYTES], backward_range[LAYER_RANGE_BYTES]; /* see base/range.h */
    uint16_t position; /* in the description: selects the layer's dropout numbers, fused or not */
    struct shape in, out;

    size_t tensor_count;
    struct layer_tensor tensors[LAYER_TENSORS];
    float *parameters[LAYER_TENSORS], *gradients[LAYER_TENSORS]; /* set by the net; device memory */

    double forward_flops, dx_flops, dw_flops; /* for one image; backward is dw plus dx, if wanted */
    size_t dw_parts; /* parts in which dw becomes final, in turn; 1 before describe */
    uint8_t *index;  /* positions of maxima, with pooling */
    void *kept;      /* other data from forward for backward; the net frees it, like `index` */
    union {
        struct conv2d conv;
        struct pool2d pool;
        struct dense dense;
        float rate;
    } of;
};

/* State of notifications about one layer's parameters or gradients (net_range_hook): the caller of
 * the pass has been notified of all elements from `end` on. */
struct layer_ranges {
    net_range_hook *hook;
    void *context;
    size_t first, end; /* elements of the arena; `first`: the layer's first one */
};

/*
 * Notifies the caller of the pass of the layer's elements from `first` on, except those it has been
 * notified of. Forward calls it before the elements are read, backward when they are final. A layer
 * of several dw_parts calls it, from its last elements to its first. For other layers the net calls
 * it.
 */
void layer_notify(struct layer_ranges *ranges, size_t first);

/* One batch through one layer. Pointers are to device memory. */
struct layer_pass {
    size_t batch;
    const struct net_step *step;
    const uint64_t *step_at;     /* step->step in device memory */
    const float *x;              /* (batch, in) */
    float *y;                    /* (batch, out): written by forward, read by backward */
    float *dy;                   /* backward: gradient by y, may be destroyed */
    float *dx;                   /* backward: gradient by x, overwritten; NULL: none */
    struct layer_ranges *ranges; /* NULL: the caller needs no notification of parts */
};

struct layer_ops {
    const char *kind;
    /* Sets out, tensors, flops and `of` from the description; `in` is set. `fused` names the
     * following layers of the description that are part of this one. */
    void (*describe)(struct layer *, const struct layer_spec *, struct cnn_fused fused);
    enum status (*prepare)(struct layer *, size_t batch_max); /* optional: nothing to prepare */
    void (*forward)(struct layer *, const struct layer_pass *);
    void (*backward)(struct layer *, const struct layer_pass *);
    bool training_only; /* identity outside of training, and then not called */
};

extern const struct layer_ops conv_layer_ops, pool_layer_ops, dense_layer_ops, relu_layer_ops,
    dropout_layer_ops;

#endif
