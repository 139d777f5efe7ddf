/* Optimizers, compared with their definition in double precision: several steps, all elements. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/optim.h"
#include "tests/lib/reference.h"

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

/* One step of the definition: updates each element with its gradient g, including weight decay. */
static void reference_step(struct run *run, enum optimizer_kind kind, double lr, int step,
                           const struct optimizer_parameters *o)
{
    double m = (double)o->momentum, rho = (double)o->rho, epsilon = (double)o->epsilon;
    double b1 = (double)o->beta1, b2 = (double)o->beta2;
    for (size_t i = 0; i < COUNT; i++) {
        double g = (double)run->gradients[i] + (double)o->weight_decay * run->p[i], d = 0;
        double *s = &run->s[i], *u = &run->u[i];
        switch (kind) {
        case OPTIMIZER_SGD:
            *s = m * *s + g;
            d = o->nesterov ? g + m * *s : *s;
            break;
        case OPTIMIZER_ADAGRAD:
            *s += g * g;
            d = g / (sqrt(*s) + epsilon);
            break;
        case OPTIMIZER_ADADELTA:
            *s = rho * *s + (1 - rho) * g * g;
            d = g * sqrt(*u + epsilon) / sqrt(*s + epsilon);
            *u = rho * *u + (1 - rho) * d * d;
            break;
        case OPTIMIZER_ADAM:
            *s = b1 * *s + (1 - b1) * g;
            *u = b2 * *u + (1 - b2) * g * g;
            d = *s / (1 - pow(b1, step + 1)) / (sqrt(*u / (1 - pow(b2, step + 1))) + epsilon);
            break;
        case OPTIMIZER_LARS:
            cr_assert_fail("see lars_reference");
        }
        run->p[i] -= lr * d;
    }
}

static double norm(const double *values, const float *floats, size_t first, size_t count)
{
    double sum = 0;
    for (size_t i = first; i < first + count; i++)
        sum += values ? values[i] * values[i] : (double)floats[i] * (double)floats[i];
    return sqrt(sum);
}

static void lars_reference(struct run *run, double lr, const struct optimizer_parameters *o)
{
    for (size_t t = 0; t < o->tensor_count; t++) {
        const struct optimizer_tensor *tensor = &o->tensors[t];
        double w = norm(run->p, NULL, tensor->first, tensor->count);
        double g = norm(NULL, run->gradients, tensor->first, tensor->count);
        double decay = tensor->bias ? 0 : (double)o->weight_decay;
        double trust =
            tensor->bias || w == 0 || g == 0 ? 1 : (double)o->trust * w / (g + decay * w);
        for (size_t i = tensor->first; i < tensor->first + tensor->count; i++) {
            run->s[i] = (double)o->momentum * run->s[i] +
                        trust * ((double)run->gradients[i] + decay * run->p[i]);
            run->p[i] -= lr * run->s[i];
        }
    }
}

static void compare(const char *what, const double *expected, const float *found)
{
    for (size_t i = 0; i < COUNT; i++)
        cr_assert(fabs(expected[i] - (double)found[i]) <= 1e-6 + 2e-5 * fabs(expected[i]),
                  "%s[%zu]: found %.9g, expected %.9g", what, i, (double)found[i], expected[i]);
}

static size_t states_of(enum optimizer_kind kind, size_t count)
{
    return kind == OPTIMIZER_ADADELTA ? 2 * count : kind == OPTIMIZER_ADAM ? 2 * count + 1 : count;
}

