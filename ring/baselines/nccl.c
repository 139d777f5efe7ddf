/*
 * NCCL's ring all-reduce between GPUs, as a backend. The host never waits for a GPU here. Buckets
 * go to a separate stream, after an event of the compute stream. The compute stream continues after
 * an event of that stream.
 *
 *     compute        |backward      |ready  backward   |ready         |done  update
 *                                   v                  v              ^
 *     communication                 [all-reduce 0]     [1 and 2      ]
 *
 * Buckets that are ready at the same time form one NCCL group, and all ranks form the same groups.
 * For a communicator that does not block, the end of a group starts threads (NCCL 2.28.9,
 * src/group.cc), which takes host time.
 *
 * The host does not wait, so it would not notice a lost peer: the kernels of an all-reduce would
 * spin for ever. A separate thread (nccl_watch) asks NCCL for asynchronous errors and checks that
 * the stream makes progress. On an error or a standstill it aborts the communicator, which ends the
 * kernels.
 *
 * A build without NCCL does not define PSRING_NCCL_PATH. The code after #else then defines the same
 * names and reports that NCCL is missing.
 */
#include "ring/baselines/baselines.h"

#ifdef PSRING_NCCL_PATH

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/status.h"
#include "common/device/cuda/cuda.h"
#include "ring/baselines/nccl_impl.h"
#include "ring/ring.h"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 19, 0)
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes, void **handle);
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle);
#endif

/* The arguments of one all-reduce. */
struct nccl_piece {
    float *data;
    size_t count;
    struct device_event *done;
};

struct nccl {
    const struct backend_env *site;
    struct device *device;
    struct device_stream *stream; /* communication */
    struct device_event *ready;   /* the compute stream has reached this point */
    struct device_event **done;   /* (events), by bucket of the plan */
    struct nccl_piece *started;   /* (events); the first `held` are not with NCCL yet */
    void *memory;                 /* the plan's memory if NCCL has registered it; else NULL */
    float *first;                 /* one element of device memory, for connect_ring */
    size_t events, held;
    ncclRedOp_t op; /* the sum of the inputs times `scale` */
    float scale;
    struct nccl_watch *watch;  /* owns the communicator */
    struct nccl_env_log log;   /* of this communicator, for the present plan */
    struct nccl_choice choice; /* known after finish, on worker 0 */
    bool finished;             /* all workers have finished: do not cut connections */
};

/* -------- the communicator -------------------------------------------------------------------- */

/* Worker 0 creates the id. The other workers receive it over the world's channel. */
static enum status share_id(const struct backend_env *site, ncclUniqueId *id)
{
    enum status status = STATUS_OK;
    if (site->index == 0)
        TRY(status_from_nccl(ncclGetUniqueId(id), NULL, "ncclGetUniqueId"));
    TRY(world_broadcast(site->world, site->group, id, sizeof *id));
out:
    return status;
}

/* Not blocking, here and in every later call, so that a missing peer leads to a time-out. */
static enum status open_communicator(struct nccl *nccl)
{
    enum status status = STATUS_OK;
    const struct backend_env *site = nccl->site;
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    TRY(share_id(site, &id));
    ncclResult_t result = ncclCommInitRankConfig(&comm, site->workers, id, site->index, &config);
    if (result != ncclInProgress)
        TRY(status_from_nccl(result, comm, "ncclCommInitRankConfig"));
    TRY(nccl_watch_new(&nccl->watch, comm, nccl->device, nccl->stream, site->options->timeout_ms,
                       &nccl->log));
out:
    return status;
}

/* An operation that multiplies by the scale and adds, in one pass. */
static enum status make_operation(struct nccl *nccl)
{
    float scale = nccl->site->layout->scale;
    if (scale == nccl->scale)
        return STATUS_OK;
    enum status status = nccl_watch_lock(nccl->watch);
    if (status == STATUS_OK && nccl->scale != 1.0f)
        ncclRedOpDestroy(nccl->op, nccl_watch_comm(nccl->watch));
    nccl->op = ncclSum;
    nccl->scale = 1.0f;
    if (status == STATUS_OK && scale != 1.0f) {
        ncclComm_t comm = nccl_watch_comm(nccl->watch);
        status = status_from_nccl(
            ncclRedOpCreatePreMulSum(&nccl->op, &scale, ncclFloat, ncclScalarHostImmediate, comm),
            comm, "ncclRedOpCreatePreMulSum");
        if (status == STATUS_OK)
            nccl->scale = scale;
    }
    return nccl_watch_unlock(nccl->watch, status);
}

/* -------- buckets ----------------------------------------------------------------------------- */

