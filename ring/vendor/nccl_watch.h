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
#ifndef PSRING_RING_NCCL_WATCH_H
#define PSRING_RING_NCCL_WATCH_H

#include <nccl.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "ring/vendor/nccl_env.h"

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
