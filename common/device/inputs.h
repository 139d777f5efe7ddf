/*
 * A step's inputs: small values that operations read from device memory because they change from
 * step to step (sample numbers, the step's number, the learning rate). They are adjacent, so one
 * copy brings all changed inputs to a GPU.
 *
 *     device_input_new(device, "the learning rate", sizeof rate, &memory);
 *     device_input_set(device, memory, &rate, sizeof rate);
 *     device_inputs_send(device);              before the first operation that reads any of them;
 *                                              device_repeat does
 *
 * If device memory is host memory, device_input_set alone is enough. From the device's thread.
 */
#ifndef PSRING_COMMON_DEVICE_INPUTS_H
#define PSRING_COMMON_DEVICE_INPUTS_H

#include <stddef.h>

#include "common/base/status.h"

struct device;

/* Allocates `bytes` of zeroed device memory, aligned to 16 bytes, valid until the device is closed.
 * Errors as device_alloc. */
enum status device_input_new(struct device *device, const char *what, size_t bytes, void **memory);

/* Sets the first `bytes` of the input to those of `from_host`. Operations after the next
 * device_inputs_send see them. */
void device_input_set(struct device *device, void *memory, const void *from_host, size_t bytes);

/* Uploads what was set since the last call: nothing, or one run of bytes per block of inputs (a
 * block is 16 KiB, or one larger input). A step that is repeated (device_repeat) may contain this
 * call only if there is nothing to send. */
void device_inputs_send(struct device *device);

/* Called by device_close. */
void device_inputs_free(struct device *device);

#endif
