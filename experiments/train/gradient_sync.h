/*
 * The averaging of a step's gradients: their buckets, the start of each bucket, and the wait for
 * it. The backward pass starts each bucket when it is complete. Then the step waits for all
 * buckets. With `may_defer` the next step waits instead. It waits for each bucket before its
 * forward pass reads the bucket's parameters:
 *
 *     compute   |forward 1|backward 1       |forward 2|backward 2       |
 *     network             [2 ][1a ][0][1b  ]          [2 ][1a ][0][1b  ]
 *
 * A bucket's gradients are averaged and applied before its parameters are read. This is also before
 * the backward pass overwrites the gradients. The results equal those of waiting for all buckets.
 * Call gradient_sync_finish before any other code reads the weights.
 *
 *     gradient_sync_begin(sync);
 *     net_forward(...);                                            calls gradient_sync_need
 *     net_backward(net, gradient_sync_start, sync);
 *     gradient_sync_end(sync, lr);
 *
 * If servers own the parameters (common/comm/comm_options.h), a bucket comes back as new
 * parameters. gradient_sync_end puts them in place.
 *
 * Threads: one thread, which drives the device, makes all calls.
 */
#ifndef PSRING_EXPERIMENTS_TRAIN_GRADIENT_SYNC_H
#define PSRING_EXPERIMENTS_TRAIN_GRADIENT_SYNC_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/range.h"
#include "common/base/status.h"
#include "common/comm/backend.h"
#include "common/comm/bucket.h"
#include "common/comm/comm_options.h"
#include "common/device/device.h"
#include "common/net/cpu_watch.h"
#include "models/lr.h"
#include "models/net.h"
#include "models/optim.h"

/*
 * The comm_updater of a server that owns the parameters. It has the optimizer and the learning-rate
 * schedule of the workers. Its arrays are as long as the model, but it uses only its shards. It has
 * its own CPU device, because it may run on a thread of a worker's process.
 */
struct updater {
    struct comm_updater interface;
    struct device *device;
    struct optimizer *optimizer; /* NULL: parameters do not change (paced) */
    float *gradients, *parameters;
    size_t count;
    struct lr_schedule lr;
    float lr_factor;              /* multiplies the schedule's rates */
    const struct bucket *buckets; /* borrowed from the gradient_sync, which sets it */
};

struct updater_options {
    size_t count; /* parameters */
    bool trains;  /* false: the fields below are not used, and parameters do not change */
    enum optimizer_kind kind;
    struct optimizer_parameters optimizer;
    struct lr_schedule lr;
    /* >= 1: the number of updates that replace one step of bsp. Each update has 1/updates of the
     * gradient and of the weight decay. Adadelta's rate is divided by `updates`, Adagrad's by its
     * square root. With equal gradients, all updates together then go as far as one step of bsp. */
    size_t updates;
};

/* Needs updater_close, even after an error. */
enum status updater_open(struct updater *updater, const struct updater_options *options);
void updater_close(struct updater *updater);

/* The gradients to average: the arena of a net (net_layers, net_gradients), or a similar one.
 * Borrowed. */
struct gradient_sync_model {
    const struct net_layer *layers; /* (layer_count), in the order of the arena */
    size_t layer_count;
    float *gradients;
    float *parameters; /* updated by the optimizer; NULL without one */
};

struct gradient_sync_options {
    struct world *world;
    const struct backend *backend;
    const struct comm_options *comm; /* the longest bucket and the updater need not be set */
    struct updater *updater;         /* on a rank with a server that updates, else NULL; borrowed */
    float scale;                     /* multiplies the sum of gradients */
    size_t bucket_bytes;             /* target size; 0: one bucket */
    bool whole_tensors; /* no bucket may end within a tensor: optimizer_needs_whole_tensors */
    bool may_defer;     /* the next step's forward pass may wait, if the comm overlaps */
};

struct gradient_sync {
    struct comm *comm;
    struct device *device; /* the model's */
    struct gradient_sync_model model;
    struct optimizer *optimizer; /* NULL: gradients are averaged and not applied */
    struct bucket *buckets;      /* (count), in order of completion */
    size_t *counts;              /* (count): elements of each */
    size_t *order;               /* (count): the order of sending; NULL: as started */
    bool *pending;               /* (count): started, not waited for */
    size_t count;
    size_t model_count; /* elements of the arena */
    bool updates_on_server;
    bool overlaps; /* the comm averages while the step computes */
    bool defers;
    float pending_lr; /* of the step that started the pending buckets */

    /* The running step. */
    size_t started;     /* buckets handed to the comm so far */
    enum status status; /* of starts and waits in hooks, which cannot return it */
    /* Time inside comm_start and comm_wait, not hidden by computing. Its processor time is 0 if the
     * comm overlaps, because another thread averages. */
    struct range_sum exposed;
    struct cpu_watch *watch; /* runs while the step is blocked; borrowed, or NULL */
};

/* Plans the buckets of these layers, *count, in order of completion, and the order in which they
 * travel if the next step waits for them (bucket.h). The caller frees *buckets and *order, also
 * after an error. STATUS_NO_MEMORY is logged. */
enum status gradient_buckets(const struct net_layer *layers, size_t layer_count,
                             const struct bucket_limits *limits, struct bucket **buckets,
                             size_t *count, size_t **order);

/*
 * Collective over the world: plans the buckets and opens the comm. Borrows `optimizer`; it is NULL
 * on a server and in a run that does not train. If sync->defers is then true, the caller makes
 * gradient_sync_need a hook of the forward pass (net_before_forward). A dedicated server calls
 * comm_serve(sync->comm). Errors: logged. Needs gradient_sync_close, even after an error.
 */
enum status gradient_sync_open(struct gradient_sync *sync, const struct gradient_sync_model *model,
                               struct optimizer *optimizer,
                               const struct gradient_sync_options *options);
void gradient_sync_close(struct gradient_sync *sync);

/* Begins a step, perhaps for the second time: none of its buckets is started. Buckets that the
 * previous step deferred stay pending. */
void gradient_sync_begin(struct gradient_sync *sync);

/* Hook of net_backward: starts the buckets that are now complete. */
net_range_hook gradient_sync_start;
/* Starts all buckets, layer by layer, as a GPU's backward pass does. A worker without a backward
 * pass thus groups its buckets like the other workers (backend.flush). */
void gradient_sync_start_layers(struct gradient_sync *sync);

/* Hook of the forward pass: waits for the pending buckets of this range and applies them. If that
 * fails, the next gradient_sync_end returns the failure. */
net_range_hook gradient_sync_need;

/* Call when all buckets have been started. Waits for them and applies them with the learning rate
 * `lr`, or defers both to the next step. */
enum status gradient_sync_end(struct gradient_sync *sync, float lr);

/* Waits for all pending buckets and applies them. Afterwards the weights are those after the
 * step. */
enum status gradient_sync_finish(struct gradient_sync *sync);

/*
 * A step that waits as long as computing would take, and really averages. It waits layer by layer,
 * in proportion to the layers' operations. Buckets are therefore complete, and needed, at realistic
 * times. The caller sets the gradients once. After the first average they are the same on all ranks
 * and stay the same, except for rounding.
 */

/* One step, from gradient_sync_begin to gradient_sync_end. Forward and backward together take
 * `step_ms`; exposed averaging adds to it. */
enum status pace_step(struct gradient_sync *sync, double step_ms);

#endif
