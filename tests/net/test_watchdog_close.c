/* The end of a run: rank 0 waits for all ranks, but not for ever. */
#include <criterion/criterion.h>

#include "common/net/watchdog.h"
#include "tests/lib/ranks.h"

static void end(int code)
{
    _exit(code);
}

/* Rank 1 lives, waits for no rank, and does not reach the end. */
static int one_stays(struct world *world)
{
    struct watchdog *watchdog;
    const struct watchdog_options options = {.rank = world->rank,
                                             .startup_timeout_ms = 30000,
                                             .meet_timeout_ms = 30000,
                                             .timeout_ms = 5000,
                                             .end = end};
    if (watchdog_new(&watchdog, &options) != STATUS_OK ||
        watchdog_join(watchdog, world) != STATUS_OK)
        return 5;
    activity_start_up_done(world->activity);
    if (world->rank == 1)
        clock_sleep_until_ns(clock_now_ns() + 600 * NS_PER_S);
    world->activity = NULL;
    watchdog_close(&watchdog);
    return 0;
}

Test(watchdog_close, rank_0_names_who_does_not_come)
{
    struct rank ranks[3] = {0};
    char address[64];
    for (int i = 0; i < 3; i++)
        ranks[i] = (struct rank){.number = i, .world_size = 3, .run = one_stays};
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", ranks_free_port());
    ranks_start(ranks, 3, address);
    ranks_wait(ranks, 3);
    cr_assert(ranks[0].code == 1 && strstr(ranks[0].said, "rank 1 on "), "%s", ranks[0].said);
    cr_assert(ranks[1].code == 1 && ranks[2].code == 0);
}
