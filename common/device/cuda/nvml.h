/*
 * What NVIDIA's management library (NVML, libnvidia-ml.so.1, which comes with the driver) says of a
 * GPU. It is opened at run time and optional: where it is missing or refuses, nothing is known, and
 * nothing is said of that. cuda_nvml_usage may be called by several threads, as NVML itself; the
 * rest by one at a time.
 */
#ifndef PSRING_COMMON_DEVICE_CUDA_NVML_H
#define PSRING_COMMON_DEVICE_CUDA_NVML_H

#include <stdbool.h>
#include <stddef.h>

#include "common/device/device.h"

struct cuda_nvml;

/* For the GPU of number `index`, as cudaSetDevice counts. NVML counts otherwise, and does not obey
 * CUDA_VISIBLE_DEVICES: it is asked by the PCI address. NULL: nothing will be known. */
struct cuda_nvml *cuda_nvml_new(int index);

/* Sets *nvml to NULL; NULL is fine, here and below. */
void cuda_nvml_free(struct cuda_nvml **nvml);

/* Some microseconds to milliseconds; the GPU is not disturbed. */
void cuda_nvml_usage(const struct cuda_nvml *nvml, struct device_usage *usage);

/* The driver's version; false if it is not known. */
bool cuda_nvml_driver(const struct cuda_nvml *nvml, char *text, size_t bytes);

#endif