/* The caller holds the watch's lock. */
static enum status enqueue(struct nccl *nccl, const struct nccl_piece *pieces, size_t count)
{
    enum status status = STATUS_OK;
    ncclComm_t comm = nccl_watch_comm(nccl->watch);
    ncclResult_t inside = ncclSuccess;
    TRY(status_from_nccl(ncclGroupStart(), comm, "ncclGroupStart"));
    for (size_t i = 0; i < count && (inside == ncclSuccess || inside == ncclInProgress); i++)
        inside = ncclAllReduce(pieces[i].data, pieces[i].data, pieces[i].count, ncclFloat, nccl->op,
                               comm, cuda_stream(nccl->device, nccl->stream));
    ncclResult_t result = ncclGroupEnd();
    if (inside != ncclSuccess && inside != ncclInProgress)
        result = inside;
    if (result != ncclInProgress)
        TRY(status_from_nccl(result, comm, "ncclAllReduce"));
    /* A non-blocking communicator enqueues on a thread of NCCL. Record events only after that. */
    TRY(nccl_watch_settle(nccl->watch, "ncclAllReduce"));
out:
    return status;
}

/* Runs after everything that the compute stream has been given so far. Each `done` event follows
 * the whole group. */
static enum status all_reduce(struct nccl *nccl, const struct nccl_piece *pieces, size_t count)
{
    enum status status = nccl_watch_lock(nccl->watch);
    if (status == STATUS_OK) {
        device_event_record(nccl->device, nccl->ready, NULL);
        device_stream_wait(nccl->device, nccl->stream, nccl->ready);
        status = enqueue(nccl, pieces, count);
    }
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        device_event_record(nccl->device, pieces[i].done, nccl->stream);
    return nccl_watch_unlock(nccl->watch, status);
}

static enum status nccl_start(void *self, size_t bucket, float *data)
{
    struct nccl *nccl = self;
    CHECK(nccl->held < nccl->events);
    nccl->started[nccl->held++] = (struct nccl_piece){
        .data = data, .count = nccl->site->layout->counts[bucket], .done = nccl->done[bucket]};
    return STATUS_OK;
}

static enum status nccl_flush(void *self)
{
    struct nccl *nccl = self;
    size_t count = nccl->held;
    nccl->held = 0;
    return count > 0 ? all_reduce(nccl, nccl->started, count) : STATUS_OK;
}

static enum status nccl_wait(void *self, size_t bucket)
{
    struct nccl *nccl = self;
    device_stream_wait(nccl->device, NULL, nccl->done[bucket]);
    return nccl_watch_status(nccl->watch);
}

/* NCCL connects the ring and allocates its buffers at the first all-reduce. Do that here, not in a
 * step. */
static enum status connect_ring(struct nccl *nccl)
{
    enum status status = STATUS_OK;
    void *memory;
    TRY(device_alloc(nccl->device, "NCCL's first all-reduce", sizeof(float), &memory));
    nccl->first = memory;
    nccl->device->ops->fill(nccl->device, nccl->first, 0, 1);
    TRY(all_reduce(nccl, &(struct nccl_piece){nccl->first, 1, nccl->done[0]}, 1));
    TRY(nccl_watch_drain(nccl->watch));
out:
    return status;
}

/* -------- registered memory ------------------------------------------------------------------- */

/*
 * NCCL's user-buffer registration. Other GPUs and network cards may read and write registered
 * memory directly, without a copy through NCCL's buffers. NCCL has had it since 2.19, and for the
 * ring since 2.23. Registration only notes the memory. NCCL decides at the first all-reduce whether
 * to use it, and does not report the decision.
 *
 * It is off by default. The buckets' memory comes from cudaMalloc, and NCCL's guide calls its
 * registration unsafe. A run may hang, and a failure or an abort may end in a segmentation fault.
 *
 * NCCL's guide requires that all ranks use registered memory or none. The ranks therefore agree: if
 * one rank cannot register, all fail.
 *
 * Threads: as for nccl_watch; the calls take the watch's lock.
 */

/*
 * Call this before the memory is freed, when no all-reduce is running. Sets *handle to NULL;
 * *handle may be NULL. May wait for peers, but not longer than the watch's time-out.
 *
 * NCCL may wait here for a peer that is stopped. The lock is therefore released during the call:
 * the watch needs it to cut the communicator after the time-out.
 */
