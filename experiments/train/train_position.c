/* Where a run stands: in steps, in epochs, in images, in its learning rates. Pure functions of the
 * step; in an elastic job of the position, too, at which this generation has begun. */
#include "experiments/train/trainer.h"

#include "experiments/config/learning.h"

/* Steps of the epoch in which this generation begins: a whole one, or what others have left of it.
 */
static uint64_t first_steps(const struct trainer *t)
{
    uint64_t images = t->dataset ? t->dataset->train.count : TRAINER_PACED_IMAGES;
    if (t->start.epoch_images == 0)
        return t->steps_per_epoch;
    if (images <= t->start.epoch_images)
        return 0;
    return (images - t->start.epoch_images) / t->workers / (uint64_t)t->config->batch;
}

static uint64_t images_of(const struct trainer *t, uint64_t steps)
{
    return steps * t->workers * (uint64_t)t->config->batch;
}

/* Where the last step of an epoch is shorter: not in an elastic job. */
static uint64_t images_of_epoch(const struct trainer *t)
{
    return t->dataset->train.count * (t->config->unsharded ? t->workers : 1);
}

uint64_t trainer_images(const struct trainer *t)
{
    if (trainer_joins(t))
        return trainer_epoch(t, t->step) * images_of_epoch(t) +
               trainer_epoch_images(t, trainer_epoch(t, t->step));
    return t->start.images + images_of(t, t->step - t->start.step);
}

uint64_t trainer_epoch_images(const struct trainer *t, uint64_t epoch)
{
    uint64_t before = epoch == t->start.epoch ? t->start.epoch_images : 0;
    return before + images_of(t, t->step - trainer_epoch_begin(t, epoch));
}

uint64_t trainer_epoch(const struct trainer *t, uint64_t step)
{
    uint64_t end = t->start.step + first_steps(t);
    return step < end ? t->start.epoch : t->start.epoch + 1 + (step - end) / t->steps_per_epoch;
}

uint64_t trainer_epoch_begin(const struct trainer *t, uint64_t epoch)
{
    if (epoch <= t->start.epoch)
        return t->start.step;
    return t->start.step + first_steps(t) + (epoch - t->start.epoch - 1) * t->steps_per_epoch;
}

uint64_t trainer_schedule_steps(const struct trainer *t)
{
    return t->config->steps > 0 ? t->total_steps
                                : learning_epochs(t->config, t->workers) * t->steps_per_epoch;
}

/* By how much is left to do: workers that come or go change the number of steps, not that. */
float trainer_lr(const struct trainer *t)
{
    return (float)lr_at(&t->lr, t->step + trainer_schedule_steps(t) - t->total_steps);
}
