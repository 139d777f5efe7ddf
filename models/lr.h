/* Learning rates: a run's defaults, and the rate of each step. Pure functions. */
#ifndef PSRING_MODELS_LR_H
#define PSRING_MODELS_LR_H

#include <stddef.h>
#include <stdint.h>

#include "models/optim.h"

/*
 * The default peak rate of an optimizer for `images` images a step, over all workers.
 *
 * - sgd: 0.14 at LR_LINEAR_IMAGES images a step. Below, it is proportional to the images. With n
 *   times as many images there are n times fewer steps, so each must go n times as far (Goyal et
 *   al. 2017, section 2.1). Above, it grows with the square root of the images, because such a long
 *   step is no longer the sum of short ones (measurements: models/README.md).
 * - lars: the same, because its biases take SGD's steps.
 * - Other optimizers scale their steps: adadelta 1 (Keras' default), adam 0.001 (Kingma and Ba
 *   2015), adagrad 0.01 (PyTorch's).
 */
enum { LR_LINEAR_IMAGES = 256 };
double lr_default(enum optimizer_kind kind, size_t images);

/*
 * How the rate for one worker is scaled to `workers`. Together they use that many times its images
 * in a step.
 *
 * - linear: Goyal et al. 2017, section 2.1.
 * - sqrt: Krizhevsky 2014, "One weird trick", section 5.
 * - auto: a given rate is not scaled. The default rate is lr_default of all images.
 */
enum lr_scale { LR_SCALE_AUTO, LR_SCALE_LINEAR, LR_SCALE_SQRT, LR_SCALE_NONE };
extern const char
    *const lr_scale_names[]; /* by enum lr_scale, ended by NULL; lr_shape_names alike */
double lr_scale_factor(enum lr_scale scale, size_t workers);

/* The rate from the peak, at the end of the warm-up, to the run's end. */
enum lr_shape {
    LR_LINEAR,   /* linear decay to 0: short steps average out their noise */
    LR_CONSTANT, /* the peak */
    LR_STEP,     /* x 0.1 at 1/3, 2/3, 8/9 of the run: epochs 30, 60, 80 of 90 (Goyal et al.) */
    LR_COSINE,   /* half a cosine to 0: Loshchilov and Hutter 2017, "SGDR", equation 5 */
};
extern const char *const lr_shape_names[];

/*
 * A rate for each step. It first rises linearly from `start` to `peak` at step `warmup_steps`,
 * because the first gradients of random parameters are large (Goyal et al. 2017, section 2.2). With
 * a start of 0 the first step has a rate above 0.
 */
struct lr_schedule {
    enum lr_shape shape;
    double start, peak;
    uint64_t warmup_steps; /* 0 = none */
    uint64_t total_steps;  /* > 0 */
};

/* The default warm-up: LR_WARMUP_STEPS, or a fifth of the run if that is less. */
enum { LR_WARMUP_STEPS = 60 };
uint64_t lr_warmup_default(uint64_t total_steps);

/* The rate of `step` (from 0). It is never 0 within the run. After the run it is the rate of the
 * last step. */
double lr_at(const struct lr_schedule *schedule, uint64_t step);

#endif
