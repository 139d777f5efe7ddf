/*
 * Servers that own the parameters: their consistency, what they do with a gradient, and a worker's
 * progress. The header ps/async.h states when a server applies a push and answers a pull.
 *
 * A worker's *clock* is its current step. If workers do not wait for each other, their clocks
 * differ. With late_steps, a late worker leaves out the steps that it has missed. It then neither
 * blocks the other workers for ever nor ends the run long after them.
 */
#ifndef PSRING_COMMON_COMM_COMM_OPTIONS_H
#define PSRING_COMMON_COMM_COMM_OPTIONS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/util.h"
#include "common/comm/compress.h"
#include "common/comm/reduce.h"
#include "common/device/device.h"
#include "common/net/transport/transport.h"
#include "common/net/topology.h"

enum consistency_kind { CONSISTENCY_BSP, CONSISTENCY_SSP, CONSISTENCY_ASYNC };

struct consistency {
    enum consistency_kind kind;
    uint64_t staleness; /* ssp: workers may be this many steps apart */
    int backup_workers; /* bsp: number of workers whose pushes are not waited for */
    /* A worker this many steps behind the first worker jumps to that worker's step; 0: never.
     * With backup_workers it always jumps. */
    uint64_t late_steps;
};

/* Whether servers own the parameters and apply gradients. If not, they return sums. */
static inline bool consistency_updates(const struct consistency *consistency)
{
    return consistency->kind != CONSISTENCY_BSP || consistency->backup_workers > 0;
}

/* Whether such a server applies each push separately. If not, it applies the mean of a step's
 * pushes. */
static inline bool consistency_applies_each(const struct consistency *consistency)
{
    return consistency->kind != CONSISTENCY_BSP;
}

/* The arrays that a server holds for each bucket, each with the bucket's elements. */
enum { COMM_GRADIENTS, COMM_PARAMETERS, COMM_STATES /* and on: the optimizer's state */ };

/*
 * How a server applies gradients. The caller fills this in, because models are above this layer.
 * The server's thread makes all calls; it may be a thread of a worker's process.
 */
struct comm_updater {
    void *context;
    /* Host memory of the bucket's elements. The server uses those of its shard. */
    float *(*array)(void *context, size_t bucket, size_t array);
    size_t arrays; /* number of arrays; COMM_STATES if the optimizer has no state */
    /* Updates those elements of the bucket's parameters from its gradients, as in step `step`. */
    void (*apply)(void *context, size_t bucket, struct chunk span, uint64_t step);
};

enum { COMM_STALENESS_MOST = 64 };

/* A worker's progress, and how fresh the parameters were that it received. */
struct comm_progress {
    uint64_t step;     /* the next one */
    uint64_t done;     /* steps whose gradients it has pushed */
    uint64_t left_out; /* steps left out because it was late */
    double dropped;    /* steps done whose gradients the servers discarded; parts of steps count as
                        * fractions */
    /* Steps done by their *staleness*: the number of steps of the slowest other worker that the
     * returned parameters lacked. The last entry counts all larger values. */
    uint64_t staleness[COMM_STALENESS_MOST + 1];
};

/*
 * The options that callers pass and backends read: comm_options for the life of the connections,
 * and comm_layout for one plan.
 */

struct host_groups; /* ring/hierarchical.h */

/* How a backend uses its communication library. Equal on all ranks except `log`. */
struct comm_library {
    bool share_gpu;        /* several ranks may share a GPU */
    const char *algorithm; /* the algorithm it must use, e.g. "ring"; NULL: its choice. Borrowed.
                            * STATUS_WRONG if the library reports another */
    bool registers;        /* the library must register the buckets' memory (comm_layout.memory), or
                            * the run fails */
    int log;               /* descriptor of the library's log file; 0: none */
};

/* Hosts with a longer round trip are distant: their links hold a share of a message. A shorter one
 * passes while a few messages leave a host. */
#define COMM_DISTANT_S 1e-3

/* A distant link of unknown rate counts as this fast, bytes/s: a near link of unknown rate may hold
 * 1.5 MB for 10 ms (ps/shard.c). */
#define COMM_UNKNOWN_BYTES_PER_S 157286400.0

/* The most that comm_bytes_held returns. Products with it fit into a size_t. */
#define COMM_BYTES_HELD_MAX ((size_t)1 << 50)

