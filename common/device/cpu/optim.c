/* Optimizers. Each is one pass over the arena, because memory bandwidth is the only cost. */
#include <math.h>

#include "common/base/util.h"
#include "common/device/cpu/cpu.h"
#include "common/device/kernel.h"

enum { BLOCK = 16384 };

/* -------- sgd -------------------------------------------------------------------------------- */

KERNEL static void sgd_block(const struct update *s, size_t count, float *restrict parameters,
                             const float *restrict gradients, float *restrict velocity)
{
    float lr = *s->lr_at, momentum = s->momentum, decay = s->weight_decay;
    for (size_t i = 0; i < count; i++) {
        velocity[i] = momentum * velocity[i] + (gradients[i] + decay * parameters[i]);
        parameters[i] -= lr * velocity[i];
    }
}

KERNEL static void nesterov_block(const struct update *s, size_t count, float *restrict parameters,
                                  const float *restrict gradients, float *restrict velocity)
{
    float lr = *s->lr_at, momentum = s->momentum, decay = s->weight_decay;
    for (size_t i = 0; i < count; i++) {
        float g = gradients[i] + decay * parameters[i];
        velocity[i] = momentum * velocity[i] + g;
        parameters[i] -= lr * (g + momentum * velocity[i]);
    }
}

/* -------- adagrad, adadelta, adam ------------------------------------------------------------ */

KERNEL static void adagrad_block(const struct update *s, size_t count, float *restrict parameters,
                                 const float *restrict gradients, float *restrict square)
{
    float lr = *s->lr_at, epsilon = s->epsilon, decay = s->weight_decay;
    for (size_t i = 0; i < count; i++) {
        float g = gradients[i] + decay * parameters[i];
        square[i] += g * g;
        parameters[i] -= lr * g / (sqrtf(square[i]) + epsilon);
    }
}

KERNEL static void adadelta_block(const struct update *s, size_t count, float *restrict parameters,
                                  const float *restrict gradients, float *restrict square,
                                  float *restrict moved)
{
    float lr = *s->lr_at, decay = s->weight_decay;
    float rho = s->rho, rest = 1.0f - s->rho, epsilon = s->epsilon;
    for (size_t i = 0; i < count; i++) {
        float g = gradients[i] + decay * parameters[i];
        float a = rho * square[i] + rest * (g * g);
        float d = g * sqrtf(moved[i] + epsilon) / sqrtf(a + epsilon);
        square[i] = a;
        moved[i] = rho * moved[i] + rest * (d * d);
        parameters[i] -= lr * d;
    }
}

void cpu_adam_count(struct device *device, const struct update *s)
{
    (void)device;
    *s->step += 1.0f;
    s->correction[0] = (float)(1.0 - pow((double)s->beta1, (double)*s->step));
    s->correction[1] = (float)(1.0 - pow((double)s->beta2, (double)*s->step));
}

KERNEL static void adam_block(const struct update *s, size_t count, float *restrict parameters,
                              const float *restrict gradients, float *restrict mean,
                              float *restrict square)
{
    float rate = *s->lr_at / s->correction[0], correction = s->correction[1];
    float beta1 = s->beta1, rest1 = 1.0f - s->beta1, beta2 = s->beta2, rest2 = 1.0f - s->beta2;
    float epsilon = s->epsilon, decay = s->weight_decay;
    for (size_t i = 0; i < count; i++) {
        float g = gradients[i] + decay * parameters[i];
        mean[i] = beta1 * mean[i] + rest1 * g;
        square[i] = beta2 * square[i] + rest2 * (g * g);
        parameters[i] -= rate * mean[i] / (sqrtf(square[i] / correction) + epsilon);
    }
}

/* -------- lars: norms of a whole tensor, then its step --------------------------------------- */

enum { SQUARE_PARTS = 64, SQUARE_LANES = 8 };

struct square_work {
    size_t count;
    const float *parameters, *gradients;
    double parts[SQUARE_PARTS][2]; /* sums of squares: of parameters, of gradients */
};

