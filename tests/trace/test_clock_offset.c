/* Clock offsets from synthetic passages through barriers. Each is found within its error. A machine
 * has one clock, unless the passages show several. Clocks drift. The last test measures between
 * ranks whose clocks start at different times. */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "experiments/trace/timeline.h"
#include "tests/lib/spawn.h"

enum { RANKS = 4, ROUNDS = 40 };

/* Barriers every `every_ns` of true time. Rank `i % RANKS` enters barrier i last, and each rank
 * leaves 20 to 220 us later. Clocks are `skew_ns` ahead of the true time; that of rank r also
 * drifts by r * `ppm` millionths. */
static void pass_drifting(struct clock_passage *all, const int64_t *skew_ns, int64_t every_ns,
                          int64_t ppm)
{
    struct rng_key key = rng_key(1, RNG_TEST, 0);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t last_ns = every_ns * (int64_t)(round + 1);
        for (int rank = 0; rank < RANKS; rank++) {
            struct clock_passage *passage = &all[rank * ROUNDS + round];
            uint32_t random = rng_block(key, (uint64_t)(round * RANKS + rank), 0).word[0];
            bool late = round % RANKS == rank;
            int64_t ahead_ns = skew_ns[rank] + last_ns * rank * ppm / 1000000;
            passage->entered_ns = last_ns - (late ? 0 : 300000) + ahead_ns;
            passage->left_ns = last_ns + 20000 + random % 200000 + ahead_ns;
        }
    }
}

static void pass(struct clock_passage *all, const int64_t *skew_ns)
{
    pass_drifting(all, skew_ns, 1000000, 0);
}

static void expect_found(const struct clock_offset *found, int64_t skew_ns)
{
    int64_t off = found->offset_ns + skew_ns;
    cr_expect(off <= found->error_ns && -off <= found->error_ns, "%lld off, error %lld",
              (long long)off, (long long)found->error_ns);
    cr_expect_lt(found->error_ns, 60000); /* about half the sum of the two shortest latencies */
}

Test(clock_offset, is_found_within_its_error)
{
    const int64_t skew_ns[RANKS] = {0, 1500000000, -7000000, 12345};
    const int machines[RANKS] = {0, 1, 2, 3};
    struct clock_passage all[RANKS * ROUNDS];
    pass(all, skew_ns);
    for (int rank = 0; rank < RANKS; rank++) {
        struct clock_offset found = clock_offset_of(all, machines, RANKS, ROUNDS, rank);
        if (rank > 0)
            expect_found(&found, skew_ns[rank]);
        else
            cr_expect(found.offset_ns == 0 && found.error_ns == 0);
        const struct clock_passage *own = &all[rank * ROUNDS];
        cr_expect(own[0].entered_ns < found.at_ns && found.at_ns < own[ROUNDS - 1].left_ns);
    }
}

Test(clock_offset, is_one_on_a_machine)
{
    const int64_t skew_ns[RANKS] = {0, 0, 500000000, 500000000};
    const int machines[RANKS] = {0, 0, 2, 2}, apart[RANKS] = {0, 1, 2, 3};
    struct clock_passage all[RANKS * ROUNDS];
    pass(all, skew_ns);
    struct clock_offset same = clock_offset_of(all, machines, RANKS, ROUNDS, 1);
    cr_expect(same.offset_ns == 0 && same.error_ns == 0, "rank 0's machine has rank 0's clock");
    struct clock_offset two = clock_offset_of(all, machines, RANKS, ROUNDS, 2);
    struct clock_offset three = clock_offset_of(all, machines, RANKS, ROUNDS, 3);
    cr_expect_eq(two.offset_ns, three.offset_ns);
    expect_found(&two, skew_ns[2]);
    for (int rank = 2; rank < RANKS; rank++) {
        struct clock_offset alone = clock_offset_of(all, apart, RANKS, ROUNDS, rank);
        /* each may have drifted during its measurement, one for 200 us longer */
        cr_expect_leq(two.error_ns, alone.error_ns + 10);
    }
}

Test(clock_offset, believes_what_it_measures)
{
    const int64_t skew_ns[RANKS] = {0, 3000000, 0, 4000000};
    const int machines[RANKS] = {0, 0, 2,
                                 2}; /* wrong: ranks 1 and 3 are in another time namespace */
    struct clock_passage all[RANKS * ROUNDS];
    pass(all, skew_ns);
    for (int rank = 1; rank < RANKS; rank++) {
        struct clock_offset found = clock_offset_of(all, machines, RANKS, ROUNDS, rank);
        expect_found(&found, skew_ns[rank]);
    }
}

