#include "tests/ring/nccl_played.h"

#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/device/cuda/cuda.h"
#include "common/net/world.h"

struct nccl_play play;

/* -------- NCCL and CUDA ----------------------------------------------------------------------- */

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
    note('(');
    return ncclSuccess;
}

ncclResult_t __wrap_ncclGroupEnd(void);
ncclResult_t __wrap_ncclGroupEnd(void)
{
    note(')');
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
    play.undone++;
    play.pre_multiplied += op > ncclNumOps;
    if (play.log > 0)
        dprintf(play.log,
                "a:1:1 [0] NCCL INFO AllReduce: %zu Bytes -> Algo %s proto SIMPLE channel{}\n",
                count * sizeof(float), count == 1 ? "TREE" : "RING");
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
    cr_assert(comm && play.polls_to_ready == 0, "destroyed before it was finalized");
    play.destroys++;
    return ncclSuccess;
}

ncclResult_t __wrap_ncclCommAbort(ncclComm_t comm);
ncclResult_t __wrap_ncclCommAbort(ncclComm_t comm)
{
    (void)comm;
    play.aborts++;
    play.stuck = 0; /* the communicator's kernels end */
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
    if (play.stuck)
        return cudaErrorNotReady;
    play.undone = 0;
    return cudaSuccess;
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

enum status __wrap_world_sum(struct world *world, const struct group *group, double *values,
                             size_t count);
enum status __wrap_world_sum(struct world *world, const struct group *group, double *values,
                             size_t count)
{
    (void)world;
    (void)group;
    cr_assert_eq(count, 1);
    values[0] += play.others_refuse;
    return STATUS_OK;
}

ncclResult_t __wrap_ncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes,
                                     void **handle);
ncclResult_t __wrap_ncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes,
                                     void **handle)
{
    cr_assert(comm && bytes > 0);
    play.registered += play.refuse_memory == 0 && !play.off;
    *handle = play.off ? NULL : memory;
    return (ncclResult_t)play.refuse_memory;
}

ncclResult_t __wrap_ncclCommDeregister(const ncclComm_t comm, void *handle);
ncclResult_t __wrap_ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    cr_assert(comm && handle);
    cr_assert_eq(play.undone, 0, "sums are under way in this memory");
    play.registered--;
    for (int ms = 0; play.waits && play.aborts == 0; ms++) {
        cr_assert_lt(ms, 20000, "no abort has ended the wait");
        usleep(1000);
    }
    return play.waits ? ncclInternalError : ncclSuccess;
}

/* -------- the device -------------------------------------------------------------------------- */

static enum status new_thing(struct device *device, void *thing)
{
    void *self = device; /* used as every stream and event */
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
    note(stream ? 'R' : 'r'); /* R: communication stream, r: compute stream */
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
struct device played_device = {.ops = &ops};
