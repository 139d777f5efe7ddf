/*
 * Internal to the MPI transport: everything that an endpoint has in flight, as the arrays that MPI
 * tests at once.
 */
#ifndef PSRING_COMMON_NET_TRANSPORT_MPI_IMPL_H
#define PSRING_COMMON_NET_TRANSPORT_MPI_IMPL_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/transport/transport.h"
#include "common/net/transport/transport_impl.h"
#include "common/net/world_impl.h"

/* Two MPI requests that complete together: a send, or a slot's receive. */
struct transfer {
    int pending;
    int64_t received_bytes;      /* header and payload */
    struct transport_slot *slot; /* NULL: a send */
};

/* Parallel arrays of `active` entries, room for `size`, in order of starting. */
struct requests {
    MPI_Request *requests;
    struct transfer **transfers;
    int *indices; /* what MPI_Testsome fills, with statuses */
    MPI_Status *statuses;
    int active, size;
};

/* Makes room for `more` of them; allocates only while the number in flight still grows. */
enum status requests_reserve(struct requests *requests, int more);

/* Adds one for which there is room. */
void requests_add(struct requests *requests, MPI_Request request, struct transfer *transfer);

/* Takes out those that have completed (now MPI_REQUEST_NULL), keeping the order. */
void requests_compact(struct requests *requests);

/* Takes out those of `transfer`, a receive. False if MPI may yet write to its memory: it cannot
 * cancel a receive whose message has begun to arrive. */
bool requests_cancel(struct requests *requests, const struct transfer *transfer);

void requests_fini(struct requests *requests);

/*
 * What the files of the MPI transport share: mpi.c moves messages, opens and closes, and
 * mpi_requests.c keeps what is in flight.
 */

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

#endif
