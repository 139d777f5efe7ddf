/* What to do on a described cluster: topology, servers, transport, size of buckets, fp16 or not. */
#ifndef PSRING_EXPERIMENTS_PREDICT_ADVICE_H
#define PSRING_EXPERIMENTS_PREDICT_ADVICE_H

#include <stdio.h>

#include "experiments/predict/training.h"

/* A way to train, and what comes of it. */
struct predict_choice {
    const struct predict_model *model; /* its network and transport */
    struct predict_way way;
    size_t bucket_bytes;            /* 0: one bucket */
    size_t least_bytes, most_bytes; /* of its buckets, the smallest and the largest */
    enum compress compress;
    int machines;                    /* in use: the workers', and those of servers beside them */
    struct predict_interval step;    /* seconds */
    double epoch_s, epoch_machine_s; /* machines times seconds: what is paid for */
};

struct predict_advice {
    bool found; /* else no fitted transport has that network, and the rest is zero */
    struct predict_choice fastest, cheapest; /* by seconds; by machine seconds */
    struct predict_choice other;             /* the fastest of another topology; no model: none */
    struct predict_choice compressed;        /* the fastest with fp16; the others are without */
};

/* Tries everything that the cluster has machines for, over each transport of `network`, with
 * buckets of several sizes; training->bucket_bytes and compress do not matter. Errors: logged. */
enum status predict_advise(const struct predict_models *models, const char *network,
                           const struct predict_cluster *cluster,
                           const struct predict_training *training, struct predict_advice *advice);

/* For each network that was fitted. `cost_per_hour` of a machine; 0: not known. What is said of the
 * table beside it has training->bucket_bytes. */
enum status predict_print_advice(FILE *out, const struct predict_models *models,
                                 const struct predict_cluster *cluster,
                                 const struct predict_training *training, double cost_per_hour);

#endif
