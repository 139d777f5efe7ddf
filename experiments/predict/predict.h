/* Chooses how to train on a described cluster: topology, servers, transport, bucket size, fp16 or
 * not. */
#ifndef PSRING_EXPERIMENTS_PREDICT_PREDICT_H
#define PSRING_EXPERIMENTS_PREDICT_PREDICT_H

#include <stdio.h>

#include "common/base/status.h"
#include "common/net/world.h"
#include "experiments/config/config.h"
#include "experiments/predict/forecast.h"
#include "experiments/predict/model.h"
#include "experiments/predict/training.h"

/* Bucket sizes to try, in MB. 0: one bucket. */
enum { PREDICT_BUCKET_SIZES = 7 };
extern const double predict_bucket_mb[PREDICT_BUCKET_SIZES];

/* One way to train, with its predicted cost. */
struct predict_choice {
    const struct predict_model *model; /* its network and transport */
    struct predict_way way;
    size_t bucket_bytes;            /* 0: one bucket */
    size_t least_bytes, most_bytes; /* the smallest and the largest bucket */
    enum compress compress;
    int machines;                    /* machines of the workers and of dedicated servers */
    struct predict_interval step;    /* seconds */
    double epoch_s, epoch_machine_s; /* epoch_machine_s: machines x seconds, the paid time */
};

struct predict_advice {
    bool found; /* false: no transport was fitted for that network; the rest is zero */
    struct predict_choice fastest, cheapest; /* lowest epoch_s; lowest epoch_machine_s */
    struct predict_choice other;             /* the fastest of another topology; model NULL: none */
    struct predict_choice
        compressed; /* the fastest with fp16; all other choices are uncompressed */
};

/* Tries every way for which the cluster has machines, over each fitted transport of `network`, with
 * several bucket sizes. Ignores training->bucket_bytes and training->compress. Errors: logged. */
enum status predict_advise(const struct predict_models *models, const char *network,
                           const struct predict_cluster *cluster,
                           const struct predict_training *training, struct predict_advice *advice);

/* Predicted compared with measured times: each error of the fitted and the held-out rows, and the
 * number of held-out rows inside their interval. */

/* Errors of one group of rows. */
struct predict_score {
    size_t rows;
    size_t judged, within; /* rows with an interval; rows inside it */
    double sum_log;        /* sum of log(1 + |error|) */
    double worst;          /* largest |error|; error = predicted / measured - 1 */
    const struct predict_row *worst_row;
};

void predict_score_add(struct predict_score *score, const struct predict_row *row,
                       struct predict_interval interval);
/* Geometric mean of 1 + |error|, minus 1. */
double predict_score_mean(const struct predict_score *score);

/* Bytes for the words of a way without its transport: "ps dedicated 2 fp16". */
enum { PREDICT_WAY_WORDS = 4 * PREDICT_WORD };

void predict_print_constants(FILE *out, const struct predict_model *model);
void predict_print_beside(FILE *out, const struct predict_models *models,
                          const struct predict_rows *rows);

/* Writes predict.csv. Leaves out rows that no model describes. Errors: logged. */
enum status predict_write_beside(const char *path, const struct predict_models *models,
                                 const struct predict_rows *rows);

/* Writes the winner map (map.c) to a CSV file, which it replaces. `cluster` has the rate of the
 * links (0: as fitted; networks without a rate are left out) and the racks (rack_ranks 0: 16 ranks
 * at 4:1) to assume. Errors: logged. Seconds. */
enum status predict_write_map(const char *path, const struct predict_models *models,
                              const struct predict_cluster *cluster);

/*
 * The cost of choosing by the model, measured as regret.
 *
 * A case is what a user has: a network, workers placed on hosts, spare machines for servers, and a
 * size. Its candidates are the ways that were measured there on at most that many machines. The
 * model chooses the candidate with the shortest predicted time. Regret = measured time of the
 * chosen one / shortest measured time, minus 1.
 *
 * Rows that were not fitted because other processes kept the CPUs busy are candidates, too: a user
 * who chooses does not know about that load. MPI_Allreduce is no candidate, because psring does not
 * choose its algorithm.
 */

/* The choice among the candidates of one case. */
struct predict_decision {
    const struct predict_row *chosen, *fastest;
    double chosen_s,
        fastest_s; /* measured; several rows of one way: geometric mean, weighted by runs */
    int machines;
};

struct predict_regret {
    size_t cases;
    size_t fastest, near, far; /* cases without regret; of at most NEAR; of more than FAR */
    double sum_log;            /* sum of log(1 + regret) */
    struct predict_decision worst;
};

#define PREDICT_REGRET_NEAR 0.03
#define PREDICT_REGRET_FAR 0.10

