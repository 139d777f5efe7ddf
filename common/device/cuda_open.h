/* The entrances of the CUDA device, in every build: cuda.c and cuda_info.c have them where there is
 * CUDA, no_cuda.c where not. */
#ifndef PSRING_COMMON_DEVICE_CUDA_OPEN_H
#define PSRING_COMMON_DEVICE_CUDA_OPEN_H

#include "common/device/device.h"

enum status cuda_open(struct device **device, const struct device_options *options);

/* See device_unavailable, device_gpus, device_list. */
bool cuda_available(char reason[DEVICE_REASON_BYTES]);
int cuda_gpus(char ids[DEVICE_GPUS_MAX][DEVICE_GPU_ID_BYTES]);
void cuda_list(device_visitor *visit, void *context);

#endif
