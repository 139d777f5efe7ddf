/* Learning rates: what a run uses by default, and how it changes with the step. Pure functions. */
#ifndef PSRING_MODELS_LR_H
#define PSRING_MODELS_LR_H

#include <stddef.h>
#include <stdint.h>

#include "models/optim.h"

/*
 * The default peak rate of an optimizer where `images` images make a step, over all workers.
 *
 * adadelta: 1, Keras' default; it scales its steps by itself. sgd: in proportion to the images,
 * 0.14 for LR_LINEAR_IMAGES (Goyal et al. 2017, section 2.1: n times the images, n times fewer
 * steps, so steps n times as long), and from there with the square root of their number, because
 * long steps stop being the sum of short ones. models/README.md has what was measured.
 */
enum { LR_LINEAR_IMAGES = 256 };
double lr_default(enum optimizer_kind kind, size_t images);

/*
 * How the rate changes: up in a straight line to `peak` at step `warmup_steps`, because the first
 * gradients of random parameters are large (Goyal et al. 2017, section 2.2), then down in a
 * straight line to 0 at step `total_steps`, the run's end, which averages the last steps' noise
 * away.
 */
struct lr_schedule {
    double peak;
    uint64_t warmup_steps; /* 0 = none */
    uint64_t total_steps;  /* 0 = stays at the peak */
};

/* The default: a warm-up of LR_WARMUP_STEPS, or a fifth of a short run, and a decay over the run.
 */
enum { LR_WARMUP_STEPS = 60 };
struct lr_schedule lr_schedule_default(double peak, uint64_t total_steps);

/* The rate of `step` (from 0): never 0 within the run, so that each step counts. */
double lr_at(const struct lr_schedule *schedule, uint64_t step);

#endif
