#include "tests/emulation/faults.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>

#include "tests/emulation/streams.h"
#include "tests/emulation/watch.h"

static std::mutex lock; /* guards everything below */

/* -------- devices ----------------------------------------------------------------------------- */

/* As in CUDA, each thread has a current GPU: the first one that the process sees, until the thread
 * names another. */
static thread_local int current_gpu;
static std::atomic<int> taken_gpu{-1}; /* the process's GPU: psring uses only one */

/* CUDA lets a thread create streams, events and memory on a GPU that the process has not taken. A
 * launch fails if its stream is on a different GPU than the thread (CUDA C++ Programming Guide,
 * Multi-Device System). Here both abort the process, so no error path can let a test pass. */
static void must_be_on_taken_gpu(const char *what)
{
    if (current_gpu == taken_gpu)
        return;
    fprintf(stderr, "emulation: %s by a thread on GPU %d of a process that has taken GPU %d\n",
            what, current_gpu, taken_gpu.load());
    abort();
}

/* -------- failures ---------------------------------------------------------------------------- */

enum kind { ALLOC, CALL, KINDS };

static struct {
    enum kind kind;
    long at; /* number of the call of this kind; 0: none */
} fault;
static long calls[KINDS];
static std::atomic<cudaError_t> dead{cudaSuccess}; /* the error of the whole device */

static void read_fault(void)
{
    static bool read;
    const char *text = getenv("EMULATED_FAIL");
    if (!read && text && strncmp(text, "alloc:", 6) == 0)
        fault = {ALLOC, atol(text + 6)};
    else if (!read && text && strncmp(text, "call:", 5) == 0)
        fault = {CALL, atol(text + 5)};
    else if (!read && text)
        abort();
    read = true;
}

/* Lets a test distinguish a failure that psring tolerates from a failure that never happened. */
static void tell_reached(void)
{
    const char *path = getenv("EMULATED_REACHED");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file)
        fclose(file);
}

/* Counts a call of this kind and returns its failure, or cudaSuccess. */
static cudaError_t failure_of(enum kind kind)
{
    if (kind == ALLOC)
        must_be_on_taken_gpu("an allocation");
    std::lock_guard<std::mutex> guard(lock);
    read_fault();
    if (dead != cudaSuccess)
        return dead;
    if (++calls[kind] != fault.at || kind != fault.kind)
        return cudaSuccess;
    tell_reached();
    if (kind == CALL)
        dead = cudaErrorLaunchFailure;
    return kind == CALL ? cudaErrorLaunchFailure : cudaErrorMemoryAllocation;
}

/* -------- leaks ------------------------------------------------------------------------------- */

/* Names of the allocations, by address. Never destroyed: it is read when the process ends. */
static auto &held = *new std::map<const void *, const char *>;

static void hold(const void *address, const char *what)
{
    std::lock_guard<std::mutex> guard(lock);
    held[address] = what;
}

static void release(const void *address)
{
    std::lock_guard<std::mutex> guard(lock);
    if (address && held.erase(address) != 1)
        abort(); /* never allocated, or freed twice */
}

__attribute__((destructor)) static void tell_what_is_left(void)
{
    const char *path = getenv("EMULATED_LEFT");
    FILE *file = path ? fopen(path, "a") : NULL;
    for (const auto &each : held)
        if (file)
            fprintf(file, "%s\n", each.second);
    if (file)
        fclose(file);
}

/* -------- events and recording ---------------------------------------------------------------- */

struct event {
    struct place place;
    int queries = 0; /* this many queries still find it unfinished */
};

static struct event *event_of(cudaEvent_t handle)
{
    return (struct event *)handle;
}

static bool too_early(int *queries)
{
    std::lock_guard<std::mutex> guard(lock);
    return *queries > 0 && (*queries)-- > 0;
}

/* Between cudaStreamBeginCapture and cudaStreamEndCapture work is neither done nor delayed here. */
static std::atomic<bool> recording;

