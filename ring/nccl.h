/* NCCL's ring all-reduce between GPUs. In a build without CUDA the entry says so. */
#ifndef PSRING_RING_NCCL_H
#define PSRING_RING_NCCL_H

#include "common/comm/comm.h"

extern const struct backend backend_nccl;

#endif