/* Many ranks have long rounds. The clocks then drift by more than the distance between the bounds
 * of one round. */
Test(clock_offset, clocks_may_drift_while_they_are_measured)
{
    const int64_t skew_ns[RANKS] = {0, 1500000, -7000000, 12345}, every_ns = 100000000, ppm = 30;
    const int machines[RANKS] = {0, 1, 2, 3};
    struct clock_passage all[RANKS * ROUNDS];
    pass_drifting(all, skew_ns, every_ns, ppm);
    for (int rank = 1; rank < RANKS; rank++) {
        struct clock_offset found = clock_offset_of(all, machines, RANKS, ROUNDS, rank);
        int64_t ahead_ns = skew_ns[rank] + (found.at_ns - skew_ns[rank]) * rank * ppm / 1000000;
        int64_t off = found.offset_ns + ahead_ns;
        cr_expect(off <= found.error_ns && -off <= found.error_ns, "rank %d: %lld off, error %lld",
                  rank, (long long)off, (long long)found.error_ns);
        cr_expect_lt(found.error_ns, every_ns * ROUNDS * 100 / 1000000);
    }
}

Test(clock_offset, drifts_linearly)
{
    const struct clock_offset before = {.at_ns = 1000000, .offset_ns = 500};
    const struct clock_offset after = {.at_ns = 3000000, .offset_ns = 900};
    cr_expect_eq(clock_offset_apply(&before, &after, 1000000), 1000500);
    cr_expect_eq(clock_offset_apply(&before, &after, 2000000), 2000700);
    cr_expect_eq(clock_offset_apply(&before, &after, 3000000), 3000900);
    cr_expect_eq(clock_offset_apply(&before, &after, 4000000), 4001100);
    cr_expect_eq(clock_offset_apply(&before, &before, 2000000), 2000500);
}

/* -------- between ranks ----------------------------------------------------------------------- */

/* The linker replaces the real functions with these (tests/CMakeLists.txt): the clock of a rank is
 * ahead. */
static _Thread_local int64_t skew_ns;
int64_t __real_clock_now_ns(void);
int64_t __wrap_clock_now_ns(void);
int64_t __wrap_clock_now_ns(void)
{
    return __real_clock_now_ns() + skew_ns;
}
void __real_clock_sleep_until_ns(int64_t deadline_ns);
void __wrap_clock_sleep_until_ns(int64_t deadline_ns);
void __wrap_clock_sleep_until_ns(int64_t deadline_ns)
{
    __real_clock_sleep_until_ns(deadline_ns - skew_ns);
}

static void check_near(int64_t found, int64_t expected, int64_t error)
{
    rank_assert(found - expected <= error && expected - found <= error,
                "%lld, expected %lld +- %lld", (long long)found, (long long)expected,
                (long long)error);
}

static void measure(struct world *world, void *context)
{
    struct clock_offset before, after;
    (void)context;
    rank_assert_ok(clock_offset_measure(world, &before));
    check_near(before.offset_ns, 0, before.error_ns);
    rank_assert(before.error_ns == 0, "one machine, one clock");
    /* Pretend that each rank is on another machine with another clock. */
    int64_t first_ns = skew_ns = world->rank * INT64_C(1234567890);
    world->machine = world->rank;
    rank_assert_ok(clock_offset_measure(world, &before));
    check_near(before.offset_ns, -first_ns, before.error_ns);
    rank_assert(before.error_ns < INT64_C(1000000000)); /* also on a busy machine */
    int64_t drift_ns = world->rank * INT64_C(50000000);
    skew_ns += drift_ns;
    rank_assert_ok(clock_offset_measure(world, &after));
    check_near(after.offset_ns, -first_ns - drift_ns, after.error_ns);
    int64_t between = clock_offset_apply(&before, &after, (before.at_ns + after.at_ns) / 2);
    check_near(between - (before.at_ns + after.at_ns) / 2, -first_ns - drift_ns / 2,
               before.error_ns + after.error_ns);
    skew_ns = 0;
}

Test(clock_offset, is_measured_between_ranks)
{
    spawn(1, measure, NULL);
    spawn(4, measure, NULL);
}