static void check(enum optimizer_kind kind, int threads, const struct optimizer_parameters *given)
{
    struct device *device;
    struct device_options options = {.threads = threads};
    struct optimizer *optimizer;
    struct run run = {malloc(COUNT * sizeof(float)), malloc(COUNT * sizeof(float)),
                      reference_new(COUNT), reference_new(COUNT), reference_new(COUNT)};
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
        if (kind == OPTIMIZER_LARS)
            lars_reference(&run, (double)lr, given);
        else
            reference_step(&run, kind, (double)lr, step, given);
        compare("parameters", run.p, run.parameters);
    }
    size_t states;
    float *state = optimizer_state(optimizer, &states);
    cr_assert_eq(states, states_of(kind, COUNT));
    compare("state", run.s, state);
    if (states > COUNT)
        compare("second state", run.u, state + COUNT);
    if (kind == OPTIMIZER_ADAM)
        cr_assert_eq(state[(size_t)2 * COUNT], STEPS);
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
    struct optimizer_parameters all = {.momentum = 0.9f, .nesterov = true, .weight_decay = 0.01f};
    check(OPTIMIZER_SGD, 1, &optimizer_parameters_default);
    check(OPTIMIZER_SGD, 3, &plain);
    check(OPTIMIZER_SGD, 1, &heavy);
    check(OPTIMIZER_SGD, 3, &all);
    all.nesterov = false;
    check(OPTIMIZER_SGD, 1, &all);
}

Test(optim, adagrad)
{
    struct optimizer_parameters other = {.epsilon = 1e-3f, .weight_decay = 0.01f};
    struct optimizer_parameters small = {.epsilon = 1e-10f};
    check(OPTIMIZER_ADAGRAD, 1, &small);
    check(OPTIMIZER_ADAGRAD, 3, &other);
}

Test(optim, adadelta)
{
    struct optimizer_parameters keras = {.rho = 0.95f, .epsilon = 1e-7f};
    struct optimizer_parameters other = {.rho = 0.5f, .epsilon = 1e-4f, .weight_decay = 0.01f};
    check(OPTIMIZER_ADADELTA, 1, &keras);
    check(OPTIMIZER_ADADELTA, 3, &other);
}