struct comm_options {
    enum transport_kind transport;
    int servers; /* as for topology_init */
    enum placement placement;
    /* The workers that average with each other; NULL: all. Each group of a world has separate
     * comms, but all ranks open them together. Borrowed until comm_close. With servers only NULL is
     * allowed, because servers serve all workers. */
    const struct group *group;
    enum reduce_order reduce_order;
    size_t segment_bytes; /* longest message; 0: chosen (ring/schedule, ps/shard) */
    int window; /* chunks that a worker may have unanswered at a server; 0: chosen (ps/shard) */
    int radix;  /* (rhd) the most parts that a step cuts a group into, from 2; 0: 2 */
    /* NULL: float32, summed and multiplied by comm_layout.scale. Otherwise the elements' type and
     * the operation on them; compression is then impossible. */
    const struct reduction *reduction;
    enum compress compress;
    bool error_feedback; /* with compress: see compress.h */
    /* Whether servers own the parameters. If so, every rank with a server has an updater, borrowed
     * until comm_close, and only the gradients of the buckets are compressed. */
    struct consistency consistency;
    const struct comm_updater *updater;
    size_t bucket_counts_max; /* the most elements in a bucket of any plan */
    const char *subnet;       /* "10.0.0.0/24": interface to use; NULL: chosen. Borrowed. */
    int64_t timeout_ms;       /* a peer silent for longer is an error */
    int64_t stall_warning_ms; /* a peer silent for this long causes a warning if no watchdog runs;
                               * 0: none */
    struct device *device;    /* device whose memory holds the buckets; NULL: host. Borrowed until
                               * close */
    struct comm_library library;
    /* A host's link, each way, as the user gives it; 0: unknown. comm_open makes it INFINITY if it
     * is unknown and all ranks are on one host, without a link. Decides how a vector is cut and how
     * many bytes are in flight. The same on all ranks. */
    double link_bytes_per_s;
    /* The longest round trip between hosts. comm_open takes the world's (world.h). Below
     * COMM_DISTANT_S nothing depends on it. */
    double round_trip_s;
    /* Each rack_ranks neighbouring ranks reach the others over the uplink of their rack; 0: no
     * racks. The links of a rack's hosts together are `oversubscribed` times as fast as it.
     * Counters and formulas depend on it, and no schedule. */
    int rack_ranks;
    double oversubscribed;
    /* libpsring: the program continues after an error (transport.h). Elements may have any type. */
    bool embedded;
    /* (hierarchical) Groups for its plans, opened for vectors as long as theirs; one plan at a time
     * averages. NULL: the plan opens its own. Borrowed. */
    struct host_groups *host_groups;
};

/*
 * The bytes that a distant link holds for a round trip, in no queue: rate x round trip. It is 0 if
 * all hosts are near, or all ranks are on one host. All ranks must derive the same schedule from
 * it, so they use whole numbers only.
 */
static inline size_t comm_bytes_held(const struct comm_options *options)
{
    double rate =
        options->link_bytes_per_s > 0 ? options->link_bytes_per_s : COMM_UNKNOWN_BYTES_PER_S;
    if (options->round_trip_s < COMM_DISTANT_S || isinf(rate))
        return 0;
    double held = rate * options->round_trip_s;
    return held < (double)COMM_BYTES_HELD_MAX ? (size_t)held : COMM_BYTES_HELD_MAX;
}

/* Links above COMM_FAST_BYTES_PER_S are fast: 1 Gbit/s, and what a nominal rate may exceed. There
 * the processors' work for a message counts, with its wake-ups. Ranks of one host outnumber its
 * cores and copy at about COMM_MEMORY_BYTES_PER_S. Longer pieces than COMM_FAST_PIECE_BYTES_MAX
 * were no faster (ps/measured.csv). */
#define COMM_FAST_BYTES_PER_S 130e6
#define COMM_MEMORY_BYTES_PER_S 5e9
#define COMM_MESSAGE_S 15e-6
#define COMM_MESSAGE_IN_WORKER_S 45e-6 /* of a worker's process that also has a server */
#define COMM_MESSAGE_ONE_HOST_S 50e-6
#define COMM_FAST_PIECE_BYTES_MAX ((size_t)512 << 10)

/*
 * The best length of the pieces of `bytes` bytes on a fast link. K pieces cost K messages, of c =
 * message_s seconds each, and fill the pipeline for 1/K of the bytes/B seconds. Both together are
 * least with pieces of sqrt(bytes B c). It is rounded up to whole elements, because the last ones
 * would need one more piece. 0: the link is slow, or its rate unknown.
 */
static inline size_t comm_fast_piece_bytes(double link_bytes_per_s, double message_s, size_t bytes)
{
    bool one_host = isinf(link_bytes_per_s);
    double rate = one_host ? COMM_MEMORY_BYTES_PER_S : link_bytes_per_s;
    if (rate <= COMM_FAST_BYTES_PER_S || bytes == 0)
        return 0;
    message_s = one_host ? COMM_MESSAGE_ONE_HOST_S : message_s;
    size_t pieces = size_larger(bytes / (size_t)sqrt((double)bytes * rate * message_s), 1);
    size_t piece = size_divide_up(bytes, pieces * sizeof(double)) * sizeof(double);
    return size_smaller(piece, COMM_FAST_PIECE_BYTES_MAX);
}

/* What is averaged. The same on all ranks of a comm. */
struct comm_layout {
    const size_t *counts; /* (buckets): elements of each; copied */
    size_t buckets;
    /* (optional, on all ranks or none) The memory that holds all buckets in every step, and its
     * number of floats. Device memory if comm_options.device has separate memory. Borrowed until
     * comm_finish. */
    float *memory;
    size_t memory_count;
    float scale;  /* multiplies the sum; 1/workers gives the average. Fused. */
    bool overlap; /* average on the comm's thread while the caller computes */
    /* (only with overlap) all buckets, in the order in which that thread takes them. The caller
     * must start each one equally often. NULL: in the order of their starts. Copied. */
    const size_t *order;
};

#endif
