/*
 * NCCL's ring all-reduce between GPUs, for --device cuda: one GPU a process, or several processes
 * on one (nccl_env.h). In a build without CUDA or NCCL the entry says so.
 *
 * Cost: NCCL's own ring; 2(W-1)/W of a bucket's bytes out of every GPU, 2(W-1) steps.
 */
#ifndef PSRING_RING_NCCL_H
#define PSRING_RING_NCCL_H

#include <stdbool.h>
#include <stddef.h>

#include "common/comm/backend.h"

extern const struct backend backend_nccl;

/* The version of the library that this process runs with, "2.28.9"; false: this build has none. */
bool nccl_version(char *text, size_t size);

#endif
