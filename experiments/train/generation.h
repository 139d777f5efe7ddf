/*
 * One generation of an elastic job (experiments/elastic/member.h) as training sees it: it begins
 * at the position where the last one has ended, with worker 0's weights and optimizer, and ends
 * after the same step for all when somebody wants to join or to leave.
 *
 * No step is lost or done twice: a worker applies the gradients of a step when it has the averages
 * of all its buckets, or not at all. So after an error each worker's weights are those after a
 * whole number of steps, and the workers are at most one step apart. The next generation goes on
 * from the weights of one that has done most; the position counts in images, of which an epoch
 * deals each once, to however many workers there are.
 */
#ifndef PSRING_EXPERIMENTS_TRAIN_GENERATION_H
#define PSRING_EXPERIMENTS_TRAIN_GENERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/data/dataset.h"
#include "experiments/train/stop.h"

struct trainer;

/* Travels as it lies in memory. */
struct position {
    uint64_t step;         /* done, since the run began; so the next two */
    uint64_t images;       /* of all workers, that are in the weights */
    double trained_s;      /* spent in steps */
    uint64_t epoch;        /* from 0: the first whose test is not done */
    uint64_t epoch_images; /* of it, that have been dealt */
};

struct member;

/* What a process keeps from one generation to the next. */
struct generation {
    /* What experiments/elastic knows of the job's other members, and lends: `watch` calls
     * interrupt(context) when a member is lost, until interrupt is NULL; `asked_until`: the step
     * after which the generation ends, because workers join; UINT64_MAX: none wants to. */
    struct member *member;
    void (*watch)(struct member *member, void (*interrupt)(void *context), void *context);
    uint64_t (*asked_until)(const struct member *member);
    uint64_t leave_after; /* takes part in no further step; UINT64_MAX: in all */
    struct stop stop;     /* its owner's: stop_init and stop_fini */

    struct position start; /* of this generation: worker 0's */
    struct position own;   /* what `weights` are after */
    float *weights;        /* host memory, as `state`, the optimizer's; NULL: none yet */
    float *state;
    size_t weight_count, state_count;
    uint64_t own_images;     /* of this process, that are in the weights */
    struct dataset *dataset; /* stays open */

    bool shared;     /* the trainer holds this generation's weights */
    uint64_t closed; /* epochs whose test is done */
    uint64_t until;  /* all have agreed to end after that step; UINT64_MAX: not yet */
};

/* Frees what it keeps. */
void generation_fini(struct generation *generation);

/* For setup.c, in this order. The trainer begins at generation->start. */
void generation_start(struct trainer *t);
enum status generation_restore(struct trainer *t); /* the weights, if there are any */
void generation_watch(struct trainer *t);          /* a lost worker interrupts the exchange */
void generation_end(struct trainer *t);            /* keeps what the next one needs */

/* For train.c. Weights and optimizer are worker 0's from here on. */
void generation_shared(struct trainer *t);
/* Collective over the workers, after a step, at the intervals of stop_agree. */
enum status generation_agree(struct trainer *t);
/* The test of all epochs that t->step has ended is done. / The last one's is not: workers have come
 * or been lost since, and what was left of it is no whole step for those who are there. */
void generation_closed(struct trainer *t);
bool generation_owes(const struct trainer *t);
/* Whether it ends here. False where the job is not elastic. */
bool generation_ends(const struct trainer *t);

#endif