/* Does the work or delays it. While a stream is recorded, the run-time records it. */
static void ask(cudaStream_t stream, const std::function<void()> &work)
{
    if (recording)
        work();
    else
        streams_ask(stream, [work] {
            if (dead == cudaSuccess)
                work();
        });
}

extern "C" {

void emulation_gpu(char *id, int bytes)
{
    cudaDeviceGetPCIBusId(id, bytes, current_gpu);
}

const char *__real_cudaGetErrorName(cudaError_t error);
const char *__wrap_cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorLaunchFailure ? "cudaErrorLaunchFailure"
                                           : __real_cudaGetErrorName(error);
}

cudaError_t __real_cudaSetDevice(int index);
cudaError_t __wrap_cudaSetDevice(int index)
{
    cudaError_t error = __real_cudaSetDevice(index);
    if (error == cudaSuccess)
        current_gpu = taken_gpu = index;
    return error;
}

/* A launch calls this last. */
cudaError_t __wrap_cudaGetLastError(void)
{
    std::lock_guard<std::mutex> guard(lock);
    return dead;
}

/* After a failure the device's kernels do nothing. */
static void gate(cudaStream_t stream, const std::function<void()> &work)
{
    must_be_on_taken_gpu("a launch");
    if (dead == cudaSuccess)
        ask(stream, work);
}

__attribute__((constructor)) static void set_gate(void)
{
    emulation_gate = gate;
}

/* -------- memory -------- */

/* Freeing memory waits for the device. */
static void finish_all(void)
{
    if (streams_late() > 0)
        streams_reach_all();
}

cudaError_t __real_cudaMalloc(void **memory, size_t bytes);
cudaError_t __wrap_cudaMalloc(void **memory, size_t bytes)
{
    cudaError_t error = failure_of(ALLOC);
    if (error == cudaSuccess)
        error = __real_cudaMalloc(memory, bytes);
    if (error == cudaSuccess)
        hold(*memory, "device memory");
    return error;
}

cudaError_t __real_cudaFree(void *memory);
cudaError_t __wrap_cudaFree(void *memory)
{
    finish_all();
    release(memory);
    return __real_cudaFree(memory);
}

cudaError_t __real_cudaMallocHost(void **memory, size_t bytes);
cudaError_t __wrap_cudaMallocHost(void **memory, size_t bytes)
{
    cudaError_t error = failure_of(ALLOC);
    if (error == cudaSuccess)
        streams_run([&] { error = __real_cudaMallocHost(memory, bytes); });
    if (error == cudaSuccess)
        hold(*memory, "pinned memory");
    return error;
}

cudaError_t __real_cudaFreeHost(void *memory);
cudaError_t __wrap_cudaFreeHost(void *memory)
{
    finish_all();
    release(memory);
    cudaError_t error = cudaSuccess;
    streams_run([&] { error = __real_cudaFreeHost(memory); });
    return error;
}

cudaError_t __real_cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream);
cudaError_t __wrap_cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream)
{
    cudaError_t error = failure_of(CALL);
    if (error == cudaSuccess && recording)
        return __real_cudaMemcpyAsync(to, from, bytes, kind, stream);
    if (error == cudaSuccess)
        ask(stream, [=] { __real_cudaMemcpyAsync(to, from, bytes, kind, stream); });
    return error;
}

cudaError_t __real_cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t __wrap_cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    cudaError_t error = failure_of(CALL);
    if (error == cudaSuccess)
        ask(stream, [=] { __real_cudaMemsetAsync(memory, value, bytes, stream); });
    return error;
}

/* -------- streams -------- */

cudaError_t __wrap_cudaStreamCreateWithFlags(cudaStream_t *handle, unsigned)
{
    cudaError_t error = failure_of(ALLOC);
    if (error != cudaSuccess)
        return error;
    streams_new(handle);
    hold(*handle, "a stream");
    return cudaSuccess;
}

cudaError_t __wrap_cudaStreamDestroy(cudaStream_t handle)
{
    release(handle);
    streams_free(handle);
    return cudaSuccess;
}

