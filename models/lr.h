/* Learning rates: what a run uses by default, and how it changes with the step. Pure functions. */
#ifndef PSRING_MODELS_LR_H
#define PSRING_MODELS_LR_H

#include <stddef.h>
#include <stdint.h>

#include "models/optim.h"

/*
 * The default peak rate of an optimizer where `images` images make a step, over all workers.
 *
 * adadelta: 1, Keras' default; it scales its steps by itself.
 * sgd: 0.14 at LR_LINEAR_IMAGES images a step. Below, in proportion to the images: n times as many
 * are n times fewer steps, each of which must go n times as far (Goyal et al. 2017, section 2.1).
 * Above, with the square root of the images, because so long a step is not the sum of short ones
 * any more. models/measured.md has the measurements.
 */
enum { LR_LINEAR_IMAGES = 256 };
double lr_default(enum optimizer_kind kind, size_t images);

/*
 * How the rate changes: up in a straight line to `peak` at step `warmup_steps`, because the first
 * gradients of random parameters are large (Goyal et al. 2017, section 2.2); then down in a
 * straight line to 0 at step `total_steps`, the run's end: short steps average out their noise.
 */
struct lr_schedule {
    double peak;
    uint64_t warmup_steps; /* 0 = none */
    uint64_t total_steps;  /* 0 = stays at the peak */
};

/* The default: a warm-up of LR_WARMUP_STEPS, in a short run of a fifth of it; decay to its end. */
enum { LR_WARMUP_STEPS = 60 };
struct lr_schedule lr_schedule_default(double peak, uint64_t total_steps);

/* The rate of `step` (from 0): never 0 within the run. */
double lr_at(const struct lr_schedule *schedule, uint64_t step);

#endif