Test(optim, adam)
{
    struct optimizer_parameters usual = {.beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
    struct optimizer_parameters other = {
        .beta1 = 0.5f, .beta2 = 0.9f, .epsilon = 1e-3f, .weight_decay = 0.01f};
    check(OPTIMIZER_ADAM, 1, &usual);
    check(OPTIMIZER_ADAM, 3, &other);
}

/* Tensors of a few elements and of more than a block, with a bias between them. */
static const struct optimizer_tensor tensors[] = {
    {0, 5, false}, {5, 40001, false}, {40006, 10, true}, {40016, COUNT - 40016, false}};

Test(optim, lars)
{
    struct optimizer_parameters usual = {
        .momentum = 0.9f, .trust = 0.02f, .tensors = tensors, .tensor_count = 4};
    struct optimizer_parameters other = usual;
    other.trust = 0.5f;
    other.weight_decay = 0.01f;
    check(OPTIMIZER_LARS, 1, &usual);
    check(OPTIMIZER_LARS, 3, &other);
}

/* -------- by hand ---------------------------------------------------------------------------- */

/* Two steps of a tensor of two elements, calculated by hand. */
Test(optim, steps_by_hand)
{
    static const struct optimizer_tensor weights = {0, 2, false}, bias = {0, 2, true};
    static const struct {
        const char *what;
        enum optimizer_kind kind;
        struct optimizer_parameters parameters;
        float start[2], gradients[2][2];
        double expected[2][2];
    } cases[] = {
        {"momentum",
         OPTIMIZER_SGD,
         {.momentum = .9f},
         {1, 1},
         {{.5f, 1}, {.5f, -1}},
         {{.95, .9}, {.855, .91}}},
        {"nesterov",
         OPTIMIZER_SGD,
         {.momentum = .9f, .nesterov = true},
         {1, 1},
         {{.5f, 0}, {.5f, 0}},
         {{.905, 1}, {.7695, 1}}},
        {"weight decay",
         OPTIMIZER_SGD,
         {.momentum = .9f, .weight_decay = .1f},
         {1, 0},
         {{.5f, 0}, {.5f, 0}},
         {{.94, 0}, {.8266, 0}}},
        {"adagrad",
         OPTIMIZER_ADAGRAD,
         {.epsilon = 1e-10f},
         {1, 1},
         {{.5f, -3}, {.5f, -4}},
         {{.9, 1.1}, {.9 - .1 * .5 / .7071067811865476, 1.18}}},
        {"adadelta",
         OPTIMIZER_ADADELTA,
         {.rho = .5f, .epsilon = .25f},
         {1, 1},
         {{.5f, 0}, {0, 0}},
         {{1 - .1 * .5 * .5 / .6123724356957945, 1}, {1 - .1 * .5 * .5 / .6123724356957945, 1}}},
        {"adam",
         OPTIMIZER_ADAM,
         {.beta1 = .9f, .beta2 = .999f},
         {1, 1},
         {{.5f, 2}, {-.5f, 2}},
         {{.9, .9}, {.9 + .1 * (.005 / .19) / .5, .8}}},
        {"lars",
         OPTIMIZER_LARS,
         {.trust = .1f, .tensors = &weights, .tensor_count = 1},
         {3, 4},
         {{.6f, .8f}, {0, 0}},
         {{2.97, 3.96}, {2.97, 3.96}}},
        {"lars, weight decay",
         OPTIMIZER_LARS,
         {.trust = .1f,
          .weight_decay = .2f,
          .momentum = .5f,
          .tensors = &weights,
          .tensor_count = 1},
         {3, 4},
         {{.6f, .8f}, {-.594f, -.792f}},
         /* then |w| = 4.95, |g| = .99, g + .2 w = 0 */
         {{2.97, 3.96}, {2.955, 3.94}}},
        {"lars, a bias",
         OPTIMIZER_LARS,
         {.trust = .1f, .weight_decay = .2f, .tensors = &bias, .tensor_count = 1},
         {3, 4},
         {{.6f, .8f}, {0, 0}},
         {{2.94, 3.92}, {2.94, 3.92}}},
        {"lars, all 0",
         OPTIMIZER_LARS,
         {.trust = .1f, .tensors = &weights, .tensor_count = 1},
         {0, 0},
         {{.6f, .8f}, {0, 0}},
         {{-.06, -.08}, {-.06, -.08}}},
    };
    struct device *device;
    struct device_options options = {.threads = 1};
    cr_assert_eq(device_open(&device, &options), STATUS_OK);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct optimizer *optimizer;
        float p[2] = {cases[c].start[0], cases[c].start[1]};
        cr_assert_eq(optimizer_new(&optimizer, device, cases[c].kind, 2, &cases[c].parameters),
                     STATUS_OK);
        for (int step = 0; step < 2; step++) {
            optimizer_step(optimizer, p, cases[c].gradients[step], .1f);
            for (int i = 0; i < 2; i++)
                cr_expect(fabs((double)p[i] - cases[c].expected[step][i]) < 1e-6,
                          "%s, step %d, element %d: found %.8f, expected %.8f", cases[c].what, step,
                          i, (double)p[i], cases[c].expected[step][i]);
        }
        optimizer_free(&optimizer);
    }
    device_close(&device);
}

/* With the learning rate in the velocity, v = m v + lr g, a changing rate needs a correction. m is
 * multiplied by the new rate over the old one (Goyal et al. 2017, equations 9 to 11). psring needs
 * none: it equals the corrected form in every step, while the rate rises to 8 times its start and
 * falls. */
Test(optim, momentum_correction_is_inherent)
{
    struct device *device;
    struct device_options options = {.threads = 1};
    struct optimizer *optimizer;
    float p = 1;
    double corrected = 1, uncorrected = 1, v[2] = {0}, last = 0;
    cr_assert_eq(device_open(&device, &options), STATUS_OK);
    cr_assert_eq(optimizer_new(&optimizer, device, OPTIMIZER_SGD, 1, NULL), STATUS_OK);
    for (int step = 0; step < 40; step++) {
        double lr = step < 20 ? .01 * (1 + 7 * step / 20.) : .08 * (40 - step) / 20.;
        float g = (float)reference_value(1, (size_t)step);
        optimizer_step(optimizer, &p, &g, (float)lr);
        v[0] = .9 * (last > 0 ? lr / last : 1) * v[0] + lr * (double)g;
        v[1] = .9 * v[1] + lr * (double)g;
        corrected -= v[0];
        uncorrected -= v[1];
        last = lr;
        cr_assert(fabs((double)p - corrected) < 1e-5, "step %d: found %g, expected %g", step,
                  (double)p, corrected);
    }
    cr_assert(fabs(corrected - uncorrected) > 1e-3, "the test cannot distinguish the two");
    optimizer_free(&optimizer);
    device_close(&device);
}

