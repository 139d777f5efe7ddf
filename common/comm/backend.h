/*
 * The interface of a backend: a way to average buckets, behind one const table that states its
 * abilities, its cost and its functions. To add one, write its table in a folder of its own and
 * name it in the one list, experiments/config/backends.c. No other code knows backends by name.
 *
 *     open                  once: site->transport is there, peers can be reached
 *     plan                  for a layout of buckets; again for the next one, after finish
 *         allreduce         as often as the caller likes, one at a time
 *         finish            no more buckets of this plan
 *     close
 *
 * Threads: allreduce runs on one thread, which then owns the transport. The comm implements start
 * and wait, overlap, staging of device memory and the thread of a colocated server, once for all
 * backends. A backend must not end the process; it returns failures.
 */
#ifndef PSRING_COMMON_COMM_BACKEND_H
#define PSRING_COMMON_COMM_BACKEND_H

#include "common/comm/comm.h"
#include "common/comm/comm_options.h"
#include "common/comm/cost.h"

/* The backend of a single process: nothing to average with. */

extern const struct backend backend_none;

/* The place of a backend's worker or server, and its connections. Valid and unchanged until close,
 * except that `layout` is replaced before every plan. */
struct backend_env {
    struct world *world;
    const struct group *group;   /* of the workers that average; NULL on a dedicated server */
    struct transport *transport; /* NULL if the backend has none */
    struct topology topology;
    int workers;      /* that average: the group's size */
    int index;        /* index of the worker, or of the server */
    const int *hosts; /* comm_hosts */
    const struct comm_options *options;
    const struct comm_layout *layout; /* of the current plan; scale is the factor left to the
                                       * backend */
};

struct backend {
    const char *name;
    const char *summary;
    const char *unavailable; /* why this build lacks it; NULL if it has it */

    /* Abilities. experiments/config refuses an option that needs a missing one. */
    bool single_process;         /* for one worker, which has nothing to average with */
    bool uses_transport;         /* else it has its own communication */
    bool uses_servers;           /* runs `serve` on servers */
    bool obeys_segment_bytes;    /* obeys comm_options.segment_bytes */
    bool obeys_window;           /* obeys comm_options.window */
    bool obeys_radix;            /* obeys comm_options.radix */
    bool reduces;                /* obeys comm_options.reduction: libpsring offers these */
    bool compresses;             /* obeys comm_options.compress and error_feedback */
    bool obeys_reduce_order;     /* obeys comm_options.reduce_order */
    bool sums_within_host_first; /* ranks of one host are added first */
    bool counts_bytes;           /* counts all bytes that it moves, or moves none */
    bool takes_mpi_algorithm;    /* MPI_Allreduce: its algorithm can be set */
    bool takes_nccl_options;     /* NCCL: obeys comm_options.library except share_gpu and log */
    bool updates_on_server;      /* obeys comm_options.consistency */
    bool device_memory;    /* averages buckets in place, by `start` and `wait`; otherwise buckets in
                            * separate device memory are staged through host memory */
    bool gpu_only;         /* (only with device_memory) accepts only GPU memory */
    bool needs_mpi;        /* runs only in a world that MPI has opened (world_is_mpi) */
    bool graph_capturable; /* a step that uses it can be recorded as one CUDA graph */
    enum transport_kind default_transport;

    const struct cost_formula *cost; /* the bytes and the time of an all-reduce */

    /* (optional) Called before the first call of the backend's library. Sets the library's
     * environment and library->log. */
    void (*prepare)(const struct world *world, struct comm_library *library);

    /* A worker's functions. `site` stays valid until close. */
    enum status (*open)(void **self, const struct backend_env *site);
    enum status (*plan)(void *self); /* (optional) for site->layout; frees the last plan */
    /* `data`: floats, or the elements of comm_options.reduction */
    enum status (*allreduce)(void *self, size_t bucket, void *data);
    /* (optional, both or none) The phases of an all-reduce, for libpsring, without compression.
     * After reduce_scatter chunk (worker + 1) mod workers of `data` (chunk_of) holds the scaled
     * sum; the others are undefined. all_gather gives every worker's chunk to all. Together they
     * move the bytes of allreduce. */
    enum status (*reduce_scatter)(void *self, size_t bucket, void *data);
    enum status (*all_gather)(void *self, size_t bucket, void *data);
    /* (optional) Whether `allreduce` accepts GPU memory in this run. The backend's layout scale is
     * then 1, and the GPU applies the scale. Absent or false: it gets host memory. */
    bool (*takes_device_memory)(void);
    /* (optional; with `compresses`) Returns array `index` of the state that error feedback carries
     * from one all-reduce to the next, of *count floats. NULL after the last. See
     * comm_state_read. */
    float *(*state)(void *self, size_t index, size_t *count);
    enum status (*pause)(void *self);  /* (only with uses_servers) pauses them; see `serve` */
    enum status (*finish)(void *self); /* (optional) tells servers that this worker is done */
    void (*algorithm)(void *self, char text[COMM_ALGORITHM_BYTES]); /* (optional) comm_algorithm */
    void (*close)(void *self);                                      /* (optional) */

    /* (only with device_memory, and then instead of `allreduce`) The host waits in none of these.
     * `start` takes a bucket that the operations queued so far compute. `flush` queues the
     * averaging of all buckets taken since the last flush, as one call of the library. `wait`,
     * after it, orders the device's later operations after the averaging. The last two are
     * optional. Called on comm_start's thread. */
    enum status (*start)(void *self, size_t bucket, float *data);
    enum status (*flush)(void *self);
    enum status (*wait)(void *self, size_t bucket);

    /* (only with uses_servers) A server's functions. `serve` works for one plan. It returns once
     * every worker has finished the plan, or sets *paused once every worker has paused; the next
     * call then continues. A colocated server has a separate thread. server_close frees what a
     * failed `serve` leaves; the connections are cut by then. */
    enum status (*server_open)(void **server, const struct backend_env *site);
    enum status (*serve)(void *server, bool *paused);
    float *(*server_state)(void *server, size_t index, size_t *count); /* as `state` */
    void (*server_close)(void *server);

    /* (only with updates_on_server) comm_begin_steps, comm_store, comm_fetch, comm_progress. */
    enum status (*begin_steps)(void *self, uint64_t step, uint64_t end);
    enum status (*store)(void *self, size_t bucket, size_t array, float *data);
    enum status (*fetch)(void *self, size_t bucket, size_t array, float *data);
    const struct comm_progress *(*progress)(const void *self);
};

#endif
