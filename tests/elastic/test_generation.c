/* The state that a process of an elastic job keeps from one generation to the next. */
#include <criterion/criterion.h>

#include "experiments/train/trainer.h"

/* This worker sent its gradient of a step, but did not get the answer. The other workers completed
 * the step. Its images count only once it has the new weights, because set-up may fail and be
 * repeated. */
Test(generation, images_of_a_step_that_others_have_done_count_once)
{
    float weight = 0;
    struct config config = {.batch = 8};
    struct generation generation = {
        .weights = &weight, .own = {.step = 5}, .own_images = 40, .start = {.step = 6}};
    struct trainer trainer = {.config = &config, .generation = &generation};
    generation_start(&trainer);
    generation_start(&trainer);
    cr_assert_eq(generation.own_images, 40);
    generation_shared(&trainer);
    cr_assert_eq(generation.own_images, 48);
}
