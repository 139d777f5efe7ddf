/* What to do on a described cluster: topology, servers, transport, size of buckets, fp16 or not. */
#ifndef PSRING_EXPERIMENTS_PREDICT_PREDICT_H
#define PSRING_EXPERIMENTS_PREDICT_PREDICT_H

#include <stdio.h>

#include "common/base/status.h"
#include "common/net/world.h"
#include "experiments/config/config.h"
#include "experiments/predict/forecast.h"
#include "experiments/predict/model.h"
#include "experiments/predict/training.h"

/* The sizes of buckets that are tried, in MB; 0: one bucket. */
enum { PREDICT_BUCKET_SIZES = 7 };
extern const double predict_bucket_mb[PREDICT_BUCKET_SIZES];

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

/* Predicted beside measured: what was fitted and held out, each error, and how many held-out rows
 * lie in their interval. */

/* Errors of one kind of rows. */
struct predict_score {
    size_t rows;
    size_t judged, within; /* rows that have an interval, and of these, in it */
    double sum_log;        /* of 1 + |error| */
    double worst;          /* |error|; error = predicted / measured - 1 */
    const struct predict_row *worst_row;
};

void predict_score_add(struct predict_score *score, const struct predict_row *row,
                       struct predict_interval interval);
/* The geometric mean of 1 + |error|, less 1. */
double predict_score_mean(const struct predict_score *score);

/* "ps dedicated 2 fp16": how a row averaged, but for its transport. */
enum { PREDICT_WAY_WORDS = 4 * PREDICT_WORD };

void predict_print_constants(FILE *out, const struct predict_model *model);
void predict_print_beside(FILE *out, const struct predict_models *models,
                          const struct predict_rows *rows);

/* predict.csv; rows that no model describes are left out. Errors: logged. */
enum status predict_write_beside(const char *path, const struct predict_models *models,
                                 const struct predict_rows *rows);

/*
 * What it costs to choose by the model. A case is what a user has: a network, so many workers on
 * their hosts, machines for servers beside them, a size. Its candidates are the ways that were
 * measured there on no more machines. The model chooses the one that it predicts to be fastest;
 * its regret is the measured time of that over the fastest measured, less 1. Candidates are also
 * rows that were not fitted because others kept the CPUs busy: who chooses does not know that
 * either. MPI_Allreduce is none: which algorithm it takes is not chosen by psring.
 */

/* A choice between the candidates of a case. */
struct predict_decision {
    const struct predict_row *chosen, *fastest;
    double chosen_s, fastest_s; /* measured; of rows of one way the geometric mean, by runs */
    int machines;
};

struct predict_regret {
    size_t cases;
    size_t fastest, near, far; /* that regret nothing; at most NEAR; more than FAR */
    double sum_log;            /* of 1 + regret */
    struct predict_decision worst;
};

#define PREDICT_REGRET_NEAR 0.03
#define PREDICT_REGRET_FAR 0.10

/* Chosen over fastest, less 1. */
double predict_decision_regret(const struct predict_decision *decision);

/*
 * Adds up all cases of two ways or more in which no candidate has another use than `use` (fitted or
 * held out). `backend` NULL, or the only one that the model may choose: cases without it do not
 * count. `out` NULL, or where each case of more than PREDICT_REGRET_NEAR is printed.
 * STATUS_NO_MEMORY is logged.
 */
enum status predict_regret_of(struct predict_regret *regret, const struct predict_models *models,
                              const struct predict_rows *rows, enum predict_use use,
                              const char *backend, FILE *out);
/* The geometric mean of 1 + regret, less 1. */
double predict_regret_mean(const struct predict_regret *regret);

/* Of held-out cases, which models->choice keeps, and of fitted ones, beside what always the ring
 * would cost. */
enum status predict_print_regret(FILE *out, struct predict_models *models,
                                 const struct predict_rows *rows);

/* Predicted beside the measured steps of train.csv: paced ones, to which nothing is fitted. */

/* The paced steps of these train.csv, or folders with one (commas between), beside what the models
 * say of them; those of one point, of several runs or parts of one, are one, their median
 * (rows.h). Errors: logged. */
enum status predict_print_trained(FILE *out, const struct predict_models *models,
                                  const char *files);

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
    const char *model; /* NULL: one vector; experiments/predict/training.h */
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

/*
 * --backend auto: rank 0 reads the model (--cost-model) and chooses, tells all others, and says
 * what, why, and what that rests on. So the file is needed on rank 0's host alone, and all ranks
 * have the same choice whatever the others' files say.
 */

/*
 * For struct config's `choose`: fills in its picks; of bench's sweep one for each size, else one.
 * Collective over the world. STATUS_USAGE, on all ranks, logged by rank 0: no model in the file, or
 * none of this network; or no such ranks for the servers. Prints lines to stdout on rank 0.
 */
enum status auto_choose(struct config *config, struct world *world);

/* A line in words, without its end: what, how long, what else, what it rests on. */
void auto_describe(const struct auto_job *job, const struct auto_choice *choice, char *text,
                   size_t size);

/* psring predict: fits the model of cost to bench.csv, holds it against rows that were not fitted,
 * and predicts what was not measured. One process. See README.md. */

/* Logs its errors. */
enum status predict_command(struct config *config);

#endif
