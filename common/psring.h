/*
 * libpsring: collective operations for data-parallel training, over a ring, halving-doubling or
 * hierarchical all-reduce on TCP, ZeroMQ or MPI. The one public header; needs nothing but itself.
 *
 *     struct psring *world;
 *     if (psring_init(&world, NULL) != PSRING_OK)          who takes part: see psring_options
 *         die(psring_error());
 *     psring_broadcast(world, weights, n, PSRING_FLOAT32, 0);
 *     per step:
 *         ... gradient of this rank's share of the batch ...
 *         psring_allreduce(world, gradient, n, PSRING_FLOAT32, PSRING_AVERAGE);
 *     psring_finalize(&world);
 *
 * Collective: every member of a communicator makes the same calls in the same order with the same
 * counts, types, operations and roots, as with MPI. Every message says to which call it belongs.
 * The first one of an unlike call is PSRING_ERROR_PROTOCOL, and psring_error names both calls. The
 * ranks that wait get that error, too. The root of a broadcast may have returned PSRING_OK before;
 * then its next call fails, at the latest psring_finalize. A call on one communicator that meets a
 * call on another one may end with PSRING_ERROR_TIMEOUT. Counts that differ by a multiple of 2^40
 * are equal here.
 *
 * Errors. Every function that can fail returns a status; psring_error says why, in a sentence or
 * two. Nothing is printed, and no call ends the process. A failed collective operation,
 * psring_split included, is the end of all communicators of this process: each later call returns
 * the same error, until psring_finalize. The library reports the failure to all other ranks. Their
 * waits end within a fraction of a second, and psring_error has the reason. A process that is
 * killed reports nothing. Over TCP all other ranks see its closed connections. Over ZeroMQ and MPI
 * they wait for options.timeout_s.
 *
 * After an error, data of operations that have failed is undefined, and the caller's again: the
 * library neither reads nor writes it. MPI cannot take back a message. Over MPI messages therefore
 * travel through memory that the library owns, for one more copy at each end. After an error that
 * memory and the communicator stay allocated until the process ends. If psring_init has initialised
 * MPI, the process then calls MPI_Finalize at its exit, because MPI_Finalize may wait for ranks.
 *
 * Memory. Data is host memory, aligned to its type, the caller's; an operation by handle has it
 * from start to wait. No call keeps a pointer to its arguments beyond that, psring_buckets_new
 * excepted.
 *
 * Threads. Any thread may call; the order of operations is then the caller's to keep. Blocking
 * operations run on the calling thread; the first one that is started by handle starts a thread
 * (all of its signals are masked). ZeroMQ and MPI start threads, too. Any thread may use a handle
 * or buckets. One thread at a time waits for a handle or for buckets, or frees them or a
 * communicator. No other call may be under way when psring_finalize begins.
 *
 * One process has one world at a time. A child of fork() cannot use its parent's: all calls return
 * PSRING_ERROR_STATE there, psring_init, too, as long as the parent had a world when it forked.
 * Over TCP it closes the connections that it inherits (by pthread_atfork), so that other ranks see
 * the end of its parent; over ZeroMQ and MPI it does not.
 *
 * The process. The library changes no environment variable, signal handler or setting of the
 * allocator. It raises the soft limit of file descriptors where that is too low (psring_options).
 * The caller can make messages faster:
 *   - over ZeroMQ on links of 10 Gbit/s or more: mallopt(M_MMAP_THRESHOLD, 32 << 20) and
 *     mallopt(M_TRIM_THRESHOLD, 1 << 30)
 *   - over Open MPI's TCP, in the environment:
 *     OMPI_MCA_btl_tcp_flags=send,inplace,need-ack,need-csum,hetero-rdma. Without it two ranks that
 *     exchange messages use one direction of their link at a time.
 * options.network does not choose the interface of MPI.
 */
#ifndef PSRING_H
#define PSRING_H

#include <stddef.h>
#include <stdint.h>

