/*
 * One generation of an elastic job (experiments/elastic/member.h) as training sees it. It begins at
 * the position where the previous generation ended, with worker 0's weights and optimizer. It ends
 * when a worker wants to join or leave, after the same step on all workers.
 *
 * No step is lost or done twice. A worker applies the gradients of a step only when it has the
 * averages of all buckets. After an error, each worker's weights therefore match a whole number of
 * steps, and the workers are at most one step apart. The next generation continues with the weights
 * of a worker that has done the most steps. The position counts images. An epoch deals each image
 * once, for any number of workers.
 */
#ifndef PSRING_EXPERIMENTS_TRAIN_GENERATION_H
#define PSRING_EXPERIMENTS_TRAIN_GENERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/data/dataset.h"
#include "experiments/train/stop.h"

struct config;
struct group;
struct trainer;
struct world;

/* Sent as raw bytes. */
struct position {
    uint64_t step;         /* steps done since the run began, like the next two */
    uint64_t images;       /* of all workers, contained in the weights */
    double trained_s;      /* time in steps */
    uint64_t epoch;        /* from 0: the first epoch whose test is not done */
    uint64_t epoch_images; /* of that epoch, already dealt */
};

struct member;

/* The state that a process keeps from one generation to the next. */
struct generation {
    /* Lent by experiments/elastic, which knows the job's other members. `watch` calls
     * interrupt(context) when a member is lost, until interrupt is NULL. `asked_until` returns the
     * step after which the generation ends because workers join; UINT64_MAX: no worker wants to
     * join. Without servers both are NULL: the world knows. */
    struct member *member;
    void (*watch)(struct member *member, void (*interrupt)(void *context), void *context);
    uint64_t (*asked_until)(const struct member *member);
    uint64_t leave_after; /* the last step that this worker takes part in; UINT64_MAX: all */
    struct stop stop;     /* the owner calls stop_init and stop_fini */

    struct position start; /* of this generation, from worker 0 */
    struct position own;   /* the position that `weights` belong to */
    float *weights;        /* in host memory, like the optimizer's `state`; NULL: none yet */
    float *state;
    size_t weight_count, state_count;
    uint64_t own_images;     /* of this process, contained in the weights */
    struct dataset *dataset; /* stays open */

    bool shared;     /* the trainer holds this generation's weights */
    bool began;      /* has held weights in some generation */
    bool described;  /* this process has printed how the job trains */
    uint64_t closed; /* number of epochs whose test is done */
    uint64_t until;  /* all workers have agreed to end after this step; UINT64_MAX: not yet */
};

/* Frees the kept state. */
void generation_fini(struct generation *generation);

/* Allocates those of the two arrays that are missing, for the counts. Errors: logged. */
enum status generation_allocate(struct generation *generation);
/* The kept arrays and their position become those of `from`, which loses its arrays. */
void generation_take(struct generation *generation, struct generation *from);
/* Collective over a group of two: its rank 0 gets the state that the other rank keeps. `held` has
 * the counts and the position of that state, on both. After an error rank 0 keeps its own. */
enum status generation_fetch(struct generation *generation, struct world *world,
                             const struct group *group, const struct generation *held);

/* The largest number of workers with which an epoch has a step; 0: any number. */
int generation_workers_most(const struct config *config, const struct dataset *dataset);

/* For setup.c, in this order. The trainer begins at generation->start. */
void generation_start(struct trainer *t);
enum status generation_restore(struct trainer *t); /* uploads the kept weights, if there are any */
void generation_watch(struct trainer *t);          /* lets a lost worker interrupt the exchange */
void generation_end(struct trainer *t);            /* keeps the state for the next generation */

/* For train.c. From this call on, weights and optimizer are worker 0's. */
void generation_shared(struct trainer *t);
/* Collective over the workers, after a step, at the intervals of stop_agree. */
enum status generation_agree(struct trainer *t);
/* Notes that the test of all epochs up to t->step is done. / Whether the last epoch's test is
 * missing. This happens if the workers changed and the images left in the epoch make no whole step
 * for them. */
void generation_closed(struct trainer *t);
bool generation_owes(const struct trainer *t);
/* Whether the generation ends here. False if the job is not elastic. */
bool generation_ends(const struct trainer *t);

#endif
