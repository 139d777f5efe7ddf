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
 * Trains as `config` says; every rank of `world` calls it, dedicated servers included. Rank 0
 * reports: a progress line on a terminal, else a line per epoch on stdout; then accuracy, the
 * weights' SHA-256 (checked to be the same on all workers) and the median times. An error has been
 * logged by one rank. STATUS_USAGE is met by all ranks alike; after any other error the other ranks
 * must be ended (world_abort), because they wait. STATUS_DIVERGED if the loss leaves the finite
 * numbers. STATUS_STOPPED, on all ranks, if a signal has ended the run early and its state is saved
 * (stop.h).
 */
enum status train_run(struct config *config, struct world *world);

/* That images have a folder where the run needs them. Needs no world. STATUS_USAGE: logged. */
enum status train_check_data(const struct config *config);

/*
 * What records a timeline for the trainer (--timeline): config->recorder, which is
 * experiments/trace where this build has it. `open` and `write` are collective over the world.
 * Their errors are logged.
 */
struct timeline;
struct bottleneck_facts;

struct timeline_options {
    const char *file;                /* on rank 0; borrowed */
    uint64_t first_step, end_step;   /* of this run, from 0: from the one to before the other */
    const struct topology *topology; /* borrowed */
    bool in_step;                    /* all workers are in one step, or wait for it */
};

struct timeline_recorder {
    /* Between steps. Empties the file, measures clocks, begins to record. */
    enum status (*open)(struct timeline **timeline, struct world *world,
                        const struct timeline_options *options);
    /* Once no other thread tells of ranges. Rank 0 writes the file, and says of what there was no
     * room for. `facts` are those of the run's bottleneck, on rank 0, or NULL. */
    enum status (*write)(struct timeline *timeline, const struct bottleneck_facts *facts);
    /* Ends the recording. Sets *timeline, which may be NULL, to NULL. */
    void (*close)(struct timeline **timeline);
};

struct generation;

/* The same for one generation of an elastic job: see generation.h. STATUS_STOPPED: somebody joins
 * or leaves, and training goes on in the next one. */
enum status train_generation(struct config *config, struct world *world,
                             struct generation *generation);

#endif
