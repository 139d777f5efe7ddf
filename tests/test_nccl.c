/*
 * The NCCL backend without a GPU: what it asks NCCL for and in which order, and what it does when
 * peers do not come, fail or stay silent. NCCL, the part of CUDA that the backend calls itself and
 * the device are played by this file (the linker puts __wrap_NAME in the place of NAME); nothing is
 * computed. What real GPUs do is for experiments/gpu_check.sh.
 */
#include "ring/vendor/nccl.h"

#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdatomic.h>
#include <string.h>

#include "common/device/cuda.h"
#include "tests/capture.h"

/* -------- the parts that are played ----------------------------------------------------------- */

enum { NEVER = 1 << 30 };

/* How the played NCCL and GPU behave, and what they were asked for. */
static struct {
    _Atomic int polls_to_ready; /* ncclCommGetAsyncError says "in progress" so often */
    _Atomic int error;          /* then this: an ncclResult_t */
    _Atomic int stuck;          /* the stream does not move on, until an abort */
    int refuse;                 /* what ncclAllReduce returns */
    _Atomic int aborts, destroys, finalizes;
    int all_reduces, pre_multiplied, blocking;
    float scale;
    char order[64]; /* of calls: r record, w wait, a all-reduce */
} play;

static void note(char what)
{
    size_t length = strlen(play.order);
    if (length + 1 < sizeof play.order)
        play.order[length] = what;
}

ncclResult_t __wrap_ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t __wrap_ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id, 7, sizeof *id);
    return ncclSuccess;
}

ncclResult_t __wrap_ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                           ncclConfig_t *config);
ncclResult_t __wrap_ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                           ncclConfig_t *config)
{
    cr_assert(ranks == 2 && rank == 0 && id.internal[0] == 7);
    play.blocking = config->blocking;
    *comm = (ncclComm_t)(void *)&play;
    return ncclInProgress;
}

ncclResult_t __wrap_ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state);
ncclResult_t __wrap_ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    cr_assert_not_null(comm);
    if (play.polls_to_ready > 0) {
        play.polls_to_ready--;
        *state = ncclInProgress;
    } else {
        *state = (ncclResult_t)play.error;
    }
    return ncclSuccess;
}

ncclResult_t __wrap_ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                             ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t __wrap_ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                             ncclScalarResidence_t residence, ncclComm_t comm)
{
    cr_assert(type == ncclFloat && residence == ncclScalarHostImmediate && comm);
    memcpy(&play.scale, scalar, sizeof play.scale);
    *op = (ncclRedOp_t)(ncclNumOps + 1);
    return ncclSuccess;
}

ncclResult_t __wrap_ncclGroupStart(void);
ncclResult_t __wrap_ncclGroupStart(void)
{
    return ncclSuccess;
}

ncclResult_t __wrap_ncclGroupEnd(void);
ncclResult_t __wrap_ncclGroupEnd(void)
{
    play.polls_to_ready += 3;
    return ncclInProgress;
}

ncclResult_t __wrap_ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t __wrap_ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    cr_assert(from == to && count > 0 && type == ncclFloat && comm && stream);
    note('a');
    play.all_reduces++;
    play.pre_multiplied += op > ncclNumOps;
    return (ncclResult_t)play.refuse;
}

ncclResult_t __wrap_ncclCommFinalize(ncclComm_t comm);
ncclResult_t __wrap_ncclCommFinalize(ncclComm_t comm)
{
    (void)comm;
    play.finalizes++;
    play.polls_to_ready = 2;
    return ncclInProgress;
}

ncclResult_t __wrap_ncclCommDestroy(ncclComm_t comm);
ncclResult_t __wrap_ncclCommDestroy(ncclComm_t comm)
{
    (void)comm;
    play.destroys++;
    return ncclSuccess;
}

ncclResult_t __wrap_ncclCommAbort(ncclComm_t comm);
ncclResult_t __wrap_ncclCommAbort(ncclComm_t comm)
{
    (void)comm;
    play.aborts++;
    play.stuck = 0; /* its kernels end */
    return ncclSuccess;
}

const char *__wrap_ncclGetLastError(ncclComm_t comm);
const char *__wrap_ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "peer closed the connection";
}

cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = (cudaEvent_t)(void *)&play;
    return cudaSuccess;
}

