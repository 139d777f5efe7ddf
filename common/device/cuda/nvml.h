/*
 * GPU load from NVIDIA's management library (NVML, libnvidia-ml.so.1, part of the driver). It is
 * opened at run time and optional: if it is missing or refuses, the values are unknown and nothing
 * is logged. Several threads may call cuda_nvml_usage, as NVML allows. Only one thread at a time
 * may call the other functions.
 */
#ifndef PSRING_COMMON_DEVICE_CUDA_NVML_H
#define PSRING_COMMON_DEVICE_CUDA_NVML_H

#include <stdbool.h>
#include <stddef.h>

#include "common/device/device.h"

struct cuda_nvml;

/* For GPU number `index`, as cudaSetDevice counts. NVML has another numbering and ignores
 * CUDA_VISIBLE_DEVICES, so this looks up the GPU by PCI address. Returns NULL if all values will be
 * unknown. */
struct cuda_nvml *cuda_nvml_new(int index);

/* Sets *nvml to NULL. NULL is allowed, here and below. */
void cuda_nvml_free(struct cuda_nvml **nvml);

/* Takes some microseconds to milliseconds and does not disturb the GPU. */
void cuda_nvml_usage(const struct cuda_nvml *nvml, struct device_usage *usage);

/* Stores the driver's version. False if it is unknown. */
bool cuda_nvml_driver(const struct cuda_nvml *nvml, char *text, size_t bytes);

#endif
