/*
 * A worker's steps where servers own the parameters: from what their answers say follow its next
 * step and its progress. Pure.
 */
#ifndef PSRING_PS_STEPS_H
#define PSRING_PS_STEPS_H

#include "common/comm/updates/consistency.h"
#include "common/net/transport/message.h"

struct steps {
    struct comm_progress progress;
    uint64_t end; /* where all meet */

    /* Of the running step. */
    size_t buckets;                   /* that are done */
    uint64_t answers, late, elements; /* late: elements that were */
    uint16_t staleness;               /* the most */
    uint16_t ahead_least, ahead_most;
};

/* The worker goes on with `step`; all meet again at `end`. */
void steps_begin(struct steps *steps, uint64_t step, uint64_t end);

/* An answer to a push has come. */
void steps_answered(struct steps *steps, const struct message *answer);

/* All answers of the step have: returns the next one. */
uint64_t steps_next(struct steps *steps, const struct consistency *consistency);

#endif
