/*
 * What code that talks to CUDA itself (NCCL's backend) needs of a CUDA device. These functions
 * exist only in builds with CUDA (the C files that use them are compiled only there); everybody
 * else uses device.h and stream.h. CUDA's own headers are not needed to include this one.
 */
#ifndef PSRING_COMMON_DEVICE_CUDA_CUDA_H
#define PSRING_COMMON_DEVICE_CUDA_CUDA_H

#include <stdbool.h>

#include "common/device/device.h"

struct CUstream_st; /* cudaStream_t points to it */

/* Whether `device` is a CUDA one; NULL is not. */
bool cuda_is(const struct device *device);

/* The cudaStream_t behind a stream of the device; NULL: the compute stream's. */
struct CUstream_st *cuda_stream(struct device *device, struct device_stream *stream);

/* Every thread but the one that opened the device calls this before CUDA or NCCL. */
enum status cuda_make_current(struct device *device);

/* STATUS_OK for 0 (cudaSuccess); else logs "WHAT: CUDA's name and text of the error; what to do".
 * `error` is a cudaError_t. */
enum status status_from_cuda(int error, const char *what);

#endif
