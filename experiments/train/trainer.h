/*
 * The parts of one training run, for the files of `psring train`. Read train.c first: one step, and
 * the loops around it. Then:
 *     step.c              kinds of steps, and their parts
 *     gradient_sync.c     communication
 *     setup.c             opening
 *     train_server.c      servers that own the parameters
 *     train_checkpoint.c  test, weights' sum, checkpoints, position
 *     train_report.c      rows, lines
 *     train_bottleneck.c  evidence for the judge, bottleneck.c
 *     progress.c, stop.c  the progress line; the end by a signal
 *     generation.c        elastic jobs
 */
#ifndef PSRING_EXPERIMENTS_TRAIN_TRAINER_H
#define PSRING_EXPERIMENTS_TRAIN_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/csv.h"
#include "common/base/range.h"
#include "common/base/sha256.h"
#include "common/base/status.h"
#include "common/checkpoint/checkpoint.h"
#include "common/comm/comm.h"
#include "common/comm/comm_options.h"
#include "common/data/batches.h"
#include "common/data/dataset.h"
#include "common/device/device.h"
#include "common/net/cpu_watch.h"
#include "common/net/topology.h"
#include "common/net/world.h"
#include "experiments/config/config.h"
#include "experiments/train/bottleneck.h"
#include "experiments/train/generation.h"
#include "experiments/train/gradient_sync.h"
#include "experiments/train/stop.h"
#include "models/lr.h"
#include "models/net.h"
#include "models/optim.h"

/*
 * Makes a worker compute longer than it needs. The option --straggler multiplies its computing time
 * by FACTOR, like an old or busy machine. The option --compute real:MS gives each step a least
 * time, so that workers that share too few cores compute equally long. The worker computes, then
 * sleeps for the remaining time before it sends its gradients, bucket by bucket.
 */

struct straggler {
    bool delays; /* false: factor 1 and no least time; no call is needed */
    double factor;
    int64_t least_ns;    /* least computing time of a step, before it is multiplied */
    int64_t computed_ns; /* computing time of the step so far */
    int64_t since_ns;    /* start of the present stretch of computing, */
    int64_t blocked_ns;  /* and the step's blocked time at that moment */
};

void straggler_init(struct straggler *straggler, double factor, double least_ms);
/* Begins a step. Its blocked time is 0. */
void straggler_begin(struct straggler *straggler);
/* Waits for the device, then until the slower computation would be as far. `blocked_ns`: time of
 * the step spent waiting for other ranks. `last`: the step has nothing left to compute. */
void straggler_delay(struct straggler *straggler, struct device *device, int64_t blocked_ns,
                     bool last);

/*
 * A queue of losses, for a device that runs behind the host. It is behind by at most
 * device_steps_ahead steps, so that it never waits for work. The loss of a step is read when the
 * device has done the step. A CPU has done the step when net_forward returns and needs no queue.
 */

enum { LOSS_QUEUE_MAX = 4 };

struct loss_queue {
    struct device *device; /* NULL: no queue is needed */
    struct loss_sum *sums; /* (LOSS_QUEUE_MAX), from device_host_alloc */
    struct device_event *done[LOSS_QUEUE_MAX];
    uint64_t put, taken; /* steps so far */
};

/* Borrows `device`. */
enum status loss_queue_open(struct loss_queue *queue, struct device *device);
void loss_queue_close(struct loss_queue *queue);

/* Requests the loss of the last net_forward. */
void loss_queue_put(struct loss_queue *queue, struct net *net);

/* Waits for the losses of all steps except the latest `ahead`, and adds them to *loss, oldest
 * first. Also returns a failure of the device. */
enum status loss_queue_take(struct loss_queue *queue, int ahead, struct loss_sum *loss);

/* Number of steps whose loss has not been taken. */
static inline uint64_t loss_queue_length(const struct loss_queue *queue)
{
    return queue->put - queue->taken;
}

/* The times of training steps, by part, and their medians over the steps of an interval. */

enum step_time {
    STEP_TIME_ALL,     /* the whole step; on one rank: the sum of COMPUTE, EXPOSED and DATA */
    STEP_TIME_COMPUTE, /* forward, backward, update */
    STEP_TIME_COMM,    /* averaging, on any thread */
    STEP_TIME_EXPOSED, /* part of averaging that computing waited for */
    STEP_TIME_DATA,    /* wait for the batch */
    STEP_TIME_CPU,     /* part of COMPUTE in which the training thread ran on a processor */
    STEP_TIME_KINDS,
};

struct step_times {
    double *ms[STEP_TIME_KINDS]; /* (capacity) each */
    double *ended_ms;            /* (capacity): time since the first step began */
    double *scratch;             /* (capacity) */
    size_t count, capacity;
};

