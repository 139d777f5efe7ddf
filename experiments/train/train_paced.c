/* A step of --compute paced: see experiments/step/pace.h. The gradients are trainer_open's; images
 * are loaded, for nothing but the time, where there are any. */
#include "experiments/train/trainer.h"

#include "experiments/step/pace.h"

enum status train_step_paced(struct trainer *t, struct net_loss *loss)
{
    (void)loss;
    if (t->dataset)
        trainer_gather(t, 0, trainer_next_batch(t));
    return pace_step(&t->exchange, t->config->paced_ms * t->straggler.factor);
}
