/*
 * The operations of a device. Each is required unless marked optional. Data is float32, row-major.
 * Activations are (N, H, W, C): batch, rows, columns, channels. Bias, relu and pooling then run
 * over contiguous channels, and a row of a convolution's window is one contiguous run. With one
 * channel (N, H, W, 1) has the same bytes as (N, 1, H, W). Pointers are device memory unless named
 * host. Outputs must not overlap inputs unless the entry allows "in place".
 */
#ifndef PSRING_COMMON_DEVICE_OPS_H
#define PSRING_COMMON_DEVICE_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/rng.h"
#include "common/base/status.h"

struct device;
struct device_usage;
struct stream_ops;

/* 2 x 2 max-pooling with stride 2; an odd last row or column is dropped. */
struct pool2d {
    size_t height, width, channels; /* of the input */
};

/* Square window with stride 1, then bias. relu and pooling (as above) may be fused into the
 * call. */
struct conv2d {
    size_t height, width, channels; /* of the input */
    size_t filters, kernel, padding;
    bool relu, pool;
    void *kept; /* set by conv2d_prepare: device memory that forward fills and the following
                 * backward pass consumes; NULL: none. The caller frees it. */
};

enum { DENSE_BLOCK_INPUTS = 768 }; /* inputs that a CPU thread computes at a time, at most */

struct dense {
    size_t inputs, outputs;
    bool relu; /* fused after the bias */
};

/*
 * A range of rows of w (one row per input) that one call of a dense operation computes. One
 * operation may be several calls, from the last rows to the first, whose ranges cover all of w.
 * Between calls the caller can fetch the next rows of w, or send the final rows of dw. The result
 * does not depend on how the rows are cut.
 */
struct dense_rows {
    size_t first, end; /* [first, end); first: a multiple of what ops->dense_rows returns */
};

static inline struct dense_rows dense_all_rows(const struct dense *dense)
{
    return (struct dense_rows){0, dense->inputs};
}

/* The inputs and outputs of a backward pass. It overwrites all gradients and adds to none. */
struct backward {
    const float *x;       /* the forward pass's input */
    const float *w;       /* its weights */
    const float *y;       /* its output, read only where relu is fused */
    const uint8_t *index; /* its `index`, read only where pooling is fused */
    float *dy;            /* gradient by y; may be destroyed */
    float *dx;            /* gradient by x; NULL = not wanted (first layer) */
    float *dw, *dbias;
};

/*
 * The random numbers of a dropout: a pure function of this struct and the element's position. The
 * backward pass therefore recomputes the mask, and all threads and devices agree. Element e is kept
 * if word e % 4 of rng_block(key, layer << 48 | e / 4, step) is at least floor(rate x 2^32).
 */
struct dropout {
    float rate; /* probability of zero, in [0, 1); kept elements are scaled by 1 / (1 - rate) */
    struct rng_key key; /* rng_key(seed, RNG_DROPOUT, rank) */
    uint16_t layer;
    const uint64_t *step_at; /* device memory, read when the operation runs, so that another step
                              * can repeat it */
};

struct loss_sum {
    double loss; /* sum over the batch of -log p[label] */
    int64_t correct;
};

enum optimizer_kind {
    OPTIMIZER_SGD,
    OPTIMIZER_ADAGRAD,
    OPTIMIZER_ADADELTA,
    OPTIMIZER_ADAM,
    OPTIMIZER_LARS
};

/*
 * An optimizer's step is one pass over the parameters. In all kinds g = gradient + weight_decay
 * parameter.
 *
 *     sgd         velocity = momentum velocity + g
 *                 parameter -= lr velocity
 *     Nesterov    the same velocity
 *                 parameter -= lr (g + momentum velocity)
 *     adagrad     a = a + g^2
 *                 parameter -= lr g / (sqrt(a) + epsilon)
 *     adadelta    a = rho a + (1 - rho) g^2
 *                 d = g sqrt(u + epsilon) / sqrt(a + epsilon)
 *                 u = rho u + (1 - rho) d^2
 *                 parameter -= lr d
 *     adam        m = beta1 m + (1 - beta1) g
 *                 v = beta2 v + (1 - beta2) g^2
 *                 correction[i] = 1 - beta(i + 1)^step
 *                 parameter -= lr (m / correction[0]) / (sqrt(v / correction[1]) + epsilon)
 *     lars        ratio = trust |w| / (|gradient| + weight_decay |w|)
 *                 velocity = momentum velocity + ratio g
 *                 parameter -= lr velocity
 *
 * A step of lars is for one whole tensor w. Its ratio is 1 if w or the gradient is all 0.
 * Velocities do not contain lr, which may change from step to step (models/optim.h).
 *
 * Sources: Sutskever et al. 2013 (sgd, Nesterov). Duchi et al. 2011 (adagrad). Zeiler 2012,
 * algorithm 1 (adadelta). Kingma and Ba 2015, algorithm 1 (adam). You et al. 2017, "Large batch
 * training of convolutional networks", algorithm 1 (lars; there velocity contains lr).
 */
