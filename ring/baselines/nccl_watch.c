#include "ring/baselines/nccl_impl.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/status.h"
#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/device/cuda/cuda.h"
#include "common/net/world.h"

enum { TICK_MS = 50 }; /* interval of the thread's checks */

struct nccl_watch {
    struct device *device;
    cudaStream_t stream;
    int64_t timeout_ms;
    struct thread thread;

    pthread_mutex_t lock; /* guards all following fields, and NCCL */
    pthread_cond_t ended;
    ncclComm_t comm; /* NULL once aborted */
    struct nccl_env_log *log;
    enum status status;
    bool ending;
    /* Progress check: a mark is recorded after the work in the stream and must be reached. */
    cudaEvent_t mark;
    bool marked;          /* the mark has not been reached */
    int64_t marked_ns;    /* time of the mark */
    uint64_t calls, seen; /* calls into NCCL; their number at the last mark */
    const char *outside;  /* a call into NCCL without the lock; NULL: none */
    int64_t outside_ns;   /* its start time */
};

enum status status_from_nccl(ncclResult_t code, ncclComm_t comm, const char *what)
{
    if (code == ncclSuccess)
        return STATUS_OK;
    const char *last = ncclGetLastError(comm);
    log_error("%s: NCCL: %s%s%s", what, ncclGetErrorString(code), last && last[0] ? ": " : "",
              last ? last : "");
    return code == ncclInvalidUsage || code == ncclInvalidArgument ? STATUS_UNSUPPORTED
                                                                   : STATUS_TRANSPORT;
}

/* -------- under the lock ---------------------------------------------------------------------- */

/* Keeps the first failure, and aborts the communicator: it cannot be used after a failure. */
static void fail(struct nccl_watch *watch, enum status status)
{
    if (watch->status == STATUS_OK)
        watch->status = status;
    if (watch->comm)
        ncclCommAbort(watch->comm);
    watch->comm = NULL;
}

static enum status timed_out(const struct nccl_watch *watch, const char *what)
{
    return FAIL(STATUS_TIMEOUT,
                "%s: no GPU's answer within %g s; are all processes alive and all hosts reachable? "
                "Uneven ranks need a larger --timeout",
                what, (double)watch->timeout_ms / 1000);
}

static bool too_long(const struct nccl_watch *watch, int64_t since_ns)
{
    return watch->timeout_ms > 0 && clock_now_ns() - since_ns >= watch->timeout_ms * NS_PER_MS;
}

/* Checks that the stream has reached the last mark, and records the next one. */
static enum status check_progress(struct nccl_watch *watch)
{
    if (watch->marked) {
        cudaError_t reached = cudaEventQuery(watch->mark);
        if (reached == cudaErrorNotReady)
            return too_long(watch, watch->marked_ns) ? timed_out(watch, "nccl: an all-reduce")
                                                     : STATUS_OK;
        watch->marked = false;
        if (reached != cudaSuccess)
            return status_from_cuda((int)reached, "nccl: the communication stream");
    }
    if (watch->seen == watch->calls)
        return STATUS_OK;
    watch->seen = watch->calls;
    watch->marked = true;
    watch->marked_ns = clock_now_ns();
    return status_from_cuda((int)cudaEventRecord(watch->mark, watch->stream),
                            "nccl: a mark in the communication stream");
}

static enum status check_errors(struct nccl_watch *watch)
{
    ncclResult_t state = ncclSuccess;
    ncclResult_t result = ncclCommGetAsyncError(watch->comm, &state);
    if (result == ncclSuccess)
        result = state;
    return result == ncclInProgress ? STATUS_OK
                                    : status_from_nccl(result, watch->comm, "nccl: an all-reduce");
}

static enum status check_outside(const struct nccl_watch *watch)
{
    return watch->outside && too_long(watch, watch->outside_ns) ? timed_out(watch, watch->outside)
                                                                : STATUS_OK;
}

enum status nccl_watch_settle(struct nccl_watch *watch, const char *what)
{
    struct backoff backoff = {0};
    int64_t start_ns = clock_now_ns();
    watch->calls++;
    for (;;) {
        ncclResult_t state = ncclInProgress;
        ncclResult_t result = ncclCommGetAsyncError(watch->comm, &state);
        if (result != ncclSuccess || state != ncclInProgress)
            return status_from_nccl(result != ncclSuccess ? result : state, watch->comm, what);
        if (too_long(watch, start_ns))
            return timed_out(watch, what);
        backoff_wait(&backoff, false);
    }
}

/* -------- the thread -------------------------------------------------------------------------- */

static void wait_a_tick(struct nccl_watch *watch)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + TICK_MS * NS_PER_MS;
    until.tv_sec += ns / NS_PER_S;
    until.tv_nsec = ns % NS_PER_S;
    pthread_cond_timedwait(&watch->ended, &watch->lock, &until);
}

