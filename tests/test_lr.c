/* Learning rates at the steps that can be worked out by hand. */
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
    struct lr_schedule constant = {.peak = 0.3};
    struct lr_schedule no_warmup = {.peak = 1.0, .total_steps = 4};
    struct lr_schedule no_decay = {.peak = 1.0, .warmup_steps = 2};
    check(&constant, 0, 0.3);
    check(&constant, 99999, 0.3);
    check(&no_warmup, 0, 1.0);
    check(&no_warmup, 3, 0.25);
    check(&no_decay, 0, 0.5);
    check(&no_decay, 5000, 1.0);
}

Test(lr, default_schedule_fits_any_length)
{
    for (uint64_t total = 1; total < 2000; total++) {
        struct lr_schedule s = lr_schedule_default(0.1, total);
        cr_assert(s.warmup_steps <= LR_WARMUP_STEPS && s.warmup_steps <= total / 5);
        for (uint64_t step = 0; step < total; step++)
            cr_assert(lr_at(&s, step) > 0 && lr_at(&s, step) <= 0.1 * (1 + 1e-12));
    }
    cr_assert_eq(lr_schedule_default(0.1, 1000).warmup_steps, LR_WARMUP_STEPS);
}
