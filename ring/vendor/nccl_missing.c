/* In place of nccl.c in builds without NCCL. */
#include "ring/vendor/nccl.h"

bool nccl_version(char *text, size_t size)
{
    (void)text;
    (void)size;
    return false;
}

const struct backend backend_nccl = {
    .name = "nccl",
    .summary = "NCCL's ring all-reduce between GPUs",
    .device_memory = true,
    .gpu_only = true,
    .takes_nccl_options = true,
    .cost = &cost_not_known,
    .unavailable = "this build has no NCCL; install CUDA's toolkit and NCCL (nccl.h and libnccl) "
                   "and configure again with -DPSRING_CUDA=ON, or use --backend ring, the same "
                   "ring between CPUs",
};
