/*
 * Internal to the MPI transport: everything that an endpoint has in flight, as the arrays that MPI
 * tests at once.
 */
#ifndef PSRING_COMMON_NET_TRANSPORT_MPI_REQUESTS_H
#define PSRING_COMMON_NET_TRANSPORT_MPI_REQUESTS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/transport/transport.h"

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

#endif
