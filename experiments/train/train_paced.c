/* A step of --compute paced: see experiments/step/pace.h. The gradients are trainer_open's. */
#include "experiments/train/trainer.h"

#include "experiments/step/pace.h"

enum status train_step_paced(struct trainer *t, struct net_loss *loss)
{
    (void)loss;
    return pace_step(&t->exchange, t->config->paced_ms * t->straggler.factor);
}
