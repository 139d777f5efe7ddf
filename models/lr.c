#include "models/lr.h"

#include <math.h>

#include "common/base/check.h"

double lr_default(enum optimizer_kind kind, size_t images)
{
    CHECK(images > 0);
    if (kind == OPTIMIZER_ADADELTA)
        return 1.0;
    double times = (double)images / LR_LINEAR_IMAGES;
    return 0.14 * (times <= 1.0 ? times : sqrt(times));
}

struct lr_schedule lr_schedule_default(double peak, uint64_t total_steps)
{
    struct lr_schedule schedule = {peak, LR_WARMUP_STEPS, total_steps};
    if (total_steps > 0 && schedule.warmup_steps > total_steps / 5)
        schedule.warmup_steps = total_steps / 5;
    return schedule;
}

double lr_at(const struct lr_schedule *s, uint64_t step)
{
    if (step < s->warmup_steps)
        return s->peak * (double)(step + 1) / (double)s->warmup_steps;
    if (s->total_steps <= s->warmup_steps)
        return s->peak;
    if (step >= s->total_steps)
        step = s->total_steps - 1;
    return s->peak * (double)(s->total_steps - step) / (double)(s->total_steps - s->warmup_steps);
}
