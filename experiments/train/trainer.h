/*
 * The parts of one training run, for the files that make up `psring train`: train.c (the loop, read
 * it first), train_step.c (one step), train_exchange.c (its communication), train_virtual.c
 * (one process that plays all workers), trainer.c (set-up), train_state.c (test, weights' sum,
 * checkpoints), train_report.c (rows, lines).
 */
#ifndef PSRING_EXPERIMENTS_TRAINER_H
#define PSRING_EXPERIMENTS_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/csv.h"
#include "common/base/sha256.h"
#include "common/base/status.h"
#include "common/comm/bucket.h"
#include "common/comm/comm.h"
#include "common/data/dataset.h"
#include "common/data/loader.h"
#include "common/device/device.h"
#include "common/net/topology.h"
#include "common/net/world.h"
#include "common/obs/progress.h"
#include "experiments/config/config.h"
#include "experiments/train/feed.h"
#include "experiments/train/loss_queue.h"
#include "experiments/train/step_times.h"
#include "models/lr.h"
#include "models/net.h"
#include "models/optim.h"

struct trainer;

/* Forward, backward, average, update; `batch` is NULL where --compute is paced. To `loss` are added
 * this process's that have become known, oldest first: of this step, or of earlier ones where the
 * device is behind. Sets the times of the communication in t->exchange. */
typedef enum status train_step_function(struct trainer *t, const struct batch *batch,
                                        struct net_loss *loss);

/* The communication of the running step. */
struct exchange {
    bool finishes;      /* this step waits for all buckets, because weights are read after it */
    size_t started;     /* buckets handed to the comm so far */
    enum status status; /* of starting and needing them: the passes cannot return it */
    int64_t blocked_ns; /* spent inside comm_start and comm_wait: what compute did not hide */
};

/* What has been done since the last row. */
struct interval {
    int64_t started_ns; /* of the first step; 0: no step yet */
    int64_t ended_ns;   /* of the last step */
    uint64_t steps;
    uint64_t images; /* of this process */
    double loss_sum; /* of this process */
    uint64_t losses; /* steps that are in loss_sum */
};

struct test_result {
    double loss, accuracy;
};

struct trainer {
    const struct config *config;
    struct world *world;
    const struct backend *backend;
    struct topology topology;
    size_t workers; /* whose gradients are averaged: processes, or virtual ones */
    bool is_server; /* a dedicated one: only serves */

    /* This process's own. */
    int threads; /* that compute */
    struct device *device;
    struct net *net;
    struct optimizer *optimizer; /* NULL where paced, and on servers; so the following */
    struct dataset *dataset;
    struct loader *train_loader, *test_loader;
    struct feed feed;         /* of batches to the device */
    struct loss_queue losses; /* of steps that were asked for */
    float *host; /* room for the parameters or the optimizer's state, whichever is larger */
    struct lr_schedule lr;
    struct csv *metrics;   /* rank 0, with --metrics */
    char *checkpoint_path; /* rank 0, with --checkpoint */

    /* Averaging. */
    struct comm *comm;
    struct bucket *buckets; /* (bucket_count), in the order in which they are complete */
    size_t *bucket_counts;
    size_t *bucket_order; /* (bucket_count), with `defers` */
    size_t bucket_count;
    bool *pending;            /* (bucket_count): started, not waited for */
    bool defers;              /* a step leaves them so to the next one's forward pass */
    float pending_lr;         /* of the step that started them */
    float *virtual_gradients; /* (workers, parameters), host memory; NULL where not virtual */
    const void **virtual_sources;

    /* Where the run stands. */
    train_step_function *step_once;
    uint64_t steps_per_epoch, total_steps;
    uint64_t step; /* done, over all epochs */
    struct exchange exchange;
    struct interval interval;
    struct step_times times;
    double times_median[STEP_TIME_KINDS]; /* of the last row, ms */
    double trained_s;                     /* worker 0: in steps, since the run began */
    double images_per_s;                  /* of the last row */
    char weights_sha256[SHA256_HEX_SIZE]; /* of the last row */
    struct device_usage usage;            /* worker 0: as the interval's last step ended */
    struct progress progress;
};

/* trainer.c. A failure that all ranks meet alike is logged by rank 0 only. */
enum status trainer_open(struct trainer *t, const struct config *config, struct world *world);
void trainer_close(struct trainer *t);
size_t trainer_rank(const struct trainer *t); /* among the processes that are workers */

/* train_step.c, train_virtual.c */
train_step_function train_step_real, train_step_paced, train_step_virtual;
/* Waits for the steps that were asked for; the interval then holds all their losses. */
enum status train_settle(struct trainer *t);

/* train_exchange.c */
bool train_may_defer(const struct trainer *t); /* if the comm overlaps */
net_range_hook train_start_buckets;
net_range_hook train_need; /* waits for the buckets that are pending there, and applies them */
/* Applies the averaged gradients, all at once. */
void train_update(struct trainer *t);
/* Waits for all buckets that are pending, and applies them. */
enum status train_finish_buckets(struct trainer *t);
/* After the backward pass: waits and updates, or leaves that to the next step. */
enum status train_end_step(struct trainer *t);

/* train_state.c, all collective over the workers. */
enum status train_test(struct trainer *t, struct test_result *result);
/* Sets weights_sha256; an error if the workers' weights (paced: gradients) are not the same. */
enum status train_check_weights(struct trainer *t);
/* From worker 0 to all: parameters; with --resume the optimizer's state and the position, too. */
enum status train_share_state(struct trainer *t);
enum status train_save(const struct trainer *t);
/* Not collective: the state of worker 0 from the file in checkpoint_path. */
enum status train_load(struct trainer *t);

/* train_report.c, collective over the workers. Closes the interval; `test` NULL: not tested. */
enum status train_report(struct trainer *t, const struct test_result *test);
void train_report_start(const struct trainer *t);
void train_report_end(const struct trainer *t, const struct test_result *test);

#endif
