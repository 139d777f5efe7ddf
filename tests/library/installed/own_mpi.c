/* A program that has started MPI itself lends communicators to libpsring, one after the other. */
#include <mpi.h>
#include <psring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "own_mpi: %s: %s\n", what, psring_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void sum_in(MPI_Comm comm, const char *transport)
{
    const struct psring_options options = {.mpi_comm = &comm, .transport = transport};
    struct psring *world;
    struct psring_handle *handle;
    int rank, size;
    double values[1000];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    must(psring_init(&world, &options) == PSRING_OK, "init");
    must(psring_rank(world) == rank && psring_size(world) == size, "rank and size");
    for (int i = 0; i < 1000; i++)
        values[i] = rank + i;
    must(psring_allreduce_start(world, values, 1000, PSRING_FLOAT64, PSRING_AVERAGE, &handle) ==
             PSRING_OK,
         "start");
    must(psring_wait(&handle) == PSRING_OK, "wait");
    for (int i = 0; i < 1000; i++)
        must(values[i] == i + (size - 1) / 2.0, "the average");
    must(psring_finalize(&world) == PSRING_OK, "finalize");
}

/* The library starts MPI itself, which is possible only once. */
static int without_own(void)
{
    struct psring *world;
    must(psring_init(&world, NULL) == PSRING_OK, "init");
    int rank = psring_rank(world);
    must(psring_finalize(&world) == PSRING_OK, "finalize");
    if (psring_init(&world, NULL) != PSRING_ERROR_UNSUPPORTED)
        return EXIT_FAILURE;
    if (rank == 0)
        printf("%s\n", psring_error());
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "without") == 0)
        return without_own();
    int rank, one = 1, sum = 0, size, provided;
    MPI_Comm half;
    MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    sum_in(MPI_COMM_WORLD, "tcp");
    sum_in(half, "mpi");
    sum_in(MPI_COMM_WORLD, "mpi");
    MPI_Comm_free(&half);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks, and MPI still works\n", sum);
    MPI_Finalize();
    return sum == size ? EXIT_SUCCESS : EXIT_FAILURE;
}
