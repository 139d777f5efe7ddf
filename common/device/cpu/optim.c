/* Optimizers. Each is one pass over the arena, because memory bandwidth is the only cost. */
#include <math.h>

#include "common/device/cpu/cpu.h"
#include "common/device/kernel.h"

enum { BLOCK = 16384 };

/* A step in blocks: block(work, at, count) does elements [at, at + count). */
struct step_work {
    const void *step; /* struct sgd, ...: what `block` expects */
    void (*block)(const struct step_work *, size_t at, size_t count);
    size_t count;
    float *parameters;
    const float *gradients;
    float *state;
    float trust; /* lars */
};

static void step_item(void *context, size_t item, int thread)
{
    (void)thread;
    const struct step_work *work = context;
    size_t at = item * BLOCK;
    work->block(work, at, work->count - at < BLOCK ? work->count - at : BLOCK);
}

static void run(struct device *device, struct step_work *work)
{
    team_run(cpu_of(device)->team, (work->count + BLOCK - 1) / BLOCK, step_item, work);
}

/* -------- sgd -------------------------------------------------------------------------------- */

KERNEL static void sgd_block(const struct sgd *s, size_t count, float *restrict parameters,
                             const float *restrict gradients, float *restrict velocity)
{
    float lr = *s->lr_at, momentum = s->momentum, decay = s->weight_decay;
    for (size_t i = 0; i < count; i++) {
        velocity[i] = momentum * velocity[i] + (gradients[i] + decay * parameters[i]);
        parameters[i] -= lr * velocity[i];
    }
}

KERNEL static void nesterov_block(const struct sgd *s, size_t count, float *restrict parameters,
                                  const float *restrict gradients, float *restrict velocity)
{
    float lr = *s->lr_at, momentum = s->momentum, decay = s->weight_decay;
    for (size_t i = 0; i < count; i++) {
        float g = gradients[i] + decay * parameters[i];
        velocity[i] = momentum * velocity[i] + g;
        parameters[i] -= lr * (g + momentum * velocity[i]);
    }
}

static void sgd_item(const struct step_work *w, size_t at, size_t count)
{
    const struct sgd *sgd = w->step;
    if (sgd->nesterov)
        nesterov_block(sgd, count, w->parameters + at, w->gradients + at, w->state + at);
    else
        sgd_block(sgd, count, w->parameters + at, w->gradients + at, w->state + at);
}

void cpu_sgd(struct device *device, const struct sgd *sgd, size_t count, float *parameters,
             const float *gradients, float *velocity)
{
    struct step_work work = {sgd, sgd_item, count, parameters, gradients, velocity, 0};
    run(device, &work);
}

/* -------- adagrad, adadelta, adam ------------------------------------------------------------ */

KERNEL static void adagrad_block(const struct adagrad *s, size_t count, float *restrict parameters,
                                 const float *restrict gradients, float *restrict square)
{
    float lr = *s->lr_at, epsilon = s->epsilon, decay = s->weight_decay;
    for (size_t i = 0; i < count; i++) {
        float g = gradients[i] + decay * parameters[i];
        square[i] += g * g;
        parameters[i] -= lr * g / (sqrtf(square[i]) + epsilon);
    }
}

static void adagrad_item(const struct step_work *w, size_t at, size_t count)
{
    adagrad_block(w->step, count, w->parameters + at, w->gradients + at, w->state + at);
}

void cpu_adagrad(struct device *device, const struct adagrad *adagrad, size_t count,
                 float *parameters, const float *gradients, float *a)
{
    struct step_work work = {adagrad, adagrad_item, count, parameters, gradients, a, 0};
    run(device, &work);
}

KERNEL static void adadelta_block(const struct adadelta *s, size_t count,
                                  float *restrict parameters, const float *restrict gradients,
                                  float *restrict square, float *restrict update)
{
    float lr = *s->lr_at, decay = s->weight_decay;
    float rho = s->rho, rest = 1.0f - s->rho, epsilon = s->epsilon;
    for (size_t i = 0; i < count; i++) {
        float g = gradients[i] + decay * parameters[i];
        float a = rho * square[i] + rest * (g * g);
        float d = g * sqrtf(update[i] + epsilon) / sqrtf(a + epsilon);
        square[i] = a;
        update[i] = rho * update[i] + rest * (d * d);
        parameters[i] -= lr * d;
    }
}

static void adadelta_item(const struct step_work *w, size_t at, size_t count)
{
    const struct adadelta *adadelta = w->step;
    adadelta_block(adadelta, count, w->parameters + at, w->gradients + at, w->state + at,
                   w->state + adadelta->stride + at);
}

void cpu_adadelta(struct device *device, const struct adadelta *adadelta, size_t count,
                  float *parameters, const float *gradients, float *state)
{
    struct step_work work = {adadelta, adadelta_item, count, parameters, gradients, state, 0};
    run(device, &work);
}

void cpu_adam_count(struct device *device, const struct adam *s)
{
    (void)device;
    *s->step += 1.0f;
    s->correction[0] = (float)(1.0 - pow((double)s->beta1, (double)*s->step));
    s->correction[1] = (float)(1.0 - pow((double)s->beta2, (double)*s->step));
}

KERNEL static void adam_block(const struct adam *s, size_t count, float *restrict parameters,
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

static void adam_item(const struct step_work *w, size_t at, size_t count)
{
    const struct adam *adam = w->step;
    adam_block(adam, count, w->parameters + at, w->gradients + at, w->state + at,
               w->state + adam->stride + at);
}

void cpu_adam(struct device *device, const struct adam *adam, size_t count, float *parameters,
              const float *gradients, float *state)
{
    struct step_work work = {adam, adam_item, count, parameters, gradients, state, 0};
    run(device, &work);
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

static float trust_of(const struct lars *lars, const struct square_work *work)
{
    double sums[2] = {0};
    for (size_t p = 0; p < SQUARE_PARTS; p++) {
        sums[0] += work->parts[p][0];
        sums[1] += work->parts[p][1];
    }
    double w = sqrt(sums[0]), g = sqrt(sums[1]);
    if (!(w > 0 && g > 0))
        return 1.0f;
    return (float)((double)lars->coefficient * w / (g + (double)lars->weight_decay * w));
}

KERNEL static void lars_block(const struct lars *s, float trust, size_t count,
                              float *restrict parameters, const float *restrict gradients,
                              float *restrict velocity)
{
    float lr = *s->lr_at, momentum = s->momentum, decay = s->weight_decay;
    for (size_t i = 0; i < count; i++) {
        velocity[i] = momentum * velocity[i] + trust * (gradients[i] + decay * parameters[i]);
        parameters[i] -= lr * velocity[i];
    }
}

static void lars_item(const struct step_work *w, size_t at, size_t count)
{
    lars_block(w->step, w->trust, count, w->parameters + at, w->gradients + at, w->state + at);
}

void cpu_lars(struct device *device, const struct lars *lars, size_t count, float *parameters,
              const float *gradients, float *velocity)
{
    struct square_work squares = {.count = count, .parameters = parameters, .gradients = gradients};
    team_run(cpu_of(device)->team, SQUARE_PARTS, square_item, &squares);
    struct step_work work = {
        lars, lars_item, count, parameters, gradients, velocity, trust_of(lars, &squares)};
    run(device, &work);
}
