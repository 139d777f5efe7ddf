/* Optimizers: one pass over the arena, because memory bandwidth is their only cost. */
#include <math.h>

#include "common/device/cpu/cpu.h"
#include "common/device/kernel.h"

enum { BLOCK = 16384 };

struct step_work {
    const struct sgd *sgd;
    const struct adadelta *adadelta;
    size_t count;
    float *parameters;
    const float *gradients;
    float *state;
};

KERNEL static void sgd_block(const struct sgd *s, size_t count, float *restrict parameters,
                             const float *restrict gradients, float *restrict velocity)
{
    float lr = *s->lr_at, momentum = s->momentum;
    for (size_t i = 0; i < count; i++) {
        velocity[i] = momentum * velocity[i] + gradients[i];
        parameters[i] -= lr * velocity[i];
    }
}

KERNEL static void adadelta_block(const struct adadelta *s, size_t count,
                                  float *restrict parameters, const float *restrict gradients,
                                  float *restrict square, float *restrict update)
{
    float lr = *s->lr_at;
    float rho = s->rho, rest = 1.0f - s->rho, epsilon = s->epsilon;
    for (size_t i = 0; i < count; i++) {
        float g = gradients[i];
        float a = rho * square[i] + rest * (g * g);
        float d = g * sqrtf(update[i] + epsilon) / sqrtf(a + epsilon);
        square[i] = a;
        update[i] = rho * update[i] + rest * (d * d);
        parameters[i] -= lr * d;
    }
}

static void step_item(void *context, size_t item, int thread)
{
    (void)thread;
    const struct step_work *work = context;
    size_t at = item * BLOCK;
    size_t apart = work->adadelta && work->adadelta->apart ? work->adadelta->apart : work->count;
    size_t length = work->count - at < BLOCK ? work->count - at : BLOCK;
    if (work->sgd)
        sgd_block(work->sgd, length, work->parameters + at, work->gradients + at, work->state + at);
    else
        adadelta_block(work->adadelta, length, work->parameters + at, work->gradients + at,
                       work->state + at, work->state + apart + at);
}

void cpu_sgd(struct device *device, const struct sgd *sgd, size_t count, float *parameters,
             const float *gradients, float *velocity)
{
    struct step_work work = {sgd, NULL, count, parameters, gradients, velocity};
    team_run(cpu_of(device)->team, (count + BLOCK - 1) / BLOCK, step_item, &work);
}

void cpu_adadelta(struct device *device, const struct adadelta *adadelta, size_t count,
                  float *parameters, const float *gradients, float *state)
{
    struct step_work work = {NULL, adadelta, count, parameters, gradients, state};
    team_run(cpu_of(device)->team, (count + BLOCK - 1) / BLOCK, step_item, &work);
}
