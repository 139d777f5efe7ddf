/*
 * The parts of one training run, for the files that make up `psring train`: train.c (the loop, read
 * it first: one step, and the loops around it), step.c (what goes with a step), gradient_sync.c
 * (its communication), setup.c (opening), train_server.c (servers that own the parameters),
 * train_checkpoint.c (test, weights' sum, checkpoints, where it stands), train_report.c (rows,
 * lines), generation.c (elastic jobs).
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
 * How long a worker computes, beside what it has to: FACTOR times as long (--straggler), as an old
 * machine, or one that something else runs on; and a least time of a step (--compute real:MS), so
 * that workers that share too few cores compute for equally long. It computes, and then sleeps for
 * the rest before its gradients go out, bucket by bucket.
 */

struct straggler {
    bool delays; /* false: factor 1 and no least time, so that no call is needed */
    double factor;
    int64_t least_ns;    /* that a step computes, before it is multiplied */
    int64_t computed_ns; /* of the step */
    int64_t since_ns;    /* when the present stretch of computing began, */
    int64_t blocked_ns;  /* and how much of the step had then not been computing */
};

void straggler_init(struct straggler *straggler, double factor, double least_ms);
/* A step begins; no part of it has been blocked. */
void straggler_begin(struct straggler *straggler);
/* Waits for the device, then until computing would have come as far. `blocked_ns`: of the step,
 * spent waiting for others. `last`: the step has no more to compute. */
void straggler_delay(struct straggler *straggler, struct device *device, int64_t blocked_ns,
                     bool last);

/*
 * Losses on their way from a device that is behind the host: by device_steps_ahead steps at most,
 * so that the device never waits for work. The loss of a step is read when the device has done the
 * step. A CPU has done it when net_forward returns, and needs no queue.
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

/* Asks for the loss of the last net_forward. */
void loss_queue_put(struct loss_queue *queue, struct net *net);

/* Waits for the losses of all steps but the latest `ahead`, and adds them to *loss, oldest first.
 * Also returns a failure of the device. */
enum status loss_queue_take(struct loss_queue *queue, int ahead, struct net_loss *loss);

/* Steps whose loss has not been taken. */
uint64_t loss_queue_length(const struct loss_queue *queue);

/* The times of training steps, by part, and their medians over the steps of an interval. */

enum step_time {
    STEP_TIME_ALL,     /* the whole step; a rank's own: the sum of COMPUTE, EXPOSED and DATA */
    STEP_TIME_COMPUTE, /* forward, backward, update */
    STEP_TIME_COMM,    /* averaging, on whichever thread */
    STEP_TIME_EXPOSED, /* the part of averaging that computing waited for */
    STEP_TIME_DATA,    /* until the batch was there */
    STEP_TIME_CPU,     /* of COMPUTE, that the training thread ran on a processor */
    STEP_TIME_KINDS,
};

struct step_times {
    double *ms[STEP_TIME_KINDS]; /* (capacity) each */
    double *ended_ms;            /* (capacity): since the first step began */
    double *scratch;             /* (capacity) */
    size_t count, capacity;
};

/* Room for `capacity` steps between two calls of step_times_medians. STATUS_NO_MEMORY (logged). */
enum status step_times_init(struct step_times *times, size_t capacity);
void step_times_fini(struct step_times *times);

/* Notes one step, which ended so long after the first of those noted since the last call of
 * step_times_medians had begun. */
void step_times_add(struct step_times *times, int64_t ended_ns, const int64_t ns[STEP_TIME_KINDS]);

/* This rank's own medians, in ms, over the steps noted so far; NAN if there were none. */
void step_times_own(struct step_times *times, double median_ms[STEP_TIME_KINDS]);

