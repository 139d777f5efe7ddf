/*
 * A step's inputs: small values that operations read from device memory because they change from
 * step to step (sample numbers, the step's number, the learning rate). They are adjacent, so one
 * copy brings all changed inputs to a GPU.
 *
 *     device_input_new(device, "the learning rate", sizeof(float), &rate);
 *     *(float *)rate.host = 0.1f;              an operation with rate.memory then sees the value
 *
 * A device whose memory is not the host's calls device_inputs_send before each operation that reads
 * inputs. Otherwise both addresses are the same. From the device's thread.
 */
#ifndef PSRING_COMMON_DEVICE_INPUTS_H
#define PSRING_COMMON_DEVICE_INPUTS_H

#include <stddef.h>

#include "common/base/status.h"

struct device;

struct device_input {
    void *host;   /* the caller stores new values here */
    void *memory; /* device memory, which operations read */
};

/* Allocates `bytes` of zeroed host and device memory, aligned to 16 bytes, valid until the device
 * is closed. Errors as device_alloc. */
enum status device_input_new(struct device *device, const char *what, size_t bytes,
                             struct device_input *input);

/* Uploads what has changed since the last call: nothing, or one run of words for each block of
 * inputs. A block is 16 KiB, or one larger input. device_repeat calls it first, so recorded
 * operations have nothing to send. */
void device_inputs_send(struct device *device);

/* Called by device_close. */
void device_inputs_free(struct device *device);

#endif