#define PSRING_VERSION_MAJOR 0
#define PSRING_VERSION_MINOR 1
#define PSRING_VERSION_PATCH 0
/* For comparisons by the preprocessor. */
#define PSRING_VERSION_NUMBER                                                                      \
    (PSRING_VERSION_MAJOR * 10000 + PSRING_VERSION_MINOR * 100 + PSRING_VERSION_PATCH)

#if defined(__GNUC__) || defined(__clang__)
#define PSRING_API __attribute__((visibility("default")))
#else
#define PSRING_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum psring_status {
    PSRING_OK = 0,
    PSRING_ERROR_USAGE = -1,       /* an argument or an option that cannot be */
    PSRING_ERROR_SYSTEM = -2,      /* the operating system refused */
    PSRING_ERROR_NO_MEMORY = -3,   /* an allocation failed */
    PSRING_ERROR_TIMEOUT = -4,     /* a rank was silent for too long */
    PSRING_ERROR_PROTOCOL = -5,    /* a rank sent what does not belong here */
    PSRING_ERROR_TRANSPORT = -6,   /* a connection is lost, or a library failed */
    PSRING_ERROR_UNSUPPORTED = -7, /* this build does not have it */
    PSRING_ERROR_STATE = -8        /* not now: initialised twice, forked, or not started */
};

enum psring_type {
    PSRING_FLOAT32 = 0,
    PSRING_FLOAT64 = 1,
    PSRING_FLOAT16 = 2,  /* IEEE 754 binary16 */
    PSRING_BFLOAT16 = 3, /* the upper half of a float32 */
    PSRING_INT32 = 4,
    PSRING_INT64 = 5
};

/*
 * Element by element. All ranks get the same bits (of which of two NaNs apart). Sums are made in
 * the elements' type, in an order that depends on size, count and (auto, hierarchical) which ranks
 * share a host only, so the same calls give the same bits in every run. Numbers of 16 bits are
 * added as float32 and rounded after every addition, to nearest, ties to even, to infinity where
 * they are too large. Sums of whole numbers wrap around. The average is the sum divided by the
 * size, whole numbers towards zero. The minimum and maximum of a NaN and anything is a NaN.
 *
 * PSRING_AVERAGE adds first and divides last, so the sum must fit into the type. Four ranks that
 * average 40,000 get infinity in PSRING_FLOAT16 (largest number: 65,504). Four ranks that average
 * 2^30 get 0 in PSRING_INT32. If sums may not fit, divide before the call and use PSRING_SUM, or
 * use a wider type. Division first would lose the smallest numbers of 16 bits.
 */
enum psring_op { PSRING_SUM = 0, PSRING_AVERAGE = 1, PSRING_MIN = 2, PSRING_MAX = 3 };

struct psring;         /* a communicator: the world, or a group of its ranks */
struct psring_handle;  /* an operation under way */
struct psring_buckets; /* a gradient that is reduced in pieces, as they become ready */

/*
 * Zero means: chosen. Ranks come together in one of four ways, the first of these that is there:
 *   mpi_comm      the ranks of that communicator; its owner goes on to use and finalise MPI
 *   rendezvous    rank 0 listens there, all others connect; with rank and size
 *   environment   mpirun or srun (OMPI_COMM_WORLD_RANK, PMIX_RANK or PMI_RANK is set), in a library
 *                 built with MPI: it initialises MPI unless that has been done, and finalises what
 *                 it has initialised, which MPI allows once a process; or torchrun and whoever sets
 *                 RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
 *   none of them  this process is alone, a world of one
 *
 * psring_init and psring_split raise the process's soft limit of file descriptors (RLIMIT_NOFILE)
 * as far as they need. If the hard limit is too low they fail, and psring_error has the need.
 */
