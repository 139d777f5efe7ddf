/*
 * What the files of the MPI transport share: mpi.c moves messages, requests.c keeps what is in
 * flight, open.c opens and closes.
 */
#ifndef PSRING_COMMON_NET_TRANSPORT_MPI_ENDPOINT_H
#define PSRING_COMMON_NET_TRANSPORT_MPI_ENDPOINT_H

#include <mpi.h>
#include <stdint.h>

#include "common/net/transport/mpi/requests.h"
#include "common/net/transport/transport_impl.h"
#include "common/net/world/world_impl.h"

struct send {
    struct transfer transfer;
    uint8_t header[MESSAGE_HEADER_BYTES];
    struct send *next; /* in flight to this peer, oldest first; or in the pool of free ones */
};

struct mpi_peer {
    struct send *first, **last; /* in flight, oldest first */
    uint64_t completed;
};

/* One communicator for both endpoints of a process; freed with the last. Main thread only. */
struct mpi_shared {
    MPI_Comm comm;
    int users;
};

struct mpi_endpoint {
    struct transport base;
    struct mpi_shared *shared;
    struct mpi_peer *peers; /* by node */
    struct send *pool;
    struct requests requests; /* all that is in flight */
    struct backoff backoff;
    bool crowded; /* world_crowded: a worker and a server in one process are two threads */
};

static inline struct mpi_endpoint *endpoint_of(struct transport *transport)
{
    return (struct mpi_endpoint *)transport;
}

/* mpi.c: all but opening. */
extern const struct transport_ops transport_mpi_ops;

/* open.c: the operation close. */
void transport_mpi_close(struct transport *transport);

#endif
