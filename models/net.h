/*
 * A network: a sequence of layers, one contiguous arena of parameters and one of gradients, both
 * built from one table of tensors. A training step is net_forward, net_backward, optimizer_step.
 * The gradients may be averaged over workers between backward and the optimizer. A net keeps
 * nothing of a step except its activations, so one process can act as several workers in turn
 * (net_step.rank).
 *
 * Threads: one thread drives a net and its device. net_new allocates everything.
 */
#ifndef PSRING_MODELS_NET_H
#define PSRING_MODELS_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "models/optim.h"

struct net;
struct cnn;

enum { NET_TENSOR_DIMS = 4, NET_NAME_BYTES = 32 };

/* One parameter tensor. Its gradient has the same offset in the other arena. */
struct net_tensor {
    char name[NET_NAME_BYTES]; /* "conv1.weight" */
    size_t shape[NET_TENSOR_DIMS];
    int ndim;
    size_t offset, count; /* elements of the arena */
};

/* Identifies a step: determines the random numbers of dropout. */
struct net_step {
    bool training; /* false: dropout is the identity */
    uint64_t seed, step;
    uint32_t rank;
    double divisor; /* divides the sum of losses; 0: the batch size, so the mean */
};

/* One layer as computed: relu and pooling are fused into the layer before them. */
struct net_layer {
    const char *name;
    size_t first, count;                  /* its parameters in the arena */
    size_t in_count, out_count;           /* elements it reads and writes, for one image */
    double forward_flops, backward_flops; /* for one image; multiply and add count as two */
    /* On one CPU thread its gradient becomes final in this number of equal parts, the last part
     * first, evenly over its backward pass. */
    size_t gradient_parts;
};

/*
 * Called with a range of the arena, elements [first, first + count).
 *
 * By net_backward: as soon as the range's gradients are final on the device's stream. The backward
 * pass of earlier layers still continues. A range is a layer or a part of one. Each range ends
 * where the previous one begins, and together they cover the arena once.
 *
 * By a training forward pass (net_before_forward): before it reads the range's parameters, and
 * after it has asked for all earlier ranges. The parameters may arrive late, but must be there when
 * the hook returns. Ranges are as above, but layer by layer from the first layer on.
 */
typedef void net_range_hook(void *context, size_t first, size_t count);

/*
 * Called when a layer's part of a pass has been issued to the device. `layer` is its number in
 * net_layers. The number of layers denotes the loss, which is part of the forward pass.
 */
typedef void net_pass_hook(void *context, size_t layer, bool backward);

/*
 * Builds a model of the zoo (cnn.h) for batches of up to `batch_max` images. The initial parameters
 * depend on `seed` and are the same on every rank and device. Borrows `device`: call net_free
 * before device_close. STATUS_USAGE if there is no such model.
 */
enum status net_new(struct net **net, struct device *device, const char *model, size_t batch_max,
                    uint64_t seed);

/* The same from a description. With `fuse` false, relu and pooling are separate layers: the same
 * numbers, slower. Tests compare the two. */
enum status net_new_cnn(struct net **net, struct device *device, const struct cnn *cnn,
                        size_t batch_max, uint64_t seed, bool fuse);
void net_free(struct net **net);

/*
 * Sets the step (net_step.step) of the next net_forward. Usually net_forward calls it. Within a
 * repeated step (device_repeat) nothing may be uploaded, so the caller that repeats the step calls
 * this before.
 */
void net_set_step(struct net *net, uint64_t step);

/*
 * Predicts and compares with the labels. The arrays images (batch, 28, 28, 1) and labels (batch),
 * below 10, are in device memory. They must not change until net_backward. Requires batch <=
 * batch_max. Waits for the device, unless `loss` is NULL.
 */
enum status net_forward(struct net *net, const float *images, const uint8_t *labels, size_t batch,
                        const struct net_step *step, struct loss_sum *loss);

/* Copies the loss of the last net_forward to *to, memory from device_host_alloc, in the order of
 * the operations. Record an event next to learn when it has arrived. */
void net_download_loss(struct net *net, struct loss_sum *to);

/*
 * Gradients of the *mean* loss (or by its net_step.divisor) of the last net_forward, which must
 * have been a training one. Overwrites the gradient arena. `hook` may be NULL.
 */
enum status net_backward(struct net *net, net_range_hook *hook, void *context);

/* Calls `hook` for every layer of every pass from now on; NULL: stop. For measuring. */
void net_watch(struct net *net, net_pass_hook *hook, void *context);

/* Calls `hook` for the parameters of every training forward pass from now on; NULL: stop. */
void net_before_forward(struct net *net, net_range_hook *hook, void *context);

/* Device memory, 64-byte aligned, (net_parameter_count). */
float *net_parameters(struct net *net);
float *net_gradients(struct net *net);
size_t net_parameter_count(const struct net *net);

/* An optimizer for all of the net's parameters, on its device: optimizer_new with the net's
 * tensors. */
enum status net_optimizer_new(struct optimizer **optimizer, const struct net *net,
                              enum optimizer_kind kind,
                              const struct optimizer_parameters *parameters);

/* In the arena's order; borrowed until net_free. */
const struct net_tensor *net_tensors(const struct net *net, size_t *count);
const struct net_layer *net_layers(const struct net *net, size_t *count);

#endif
