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
    const struct optimizer_layout *layout;
    struct device *device;
    struct update update;
    struct optimizer_tensor *tensors; /* (tensor_count); NULL: ranges are cut anywhere */
    size_t tensor_count;
    size_t count;
    float *state;           /* (layout->states, count), then layout->counters; device memory */
    struct device_input lr; /* float */
    size_t stepped;         /* elements done in the running step; count: no step is running */
};

/* A kind of optimizer keeps values for each parameter, and counters of steps. */
static const struct optimizer_layout {
    size_t states, counters;
    float epsilon; /* the default */
    bool whole_tensors;
} layouts[] = {
    [OPTIMIZER_SGD] = {.states = 1},
    [OPTIMIZER_ADAGRAD] = {.states = 1, .epsilon = 1e-10f},
    [OPTIMIZER_ADADELTA] = {.states = 2, .epsilon = 1e-7f},
    [OPTIMIZER_ADAM] = {.states = 2, .counters = 1, .epsilon = 1e-8f},
    [OPTIMIZER_LARS] = {.states = 1, .whole_tensors = true},
};

const char *const optimizer_kind_names[] = {
    [OPTIMIZER_SGD] = "sgd",   [OPTIMIZER_ADAGRAD] = "adagrad", [OPTIMIZER_ADADELTA] = "adadelta",
    [OPTIMIZER_ADAM] = "adam", [OPTIMIZER_LARS] = "lars",       NULL};

static size_t state_count(const struct optimizer *o)
{
    return o->layout->states * o->count + o->layout->counters;
}

static enum status copy_tensors(struct optimizer *o, const struct optimizer_parameters *parameters)
{
    size_t covered = 0;
    if (!o->layout->whole_tensors)
        return STATUS_OK;
    for (size_t t = 0; t < parameters->tensor_count; t++) {
        CHECK(parameters->tensors[t].first == covered);
        covered += parameters->tensors[t].count;
    }
    CHECK(covered == o->count);
    o->tensors = malloc(parameters->tensor_count * sizeof *o->tensors);
    if (!o->tensors)
        return FAIL(STATUS_NO_MEMORY, "an optimizer: out of memory");
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a net has tensors */
    memcpy(o->tensors, parameters->tensors, parameters->tensor_count * sizeof *o->tensors);
    o->tensor_count = parameters->tensor_count;
    return STATUS_OK;
}

enum status optimizer_new(struct optimizer **optimizer, struct device *device,
                          enum optimizer_kind kind, size_t count,
                          const struct optimizer_parameters *parameters)
{
    enum status status = STATUS_OK;
    const struct optimizer_parameters *p = parameters ? parameters : &optimizer_parameters_default;
    CHECK((size_t)kind < sizeof layouts / sizeof *layouts);
    struct optimizer *o = calloc(1, sizeof *o);
    void *state, *correction;
    if (!o)
        TRY(FAIL(STATUS_NO_MEMORY, "an optimizer: out of memory"));
    o->layout = &layouts[kind];
    o->device = device;
    o->count = o->stepped = count;
    TRY(copy_tensors(o, p));
    TRY(device_alloc(device, "the optimizer's state", state_count(o) * sizeof *o->state, &state));
    o->state = state;
    device->ops->fill(device, o->state, 0.0f, state_count(o));
    TRY(device_input_new(device, "the learning rate", sizeof(float), &o->lr));
    o->update = (struct update){.kind = kind,
                                .momentum = p->momentum,
                                .nesterov = p->nesterov,
                                .rho = p->rho,
                                .beta1 = p->beta1,
                                .beta2 = p->beta2,
                                .epsilon = p->epsilon == 0 ? o->layout->epsilon : p->epsilon,
                                .trust = p->trust,
                                .weight_decay = p->weight_decay,
                                .lr_at = o->lr.memory,
                                .stride = count,
                                .step = o->state + o->layout->states * count};
    TRY(device_alloc(device, "the optimizer's corrections", 2 * sizeof(float), &correction));
    o->update.correction = correction;
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
    device_free(o->device, o->update.correction);
    device_free(o->device, o->state);
    free(o->tensors);
    free(o);
}

bool optimizer_needs_whole_tensors(enum optimizer_kind kind)
{
    return layouts[kind].whole_tensors;
}

void optimizer_set_lr(struct optimizer *optimizer, float lr)
{
    *(float *)optimizer->lr.host = lr;
}

void optimizer_step(struct optimizer *optimizer, float *parameters, const float *gradients,
                    float lr)
{
    optimizer_step_range(optimizer, 0, optimizer->count, parameters, gradients, lr);
}

/* LARS needs the norms of whole tensors. Biases take SGD's step. */
static void step_tensors(struct optimizer *o, size_t first, size_t count, float *parameters,
                         const float *gradients)
{
    const struct update sgd = {
        .kind = OPTIMIZER_SGD, .momentum = o->update.momentum, .lr_at = o->update.lr_at};
    for (size_t t = 0; t < o->tensor_count; t++) {
        const struct optimizer_tensor *tensor = &o->tensors[t];
        size_t at = tensor->first, length = tensor->count;
        if (at + length <= first || first + count <= at)
            continue;
        CHECK(first <= at && at + length <= first + count); /* whole tensors only */
        o->device->ops->update(o->device, tensor->bias ? &sgd : &o->update, length, parameters + at,
                               gradients + at, o->state + at);
    }
}

void optimizer_step_range(struct optimizer *o, size_t first, size_t count, float *parameters,
                          const float *gradients, float lr)
{
    CHECK(first + count <= o->count);
    optimizer_set_lr(o, lr);
    if (o->stepped >= o->count) {
        o->stepped = 0;
        if (o->layout->counters > 0)
            o->device->ops->adam_count(o->device, &o->update);
    }
    o->stepped += count;
    if (o->tensors)
        step_tensors(o, first, count, parameters, gradients);
    else
        o->device->ops->update(o->device, &o->update, count, parameters + first, gradients + first,
                               o->state + first);
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
    float epsilon = p->epsilon > 0 ? p->epsilon : layouts[kind].epsilon;
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
