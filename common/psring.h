/*
 * libpsring: collective operations for data-parallel training, over a ring, halving-doubling,
 * double binary tree or hierarchical all-reduce on TCP, ZeroMQ or MPI. This is the only public
 * header, and it needs no other.
 *
 *     struct psring *world;
 *     if (psring_init(&world, NULL) != PSRING_OK)          which ranks: see psring_options
 *         die(psring_error());
 *     psring_broadcast(world, weights, n, PSRING_FLOAT32, 0);
 *     per step:
 *         ... gradient of this rank's share of the batch ...
 *         psring_allreduce(world, gradient, n, PSRING_FLOAT32, PSRING_AVERAGE);
 *     psring_finalize(&world);
 *
 * Collective: every member of a communicator makes the same calls in the same order with the same
 * counts, types, operations and roots, as with MPI. Every message names its call. The first message
 * of an unlike call causes PSRING_ERROR_PROTOCOL, and psring_error names both calls. The waiting
 * ranks get that error too. The root of a broadcast may already have returned PSRING_OK; its next
 * call then fails, at the latest psring_finalize. A call on one communicator that meets a call on
 * another one may end with PSRING_ERROR_TIMEOUT. Counts that differ by a multiple of 2^40 count as
 * equal here.
 *
 * Errors. Every function that can fail returns a status; psring_error gives the reason in a
 * sentence or two. The library prints nothing, and no call ends the process. A failed collective
 * operation (psring_split included) ends all communicators of this process. Each later call returns
 * the same error, until psring_finalize. psring_shrink makes a world of the ranks that are left.
 * The library reports the failure to all other ranks. Their waits end within a fraction of a
 * second, and psring_error has the reason. A killed process reports nothing. Over TCP all other
 * ranks see its closed connections. Over ZeroMQ and MPI they wait for options.timeout_s.
 *
 * After an error, the data of failed operations is undefined. It belongs to the caller again: the
 * library neither reads nor writes it. MPI cannot take back a message. Over MPI messages therefore
 * travel through memory that the library owns, which costs one more copy at each end. After an
 * error that memory and the communicator stay allocated until the process ends. If psring_init has
 * initialised MPI, the process then calls MPI_Finalize at its exit, because MPI_Finalize may wait
 * for ranks.
 *
 * Memory. Data is host memory, aligned to its type and owned by the caller. An operation by handle
 * borrows it from start to wait. No call keeps a pointer to its arguments beyond that, except
 * psring_buckets_new.
 *
 * Threads. Any thread may call; the caller must then ensure the order of operations. Blocking
 * operations run on the calling thread. The first operation by handle starts a thread with all
 * signals masked. ZeroMQ and MPI start threads too. Any thread may use a handle or buckets. Only
 * one thread at a time may wait for a handle or for buckets, or free them or a communicator. No
 * other call may be in progress when psring_finalize begins.
 *
 * One process has one world at a time, except after psring_shrink. A child of fork() cannot use its
 * parent's world: there all calls return PSRING_ERROR_STATE. psring_init returns it too, if the
 * parent had a world when it forked. Over TCP the child closes the inherited connections (by
 * pthread_atfork), so that other ranks see the end of its parent. Over ZeroMQ and MPI it does not.
 *
 * The process. The library changes no environment variable, signal handler or allocator setting. It
 * raises the soft limit of file descriptors if that is too low (psring_options). The caller can
 * make messages faster:
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
    PSRING_ERROR_USAGE = -1,       /* an invalid argument or option */
    PSRING_ERROR_SYSTEM = -2,      /* the operating system refused */
    PSRING_ERROR_NO_MEMORY = -3,   /* an allocation failed */
    PSRING_ERROR_TIMEOUT = -4,     /* a rank was silent for too long */
    PSRING_ERROR_PROTOCOL = -5,    /* a rank sent an unexpected message */
    PSRING_ERROR_TRANSPORT = -6,   /* a connection is lost, or a library failed */
    PSRING_ERROR_UNSUPPORTED = -7, /* this build lacks it */
    PSRING_ERROR_STATE = -8        /* wrong time: initialised twice, forked, or not started */
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
 * The operations work element by element. All ranks get the same bits (except which of two NaNs).
 * Sums use the elements' type. Their order depends only on size, count and, for auto, rhd and
 * hierarchical, on which ranks share a host. The same calls therefore give the same bits in every
 * run. Numbers of 16 bits are added as float32 and rounded after every addition, to nearest, ties
 * to even; too large values become infinity. Sums of whole numbers wrap around. The average is the
 * sum divided by the size, whole numbers towards zero. The minimum or maximum of a NaN and any
 * value is a NaN.
 *
 * PSRING_AVERAGE adds first and divides last, so the sum must fit into the type. Four ranks that
 * average 40,000 get infinity in PSRING_FLOAT16 (largest number: 65,504). Four ranks that average
 * 2^30 get 0 in PSRING_INT32. If sums may not fit, divide before the call and use PSRING_SUM, or
 * use a wider type. Division first would lose the smallest 16-bit numbers.
 */
