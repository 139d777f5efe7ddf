#include "models/optim.h"

#include <stdlib.h>

#include "common/base/check.h"

const char *const optimizer_kind_names[] = {
    [OPTIMIZER_SGD] = "sgd", [OPTIMIZER_ADADELTA] = "adadelta", NULL};

const struct optimizer_parameters optimizer_parameters_default = {
    .momentum = .9f, .rho = .95f, .epsilon = 1e-7f};

struct optimizer {
    const struct optimizer_ops *ops;
    struct device *device;
    struct optimizer_parameters parameters;
    size_t count;
    float *state; /* (ops->states, count); device memory */
    float *lr_at; /* device memory */
    float lr;     /* what it holds */
};

/* A kind of optimizer: how much it remembers for each parameter, and its step. */
struct optimizer_ops {
    size_t states;
    void (*step)(struct optimizer *, size_t first, size_t count, float *parameters,
                 const float *gradients);
};

static void sgd_step(struct optimizer *o, size_t first, size_t count, float *parameters,
                     const float *gradients)
{
    struct sgd sgd = {.lr_at = o->lr_at, .momentum = o->parameters.momentum};
    o->device->ops->sgd(o->device, &sgd, count, parameters + first, gradients + first,
                        o->state + first);
}

static void adadelta_step(struct optimizer *o, size_t first, size_t count, float *parameters,
                          const float *gradients)
{
    struct adadelta adadelta = {.lr_at = o->lr_at,
                                .rho = o->parameters.rho,
                                .epsilon = o->parameters.epsilon,
                                .apart = o->count};
    o->device->ops->adadelta(o->device, &adadelta, count, parameters + first, gradients + first,
                             o->state + first);
}

static const struct optimizer_ops kinds[] = {
    [OPTIMIZER_SGD] = {.states = 1, .step = sgd_step},
    [OPTIMIZER_ADADELTA] = {.states = 2, .step = adadelta_step},
};

enum status optimizer_new(struct optimizer **optimizer, struct device *device,
                          enum optimizer_kind kind, size_t count,
                          const struct optimizer_parameters *parameters)
{
    enum status status = STATUS_OK;
    CHECK((size_t)kind < sizeof kinds / sizeof *kinds);
    struct optimizer *o = calloc(1, sizeof *o);
    void *state, *lr_at;
    if (!o) {
        log_error("an optimizer: out of memory");
        status = STATUS_NO_MEMORY;
        goto out;
    }
    o->ops = &kinds[kind];
    o->device = device;
    o->parameters = parameters ? *parameters : optimizer_parameters_default;
    o->count = count;
    TRY(device_alloc(device, "the optimizer's state", o->ops->states * count * sizeof *o->state,
                     &state));
    o->state = state;
    device->ops->fill(device, o->state, 0.0f, o->ops->states * count);
    TRY(device_alloc(device, "the learning rate", sizeof *o->lr_at, &lr_at));
    o->lr_at = lr_at;
    device_upload(device, o->lr_at, &o->lr, sizeof o->lr);
out:
    if (status != STATUS_OK)
        optimizer_free(&o);
    *optimizer = o;
    return status;
}

void optimizer_free(struct optimizer **optimizer)
{
    struct optimizer *o = *optimizer;
    *optimizer = NULL;
    if (!o)
        return;
    device_free(o->device, o->lr_at);
    device_free(o->device, o->state);
    free(o);
}

void optimizer_set_lr(struct optimizer *optimizer, float lr)
{
    if (lr == optimizer->lr)
        return;
    optimizer->lr = lr;
    device_upload(optimizer->device, optimizer->lr_at, &lr, sizeof lr);
}

void optimizer_step(struct optimizer *optimizer, float *parameters, const float *gradients,
                    float lr)
{
    optimizer_step_range(optimizer, 0, optimizer->count, parameters, gradients, lr);
}

void optimizer_step_range(struct optimizer *optimizer, size_t first, size_t count,
                          float *parameters, const float *gradients, float lr)
{
    CHECK(first + count <= optimizer->count);
    optimizer_set_lr(optimizer, lr);
    optimizer->ops->step(optimizer, first, count, parameters, gradients);
}

float *optimizer_state(struct optimizer *optimizer, size_t *count)
{
    *count = optimizer->ops->states * optimizer->count;
    return optimizer->state;
}
