/*
 * vcluster_link_rate BYTES [A B]: ranks A and B (default: 0 and 1) send BYTES to each other at the
 * same time. A prints the bits per second of each direction. tests/sweep/test_vcluster.sh compares
 * the rate with the limits of the links.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/status.h"

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int bytes = argc > 1 ? atoi(argv[1]) : 0;
    const int a = argc == 4 ? atoi(argv[2]) : 0, b = argc == 4 ? atoi(argv[3]) : 1;
    CHECK(bytes > 0 && a != b && a >= 0 && a < size && b >= 0 && b < size);
    const int other = rank == a ? b : rank == b ? a : MPI_PROC_NULL;
    char *sent = calloc(1, (size_t)bytes), *received = calloc(1, (size_t)bytes);
    CHECK(sent && received);

    /* The first exchange opens the connections and uses up the burst that the token buckets saved.
     * The clock is read before any rank may send, so a delayed rank can only measure too low a
     * rate. */
    double seconds = 0;
    for (int round = 0; round < 2; round++) {
        const double start = MPI_Wtime();
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Sendrecv(sent, bytes, MPI_CHAR, other, 0, received, bytes, MPI_CHAR, other, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        seconds = MPI_Wtime() - start;
    }
    if (rank == a)
        printf("%.0f\n", 8.0 * bytes / seconds);
    free(sent);
    free(received);
    MPI_Finalize();
    return 0;
}
