/*
 * What a server of `psring train` does with gradients where it owns the parameters: a comm_updater
 * with an optimizer and a schedule of learning rates, those of the workers. It has arrays as long
 * as the model, of which it uses its shards, and a CPU device of its own, because it may run on a
 * thread beside a worker's.
 */
#ifndef PSRING_EXPERIMENTS_STEP_UPDATER_H
#define PSRING_EXPERIMENTS_STEP_UPDATER_H

#include <stddef.h>

#include "common/base/status.h"
#include "common/comm/bucket.h"
#include "common/comm/comm_options.h"
#include "common/device/device.h"
#include "models/lr.h"
#include "models/optim.h"

struct updater {
    struct comm_updater interface;
    struct device *device;
    struct optimizer *optimizer; /* NULL: parameters stay as they are (paced) */
    float *gradients, *parameters;
    size_t count;
    struct lr_schedule lr;
    float lr_factor;              /* of the schedule's rates */
    const struct bucket *buckets; /* borrowed: of the exchange, which sets it */
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

#endif