struct psring_options {
    const void *mpi_comm;   /* the address of an MPI_Comm */
    const char *rendezvous; /* "tcp://HOST:PORT", with an IPv6 address in brackets */
    int rank, size;         /* with rendezvous: which of how many */
    /* "ring"; "rhd" (halving-doubling); "hierarchical", for hosts with as many ranks each, which
     * share memory. "auto": rhd for short vectors of several ranks; longer ones hierarchical where
     * there are several hosts with as many ranks each, more than one; else ring */
    const char *backend;
    const char *transport; /* "tcp", "zmq", "mpi"; "auto": tcp */
    /* Listen on this interface or in this network: "eth0", "10.0.0.0/24", "fd00::/64". NULL: a rank
     * offers the address by which it reached rank 0, and rank 0 the one by which it was reached. */
    const char *network;
    double startup_timeout_s; /* for all ranks to come together: 60 */
    double timeout_s;         /* for a rank that is silent while another one waits for it: 600 */
    /* What happens besides errors, a line each, e.g. a stranger at a port; called on any thread. */
    void (*log)(void *context, const char *line);
    void *log_context;
};

/* Payload that left and reached this process through collective operations, of all communicators,
 * since psring_init. psring_split is one, of 4 bytes a rank. */
struct psring_statistics {
    uint64_t operations; /* that have ended */
    uint64_t sent_bytes, received_bytes;
    uint64_t sent_messages, received_messages;
    double seconds; /* spent in operations, on whichever thread */
};

/* Of the library that is loaded: PSRING_VERSION_NUMBER, and "0.1.0". */
PSRING_API int psring_version(void);
PSRING_API const char *psring_version_text(void);

/* Why the last call of this thread that failed did. Valid until the next one; "" before. */
PSRING_API const char *psring_error(void);

/* "timeout", "out of memory": one or two words for a status. Static. */
PSRING_API const char *psring_status_name(enum psring_status status);

/* -------- who takes part ---------------------------------------------------------------------- */

/* Collective over all ranks: returns once they have met and connected. `options` may be NULL, and
 * is not kept. Cost: some messages to and from rank 0; over TCP a connection for each two ranks. On
 * an error *world is NULL. */
PSRING_API enum psring_status psring_init(struct psring **world,
                                          const struct psring_options *options);

/*
 * Ends what has been started, waits for all ranks, frees all communicators and handles that are
 * left, sets *world to NULL; buckets are to be freed before. After a failed operation it waits for
 * no rank. An error means that ranks did not come, or were in other calls; all is freed all the
 * same, except in a child of fork().
 */
PSRING_API enum psring_status psring_finalize(struct psring **world);

PSRING_API int psring_rank(const struct psring *comm); /* 0 .. size - 1 */
PSRING_API int psring_size(const struct psring *comm);
/* Among the world's ranks on this host, whatever communicator is asked: for choosing a device. */
PSRING_API int psring_local_rank(const struct psring *comm);
PSRING_API int psring_local_size(const struct psring *comm);

/* Collective over the world: ranks of one color >= 0 become a communicator of their own, in the
 * order of their ranks; color < 0: none, *group is NULL. It shares the world's connections. */
PSRING_API enum psring_status psring_split(struct psring *world, int color, struct psring **group);
/* Frees a communicator that psring_split has made, sets *group to NULL; waits for what has been
 * started on it. Not collective. */
PSRING_API enum psring_status psring_free(struct psring **group);

/* -------- collective operations ----------------------------------------------------------------
 *
 * N ranks, M = the bytes of `data`. In place. Costs are what a rank sends and receives, payload
 * only; a message has 64 bytes more. A communicator of one does nothing.
 */

/* data (count): all ranks' reduced, on every rank. 2(N-1)/N M; over the ring in 2(N-1) steps (one
 * if N is 2, up to 3 MB), over rhd in 2 lg N (N a power of two; up to 2 KB lg N M in lg N steps).
 * Hierarchical, on H hosts of L ranks: 2(H-1)/H M/L, of the last L-th of the vector up to a chunk
 * more or less, in 2(H-1) steps; a host has L+1 times 4 MB of shared memory for it, a communicator,
 * and longer vectors go in pieces of that. */
PSRING_API enum psring_status psring_allreduce(struct psring *comm, void *data, size_t count,
                                               enum psring_type type, enum psring_op op);

/* data (N, count): rank r's block r is all ranks' block r reduced; its other blocks are undefined.
 * (N-1)/N M in N-1 steps. Over the ring, whatever the backend. */
PSRING_API enum psring_status psring_reduce_scatter(struct psring *comm, void *data, size_t count,
                                                    enum psring_type type, enum psring_op op);

