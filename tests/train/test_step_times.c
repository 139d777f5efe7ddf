/*
 * Medians of training steps over two ranks. Ranks that are alternately early and late do not make a
 * step longer. A rank that is always late does. The parts add up, and come from the busiest rank.
 */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "experiments/train/trainer.h"
#include "tests/lib/spawn.h"

enum { STEPS = 7 };

static _Thread_local struct world *world;

/* Medians of steps with these times of computing and of waiting for data. After the third step the
 * rank pauses, outside any step. COMM_MS: averaging. CPU_MS: processor time of computing. */
#define COMM_MS(rank) (15 + (rank))
#define CPU_MS(rank) (5 + (rank))

static void medians_of(const int *all_ms, int compute_ms, int data_ms, int pause_ms,
                       double median_ms[STEP_TIME_KINDS])
{
    const int own_ms = compute_ms + data_ms;
    int64_t ended_ms = 0;
    struct step_times times;
    rank_assert_ok(step_times_init(&times, STEPS));
    for (int i = 0; i < STEPS; i++) {
        ended_ms += all_ms[i];
        step_times_add(
            &times, ended_ms * NS_PER_MS,
            (int64_t[STEP_TIME_KINDS]){[STEP_TIME_ALL] = all_ms[i] * NS_PER_MS,
                                       [STEP_TIME_COMPUTE] = compute_ms * NS_PER_MS,
                                       [STEP_TIME_DATA] = data_ms * NS_PER_MS,
                                       [STEP_TIME_COMM] = COMM_MS(world->rank) * NS_PER_MS,
                                       [STEP_TIME_CPU] = CPU_MS(world->rank) * NS_PER_MS,
                                       [STEP_TIME_EXPOSED] = (all_ms[i] - own_ms) * NS_PER_MS});
        ended_ms += i == 2 ? pause_ms : 0;
    }
    rank_assert_ok(step_times_medians(&times, world, NULL, (size_t)world->rank, median_ms));
    rank_assert_eq(times.count, 0u);
    step_times_fini(&times);
}

/* Among equally busy ranks, the parts come from the last one. */
static void expect(const double median_ms[STEP_TIME_KINDS], double all_ms, double compute_ms,
                   double data_ms, int busiest)
{
    rank_assert_near(median_ms[STEP_TIME_ALL], all_ms, 1e-9, "%g ms", median_ms[STEP_TIME_ALL]);
    rank_assert_near(median_ms[STEP_TIME_COMPUTE], compute_ms, 1e-9);
    rank_assert_near(median_ms[STEP_TIME_EXPOSED], all_ms - compute_ms - data_ms, 1e-9);
    rank_assert_near(median_ms[STEP_TIME_DATA], data_ms, 1e-9);
    rank_assert_near(median_ms[STEP_TIME_COMM], COMM_MS(busiest), 1e-9);
    rank_assert_near(median_ms[STEP_TIME_CPU], CPU_MS(busiest), 1e-9);
}

static void two_ranks(struct world *of, void *context)
{
    static const int in_turn[2][STEPS] = {{60, 30, 60, 30, 60, 30, 60},
                                          {45, 60, 30, 60, 30, 60, 30}};
    static const int late[2][STEPS] = {{40, 40, 40, 40, 40, 40, 40}, {50, 40, 40, 40, 90, 40, 40}};
    static const int waits[STEPS] = {60, 30, 60, 130, 60, 30, 60}; /* 130: rank 1 pauses */
    static const int busy[2][STEPS] = {{40, 40, 40, 40, 40, 40, 40}, {39, 40, 40, 40, 40, 40, 40}};
    double median_ms[STEP_TIME_KINDS];
    (void)context;
    world = of;
    medians_of(in_turn[world->rank], 30, 0, 0, median_ms); /* ends: 60, 105, 150, 195, ... */
    expect(median_ms, 45, 30, 0, 1);
    medians_of(late[world->rank], 30, 0, 0, median_ms);
    expect(median_ms, 40, 30, 0, 1);
    medians_of(in_turn[0], 30, 0, 0, median_ms); /* equal on both ranks */
    expect(median_ms, 60, 30, 0, 1);
    if (world->rank == 0)
        medians_of(waits, 30, 0, 0, median_ms);
    else
        medians_of(in_turn[1], 30, 0, 100, median_ms);
    expect(median_ms, 45, 30, 0, 1);
    /* Rank 0 waits for the busy rank 1, and ends last. Its wait does not count as communication. */
    medians_of(busy[world->rank], world->rank == 0 ? 10 : 35, 0, 0, median_ms);
    expect(median_ms, 40, 35, 0, 1);
    /* A rank is busy while it computes or waits for data: rank 0 for 35 ms, rank 1 for 22 ms. */
    medians_of(busy[world->rank], world->rank == 0 ? 5 : 20, world->rank == 0 ? 30 : 2, 0,
               median_ms);
    expect(median_ms, 40, 5, 30, 0);
}

Test(step_times, two_ranks)
{
    spawn(2, two_ranks, NULL);
}
