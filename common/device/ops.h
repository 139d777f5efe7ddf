/*
 * The operations of a device, required unless marked. Data is float32, row-major; activations are
 * (N, H, W, C): batch, rows, columns, channels, so that bias, relu and pooling run over contiguous
 * channels, and a row of a convolution's window is one contiguous run. With one channel these are
 * the same bytes as (N, 1, H, W). Pointers are device memory unless named host. Outputs do not
 * overlap inputs unless "in place" is said to be allowed.
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

/* Square window with stride 1, bias; then, fused into the call, relu and pooling as above. */
struct conv2d {
    size_t height, width, channels; /* of the input */
    size_t filters, kernel, padding;
    bool relu, pool;
    void *kept; /* set by conv2d_prepare: device memory in which forward leaves what the backward
                 * pass that follows uses up; NULL: nothing. The caller frees it. */
};

enum { DENSE_BLOCK_INPUTS = 768 }; /* of which a CPU's thread computes at most so many at a time */

struct dense {
    size_t inputs, outputs;
    bool relu; /* fused after the bias */
};

/*
 * Rows of w, one for each input: what one call of a dense operation computes. Calls for rows that
 * cover all of w, from the last ones to the first, are one operation. Between them the caller can
 * fetch the rows of w that come next, or pass on the rows of dw that are final. The numbers are the
 * same however the rows are cut.
 */
struct dense_rows {
    size_t first, end; /* [first, end); first: a multiple of what ops->dense_rows returns */
};

static inline struct dense_rows dense_all_rows(const struct dense *dense)
{
    return (struct dense_rows){0, dense->inputs};
}

/* What a backward pass reads and writes; all gradients are overwritten, none is added to. */
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
 * Which numbers a dropout draws: a pure function of this and of the element's position, so the
 * backward pass recomputes the mask, and threads and devices agree. Element e is kept if word e % 4
 * of rng_block(key, layer << 48 | e / 4, step) is at least floor(rate x 2^32).
 */
struct dropout {
    float rate; /* probability of zero, in [0, 1); what is kept is scaled by 1 / (1 - rate) */
    struct rng_key key; /* rng_key(seed, RNG_DROPOUT, rank) */
    uint16_t layer;
    const uint64_t *step_at; /* device memory, read when the operation is done, so that it can be
                              * repeated for another step */
};

struct loss_sum {
    double loss; /* sum over the batch of -log p[label] */
    int64_t correct;
};

/*
 * Steps of optimizers. In all of them g = gradient + weight_decay parameter, and lr_at is device
 * memory, read as dropout.step_at. `stride`: elements from a parameter's first number in the state
 * to its second one.
 */

/*
 * velocity = momentum velocity + g; parameter -= lr velocity; with Nesterov's momentum
 * parameter -= lr (g + momentum velocity). Source: Sutskever et al. 2013, in the form in which the
 * rate is no part of the velocity, so that it may change from step to step (models/optim.h).
 */
struct sgd {
    float momentum;
    bool nesterov;
    float weight_decay;
    const float *lr_at;
};

/* a = a + g^2; parameter -= lr g / (sqrt(a) + epsilon). Source: Duchi et al. 2011. */
struct adagrad {
    float epsilon;
    float weight_decay;
    const float *lr_at;
};

/*
 * a = rho a + (1 - rho) g^2; d = g sqrt(u + epsilon) / sqrt(a + epsilon);
 * u = rho u + (1 - rho) d^2; parameter -= lr d. Source: Zeiler 2012, algorithm 1.
 */
struct adadelta {
    float rho, epsilon;
    float weight_decay;
    const float *lr_at;
    size_t stride;
};

/*
 * m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
 * parameter -= lr (m / correction[0]) / (sqrt(v / correction[1]) + epsilon), where
 * correction[i] = 1 - beta(i + 1)^step. Source: Kingma and Ba 2015, algorithm 1.
 */
struct adam {
    float beta1, beta2, epsilon;
    float weight_decay;
    const float *lr_at;
    float *step;       /* device memory: how many adam_count has begun */
    float *correction; /* (2), device memory */
    size_t stride;
};

/*
 * For one whole tensor w: velocity = momentum velocity + trust g, parameter -= lr velocity, with
 * trust = coefficient |w| / (|gradient| + weight_decay |w|); 1 where w or the gradient is all 0.
 * Source: You et al. 2017, "Large batch training of convolutional networks", algorithm 1; but lr
 * is no part of the velocity, as in struct sgd.
 */
