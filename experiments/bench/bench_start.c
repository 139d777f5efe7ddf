#include "experiments/bench/bench_start.h"

#include <sys/prctl.h>

#include "common/base/clock.h"
#include "common/base/rng.h"

enum {
    AHEAD_NS = 500000,      /* at first */
    AHEAD_NS_MAX = 2000000, /* however late somebody came: that one had no core */
    NEAR_NS = 150000,       /* a sleep may take so much longer than asked for */
};

enum status bench_start_init(struct bench_start *start, struct world *world,
                             const struct group *group)
{
    enum status status;
    double latest_ns = (double)clock_now_ns();
    double apart = world->machine != 0 || !world_crowded(world, 1);
    *start = (struct bench_start){.world = world, .group = group, .ahead_ns = AHEAD_NS};
    TRY(world_max(world, group, &latest_ns, 1));
    /* On one clock that moment has passed. */
    if ((double)clock_now_ns() < latest_ns)
        apart = 1;
    TRY(world_max(world, group, &apart, 1));
    start->common_clock = apart == 0;
out:
    return status;
}

enum status bench_start_agree(struct bench_start *start, int64_t *instant_ns)
{
    enum status status;
    *instant_ns = 0;
    if (!start->common_clock)
        return world_barrier(start->world, start->group);
    double values[] = {(double)(clock_now_ns() + start->ahead_ns), (double)start->late_ns};
    TRY(world_max(start->world, start->group, values, 2));
    *instant_ns = (int64_t)values[0];
    if (values[1] > 0 && start->ahead_ns < AHEAD_NS_MAX) {
        start->ahead_ns += 2 * (int64_t)values[1];
        if (start->ahead_ns > AHEAD_NS_MAX)
            start->ahead_ns = AHEAD_NS_MAX;
    }
    int64_t now_ns = clock_now_ns();
    start->late_ns = now_ns > *instant_ns ? now_ns - *instant_ns : 0;
    if (now_ns < *instant_ns - NEAR_NS)
        clock_sleep_until_ns(*instant_ns - NEAR_NS);
out:
    return status;
}

/* Linux lets a sleep end up to 50 us late, to save wake-ups. Here alone that is too much. */
static void sleep_sharply(int64_t deadline_ns)
{
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    clock_sleep_until_ns(deadline_ns);
    prctl(PR_SET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL); /* the default */
}

int64_t bench_start_skew_ns(double most_ms, size_t rank, uint64_t round)
{
    struct rng_block block = rng_block(rng_key(0, RNG_SKEW, rank), round, 0);
    return (int64_t)(most_ms * (double)NS_PER_MS * (double)rng_uniform(block.word[0]));
}

void bench_start_delay(int64_t from_ns, int64_t delay_ns)
{
    sleep_sharply(from_ns + delay_ns);
}

int64_t bench_start_wait(struct bench_start *start, int64_t instant_ns)
{
    if (!start->common_clock)
        return clock_now_ns();
    sleep_sharply(instant_ns); /* others need this core, perhaps to come here */
    while (clock_now_ns() < instant_ns) {
    }
    return clock_now_ns();
}
