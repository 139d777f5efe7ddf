/* Optimizers against their definition in double precision, over several steps, all elements. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/optim.h"
#include "tests/reference.h"

enum { COUNT = 3 * 16384 + 77, STEPS = 7 }; /* several blocks and a part of one */

struct run {
    float *parameters, *gradients;
    double *p, *s, *u; /* the reference's parameters and states */
};

static void set_gradients(struct run *run, int step)
{
    for (size_t i = 0; i < COUNT; i++)
        run->gradients[i] = (float)(reference_value(100 + (uint64_t)step, i) * (i % 3 ? 1 : 1e-3));
}

static void sgd_reference(struct run *run, double lr, double momentum)
{
    for (size_t i = 0; i < COUNT; i++) {
        run->s[i] = momentum * run->s[i] + (double)run->gradients[i];
        run->p[i] -= lr * run->s[i];
    }
}

static void adadelta_reference(struct run *run, double lr, double rho, double epsilon)
{
    for (size_t i = 0; i < COUNT; i++) {
        double g = (double)run->gradients[i];
        run->s[i] = rho * run->s[i] + (1 - rho) * g * g;
        double d = g * sqrt(run->u[i] + epsilon) / sqrt(run->s[i] + epsilon);
        run->u[i] = rho * run->u[i] + (1 - rho) * d * d;
        run->p[i] -= lr * d;
    }
}

static void compare(const char *what, const double *expected, const float *found)
{
    for (size_t i = 0; i < COUNT; i++)
        cr_assert(fabs(expected[i] - (double)found[i]) <= 1e-6 + 2e-5 * fabs(expected[i]),
                  "%s[%zu]: found %.9g, expected %.9g", what, i, (double)found[i], expected[i]);
}

static void check(enum optimizer_kind kind, int threads, const struct optimizer_parameters *given)
{
    struct device *device;
    struct device_options options = {.threads = threads};
    struct optimizer *optimizer;
    struct run run = {malloc(COUNT * sizeof(float)), malloc(COUNT * sizeof(float)),
                      reference_new(COUNT), reference_new(COUNT), reference_new(COUNT)};
    const struct optimizer_parameters *used = given ? given : &optimizer_parameters_default;
    cr_assert_eq(device_open(&device, &options), STATUS_OK);
    cr_assert_eq(optimizer_new(&optimizer, device, kind, COUNT, given), STATUS_OK);
    for (size_t i = 0; i < COUNT; i++) {
        run.parameters[i] = (float)reference_value(1, i);
        run.p[i] = (double)run.parameters[i];
    }
    for (int step = 0; step < STEPS; step++) {
        float lr = 0.1f * (float)(step + 1);
        set_gradients(&run, step);
        optimizer_step(optimizer, run.parameters, run.gradients, lr);
        if (kind == OPTIMIZER_SGD)
            sgd_reference(&run, (double)lr, (double)used->momentum);
        else
            adadelta_reference(&run, (double)lr, (double)used->rho, (double)used->epsilon);
        compare("parameters", run.p, run.parameters);
    }
    size_t states;
    float *state = optimizer_state(optimizer, &states);
    cr_assert_eq(states, kind == OPTIMIZER_SGD ? COUNT : 2 * COUNT);
    compare("state", run.s, state);
    if (kind == OPTIMIZER_ADADELTA)
        compare("second state", run.u, state + COUNT);
    optimizer_free(&optimizer);
    cr_assert_null(optimizer);
    device_close(&device);
    void *all[] = {run.parameters, run.gradients, run.p, run.s, run.u};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

Test(optim, sgd)
{
    struct optimizer_parameters plain = {.momentum = 0.0f}, heavy = {.momentum = 0.99f};
    check(OPTIMIZER_SGD, 1, NULL);
    check(OPTIMIZER_SGD, 3, &plain);
    check(OPTIMIZER_SGD, 1, &heavy);
}

Test(optim, adadelta)
{
    struct optimizer_parameters other = {.rho = 0.5f, .epsilon = 1e-4f};
    check(OPTIMIZER_ADADELTA, 1, NULL);
    check(OPTIMIZER_ADADELTA, 3, &other);
}

/* What is saved of an optimizer and put back must continue as if nothing had happened; and shards
 * with an optimizer each, or ranges one after the other, do what one optimizer does to the whole.
 */
Test(optim, state_can_be_moved_and_parameters_can_be_sharded)
{
    struct device *device;
    struct device_options options = {.threads = 1};
    cr_assert_eq(device_open(&device, &options), STATUS_OK);
    for (int kind = 0; optimizer_kind_names[kind]; kind++) {
        enum { N = 1001, CUT = 333 };
        struct optimizer *whole, *first, *second, *moved;
        struct optimizer *ranges;
        float a[N], b[N], c[N], g[N];
        cr_assert_eq(optimizer_new(&whole, device, kind, N, NULL), STATUS_OK);
        cr_assert_eq(optimizer_new(&first, device, kind, CUT, NULL), STATUS_OK);
        cr_assert_eq(optimizer_new(&second, device, kind, N - CUT, NULL), STATUS_OK);
        cr_assert_eq(optimizer_new(&ranges, device, kind, N, NULL), STATUS_OK);
        for (size_t i = 0; i < N; i++)
            a[i] = b[i] = c[i] = (float)reference_value(3, i);
        for (int step = 0; step < 6; step++) {
            for (size_t i = 0; i < N; i++)
                g[i] = (float)reference_value(10 + (uint64_t)step, i);
            if (step == 3) {
                size_t from_count, to_count;
                cr_assert_eq(optimizer_new(&moved, device, kind, N, NULL), STATUS_OK);
                float *from = optimizer_state(whole, &from_count);
                float *to = optimizer_state(moved, &to_count);
                cr_assert_eq(from_count, to_count);
                memcpy(to, from, from_count * sizeof *to);
                optimizer_free(&whole);
                whole = moved;
            }
            optimizer_step(whole, a, g, 0.3f);
            optimizer_step(first, b, g, 0.3f);
            optimizer_step(second, b + CUT, g + CUT, 0.3f);
            cr_assert_arr_eq(a, b, sizeof a);
            optimizer_step_range(ranges, CUT, N - CUT, c, g, 0.3f);
            optimizer_step_range(ranges, 0, CUT, c, g, 0.3f);
            cr_assert_arr_eq(a, c, sizeof a);
        }
        optimizer_free(&ranges);
        optimizer_free(&whole);
        optimizer_free(&first);
        optimizer_free(&second);
    }
    device_close(&device);
}