enum psring_op { PSRING_SUM = 0, PSRING_AVERAGE = 1, PSRING_MIN = 2, PSRING_MAX = 3 };

struct psring;         /* a communicator: the world, or a group of its ranks */
struct psring_handle;  /* an operation in progress */
struct psring_buckets; /* a gradient that is reduced in pieces as they become ready */

/*
 * Zero selects the default. Ranks meet in one of four ways, the first of these that is present:
 *   mpi_comm      the ranks of that communicator; its owner continues to use and finalise MPI
 *   rendezvous    rank 0 listens there and all others connect; with rank and size
 *   environment   mpirun or srun (OMPI_COMM_WORLD_RANK, PMIX_RANK or PMI_RANK is set), in a library
 *                 built with MPI: it initialises MPI unless that is done, and finalises what it has
 *                 initialised, which MPI allows once per process; or torchrun, or any launcher that
 *                 sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
 *   none of them  this process is alone, a world of one
 *
 * psring_init and psring_split raise the process's soft limit of file descriptors (RLIMIT_NOFILE)
 * as far as they need. If the hard limit is too low they fail, and psring_error states the need.
 */
struct psring_options {
    const void *mpi_comm;   /* the address of an MPI_Comm */
    const char *rendezvous; /* "tcp://HOST:PORT", with an IPv6 address in brackets */
    int rank, size;         /* with rendezvous: this rank and the number of ranks */
    /* "ring"; "rhd" (halving-doubling); "tree" (double binary tree); "hierarchical", for hosts with
     * equal numbers of ranks that share memory. "auto": rhd for short vectors of more than two
     * ranks. Longer ones use hierarchical if several hosts have the same number of ranks, at least
     * two; else ring */
    const char *backend;
    const char *transport; /* "tcp", "zmq", "mpi"; "auto": tcp */
    /* Listen on this interface or in this network: "eth0", "10.0.0.0/24", "fd00::/64". NULL: a rank
     * offers the address from which it reached rank 0; rank 0 offers the address at which it was
     * reached. */
    const char *network;
    double startup_timeout_s; /* time for all ranks to meet: 60 */
    double timeout_s;         /* time that a rank may be silent while another one waits for it:
                               * 600 */
    /* A folder with the job's keys, which `psring keys DIR` writes: connections are encrypted, and
     * a process without the keys is refused. Not with MPI. NULL: PSRING_SECURE in the environment,
     * else no protection */
    const char *secure;
    /* Gets all log lines except errors, e.g. of a stranger at a port. Called on any thread. */
    void (*log)(void *context, const char *line);
    void *log_context;
};

/* Payload that collective operations of all communicators have sent from and received in this
 * process since psring_init. psring_split counts as one, of 4 bytes per rank. */
struct psring_statistics {
    uint64_t operations; /* operations that have ended */
    uint64_t sent_bytes, received_bytes;
    uint64_t sent_messages, received_messages;
    double seconds; /* spent in operations, on any thread */
};

/* The version of the loaded library: PSRING_VERSION_NUMBER, and "0.1.0". */
PSRING_API int psring_version(void);
PSRING_API const char *psring_version_text(void);

/* The reason of this thread's last failed call. Valid until the next failure; "" before the
 * first. */
PSRING_API const char *psring_error(void);

/* A status in one or two words: "timeout", "out of memory". Static. */
PSRING_API const char *psring_status_name(enum psring_status status);

/* -------- who takes part ---------------------------------------------------------------------- */

