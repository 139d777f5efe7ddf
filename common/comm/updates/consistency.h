/*
 * Servers that own the parameters: which consistency they keep, what they do with a gradient, and
 * how far a worker is. Read ps/async.h for when a server applies a push and answers a pull.
 *
 * A worker's *clock* is the step that it is at. Where workers do not wait for each other, their
 * clocks differ; a worker that is late leaves out the steps that it has missed, if late_steps says
 * so: then it neither holds the others back for ever nor ends the run long after them.
 */
#ifndef PSRING_COMMON_COMM_CONSISTENCY_H
#define PSRING_COMMON_COMM_CONSISTENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/util.h"
#include "common/base/status.h"

enum consistency_kind { CONSISTENCY_BSP, CONSISTENCY_SSP, CONSISTENCY_ASYNC };

struct consistency {
    enum consistency_kind kind;
    uint64_t staleness; /* ssp: by how many steps workers may be apart */
    int backup_workers; /* bsp: so many of the workers' pushes are not waited for */
    /* A worker that is so many steps behind the first one goes on with that one's step; 0: never.
     * Those that are backed up always do. */
    uint64_t late_steps;
};

/* Whether servers own the parameters and apply gradients. If not, they give back sums. */
static inline bool consistency_updates(const struct consistency *consistency)
{
    return consistency->kind != CONSISTENCY_BSP || consistency->backup_workers > 0;
}

/* What a server holds of each bucket: arrays of as many elements as the bucket has. */
enum { COMM_GRADIENTS, COMM_PARAMETERS, COMM_STATES /* and on: the optimizer's state */ };

/*
 * What a server does with gradients, for the caller to fill in: models are above this layer. All is
 * called on the server's thread, which may be one of a worker's process.
 */
struct comm_updater {
    void *context;
    /* Host memory, the bucket's elements; of which the server uses those of its shard. */
    float *(*array)(void *context, size_t bucket, size_t array);
    size_t arrays; /* that there are; COMM_STATES if the optimizer has no state */
    /* Changes those elements of the bucket's parameters by its gradients, as in step `step`. */
    void (*apply)(void *context, size_t bucket, struct chunk span, uint64_t step);
};

enum { COMM_STALENESS_MOST = 64 };

/* How far a worker is, and how fresh what it has got was. */
struct comm_progress {
    uint64_t step;     /* the next one */
    uint64_t done;     /* steps whose gradients it has pushed */
    uint64_t left_out; /* because it was late */
    double dropped;    /* of those done: servers had no use for them any more. Parts of steps count
                          as such */
    /* Steps done by their *staleness*: so many steps of the slowest other worker the parameters
     * lacked that came back. The last one counts all beyond. */
    uint64_t staleness[COMM_STALENESS_MOST + 1];
};

#endif
