/* Replaces common/base/clock.c in builds for simulation: SimGrid's clock, which advances only while
 * messages travel and ranks sleep. */
#include "common/base/clock.h"

#include <math.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>

int64_t clock_now_ns(void)
{
    return llround(simgrid_get_clock() * (double)NS_PER_S);
}

/* Computation takes no simulated time. */
int64_t clock_thread_ns(void)
{
    return 0;
}

void clock_sleep_until_ns(int64_t deadline_ns)
{
    double until_s = (double)deadline_ns / (double)NS_PER_S;
    if (until_s > simgrid_get_clock())
        sg_actor_sleep_until(until_s);
}