static void *run(void *argument)
{
    struct nccl_watch *watch = argument;
    enum status status = cuda_make_current(watch->device);
    pthread_mutex_lock(&watch->lock);
    while (!watch->ending && watch->comm && status == STATUS_OK) {
        nccl_env_log_follow(watch->log);
        status = nccl_env_log_check(watch->log);
        if (status == STATUS_OK)
            status = check_errors(watch);
        if (status == STATUS_OK)
            status = check_progress(watch);
        if (status == STATUS_OK)
            status = check_outside(watch);
        if (status == STATUS_OK)
            wait_a_tick(watch);
    }
    if (status != STATUS_OK)
        fail(watch, status);
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

/* -------- the interface ----------------------------------------------------------------------- */

enum status nccl_watch_new(struct nccl_watch **out, ncclComm_t comm, struct device *device,
                           struct device_stream *stream, int64_t timeout_ms,
                           struct nccl_env_log *log)
{
    enum status status = STATUS_OK;
    pthread_condattr_t attributes;
    *out = NULL;
    struct nccl_watch *watch = calloc(1, sizeof *watch);
    if (!watch) {
        log_error("nccl: out of memory");
        ncclCommAbort(comm);
        return STATUS_NO_MEMORY;
    }
    *watch = (struct nccl_watch){.device = device,
                                 .stream = cuda_stream(device, stream),
                                 .timeout_ms = timeout_ms,
                                 .comm = comm,
                                 .log = log};
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    TRY(status_from_cuda((int)cudaEventCreateWithFlags(&watch->mark, cudaEventDisableTiming),
                         "nccl: an event"));
    TRY(nccl_watch_settle(watch, "nccl: joining the other GPUs"));
    TRY(thread_start(&watch->thread, "psring-nccl", run, watch));
    *out = watch;
    return STATUS_OK;
out:
    nccl_watch_free(&watch, false);
    return status;
}

static void end_thread(struct nccl_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    watch->ending = true;
    pthread_cond_broadcast(&watch->ended);
    pthread_mutex_unlock(&watch->lock);
    thread_join(&watch->thread);
}

void nccl_watch_free(struct nccl_watch **out, bool finished)
{
    struct nccl_watch *watch = *out;
    if (!watch)
        return;
    *out = NULL;
    end_thread(watch);
    if (watch->comm && finished) {
        ncclResult_t result = ncclCommFinalize(watch->comm);
        if ((result == ncclSuccess || result == ncclInProgress) &&
            nccl_watch_settle(watch, "ncclCommFinalize") == STATUS_OK) {
            /* Outside of a group NCCL destroys within the call, for a non-blocking communicator
             * too. Nothing continues in the background if the process ends soon after. Source:
             * NCCL, src/group.cc, ncclAsyncLaunch. */
            ncclCommDestroy(watch->comm);
            watch->comm = NULL;
        }
    }
    if (watch->comm)
        ncclCommAbort(watch->comm);
    if (watch->mark)
        cudaEventDestroy(watch->mark);
    pthread_cond_destroy(&watch->ended);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

ncclComm_t nccl_watch_comm(const struct nccl_watch *watch)
{
    return watch->comm;
}

enum status nccl_watch_lock(struct nccl_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    return watch->status;
}

enum status nccl_watch_unlock(struct nccl_watch *watch, enum status status)
{
    if (status != STATUS_OK)
        fail(watch, status);
    status = watch->status;
    pthread_mutex_unlock(&watch->lock);
    return status;
}

void nccl_watch_leave(struct nccl_watch *watch, const char *what)
{
    watch->outside = what;
    watch->outside_ns = clock_now_ns();
    pthread_mutex_unlock(&watch->lock);
}

enum status nccl_watch_return(struct nccl_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    watch->outside = NULL;
    return watch->status;
}

enum status nccl_watch_status(struct nccl_watch *watch)
{
    return nccl_watch_unlock(watch, nccl_watch_lock(watch));
}

/* Does not use cudaStreamSynchronize, so that the thread can abort meanwhile. */
enum status nccl_watch_drain(struct nccl_watch *watch)
{
    struct backoff backoff = {0};
    for (;;) {
        enum status status = nccl_watch_lock(watch);
        cudaError_t state = cudaStreamQuery(watch->stream);
        if (status == STATUS_OK && state != cudaErrorNotReady)
            status = status_from_cuda((int)state, "nccl: the communication stream");
        status = nccl_watch_unlock(watch, status);
        if (status != STATUS_OK || state != cudaErrorNotReady)
            return status;
        backoff_wait(&backoff, true);
    }
}