/* Allocates for `capacity` steps between two calls of step_times_medians. STATUS_NO_MEMORY
 * (logged). */
enum status step_times_init(struct step_times *times, size_t capacity);
void step_times_fini(struct step_times *times);

/* Notes one step. `ended_ns` is its end, counted from the beginning of the first step noted since
 * the last call of step_times_medians. */
void step_times_add(struct step_times *times, int64_t ended_ns, const int64_t ns[STEP_TIME_KINDS]);

/* This rank's own medians, in ms, over the steps noted so far. NAN if there are none. */
void step_times_own(struct step_times *times, double median_ms[STEP_TIME_KINDS]);

/*
 * Collective over the group, in which the caller is `rank`. All ranks have noted the same number of
 * steps.
 *
 * ALL is the time of a step for the whole group. It runs from the end of the previous step on the
 * last rank (first step: from its beginning) to the end of this step on the last rank. Reason:
 * ranks that wait for different peers may be late alternately, such as two ranks every other step.
 * The slowest rank of each step is then always a late one, although the step rate is unchanged.
 *
 * COMPUTE, DATA and the other parts are those of the busiest rank, which has the most COMPUTE +
 * DATA. The other ranks wait for it, and such a wait is not communication. (The rank that ends last
 * is no better choice. Ranks that waited for each other end at nearly the same time, and any of
 * them may be last.)
 *
 * EXPOSED is the remainder: ALL minus the busiest rank's own time. It may exceed that rank's
 * averaging time. It is 0 if that rank began so early that nothing remains.
 *
 * All ranks begin the first noted step after a barrier, and may be as far apart as the barrier
 * leaves them. median_ms: the median of each kind over the steps, NAN if there were none. Forgets
 * the steps.
 */
enum status step_times_medians(struct step_times *times, struct world *world,
                               const struct group *group, size_t rank,
                               double median_ms[STEP_TIME_KINDS]);

/*
 * Watches how busy a device is. A separate thread calls device_usage every USAGE_WATCH_INTERVAL_MS,
 * because the driver remembers at most the last second. Values that the device does not report are
 * not counted. On a CPU there is no thread. A timeline gets every sample.
 */

enum { USAGE_WATCH_INTERVAL_MS = 100 };

/* A sample with less utilization counts as idle. */
#define USAGE_WATCH_IDLE 0.1

struct usage_watch;

/* Sums, so that the samples of several devices can be added. */
struct usage_samples {
    double count, idle; /* samples with a utilization; samples below USAGE_WATCH_IDLE */
    double utilization; /* the sum over the samples */
};

/* Returns the samples since the last call, or since usage_watch_new. Zeros for NULL. */
struct usage_samples usage_watch_take(struct usage_watch *watch);

/* Ends the thread. Sets *watch to NULL. *watch may be NULL. */
void usage_watch_free(struct usage_watch **watch);

/*
 * The progress line on the terminal, redrawn at most ten times a second:
 *
 *     epoch 2/12  step  118/468  loss 0.1423  8,412 images/s  ETA 3:05
 *
 * Nothing is written if the stream is not a terminal, or on ranks other than 0. One thread.
 */

struct progress_options {
    FILE *stream; /* stderr; borrowed */
    size_t rank;
    uint64_t epochs;          /* of the whole run */
    uint64_t steps_per_epoch; /* > 0 */
    uint64_t images_per_step; /* over all ranks */
};

struct progress {
    struct progress_options options;
    bool enabled;         /* rank 0 on a terminal */
    bool drawn;           /* the terminal shows a line without a newline */
    int64_t drawn_at_ns;  /* time of the last redraw */
    int64_t marked_at_ns; /* start of the interval for the next rate; 0 = none */
    uint64_t marked_step; /* steps done by then, over all epochs */
    double step_s;        /* seconds a step, smoothed; 0 = not known yet */
};

/* The content of one line. */
struct progress_view {
    uint64_t epoch, epochs;         /* epoch counts from 1 here */
    uint64_t step, steps_per_epoch; /* steps done in this epoch */
    double loss;                    /* NAN: none */
    double images_per_s;            /* <= 0: not known yet */
    double eta_s;                   /* < 0: not known yet */
};

void progress_init(struct progress *progress, const struct progress_options *options);

/*
 * Call after every step; cheap if nothing is drawn. `epoch` and `step` count from 0. `now_ns` is
 * clock_now_ns().
 */
void progress_update(struct progress *progress, int64_t now_ns, uint64_t epoch, uint64_t step,
                     double loss);

/*
 * Removes the line, so that a message can be printed in its place. The time until the next update
 * does not count for the rate (a test or a checkpoint is not a step).
 */
void progress_clear(struct progress *progress);

/* Writes the line's text (no control characters, cut to `size` - 1 bytes). Pure. */
void progress_format(const struct progress_view *view, char *line, size_t size);