/* chosen_s / fastest_s - 1. */
double predict_decision_regret(const struct predict_decision *decision);

/*
 * Adds up the regret of all cases with at least two ways. Skips a case if a candidate has another
 * use than `use` (fitted or held out; "not used" is allowed). With `backend`, the model may choose
 * only this backend, and cases without it do not count; NULL: any backend. Prints each case of more
 * than PREDICT_REGRET_NEAR to `out`, unless that is NULL. STATUS_NO_MEMORY is logged.
 */
enum status predict_regret_of(struct predict_regret *regret, const struct predict_models *models,
                              const struct predict_rows *rows, enum predict_use use,
                              const char *backend, FILE *out);
/* Geometric mean of 1 + regret, minus 1. */
double predict_regret_mean(const struct predict_regret *regret);

/* Prints the regret of held-out cases (and keeps it in models->choice), then of fitted cases. For
 * comparison it prints the regret of always choosing the ring. */
enum status predict_print_regret(FILE *out, struct predict_models *models,
                                 const struct predict_rows *rows);

/* Predicted compared with measured steps of train.csv. Only paced steps; nothing is fitted to them.
 */

/* Prints the paced steps of these train.csv files (or folders with one; separated by commas) next
 * to their predictions. Runs or parts of one point count as one row, their median (rows.h). Errors:
 * logged. */
enum status predict_print_trained(FILE *out, const struct predict_models *models,
                                  const char *files);

/*
 * The choice of --backend auto, by the fitted model: topology, number and placement of servers,
 * transport and, for training steps, the bucket size. auto_choose_way is pure: it reads the model
 * and the job, and returns a choice.
 *
 * The processes exist before the choice: workers, and ranks reserved for servers. If there are
 * reserved ranks, servers run on them. If there are none, servers can run inside workers. Segments,
 * windows and chunks keep the backend's defaults: the fitted rows had those, and no term of the
 * model describes the effect of a segment.
 */

struct auto_job {
    int workers, spare;  /* ranks: workers, and ranks reserved for servers */
    unsigned placements; /* bit set of 1 << enum placement: allowed placements */
    int colocated;       /* servers inside workers; 0: the best number */
    const int *hosts;    /* (workers + spare), the host of each rank; NULL: one each */
    const char *network;
    double bytes_per_s;  /* nominal rate of a link, each way; 0: that of the fitted network */
    unsigned transports; /* bit set of 1 << enum transport_kind: allowed transports */
    enum compress compress;
    bool ordered; /* sums in the ring's order */

    /* The averaged data: one vector, or the gradients of a model during its computation. */
    size_t count;      /* elements */
    const char *model; /* NULL: one vector; experiments/predict/training.h */
    double compute_s;  /* forward and backward pass; 0: unknown */
    double bucket_mb;  /* 0: one bucket; negative: choose it */
};

struct auto_way {
    struct predict_way way;
    enum transport_kind transport;
    double bucket_mb;                  /* requested size */
    size_t buckets;                    /* resulting number of buckets; one vector: 1 */
    uint64_t bytes;                    /* bytes of the longest vector */
    const struct predict_model *model; /* source of the constants; NULL: no such way */
    struct predict_interval seconds;   /* time of the vector, or of a step */
};

struct auto_choice {
    struct auto_way best;
    struct auto_way next; /* the best with another backend or placement */
    struct auto_way
        alone;      /* the best without ranks reserved for servers; only if there are such ranks */
    bool stands_in; /* no model of an allowed transport: that of another transport replaces it */
};

/* STATUS_USAGE (logged): no model of that network, or no such training model. */
enum status auto_choose_way(const struct predict_models *models, const struct auto_job *job,
                            struct auto_choice *choice);

/*
 * --backend auto: rank 0 reads the model (--cost-model), chooses, broadcasts the choice, and prints
 * it with its reasons. Only the host of rank 0 needs the file, and all ranks use the same choice.
 */

/*
 * Callback for struct config's `choose`: fills in config->picks, one for each size of a bench
 * sweep, otherwise one. Collective over the world. Rank 0 prints lines to stdout.
 * STATUS_USAGE on all ranks, logged by rank 0: no model in the file, no model of this network, or
 * too few ranks for the servers.
 */
enum status auto_choose(struct config *config, struct world *world);

/* Writes one line without a newline: the choice, its predicted time, the alternatives, and the rows
 * that the prediction is based on. */
void auto_describe(const struct auto_job *job, const struct auto_choice *choice, char *text,
                   size_t size);

/* psring predict: fits the model of cost to bench.csv, compares it with rows that were not fitted,
 * and predicts what was not measured. One process. See README.md. */

/* Errors: logged. */
enum status predict_command(struct config *config);

#endif