static enum status deregister_memory(void **handle, struct nccl_watch *watch)
{
    if (!*handle)
        return STATUS_OK;
    enum status status = nccl_watch_lock(watch);
    if (status == STATUS_OK) {
        ncclComm_t comm = nccl_watch_comm(watch);
        nccl_watch_leave(watch, "ncclCommDeregister");
        ncclResult_t result = ncclCommDeregister(comm, *handle);
        status = nccl_watch_return(watch); /* after a failure `comm` no longer exists */
        if (status == STATUS_OK)
            status = status_from_nccl(result, comm, "ncclCommDeregister");
    }
    *handle = NULL;
    return nccl_watch_unlock(watch, status);
}

/* The library at run time may be older than the header at build time. */
static bool is_too_old(void)
{
    int version = 0;
    return ncclGetVersion(&version) == ncclSuccess && version < 21900;
}

static const char *why_not(ncclResult_t result, const void *handle)
{
    if (result != ncclSuccess && result != ncclInProgress)
        return ncclGetErrorString(result);
    return handle ? "" : "registration is off in NCCL";
}

/* On this rank only. A refused registration is not a failure of the communicator. */
static enum status try_to_register(void **handle, struct nccl_watch *watch,
                                   const struct comm_layout *layout, const char **why)
{
    *why = "this NCCL has no ncclCommRegister; use 2.19 or later";
    if (is_too_old())
        return STATUS_OK;
    enum status status = nccl_watch_lock(watch);
    if (status == STATUS_OK) {
        ncclResult_t result =
            ncclCommRegister(nccl_watch_comm(watch), layout->memory,
                             layout->memory_count * sizeof *layout->memory, handle);
        if (result == ncclInProgress)
            status = nccl_watch_settle(watch, "ncclCommRegister");
        else if (result != ncclSuccess)
            *handle = NULL;
        *why = why_not(result, *handle);
    }
    return nccl_watch_unlock(watch, status);
}

/* Collective over the site's group. Registers the memory of the present layout. *handle is NULL if
 * there is nothing to register: the layout names no memory, or the options do not request it. If
 * one rank cannot register, all ranks fail. */
static enum status register_memory(void **handle, struct nccl_watch *watch,
                                   const struct backend_env *site)
{
    enum status status = STATUS_OK;
    const struct comm_layout *layout = site->layout;
    const char *why;
    *handle = NULL;
    if (!site->options->library.registers || !layout->memory || site->workers == 1)
        return STATUS_OK;
    TRY(try_to_register(handle, watch, layout, &why));
    bool mine = *handle != NULL;
    double without = mine ? 0 : 1;
    TRY(world_sum(site->world, site->group, &without, 1));
    if (without == 0)
        return STATUS_OK;
    log_error("--nccl-register on: the memory of buckets cannot be registered%s%s%s; omit the "
              "option: NCCL works without it",
              mine ? " on another rank" : " (", mine ? "" : why, mine ? "" : ")");
    TRY(deregister_memory(handle, watch));
    status = STATUS_UNSUPPORTED;
out:
    return status;
}

/* -------- a worker's life --------------------------------------------------------------------- */

static void free_events(struct nccl *nccl)
{
    for (size_t b = 0; nccl->done && b < nccl->events; b++)
        device_event_free(nccl->device, &nccl->done[b]);
    free(nccl->done);
    free(nccl->started);
    nccl->done = NULL;
    nccl->started = NULL;
    nccl->events = nccl->held = 0;
}

static enum status new_events(struct nccl *nccl, size_t buckets)
{
    enum status status = STATUS_OK;
    nccl->done = calloc(buckets + 1, sizeof *nccl->done);
    nccl->started = calloc(buckets + 1, sizeof *nccl->started);
    if (!nccl->done || !nccl->started)
        return FAIL(STATUS_NO_MEMORY, "nccl: no memory for %zu buckets", buckets);
    for (; nccl->events < buckets; nccl->events++)
        TRY(device_event_new(nccl->device, &nccl->done[nccl->events]));
out:
    return status;
}

static void nccl_close(void *self)
{
    struct nccl *nccl = self;
    nccl_env_log_forget();
    nccl_watch_free(&nccl->watch, nccl->finished); /* also frees our `op` */
    free_events(nccl);
    device_event_free(nccl->device, &nccl->ready);
    device_stream_free(nccl->device, &nccl->stream);
    device_free(nccl->device, nccl->first);
    free(nccl);
}

/* Begins to read the log for the present plan: earlier entries do not count. */
static enum status begin_log(struct nccl *nccl)
{
    const struct comm_library *library = &nccl->site->options->library;
    enum status status = nccl_watch_lock(nccl->watch);
    nccl_env_log_begin(&nccl->log, library->log, library->algorithm);
    return nccl_watch_unlock(nccl->watch, status);
}

/* Reads the algorithm that NCCL used. Only NCCL's rank 0 writes the log, and one GPU needs no
 * algorithm. */