cudaError_t __wrap_cudaEventDestroy(cudaEvent_t event);
cudaError_t __wrap_cudaEventDestroy(cudaEvent_t event)
{
    (void)event;
    return cudaSuccess;
}

cudaError_t __wrap_cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t __wrap_cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)event;
    (void)stream;
    return cudaSuccess;
}

cudaError_t __wrap_cudaEventQuery(cudaEvent_t event);
cudaError_t __wrap_cudaEventQuery(cudaEvent_t event)
{
    (void)event;
    return play.stuck ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t __wrap_cudaStreamQuery(cudaStream_t stream);
cudaError_t __wrap_cudaStreamQuery(cudaStream_t stream)
{
    (void)stream;
    return play.stuck ? cudaErrorNotReady : cudaSuccess;
}

bool __wrap_cuda_is(const struct device *device);
bool __wrap_cuda_is(const struct device *device)
{
    return device != NULL;
}

struct CUstream_st *__wrap_cuda_stream(struct device *device, struct device_stream *stream);
struct CUstream_st *__wrap_cuda_stream(struct device *device, struct device_stream *stream)
{
    (void)device;
    return (struct CUstream_st *)(void *)stream;
}

enum status __wrap_cuda_make_current(struct device *device);
enum status __wrap_cuda_make_current(struct device *device)
{
    (void)device;
    return STATUS_OK;
}

enum status __wrap_world_broadcast(struct world *world, const struct group *group, void *data,
                                   size_t bytes);
enum status __wrap_world_broadcast(struct world *world, const struct group *group, void *data,
                                   size_t bytes)
{
    (void)world;
    (void)group;
    (void)data;
    cr_assert_eq(bytes, NCCL_UNIQUE_ID_BYTES);
    return STATUS_OK;
}

/* -------- the device -------------------------------------------------------------------------- */

static enum status new_thing(struct device *device, void *thing)
{
    void *self = device; /* stands for every stream and event */
    memcpy(thing, &self, sizeof self);
    return STATUS_OK;
}

static enum status stream_new(struct device *device, struct device_stream **stream)
{
    return new_thing(device, stream);
}

static enum status event_new(struct device *device, struct device_event **event)
{
    return new_thing(device, event);
}

static void stream_free(struct device *device, struct device_stream *stream)
{
    (void)device;
    (void)stream;
}

static void event_free(struct device *device, struct device_event *event)
{
    (void)device;
    (void)event;
}

static void record(struct device *device, struct device_event *event, struct device_stream *stream)
{
    (void)device;
    (void)event;
    note(stream ? 'R' : 'r'); /* of the communication stream; of the compute stream */
}

static void stream_wait(struct device *device, struct device_stream *stream,
                        struct device_event *event)
{
    (void)device;
    (void)event;
    note(stream ? 'W' : 'w');
}

static enum status allocate(struct device *device, size_t bytes, void **memory)
{
    static float place;
    (void)device;
    cr_assert_leq(bytes, sizeof place);
    *memory = &place;
    return STATUS_OK;
}

static void free_nothing(struct device *device, void *memory)
{
    (void)device;
    (void)memory;
}

static void fill(struct device *device, float *to, float value, size_t count)
{
    (void)device;
    for (size_t i = 0; i < count; i++)
        to[i] = value;
}

static const struct stream_ops streams = {
    .stream_new = stream_new,
    .stream_free = stream_free,
    .event_new = event_new,
    .event_free = event_free,
    .record = record,
    .stream_wait = stream_wait,
};
static const struct device_ops ops = {
    .name = "played", .streams = &streams, .alloc = allocate, .free = free_nothing, .fill = fill};
static struct device device = {.ops = &ops};

/* -------- the tests --------------------------------------------------------------------------- */

static const size_t counts[] = {3, 5};
static float data[8];
static struct capture captured;
static struct comm_options options = {
    .scale = 1, .bucket_counts = counts, .buckets = 2, .timeout_ms = 60000, .device = &device};
static struct comm_site site = {.topology = {.workers = 2}, .index = 0, .options = &options};

static void *opened(void)
{
    void *self = NULL;
    cr_assert_eq(backend_nccl.open(&self, &site), STATUS_OK);
    memset(play.order, 0, sizeof play.order);
    play.all_reduces = 0;
    return self;
}

/* As a trainer that goes on until it is told of a failure. */
static enum status step_until_failure(void *self)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK) {
        status = backend_nccl.start(self, 0, data);
        if (status == STATUS_OK)
            status = backend_nccl.wait(self, 0);
    }
    return status;
}

