/*
 * Medians of training steps over two ranks, under mpirun: ranks that end early and late in turn do
 * not make a step longer than it is, a rank that is always late does; parts add up, and are those
 * of the busiest rank, whichever ends last.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "common/base/clock.h"
#include "experiments/step/step_times.h"

enum { STEPS = 7 };

static struct world *world;

/* As of steps that compute so long, with data that come at once, and a pause of the rank's own,
 * which is no step's, after the third. */
static void medians_of(const int *all_ms, int compute_ms, int pause_ms,
                       double median_ms[STEP_TIME_KINDS])
{
    int64_t ended_ms = 0;
    struct step_times times;
    cr_assert_eq(step_times_init(&times, STEPS), STATUS_OK);
    for (int i = 0; i < STEPS; i++) {
        ended_ms += all_ms[i];
        step_times_add(
            &times, ended_ms * NS_PER_MS,
            (int64_t[STEP_TIME_KINDS]){[STEP_TIME_ALL] = all_ms[i] * NS_PER_MS,
                                       [STEP_TIME_COMPUTE] = compute_ms * NS_PER_MS,
                                       [STEP_TIME_COMM] = 15 * NS_PER_MS,
                                       [STEP_TIME_EXPOSED] = (all_ms[i] - compute_ms) * NS_PER_MS});
        ended_ms += i == 2 ? pause_ms : 0;
    }
    cr_assert_eq(step_times_medians(&times, world, NULL, (size_t)world->rank, median_ms),
                 STATUS_OK);
    cr_assert_eq(times.count, 0u);
    step_times_fini(&times);
}

static void expect(const double median_ms[STEP_TIME_KINDS], double all_ms, double compute_ms)
{
    cr_assert_float_eq(median_ms[STEP_TIME_ALL], all_ms, 1e-9, "%g ms", median_ms[STEP_TIME_ALL]);
    cr_assert_float_eq(median_ms[STEP_TIME_COMPUTE], compute_ms, 1e-9);
    cr_assert_float_eq(median_ms[STEP_TIME_EXPOSED], all_ms - compute_ms, 1e-9);
    cr_assert_float_eq(median_ms[STEP_TIME_DATA], 0, 1e-9);
}

Test(mpi_step_times, two_ranks)
{
    static const int in_turn[2][STEPS] = {{60, 30, 60, 30, 60, 30, 60},
                                          {45, 60, 30, 60, 30, 60, 30}};
    static const int late[2][STEPS] = {{40, 40, 40, 40, 40, 40, 40}, {50, 40, 40, 40, 90, 40, 40}};
    static const int waits[STEPS] = {60, 30, 60, 130, 60, 30, 60}; /* for the other one's pause */
    static const int busy[2][STEPS] = {{40, 40, 40, 40, 40, 40, 40}, {39, 40, 40, 40, 40, 40, 40}};
    double median_ms[STEP_TIME_KINDS];
    cr_assert_eq(world_open(&world, NULL, NULL, NULL), STATUS_OK);
    cr_assert_eq(world->size, 2);
    medians_of(in_turn[world->rank], 30, 0, median_ms); /* ends: 60, 105, 150, 195, ... */
    expect(median_ms, 45, 30);
    medians_of(late[world->rank], 30, 0, median_ms);
    expect(median_ms, 40, 30);
    medians_of(in_turn[0], 30, 0, median_ms); /* both alike */
    expect(median_ms, 60, 30);
    if (world->rank == 0)
        medians_of(waits, 30, 0, median_ms);
    else
        medians_of(in_turn[1], 30, 100, median_ms);
    expect(median_ms, 45, 30);
    /* Rank 0 waits for a busy one, and ends last: what it waits is no communication. */
    medians_of(busy[world->rank], world->rank == 0 ? 10 : 35, 0, median_ms);
    expect(median_ms, 40, 35);
    world_close(&world);
}
