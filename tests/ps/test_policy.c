/* When a server applies a push and when it answers it: the table of ps/async.h, row by row. */
#include <criterion/criterion.h>

#include "ps/async.h"

enum { WORKERS = 4 };

static struct async_rules rules;

static void choose(enum consistency_kind kind, uint64_t staleness, int backups)
{
    const struct consistency consistency = {
        .kind = kind, .staleness = staleness, .backup_workers = backups};
    rules = async_rules_of(&consistency, WORKERS);
}

/* Worker 0 has just pushed step clocks[0] - 1. */
static void expect(bool applied, bool answered, const uint64_t clocks[WORKERS])
{
    uint64_t step = clocks[0] - 1;
    cr_assert_eq(async_may_apply(&rules, clocks, WORKERS, step), applied);
    cr_assert_eq(async_may_answer(&rules, clocks, WORKERS, step), answered);
}

#define CLOCKS(...)                                                                                \
    (const uint64_t[WORKERS])                                                                      \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

Test(policy, bsp_waits_for_all)
{
    choose(CONSISTENCY_BSP, 0, 0);
    expect(false, false, CLOCKS(6, 5, 5, 5));
    expect(false, false, CLOCKS(6, 6, 5, 6));
    expect(true, true, CLOCKS(6, 6, 6, 6));
}

Test(policy, backups_are_not_waited_for)
{
    choose(CONSISTENCY_BSP, 0, 1);
    expect(false, false, CLOCKS(6, 6, 5, 5));
    expect(true, true, CLOCKS(6, 6, 5, 6));
    expect(true, true, CLOCKS(6, 6, 0, 6)); /* however late worker 2 is */
    choose(CONSISTENCY_BSP, 0, 3);
    expect(true, true, CLOCKS(6, 5, 5, 5));
}

Test(policy, ssp_waits_for_who_is_more_than_its_bound_behind)
{
    choose(CONSISTENCY_SSP, 3, 0);
    expect(true, true, CLOCKS(6, 3, 6, 9));
    expect(true, false, CLOCKS(6, 2, 6, 9));
    expect(true, true, CLOCKS(3, 0, 0, 0)); /* a clock is never below 0 */
    expect(true, false, CLOCKS(4, 0, 3, 3));
    choose(CONSISTENCY_SSP, 0, 0);
    expect(true, false, CLOCKS(6, 5, 6, 6));
    expect(true, true, CLOCKS(6, 6, 6, 6));
}

Test(policy, async_waits_for_nobody)
{
    choose(CONSISTENCY_ASYNC, 0, 0);
    expect(true, true, CLOCKS(1000, 0, 0, 0));
}

Test(policy, who_has_left_holds_nobody_back)
{
    choose(CONSISTENCY_SSP, 1, 0);
    expect(true, false, CLOCKS(6, 0, 6, 6));
    expect(true, true, CLOCKS(6, ASYNC_LEFT, 6, 6));
}

Test(policy, who_is_late_leaves_steps_out)
{
    struct consistency ssp = {.kind = CONSISTENCY_SSP, .staleness = 3, .late_steps = 3};
    cr_assert_eq(async_next_step(&ssp, 10, 10, 100), 10);
    cr_assert_eq(async_next_step(&ssp, 10, 12, 100), 10); /* not late enough */
    cr_assert_eq(async_next_step(&ssp, 10, 13, 100), 13);
    cr_assert_eq(async_next_step(&ssp, 99, 100, 100), 100); /* another worker has reached the end */
    ssp.late_steps = 0;
    cr_assert_eq(async_next_step(&ssp, 10, 50, 100), 10);
    cr_assert_eq(async_next_step(&ssp, 99, 100, 100), 99);
    /* Finished steps are not repeated. */
    const struct consistency backups = {.backup_workers = 1};
    cr_assert_eq(async_next_step(&backups, 10, 11, 100), 11);
    cr_assert_eq(async_next_step(&backups, 10, 10, 100), 10);
}
