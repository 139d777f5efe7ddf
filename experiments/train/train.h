/* psring train: data-parallel training, the same program on every rank. */
#ifndef PSRING_EXPERIMENTS_TRAIN_TRAIN_H
#define PSRING_EXPERIMENTS_TRAIN_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/topology.h"
#include "common/net/world.h"
#include "experiments/config/config.h"

/*
 * Trains as `config` says. Every rank of `world` calls it, including dedicated servers. Rank 0
 * reports a progress line on a terminal and a line per epoch on stdout. At the end it reports the
 * accuracy, the weights' SHA-256 (checked to be the same on all workers) and the median times.
 * Errors: one rank has logged the error. All ranks return STATUS_USAGE together. After any other
 * error the caller must end the other ranks (world_abort), because they wait. STATUS_DIVERGED if
 * the loss is not finite. STATUS_STOPPED, on all ranks, if a signal ended the run early and its
 * state is saved (stop.h).
 */
enum status train_run(struct config *config, struct world *world);

/* Checks that a folder of images is given if the run needs one. Needs no world. STATUS_USAGE:
 * logged. */
enum status train_check_data(const struct config *config);

/*
 * Records a timeline for the trainer (--timeline). config->recorder points to it; experiments/trace
 * implements it if the build has that satellite. `open` and `write` are collective over the world.
 * Their errors are logged.
 */
struct timeline;
struct bottleneck_facts;

struct timeline_options {
    const char *file;                /* on rank 0; borrowed */
    uint64_t first_step, end_step;   /* steps of this run, from 0; `end_step` is excluded */
    const struct topology *topology; /* borrowed */
    bool in_step;                    /* all workers take each step together */
};

struct timeline_recorder {
    /* Call between steps. Empties the file, measures clocks, starts recording. */
    enum status (*open)(struct timeline **timeline, struct world *world,
                        const struct timeline_options *options);
    /* Call when no other thread adds ranges. Rank 0 writes the file and warns about events that
     * were dropped because buffers were full. `facts`, on rank 0, are those of the run's
     * bottleneck, or NULL. */
    enum status (*write)(struct timeline *timeline, const struct bottleneck_facts *facts);
    /* Ends the recording. Sets *timeline, which may be NULL, to NULL. */
    void (*close)(struct timeline **timeline);
};

struct generation;

/* Like train_run, for one generation of an elastic job: see generation.h. STATUS_STOPPED: a worker
 * joins or leaves, and training continues in the next generation. */
enum status train_generation(struct config *config, struct world *world,
                             struct generation *generation);

#endif
