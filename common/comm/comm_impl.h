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

/*
 * Averaging on a thread of its own, so that buckets travel while the caller computes the next ones.
 * The thread does one bucket at a time, since their bytes share one link: in the order of
 * overlap_start, or in one that was given, because all ranks must take the same.
 */

struct overlap;

/* What the thread does with a bucket. */
typedef enum status overlap_function(void *context, size_t bucket, float *data);

/* Starts the thread. At most `buckets` buckets, numbered from 0, are under way at a time. `order`:
 * all of them as they are to be done, round after round, whenever they are started; copied. NULL:
 * as started. */
enum status overlap_new(struct overlap **overlap, overlap_function *work, void *context,
                        size_t buckets, const size_t *order);

/* Hands a bucket over; returns at once. Its memory is the thread's until overlap_wait. */
void overlap_start(struct overlap *overlap, size_t bucket, float *data);

/* Returns once the bucket is done, with its status. After a failure no further bucket is begun. */
enum status overlap_wait(struct overlap *overlap, size_t bucket);

/* Time that the thread has spent working since overlap_new, in ns. Call it between steps. */
int64_t overlap_busy_ns(struct overlap *overlap);

/* Ends the thread once it has done what was started. Frees *overlap, sets it to NULL. */
void overlap_free(struct overlap **overlap);

/* What a comm keeps for one layout of buckets, from one comm_plan to the next. */

/* What profilers and timelines call a bucket on its way, and its averaging. */
struct bucket_ranges {
    char name[32], allreduce[48];
    struct range open; /* between start and wait */
    uint64_t step;     /* the caller's, at the start */
};

struct comm_plan {
    struct comm_layout layout; /* our copy, with the scale that is left to the backend */
    size_t *counts, *order;
    bool *started; /* by bucket: between start and wait */
    struct bucket_ranges *ranges;
    struct overlap *overlap; /* NULL: comm_start does the work */
    struct staging *staging; /* NULL: buckets are averaged where they are */
    int64_t busy_ns;         /* without overlap */
    struct comm_counters before;
    bool running; /* not finished */
};

/* A communicator: comm.c opens and closes it, plans and averages. */

struct comm {
    const struct backend *backend;
    struct comm_options options; /* final before the backend sees them */
    struct world *world;
    struct group *own_group;        /* all workers, where the caller named none */
    const struct group *everyone;   /* who plans together: NULL is the world */
    int *hosts;                     /* see comm_hosts */
    struct transport *endpoints[2]; /* by enum node_role; NULL where this process hosts none */
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
