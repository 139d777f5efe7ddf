/* In place of cuda*.c in a build without CUDA. */
#include "common/device/cuda_open.h"

const char *cuda_unavailable(void)
{
    return "this build has no CUDA: install the CUDA toolkit and configure again with "
           "-DPSRING_CUDA=ON, or use --device cpu";
}

enum status cuda_open(struct device **device, const struct device_options *options)
{
    (void)device;
    (void)options;
    log_error("--device cuda: %s", cuda_unavailable());
    return STATUS_UNSUPPORTED;
}

void cuda_list(device_visitor *visit, void *context)
{
    (void)visit;
    (void)context;
}
