/*
 * Declarations that the files of the NCCL backend share: the environment that NCCL reads, its log
 * of choices, and the watch over a communicator. The first two need no NCCL, and neither do their
 * tests.
 */
#ifndef PSRING_RING_BASELINES_NCCL_IMPL_H
#define PSRING_RING_BASELINES_NCCL_IMPL_H

#ifdef PSRING_NCCL_PATH
#include <nccl.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/net/world.h"

/* -------- the environment (nccl_env.c) -------------------------------------------------------- */

/*
 * Environment variables. NCCL reads them once, at its first call in a process, so the program sets
 * them before it opens a comm. Variables that the user has set keep their values.
 *
 * NCCL_ALGO, NCCL_PROTO=Simple        the algorithm under test, for every size
 * NCCL_LEGACY_CUDA_REGISTER=1         with `registers` (nccl.c)
 * NCCL_DEBUG, _SUBSYS, _FILE          NCCL's log of choices, into memory of this process; if NCCL
 *                                     cannot open that by a name (in a sandbox), into a file in
 *                                     /tmp, whose name is removed once NCCL has opened it
 *
 * If processes share a GPU: NCCL refuses two ranks on one GPU as a mistake. With different host ids
 * the ranks count as two hosts, which communicate over sockets.
 *
 * NCCL_HOSTID                         a different one in every process
 * NCCL_NET=Socket, NCCL_IB_DISABLE=1, and on one host NCCL_SOCKET_IFNAME=lo
 */
struct nccl_env_options {
    bool share_gpu;
    bool registers;        /* register the memory of buckets, which comes from cudaMalloc */
    const char *algorithm; /* "ring", "tree"; NULL: NCCL chooses, by size */
    /* Shows whether all ranks are on this host, and gives each rank its NCCL_HOSTID. */
    const struct world *world;
};

/*
 * Sets the variables. *log is the descriptor of the file for NCCL's log. It exists until the
 * process ends. *log is 0 if the system offers no such file. NCCL's choice is then unknown, and
 * everything else works.
 */
void nccl_env_set(const struct nccl_env_options *options, int *log);

/* -------- what NCCL chose (nccl_env.c) -------------------------------------------------------- */

/*
 * NCCL's choice, read from its own log. NCCL has no call that reports the algorithm of an
 * all-reduce. But with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=TUNING its rank 0 writes a line for
 * every call:
 *
 *     host:417:417 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo RING proto SIMPLE channel{...
 *     host:417:417 [0] NCCL INFO 4096 Bytes -> Algo 1 proto 2 time 12.400000       (before 2.23)
 *     host:417:417 [0] NCCL INFO AllReduce [Symmetric]: 4096 Bytes -> Kernel AllReduce_AGxLL_R ...
 *
 * The last kind uses none of the algorithms, but kernels that load and store in the memory of all
 * GPUs. It is called "symmetric" here (NCCL 2.27 and later, for memory in a symmetric window).
 *
 * Pure: text in, facts out. Other lines do not count.
 */

enum { NCCL_NAME_BYTES = 16, NCCL_CHOICE_BYTES = 80 };

struct nccl_choice {
    const char *wanted;              /* requested: "ring", ...; NULL: any. Borrowed */
    uint64_t calls;                  /* all-reduces in the log */
    char algorithm[NCCL_NAME_BYTES]; /* of the last one: "ring", "tree", ... */
    char protocol[NCCL_NAME_BYTES];  /* "simple", "ll", "ll128" */
    uint64_t other_calls;            /* calls that used another algorithm than `wanted` */
    char other[NCCL_NAME_BYTES];     /* the last of those algorithms */
    bool mixed;                      /* the calls differ */
};

/* Adds the contents of `text` to `choice`. `text` has `length` bytes of whole lines. At the start
 * everything in `choice` is zero except `wanted`. */
void nccl_choice_read(struct nccl_choice *choice, const char *text, size_t length);

/* "ring/simple", followed by "/mixed" if the calls differ; "" if there were none. */
void nccl_choice_text(const struct nccl_choice *choice, char text[NCCL_CHOICE_BYTES]);

