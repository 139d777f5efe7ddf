/*
 * The baselines: the all-reduces of the MPI library and of NCCL.
 *
 * MPI_Allreduce goes by whichever algorithm the
 * library chooses or by one that it is told to use. Only Open MPI can be told.
 */
#ifndef PSRING_RING_BASELINES_BASELINES_H
#define PSRING_RING_BASELINES_BASELINES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/comm/backend.h"

extern const struct backend backend_mpi;

/* Elements of one MPI_Allreduce, at most. It says nothing until it is done, and whoever watches the
 * ranks takes that for standing still: 256 MB are done in time where a vector of gigabytes is not.
 */
enum { LIBRARY_PART_COUNT = 1 << 26 };

/* Whether the MPI library says, in the world that is open, that it can be given a GPU's memory
 * (CUDA-aware). Only Open MPI can be asked. */
bool library_is_cuda_aware(void);

enum library_algorithm {
    LIBRARY_DEFAULT, /* the library's choice, by size and number of ranks */
    LIBRARY_RING,
    LIBRARY_SEGMENTED,    /* a ring whose chunks travel in segments of 64 KB */
    LIBRARY_RABENSEIFNER, /* halving, then doubling */
};

extern const char *const library_algorithm_names[]; /* by enum library_algorithm; NULL at the end */

/*
 * Has MPI_Allreduce use `algorithm` in the world that is opened next; LIBRARY_DEFAULT leaves things
 * as they are, also what the user has told Open MPI. Whether the library obeys is only known once
 * the world is open: see library_check.
 */
void library_request(enum library_algorithm algorithm);

/* What MPI_Allreduce uses in the world that is open: one of the names above, or Open MPI's own name
 * of another that the user has asked it for. Static storage. */
const char *library_algorithm_used(void);

/* STATUS_UNSUPPORTED, logged: the library does not use what was requested. */
enum status library_check(enum library_algorithm algorithm);

/*
 * NCCL's ring all-reduce between GPUs, for --device cuda: one GPU a process, or several processes
 * on one (nccl_impl.h). In a build without CUDA or NCCL the entry says so.
 *
 * Cost: NCCL's own ring; 2(W-1)/W of a bucket's bytes out of every GPU, 2(W-1) steps.
 */

extern const struct backend backend_nccl;

/* The version of the library that this process runs with, "2.28.9"; false: this build has none. */
bool nccl_version(char *text, size_t size);

#endif
