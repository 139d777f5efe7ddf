#include "models/optim.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/device/inputs.h"

const struct optimizer_parameters optimizer_parameters_default = {
    .momentum = .9f, .rho = .95f, .beta1 = .9f, .beta2 = .999f, .trust = .02f};

struct optimizer {
    const struct optimizer_ops *ops;
    struct device *device;
    struct optimizer_parameters parameters; /* tensors: its own copy */
    struct optimizer_tensor *tensors;
    size_t count;
    float *state;      /* (ops->states, count), then ops->counters; device memory */
    float *correction; /* (2), device memory; adam */
    float *lr_at;      /* a device input (inputs.h) */
    float lr;          /* its present value */
    size_t stepped;    /* elements done in the running step; count: no step is running */
};

/* A kind of optimizer: its state for each parameter, its counters, and its step. */
struct optimizer_ops {
    size_t states, counters;
    float epsilon; /* the default */
    bool whole_tensors;
    void (*begin)(struct optimizer *); /* (optional) before a step's first range */
    void (*step)(struct optimizer *, size_t first, size_t count, float *parameters,
                 const float *gradients);
};

/* -------- the kinds -------------------------------------------------------------------------- */

static void sgd_step(struct optimizer *o, size_t first, size_t count, float *parameters,
                     const float *gradients)
{
    struct sgd sgd = {.lr_at = o->lr_at,
                      .momentum = o->parameters.momentum,
                      .nesterov = o->parameters.nesterov,
                      .weight_decay = o->parameters.weight_decay};
    o->device->ops->sgd(o->device, &sgd, count, parameters + first, gradients + first,
                        o->state + first);
}

static void adagrad_step(struct optimizer *o, size_t first, size_t count, float *parameters,
                         const float *gradients)
{
    struct adagrad adagrad = {.lr_at = o->lr_at,
                              .epsilon = o->parameters.epsilon,
                              .weight_decay = o->parameters.weight_decay};
    o->device->ops->adagrad(o->device, &adagrad, count, parameters + first, gradients + first,
                            o->state + first);
}

static void adadelta_step(struct optimizer *o, size_t first, size_t count, float *parameters,
                          const float *gradients)
{
    struct adadelta adadelta = {.lr_at = o->lr_at,
                                .rho = o->parameters.rho,
                                .epsilon = o->parameters.epsilon,
                                .weight_decay = o->parameters.weight_decay,
                                .stride = o->count};
    o->device->ops->adadelta(o->device, &adadelta, count, parameters + first, gradients + first,
                             o->state + first);
}

static struct adam adam_of(const struct optimizer *o)
{
    return (struct adam){.lr_at = o->lr_at,
                         .beta1 = o->parameters.beta1,
                         .beta2 = o->parameters.beta2,
                         .epsilon = o->parameters.epsilon,
                         .weight_decay = o->parameters.weight_decay,
                         .step = o->state + 2 * o->count,
                         .correction = o->correction,
                         .stride = o->count};
}

static void adam_begin(struct optimizer *o)
{
    struct adam adam = adam_of(o);
    o->device->ops->adam_count(o->device, &adam);
}

static void adam_step(struct optimizer *o, size_t first, size_t count, float *parameters,
                      const float *gradients)
{
    struct adam adam = adam_of(o);
    o->device->ops->adam(o->device, &adam, count, parameters + first, gradients + first,
                         o->state + first);
}

static void lars_step(struct optimizer *o, size_t first, size_t count, float *parameters,
                      const float *gradients)
{
    struct lars lars = {.lr_at = o->lr_at,
                        .momentum = o->parameters.momentum,
                        .coefficient = o->parameters.trust,
                        .weight_decay = o->parameters.weight_decay};
    struct sgd sgd = {.lr_at = o->lr_at, .momentum = o->parameters.momentum};
    for (size_t t = 0; t < o->parameters.tensor_count; t++) {
        const struct optimizer_tensor *tensor = &o->tensors[t];
        size_t at = tensor->first, length = tensor->count;
        if (at + length <= first || first + count <= at)
            continue;
        CHECK(first <= at && at + length <= first + count); /* whole tensors only */
        if (tensor->bias)
            o->device->ops->sgd(o->device, &sgd, length, parameters + at, gradients + at,
                                o->state + at);
        else
            o->device->ops->lars(o->device, &lars, length, parameters + at, gradients + at,
                                 o->state + at);
    }
}

static const struct optimizer_ops kinds[] = {
    [OPTIMIZER_SGD] = {.states = 1, .step = sgd_step},
    [OPTIMIZER_ADAGRAD] = {.states = 1, .epsilon = 1e-10f, .step = adagrad_step},
    [OPTIMIZER_ADADELTA] = {.states = 2, .epsilon = 1e-7f, .step = adadelta_step},
    [OPTIMIZER_ADAM] =
        {.states = 2, .counters = 1, .epsilon = 1e-8f, .begin = adam_begin, .step = adam_step},
    [OPTIMIZER_LARS] = {.states = 1, .whole_tensors = true, .step = lars_step},
};

const char *const optimizer_kind_names[] = {
    [OPTIMIZER_SGD] = "sgd",   [OPTIMIZER_ADAGRAD] = "adagrad", [OPTIMIZER_ADADELTA] = "adadelta",
    [OPTIMIZER_ADAM] = "adam", [OPTIMIZER_LARS] = "lars",       NULL};