/*
 * Reader of the log. NCCL writes a line for every all-reduce: 600 MB in a million steps. The memory
 * of what has been read is returned to the system, so a frequent reader needs little memory.
 */
struct nccl_env_log {
    int file;                  /* from nccl_env_set */
    off_t read;                /* bytes that have been read */
    struct nccl_choice choice; /* contents of those bytes */
};

/* Call this when a communicator is open. Earlier log entries do not count. Only one reader at a
 * time. Borrows `file`; 0: there is no log. `wanted`: see nccl_choice. */
void nccl_env_log_begin(struct nccl_env_log *log, int file, const char *wanted);

/* If the log is a file in /tmp, removes its name. NCCL does not need the name after a communicator
 * has opened, or has failed to open. */
void nccl_env_log_forget(void);

/* Adds the new whole lines to log->choice. The choice stays at zero without a log, or if the user's
 * own NCCL_DEBUG settings direct NCCL's log elsewhere. */
void nccl_env_log_follow(struct nccl_env_log *log);

/* STATUS_WRONG, logged, if an all-reduce that has been read used another algorithm than the
 * requested one. */
enum status nccl_env_log_check(const struct nccl_env_log *log);

/* -------- the watch (nccl_watch.c) ------------------------------------------------------------ */

#ifdef PSRING_NCCL_PATH

/*
 * Watches one NCCL communicator, which it owns. The host itself waits for nothing. A thread of the
 * watch therefore detects asynchronous errors and silent peers, and aborts the communicator. After
 * an abort the kernels that waited for peers end, every further call returns the failure, and
 * unfinished all-reduces have no result.
 *
 * Threads: hold the lock (`lock`, `unlock`) for every call into NCCL, except with `leave`, and for
 * recording into the stream. The watch takes the same lock. Only one thread, the device's, uses
 * these functions. nccl_watch_status needs no lock.
 */

struct nccl_watch;

/* Converts NCCL's code. ncclSuccess gives STATUS_OK. For any other code logs `what`, NCCL's text of
 * the error and its last message (for `comm`, which may be NULL). */
enum status status_from_nccl(ncclResult_t code, ncclComm_t comm, const char *what);

/* Takes `comm`, also on failure; `comm` may still be joining its peers, and the function waits
 * until it has joined them. Borrows device, stream and `log`. The watch reads the log from then on;
 * callers touch it only under the lock. */
enum status nccl_watch_new(struct nccl_watch **watch, ncclComm_t comm, struct device *device,
                           struct device_stream *stream, int64_t timeout_ms,
                           struct nccl_env_log *log);

/* Frees the communicator. `finished`: every worker has ended well. Otherwise connections are
 * cut. */
void nccl_watch_free(struct nccl_watch **watch, bool finished);

/* The caller holds the lock. */
ncclComm_t nccl_watch_comm(const struct nccl_watch *watch);

/* Returns the first failure so far. Call unlock also after a failure. */
enum status nccl_watch_lock(struct nccl_watch *watch);
/* `status` is the result of the work under the lock: a failure aborts the communicator. Returns the
 * first failure. */
enum status nccl_watch_unlock(struct nccl_watch *watch, enum status status);

/* The caller holds the lock. Waits until NCCL has finished the host part of the last call, but not
 * longer than the time-out. `what` is for the message. */
enum status nccl_watch_settle(struct nccl_watch *watch, const char *what);

/*
 * Around a call into NCCL that may wait for peers; the caller holds the lock. `leave` releases the
 * lock. `return` takes it again and returns the first failure so far. If the call takes longer than
 * the time-out, or another failure occurs, the thread aborts the communicator during the call. NCCL
 * allows that from another thread. `what` is for the message and must stay valid.
 */
void nccl_watch_leave(struct nccl_watch *watch, const char *what);
enum status nccl_watch_return(struct nccl_watch *watch);

/* Without the lock. Waits on the host until the stream is empty. Returns any failure that occurred
 * meanwhile. */
enum status nccl_watch_drain(struct nccl_watch *watch);

/* The first failure so far. */
enum status nccl_watch_status(struct nccl_watch *watch);

#endif

#endif
