/*
 * The parts of one training run, for the files that make up `psring train`: train.c (the loop, read
 * it first), train_step.c (one step), ../step/exchange.c (its communication), train_data.c (its
 * data), train_virtual.c (a step of several workers), train_server.c (servers that own the
 * parameters), trainer.c (set-up), train_state.c (test, weights' sum), train_checkpoint.c,
 * train_report.c (rows, lines), train_position.c (where it stands), generation.c (elastic jobs).
 */
#ifndef PSRING_EXPERIMENTS_TRAIN_TRAINER_H
#define PSRING_EXPERIMENTS_TRAIN_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/checkpoint/checkpoint.h"
#include "common/comm/comm.h"
#include "common/data/dataset.h"
#include "common/device/device.h"
#include "common/net/topology.h"
#include "common/net/world.h"
#include "experiments/config/config.h"
#include "experiments/timeline/timeline.h"
#include "experiments/step/batches.h"
#include "experiments/step/exchange.h"
#include "experiments/train/generation.h"
#include "experiments/step/loss_queue.h"
#include "experiments/step/stop.h"
#include "experiments/step/straggler.h"
#include "experiments/train/train_report.h"
#include "models/lr.h"
#include "models/net.h"
#include "models/optim.h"

struct trainer;

/* A step on this process's share of the data: forward, backward, average, update. To `loss` are
 * added those that have become known, oldest first: of this step, or of earlier ones where the
 * device is behind. */
typedef enum status train_step_function(struct trainer *t, struct net_loss *loss);

/* What train_virtual.c keeps, in host memory; NULL elsewhere. */
struct virtual_workers {
    float *gradients;     /* (workers, parameters) */
    const void **sources; /* (workers): one bucket's, of each */
};

/* The images of an epoch where there is no data set (paced): MNIST's. */
enum { TRAINER_PACED_IMAGES = 60000 };

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
    char optimizer_text[OPTIMIZER_TEXT_BYTES]; /* optimizer_describe */
    struct optimizer *optimizer; /* NULL where paced, and on servers; so the next three */
    struct dataset *dataset;
    struct batches batches;
    struct loss_queue losses; /* of steps that were asked for */
    struct lr_schedule lr;
    float *host; /* room for the parameters or the optimizer's state, whichever is larger */
    struct exchange exchange;
    struct updater updater; /* where this process has a server that updates */
    struct straggler straggler;
    struct virtual_workers virtual;

    /* Where the run stands. */
    train_step_function *step_once;
    uint64_t steps_per_epoch, total_steps;
    uint64_t step;                 /* done, over all epochs */
    uint64_t step_images;          /* of the running step, on this process */
    int64_t data_ns;               /* of the running step: until its batch was there */
    int64_t loaded_ns;             /* of those, that this thread ran, making the batch itself */
    uint64_t first_step;           /* of this process: those before it were done by another run */
    struct position start;         /* all 0, but in a later generation of an elastic job */
    struct generation *generation; /* of an elastic job; NULL: the job is none */
    struct checkpoint *resumed;    /* rank 0, from train_load to train_share_state */
    bool on_target;                /* the last test reached --target-accuracy */
    struct stop stop;
    bool stop_said; /* when this worker will stop, where that is not at once */
    struct report report;
    struct timeline *timeline; /* NULL: none is asked for */
};

/* trainer.c. A failure that all ranks meet alike is logged by rank 0 only. */
enum status trainer_open(struct trainer *t, const struct config *config, struct world *world,
                         struct generation *generation);
void trainer_close(struct trainer *t);
size_t trainer_rank(const struct trainer *t); /* among the processes that are workers */

/* train_data.c. Servers and paced workers need the net only for the sizes of its layers. */
bool trainer_computes(const struct trainer *t);
size_t trainer_batch_max(const struct trainer *t); /* images that the net has room for */
/* Needs no other rank. Sets the steps of an epoch and of the run, and how the rate changes. */
enum status trainer_open_data(struct trainer *t);
/* Images that this process, with all its virtual workers, sees in a step. */
uint64_t trainer_step_images(const struct trainer *t);
/* Whether an epoch may end with a step of fewer images (--last-batch partial). */
bool trainer_joins(const struct trainer *t);
/* Batches that loaders make ahead. */
size_t trainer_prefetch(const struct trainer *t);
/* As batches_next and batches_gather of training, their time added to data_ns. */
size_t trainer_next_batch(struct trainer *t);
void trainer_gather(struct trainer *t, size_t first, size_t count);

/* train_position.c. The epoch that step number `step` (from 0) belongs to, and how many steps are
 * done before it. */
uint64_t trainer_epoch(const struct trainer *t, uint64_t step);
uint64_t trainer_epoch_begin(const struct trainer *t, uint64_t epoch);
/* Images, of all workers, that are in the weights after t->step; those of `epoch` among them, where
 * the step after it is no further than the next one's first. */
uint64_t trainer_images(const struct trainer *t);
uint64_t trainer_epoch_images(const struct trainer *t, uint64_t epoch);
/* The length of a run in which all steps have as many workers as now. */
uint64_t trainer_schedule_steps(const struct trainer *t);
/* The learning rate of the step that comes next. */
float trainer_lr(const struct trainer *t);

/* train_step.c, train_virtual.c */
train_step_function train_step_real, train_step_paced, train_step_virtual;
enum status train_virtual_open(struct trainer *t);
void train_virtual_close(struct trainer *t);

/* train_bottleneck.c. Collective over the workers, before step_times_medians: the bottleneck of the
 * steps since the last row, and of all steps of this process. Worker 0 has both in t->report. */
enum status train_bottleneck(struct trainer *t);
/* The interval's first step begins: counts processor time from here on. */
void train_cpus_start(struct trainer *t);
/* A step has ended: the next one watches the processors while it waits for averaging, if this one
 * waited for long. */
void train_cpus_wait(struct trainer *t);

/* train_state.c, all collective over the workers. */
enum status train_test(struct trainer *t, struct test_result *result);
/* Whether a test reached --target-accuracy. */
bool train_on_target(const struct trainer *t, const struct test_result *result);
/* Sets report.weights_sha256; an error if the workers' weights (paced: gradients) are not the same.
 */
enum status train_check_weights(struct trainer *t);
/* From worker 0 to all: parameters; with --resume the optimizer's state, the position, and what
 * averaging carries, too. */
enum status train_share_state(struct trainer *t);

/* train_checkpoint.c */
/* Collective over the workers; nothing without --checkpoint. */
enum status train_save(struct trainer *t);
/* Not collective: the state of worker 0 from the newest checkpoint, but for what averaging carries;
 * the start, which is said, if there is none and that is allowed. */
enum status train_load(struct trainer *t);

/*
 * train_server.c. Where servers own the parameters; elsewhere train_go_on counts, train_all_at_step
 * is true, and the rest does nothing.
 */
/* Collective: worker 0's parameters and optimizer to the servers. */
enum status train_store(struct trainer *t);
/* All go on with t->step, and meet at `end`. */
enum status train_begin_steps(struct trainer *t, uint64_t end);
/* t->step becomes the next one: after those that were left out. */
void train_go_on(struct trainer *t);
/* Whether all workers are at t->step now; between two meetings they may be apart. */
bool train_all_at_step(const struct trainer *t, uint64_t end);
/* Collective: waits for all, then all have the servers' parameters. */
enum status train_meet(struct trainer *t);
/* Collective, before train_save: worker 0 has the optimizer's state from the servers. */
enum status train_fetch_state(struct trainer *t);
/* Collective: report.reached. */
enum status train_gather_progress(struct trainer *t);

#endif
