/*
 * Buckets of a device with memory of its own (a GPU), for backends that average host memory: each
 * has a place in host memory that the device copies to and from by itself (pinned).
 *
 *     compute stream   backward ... bucket 0 |  ... bucket 1 |                    | update
 *     copy stream                            [down 0]        [down 1]  [up 0][up 1]
 *     host                                         allreduce 0   allreduce 1
 *
 * Nothing is copied before it is computed or used before it is copied, and the host waits only for
 * the copy of the bucket that it is about to average (staging_arrive), on whichever thread does it.
 * Cost: a bucket's bytes down and up once.
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

/* For `buckets` buckets of counts[b] floats each. Borrows the device until staging_free. */
enum status staging_new(struct staging **staging, struct device *device, const size_t *counts,
                        size_t buckets);
/*
 * In place: for a backend whose library reads and writes the device's memory by itself. The same
 * calls then order that memory's use, and nothing is copied: staging_down returns `data`,
 * staging_arrive waits until it is computed, staging_up multiplies what has been averaged by
 * `scale`, which such a library does not do.
 */
enum status staging_new_in_place(struct staging **staging, struct device *device,
                                 const size_t *counts, size_t buckets, float scale);
void staging_free(struct staging **staging);

/* Device's thread, does not wait: `data` (device memory) is copied once what the operations asked
 * for so far has been done. Returns the bucket's host memory. */
float *staging_down(struct staging *staging, size_t bucket, float *data);

/* Any thread, between staging_down and staging_up: waits until the bucket's host memory is there.
 */
enum status staging_arrive(struct staging *staging, size_t bucket);

/* Device's thread, does not wait: the host memory goes back to where it came from, before whatever
 * the device is asked for next. */
void staging_up(struct staging *staging, size_t bucket);

/* Time spent in staging_arrive so far, in ns; for the thread that calls it, or between steps. */
int64_t staging_waited_ns(const struct staging *staging);

/* What a comm keeps for one layout of buckets, from one comm_plan to the next. */

/* A bucket, and what profilers and timelines call it on its way, and its averaging. */
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
    struct comm_layout layout; /* our copy, with the scale that is left to the backend */
    size_t *counts, *order;
    size_t next;                 /* (with order) which entry of it is averaged next */
    struct comm_bucket *buckets; /* (layout.buckets) */
    struct overlap overlap;      /* its tasks are the buckets */
    struct staging *staging;     /* NULL: buckets are averaged where they are */
    struct comm_counters before;
    bool running; /* not finished */
};

/* A communicator: comm.c opens and closes it, plans and averages. */

struct comm {
    const struct backend *backend;
    struct comm_place place;
    struct backend_env worker_site, server_site;
    void *self, *server;         /* the backend's two sides, */
    bool self_open, server_open; /* where this process has them */
    struct comm_plan plan;

    struct thread server_thread; /* colocated; runs for one plan */
    enum status server_status;   /* of that thread, once it has ended or failed */
    _Atomic bool server_failed;
};

/* Workers: their servers stand still, and a colocated one's thread has ended, from here until
 * comm_go_on. No bucket is on its way. */
enum status comm_pause(struct comm *comm);
enum status comm_go_on(struct comm *comm);

#endif