/* The output of a run: rows of --metrics, lines on stdout, and the counts behind them. */

struct trainer;

/* The work since the last row. */
struct interval {
    int64_t started_ns; /* of the first step; 0: no step yet */
    int64_t ended_ns;   /* of the last step */
    uint64_t steps;
    uint64_t images; /* of this process */
    double loss_sum; /* of this process */
    uint64_t losses; /* number of steps in loss_sum */
};

struct test_result {
    double loss, accuracy;
};

/* Processor time of this machine (if this rank watches it) and of this process. */
struct report_cpus {
    struct cpu_watch waits; /* while steps waited long for averaging */
    struct cpu_watch steps; /* in whole steps */
    struct cpu_time own;    /* since the interval's first step */
    double process_s;       /* of this process, in ended intervals */
};

struct report {
    struct csv *metrics; /* rank 0, with --metrics */
    struct progress progress;
    struct interval interval;
    struct step_times times;              /* of the interval */
    struct report_cpus cpus;              /* of the interval */
    struct report_cpus run_cpus;          /* of all ended intervals */
    struct device_usage usage;            /* worker 0: at the end of the interval's last step */
    struct usage_watch *usage_watch;      /* NULL: this worker's device reports nothing */
    struct usage_samples usage_samples;   /* of the interval; after train_report: of all workers */
    double trained_s;                     /* worker 0: time in steps since the run began */
    double times_median[STEP_TIME_KINDS]; /* of the last row, in ms, like the fields below */
    double images_per_s;
    struct bottleneck bottleneck;
    struct bottleneck_facts facts; /* of all steps, like the next four; ms per step: */
    struct bottleneck_rank *ranks; /* (workers): the rows' medians, averaged over steps */
    uint64_t judged_steps;         /* number of steps in `ranks` */
    struct bottleneck run_bottleneck;
    char bottleneck_text[400];
    uint64_t images;               /* train_images, at the last row */
    uint64_t images_before;        /* images of the run before this process */
    struct comm_progress *reached; /* (workers): if servers update, else NULL */
    char weights_sha256[SHA256_HEX_SIZE], settings_sha256[SHA256_HEX_SIZE];
};

/* Allocates for the times of `steps` steps. Opens --metrics on rank 0. */
enum status train_report_open(struct trainer *t, uint64_t steps);
void train_report_close(struct trainer *t);

/* Print the first and the last lines, on rank 0. */
void train_report_start(const struct trainer *t);
void train_report_end(struct trainer *t, const struct test_result *test);

/* Images that the run's weights were trained on. Does not count images that late workers left out
 * or servers dropped. If servers own the parameters, the count is from the last
 * train_gather_progress. */
uint64_t train_images(const struct trainer *t);

/* Collective over the workers. Closes the interval; `test` NULL: not tested. */
enum status train_report(struct trainer *t, const struct test_result *test);

struct trainer;

/* A step on this process's share of the data: forward, backward, average, update. Adds to `loss`
 * the losses that are now known, oldest first. They are of this step, or of earlier steps if the
 * device runs behind. */
typedef enum status train_step_function(struct trainer *t, struct loss_sum *loss);

/* State of a step of virtual workers, in host memory. NULL without virtual workers. */
struct virtual_workers {
    float *gradients;     /* (workers, parameters) */
    const void **sources; /* (workers): one bucket of each worker */
};

/* Images of an epoch without a data set (paced): as many as MNIST has. */
enum { TRAINER_PACED_IMAGES = 60000 };

struct trainer {
    const struct config *config;
    struct world *world;
    const struct backend *backend;
    struct topology topology;
    size_t workers; /* number of workers, real or virtual, whose gradients are averaged */
    size_t rank;    /* number among the worker processes */
    bool is_server; /* a dedicated server: only serves, and has no rank */

    /* State of this process. */
    int threads; /* compute threads */
    struct device *device;
    struct net *net;
    char optimizer_text[OPTIMIZER_TEXT_BYTES]; /* optimizer_describe */
    struct optimizer *optimizer;               /* NULL in paced runs and on servers */
    struct dataset *dataset;  /* NULL on servers, and in paced runs without --data */
    struct batches batches;   /* 0 without a data set, like `losses` */
    struct loss_queue losses; /* of requested steps */
    struct lr_schedule lr;
    float *host; /* as large as the parameters or the optimizer's state, the larger of both */
    struct gradient_sync sync;
    struct updater updater; /* if this process has a server that updates */
    struct straggler straggler;
    struct virtual_workers virtual;

