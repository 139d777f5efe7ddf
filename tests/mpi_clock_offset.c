/* Ranks whose clocks are set apart, and run at other rates, find out by how much; under mpirun. */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/net/world/clock_offset.h"

/* Stand in front of the real ones (see tests/CMakeLists.txt): this rank's clock is ahead. */
static int64_t skew_ns;
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

static void expect_near(int64_t found, int64_t expected, int64_t error)
{
    cr_expect(found - expected <= error && expected - found <= error, "%lld, expected %lld +- %lld",
              (long long)found, (long long)expected, (long long)error);
}

Test(mpi_clock_offset, is_found)
{
    struct world *world;
    struct clock_offset before, after;
    cr_assert_eq(world_open(&world, NULL, NULL, NULL), STATUS_OK);
    cr_assert_eq(clock_offset_measure(world, &before), STATUS_OK);
    expect_near(before.offset_ns, 0, before.error_ns);
    cr_expect_eq(before.error_ns, 0, "one machine, one clock");
    /* As if each were on a machine of its own, with a clock of its own. */
    int64_t first_ns = skew_ns = world->rank * INT64_C(1234567890);
    world->machine = world->rank;
    cr_assert_eq(clock_offset_measure(world, &before), STATUS_OK);
    expect_near(before.offset_ns, -first_ns, before.error_ns);
    cr_expect_lt(before.error_ns, INT64_C(1000000000)); /* however busy the machine is */
    int64_t drift_ns = world->rank * INT64_C(50000000);
    skew_ns += drift_ns;
    cr_assert_eq(clock_offset_measure(world, &after), STATUS_OK);
    expect_near(after.offset_ns, -first_ns - drift_ns, after.error_ns);
    int64_t between = clock_offset_apply(&before, &after, (before.at_ns + after.at_ns) / 2);
    expect_near(between - (before.at_ns + after.at_ns) / 2, -first_ns - drift_ns / 2,
                before.error_ns + after.error_ns);
    world_close(&world);
}
