/* The MPI library's own all-reduce, as the baseline: MPI_Allreduce, whatever algorithm it chooses.
 */
#ifndef PSRING_RING_LIBRARY_H
#define PSRING_RING_LIBRARY_H

#include "common/comm/comm.h"

extern const struct backend backend_mpi;

#endif
