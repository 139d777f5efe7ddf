#include "ring/nccl.h"

const struct backend backend_nccl = {
    .name = "nccl",
    .summary = "NCCL's ring all-reduce between GPUs",
    .unavailable = "this version computes on CPUs only; use --backend ring, the same ring on CPUs",
};
