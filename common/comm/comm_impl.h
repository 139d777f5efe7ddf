/*
 * Staging: host copies of a GPU's buckets, for backends that average host memory. Each bucket has
 * pinned host memory, from and to which the device copies directly.
 *
 *     compute stream   backward ... bucket 0 |  ... bucket 1 |                    | update
 *     copy stream                            [down 0]        [down 1]  [up 0][up 1]
 *     host                                         allreduce 0   allreduce 1
 *
 * Nothing is copied before it is computed or used before it is copied. The averaging thread waits
 * only for the copy of the bucket that it is about to average (staging_arrive). Cost: each bucket's
 * bytes down and up once.
 */
#ifndef PSRING_COMMON_COMM_COMM_IMPL_H
#define PSRING_COMMON_COMM_COMM_IMPL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/base/thread.h"
#include "common/comm/backend.h"
#include "common/comm/comm.h"
#include "common/comm/comm_parts.h"
#include "common/device/device.h"
#include "common/base/range.h"

struct staging;

/*
 * For `buckets` buckets of counts[b] floats each. Borrows the device until staging_free.
 *
 * In place: for a backend whose library accesses device memory directly. The same calls then only
 * order that memory's use and copy nothing:
 * - staging_down returns `data`
 * - staging_arrive waits until it is computed
 * - staging_up multiplies the result by `scale`, because the library does not
 */
enum status staging_new(struct staging **staging, struct device *device, const size_t *counts,
                        size_t buckets, bool in_place, float scale);
void staging_free(struct staging **staging);

/* Queues a copy of `data` (device memory) after the operations queued so far, and returns the
 * bucket's host memory. Device's thread; does not wait. */
float *staging_down(struct staging *staging, size_t bucket, float *data);

/* Waits until the bucket's host memory is filled. Any thread, between staging_down and
 * staging_up. */
enum status staging_arrive(struct staging *staging, size_t bucket);

/* Queues the copy back to where the data came from, before the device's next operations. Device's
 * thread; does not wait. */
void staging_up(struct staging *staging, size_t bucket);

/* Time spent in staging_arrive so far, in ns. Call it on the thread of staging_arrive or between
 * steps. */
int64_t staging_waited_ns(const struct staging *staging);

/* The state of a comm for one layout of buckets, from one comm_plan to the next. */

/* A bucket, with the names of its path and its averaging in profilers and timelines. */
struct comm_bucket {
    struct overlap_task task; /* first */
    float *data;              /* for the averaging thread */
    bool started;             /* between start and wait */
    bool held;                /* started, but others go first (comm_layout.order) */
    char name[32], allreduce[48];
    struct range open; /* between start and wait */
    uint64_t step;     /* the caller's, at the start */
};

struct comm_plan {
    struct comm_layout layout; /* a copy; its scale is the part left to the backend */
    size_t *counts, *order;
    size_t next;                 /* (with order) index of the next entry to average */
    struct comm_bucket *buckets; /* (layout.buckets) */
    struct overlap overlap;      /* its tasks are the buckets */
    struct staging *staging;     /* NULL: buckets are averaged in place */
    struct comm_counters before;
    bool running; /* not finished */
};

/* A communicator: comm.c opens and closes it, plans and averages. */

struct comm {
    const struct backend *backend;
    struct comm_place place;
    struct backend_env worker_site, server_site;
    void *self, *server;         /* the backend's two sides, */
    bool self_open, server_open; /* if this process has them */
    struct comm_plan plan;

    struct thread server_thread; /* of a colocated server; runs for one plan */
    enum status server_status;   /* result of that thread, once it has ended or failed */
    _Atomic bool server_failed;
};

/* Workers: pauses their servers until comm_go_on; the thread of a colocated server has then ended.
 * Requires that no bucket is between start and wait. */
enum status comm_pause(struct comm *comm);
enum status comm_go_on(struct comm *comm);

#endif