/*
 * Collective over the group, in which the caller is `rank`; all ranks have noted as many steps.
 * A step is the time of all: from when the last rank had ended the step before (for the first: from
 * its beginning) to when the last one has ended this. Ranks that wait for each other, but not all
 * for the same, may end early and late in turn: two of them each other step, though they do as many
 * steps a second; the slowest rank of each step is always one that is late. COMPUTE, DATA and the
 * others are those of the busiest rank, with the most COMPUTE and DATA: the others wait for it, so
 * what they wait is no communication. (Not those of the rank that ends last: ranks that have waited
 * for each other end at nearly the same time, and any of them may be the last.) EXPOSED is the
 * rest: what the step took beyond the busiest rank's own time, whoever was late; it may be more
 * than that rank averaged, and is 0 where that rank began so early that there is none. All ranks
 * have begun the first noted step together, as they leave a barrier: they may be as far apart as
 * that leaves them. median_ms: the median of each kind over the steps, NAN if there were none.
 * Forgets the steps.
 */
enum status step_times_medians(struct step_times *times, struct world *world,
                               const struct group *group, size_t rank,
                               double median_ms[STEP_TIME_KINDS]);

/*
 * How busy a device is over time: a thread of its own asks it (device_usage) every
 * USAGE_WATCH_INTERVAL_MS, because the driver itself knows the last second at most. What the device
 * does not tell is not counted; on a CPU there is no thread. A timeline gets every sample.
 */

enum { USAGE_WATCH_INTERVAL_MS = 100 };

/* A sample with less utilization counts as idle. */
#define USAGE_WATCH_IDLE 0.1

struct usage_watch;

/* Sums, so that several devices' can be added. */
struct usage_samples {
    double count, idle; /* samples with a utilization; of them, those below USAGE_WATCH_IDLE */
    double utilization; /* their sum */
};

/* What was sampled since the last call, or since usage_watch_new; zeros for NULL. */
struct usage_samples usage_watch_take(struct usage_watch *watch);

/* Ends the thread. Sets *watch to NULL; NULL is fine. */
void usage_watch_free(struct usage_watch **watch);

/*
 * One line on the terminal that says how far training is, redrawn at most ten times a second:
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
    bool drawn;           /* a line stands there that has no end yet */
    int64_t drawn_at_ns;  /* time of the last redraw */
    int64_t marked_at_ns; /* start of the interval that the next rate is taken over; 0 = none */
    uint64_t marked_step; /* steps done by then, over all epochs */
    double step_s;        /* seconds a step, smoothed; 0 = not known yet */
};

/* What one line shows. */
struct progress_view {
    uint64_t epoch, epochs;         /* epoch counts from 1 here, as people do */
    uint64_t step, steps_per_epoch; /* steps done in this epoch */
    double loss;                    /* NAN: there is none */
    double images_per_s;            /* <= 0: not known yet */
    double eta_s;                   /* < 0: not known yet */
};

void progress_init(struct progress *progress, const struct progress_options *options);

/*
 * To be called after every step; cheap when nothing is to be drawn. `epoch` and `step` count from
 * 0; `now_ns` is clock_now_ns().
 */
void progress_update(struct progress *progress, int64_t now_ns, uint64_t epoch, uint64_t step,
                     double loss);

/*
 * Removes the line, so that a message can be printed in its place. Time until the next update is
 * left out of the rate (an evaluation or a checkpoint is not a step).
 */
void progress_clear(struct progress *progress);

/* Writes the line's text (no control characters, cut to `size` - 1 bytes). Pure. */
void progress_format(const struct progress_view *view, char *line, size_t size);

/* What a run tells: rows of --metrics, lines on stdout, and what is counted for them. */

struct trainer;

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

/* Processor time of this machine, where this rank watches it, and of this process. */
struct report_cpus {
    struct cpu_watch waits; /* while steps waited for averaging, where they waited for long */
    struct cpu_watch steps; /* of whole steps */
    struct cpu_time own;    /* since the interval's first step */
    double process_s;       /* of this process, in the intervals that have ended */
};

