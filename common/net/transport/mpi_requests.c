#include "common/net/transport/mpi_impl.h"

#include <stdlib.h>

enum { SIZE_FIRST = 64, CANCEL_TESTS = 100 };

/* The array with room for `count`; as it was, and *good false, if there is no memory. */
static void *grown(void *array, int count, size_t element_bytes, bool *good)
{
    void *resized = realloc(array, (size_t)count * element_bytes);
    *good &= resized != NULL;
    return resized ? resized : array;
}

enum status requests_reserve(struct requests *requests, int more)
{
    if (requests->active + more <= requests->size)
        return STATUS_OK;
    int size = requests->size ? 2 * requests->size : SIZE_FIRST;
    bool good = true;
    requests->requests = grown(requests->requests, size, sizeof *requests->requests, &good);
    requests->transfers = grown(requests->transfers, size, sizeof *requests->transfers, &good);
    requests->indices = grown(requests->indices, size, sizeof *requests->indices, &good);
    requests->statuses = grown(requests->statuses, size, sizeof *requests->statuses, &good);
    if (!good) {
        log_error("MPI transport: no memory for %d messages", size);
        return STATUS_NO_MEMORY;
    }
    requests->size = size;
    return STATUS_OK;
}

void requests_add(struct requests *requests, MPI_Request request, struct transfer *transfer)
{
    requests->requests[requests->active] = request;
    requests->transfers[requests->active] = transfer;
    requests->active++;
}

void requests_compact(struct requests *requests)
{
    int kept = 0;
    for (int i = 0; i < requests->active; i++) {
        if (requests->requests[i] == MPI_REQUEST_NULL)
            continue;
        requests->requests[kept] = requests->requests[i];
        requests->transfers[kept] = requests->transfers[i];
        kept++;
    }
    requests->active = kept;
}

bool requests_cancel(struct requests *requests, const struct transfer *transfer)
{
    bool written = false;
    for (int i = 0; i < requests->active; i++) {
        if (requests->transfers[i] != transfer)
            continue;
        int done = 0;
        MPI_Cancel(&requests->requests[i]);
        for (int tests = 0; tests < CANCEL_TESTS && !done; tests++)
            MPI_Test(&requests->requests[i], &done, MPI_STATUS_IGNORE);
        written |= !done;
        requests->requests[i] = MPI_REQUEST_NULL;
    }
    requests_compact(requests);
    return !written;
}

void requests_fini(struct requests *requests)
{
    free(requests->requests);
    free(requests->transfers);
    free(requests->indices);
    free(requests->statuses);
    *requests = (struct requests){0};
}
