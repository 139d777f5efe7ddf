/* Learning rates at steps that can be calculated by hand. */
#include <criterion/criterion.h>
#include <math.h>

#include "models/lr.h"

static void check(const struct lr_schedule *schedule, uint64_t step, double expected)
{
    double found = lr_at(schedule, step);
    cr_assert(fabs(found - expected) < 1e-12, "step %lu: found %g, expected %g",
              (unsigned long)step, found, expected);
}

Test(lr, defaults_grow_with_the_images_and_later_with_their_root)
{
    cr_assert(fabs(lr_default(OPTIMIZER_SGD, 128) - 0.07) < 1e-12);
    cr_assert(fabs(lr_default(OPTIMIZER_SGD, 32) - 0.0175) < 1e-12);
    cr_assert(fabs(lr_default(OPTIMIZER_SGD, 256) - 0.14) < 1e-12);
    cr_assert(fabs(lr_default(OPTIMIZER_SGD, 1024) - 0.28) < 1e-12);
    cr_assert(lr_default(OPTIMIZER_ADADELTA, 32) == 1.0);
    cr_assert(lr_default(OPTIMIZER_ADADELTA, 512) == 1.0);
    cr_assert(lr_default(OPTIMIZER_ADAM, 512) == 0.001);
    cr_assert(lr_default(OPTIMIZER_ADAGRAD, 512) == 0.01);
    cr_assert(lr_default(OPTIMIZER_LARS, 1024) == lr_default(OPTIMIZER_SGD, 1024));
}

Test(lr, up_then_down)
{
    struct lr_schedule s = {.peak = 2.0, .warmup_steps = 4, .total_steps = 14};
    check(&s, 0, 0.5);
    check(&s, 1, 1.0);
    check(&s, 3, 2.0);
    check(&s, 4, 2.0);
    check(&s, 5, 1.8);
    check(&s, 13, 0.2);
    check(&s, 14, 0.2); /* past the end: not 0, and not negative */
    check(&s, 1000, 0.2);
}

Test(lr, parts_left_out)
{
    struct lr_schedule constant = {.shape = LR_CONSTANT, .peak = 0.3, .total_steps = 9};
    struct lr_schedule no_warmup = {.peak = 1.0, .total_steps = 4};
    struct lr_schedule no_decay = {
        .shape = LR_CONSTANT, .peak = 1.0, .warmup_steps = 2, .total_steps = 9};
    check(&constant, 0, 0.3);
    check(&constant, 99999, 0.3);
    check(&no_warmup, 0, 1.0);
    check(&no_warmup, 3, 0.25);
    check(&no_decay, 0, 0.5);
    check(&no_decay, 5000, 1.0);
}

/* From eta to k eta (here k = 8), in equal increments (Goyal et al. 2017, section 2.2). */
Test(lr, warm_up_from_one_worker_s_rate)
{
    struct lr_schedule s = {
        .shape = LR_CONSTANT, .start = 0.1, .peak = 0.8, .warmup_steps = 70, .total_steps = 100};
    for (uint64_t step = 0; step < 70; step++)
        check(&s, step, 0.1 + 0.01 * (double)step);
    check(&s, 70, 0.8);
    check(&s, 99, 0.8);
}

Test(lr, steps_and_cosine)
{
    struct lr_schedule s = {.shape = LR_STEP, .peak = 2.0, .warmup_steps = 5, .total_steps = 90};
    check(&s, 5, 2.0);
    check(&s, 29, 2.0);
    check(&s, 30, 0.2);
    check(&s, 59, 0.2);
    check(&s, 60, 0.02);
    check(&s, 79, 0.02);
    check(&s, 80, 0.002);
    check(&s, 89, 0.002);
    struct lr_schedule c = {.shape = LR_COSINE, .peak = 2.0, .warmup_steps = 10, .total_steps = 70};
    check(&c, 9, 2.0);
    check(&c, 10, 2.0);
    check(&c, 30, 1.5); /* a third: cos(60 degrees) */
    check(&c, 40, 1.0);
    check(&c, 50, 0.5);
    check(&c, 69, 1 - cos(3.14159265358979323846 / 60));
}

Test(lr, scales_by_the_workers)
{
    cr_assert(lr_scale_factor(LR_SCALE_LINEAR, 9) == 9);
    cr_assert(lr_scale_factor(LR_SCALE_SQRT, 9) == 3);
    cr_assert(lr_scale_factor(LR_SCALE_NONE, 9) == 1);
    cr_assert(lr_scale_factor(LR_SCALE_AUTO, 9) == 1);
}

Test(lr, every_shape_fits_any_length)
{
    for (uint64_t total = 1; total < 1000; total++) {
        cr_assert(lr_warmup_default(total) <= LR_WARMUP_STEPS);
        cr_assert(lr_warmup_default(total) <= total / 5);
        for (int shape = 0; lr_shape_names[shape]; shape++) {
            struct lr_schedule s = {.shape = shape,
                                    .peak = 0.1,
                                    .warmup_steps = lr_warmup_default(total),
                                    .total_steps = total};
            for (uint64_t step = 0; step < total; step++)
                cr_assert(lr_at(&s, step) > 0 && lr_at(&s, step) <= 0.1 * (1 + 1e-12));
        }
    }
    cr_assert_eq(lr_warmup_default(1000), LR_WARMUP_STEPS);
}
