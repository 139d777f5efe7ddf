/* Streams, events, pinned memory and recorded steps of the CUDA device. */
#include "common/device/cuda/cuda.h"
#include "common/device/cuda/cuda_device.h"

/* A device_stream is a cudaStream_t, a device_event a cudaEvent_t. */
static cudaStream_t stream_of(struct device *device, struct device_stream *stream)
{
    return stream ? (cudaStream_t)(void *)stream : cuda_of(device)->compute;
}

static cudaEvent_t event_of(struct device_event *event)
{
    return (cudaEvent_t)(void *)event;
}

/* -------- for NCCL ---------------------------------------------------------------------------- */

bool cuda_is(const struct device *device)
{
    return device && device->ops == &cuda_ops;
}

struct CUstream_st *cuda_stream(struct device *device, struct device_stream *stream)
{
    return stream_of(device, stream);
}

enum status cuda_make_current(struct device *device)
{
    return status_from_cuda(cudaSetDevice(cuda_of(device)->index), "the GPU cannot be used");
}

/* -------- streams and events ------------------------------------------------------------------ */

static enum status stream_new(struct device *device, struct device_stream **stream)
{
    (void)device;
    cudaStream_t s = NULL;
    enum status status =
        status_from_cuda(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "a stream");
    *stream = (struct device_stream *)(void *)s;
    return status;
}

static void stream_free(struct device *device, struct device_stream *stream)
{
    cudaStream_t s = stream_of(device, stream);
    cuda_keep(cuda_of(device), cudaStreamSynchronize(s), "a stream's work");
    cuda_keep(cuda_of(device), cudaStreamDestroy(s), "a stream");
}

static enum status event_new(struct device *device, struct device_event **event)
{
    (void)device;
    cudaEvent_t e = NULL;
    /* The waiting thread blocks: spinning would take the CPU from the ranks that communicate. */
    enum status status = status_from_cuda(
        cudaEventCreateWithFlags(&e, cudaEventDisableTiming | cudaEventBlockingSync), "an event");
    *event = (struct device_event *)(void *)e;
    return status;
}

static void event_free(struct device *device, struct device_event *event)
{
    cuda_keep(cuda_of(device), cudaEventDestroy(event_of(event)), "an event");
}

static void record(struct device *device, struct device_event *event, struct device_stream *stream)
{
    cuda_keep(cuda_of(device), cudaEventRecord(event_of(event), stream_of(device, stream)),
              "an event");
}

static void stream_wait(struct device *device, struct device_stream *stream,
                        struct device_event *event)
{
    cuda_keep(cuda_of(device), cudaStreamWaitEvent(stream_of(device, stream), event_of(event), 0),
              "waiting for an event");
}

/* Any thread may call this, so it does not write `failure`. The device's thread will find the same
 * error. */
static enum status event_wait(struct device *device, struct device_event *event)
{
    struct cuda *cuda = cuda_of(device);
    cudaError_t error = cudaSetDevice(cuda->index);
    if (error == cudaSuccess)
        error = cudaEventSynchronize(event_of(event));
    if (error == cudaSuccess)
        return STATUS_OK;
    /* Log only once, from the first thread that finds the failure. */
    return atomic_exchange(&cuda->told, true) ? STATUS_DEVICE
                                              : status_from_cuda(error, "an operation failed");
}

/* -------- pinned memory and copies ------------------------------------------------------------ */

static enum status host_alloc(struct device *device, size_t bytes, void **memory)
{
    (void)device;
    return cuda_allocated(cudaMallocHost(memory, bytes ? bytes : 1),
                          "an allocation of pinned memory failed", memory);
}

static void host_free(struct device *device, void *memory)
{
    cuda_keep(cuda_of(device), cudaFreeHost(memory), "pinned memory cannot be freed");
}

static void transfer(struct device *device, struct device_stream *stream, void *to,
                     const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    struct cuda *cuda = cuda_of(device);
    if (bytes > 0 && cuda->failure == STATUS_OK)
        cuda_keep(cuda, cudaMemcpyAsync(to, from, bytes, kind, stream_of(device, stream)),
                  "a copy between GPU and host");
}

static void upload(struct device *device, struct device_stream *stream, void *to,
                   const void *from_host, size_t bytes)
{
    transfer(device, stream, to, from_host, bytes, cudaMemcpyHostToDevice);
}

static void download(struct device *device, struct device_stream *stream, void *to_host,
                     const void *from, size_t bytes)
{
    transfer(device, stream, to_host, from, bytes, cudaMemcpyDeviceToHost);
}

/* -------- steps that repeat ------------------------------------------------------------------- */

static enum status launch_graph(struct cuda *cuda)
{
    cuda_keep(cuda, cudaGraphLaunch(cuda->graph.exec, cuda->compute), "a recorded step");
    return cuda->failure;
}

/* Records the operations of `work`, which do not run meanwhile, and makes them executable. If this
 * fails, the device stays unchanged. */
static enum status capture(struct cuda *cuda, device_work *work, void *context)
{
    struct cuda_graph *g = &cuda->graph;
    cudaGraph_t graph = NULL;
    cudaError_t error = cudaStreamBeginCapture(cuda->compute, cudaStreamCaptureModeThreadLocal);
    if (error == cudaSuccess) {
        g->capturing = true;
        enum status asked = work(context);
        error = cudaStreamEndCapture(cuda->compute, &graph);
        g->capturing = false;
        if (asked != STATUS_OK || cuda->failure != STATUS_OK)
            error = error == cudaSuccess ? cudaErrorStreamCaptureInvalidated : error;
    }
    if (error == cudaSuccess)
        error = cudaGraphInstantiateWithFlags(&g->exec, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    if (error == cudaSuccess)
        return STATUS_OK;
    cudaGetLastError();
    g->exec = NULL;
    cuda->failure = STATUS_OK; /* nothing ran that could have failed */
    if (g->use == DEVICE_GRAPH_ON)
        return status_from_cuda(error, "--cuda-graph on: a step cannot be recorded");
    log_warn("cuda: a step cannot be recorded as a graph (%s) and is launched kernel by kernel; "
             "--cuda-graph off avoids this warning",
             cudaGetErrorString(error));
    g->use = DEVICE_GRAPH_OFF;
    return STATUS_OK;
}

static enum status repeat(struct device *device, device_work *work, void *context)
{
    struct cuda *cuda = cuda_of(device);
    struct cuda_graph *g = &cuda->graph;
    if (cuda->failure != STATUS_OK || g->use == DEVICE_GRAPH_OFF)
        return cuda->failure != STATUS_OK ? cuda->failure : work(context);
    if (g->work != work || g->context != context) {
        if (g->exec)
            cuda_keep(cuda, cudaGraphExecDestroy(g->exec), "a recorded step");
        *g = (struct cuda_graph){.use = g->use, .work = work, .context = context};
    }
    if (!g->warm) { /* one-time work such as loading kernels cannot be recorded */
        g->warm = true;
        return work(context);
    }
    if (!g->exec) {
        enum status status = capture(cuda, work, context);
        if (status != STATUS_OK)
            return status;
    }
    return g->exec ? launch_graph(cuda) : work(context);
}

const struct stream_ops cuda_stream_ops = {
    .steps_ahead = 2,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .event_new = event_new,
    .event_free = event_free,
    .record = record,
    .stream_wait = stream_wait,
    .event_wait = event_wait,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .upload = upload,
    .download = download,
    .repeat = repeat,
};