cudaError_t __real_cudaStreamSynchronize(cudaStream_t handle);
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t handle)
{
    cudaError_t error = failure_of(CALL);
    if (error == cudaSuccess && recording)
        return __real_cudaStreamSynchronize(handle);
    streams_reach(streams_here(handle));
    if (error == cudaSuccess) /* does delayed copies from pageable memory */
        streams_run([=] { __real_cudaStreamSynchronize(handle); });
    return error;
}

cudaError_t __wrap_cudaStreamQuery(cudaStream_t handle)
{
    cudaError_t error = failure_of(CALL);
    if (error != cudaSuccess)
        return error;
    if (too_early(&streams_find(handle)->queries) || !streams_try(streams_here(handle)))
        return cudaErrorNotReady;
    return cudaSuccess;
}

cudaError_t __wrap_cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned)
{
    cudaError_t error = failure_of(CALL);
    if (error == cudaSuccess && !recording)
        streams_follow(handle, event_of(event)->place);
    return error;
}

/* -------- events -------- */

cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t *handle, unsigned)
{
    cudaError_t error = failure_of(ALLOC);
    if (error != cudaSuccess)
        return error;
    *handle = (cudaEvent_t) new struct event();
    hold(*handle, "an event");
    return cudaSuccess;
}

cudaError_t __wrap_cudaEventDestroy(cudaEvent_t handle)
{
    release(handle);
    delete event_of(handle);
    return cudaSuccess;
}

cudaError_t __wrap_cudaEventRecord(cudaEvent_t handle, cudaStream_t stream)
{
    cudaError_t error = failure_of(CALL);
    if (error != cudaSuccess)
        return error;
    event_of(handle)->place = streams_here(stream);
    std::lock_guard<std::mutex> guard(lock);
    event_of(handle)->queries = streams_late();
    event_of(handle)->place.of->queries = streams_late();
    return cudaSuccess;
}

cudaError_t __wrap_cudaEventQuery(cudaEvent_t handle)
{
    cudaError_t error = failure_of(CALL);
    if (error != cudaSuccess)
        return error;
    struct event *event = event_of(handle);
    return too_early(&event->queries) || !streams_try(event->place) ? cudaErrorNotReady
                                                                    : cudaSuccess;
}

cudaError_t __real_cudaEventSynchronize(cudaEvent_t handle);
cudaError_t __wrap_cudaEventSynchronize(cudaEvent_t handle)
{
    cudaError_t error = failure_of(CALL);
    if (error == cudaSuccess)
        error = __real_cudaEventSynchronize(handle);
    if (error == cudaSuccess)
        streams_reach(event_of(handle)->place);
    return error;
}

/* -------- graphs -------- */

cudaError_t __real_cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t __wrap_cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    cudaError_t error = failure_of(CALL);
    finish_all(); /* delayed work does not belong to the recording */
    if (error == cudaSuccess)
        error = __real_cudaStreamBeginCapture(stream, mode);
    recording = error == cudaSuccess;
    return error;
}

cudaError_t __real_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t __wrap_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    recording = false;
    return __real_cudaStreamEndCapture(stream, graph);
}

cudaError_t __real_cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                 unsigned long long flags);
cudaError_t __wrap_cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                 unsigned long long flags)
{
    cudaError_t error = failure_of(ALLOC);
    if (error == cudaSuccess)
        error = __real_cudaGraphInstantiateWithFlags(exec, graph, flags);
    if (error == cudaSuccess)
        hold(*exec, "a recorded graph");
    return error;
}

cudaError_t __real_cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t __wrap_cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    finish_all(); /* CUDA frees it after it has run */
    release(exec);
    return __real_cudaGraphExecDestroy(exec);
}

cudaError_t __real_cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t __wrap_cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    cudaError_t error = failure_of(CALL);
    if (error == cudaSuccess)
        ask(stream, [=] { __real_cudaGraphLaunch(exec, stream); });
    return error;
}

} /* extern "C" */