/* Collective over all ranks. Returns once they have met and connected. `options` may be NULL and is
 * not kept. Cost: some messages to and from rank 0; over TCP one connection per pair of ranks. On
 * an error *world is NULL. */
PSRING_API enum psring_status psring_init(struct psring **world,
                                          const struct psring_options *options);

/*
 * Ends the started operations, waits for all ranks, frees all remaining communicators and handles,
 * and sets *world to NULL. Free buckets before. After a failed operation it waits for no rank. An
 * error means that ranks did not come, or were in other calls. Everything is freed even then,
 * except in a child of fork().
 */
PSRING_API enum psring_status psring_finalize(struct psring **world);

/*
 * Continues without the ranks that were lost. Collective over the ranks that are left, after a
 * failed operation of `world`. *survivors is a new world: the same ranks in the same order, with
 * numbers from 0. The old world keeps its failed handles and groups until psring_finalize, which
 * may come before or after. Options are those of the old world; "hierarchical" becomes "auto" if
 * its hosts have become uneven.
 *
 *     while ((status = psring_allreduce(world, gradient, ...)) != PSRING_OK) {
 *         struct psring *left;
 *         if (psring_shrink(world, &left) != PSRING_OK)
 *             die(psring_error());
 *         psring_finalize(&world);
 *         world = left;
 *         ... agree on the last complete step: PSRING_MIN of its number; refill gradient ...
 *     }
 *
 * An operation may have succeeded on some ranks and failed on others, so ranks may be one step
 * apart. Ranks whose processes have ended are left out at once. A rank that is silent for
 * options.timeout_s is left out, too. Then more than half of the old ranks must be left, or half
 * with the lowest one. The silent ones therefore cannot continue on their own. If they return
 * they get an error: PSRING_ERROR_TIMEOUT, if the others do not shrink at that moment. The ranks
 * that it finds ended may have continued without it before, so it does not continue alone. The same
 * holds for a rank that has waited in no operation for options.timeout_s, unless three all-reduces
 * or barriers of `world` have ended since. After a time-out the silent ones have one second more,
 * and then are left out. A process has ended if its host refuses a connection to it. A firewall
 * between the ranks must therefore drop packets, not refuse connections.
 *
 * PSRING_ERROR_TIMEOUT: too few ranks came; the call may be repeated. PSRING_ERROR_TRANSPORT: the
 * others have continued without this rank. PSRING_ERROR_UNSUPPORTED: the ranks met by MPI, which
 * ends all, or were one, or more than 1,024. Cost: six messages per rank, one more for every 0.2 s
 * of waiting, and the connections of psring_init.
 */
PSRING_API enum psring_status psring_shrink(struct psring *world, struct psring **survivors);

PSRING_API int psring_rank(const struct psring *comm); /* 0 .. size - 1 */
PSRING_API int psring_size(const struct psring *comm);
/* The rank among, and the number of, the world's ranks on this host, for any communicator. For
 * choosing a device. */
PSRING_API int psring_local_rank(const struct psring *comm);
PSRING_API int psring_local_size(const struct psring *comm);

/* Collective over the world. The ranks of one color >= 0 form a communicator, in the order of their
 * ranks. Color < 0: none, and *group is NULL. The group shares the world's connections. A world
 * allows 65,535 splits; PSRING_ERROR_UNSUPPORTED beyond. */
PSRING_API enum psring_status psring_split(struct psring *world, int color, struct psring **group);
/* Frees a communicator made by psring_split and sets *group to NULL. Waits for operations started
 * on it. Not collective. */
PSRING_API enum psring_status psring_free(struct psring **group);

/* -------- collective operations ----------------------------------------------------------------
 *
 * N ranks, M = the bytes of `data`. All operations work in place. Costs are the payload that a rank
 * sends and receives; each message adds 64 bytes. A communicator of one does nothing. */

/* data (count): reduces all ranks' data; every rank gets the result. Cost by backend:
 *   - ring: 2(N-1)/N M in 2(N-1) steps (one step if N is 2, up to 3 MB)
 *   - rhd: 2(N-1)/N M in at most 2 lg N steps (up to 2 KB, for N a power of two: lg N M in lg N
 *     steps)
 *   - tree: at most 2 M, over at most 2 lg N ranks one after the other
 *   - hierarchical, on H hosts of L ranks: 2(H-1)/H M/L in 2(H-1) steps, because a rank reduces one
 *     L-th of the vector (to within a chunk)
 * Hierarchical uses L+1 times 4 MB of shared memory on each host, per communicator. Longer vectors
 * go in pieces of that. */
