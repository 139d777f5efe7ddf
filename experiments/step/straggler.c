#include "experiments/step/straggler.h"

#include "common/base/clock.h"

void straggler_init(struct straggler *straggler, double factor, double least_ms)
{
    *straggler =
        (struct straggler){.factor = factor, .least_ns = (int64_t)(least_ms * (double)NS_PER_MS)};
}

static bool is_none(const struct straggler *straggler)
{
    return straggler->factor <= 1 && straggler->least_ns == 0;
}

void straggler_begin(struct straggler *straggler)
{
    if (is_none(straggler))
        return;
    straggler->computed_ns = straggler->blocked_ns = 0;
    straggler->since_ns = clock_now_ns();
}

void straggler_delay(struct straggler *straggler, struct device *device, int64_t blocked_ns,
                     bool last)
{
    if (is_none(straggler))
        return;
    device_sync(device); /* whatever it fails with, the step finds out */
    int64_t now_ns = clock_now_ns();
    int64_t computed_ns = now_ns - straggler->since_ns - (blocked_ns - straggler->blocked_ns);
    straggler->computed_ns += computed_ns;
    double wait_ns = (straggler->factor - 1) * (double)computed_ns;
    if (last && straggler->computed_ns < straggler->least_ns)
        wait_ns += straggler->factor * (double)(straggler->least_ns - straggler->computed_ns);
    clock_sleep_until_ns(now_ns + (int64_t)wait_ns);
    straggler->since_ns = clock_now_ns();
    straggler->blocked_ns = blocked_ns;
}
