#include "ring/nccl.h"

const struct backend backend_nccl = {
    .name = "nccl",
    .summary = "NCCL's ring all-reduce between GPUs",
    .unavailable = "not built with CUDA; use --backend ring, which is the same ring on CPUs",
};