PSRING_API enum psring_status psring_allreduce(struct psring *comm, void *data, size_t count,
                                               enum psring_type type, enum psring_op op);

/* data (N, count): rank r's block r becomes the reduction of all ranks' block r; its other blocks
 * are undefined. (N-1)/N M in N-1 steps. Always over the ring. */
PSRING_API enum psring_status psring_reduce_scatter(struct psring *comm, void *data, size_t count,
                                                    enum psring_type type, enum psring_op op);

/* data (N, count): sends rank r's block r to all ranks, so that all have all blocks. (N-1)/N M in
 * N-1 steps. Always over the ring. */
PSRING_API enum psring_status psring_all_gather(struct psring *comm, void *data, size_t count,
                                                enum psring_type type);

/* data (count): copies the data of `root` to every rank, from rank to rank in segments of 256 KB.
 * Every rank except the last sends M. An empty message goes back after every 16 segments of all
 * broadcasts of the communicator. A rank waits for it, so do not rely on a return before others
 * have called. No rank is more than 32 segments (8 MB) ahead of the next one, so the rate is at
 * most 8 MB in a round trip. */
PSRING_API enum psring_status psring_broadcast(struct psring *comm, void *data, size_t count,
                                               enum psring_type type, int root);

/* Returns once all ranks have called it. */
PSRING_API enum psring_status psring_barrier(struct psring *comm);

/*
 * Operations by handle: as above, but only started. They run one after the other, in the order of
 * their starts. Between start and wait `data` belongs to the library. On an error *handle is NULL.
 * Over MPI with a thread level below MPI_THREAD_MULTIPLE, and without a thread (options.log gets a
 * line), the operation runs in start.
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
/* *done: 1 if the operation has ended, else 0. Then psring_wait returns its status. Does not
 * wait. */
PSRING_API enum psring_status psring_test(struct psring_handle *handle, int *done);
/* Waits for the end of the operation, returns its status, frees *handle and sets it to NULL. */
PSRING_API enum psring_status psring_wait(struct psring_handle **handle);

/* -------- buckets ------------------------------------------------------------------------------
 *
 * For a gradient of many tensors, which a backward pass completes from the last one to the first.
 * They are all-reduced in buckets while earlier tensors are still computed. */

/*
 * `data` holds tensor 0's counts[0] elements, then tensor 1's, and so on. `bucket_bytes` is the
 * wanted length of a bucket, 0: 25 MB; the first bucket has at most about 1 MB. Short tensors share
 * a bucket, and long ones are cut. `data` is borrowed until psring_buckets_free; `counts` is not
 * kept.
 */
PSRING_API enum psring_status psring_buckets_new(struct psring_buckets **buckets,
                                                 struct psring *comm, void *data,
                                                 const size_t *counts, size_t tensors,
                                                 size_t bucket_bytes, enum psring_type type,
                                                 enum psring_op op);
/* Marks tensor `tensor` as complete. Call it once per step for each tensor, from any thread,
 * concurrently too. A bucket starts as soon as it and those before it (behind it in memory) are
 * complete. All ranks start buckets in one order, which does not depend on the order of these
 * calls. */
PSRING_API enum psring_status psring_buckets_ready(struct psring_buckets *buckets, size_t tensor);
/* Requires that psring_buckets_ready has returned for all tensors. Returns once they are reduced;
 * the next step may then begin. A concurrent call of psring_buckets_ready waits for this one and
 * counts for the next step. PSRING_ERROR_STATE: not every bucket was started. */
PSRING_API enum psring_status psring_buckets_wait(struct psring_buckets *buckets);
/* The number of buckets. */
PSRING_API size_t psring_buckets_count(const struct psring_buckets *buckets);
/* Frees *buckets and sets it to NULL. Waits for started buckets. */
PSRING_API void psring_buckets_free(struct psring_buckets **buckets);

/* -------- statistics -------------------------------------------------------------------------- */

PSRING_API enum psring_status psring_get_statistics(const struct psring *comm,
                                                    struct psring_statistics *statistics);

#ifdef __cplusplus
}
#endif

#endif
