/* What a run tells: rows of --metrics, lines on stdout, and what is counted for them. */
#ifndef PSRING_EXPERIMENTS_TRAIN_TRAIN_REPORT_H
#define PSRING_EXPERIMENTS_TRAIN_TRAIN_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/csv.h"
#include "common/base/sha256.h"
#include "common/base/status.h"
#include "common/comm/comm_options.h"
#include "common/device/device.h"
#include "experiments/measure/cpu.h"
#include "experiments/step/usage_watch.h"
#include "common/obs/progress.h"
#include "experiments/timeline/bottleneck.h"
#include "experiments/step/step_times.h"

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

#endif