struct report {
    struct csv *metrics; /* rank 0, with --metrics */
    struct progress progress;
    struct interval interval;
    struct step_times times;              /* of the interval */
    struct report_cpus cpus;              /* of the interval */
    struct report_cpus run_cpus;          /* of all intervals that have ended */
    struct device_usage usage;            /* worker 0: as the interval's last step ended */
    struct usage_watch *usage_watch;      /* NULL: this worker's device tells nothing */
    struct usage_samples usage_samples;   /* of the interval; of the last row: of all workers */
    double trained_s;                     /* worker 0: in steps, since the run began */
    double times_median[STEP_TIME_KINDS]; /* of the last row, ms; so the following */
    double images_per_s;
    struct bottleneck bottleneck;
    struct bottleneck_facts facts; /* of all steps, as the next four. In ms a step: */
    struct bottleneck_rank *ranks; /* (workers): the rows' medians, averaged over the steps */
    uint64_t judged_steps;         /* that are in them */
    struct bottleneck run_bottleneck;
    char bottleneck_text[400];
    uint64_t images;               /* train_images, at the last row */
    uint64_t images_before;        /* of the run, before this process */
    struct comm_progress *reached; /* (workers): where servers update; else NULL */
    char weights_sha256[SHA256_HEX_SIZE];
};

/* Makes room for the times of `steps` steps and, on rank 0, opens --metrics. */
enum status train_report_open(struct trainer *t, uint64_t steps);
void train_report_close(struct trainer *t);

/* The first lines, the last ones: on rank 0. */
void train_report_start(const struct trainer *t);
void train_report_end(const struct trainer *t, const struct test_result *test);

/* Images that the run's weights have been trained on, not those that late workers left out or
 * servers had no use for; where these own the parameters, as of train_gather_progress. */
uint64_t train_images(const struct trainer *t);

/* Collective over the workers. Closes the interval; `test` NULL: not tested. */
enum status train_report(struct trainer *t, const struct test_result *test);

struct trainer;

/* A step on this process's share of the data: forward, backward, average, update. To `loss` are
 * added those that have become known, oldest first: of this step, or of earlier ones where the
 * device is behind. */
typedef enum status train_step_function(struct trainer *t, struct net_loss *loss);

/* What a step of virtual workers keeps, in host memory; NULL elsewhere. */
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
    struct gradient_sync sync;
    struct updater updater; /* where this process has a server that updates */
    struct straggler straggler;
    struct virtual_workers virtual;

    /* Where the run stands. */
    train_step_function *step_once;
    uint64_t steps_per_epoch, total_steps;
    uint64_t step;                 /* done, over all epochs */
    uint64_t step_images;          /* of the running step, on this process */
    struct range_sum whole;        /* of the running step; its other sums: batches, sync */
    int64_t comm_busy_ns;          /* comm_busy_ns where it began */
    uint64_t first_step;           /* of this process: those before it were done by another run */
    struct position start;         /* all 0, but in a later generation of an elastic job */
    struct generation *generation; /* of an elastic job; NULL: the job is none */
    struct checkpoint *resumed;    /* rank 0, from train_load to train_share_state */
    bool target_reached;           /* the last test reached --target-accuracy */
    struct stop stop;
    bool stop_said; /* when this worker will stop, where that is not at once */
    struct report report;
    struct timeline *timeline; /* NULL: none is asked for */
};

/* setup.c. A failure that all ranks meet alike is logged by rank 0 only. */
enum status trainer_open(struct trainer *t, const struct config *config, struct world *world,
                         struct generation *generation);
void trainer_close(struct trainer *t);
size_t trainer_rank(const struct trainer *t); /* among the processes that are workers */

/* setup.c. Servers and paced workers need the net only for the sizes of its layers. */
size_t trainer_batch_max(const struct trainer *t); /* images that the net has room for */
/* Images that this process, with all its virtual workers, sees in a step. */
uint64_t trainer_step_images(const struct trainer *t);
/* Whether an epoch may end with a step of fewer images (--last-batch partial). */
bool trainer_joins(const struct trainer *t);
/* Batches that loaders make ahead. */
size_t trainer_prefetch(const struct trainer *t);

/* train_checkpoint.c. The epoch that step number `step` (from 0) belongs to, and how many steps are
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

/* train.c, step.c */
train_step_function train_step_real, train_step_paced, train_step_virtual;
/* A step begins: its times are 0. */
enum status step_begin(struct trainer *t);
/* It ends. Adds it, and `loss`, what became known of losses in it, to the interval; with NULL it
 * has failed, and is in none. Returns when it ended, by clock_now_ns. */
int64_t step_end(struct trainer *t, const struct net_loss *loss);
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

/* train_checkpoint.c, all collective over the workers. */
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
