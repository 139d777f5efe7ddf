/*
 * A step's inputs: small values that operations read from device memory, because they change from
 * step to step: which samples, the step's number, the learning rate. They lie side by side, so that
 * all that have changed reach a GPU in one copy.
 *
 *     device_input_new(device, "the learning rate", sizeof rate, &memory);
 *     device_input_set(device, memory, &rate, sizeof rate);
 *     device_inputs_send(device);              before the first operation that reads any of them;
 *                                              device_repeat does
 *
 * Where device memory is the host's, to set one is all. From the device's thread.
 */
#ifndef PSRING_COMMON_DEVICE_INPUTS_H
#define PSRING_COMMON_DEVICE_INPUTS_H

#include <stddef.h>

#include "common/base/status.h"

struct device;

/* `bytes` of device memory aligned to 16 bytes, holding zeros, until the device is closed. Errors
 * as device_alloc. */
enum status device_input_new(struct device *device, const char *what, size_t bytes, void **memory);

/* The first `bytes` of the input become those of `from_host`, for operations after the next
 * device_inputs_send. */
void device_input_set(struct device *device, void *memory, const void *from_host, size_t bytes);

/* Uploads what was set since the last call: nothing, or one run of bytes of each block of inputs
 * (16 KiB, or a larger input alone). As part of a step that is repeated (device_repeat) only where
 * there is nothing to send. */
void device_inputs_send(struct device *device);

/* Of device_close. */
void device_inputs_free(struct device *device);

#endif