/* data (N, count): rank r's block r to all ranks, so that all have all blocks. (N-1)/N M in N-1
 * steps. Over the ring, whatever the backend. */
PSRING_API enum psring_status psring_all_gather(struct psring *comm, void *data, size_t count,
                                                enum psring_type type);

/* data (count): `root`'s on every rank. From rank to rank, in a row of segments: every rank but the
 * last one sends M. */
PSRING_API enum psring_status psring_broadcast(struct psring *comm, void *data, size_t count,
                                               enum psring_type type, int root);

/* Returns once all ranks have called it. */
PSRING_API enum psring_status psring_barrier(struct psring *comm);

/*
 * By handle: as above, but started only. Operations run one after the other, in the order in which
 * they were started. Between start and wait `data` belongs to the library. On an error *handle is
 * NULL. Over MPI with a thread level below MPI_THREAD_MULTIPLE the operation runs in start.
 */
PSRING_API enum psring_status psring_allreduce_start(struct psring *comm, void *data, size_t count,
                                                     enum psring_type type, enum psring_op op,
                                                     struct psring_handle **handle);
PSRING_API enum psring_status psring_reduce_scatter_start(struct psring *comm, void *data,
                                                          size_t count, enum psring_type type,
                                                          enum psring_op op,
                                                          struct psring_handle **handle);
PSRING_API enum psring_status psring_all_gather_start(struct psring *comm, void *data, size_t count,
                                                      enum psring_type type,
                                                      struct psring_handle **handle);
PSRING_API enum psring_status psring_broadcast_start(struct psring *comm, void *data, size_t count,
                                                     enum psring_type type, int root,
                                                     struct psring_handle **handle);
/* *done: 1 if the operation has ended, else 0; then psring_wait says how. Does not wait. */
PSRING_API enum psring_status psring_test(struct psring_handle *handle, int *done);
/* Waits for the end of the operation, returns its status, frees *handle and sets it to NULL. */
PSRING_API enum psring_status psring_wait(struct psring_handle **handle);

/* -------- buckets ------------------------------------------------------------------------------
 *
 * A gradient of many tensors, which a backward pass completes from the last one to the first: they
 * are all-reduced in buckets, while earlier ones are still computed.
 */

/*
 * `data` holds tensor 0's counts[0] elements, then tensor 1's, ... `bucket_bytes`: wanted length of
 * a bucket, 0: 25 MB; the first one has at most about 1 MB. Short tensors share a bucket, long ones
 * are cut. `data` is borrowed until psring_buckets_free, `counts` is not kept.
 */
PSRING_API enum psring_status psring_buckets_new(struct psring_buckets **buckets,
                                                 struct psring *comm, void *data,
                                                 const size_t *counts, size_t tensors,
                                                 size_t bucket_bytes, enum psring_type type,
                                                 enum psring_op op);
/* Tensor `tensor` is complete. Call it once a step for each tensor, from any thread, several at a
 * time too. Buckets are started as soon as they and those before them (behind them in memory) are
 * complete. All ranks start them in one order, which does not depend on the order of these calls.
 */
PSRING_API enum psring_status psring_buckets_ready(struct psring_buckets *buckets, size_t tensor);
/* All tensors must be ready: psring_buckets_ready has returned for each. Returns once they are
 * reduced; the next step may begin. A call of psring_buckets_ready meanwhile waits for it and
 * counts for the next step. PSRING_ERROR_STATE: not every bucket was started. */
PSRING_API enum psring_status psring_buckets_wait(struct psring_buckets *buckets);
/* How many buckets there are. */
PSRING_API size_t psring_buckets_count(const struct psring_buckets *buckets);
/* Frees *buckets and sets it to NULL; waits for what has been started. */
PSRING_API void psring_buckets_free(struct psring_buckets **buckets);

/* -------- what it took ------------------------------------------------------------------------ */

PSRING_API enum psring_status psring_get_statistics(const struct psring *comm,
                                                    struct psring_statistics *statistics);

#ifdef __cplusplus
}
#endif

#endif
