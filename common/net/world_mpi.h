/* What the MPI transport needs of a world that MPI has brought together. Only builds with MPI have
 * these. */
#ifndef PSRING_COMMON_NET_WORLD_MPI_H
#define PSRING_COMMON_NET_WORLD_MPI_H

#include <mpi.h>
#include <stdbool.h>

#include "common/base/status.h"

/* Of a world that MPI has brought together (world_is_mpi). */
struct world_impl {
    MPI_Comm comm;    /* a duplicate of MPI_COMM_WORLD, or what was given, that returns errors */
    bool initialized; /* by world_open, which is then undone */
};

/* Logs MPI's own text for `code` unless it is MPI_SUCCESS. `what` names the call. */
enum status status_from_mpi(int code, const char *what);

#endif
