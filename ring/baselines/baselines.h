/*
 * The baselines: the all-reduces of the MPI library and of NCCL.
 *
 * MPI_Allreduce uses the algorithm that the library chooses, or one that psring requests. Only Open
 * MPI accepts requests.
 */
#ifndef PSRING_RING_BASELINES_BASELINES_H
#define PSRING_RING_BASELINES_BASELINES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/comm/backend.h"

extern const struct backend backend_mpi;

/* Most elements of one MPI_Allreduce. The call shows no progress until it ends, so the watchdog
 * would take a long call for a hang. A call of 256 MB ends in time; one of gigabytes does not. */
enum { LIBRARY_PART_COUNT = 1 << 26 };

/* Whether the MPI library of the open world reports that it accepts GPU memory (CUDA-aware). Only
 * Open MPI has this query. */
bool library_is_cuda_aware(void);

enum library_algorithm {
    LIBRARY_DEFAULT, /* the library chooses, by size and number of ranks */
    LIBRARY_RING,
    LIBRARY_SEGMENTED,    /* a ring whose chunks travel in segments of 64 KB */
    LIBRARY_RABENSEIFNER, /* halving, then doubling */
};

extern const char *const library_algorithm_names[]; /* by enum library_algorithm; NULL at the end */

/*
 * Makes MPI_Allreduce use `algorithm` in the world that is opened next. LIBRARY_DEFAULT changes
 * nothing and keeps the user's own settings of Open MPI. Whether the library obeys is known only
 * when the world is open: see library_check.
 */
void library_request(enum library_algorithm algorithm);

/* The algorithm that MPI_Allreduce uses in the open world: one of the names above, or Open MPI's
 * own name of another algorithm that the user has requested. Static storage. */
const char *library_algorithm_used(void);

/* STATUS_UNSUPPORTED, logged: the library does not use the requested algorithm. */
enum status library_check(enum library_algorithm algorithm);

/*
 * NCCL's ring all-reduce between GPUs, for --device cuda. Each process has its own GPU, or several
 * processes share one (nccl_impl.h). A build without CUDA or NCCL sets the table's `unavailable`.
 *
 * Cost: that of NCCL's own ring: 2(W-1)/W of a bucket's bytes out of every GPU, 2(W-1) steps.
 */

extern const struct backend backend_nccl;

/* Writes the version of the loaded library, "2.28.9". Returns false if there is none. */
bool nccl_version(char *text, size_t size);

#endif
