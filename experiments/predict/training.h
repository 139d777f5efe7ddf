/*
 * A training step: a forward and backward pass of known length. Buckets of gradients travel
 * meanwhile, one after the other, as in experiments/train/gradient_sync.h:
 *
 *     compute   |forward 1|backward 1       |forward 2|backward 2       |
 *     network             [2 ][1a ][0][1b  ]          [2 ][1a ][0][1b  ]
 *
 * The computation time is distributed over the layers by their operations, as --compute paced does.
 * The optimizer's time is not included. Source of the idea: Hu et al. 2022, "dPRO" (MLSys), which
 * replays a step's graph. Here the graph is a chain of buckets, so a recurrence suffices.
 */
#ifndef PSRING_EXPERIMENTS_PREDICT_TRAINING_H
#define PSRING_EXPERIMENTS_PREDICT_TRAINING_H

#include <stddef.h>
#include <stdio.h>

#include "common/base/status.h"
#include "common/comm/bucket.h"
#include "experiments/predict/forecast.h"
#include "models/net.h"

/* A trained model, cut into buckets. */
struct predict_step {
    struct net_layer *layers;
    size_t layer_count;
    struct bucket *buckets; /* (bucket_count), in the order of completion */
    size_t *order;          /* (bucket_count), order of travel */
    size_t bucket_count, bytes;
};

/* Travel time of a bucket: `seconds`, minus the saving of idle links. The saving is `saved_s` after
 * an idle time of at least `rest_s`, and proportional to it below. */
struct predict_travel {
    double seconds, saved_s, rest_s;
};

/* Opens a published model (models/published.h) or one of the zoo (models/cnn.h), by name.
 * bucket_bytes 0: one bucket. STATUS_USAGE (logged): no such model. Always needs predict_step_free.
 */
enum status predict_step_open(struct predict_step *step, const char *model, size_t bucket_bytes);
void predict_step_free(struct predict_step *step);

/* Bytes of the smallest and of the largest bucket. */
size_t predict_step_least(const struct predict_step *step);
size_t predict_step_most(const struct predict_step *step);

/*
 * Seconds of a step in steady state. Computation takes `compute_s`, and bucket b takes travels[b].
 * `defers`: a step does not wait for its buckets; the next forward pass waits for each bucket
 * before it reads the parameters. The excess over compute_s is exposed communication. `scratch` (2
 * bucket_count).
 */
double predict_step_time(const struct predict_step *step, double compute_s,
                         const struct predict_travel *travels, bool defers, double *scratch);

/* Training by the model of cost and the layers of the trained model: exposed communication,
 * images/s, time and cost of an epoch. */

struct predict_training {
    const char *model;
    double compute_s; /* forward and backward pass of a step, per worker */
    double batch;     /* images per step and worker */
    double images;    /* images per epoch */
    double epochs;
    size_t bucket_bytes;
    enum compress compress;
};

/* Predicts the time of a step of `workers` workers that average by `way`. Low and high: its
 * communication takes the ends of its 95% interval. `hosts` as in predict_way_terms. Returns false
 * if the way is impossible. */
bool predict_training_step(const struct predict_model *model, const struct predict_way *way,
                           int workers, const int *hosts, const struct predict_step *step,
                           const struct predict_training *training,
                           struct predict_interval *seconds);

/* Prints each way on the cluster. STATUS_USAGE (logged): no such model. */
enum status predict_print_training(FILE *out, const struct predict_model *model,
                                   const struct predict_cluster *cluster,
                                   const struct predict_training *training);

#endif
