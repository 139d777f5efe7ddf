/* Internal to common/net: MPI error codes into status. */
#ifndef PSRING_COMMON_NET_MPI_STATUS_H
#define PSRING_COMMON_NET_MPI_STATUS_H

#include "common/base/status.h"

/* Logs MPI's own text for `code` unless it is MPI_SUCCESS. `what` names the call. */
enum status status_from_mpi(int code, const char *what);

#endif