struct lars {
    float momentum, coefficient;
    float weight_decay;
    const float *lr_at;
};

/* A data set in device memory: bytes, and what each byte becomes. */
struct gather {
    const uint8_t *images; /* (samples, pixels) */
    const uint8_t *labels; /* (samples) */
    const float *values;   /* (256) */
    size_t pixels;
};

/* Output height (or width) for an input height (or width): the window alone, then with pooling. */
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
    const struct stream_ops *streams; /* stream.h */
    void (*close)(struct device *);
    enum status (*sync)(struct device *);
    void (*usage)(const struct device *, struct device_usage *); /* (optional) see device.h */
    const char *(*convolutions)(const struct device *);          /* (optional) see device.h */

    /* Memory: see device.h, whose functions are the way to call these five. */
    enum status (*alloc)(struct device *, size_t bytes, void **memory);
    void (*free)(struct device *, void *memory);
    void (*upload)(struct device *, void *to, const void *from_host, size_t bytes);
    void (*download)(struct device *, void *to_host, const void *from, size_t bytes);

    void (*fill)(struct device *, float *to, float value, size_t count);
    void (*copy)(struct device *, float *to, const float *from, size_t count);
    void (*scale)(struct device *, float *values, float factor, size_t count); /* in place */

    /* images (batch, pixels) and labels (batch) of the samples that `samples` (batch) numbers. */
    void (*gather)(struct device *, const struct gather *, size_t batch, const uint32_t *samples,
                   float *images, uint8_t *labels);

    /* w (kernel, kernel, channels, filters), bias (filters), y (N, out height, out width, filters).
     * index, only with c->pool: which of the window's four (row-major) was first largest, as y. */
    enum status (*conv2d_prepare)(struct device *, struct conv2d *, size_t batch_max);
    /* (optional) Batches of this size will come: what a device decides for each size it decides
     * now, and not at the first. */
    enum status (*conv2d_expect)(struct device *, const struct conv2d *, size_t batch);
    void (*conv2d_forward)(struct device *, const struct conv2d *, size_t batch, const float *x,
                           const float *w, const float *bias, float *y, uint8_t *index);
    void (*conv2d_backward)(struct device *, const struct conv2d *, size_t batch,
                            const struct backward *);

    /* y and index (N, height / 2, width / 2, channels). */
    void (*maxpool_forward)(struct device *, const struct pool2d *, size_t batch, const float *x,
                            float *y, uint8_t *index);
    void (*maxpool_backward)(struct device *, const struct pool2d *, size_t batch,
                             const uint8_t *index, const float *dy, float *dx);

    /* x (N, inputs), w (inputs, outputs), bias (outputs), y (N, outputs). The forward call that
     * computes row 0 reads bias and completes y. The backward call that computes the last row
     * overwrites dbias, too; dx has its columns [first, end) after it. */
    enum status (*dense_prepare)(struct device *, const struct dense *, size_t batch_max);
    /* How many rows a call should compute where the caller has something to do between calls. */
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

    /* logits (N, classes). Overwrites *sum (device memory). dlogits, of the loss's sum divided by
     * `divisor` (N: the mean); NULL = not wanted; in place allowed. The prediction is the first
     * largest logit. */
    void (*softmax_cross_entropy)(struct device *, size_t batch, size_t classes, double divisor,
                                  const float *logits, const uint8_t *labels, float *dlogits,
                                  struct loss_sum *sum);

    /* One pass over (count) elements; velocity and a (count); state (2, ...): a, then u; m, then v.
     * adam_count comes before the first one of a step. lars: sums in an order that depends on the
     * count alone, and a pass over parameters and gradients for them. */
    void (*sgd)(struct device *, const struct sgd *, size_t count, float *parameters,
                const float *gradients, float *velocity);
    void (*adagrad)(struct device *, const struct adagrad *, size_t count, float *parameters,
                    const float *gradients, float *a);
    void (*adadelta)(struct device *, const struct adadelta *, size_t count, float *parameters,
                     const float *gradients, float *state);
    void (*adam_count)(struct device *, const struct adam *);
    void (*adam)(struct device *, const struct adam *, size_t count, float *parameters,
                 const float *gradients, float *state);
    void (*lars)(struct device *, const struct lars *, size_t count, float *parameters,
                 const float *gradients, float *velocity);
};

#endif
