/*
 * The interface of a CUDA device for code that calls CUDA itself (NCCL's backend). These functions
 * exist only in builds with CUDA, and so do the C files that use them. All other code uses device.h
 * and stream.h. This header does not include CUDA's headers.
 */
#ifndef PSRING_COMMON_DEVICE_CUDA_CUDA_H
#define PSRING_COMMON_DEVICE_CUDA_CUDA_H

#include <stdbool.h>

#include "common/device/device.h"

struct CUstream_st; /* cudaStream_t points to it */

/* Whether `device` is a CUDA device. False for NULL. */
bool cuda_is(const struct device *device);

/* The cudaStream_t behind a stream of the device. NULL gives the compute stream. */
struct CUstream_st *cuda_stream(struct device *device, struct device_stream *stream);

/* Every thread except the one that opened the device must call this before it calls CUDA or
 * NCCL. */
enum status cuda_make_current(struct device *device);

/* Returns STATUS_OK for 0 (cudaSuccess). Else logs "WHAT: CUDA's name and text of the error; what
 * to do". `error` is a cudaError_t. */
enum status status_from_cuda(int error, const char *what);

#endif
