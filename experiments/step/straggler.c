#include "experiments/step/straggler.h"

#include "common/base/clock.h"

void straggler_init(struct straggler *straggler, double factor)
{
    *straggler = (struct straggler){.factor = factor};
}

void straggler_begin(struct straggler *straggler)
{
    if (straggler->factor > 1)
        *straggler = (struct straggler){.factor = straggler->factor, .since_ns = clock_now_ns()};
}

void straggler_delay(struct straggler *straggler, struct device *device, int64_t blocked_ns)
{
    if (straggler->factor <= 1)
        return;
    device_sync(device); /* whatever it fails with, the step finds out */
    int64_t now_ns = clock_now_ns();
    int64_t computed_ns = now_ns - straggler->since_ns - (blocked_ns - straggler->blocked_ns);
    int64_t until_ns = now_ns + (int64_t)((straggler->factor - 1) * (double)computed_ns);
    clock_sleep_until_ns(until_ns);
    straggler->since_ns = clock_now_ns();
    straggler->blocked_ns = blocked_ns;
}
