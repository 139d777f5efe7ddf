#include "common/net/activity.h"

#include <inttypes.h>
#include <stdio.h>

#define STORE(member, value) atomic_store_explicit(&(member), (value), memory_order_relaxed)
#define LOAD(member) atomic_load_explicit(&(member), memory_order_relaxed)

void activity_init(struct activity *activity)
{
    *activity = (struct activity){0};
    for (int thread = 0; thread < ACTIVITY_THREADS; thread++)
        activity_set(activity, thread, ACTIVITY_START, 0, 0);
}

void activity_set(struct activity *activity, enum activity_thread thread, enum activity_kind kind,
                  uint64_t step, uint32_t bucket)
{
    if (!activity)
        return;
    struct activity_state *state = &activity->threads[thread];
    STORE(state->kind, kind);
    STORE(state->step, step);
    STORE(state->bucket, bucket);
    activity_go_on(activity, thread);
}

void activity_wait(struct activity *activity, enum activity_thread thread, int first, int last,
                   uint64_t offset)
{
    if (!activity)
        return;
    struct activity_state *state = &activity->threads[thread];
    STORE(state->offset, offset);
    STORE(state->last, last);
    STORE(state->first, first);
    activity_moved(activity, thread);
}

void activity_go_on(struct activity *activity, enum activity_thread thread)
{
    if (!activity)
        return;
    STORE(activity->threads[thread].first, ACTIVITY_NOBODY);
    activity_moved(activity, thread);
}

void activity_start_up_done(struct activity *activity)
{
    if (activity)
        STORE(activity->started, true);
}

void activity_fail(struct activity *activity)
{
    if (activity)
        atomic_store(&activity->failed, 1);
}

uint64_t activity_step(const struct activity *activity)
{
    return activity ? LOAD(activity->threads[ACTIVITY_MAIN].step) : 0;
}

void activity_view(const struct activity *activity, enum activity_thread thread,
                   struct activity_view *view)
{
    const struct activity_state *state = &activity->threads[thread];
    *view = (struct activity_view){.moves = LOAD(state->moves),
                                   .step = LOAD(state->step),
                                   .offset = LOAD(state->offset),
                                   .kind = LOAD(state->kind),
                                   .bucket = LOAD(state->bucket),
                                   .first = LOAD(state->first),
                                   .last = LOAD(state->last)};
}

const char *activity_describe(const struct activity_view *view, char *text, size_t size)
{
    static const char *const words[ACTIVITY_KINDS] = {
        [ACTIVITY_START] = "starting",
        [ACTIVITY_MEET] = "meeting the other ranks",
        [ACTIVITY_SET_UP] = "opening its files, device and model",
        [ACTIVITY_CONNECT] = "connecting to the other ranks",
        [ACTIVITY_COLLECTIVE] = "exchanging settings or results with all ranks",
        [ACTIVITY_COMPUTE] = "computing",
        [ACTIVITY_MEASURE] = "measuring",
        [ACTIVITY_AVERAGE] = "averaging",
        [ACTIVITY_SERVE] = "serving",
        [ACTIVITY_TEST] = "testing the model",
        [ACTIVITY_CHECKPOINT] = "writing a checkpoint",
        [ACTIVITY_FINISH] = "finishing",
    };
    const char *what = view->kind < ACTIVITY_KINDS ? words[view->kind] : "busy";
    switch (view->kind) {
    case ACTIVITY_COMPUTE:
    case ACTIVITY_MEASURE:
        snprintf(text, size, "%s step %" PRIu64, what, view->step);
        break;
    case ACTIVITY_AVERAGE:
        snprintf(text, size, "%s bucket %" PRIu32 " of step %" PRIu64, what, view->bucket,
                 view->step);
        break;
    case ACTIVITY_TEST:
    case ACTIVITY_CHECKPOINT:
        snprintf(text, size, "%s after step %" PRIu64, what, view->step);
        break;
    default:
        snprintf(text, size, "%s", what);
        break;
    }
    return text;
}
