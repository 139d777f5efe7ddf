/* Learning rates: what a run uses by default, and how it changes with the step. Pure functions. */
#ifndef PSRING_MODELS_LR_H
#define PSRING_MODELS_LR_H

#include <stddef.h>
#include <stdint.h>

#include "models/optim.h"

/*
 * The default peak rate of an optimizer where `images` images make a step, over all workers.
 *
 * sgd: 0.14 at LR_LINEAR_IMAGES images a step. Below, in proportion to the images: n times as many
 * are n times fewer steps, each of which must go n times as far (Goyal et al. 2017, section 2.1).
 * Above, with the square root of the images, because so long a step is not the sum of short ones
 * any more. models/measured.md has the measurements.
 * lars: the same, since its biases take SGD's steps.
 * Others scale their steps by themselves: adadelta 1 (Keras' default), adam 0.001 (Kingma and Ba
 * 2015), adagrad 0.01 (PyTorch's).
 */
enum { LR_LINEAR_IMAGES = 256 };
double lr_default(enum optimizer_kind kind, size_t images);

/*
 * How the rate of one worker becomes that of `workers`: they make a step with as many times its
 * images. linear: Goyal et al. 2017, section 2.1; sqrt: Krizhevsky 2014, "One weird trick", section
 * 5; auto: a rate that is given stays as it is, and the default is lr_default of all images.
 */
enum lr_scale { LR_SCALE_AUTO, LR_SCALE_LINEAR, LR_SCALE_SQRT, LR_SCALE_NONE };
extern const char *const lr_scale_names[]; /* by enum lr_scale, ended by NULL; so the next */
double lr_scale_factor(enum lr_scale scale, size_t workers);

/* From the peak, which the warm-up's end reaches, to the run's end. */
enum lr_shape {
    LR_LINEAR,   /* in a straight line to 0: short steps average out their noise */
    LR_CONSTANT, /* stays */
    LR_STEP,     /* a tenth each at 1/3, 2/3 and 8/9 of the run: Goyal et al.'s 30, 60, 80 of 90 */
    LR_COSINE,   /* half a cosine to 0: Loshchilov and Hutter 2017, "SGDR", equation 5 */
};
extern const char *const lr_shape_names[];

/*
 * A rate for each step. First up in a straight line from `start` to `peak` at step `warmup_steps`,
 * because the first gradients of random parameters are large (Goyal et al. 2017, section 2.2). A
 * start of 0 stands for the first step above it.
 */
struct lr_schedule {
    enum lr_shape shape;
    double start, peak;
    uint64_t warmup_steps; /* 0 = none */
    uint64_t total_steps;  /* > 0 */
};

/* The warm-up of a run for which none is given: LR_WARMUP_STEPS, in a short run a fifth of it. */
enum { LR_WARMUP_STEPS = 60 };
uint64_t lr_warmup_default(uint64_t total_steps);

/* The rate of `step` (from 0): never 0 within the run, and after it that of its last step. */
double lr_at(const struct lr_schedule *schedule, uint64_t step);

#endif
