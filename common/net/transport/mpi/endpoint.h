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
#include "common/net/world_impl.h"

struct send {
    struct transfer transfer;
    uint8_t header[MESSAGE_HEADER_BYTES];
    void *copy; /* embedded: of the payload; `size` bytes */
    size_t size;
    struct send *next; /* in flight to this peer, oldest first; or in the pool of free ones */
};

/* A message without a slot: header and payload in one. */
struct mpi_told {
    MPI_Request request;
    struct mpi_told *next;
    uint8_t bytes[MESSAGE_HEADER_BYTES + TRANSPORT_WORDS_BYTES];
};

struct mpi_peer {
    struct send *first, **last; /* in flight, oldest first */
    uint64_t completed;
};

/* One communicator for both endpoints of a process; freed with the last. Main thread only. */
struct mpi_shared {
    MPI_Comm comm;
    int users;
    bool abandoned; /* after an error messages are under way: the communicator stays */
};

struct mpi_endpoint {
    struct transport base;
    struct mpi_shared *shared;
    struct mpi_peer *peers; /* by node */
    struct send *pool;
    struct mpi_told *told;    /* and not known to have left */
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

/* Frees the messages without a slot that have left. True if that was all. */
bool transport_mpi_free_told(struct mpi_endpoint *endpoint);

/* open.c: the operation close. */
void transport_mpi_close(struct transport *transport);

#endif
