/*
 * Servers that own the parameters: which consistency they keep, what they do with a gradient, and
 * how far a worker is. Read ps/async.h for when a server applies a push and answers a pull.
 *
 * A worker's *clock* is the step that it is at. Where workers do not wait for each other, their
 * clocks differ; a worker that is late leaves out the steps that it has missed, if late_steps says
 * so: then it neither holds the others back for ever nor ends the run long after them.
 */
#ifndef PSRING_COMMON_COMM_COMM_OPTIONS_H
#define PSRING_COMMON_COMM_COMM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/base/util.h"
#include "common/comm/compress.h"
#include "common/comm/reduce.h"
#include "common/device/device.h"
#include "common/net/transport/transport.h"
#include "common/net/topology.h"

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

/* Whether such a server applies each push by itself. If not, it applies the pushes of a step
 * together, as their mean. */
static inline bool consistency_applies_each(const struct consistency *consistency)
{
    return consistency->kind != CONSISTENCY_BSP;
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

/*
 * What a comm is told, by callers, and what backends read of it: the options of its connections,
 * for its whole life, and the layout of a plan, which can be replaced by another one.
 */

struct host_groups; /* ring/hierarchical.h */

/* How a backend uses the library that it brings. The same on all ranks but for `log`. */
struct comm_library {
    bool share_gpu;        /* several ranks may have one GPU */
    const char *algorithm; /* "ring", say, which it must use; NULL: its own choice. Borrowed. What
                              does otherwise by its own account is STATUS_WRONG */
    bool registers;        /* it is told where buckets lie (comm_layout.memory), or nothing goes */
    int log;               /* descriptor of the file that it logs to; 0: none */
};

struct comm_options {
    enum transport_kind transport;
    int servers; /* as topology_init has them */
    enum placement placement;
    /* The workers that average among themselves; NULL: all. Each group of a world has comms of its
     * own, but all ranks open them together. Borrowed until comm_close. Servers serve all workers:
     * with them, only NULL. */
    const struct group *group;
    enum reduce_order reduce_order;
    size_t segment_bytes; /* of a message, at most; 0: chosen (ring/schedule, ps/shard) */
    int window; /* chunks that a worker may have unanswered with a server; 0: chosen (ps/shard) */
    /* NULL: float32, summed and multiplied by comm_layout.scale. Else what elements are and what is
     * done with them; then nothing is compressed. */
    const struct reduction *reduction;
    enum compress compress;
    bool error_feedback; /* with compress: see compress.h */
    /* Whether servers own the parameters; then every rank with a server has an updater, borrowed
     * until comm_close, and of the buckets only the gradients are compressed. */
    struct consistency consistency;
    const struct comm_updater *updater;
    size_t bucket_counts_max; /* no bucket of any plan has more elements */
    const char *subnet;       /* "10.0.0.0/24": interface to use; NULL: chosen. Borrowed. */
    int64_t timeout_ms;       /* a peer silent for longer is an error */
    int64_t stall_warning_ms; /* and for so long is warned of where no watchdog watches; 0: no */
    struct device *device; /* in whose memory buckets are; NULL: the host's. Borrowed until close */
    struct comm_library library;
    /* What a host's link is said to carry each way; 0: not known. Bounds what is on the
     * way (ps/shard). The same on all ranks. */
    double link_bytes_per_s;
    /* libpsring: in a program that lives on after an error (transport.h). Elements are of any type.
     */
    bool embedded;
    /* (hierarchical) The groups of its plans, of which one at a time averages, opened for vectors
     * as long as theirs. NULL: its own. Borrowed. */
    struct host_groups *host_groups;
};

/* What is averaged: the same on all ranks of a comm. */
struct comm_layout {
    const size_t *counts; /* (buckets): elements of each; copied */
    size_t buckets;
    /* (optional, on all ranks or none) The memory that all buckets will be in, and its floats: the
     * same in every step. The device's where comm_options.device has its own. Borrowed until
     * comm_finish. */
    float *memory;
    size_t memory_count;
    float scale;  /* multiplies the sum; 1/workers gives the average. Fused. */
    bool overlap; /* average on a thread of its own, while the caller computes */
    /* (only with overlap) all buckets, as that thread is to take them. Every one is started as
     * often as the others. NULL: as started. Copied. */
    const size_t *order;
};

#endif
