/*
 * A network: layers in a row, one contiguous arena of parameters and one of gradients, both built
 * from one table of tensors. A training step is net_forward, net_backward, optimizer_step; between
 * backward and the optimizer the gradients may be averaged over workers. A net keeps nothing of a
 * step but its activations, so one process can play several workers in turn (net_step.rank).
 *
 * Threads: one thread drives a net and its device. Everything is allocated by net_new.
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

/* One parameter tensor; its gradient has the same place in the other arena. */
struct net_tensor {
    char name[NET_NAME_BYTES]; /* "conv1.weight" */
    size_t shape[NET_TENSOR_DIMS];
    int ndim;
    size_t offset, count; /* elements of the arena */
};

/* What tells a step from another: decides the numbers that dropout draws. */
struct net_step {
    bool training; /* false: dropout is the identity */
    uint64_t seed, step;
    uint32_t rank;
    double
        divisor; /* of the sum of losses whose gradients are computed; 0: the batch, so the mean */
};

struct net_loss {
    double loss_sum; /* over the batch; natural logarithm */
    int64_t correct;
};

/* One layer as computed (relu and pooling are fused into the layer before them). */
struct net_layer {
    const char *name;
    size_t first, count;                  /* its parameters in the arena */
    size_t in_count, out_count;           /* elements it reads and writes, for one image */
    double forward_flops, backward_flops; /* for one image; multiply and add count as two */
    /* On one thread of a CPU its gradient gets final in so many equal parts, last first, evenly
     * over its backward pass. */
    size_t gradient_parts;
};

/*
 * Called with a range of the arena, elements [first, first + count).
 * By net_backward: as soon as the range's gradients have their final value on the device's stream,
 * while the backward pass of what is before them goes on. A range is a layer's or a part of one,
 * each ends where the one before it begins, and together they cover the arena once.
 * By a training forward pass (net_before_forward): before it reads the range's parameters, and not
 * before what precedes them has been asked for: they may come late, but must be there when it
 * returns. Ranges as above, but layer by layer from the first one on.
 */
typedef void net_range_hook(void *context, size_t first, size_t count);

/*
 * Called when a layer's part of a pass has been issued to the device. `layer` is its number in
 * net_layers; their count stands for the loss, which is part of the forward pass.
 */
typedef void net_pass_hook(void *context, size_t layer, bool backward);

/*
 * Builds a model of the zoo (cnn.h) for batches of up to `batch_max` images, with parameters
 * initialised from `seed`, the same on every rank and device. Borrows `device`; net_free before
 * device_close. STATUS_USAGE if there is no such model.
 */
enum status net_new(struct net **net, struct device *device, const char *model, size_t batch_max,
                    uint64_t seed);

/* The same from a description. `fuse` false computes relu and pooling as layers of their own: the
 * same numbers, slower; tests compare the two. */
enum status net_new_cnn(struct net **net, struct device *device, const struct cnn *cnn,
                        size_t batch_max, uint64_t seed, bool fuse);
void net_free(struct net **net);

/* Batches of this size will come: what a device decides for each size (device_convolutions) it
 * decides now, not at the first one. Errors: logged. */
enum status net_expect(struct net *net, size_t batch);

/*
 * Which step comes next, net_step.step of the net_forward that follows; which says it by itself,
 * unless it is part of a step that is repeated (device_repeat): there nothing may be uploaded, so
 * who repeats it calls this before it.
 */
void net_set_step(struct net *net, uint64_t step);

/*
 * Predicts and compares. images (batch, 28, 28, 1) and labels (batch), below 10, are device memory
 * and must stay as they are until net_backward. batch <= batch_max. Waits for
 * the device, unless `loss` is NULL.
 */
enum status net_forward(struct net *net, const float *images, const uint8_t *labels, size_t batch,
                        const struct net_step *step, struct net_loss *loss);

/* Copies the loss of the last net_forward to *to, memory from device_host_alloc, in the order of
 * the operations; an event recorded next tells when it is there. */
void net_download_loss(struct net *net, struct loss_sum *to);

/*
 * Gradients of the *mean* loss (or by its net_step.divisor) of the last net_forward, which must
 * have been a training one; overwrites the gradient arena. `hook` may be NULL.
 */
enum status net_backward(struct net *net, net_range_hook *hook, void *context);

/* From now on `hook` sees every layer of every pass; NULL: nobody does. For measuring. */
void net_watch(struct net *net, net_pass_hook *hook, void *context);

/* From now on `hook` is asked for the parameters of every training forward pass; NULL: nobody is.
 */
void net_before_forward(struct net *net, net_range_hook *hook, void *context);

/* Device memory, 64-byte aligned, (net_parameter_count). */
float *net_parameters(struct net *net);
float *net_gradients(struct net *net);
size_t net_parameter_count(const struct net *net);

/* An optimizer for all of the net's parameters, on its device: optimizer_new with the net's
 * tensors.
 */
enum status net_optimizer_new(struct optimizer **optimizer, const struct net *net,
                              enum optimizer_kind kind,
                              const struct optimizer_parameters *parameters);

/* In the arena's order; borrowed until net_free. */
const struct net_tensor *net_tensors(const struct net *net, size_t *count);
const struct net_layer *net_layers(const struct net *net, size_t *count);

#endif
