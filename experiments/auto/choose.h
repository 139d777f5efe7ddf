/*
 * What --backend auto chooses, by the fitted model: topology, servers and their placement,
 * transport and, of a training step, the size of buckets. Pure: the model and the job go in, a
 * choice comes out.
 *
 * Which processes there are is settled when it chooses: workers, and ranks for servers alone. Where
 * there are such ranks, servers have them; where there are none, servers can be inside workers.
 * Segments, windows and chunks are the backends' own choice: the rows that the model was fitted to
 * had those, and it has no term for what a segment hides.
 */
#ifndef PSRING_EXPERIMENTS_AUTO_CHOOSE_H
#define PSRING_EXPERIMENTS_AUTO_CHOOSE_H

#include "experiments/predict/forecast.h"

struct auto_job {
    int workers, spare;  /* ranks: workers', and of servers alone */
    unsigned placements; /* 1 << enum placement of those that servers may have */
    int colocated;       /* servers inside workers; 0: as many as are best */
    const int *hosts;    /* (workers + spare): equal on one host; NULL: each on one of its own */
    const char *network;
    double bytes_per_s;  /* nominal, of a link each way; 0: that of the fitted network */
    unsigned transports; /* 1 << enum transport_kind of those that it may use */
    enum compress compress;
    bool ordered; /* sums in the ring's order */

    /* What is averaged: one vector, or the gradients of a model beside its computing. */
    size_t count;      /* elements */
    const char *model; /* NULL: one vector; experiments/predict/step.h */
    double compute_s;  /* forward and backward; 0 where it is not known */
    double bucket_mb;  /* 0: one bucket; below 0: to be chosen */
};

struct auto_way {
    struct predict_way way;
    enum transport_kind transport;
    double bucket_mb;                  /* as wanted */
    size_t buckets;                    /* that this makes; of one vector, 1 */
    uint64_t bytes;                    /* of the longest vector */
    const struct predict_model *model; /* whose constants say so; NULL: there is no such way */
    struct predict_interval seconds;   /* of the vector, or of a step */
};

struct auto_choice {
    struct auto_way best;
    struct auto_way next;  /* the best of another backend or placement */
    struct auto_way alone; /* the best without the ranks for servers; none where there are none */
    bool stands_in;        /* no model has such a transport: that of another one spoke for it */
};

/* STATUS_USAGE, logged: no model is of that network, or there is no such training model. */
enum status auto_choose_way(const struct predict_models *models, const struct auto_job *job,
                            struct auto_choice *choice);

#endif
