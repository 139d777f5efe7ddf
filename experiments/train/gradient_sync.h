/*
 * The averaging of a step's gradients: which buckets they travel in, when each one starts, and when
 * the step waits for it. The backward pass starts buckets as it completes them. Then the step waits
 * for all. With `may_defer` the next step waits instead, for each bucket before its forward pass
 * reads those parameters:
 *
 *     compute   |forward 1|backward 1       |forward 2|backward 2       |
 *     network             [2 ][1a ][0][1b  ]          [2 ][1a ][0][1b  ]
 *
 * A bucket's gradients are averaged and applied before its parameters are read, so before the
 * backward pass overwrites them, and with the numbers that waiting for all would have given. Before
 * anything else reads the weights, call gradient_sync_finish.
 *
 *     gradient_sync_begin(sync);
 *     net_forward(...);                                            calls gradient_sync_need
 *     net_backward(net, gradient_sync_start, sync);
 *     gradient_sync_end(sync, lr);
 *
 * Where servers own the parameters (common/comm/comm_options.h), a bucket comes back as
 * fresh parameters, which gradient_sync_end puts in place.
 *
 * Threads: all calls from one, which drives the device.
 */
#ifndef PSRING_EXPERIMENTS_TRAIN_GRADIENT_SYNC_H
#define PSRING_EXPERIMENTS_TRAIN_GRADIENT_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
 * What a server of `psring train` does with gradients where it owns the parameters: a comm_updater
 * with an optimizer and a schedule of learning rates, those of the workers. It has arrays as long
 * as the model, of which it uses its shards, and a CPU device of its own, because it may run on a
 * thread beside a worker's.
 */
struct updater {
    struct comm_updater interface;
    struct device *device;
    struct optimizer *optimizer; /* NULL: parameters stay as they are (paced) */
    float *gradients, *parameters;
    size_t count;
    struct lr_schedule lr;
    float lr_factor;              /* of the schedule's rates */
    const struct bucket *buckets; /* borrowed: of the gradient_sync, which sets it */
};

struct updater_options {
    size_t count; /* parameters */
    bool trains;  /* false: no use is made of what follows, and parameters stay as they are */
    enum optimizer_kind kind;
    struct optimizer_parameters optimizer;
    struct lr_schedule lr;
    /* >= 1. So many updates make a step of bsp, each with a gradient divided by as many; so is
     * weight decay. Adadelta's rate is divided, too, and Adagrad's by the square root of it: with
     * equal gradients, they then go as far as in bsp. */
    size_t updates;
};

/* Needs updater_close whatever it returns. */
enum status updater_open(struct updater *updater, const struct updater_options *options);
void updater_close(struct updater *updater);

/* What is averaged: the arena of a net (net_layers, net_gradients), or one like it. Borrowed. */
struct gradient_sync_model {
    const struct net_layer *layers; /* (layer_count), in the order of the arena */
    size_t layer_count;
    float *gradients;
    float *parameters; /* that the optimizer updates; NULL without one */
};

struct gradient_sync_options {
    struct world *world;
    const struct backend *backend;
    const struct comm_options *comm; /* without the longest bucket and the updater */
    struct updater *updater; /* of a rank with a server that updates; NULL elsewhere. Borrowed */
    float scale;             /* of the sum of gradients */
    size_t bucket_bytes;     /* wanted; 0: one bucket */
    bool whole_tensors;      /* no bucket may end within one: optimizer_needs_whole_tensors */
    bool may_defer;          /* waiting to the next step's forward pass, if the comm overlaps */
};

struct gradient_sync {
    struct comm *comm;
    struct device *device; /* the model's */
    struct gradient_sync_model model;
    struct optimizer *optimizer; /* NULL: gradients are averaged and not applied */
    struct bucket *buckets;      /* (count), in the order in which they are complete */
    size_t *counts;              /* (count): elements of each */
    size_t *order;               /* (count): the order in which they travel; NULL: as started */
    bool *pending;               /* (count): started, not waited for */
    size_t count;
    bool updates_on_server;
    bool defers;
    float pending_lr; /* of the step that started what is pending */

    /* The running step. */
    size_t started;     /* buckets handed to the comm so far */
    enum status status; /* of starting and needing them: hooks of the net cannot return it */
    /* Time inside comm_start and comm_wait: what computing did not hide. Its processor time is 0
     * where the comm overlaps, because another thread averages. */
    struct range_sum exposed;
    struct cpu_watch *watch; /* runs while the step is blocked; borrowed, or NULL */
};

/*
 * Collective over the world: plans the buckets and opens the comm. Borrows `optimizer`, NULL on a
 * server and where nothing is trained. If sync->defers then holds, the caller makes
 * gradient_sync_need a hook of the forward pass (net_before_forward). A dedicated server calls
 * comm_serve(sync->comm). Errors: logged. Needs gradient_sync_close whatever it returns.
 */
enum status gradient_sync_open(struct gradient_sync *sync, const struct gradient_sync_model *model,
                               struct optimizer *optimizer,
                               const struct gradient_sync_options *options);
void gradient_sync_close(struct gradient_sync *sync);

/* A step begins, perhaps anew: nothing of it has been started. Buckets that the step before
 * deferred stay pending. */
void gradient_sync_begin(struct gradient_sync *sync);

/* Hook of net_backward: starts the buckets that have become complete. */
net_range_hook gradient_sync_start;
/* All of it, layer by layer, as a GPU's backward pass does: so that a worker without a backward
 * pass hands over together what the others hand over together (backend.flush). */
void gradient_sync_start_layers(struct gradient_sync *sync);

/* Hook of the forward pass: waits for the buckets that are pending there, and applies them.
 * The next gradient_sync_end returns its failure. */
net_range_hook gradient_sync_need;

/* All buckets have been started: waits for them and applies them with the learning rate `lr`, or
 * leaves that to the next step. */
enum status gradient_sync_end(struct gradient_sync *sync, float lr);

/* Waits for all buckets that are pending, and applies them: now the weights are the step's. */
enum status gradient_sync_finish(struct gradient_sync *sync);

/*
 * A step that waits as long as computing would take, and averages for real: layer by layer, in
 * proportion to their operations, so that buckets are complete, and needed, when they would be.
 * The gradients are those that the caller has set once: from the first average on they are the
 * same on all ranks and stay what they are, but for rounding.
 */

/* One step, from gradient_sync_begin to gradient_sync_end. Forward and backward together take
 * `step_ms`, and averaging adds to that. */
enum status pace_step(struct gradient_sync *sync, double step_ms);

#endif
