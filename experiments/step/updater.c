#include "experiments/step/updater.h"

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

enum status updater_open(struct updater *updater, const struct updater_options *options)
{
    enum status status = STATUS_OK;
    const struct device_options device = {.kind = DEVICE_CPU, .threads = 1, .gpu = -1};
    size_t count = options->count, states = 0;
    bool scales_itself = options->kind != OPTIMIZER_SGD;
    *updater = (struct updater){
        .interface = {.context = updater, .array = array_of, .apply = apply},
        .count = count,
        .lr = options->lr,
        .lr_factor = scales_itself ? 1 / (float)options->updates : 1,
        .gradients = calloc(count, sizeof *updater->gradients),
        .parameters = calloc(count, sizeof *updater->parameters),
    };
    if (!updater->gradients || !updater->parameters) {
        log_error("no memory for a server's parameters");
        return STATUS_NO_MEMORY;
    }
    TRY(device_open(&updater->device, &device));
    if (options->trains) {
        TRY(optimizer_new(&updater->optimizer, updater->device, options->kind, count,
                          &options->optimizer));
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
