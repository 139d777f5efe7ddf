/*
 * MPI_Allreduce as a backend, and the choice of its algorithm. A build without MPI does not define
 * PSRING_HAVE_MPI. The code after #else then defines the same names and reports that MPI is
 * missing.
 */
#include "ring/baselines/baselines.h"

const char *const library_algorithm_names[] = {
    [LIBRARY_DEFAULT] = "default",     [LIBRARY_RING] = "ring",
    [LIBRARY_SEGMENTED] = "segmented", [LIBRARY_RABENSEIFNER] = "rabenseifner",
    [LIBRARY_RABENSEIFNER + 1] = NULL,
};

#ifdef PSRING_HAVE_MPI

#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "common/comm/reduce.h"

/* -------- which algorithm --------------------------------------------------------------------- */

/* Parameters of Open MPI's component "tuned", which contains the algorithms. */
#define DYNAMIC_RULES "coll_tuned_use_dynamic_rules"
#define ALGORITHM "coll_tuned_allreduce_algorithm"

/* Indexed by Open MPI's number of the algorithm. */
static const char *const names_by_number[] = {
    "default", "basic-linear", "nonoverlapping", "recursive-doubling",
    "ring",    "segmented",    "rabenseifner",
};

void library_request(enum library_algorithm algorithm)
{
    static const char *const numbers[] = {
        [LIBRARY_RING] = "4", [LIBRARY_SEGMENTED] = "5", [LIBRARY_RABENSEIFNER] = "6"};
    if (algorithm == LIBRARY_DEFAULT)
        return;
    setenv("OMPI_MCA_" DYNAMIC_RULES, "1", 1);
    setenv("OMPI_MCA_" ALGORITHM, numbers[algorithm], 1);
    /* Without a segment size "segmented" does not cut at all. Sizes from 64 KB to 1 MB were tried:
     * the shortest was the fastest, by 8% (4 workers, 4.8 MB, links of 200 Mbit/s). */
    if (algorithm == LIBRARY_SEGMENTED)
        setenv("OMPI_MCA_" ALGORITHM "_segmentsize", "65536", 0);
}

/* Reads the parameter's value from the library. Returns false if no parameter has that name and
 * type. */
static bool read_parameter(const char *name, MPI_Datatype type, void *value)
{
    MPI_T_cvar_handle handle;
    MPI_Datatype found;
    MPI_T_enum words;
    int at, name_bytes = 0, verbosity, text_bytes = 0, bind, scope, count;
    if (MPI_T_cvar_get_index(name, &at) != MPI_SUCCESS ||
        MPI_T_cvar_get_info(at, NULL, &name_bytes, &verbosity, &found, &words, NULL, &text_bytes,
                            &bind, &scope) != MPI_SUCCESS)
        return false;
    if (found != type || bind != MPI_T_BIND_NO_OBJECT ||
        MPI_T_cvar_handle_alloc(at, NULL, &handle, &count) != MPI_SUCCESS)
        return false;
    bool good = count == 1 && MPI_T_cvar_read(handle, value) == MPI_SUCCESS;
    MPI_T_cvar_handle_free(&handle);
    return good;
}

const char *library_algorithm_used(void)
{
    enum { KNOWN = sizeof names_by_number / sizeof *names_by_number };
    bool dynamic = false;
    int provided, number = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return names_by_number[0];
    bool known = read_parameter(DYNAMIC_RULES, MPI_C_BOOL, &dynamic) &&
                 read_parameter(ALGORITHM, MPI_INT, &number);
    MPI_T_finalize();
    if (!known || !dynamic)
        return names_by_number[0];
    return number >= 0 && number < KNOWN ? names_by_number[number] : "other";
}

enum status library_check(enum library_algorithm algorithm)
{
    if (algorithm == LIBRARY_DEFAULT)
        return STATUS_OK; /* do not call MPI in a run that does not use it */
    const char *used = library_algorithm_used();
    if (strcmp(used, library_algorithm_names[algorithm]) == 0)
        return STATUS_OK;
    return FAIL(STATUS_UNSUPPORTED,
                "--mpi-algorithm %s: this MPI library uses %s instead; the option needs Open MPI "
                "with its component tuned",
                library_algorithm_names[algorithm], used);
}

bool library_is_cuda_aware(void)
{
#ifdef MPIX_CUDA_AWARE_SUPPORT /* 0 or 1, for the library of this build */
    return MPIX_Query_cuda_support() == 1;
#else
    return false;
#endif
}

/* -------- the backend ------------------------------------------------------------------------- */

static enum status library_open(void **self, const struct backend_env *site)
{
    if (!world_is_mpi(site->world))
        return FAIL(STATUS_UNSUPPORTED,
                    "--backend mpi: MPI was not started; start the ranks by mpirun or srun, or use "
                    "another backend");
    *self = without_const(site); /* the backend keeps only its site, and only reads it */
    return STATUS_OK;
}

static enum status library_allreduce(void *self, size_t bucket, void *values)
{
    const struct backend_env *site = self;
    float *data = values;
    size_t count = site->layout->counts[bucket];
    for (size_t done = 0; done < count; done += LIBRARY_PART_COUNT) {
        size_t left = count - done, part = left < LIBRARY_PART_COUNT ? left : LIBRARY_PART_COUNT;
        enum status status = world_allreduce_float(site->world, site->group, data + done, part);
        if (status != STATUS_OK)
            return status;
    }
    if (site->layout->scale != 1.0f)
        reduce_scale(data, count, site->layout->scale);
    return STATUS_OK;
}

const struct backend backend_mpi = {
    .name = "mpi",
    .summary = "MPI_Allreduce, the MPI library's own choice of algorithm",
    .takes_mpi_algorithm = true,
    .needs_mpi = true,
    .default_transport = TRANSPORT_MPI,
    .cost = &cost_not_known, /* MPI chooses by its own rules */
    .open = library_open,
    .allreduce = library_allreduce,
    .takes_device_memory = library_is_cuda_aware,
};

#else

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

#endif
