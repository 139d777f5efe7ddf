/* What a training step takes, by the model of cost and the layers of what is trained: exposed
 * communication, images/s, an epoch's time and cost. */
#ifndef PSRING_EXPERIMENTS_PREDICT_TRAINING_H
#define PSRING_EXPERIMENTS_PREDICT_TRAINING_H

#include <stdio.h>

#include "experiments/predict/forecast.h"
#include "experiments/predict/step.h"

struct predict_training {
    const char *model;
    double compute_s; /* forward and backward of a step of each worker */
    double batch;     /* images a step, of each worker */
    double images;    /* of an epoch */
    double epochs;
    size_t bucket_bytes;
    enum compress compress;
};

/* Of a step of so many workers that average in that way; low and high where its communication is
 * as fast or as slow as its 95% interval says. false: there is no such way. */
bool predict_training_step(const struct predict_model *model, const struct predict_way *way,
                           int workers, const struct predict_step *step,
                           const struct predict_training *training,
                           struct predict_interval *seconds);

/* The same of a step whose bucket b has terms[b]. STATUS_NO_MEMORY is logged. */
enum status predict_buckets_step(const struct predict_fit *fit, const struct predict_step *step,
                                 const struct predict_terms *terms, double compute_s,
                                 struct predict_interval *seconds);

/* Each way on the cluster. STATUS_USAGE (logged): no such model. */
enum status predict_print_training(FILE *out, const struct predict_model *model,
                                   const struct predict_cluster *cluster,
                                   const struct predict_training *training);

#endif
