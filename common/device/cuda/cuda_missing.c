/* Replaces the other files of this folder in a build without CUDA. */
#include <stdio.h>

#include "common/device/open.h"

bool cuda_available(char reason[DEVICE_REASON_BYTES])
{
    snprintf(reason, DEVICE_REASON_BYTES,
             "this build has no CUDA: install the CUDA toolkit and configure again with "
             "-DPSRING_CUDA=ON, or use --device cpu");
    return false;
}

int cuda_gpus(char ids[DEVICE_GPUS_MAX][DEVICE_GPU_ID_BYTES])
{
    (void)ids;
    return 0;
}

enum status cuda_open(struct device **device, const struct device_options *options)
{
    (void)device;
    (void)options;
    char reason[DEVICE_REASON_BYTES];
    cuda_available(reason);
    return FAIL(STATUS_UNSUPPORTED, "--device cuda: %s", reason);
}

void cuda_list(device_visitor *visit, void *context)
{
    (void)visit;
    (void)context;
}
