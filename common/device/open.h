/*
 * The entry points of each kind of device. Every build has CUDA's: from cuda/cuda.c and cuda/info.c
 * with CUDA, from cuda/cuda_missing.c without.
 */
#ifndef PSRING_COMMON_DEVICE_OPEN_H
#define PSRING_COMMON_DEVICE_OPEN_H

#include "common/device/device.h"

enum status cpu_open(struct device **device, const struct device_options *options);
enum status cuda_open(struct device **device, const struct device_options *options);

/* See device_unavailable, device_gpus, device_list. */
bool cuda_available(char reason[DEVICE_REASON_BYTES]);
int cuda_gpus(char ids[DEVICE_GPUS_MAX][DEVICE_GPU_ID_BYTES]);
void cuda_list(device_visitor *visit, void *context);

#endif
