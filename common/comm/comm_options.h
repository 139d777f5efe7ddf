/*
 * What a comm is told, by callers, and what backends read of it: the options of its connections,
 * for its whole life, and the layout of a plan, which can be replaced by another one.
 */
#ifndef PSRING_COMMON_COMM_COMM_OPTIONS_H
#define PSRING_COMMON_COMM_COMM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/comm/elements/compress.h"
#include "common/comm/updates/consistency.h"
#include "common/comm/reduce_order.h"
#include "common/comm/elements/reduction.h"
#include "common/device/device.h"
#include "common/net/world/topology.h"
#include "common/net/transport/transport.h"

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
    int64_t stall_warning_ms; /* and for so long is warned of where no lifeline watches; 0: no */
    struct device *device; /* in whose memory buckets are; NULL: the host's. Borrowed until close */
    struct comm_library library;
    /* What a host's link is said to carry each way; 0: not known. Bounds what is on the
     * way (ps/shard). The same on all ranks. */
    double link_bytes_per_s;
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
