/* MPI_Allreduce counts in int and reports nothing until it is done, so a longer vector is divided
 * into parts. MPI itself is played here. */
#include "ring/baselines/baselines.h"

#include <criterion/criterion.h>
#include <limits.h>

static float *at[8];
static size_t counts[8], calls;

bool __wrap_world_is_mpi(const struct world *world);
bool __wrap_world_is_mpi(const struct world *world)
{
    (void)world;
    return true;
}

enum status __wrap_world_allreduce_float(struct world *world, const struct group *group,
                                         float *data, size_t count);
enum status __wrap_world_allreduce_float(struct world *world, const struct group *group,
                                         float *data, size_t count)
{
    (void)world;
    (void)group;
    cr_assert(calls < 8 && count <= INT_MAX);
    at[calls] = data;
    counts[calls++] = count;
    return STATUS_OK;
}

Test(library, a_long_vector_goes_in_parts)
{
    static const size_t layout_counts[] = {5, (size_t)LIBRARY_PART_COUNT / 2 * 5, 0};
    static float vector[1]; /* its elements are only counted */
    struct comm_layout layout = {.counts = layout_counts, .buckets = 3, .scale = 1};
    struct backend_env site = {.layout = &layout};
    void *self = NULL;
    /* For a part every rank sends less than twice its bytes. At 200 Mbit/s this takes less than the
     * default time-out of 30 s. */
    cr_assert_leq(2 * (size_t)LIBRARY_PART_COUNT * sizeof(float) / (200 * 1000 * 1000 / 8), 30);
    cr_assert_eq(backend_mpi.open(&self, &site), STATUS_OK);
    cr_assert_eq(backend_mpi.allreduce(self, 0, vector), STATUS_OK);
    cr_assert(calls == 1 && counts[0] == 5);
    cr_assert_eq(backend_mpi.allreduce(self, 1, vector), STATUS_OK);
    cr_assert_eq(calls, 4); /* a vector of 2.5 parts */
    size_t done = 0;
    for (size_t i = 1; i < calls; i++) {
        cr_assert_eq((uintptr_t)at[i], (uintptr_t)vector + done * sizeof(float));
        done += counts[i];
    }
    cr_assert_eq(done, layout_counts[1]);
    cr_assert_eq(backend_mpi.allreduce(self, 2, vector), STATUS_OK);
    cr_assert_eq(calls, 4);
}
