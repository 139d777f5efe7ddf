/* A server that applies each worker's push separately moves the parameters as far as one that
 * applies the average of the pushes. */
#include <criterion/criterion.h>
#include <math.h>

#include "experiments/train/gradient_sync.h"

enum { WORKERS = 4 };

struct run {
    enum optimizer_kind kind;
    struct optimizer_parameters optimizer;
    float start, gradient;
    int steps;
};

/* Distance that the only parameter moves, with `updates` pushes in each step. */
static float distance(const struct run *run, int updates)
{
    static const struct bucket bucket = {.first = 0, .count = 1};
    struct updater updater;
    const struct updater_options options = {
        .count = 1,
        .trains = true,
        .kind = run->kind,
        .optimizer = run->optimizer,
        .lr = {.shape = LR_CONSTANT, .start = .01, .peak = .01, .total_steps = 1000},
        .updates = (size_t)updates};
    cr_assert_eq(updater_open(&updater, &options), STATUS_OK);
    updater.buckets = &bucket;
    float *parameter = updater.interface.array(updater.interface.context, 0, COMM_PARAMETERS);
    *parameter = run->start;
    for (int step = 0; step < run->steps; step++) {
        for (int push = 0; push < updates; push++) {
            *updater.interface.array(updater.interface.context, 0, COMM_GRADIENTS) =
                run->gradient / (float)updates;
            updater.interface.apply(updater.interface.context, 0, (struct chunk){0, 1},
                                    (uint64_t)step);
        }
    }
    float moved = run->start - *parameter;
    updater_close(&updater);
    return moved;
}

static void assert_as_far(const struct run *run)
{
    float whole = distance(run, 1), parts = distance(run, WORKERS);
    cr_assert(whole > 0);
    cr_assert(fabsf(parts / whole - 1) < .05f, "%s: found %g, expected about %g",
              optimizer_kind_names[run->kind], (double)parts, (double)whole);
}

Test(updater, parts_of_a_step_go_as_far)
{
    struct optimizer_parameters plain = optimizer_parameters_default;
    assert_as_far(&(struct run){OPTIMIZER_SGD, plain, .start = 1, .gradient = 1, .steps = 400});
    assert_as_far(&(struct run){OPTIMIZER_ADAGRAD, plain, .start = 1, .gradient = 1, .steps = 400});
    plain.momentum = 0;
    assert_as_far(&(struct run){OPTIMIZER_SGD, plain, .start = 1, .gradient = 1, .steps = 1});
}

Test(updater, parts_of_a_step_decay_as_much)
{
    struct optimizer_parameters decay = optimizer_parameters_default;
    decay.weight_decay = .1f;
    decay.momentum = 0;
    assert_as_far(&(struct run){OPTIMIZER_SGD, decay, .start = 1, .gradient = 0, .steps = 10});
}
