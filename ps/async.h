/*
 * Servers that own the parameters: their struct server_policy (server.h), the rules of that policy,
 * and a worker's steps.
 */
#ifndef PSRING_PS_ASYNC_H
#define PSRING_PS_ASYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/comm/backend.h"
#include "common/comm/comm_options.h"
#include "common/net/transport/message.h"
#include "ps/server.h"

/* The policy of a server that owns the parameters. */
extern const struct server_policy server_async;

/*
 * The rules: when a server applies a push, and when it answers it. They cover all kinds of
 * consistency. Pure: the input is the clocks of all workers, the output is a decision.
 *
 * A worker that pushes the gradients of step c needs the parameters for step c + 1. For each chunk
 * a server keeps a *clock* of each worker: the worker has pushed or skipped all steps before it.
 * A push of step c makes it c + 1. Steps count from the start of the training, also when resumed.
 *
 *     mode             a push of step c is applied      it is answered
 *     bsp              with the others of step c, once   once W have pushed c
 *                      W have pushed it
 *     bsp, B backups   the same, once W - B have         once W - B have pushed c
 *     ssp:S            at once                           once W have pushed c - S
 *     async            at once                           at once
 *
 * With B backup workers, pushes for a finished step are dropped. Sources: Valiant 1990, "A bridging
 * model for parallel computation" (bsp). Ho et al. 2013, "More effective distributed ML via a stale
 * synchronous parallel parameter server" (ssp). Chen et al. 2016, "Revisiting distributed
 * synchronous SGD" (backup workers). Dean et al. 2012, "Large scale distributed deep networks"
 * (async).
 */

struct async_rules {
    int to_apply;   /* workers that must have pushed a step before it is applied */
    int to_answer;  /* workers that must have pushed c - slack before c is answered */
    uint64_t slack; /* in steps */
    bool alone;     /* each push is applied separately */
};

/* The clock of a worker that has left: no worker waits for it. */
#define ASYNC_LEFT UINT64_MAX

struct async_rules async_rules_of(const struct consistency *consistency, int workers);

/* clocks (workers): state after the arrival of a push of `step`. */
bool async_may_apply(const struct async_rules *rules, const uint64_t *clocks, int workers,
                     uint64_t step);
bool async_may_answer(const struct async_rules *rules, const uint64_t *clocks, int workers,
                      uint64_t step);

/*
 * The worker's next step: `next`, or `first`, the step of the first worker. It is `first` if this
 * worker is at least late_steps behind, or with backup workers at any distance. All workers meet at
 * `end`: if another worker is there, this worker jumps there. Staleness bounds still hold, because
 * a skipped step has no update. With late_steps 0 (ssp, async) the result is always `next`, as in
 * Ho et al. 2013. No worker then skips steps, and the first ones wait.
 */
uint64_t async_next_step(const struct consistency *consistency, uint64_t next, uint64_t first,
                         uint64_t end);

/*
 * A worker's steps if servers own the parameters. The answers determine its next step and its
 * progress. Pure.
 */

struct async_steps {
    struct comm_progress progress;
    uint64_t end; /* step at which all workers meet */

    /* State of the running step. */
    size_t buckets;                   /* buckets that are done */
    uint64_t answers, late, elements; /* late: elements of late pushes */
    uint16_t staleness;               /* the largest */
    uint16_t ahead_least, ahead_most;
};

/* The worker continues with `step`. All workers meet again at `end`. The first ones wait there for
 * at most one step of the slowest, if late workers skip steps. */
void async_steps_begin(struct async_steps *steps, uint64_t step, uint64_t end);

/* Records the answer to a push. */
void async_steps_answered(struct async_steps *steps, const struct message *answer);

/* Call after all answers of the step. Returns the next step. */
uint64_t async_steps_next(struct async_steps *steps, const struct consistency *consistency);

#endif
