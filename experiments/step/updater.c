#include "experiments/step/updater.h"

#include <math.h>
#include <stdlib.h>

static float *array_of(void *context, size_t bucket, size_t array)
{
    struct updater *updater = context;
    size_t states, first = updater->buckets[bucket].first;
    if (array == COMM_GRADIENTS)
        return updater->gradients + first;
    if (array == COMM_PARAMETERS)
        return updater->parameters + first;
    float *state = optimizer_state(updater->optimizer, &states);
    return state + (array - COMM_STATES) * updater->count + first;
}

/* In the step of the worker that pushed. */
static void apply(void *context, size_t bucket, struct chunk span, uint64_t step)
{
    struct updater *updater = context;
    if (updater->optimizer)
        optimizer_step_range(updater->optimizer, updater->buckets[bucket].first + span.offset,
                             span.count, updater->parameters, updater->gradients,
                             (float)lr_at(&updater->lr, step) * updater->lr_factor);
}

/*
 * Of the rate, where so many updates with a part of the gradient each stand for one with all of
 * it. SGD's step is in proportion to the gradient. Adadelta's is not: it is as long for each part.
 * Adagrad divides by the root of the sum of squares, which is 1/updates of what it would be.
 */
static float factor_of(enum optimizer_kind kind, size_t updates)
{
    switch (kind) {
    case OPTIMIZER_ADADELTA:
        return 1 / (float)updates;
    case OPTIMIZER_ADAGRAD:
        return 1 / sqrtf((float)updates);
    default:
        return 1;
    }
}

enum status updater_open(struct updater *updater, const struct updater_options *options)
{
    enum status status = STATUS_OK;
    struct optimizer_parameters parameters = options->optimizer;
    parameters.weight_decay /= (float)options->updates; /* it comes with every update */
    const struct device_options device = {.kind = DEVICE_CPU, .threads = 1, .gpu = -1};
    size_t count = options->count, states = 0;
    *updater = (struct updater){
        .interface = {.context = updater, .array = array_of, .apply = apply},
        .count = count,
        .lr = options->lr,
        .lr_factor = factor_of(options->kind, options->updates),
        .gradients = calloc(count, sizeof *updater->gradients),
        .parameters = calloc(count, sizeof *updater->parameters),
    };
    if (!updater->gradients || !updater->parameters) {
        log_error("no memory for a server's parameters");
        return STATUS_NO_MEMORY;
    }
    TRY(device_open(&updater->device, &device));
    if (options->trains) {
        TRY(optimizer_new(&updater->optimizer, updater->device, options->kind, count, &parameters));
        optimizer_state(updater->optimizer, &states);
    }
    updater->interface.arrays = COMM_STATES + states / count;
out:
    return status;
}

void updater_close(struct updater *updater)
{
    optimizer_free(&updater->optimizer);
    device_close(&updater->device);
    free(updater->gradients);
    free(updater->parameters);
    *updater = (struct updater){0};
}
