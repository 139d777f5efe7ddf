/*
 * Averaging buckets of gradients over the workers: the one interface that trainer and bench see.
 *
 *     comm_open(&comm, world, backend, &options)     all ranks
 *     if (comm_is_server(comm))
 *         comm_serve(comm)                           returns once every worker has finished
 *     else
 *         per step: comm_start(comm, b, data) for each bucket b, then comm_wait(comm, b)
 *         comm_finish(comm)
 *     comm_counters(comm, ...); comm_close(&comm)
 *
 * The layout (how many buckets, how many elements in each) is given at open, the same on all ranks.
 * Between start and wait the bucket's memory belongs to the comm. Threads: all calls from one, the
 * caller's. With `overlap` a second one, the comm's own, does the averaging; else comm_start does.
 */
#ifndef PSRING_COMMON_COMM_COMM_H
#define PSRING_COMMON_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/comm/compress.h"
#include "common/device/device.h"
#include "common/net/topology.h"
#include "common/net/transport.h"
#include "common/net/world.h"

/* In which order the contributions to an element are added (floating point is not associative).
 * ANY: whatever is fastest for the backend. RING: chunk c starts at rank c, then c+1, ... */
enum reduce_order { REDUCE_ORDER_ANY, REDUCE_ORDER_RING };

struct comm_options {
    enum transport_kind transport;
    int servers; /* as topology_init has them */
    enum placement placement;
    enum reduce_order reduce_order;
    float scale;                 /* multiplies the sum; 1/workers gives the average. Fused. */
    const size_t *bucket_counts; /* elements of each bucket; copied */
    size_t buckets;
    size_t segment_bytes; /* 0: chosen from the message size (ring/schedule, ps/shard) */
    int window;           /* segments in flight; 0: chosen */
    enum compress compress;
    bool error_feedback; /* with compress: see compress.h */
    const char *subnet;  /* "10.0.0.0/24": interface to use; NULL: chosen. Borrowed. */
    int64_t timeout_ms;  /* a peer silent for longer is an error */
    bool overlap;        /* average on a thread of its own, while the caller computes */
    /* (only with overlap) all buckets, as that thread is to take them; the same on all ranks. Every
     * one is started as often as the others. NULL: as started. Borrowed until comm_open returns. */
    const size_t *bucket_order;

    /* In whose memory buckets are; NULL: the host's. Borrowed until comm_close. */
    struct device *device;
    int library_log; /* descriptor of the file that the backend's library logs to; 0: none */

    /* What a host's link is said to carry each way; 0: not known. Bounds what is in flight
     * (ps/shard). The same on all ranks. */
    double link_bytes_per_s;
};

/* Payload and headers that crossed the network (traffic inside a process is not counted). */
struct comm_counters {
    struct transport_counters worker; /* of this process's worker, zeros if none */
    struct transport_counters server; /* of this process's server, zeros if none */
};

/* What a backend's two sides get: where they stand and how to talk. */
struct comm_site {
    struct world *world;
    const struct group *workers_group; /* NULL on a dedicated server */
    struct transport *transport;       /* NULL if the backend has none */
    struct topology topology;
    int index; /* which worker, or which server */
    const struct comm_options *options;
};

enum { COMM_ALGORITHM_BYTES = 80 };

/*
 * A backend. `allreduce` is blocking and runs on one thread, which owns the transport; start/wait
 * and the thread of a colocated server are the comm's business, once for all backends.
 */
struct backend {
    const char *name;
    const char *summary;
    const char *unavailable; /* why this build does not have it; NULL where it has */
    bool uses_transport;
    bool uses_servers;
    bool orders_sums;       /* obeys comm_options.reduce_order */
    bool updates_on_server; /* false: a bucket comes back as the scaled sum of gradients */
    bool device_memory;     /* averages buckets where they are, by `start` and `wait`; else those of
                             * a device with memory of its own come through host memory */
    bool needs_mpi;         /* runs only in a world that MPI has opened (world_is_mpi) */
    enum transport_kind default_transport;

    /* A worker's life. `site` stays valid until close. */
    enum status (*open)(void **self, const struct comm_site *site);
    enum status (*allreduce)(void *self, size_t bucket, float *data);
    /* (optional) Whether `allreduce` may be given a GPU's memory, here and now; comm_options.scale
     * is then 1 for the backend, and applied on the GPU. Absent or false: it is given host memory.
     */
    bool (*takes_device_memory)(void);
    enum status (*finish)(void *self); /* (optional) tells servers that this worker is done */
    void (*algorithm)(void *self, char text[COMM_ALGORITHM_BYTES]); /* (optional) comm_algorithm */
    void (*close)(void *self);

    /* (only with device_memory, and then instead of `allreduce`) The host waits in neither. `start`
     * enqueues the averaging of what the operations asked for so far will have computed; `wait`
     * makes the device's later operations come after it. Called on comm_start's thread. */
    enum status (*start)(void *self, size_t bucket, float *data);
    enum status (*wait)(void *self, size_t bucket);

    /* (only with uses_servers) A server's whole life, on a thread of its own where colocated. */
    enum status (*serve)(const struct comm_site *site);
};

struct comm;

/* Collective. Connects, starts a colocated server's thread; from here on the world's collective
 * calls time out, too. `options` is copied. Errors: logged. */
enum status comm_open(struct comm **comm, struct world *world, const struct backend *backend,
                      const struct comm_options *options);

bool comm_is_server(const struct comm *comm); /* dedicated: call comm_serve, nothing else */
int comm_rank(const struct comm *comm);       /* worker index, 0..workers-1 */
int comm_workers(const struct comm *comm);
bool comm_updates_on_server(const struct comm *comm);
bool comm_overlaps(const struct comm *comm); /* whether it averages while the caller computes */
const struct group *comm_group(const struct comm *comm); /* the workers, for world_sum etc. */

enum status comm_serve(struct comm *comm);

/* Hands over bucket `bucket` (its count was given at open): in place, scaled sum over the workers.
 */
enum status comm_start(struct comm *comm, size_t bucket, float *data);
/* Returns once bucket `bucket` holds its result; on a device, what it is asked for next sees it. */
enum status comm_wait(struct comm *comm, size_t bucket);

/* Time spent averaging since comm_open, in ns, on whichever thread; 0 for a backend that averages
 * device memory, which the host does not see. Call it between steps. */
int64_t comm_busy_ns(const struct comm *comm);

/* Worker 0's data to all workers / all workers have arrived. Not counted as gradient bytes. */
enum status comm_broadcast(struct comm *comm, float *data, size_t count);
enum status comm_barrier(struct comm *comm);

/* Workers: no more buckets will follow; joins a colocated server. After it counters are final. */
enum status comm_finish(struct comm *comm);
void comm_counters(const struct comm *comm, struct comm_counters *counters);

/* By which of its algorithms a vendor's library went, by its own account, e.g. "ring/simple"; "" if
 * it does not say, or the backend is our own. On worker 0, after comm_finish. */
void comm_algorithm(const struct comm *comm, char text[COMM_ALGORITHM_BYTES]);

/* Frees everything, sets *comm to NULL. Without a comm_finish before: returns once no bucket is in
 * use any more, at the latest after the time-out, and connections are cut. */
void comm_close(struct comm **comm);

#endif