    /* The position of the run. */
    train_step_function *step_once;
    uint64_t steps_per_epoch, total_steps;
    uint64_t schedule_steps; /* of a run that always has the present number of workers */
    uint64_t step;           /* done, over all epochs */
    uint64_t step_images;    /* of the running step, on this process */
    float step_lr;           /* of the running step, if there is an optimizer */
    struct range_sum whole;  /* of the running step; other sums are in batches and sync */
    int64_t comm_busy_ns;    /* comm_busy_ns at the step's beginning */
    uint64_t first_step;     /* of this process: another run did the earlier steps */
    char data_sha256[SHA256_HEX_SIZE];
    struct position start;         /* all 0, except in a later generation of an elastic job */
    struct generation *generation; /* of an elastic job; else NULL */
    struct checkpoint *resumed;    /* rank 0, from train_load to train_share_state */
    bool target_reached;           /* the last test reached --target-accuracy */
    struct stop stop;
    bool stop_said; /* this worker has logged when it will stop */
    struct report report;
    struct timeline *timeline; /* NULL: no timeline */
};

/* setup.c. If all ranks fail in the same way, only rank 0 logs it. */
enum status trainer_open(struct trainer *t, const struct config *config, struct world *world,
                         struct generation *generation);
void trainer_close(struct trainer *t);

/* setup.c. Images per step of this process, with all its virtual workers. */
uint64_t trainer_step_images(const struct trainer *t);
/* Whether an epoch may end with a step of fewer images (--last-batch partial). */
bool trainer_joins(const struct trainer *t);
/* Number of batches that loaders make ahead. */
size_t trainer_prefetch(const struct trainer *t);

/* train_checkpoint.c. The epoch of step number `step` (from 0). / The number of steps before
 * `epoch`. */
uint64_t trainer_epoch(const struct trainer *t, uint64_t step);
uint64_t trainer_epoch_begin(const struct trainer *t, uint64_t epoch);
/* Images of all workers in the weights after t->step. / Those that belong to `epoch`; valid up to
 * the first step of the next epoch. */
uint64_t trainer_images(const struct trainer *t);
uint64_t trainer_epoch_images(const struct trainer *t, uint64_t epoch);

/* train.c, step.c */
train_step_function train_step_real, train_step_paced, train_step_virtual;
enum status train_virtual_open(struct trainer *t);
void train_virtual_close(struct trainer *t);

/* train_bottleneck.c. Collective over the workers, before step_times_medians. Finds the bottleneck
 * of the steps since the last row, and of all steps of this process. Worker 0 has both in
 * t->report. */
enum status train_bottleneck(struct trainer *t);
/* Call when the interval's first step begins: starts counting processor time. */
void train_cpus_start(struct trainer *t);
/* Call when a step has ended. If it waited long for averaging, the next step watches the processors
 * while it waits. */
void train_cpus_wait(struct trainer *t);
/* Call after the interval's last step, before a test. */
void train_cpus_stop(struct trainer *t);

/* train_checkpoint.c, all collective over the workers. */
enum status train_test(struct trainer *t, struct test_result *result);
/* Whether a test reached --target-accuracy. */
bool train_on_target(const struct trainer *t, const struct test_result *result);
/* Sets report.weights_sha256. An error if the workers' weights (paced: gradients) differ. */
enum status train_check_weights(struct trainer *t);
/* Broadcasts the parameters from worker 0. With --resume also the optimizer's state, the position,
 * and the residuals of averaging. */
enum status train_share_state(struct trainer *t);

/* train_checkpoint.c */
/* Collective over the workers. Does nothing without --checkpoint. */
enum status train_save(struct trainer *t);

/* Sets report.settings_sha256: the sum of data, first step and all settings. Runs with equal sums
 * and the same order of addition have the same bits. */
enum status train_sum_settings(struct trainer *t);
/* Not collective: loads the state of worker 0 from the newest checkpoint, except the residuals of
 * averaging. Without a checkpoint it logs that the run starts from step 0, or fails if --resume
 * requires one. */
enum status train_load(struct trainer *t);

/*
 * train_server.c. For servers that own the parameters. Otherwise train_go_on counts steps,
 * train_all_at_step is true, and the other functions do nothing.
 */
/* Collective: stores worker 0's parameters and optimizer on the servers. */
enum status train_store(struct trainer *t);
/* All workers continue with t->step and meet at `end`. */
enum status train_begin_steps(struct trainer *t, uint64_t end);
/* Sets t->step to the next step, behind steps that were left out. */
void train_go_on(struct trainer *t);
/* Whether all workers are at t->step now. Between two meetings they may be at different steps. */
bool train_all_at_step(const struct trainer *t, uint64_t end);
/* Collective: waits for all workers. Afterwards all have the servers' parameters. */
enum status train_meet(struct trainer *t);
/* Collective, before train_save: worker 0 fetches the optimizer's state from the servers. */
enum status train_fetch_state(struct trainer *t);
/* Collective: fills report.reached. */
enum status train_gather_progress(struct trainer *t);

#endif
