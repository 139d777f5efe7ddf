/* In place of library.c in builds without MPI. */
#include "ring/vendor/library.h"

bool library_is_cuda_aware(void)
{
    return false;
}

void library_request(enum library_algorithm algorithm)
{
    (void)algorithm;
}

const char *library_algorithm_used(void)
{
    return library_algorithm_names[LIBRARY_DEFAULT];
}

enum status library_check(enum library_algorithm algorithm)
{
    (void)algorithm;
    return STATUS_OK;
}

const struct backend backend_mpi = {
    .name = "mpi",
    .summary = "MPI_Allreduce, the MPI library's own choice of algorithm",
    .unavailable = "this build has no MPI; configure again without -DPSRING_MPI=OFF, or use "
                   "--backend ring",
    .takes_mpi_algorithm = true,
    .needs_mpi = true,
    .cost = &cost_not_known,
};