static enum status read_choice(struct nccl *nccl)
{
    const struct backend_env *site = nccl->site;
    if (site->index != 0 || site->workers == 1)
        return STATUS_OK;
    enum status status = nccl_watch_lock(nccl->watch);
    nccl_env_log_follow(&nccl->log);
    nccl->choice = nccl->log.choice;
    if (status == STATUS_OK)
        status = nccl_env_log_check(&nccl->log);
    return nccl_watch_unlock(nccl->watch, status);
}

static enum status nccl_open(void **self, const struct backend_env *site)
{
    enum status status = STATUS_OK;
    *self = NULL;
    CHECK(cuda_is(site->options->device));
    struct nccl *nccl = calloc(1, sizeof *nccl);
    if (!nccl)
        return FAIL(STATUS_NO_MEMORY, "nccl: out of memory");
    nccl->site = site;
    nccl->device = site->options->device;
    nccl->op = ncclSum;
    nccl->scale = 1.0f;
    TRY(device_stream_new(nccl->device, &nccl->stream));
    TRY(device_event_new(nccl->device, &nccl->ready));
    TRY(new_events(nccl, 1)); /* for connect_ring */
    TRY(open_communicator(nccl));
    TRY(begin_log(nccl));
    TRY(connect_ring(nccl));
    TRY(read_choice(nccl)); /* now, not after hours of training */
    *self = nccl;
    return STATUS_OK;
out:
    nccl_close(nccl);
    return status;
}

static enum status nccl_plan(void *self)
{
    enum status status = STATUS_OK;
    struct nccl *nccl = self;
    nccl->finished = false;
    free_events(nccl);
    TRY(new_events(nccl, nccl->site->layout->buckets));
    TRY(make_operation(nccl));
    TRY(register_memory(&nccl->memory, nccl->watch, nccl->site));
    TRY(begin_log(nccl));
out:
    return status;
}

static enum status nccl_finish(void *self)
{
    enum status status = STATUS_OK;
    struct nccl *nccl = self;
    TRY(nccl_watch_drain(nccl->watch));
    TRY(deregister_memory(&nccl->memory, nccl->watch));
    TRY(read_choice(nccl));
    if (nccl->site->index == 0 && nccl->site->workers > 1 && nccl->choice.calls == 0)
        log_warn("nccl: its log does not name the algorithm; unset NCCL_DEBUG, NCCL_DEBUG_SUBSYS "
                 "and NCCL_DEBUG_FILE where they are set");
    nccl->finished = true;
out:
    return status;
}

static void nccl_algorithm(void *self, char text[COMM_ALGORITHM_BYTES])
{
    const struct nccl *nccl = self;
    _Static_assert((int)COMM_ALGORITHM_BYTES >= (int)NCCL_CHOICE_BYTES, "a choice fits");
    nccl_choice_text(&nccl->choice, text);
}

static void nccl_prepare(const struct world *world, struct comm_library *library)
{
    nccl_env_set(&(struct nccl_env_options){.share_gpu = library->share_gpu,
                                            .algorithm = library->algorithm,
                                            .registers = library->registers,
                                            .world = world},
                 &library->log);
}

/* The time of the ring. The bytes are not counted. */
static const struct cost_formula nccl_cost = {.time_s = ring_cost_time_s};

bool nccl_version(char *text, size_t size)
{
    int version = 0;
    if (ncclGetVersion(&version) != ncclSuccess)
        return false;
    snprintf(text, size, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    return true;
}

const struct backend backend_nccl = {
    .name = "nccl",
    .summary = "NCCL's ring all-reduce between GPUs",
    .device_memory = true,
    .gpu_only = true,
    .takes_nccl_options = true,
    .cost = &nccl_cost,
    .prepare = nccl_prepare,
    .open = nccl_open,
    .plan = nccl_plan,
    .start = nccl_start,
    .flush = nccl_flush,
    .wait = nccl_wait,
    .finish = nccl_finish,
    .algorithm = nccl_algorithm,
    .close = nccl_close,
};

#else

bool nccl_version(char *text, size_t size)
{
    (void)text;
    (void)size;
    return false;
}

const struct backend backend_nccl = {
    .name = "nccl",
    .summary = "NCCL's ring all-reduce between GPUs",
    .device_memory = true,
    .gpu_only = true,
    .takes_nccl_options = true,
    .cost = &cost_not_known,
    .unavailable = "this build has no NCCL; install CUDA's toolkit and NCCL (nccl.h and libnccl) "
                   "and configure again with -DPSRING_CUDA=ON, or use --backend ring, the same "
                   "ring between CPUs",
};

#endif
