#include "models/lr.h"

#include <math.h>

#include "common/base/status.h"

const char *const lr_scale_names[] = {"auto", "linear", "sqrt", "none", NULL};
const char *const lr_shape_names[] = {"linear", "constant", "step", "cosine", NULL};

double lr_default(enum optimizer_kind kind, size_t images)
{
    CHECK(images > 0);
    double times = (double)images / LR_LINEAR_IMAGES;
    switch (kind) {
    case OPTIMIZER_SGD:
    case OPTIMIZER_LARS:
        return 0.14 * (times <= 1.0 ? times : sqrt(times));
    case OPTIMIZER_ADAGRAD:
        return 0.01;
    case OPTIMIZER_ADADELTA:
        return 1.0;
    case OPTIMIZER_ADAM:
        return 0.001;
    }
    return 0.0;
}

double lr_scale_factor(enum lr_scale scale, size_t workers)
{
    return scale == LR_SCALE_LINEAR ? (double)workers
           : scale == LR_SCALE_SQRT ? sqrt((double)workers)
                                    : 1.0;
}

uint64_t lr_warmup_default(uint64_t total_steps)
{
    return total_steps / 5 < LR_WARMUP_STEPS ? total_steps / 5 : LR_WARMUP_STEPS;
}

static double step_factor(uint64_t step, uint64_t total)
{
    int tenths = (3 * step >= total) + (3 * step >= 2 * total) + (9 * step >= 8 * total);
    return tenths == 0 ? 1.0 : tenths == 1 ? 0.1 : tenths == 2 ? 0.01 : 0.001;
}

double lr_at(const struct lr_schedule *s, uint64_t step)
{
    const double pi = 3.14159265358979323846;
    CHECK(s->total_steps > 0);
    if (step < s->warmup_steps) {
        uint64_t done = s->start > 0 ? step : step + 1;
        return s->start + (s->peak - s->start) * (double)done / (double)s->warmup_steps;
    }
    if (step >= s->total_steps)
        step = s->total_steps - 1;
    if (s->total_steps <= s->warmup_steps || s->shape == LR_CONSTANT)
        return s->peak;
    double falls = (double)(s->total_steps - s->warmup_steps);
    switch (s->shape) {
    case LR_STEP:
        return s->peak * step_factor(step, s->total_steps);
    case LR_COSINE:
        return s->peak * (1 + cos(pi * (double)(step - s->warmup_steps) / falls)) / 2;
    default:
        return s->peak * (double)(s->total_steps - step) / falls;
    }
}
