/* Internal to common/net: the MPI side of a world, for world.c and mpi.c. */
#ifndef PSRING_COMMON_NET_WORLD_IMPL_H
#define PSRING_COMMON_NET_WORLD_IMPL_H

#include <mpi.h>

struct world_impl {
    MPI_Comm comm; /* a duplicate of MPI_COMM_WORLD that returns errors */
};

#endif
