/*
 * A stand-in for the parts of CUDA's run-time that psring calls, on the host. Device memory is the
 * host's, and work is done within the call. A recorded stream keeps its work for the graph. This
 * tests the CUDA device without a GPU, except for the GPU itself. An upload from host memory while
 * a stream is recorded fails: a recorded step would repeat the same data.
 *
 * EMULATED_GPUS lists the PCI bus ids of the GPUs that a process sees, separated by commas. An
 * "error" means a system that is not ready. EMULATED_LOG.RANK gets the id of the GPU that the rank
 * takes.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/emulation/emulation.h"

/* The object of cudaGraph_t and cudaGraphExec_t. */
struct recording {
    std::vector<std::function<void()>> work;
};

static struct recording *recorded; /* the current recording; one stream at a time */

/* A copy from pageable memory may read its source long after the call. Here the copy happens when
 * the stream gets more work or a thread waits for it. Used by the device's thread. */
static std::vector<std::function<void()>> late;
static std::map<const char *, size_t> pinned; /* bytes, by address */

static void do_late_copies(void)
{
    for (const auto &copy : late)
        copy();
    late.clear();
}

static bool is_pinned(const void *memory)
{
    auto after = pinned.upper_bound((const char *)memory);
    return after != pinned.begin() &&
           (const char *)memory < std::prev(after)->first + std::prev(after)->second;
}

extern "C" {
const struct emulation_watcher *emulation_watcher;
void (*emulation_gate)(cudaStream_t stream, const std::function<void()> &work);
unsigned long long emulation_fused;
}

static void run_or_record(std::function<void()> work)
{
    do_late_copies();
    if (recorded)
        recorded->work.push_back(work);
    else
        work();
}

static void launch(const char *name, const struct emulation_cost &known,
                   const std::function<void()> &work)
{
    if (!emulation_watcher) {
        run_or_record(work);
        return;
    }
    run_or_record([=] {
        emulation_watcher->launch_begin(name, &known);
        work();
        emulation_watcher->launch_end();
    });
}

void emulation_enqueue(const char *name, const struct emulation_cost &known, cudaStream_t stream,
                       std::function<void()> work)
{
    if (emulation_gate)
        emulation_gate(stream, [=] { launch(name, known, work); });
    else
        launch(name, known, work);
}

void emulation_grid(unsigned blocks, unsigned threads, const std::function<void()> &thread)
{
    static const bool backwards = getenv("EMULATED_ORDER") != NULL;
    gridDim.x = blocks;
    blockDim.x = threads;
    for (unsigned b = 0; b < blocks; b++) {
        blockIdx.x = backwards ? blocks - 1 - b : b;
        for (unsigned t = 0; t < threads; t++) {
            threadIdx.x = backwards ? threads - 1 - t : t;
            thread();
        }
    }
}

/* By default one GPU, the second of the two in nvml.c. */
static const std::vector<std::string> &gpus(void)
{
    static const std::vector<std::string> all = [] {
        const char *text = getenv("EMULATED_GPUS");
        std::stringstream stream(text ? text : "0000:fe:1d.0");
        std::vector<std::string> ids;
        for (std::string id; std::getline(stream, id, ',');)
            ids.push_back(id);
        return ids;
    }();
    return all;
}

/* Any pointer that is not NULL represents a stream or an event. */
static char handle;

extern "C" {

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "emulated error";
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
           : error == cudaErrorSystemNotReady ? "cudaErrorSystemNotReady"
                                              : "cudaError";
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = (int)gpus().size();
    return gpus()[0] == "error" ? cudaErrorSystemNotReady : cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int index)
{
    const char *log = getenv("EMULATED_LOG"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (index < 0 || (size_t)index >= gpus().size())
        return cudaErrorInvalidDevice;
    if (log) {
        std::string path = std::string(log) + "." + (rank ? rank : "0");
        FILE *file = fopen(path.c_str(), "w");
        if (!file)
            return cudaErrorUnknown;
        fprintf(file, "%s\n", gpus()[(size_t)index].c_str());
        fclose(file);
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int)
{
    memset(properties, 0, sizeof *properties);
    strcpy(properties->name, "emulated on the host");
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int index)
{
    snprintf(id, (size_t)bytes, "%s", gpus().at((size_t)index).c_str());
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *, const void *)
{
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    *memory = bytes > SIZE_MAX - 256 ? NULL : aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*memory)
        return cudaErrorMemoryAllocation;
    memset(*memory, 0xff, bytes < 1 << 26 ? bytes : 1 << 26); /* NaN: no code may rely on zeros */
    if (emulation_watcher)
        emulation_watcher->allocated(*memory, bytes);
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    if (emulation_watcher && memory)
        emulation_watcher->freed(memory);
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **memory, size_t bytes)
{
    cudaError_t error = cudaMalloc(memory, bytes);
    if (error == cudaSuccess)
        pinned[(const char *)*memory] = bytes;
    return error;
}

cudaError_t cudaFreeHost(void *memory)
{
    pinned.erase((const char *)memory);
    return cudaFree(memory);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t)
{
    if (recorded && kind != cudaMemcpyDeviceToDevice)
        return cudaErrorStreamCaptureUnsupported;
    if (emulation_watcher)
        emulation_watcher->copied(kind == cudaMemcpyHostToDevice   ? "upload"
                                  : kind == cudaMemcpyDeviceToHost ? "download"
                                                                   : "copy",
                                  bytes);
    if (kind == cudaMemcpyHostToDevice && !is_pinned(from))
        late.push_back([=] { memcpy(to, from, bytes); });
    else
        run_or_record([=] { memcpy(to, from, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t)
{
    run_or_record([=] { memset(memory, value, bytes); });
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    *stream = (cudaStream_t)&handle;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    do_late_copies();
    return recorded ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned)
{
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = (cudaEvent_t)&handle;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t)
{
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t)
{
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return recorded ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode)
{
    recorded = new struct recording;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph)
{
    struct recording *whole = recorded;
    recorded = NULL;
    *graph = NULL;
    if (getenv("EMULATED_CAPTURE_FAILS")) { /* for tests: a recording fails */
        delete whole;
        return cudaErrorStreamCaptureInvalidated;
    }
    *graph = (cudaGraph_t)whole;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long)
{
    *exec = (cudaGraphExec_t) new struct recording(*(struct recording *)graph);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t)
{
    for (const auto &work : ((struct recording *)exec)->work)
        work();
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete (struct recording *)graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    delete (struct recording *)exec;
    return cudaSuccess;
}

} /* extern "C" */