/* The sum of squares, in as many lanes as the widest vector has. */
KERNEL static double squares_of(const float *values, size_t count)
{
    double lanes[SQUARE_LANES] = {0}, sum = 0;
    size_t whole = count - count % SQUARE_LANES;
    for (size_t i = 0; i < whole; i += SQUARE_LANES) {
        for (size_t l = 0; l < SQUARE_LANES; l++)
            lanes[l] += (double)values[i + l] * (double)values[i + l];
    }
    for (size_t i = whole; i < count; i++)
        sum += (double)values[i] * (double)values[i];
    for (size_t l = 0; l < SQUARE_LANES; l++)
        sum += lanes[l];
    return sum;
}

static void square_item(void *context, size_t part, int thread)
{
    (void)thread;
    struct square_work *work = context;
    size_t first = work->count / SQUARE_PARTS * part;
    size_t end = part + 1 < SQUARE_PARTS ? first + work->count / SQUARE_PARTS : work->count;
    work->parts[part][0] = squares_of(work->parameters + first, end - first);
    work->parts[part][1] = squares_of(work->gradients + first, end - first);
}

/* The tensor's ratio (struct update). */
static float ratio_of(const struct update *lars, const struct square_work *work)
{
    double sums[2] = {0};
    for (size_t p = 0; p < SQUARE_PARTS; p++) {
        sums[0] += work->parts[p][0];
        sums[1] += work->parts[p][1];
    }
    double w = sqrt(sums[0]), g = sqrt(sums[1]);
    if (!(w > 0 && g > 0))
        return 1.0f;
    return (float)((double)lars->trust * w / (g + (double)lars->weight_decay * w));
}

/* s->trust: the tensor's ratio. */
KERNEL static void lars_block(const struct update *s, size_t count, float *restrict parameters,
                              const float *restrict gradients, float *restrict velocity)
{
    float lr = *s->lr_at, momentum = s->momentum, decay = s->weight_decay, ratio = s->trust;
    for (size_t i = 0; i < count; i++) {
        velocity[i] = momentum * velocity[i] + ratio * (gradients[i] + decay * parameters[i]);
        parameters[i] -= lr * velocity[i];
    }
}

/* -------- all kinds, in blocks ---------------------------------------------------------------- */

struct update_work {
    const struct update *update;
    size_t count;
    float *parameters;
    const float *gradients;
    float *state;
};

static void update_item(void *context, size_t item, int thread)
{
    const struct update_work *w = context;
    const struct update *u = w->update;
    size_t at = item * BLOCK, count = size_smaller(w->count - at, BLOCK);
    float *p = w->parameters + at, *state = w->state + at;
    const float *g = w->gradients + at;
    (void)thread;
    switch (u->kind) {
    case OPTIMIZER_SGD:
        if (u->nesterov)
            nesterov_block(u, count, p, g, state);
        else
            sgd_block(u, count, p, g, state);
        break;
    case OPTIMIZER_ADAGRAD:
        adagrad_block(u, count, p, g, state);
        break;
    case OPTIMIZER_ADADELTA:
        adadelta_block(u, count, p, g, state, state + u->stride);
        break;
    case OPTIMIZER_ADAM:
        adam_block(u, count, p, g, state, state + u->stride);
        break;
    case OPTIMIZER_LARS:
        lars_block(u, count, p, g, state);
        break;
    }
}

void cpu_update(struct device *device, const struct update *update, size_t count, float *parameters,
                const float *gradients, float *state)
{
    struct update step = *update;
    struct update_work work = {&step, count, parameters, gradients, state};
    if (step.kind == OPTIMIZER_LARS) {
        struct square_work squares = {
            .count = count, .parameters = parameters, .gradients = gradients};
        team_run(cpu_of(device)->team, SQUARE_PARTS, square_item, &squares);
        step.trust = ratio_of(update, &squares);
    }
    team_run(cpu_of(device)->team, size_divide_up(count, BLOCK), update_item, &work);
}