/* -------- the interface ---------------------------------------------------------------------- */

static size_t state_count(const struct optimizer *o)
{
    return o->ops->states * o->count + o->ops->counters;
}

static enum status copy_tensors(struct optimizer *o)
{
    const struct optimizer_parameters *parameters = &o->parameters;
    size_t covered = 0;
    if (!o->ops->whole_tensors)
        return STATUS_OK;
    for (size_t t = 0; t < parameters->tensor_count; t++) {
        CHECK(parameters->tensors[t].first == covered);
        covered += parameters->tensors[t].count;
    }
    CHECK(covered == o->count);
    o->tensors = malloc(parameters->tensor_count * sizeof *o->tensors);
    if (!o->tensors)
        return FAIL(STATUS_NO_MEMORY, "an optimizer: out of memory");
    memcpy(o->tensors, parameters->tensors, parameters->tensor_count * sizeof *o->tensors);
    return STATUS_OK;
}

enum status optimizer_new(struct optimizer **optimizer, struct device *device,
                          enum optimizer_kind kind, size_t count,
                          const struct optimizer_parameters *parameters)
{
    enum status status = STATUS_OK;
    CHECK((size_t)kind < sizeof kinds / sizeof *kinds);
    struct optimizer *o = calloc(1, sizeof *o);
    void *state, *correction, *lr_at;
    if (!o)
        TRY(FAIL(STATUS_NO_MEMORY, "an optimizer: out of memory"));
    o->ops = &kinds[kind];
    o->device = device;
    o->parameters = parameters ? *parameters : optimizer_parameters_default;
    if (o->parameters.epsilon == 0)
        o->parameters.epsilon = o->ops->epsilon;
    o->count = o->stepped = count;
    TRY(copy_tensors(o));
    TRY(device_alloc(device, "the optimizer's state", state_count(o) * sizeof *o->state, &state));
    o->state = state;
    device->ops->fill(device, o->state, 0.0f, state_count(o));
    TRY(device_alloc(device, "the optimizer's corrections", 2 * sizeof *o->correction,
                     &correction));
    o->correction = correction;
    TRY(device_input_new(device, "the learning rate", sizeof *o->lr_at, &lr_at));
    o->lr_at = lr_at;
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
    device_free(o->device, o->correction);
    device_free(o->device, o->state);
    free(o->tensors);
    free(o);
}

bool optimizer_needs_whole_tensors(enum optimizer_kind kind)
{
    return kinds[kind].whole_tensors;
}

void optimizer_set_lr(struct optimizer *optimizer, float lr)
{
    if (lr == optimizer->lr)
        return;
    optimizer->lr = lr;
    device_input_set(optimizer->device, optimizer->lr_at, &lr, sizeof lr);
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
    device_inputs_send(optimizer->device);
    if (optimizer->stepped >= optimizer->count) {
        optimizer->stepped = 0;
        if (optimizer->ops->begin)
            optimizer->ops->begin(optimizer);
    }
    optimizer->stepped += count;
    optimizer->ops->step(optimizer, first, count, parameters, gradients);
}

float *optimizer_state(struct optimizer *optimizer, size_t *count)
{
    *count = state_count(optimizer);
    return optimizer->state;
}

enum { FLOAT_TEXT_BYTES = 24 };

/* The fewest digits that parse back to the same number: "0.9", "0.99999988". */
static const char *exact(float value, char text[FLOAT_TEXT_BYTES])
{
    for (int digits = 1; digits <= FLT_DECIMAL_DIG; digits++) {
        snprintf(text, FLOAT_TEXT_BYTES, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    return text;
}

/* The kinds that use a number, as bits. */
#define KIND(name) (1u << OPTIMIZER_##name)

void optimizer_describe(enum optimizer_kind kind, const struct optimizer_parameters *p,
                        char text[OPTIMIZER_TEXT_BYTES])
{
    float epsilon = p->epsilon > 0 ? p->epsilon : kinds[kind].epsilon;
    const struct {
        unsigned kinds;
        const char *name;
        float value;
    } numbers[] = {{KIND(SGD) | KIND(LARS), "momentum", p->momentum},
                   {KIND(ADADELTA), "rho", p->rho},
                   {KIND(ADAM), "beta1", p->beta1},
                   {KIND(ADAM), "beta2", p->beta2},
                   {KIND(ADAGRAD) | KIND(ADADELTA) | KIND(ADAM), "epsilon", epsilon},
                   {KIND(LARS), "trust", p->trust}};
    char number[FLOAT_TEXT_BYTES];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].kinds & (1u << kind))
            used +=
                (size_t)snprintf(text + used, OPTIMIZER_TEXT_BYTES - used, "%s%s=%s",
                                 used ? " " : "", numbers[i].name, exact(numbers[i].value, number));
    }
    if (kind == OPTIMIZER_SGD && p->nesterov)
        used += (size_t)snprintf(text + used, OPTIMIZER_TEXT_BYTES - used, " nesterov");
    if (p->weight_decay > 0)
        snprintf(text + used, OPTIMIZER_TEXT_BYTES - used, " weight-decay=%s",
                 exact(p->weight_decay, number));
}
