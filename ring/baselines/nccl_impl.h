/*
 * What the files of the NCCL backend have from each other: the environment that NCCL reads, its log
 * of choices, and the watch over a communicator. The first two need no NCCL, and their tests none.
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
 * What NCCL reads from the environment, once, at its first call in a process: so the program sets
 * it before it opens a comm. What the user has set stays, in everything.
 *
 * NCCL_ALGO, NCCL_PROTO=Simple        the algorithm that is to be compared, whatever the size
 * NCCL_LEGACY_CUDA_REGISTER=1         where `registers` asks for it (nccl.c)
 * NCCL_DEBUG, _SUBSYS, _FILE          its log of choices, into memory that goes with the process,
 *                                     or, where a sandbox has none with a name, into a file in /tmp
 *                                     that loses its name once NCCL has it
 *
 * and where processes share a GPU: NCCL takes two ranks on one GPU for a mistake, unless they look
 * as if they were on two hosts, which then talk over sockets:
 *
 * NCCL_HOSTID                         another one in every process
 * NCCL_NET=Socket, NCCL_IB_DISABLE=1, and on one host NCCL_SOCKET_IFNAME=lo
 */
struct nccl_env_options {
    bool share_gpu;
    bool registers;        /* memory of buckets, which cudaMalloc gave, is to be registered */
    const char *algorithm; /* "ring", "tree"; NULL: NCCL's own choice, by size */
    /* Sees that all ranks are on this host, and gives each its NCCL_HOSTID. */
    const struct world *world;
};

/*
 * Sets the variables. *log is the descriptor of the file that NCCL is to write its log to, there
 * until the process ends; 0 where this system has none: then NCCL's choice stays unknown, and
 * everything else works.
 */
void nccl_env_set(const struct nccl_env_options *options, int *log);

/* -------- what NCCL chose (nccl_env.c) -------------------------------------------------------- */

/*
 * What NCCL chose, read from its own log. NCCL has no call that tells by which algorithm an
 * all-reduce went, but with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=TUNING its rank 0 writes a line
 * for every call:
 *
 *     host:417:417 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo RING proto SIMPLE channel{...
 *     host:417:417 [0] NCCL INFO 4096 Bytes -> Algo 1 proto 2 time 12.400000       (before 2.23)
 *     host:417:417 [0] NCCL INFO AllReduce [Symmetric]: 4096 Bytes -> Kernel AllReduce_AGxLL_R ...
 *
 * The last kind goes by none of the algorithms, but by kernels that load and store in the memory of
 * all GPUs: here "symmetric" (NCCL 2.27 and later, for memory in a symmetric window).
 *
 * Pure: text in, facts out. Lines that are none of these do not count.
 */

enum { NCCL_NAME_BYTES = 16, NCCL_CHOICE_BYTES = 80 };

struct nccl_choice {
    const char *wanted;              /* "ring", say: what was asked for; NULL: anything. Borrowed */
    uint64_t calls;                  /* all-reduces that the log tells of */
    char algorithm[NCCL_NAME_BYTES]; /* of the last one: "ring", "tree", ... */
    char protocol[NCCL_NAME_BYTES];  /* "simple", "ll", "ll128" */
    uint64_t other_calls;            /* of them by another one than `wanted` */
    char other[NCCL_NAME_BYTES];     /* the last of those algorithms */
    bool mixed;                      /* not all calls were alike */
};

/* Adds what the (length) bytes at `text` say, whole lines, to `choice`, which starts from zero
 * but for `wanted`. */
void nccl_choice_read(struct nccl_choice *choice, const char *text, size_t length);

/* "ring/simple", with "/mixed" at the end if not all calls were alike; "" for no calls. */
void nccl_choice_text(const struct nccl_choice *choice, char text[NCCL_CHOICE_BYTES]);

/*
 * The log as it is read. NCCL writes a line for every all-reduce, 600 MB in a million steps, so
 * what has been read is given back to the system: whoever follows often needs little memory.
 */
struct nccl_env_log {
    int file;                  /* as of nccl_env_set */
    off_t read;                /* so many bytes of it */
    struct nccl_choice choice; /* what they say */
};

/* A communicator is open. From here on: what was logged before does not count. One reader at a
 * time. Borrows `file`; 0: there is no log. `wanted`: nccl_choice.wanted. */
void nccl_env_log_begin(struct nccl_env_log *log, int file, const char *wanted);

/* Where the log is a file in /tmp, takes its name away, which NCCL needs no more once a
 * communicator is open, or cannot be opened. */
void nccl_env_log_forget(void);

/* Adds the whole lines that came since to log->choice. It stays at zero without a log, and where
 * the user's own NCCL_DEBUG settings keep NCCL from writing there. */
void nccl_env_log_follow(struct nccl_env_log *log);

/* Whether all that has been read went by the algorithm that was wanted; else STATUS_WRONG, logged.
 */
enum status nccl_env_log_check(const struct nccl_env_log *log);

/* -------- the watch (nccl_watch.c) ------------------------------------------------------------ */

#ifdef PSRING_NCCL_PATH

/*
 * Keeps watch over one NCCL communicator, which it owns: a thread that sees asynchronous errors and
 * peers that stay silent while the host waits for nothing, and aborts the communicator then. After
 * an abort the kernels that waited for peers end, every further call returns the failure, and what
 * was under way holds no result.
 *
 * Threads: `lock` and `unlock` stand around all calls into NCCL (but see `leave`) and around
 * recording into the stream; the watch takes the same lock. One thread, the device's, uses it all;
 * nccl_watch_status needs no lock.
 */

struct nccl_watch;

/* Converts NCCL's code. ncclSuccess gives STATUS_OK; for anything else WHAT, NCCL's own text of the
 * error and its last message (of `comm`, which may be NULL) are logged. */
enum status status_from_nccl(ncclResult_t code, ncclComm_t comm, const char *what);

/* Takes `comm`, which may still be joining its peers, in failure too; waits until it has joined
 * them. Borrows device, stream and `log`, which it follows from then on and which others touch only
 * under the lock. */
enum status nccl_watch_new(struct nccl_watch **watch, ncclComm_t comm, struct device *device,
                           struct device_stream *stream, int64_t timeout_ms,
                           struct nccl_env_log *log);

/* Frees the communicator. `finished`: every worker has ended well; else connections are cut. */
void nccl_watch_free(struct nccl_watch **watch, bool finished);

/* Locked. */
ncclComm_t nccl_watch_comm(const struct nccl_watch *watch);

/* A failure: unlock all the same. */
enum status nccl_watch_lock(struct nccl_watch *watch);
/* `status` is what happened under the lock: a failure aborts. Returns it, or an earlier one. */
enum status nccl_watch_unlock(struct nccl_watch *watch, enum status status);

/* Locked: waits until NCCL has done on the host what the last call asked for, but not longer than
 * the time-out. `what` is for the message. */
enum status nccl_watch_settle(struct nccl_watch *watch, const char *what);

/*
 * Locked, around a call into NCCL that may wait for peers: `leave` gives up the lock, `return`
 * takes it again and returns the first failure so far. If the call takes longer than the time-out,
 * or something else fails meanwhile, the thread aborts the communicator under it, as NCCL lets
 * another thread do. `what` is for the message and must last.
 */
void nccl_watch_leave(struct nccl_watch *watch, const char *what);
enum status nccl_watch_return(struct nccl_watch *watch);

/* Not locked. The host waits until the stream is empty; a failure that came meanwhile. */
enum status nccl_watch_drain(struct nccl_watch *watch);

/* The first failure so far. */
enum status nccl_watch_status(struct nccl_watch *watch);

#endif

#endif
