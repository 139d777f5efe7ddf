/*
 * What a backend implements: a way to average buckets, behind one const table that says what it can
 * do, what it costs, and how it is done. To add one: write its table in a folder of its own, and
 * name it in the one list, experiments/config/backends.c. Nothing else knows backends by name.
 *
 *     open                  once: site->transport is there, peers can be reached
 *     plan                  for a layout of buckets; again for the next one, after finish
 *         allreduce         as often as the caller likes, one at a time
 *         finish            no more buckets of this plan
 *     close
 *
 * Threads: allreduce runs on one thread, which then owns the transport; start and wait, overlap,
 * staging of a device's memory and the thread of a colocated server are the comm's business, once
 * for all backends. Nothing here may end the process: a failure is returned.
 */
#ifndef PSRING_COMMON_COMM_BACKEND_H
#define PSRING_COMMON_COMM_BACKEND_H

#include "common/comm/backend.h"
#include "common/comm/comm.h"
#include "common/comm/comm_options.h"
#include "common/comm/cost.h"

/* The backend of a single process: nothing to average with. */

extern const struct backend backend_none;

/* Where a backend's worker or server stands, and how it talks. What it says stays valid and
 * unchanged until close; `layout` is replaced before every plan. */
struct backend_env {
    struct world *world;
    const struct group *group;   /* of the workers that average; NULL on a dedicated server */
    struct transport *transport; /* NULL if the backend has none */
    struct topology topology;
    int workers;      /* that average: the group's size */
    int index;        /* which of them, or which server */
    const int *hosts; /* comm_hosts */
    const struct comm_options *options;
    const struct comm_layout *layout; /* of the present plan; scale is what is left to multiply */
};

struct backend {
    const char *name;
    const char *summary;
    const char *unavailable; /* why this build does not have it; NULL where it has */

    /* What it can do. An option that asks for something else is refused (experiments/config). */
    bool single_process;         /* for one worker, which has nothing to average with */
    bool uses_transport;         /* else it brings its own communication */
    bool uses_servers;           /* runs `serve` on servers */
    bool obeys_segment_bytes;    /* obeys comm_options.segment_bytes */
    bool obeys_window;           /* obeys comm_options.window */
    bool reduces;                /* obeys comm_options.reduction: libpsring offers these */
    bool compresses;             /* obeys comm_options.compress and error_feedback */
    bool obeys_reduce_order;     /* obeys comm_options.reduce_order */
    bool sums_within_host_first; /* what it adds up first are ranks of one host */
    bool counts_bytes;           /* all that it moves is counted, or it moves nothing */
    bool takes_mpi_algorithm;    /* MPI_Allreduce: can be told its algorithm */
    bool takes_nccl_options;     /* NCCL: obeys comm_options.library, but for share_gpu and log */
    bool updates_on_server;      /* obeys comm_options.consistency */
    bool device_memory;    /* averages buckets where they are, by `start` and `wait`; else those
                              of a device with memory of its own come through host memory */
    bool gpu_only;         /* (only with device_memory) takes a GPU's memory and no other */
    bool needs_mpi;        /* runs only in a world that MPI has opened (world_is_mpi) */
    bool graph_capturable; /* a step that uses it can be recorded as one CUDA graph */
    enum transport_kind default_transport;

    const struct cost_formula *cost; /* what an all-reduce moves, and how long it takes */

    /* (optional) Before the first call of the backend's library: sets its environment, and
     * library->log. */
    void (*prepare)(const struct world *world, struct comm_library *library);

    /* A worker's life. `site` stays valid until close. */
    enum status (*open)(void **self, const struct backend_env *site);
    enum status (*plan)(void *self); /* (optional) for site->layout; frees what the last one had */
    /* `data`: floats, or the elements of comm_options.reduction */
    enum status (*allreduce)(void *self, size_t bucket, void *data);
    /* (optional, both or none) The phases of an all-reduce; see comm_reduce_scatter. */
    enum status (*reduce_scatter)(void *self, size_t bucket, void *data);
    enum status (*all_gather)(void *self, size_t bucket, void *data);
    struct chunk (*part)(const void *self, size_t bucket);
    /* (optional) Whether `allreduce` may be given a GPU's memory, here and now; the layout's scale
     * is then 1 for the backend, and applied on the GPU. Absent or false: it is given host memory.
     */
    bool (*takes_device_memory)(void);
    /* (optional; with `compresses`) What error feedback carries from one all-reduce to the next:
     * array `index` of it, of *count floats; NULL behind the last. See common/comm/state. */
    float *(*state)(void *self, size_t index, size_t *count);
    enum status (*pause)(void *self);  /* (only with uses_servers) tells them; see `serve` */
    enum status (*finish)(void *self); /* (optional) tells servers that this worker is done */
    void (*algorithm)(void *self, char text[COMM_ALGORITHM_BYTES]); /* (optional) comm_algorithm */
    void (*close)(void *self);                                      /* (optional) */

    /* (only with device_memory, and then instead of `allreduce`) The host waits in none. `start`
     * takes a bucket that the operations asked for so far will have computed; `flush` enqueues the
     * averaging of all those taken since the last one, as one call of the library; `wait`, after
     * it, makes the device's later operations come after that. Called on comm_start's thread. */
    enum status (*start)(void *self, size_t bucket, float *data);
    enum status (*flush)(void *self);
    enum status (*wait)(void *self, size_t bucket);

    /* (only with uses_servers) A server's life. `serve` is its work for one plan, until every
     * worker has finished that, or *paused: until every worker has paused; then it is called again
     * to go on. On a thread of its own where colocated. What a failed one leaves behind,
     * server_close frees: by then the connections are cut. */
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
