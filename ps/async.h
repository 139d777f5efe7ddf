/*
 * Servers that own the parameters: the policy of the server, which is server.c otherwise, the rules
 * that it follows, and a worker's steps.
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
 * When a server applies a push, and when it answers it: two rules, for all kinds of consistency.
 * Pure: what has come from whom goes in, an answer comes out.
 *
 * A worker that pushes the gradients of step c wants the parameters for step c + 1. Per chunk a
 * server keeps a *clock* of each worker: the steps before it are pushed, or left out.
 *
 *     mode             a push of step c is applied      it is answered
 *     bsp              with the others of step c, once   once W have pushed c
 *                      W have pushed it
 *     bsp, B backups   the same, once W - B have         once W - B have pushed c
 *     ssp:S            at once                           once W have pushed c - S
 *     async            at once                           at once
 *
 * With B backups what comes for a step that is over is dropped. Sources: Valiant 1990, "A bridging
 * model for parallel computation" (bsp); Ho et al. 2013, "More effective distributed ML via a stale
 * synchronous parallel parameter server" (ssp); Chen et al. 2016, "Revisiting distributed
 * synchronous SGD" (backup workers); Dean et al. 2012, "Large scale distributed deep networks"
 * (async).
 */

struct async_rules {
    int to_apply;   /* workers that must have pushed a step before it is applied */
    int to_answer;  /* workers that must have come as far before an answer, */
    uint64_t slack; /* less so many steps */
    bool alone;     /* each push is applied by itself */
};

/* The clock of a worker that has left: it holds nobody back. */
#define ASYNC_LEFT UINT64_MAX

struct async_rules async_rules_of(const struct consistency *consistency, int workers);

/* clocks (workers): after a push of `step` has come. */
bool async_may_apply(const struct async_rules *rules, const uint64_t *clocks, int workers,
                     uint64_t step);
bool async_may_answer(const struct async_rules *rules, const uint64_t *clocks, int workers,
                      uint64_t step);

/*
 * The step that a worker goes on with that would do `next`, where the first of them all is at
 * `first`. `end`: where all meet; who sees another one there goes there. Without late_steps it is
 * `next`, always, as in Ho et al. 2013: then nobody leaves anything out, and the first wait.
 */
uint64_t async_next_step(const struct consistency *consistency, uint64_t next, uint64_t first,
                         uint64_t end);

/*
 * A worker's steps where servers own the parameters: from what their answers say follow its next
 * step and its progress. Pure.
 */

struct async_steps {
    struct comm_progress progress;
    uint64_t end; /* where all meet */

    /* Of the running step. */
    size_t buckets;                   /* that are done */
    uint64_t answers, late, elements; /* late: elements that were */
    uint16_t staleness;               /* the most */
    uint16_t ahead_least, ahead_most;
};

/* The worker goes on with `step`; all meet again at `end`. */
void async_steps_begin(struct async_steps *steps, uint64_t step, uint64_t end);

/* An answer to a push has come. */
void async_steps_answered(struct async_steps *steps, const struct message *answer);

/* All answers of the step have: returns the next one. */
uint64_t async_steps_next(struct async_steps *steps, const struct consistency *consistency);

#endif