struct update {
    enum optimizer_kind kind;
    float momentum;     /* sgd, lars */
    bool nesterov;      /* sgd */
    float rho;          /* adadelta */
    float beta1, beta2; /* adam */
    float epsilon;      /* adagrad, adadelta, adam */
    float trust;        /* lars */
    float weight_decay;
    const float *lr_at; /* device memory, read like dropout.step_at */
    size_t stride; /* adadelta, adam: from a parameter's first value in the state to its second */
    float *step;   /* adam, device memory: number of steps that adam_count has begun */
    float *correction; /* adam, device memory (2) */
};

/* A data set in device memory: its bytes, and the float of each byte value. */
struct gather {
    const uint8_t *images; /* (samples, pixels) */
    const uint8_t *labels; /* (samples) */
    const float *values;   /* (256) */
    size_t pixels;
};

/* Output height (or width) for an input height (or width): before pooling, then after it. */
static inline size_t conv2d_window_size(const struct conv2d *c, size_t size)
{
    return size + 2 * c->padding - c->kernel + 1;
}

static inline size_t conv2d_out_size(const struct conv2d *c, size_t size)
{
    return conv2d_window_size(c, size) / (c->pool ? 2 : 1);
}

struct device_ops {
    const char *name;
    const char *no_memory;            /* (optional) see device_no_memory */
    const struct stream_ops *streams; /* (optional) see stream.h */
    void (*close)(struct device *);
    enum status (*sync)(struct device *);
    void (*usage)(const struct device *, struct device_usage *); /* (optional) see device.h */

    /* Memory: call these five through the functions of device.h. */
    enum status (*alloc)(struct device *, size_t bytes, void **memory);
    void (*free)(struct device *, void *memory);
    void (*upload)(struct device *, void *to, const void *from_host, size_t bytes);
    void (*download)(struct device *, void *to_host, const void *from, size_t bytes);

    void (*fill)(struct device *, float *to, float value, size_t count);
    void (*copy)(struct device *, float *to, const float *from, size_t count);
    void (*scale)(struct device *, float *values, float factor, size_t count); /* in place */

    /* Stores the images (batch, pixels) and labels (batch) of the samples numbered by `samples`
     * (batch). */
    void (*gather)(struct device *, const struct gather *, size_t batch, const uint32_t *samples,
                   float *images, uint8_t *labels);

    /* w (kernel, kernel, channels, filters), bias (filters), y (N, out height, out width, filters).
     * index, only with c->pool: the first largest of the window's four elements (row-major), shaped
     * as y. */
    enum status (*conv2d_prepare)(struct device *, struct conv2d *, size_t batch_max);
    void (*conv2d_forward)(struct device *, const struct conv2d *, size_t batch, const float *x,
                           const float *w, const float *bias, float *y, uint8_t *index);
    void (*conv2d_backward)(struct device *, const struct conv2d *, size_t batch,
                            const struct backward *);

    /* y and index (N, height / 2, width / 2, channels). */
    void (*maxpool_forward)(struct device *, const struct pool2d *, size_t batch, const float *x,
                            float *y, uint8_t *index);
    void (*maxpool_backward)(struct device *, const struct pool2d *, size_t batch,
                             const uint8_t *index, const float *dy, float *dx);

    /* x (N, inputs), w (inputs, outputs), bias (outputs), y (N, outputs). The forward call for row
     * 0 reads bias and completes y. The backward call for the last row also overwrites dbias. Each
     * backward call completes columns [first, end) of dx. */
    enum status (*dense_prepare)(struct device *, const struct dense *, size_t batch_max);
    /* Number of rows that a call should compute if the caller has work to do between calls. */
    size_t (*dense_rows)(const struct device *, const struct dense *);
    void (*dense_forward)(struct device *, const struct dense *, size_t batch, struct dense_rows,
                          const float *x, const float *w, const float *bias, float *y);
    void (*dense_backward)(struct device *, const struct dense *, size_t batch, struct dense_rows,
                           const struct backward *);

    /* In place allowed (y == x, dx == dy). relu_backward reads the forward pass's output. */
    void (*relu_forward)(struct device *, size_t count, const float *x, float *y);
    void (*relu_backward)(struct device *, size_t count, const float *y, const float *dy,
                          float *dx);

    /* In place allowed. Forward on x and backward on dy are the same operation. */
    void (*dropout)(struct device *, const struct dropout *, size_t count, const float *x,
                    float *y);

    /* logits (N, classes). Overwrites *sum (device memory). dlogits is the gradient of (sum of
     * losses) / `divisor` (N gives the mean); NULL = not wanted; in place allowed. The prediction
     * is the first largest logit. */
    void (*softmax_cross_entropy)(struct device *, size_t batch, size_t classes, double divisor,
                                  const float *logits, const uint8_t *labels, float *dlogits,
                                  struct loss_sum *sum);

    /* One pass over (count) elements. The state is (count): velocity, a. Or it is (2, ...): a, then
     * u; m, then v. adam_count comes before the first adam of a step. lars also reads parameters
     * and gradients once for its sums, whose order depends on the count alone. */
    void (*adam_count)(struct device *, const struct update *);
    void (*update)(struct device *, const struct update *, size_t count, float *parameters,
                   const float *gradients, float *state);
};

#endif