/* An optimizer whose state is saved and restored continues as before. Shards with an optimizer
 * each, or ranges one after the other, give the result of one optimizer for the whole. */
Test(optim, state_can_be_moved_and_parameters_can_be_sharded)
{
    struct device *device;
    struct device_options options = {.threads = 1};
    cr_assert_eq(device_open(&device, &options), STATUS_OK);
    for (int kind = 0; optimizer_kind_names[kind]; kind++) {
        enum { N = 1001, CUT = 333, BIAS = 20 };
        /* Tensors of the whole. The first shard has the first two, the second one the last two. */
        static const struct optimizer_tensor parts[] = {{0, CUT - BIAS, false},
                                                        {CUT - BIAS, BIAS, true},
                                                        {CUT, N - CUT - 1, false},
                                                        {N - 1, 1, true}};
        static const struct optimizer_tensor last[] = {{0, N - CUT - 1, false},
                                                       {N - CUT - 1, 1, true}};
        struct optimizer_parameters all = optimizer_parameters_default, one = all, two = all;
        all.tensors = one.tensors = parts;
        all.tensor_count = 4;
        one.tensor_count = two.tensor_count = 2;
        two.tensors = last;
        struct optimizer *whole, *first, *second, *moved;
        struct optimizer *ranges;
        float a[N], b[N], c[N], g[N];
        cr_assert_eq(optimizer_new(&whole, device, kind, N, &all), STATUS_OK);
        cr_assert_eq(optimizer_new(&first, device, kind, CUT, &one), STATUS_OK);
        cr_assert_eq(optimizer_new(&second, device, kind, N - CUT, &two), STATUS_OK);
        cr_assert_eq(optimizer_new(&ranges, device, kind, N, &all), STATUS_OK);
        for (size_t i = 0; i < N; i++)
            a[i] = b[i] = c[i] = (float)reference_value(3, i);
        for (int step = 0; step < 6; step++) {
            for (size_t i = 0; i < N; i++)
                g[i] = (float)reference_value(10 + (uint64_t)step, i);
            if (step == 3) {
                size_t from_count, to_count;
                cr_assert_eq(optimizer_new(&moved, device, kind, N, &all), STATUS_OK);
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

Test(optim, says_what_decides_its_steps)
{
    struct optimizer_parameters p = optimizer_parameters_default;
    char text[OPTIMIZER_TEXT_BYTES];
    static const char *const expected[] = {
        [OPTIMIZER_SGD] = "momentum=0.9",
        [OPTIMIZER_ADAGRAD] = "epsilon=1e-10",
        [OPTIMIZER_ADADELTA] = "rho=0.95 epsilon=1e-07",
        [OPTIMIZER_ADAM] = "beta1=0.9 beta2=0.999 epsilon=1e-08",
        [OPTIMIZER_LARS] = "momentum=0.9 trust=0.02",
    };
    for (int kind = 0; optimizer_kind_names[kind]; kind++) {
        optimizer_describe(kind, &p, text);
        cr_expect_str_eq(text, expected[kind]);
        cr_expect_eq(optimizer_needs_whole_tensors(kind), kind == OPTIMIZER_LARS);
    }
    p.nesterov = true;
    p.weight_decay = .0005f;
    optimizer_describe(OPTIMIZER_SGD, &p, text);
    cr_expect_str_eq(text, "momentum=0.9 nesterov weight-decay=0.0005");
    p.beta2 = .9999999f; /* must differ from beta2 = 1 in a checkpoint */
    optimizer_describe(OPTIMIZER_ADAM, &p, text);
    cr_expect_str_eq(text, "beta1=0.9 beta2=0.9999999 epsilon=1e-08 weight-decay=0.0005");
}
