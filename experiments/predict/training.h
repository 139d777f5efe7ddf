/*
 * A training step: forward and backward pass of known length, beside buckets of gradients that
 * travel one after the other, as experiments/train/gradient_sync.h has it:
 *
 *     compute   |forward 1|backward 1       |forward 2|backward 2       |
 *     network             [2 ][1a ][0][1b  ]          [2 ][1a ][0][1b  ]
 *
 * Computing is spread over the layers by their operations, as --compute paced waits. The time of
 * the optimizer is not in it. Source of the idea: Hu et al. 2022, "dPRO" (MLSys), which replays a
 * step's graph; here it is a chain of buckets, so a recurrence does.
 */
#ifndef PSRING_EXPERIMENTS_PREDICT_TRAINING_H
#define PSRING_EXPERIMENTS_PREDICT_TRAINING_H

#include <stddef.h>
#include <stdio.h>

#include "common/base/status.h"
#include "common/comm/bucket.h"
#include "experiments/predict/forecast.h"
#include "models/net.h"

/* What is trained, in buckets. */
struct predict_step {
    struct net_layer *layers;
    size_t layer_count;
    struct bucket *buckets; /* (bucket_count), in the order in which they are complete */
    size_t *order;          /* (bucket_count): in which they travel */
    size_t bucket_count, bytes;
};

/* How long a bucket travels: `seconds`, less what links save that have rested, `saved_s` of it
 * after a rest of `rest_s` or longer, and in proportion after a shorter one. */
struct predict_travel {
    double seconds, saved_s, rest_s;
};

/* Of a published model (models/published.h) or one of the zoo (models/cnn.h), by name; bucket_bytes
 * 0: one bucket. STATUS_USAGE (logged): there is none. Needs predict_step_free whatever it returns.
 */
enum status predict_step_open(struct predict_step *step, const char *model, size_t bucket_bytes);
void predict_step_free(struct predict_step *step);

/* Bytes of the smallest bucket, and of the largest. */
size_t predict_step_least(const struct predict_step *step);
size_t predict_step_most(const struct predict_step *step);

/*
 * Seconds of a step, once steps follow each other evenly, in which computing takes `compute_s` and
 * bucket b travels as travels[b] says. `defers`: a step does not wait for its buckets; the next
 * forward pass waits for each where it reads those parameters. What exceeds compute_s is exposed.
 * `scratch` (2 bucket_count).
 */
double predict_step_time(const struct predict_step *step, double compute_s,
                         const struct predict_travel *travels, bool defers, double *scratch);

/* What a training step takes, by the model of cost and the layers of what is trained: exposed
 * communication, images/s, an epoch's time and cost. */

struct predict_training {
    const char *model;
    double compute_s; /* forward and backward of a step of each worker */
    double batch;     /* images a step, of each worker */
    double images;    /* of an epoch */
    double epochs;
    size_t bucket_bytes;
    enum compress compress;
};

/* Predicts the time of a step of `workers` workers that average by `way`. Low and high: its
 * communication is at the ends of its 95% interval. `hosts` as in predict_way_terms. false: there
 * is no such way. */
bool predict_training_step(const struct predict_model *model, const struct predict_way *way,
                           int workers, const int *hosts, const struct predict_step *step,
                           const struct predict_training *training,
                           struct predict_interval *seconds);

/* Each way on the cluster. STATUS_USAGE (logged): no such model. */
enum status predict_print_training(FILE *out, const struct predict_model *model,
                                   const struct predict_cluster *cluster,
                                   const struct predict_training *training);

#endif