Test(nccl, a_step_is_put_in_order_by_events_and_ends_in_peace)
{
    play.polls_to_ready = 20;
    options.scale = 0.5f;
    void *self = opened();
    cr_expect_eq(play.blocking, 0);
    cr_expect_eq(play.scale, 0.5f);
    cr_assert_eq(backend_nccl.start(self, 0, data), STATUS_OK);
    cr_assert_eq(backend_nccl.start(self, 1, data + 3), STATUS_OK);
    cr_assert_eq(backend_nccl.wait(self, 0), STATUS_OK);
    cr_assert_eq(backend_nccl.wait(self, 1), STATUS_OK);
    cr_expect_str_eq(play.order, "rWaRrWaRww");
    cr_expect_eq(play.all_reduces, 2);
    cr_expect_eq(play.pre_multiplied, 3, "one of them when it connected");
    cr_assert_eq(backend_nccl.finish(self), STATUS_OK);
    backend_nccl.close(self);
    cr_expect(play.finalizes == 1 && play.destroys == 1 && play.aborts == 0);
}

Test(nccl, a_sum_that_is_not_scaled_needs_no_operation_of_its_own)
{
    void *self = opened();
    cr_assert_eq(backend_nccl.start(self, 0, data), STATUS_OK);
    cr_expect_eq(play.pre_multiplied, 0);
    backend_nccl.close(self); /* without finish: connections are cut */
    cr_expect(play.finalizes == 0 && play.aborts == 1);
}

Test(nccl, peers_that_never_come_are_a_time_out)
{
    void *self = NULL;
    play.polls_to_ready = NEVER;
    options.timeout_ms = 1;
    capture_start(&captured);
    cr_assert_eq(backend_nccl.open(&self, &site), STATUS_TIMEOUT);
    capture_stop(&captured);
    cr_expect(strstr(captured.text, "--timeout"), "%s", captured.text);
    cr_expect_null(self);
    cr_expect(play.aborts == 1 && play.destroys == 0);
}

Test(nccl, an_error_that_comes_later_aborts_and_is_told)
{
    void *self = opened();
    capture_start(&captured); /* first: the watch's thread may see the error before we do */
    play.error = ncclRemoteError;
    cr_assert_eq(step_until_failure(self), STATUS_TRANSPORT);
    cr_expect_eq(backend_nccl.finish(self), STATUS_TRANSPORT);
    backend_nccl.close(self);
    capture_stop(&captured);
    cr_expect(strstr(captured.text, "peer closed the connection"), "%s", captured.text);
    cr_expect(play.aborts == 1 && play.finalizes == 0 && play.destroys == 0);
}

Test(nccl, a_peer_that_stays_silent_is_a_time_out)
{
    options.timeout_ms = 400;
    void *self = opened();
    play.stuck = 1;
    capture_start(&captured);
    cr_assert_eq(backend_nccl.start(self, 0, data), STATUS_OK);
    cr_assert_eq(backend_nccl.finish(self), STATUS_TIMEOUT); /* waits; only the watch can end it */
    backend_nccl.close(self);
    capture_stop(&captured);
    cr_expect(strstr(captured.text, "--timeout"), "%s", captured.text);
    cr_expect(play.aborts == 1 && play.finalizes == 0);
}

Test(nccl, what_nccl_refuses_at_once_is_told_at_once)
{
    void *self = opened();
    play.refuse = ncclInvalidUsage;
    capture_start(&captured);
    cr_assert_eq(backend_nccl.start(self, 0, data), STATUS_UNSUPPORTED);
    capture_stop(&captured);
    cr_expect(strstr(captured.text, "ncclAllReduce: NCCL: "), "%s", captured.text);
    cr_assert_eq(backend_nccl.start(self, 1, data), STATUS_UNSUPPORTED, "it stays failed");
    backend_nccl.close(self);
    cr_expect_eq(play.aborts, 1);
}
