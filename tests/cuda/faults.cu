#include "tests/cuda/faults.h"

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tests/cuda/watch.h"

/* Guards all that follows. */
static std::mutex lock;
static std::condition_variable moved; /* some stream has come further */

/* -------- failures ---------------------------------------------------------------------------- */

enum kind { ALLOC, CALL, KINDS };

static struct {
    enum kind kind;
    long at; /* which call of the kind; 0: none */
} fault;
static long calls[KINDS];
static std::atomic<cudaError_t> dead{cudaSuccess}; /* of the whole device */

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

/* So that a test can tell a failure that psring does not mind from one that never came. */
static void tell_reached(void)
{
    const char *path = getenv("EMULATED_REACHED");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file)
        fclose(file);
}

/* What this call, the next one of its kind, is to return in the place of what it does. */
static cudaError_t failure_of(enum kind kind)
{
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

static int late_queries(void)
{
    const char *text = getenv("EMULATED_LATE");
    return text ? atoi(text) : 0;
}

/* -------- what is left at the end ------------------------------------------------------------- */

/* What it is, by address. Never destroyed: it is read when the process ends. */
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
        abort(); /* what was never there, or freed twice */
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

/* -------- streams and events ------------------------------------------------------------------ */

struct stream {
    uint64_t given = 0, done = 0;
    int queries = 0; /* that do not find it finished */
};

struct event {
    std::shared_ptr<stream> of; /* of what stream it means the work up to `until` */
    uint64_t until = 0;
    int queries = 0;
};

static auto &streams = *new std::map<cudaStream_t, std::shared_ptr<stream>>;

static std::shared_ptr<stream> stream_of(cudaStream_t handle)
{
    auto found = streams.find(handle);
    if (found == streams.end())
        abort(); /* no stream, or one that was destroyed */
    return found->second;
}

static struct event *event_of(cudaEvent_t handle)
{
    return (struct event *)handle;
}

static bool reached(const struct event *event)
{
    return !event->of || event->of->done >= event->until;
}

static bool too_early(int *queries)
{
    return *queries > 0 && (*queries)-- > 0;
}

static int current_gpu;

extern "C" {

uint64_t emulation_stream_give(cudaStream_t handle)
{
    std::lock_guard<std::mutex> guard(lock);
    return ++stream_of(handle)->given;
}

void emulation_stream_done(cudaStream_t handle, uint64_t work)
{
    std::lock_guard<std::mutex> guard(lock);
    auto found = streams.find(handle);
    if (found != streams.end() && found->second->done < work)
        found->second->done = work;
    moved.notify_all();
}

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
    std::lock_guard<std::mutex> guard(lock);
    if (error == cudaSuccess)
        current_gpu = index;
    return error;
}

/* What a launch asks for last. */
cudaError_t __wrap_cudaGetLastError(void)
{
    std::lock_guard<std::mutex> guard(lock);
    return dead;
}

/* Kernels of a device that has failed do nothing. */
void __real_emulation_enqueue(const char *name, const struct emulation_cost &known,
                              std::function<void()> work);
void __wrap_emulation_enqueue(const char *name, const struct emulation_cost &known,
                              std::function<void()> work)
{
    if (dead == cudaSuccess)
        __real_emulation_enqueue(name, known, work);
}

/* -------- memory -------- */

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
    release(memory);
    return __real_cudaFree(memory);
}

cudaError_t __real_cudaMallocHost(void **memory, size_t bytes);
cudaError_t __wrap_cudaMallocHost(void **memory, size_t bytes)
{
    cudaError_t error = failure_of(ALLOC);
    if (error == cudaSuccess)
        error = __real_cudaMallocHost(memory, bytes);
    if (error == cudaSuccess)
        hold(*memory, "pinned memory");
    return error;
}

cudaError_t __real_cudaFreeHost(void *memory);
cudaError_t __wrap_cudaFreeHost(void *memory)
{
    release(memory);
    return __real_cudaFreeHost(memory);
}

cudaError_t __real_cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream);
cudaError_t __wrap_cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream)
{
    cudaError_t error = failure_of(CALL);
    return error == cudaSuccess ? __real_cudaMemcpyAsync(to, from, bytes, kind, stream) : error;
}

cudaError_t __real_cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t __wrap_cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    cudaError_t error = failure_of(CALL);
    return error == cudaSuccess ? __real_cudaMemsetAsync(memory, value, bytes, stream) : error;
}

/* -------- streams -------- */

cudaError_t __wrap_cudaStreamCreateWithFlags(cudaStream_t *handle, unsigned)
{
    cudaError_t error = failure_of(ALLOC);
    if (error != cudaSuccess)
        return error;
    auto made = std::make_shared<stream>();
    *handle = (cudaStream_t)made.get();
    hold(*handle, "a stream");
    std::lock_guard<std::mutex> guard(lock);
    streams[*handle] = made;
    return cudaSuccess;
}

cudaError_t __wrap_cudaStreamDestroy(cudaStream_t handle)
{
    release(handle);
    std::lock_guard<std::mutex> guard(lock);
    streams.erase(handle);
    return cudaSuccess;
}

cudaError_t __real_cudaStreamSynchronize(cudaStream_t handle);
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t handle)
{
    cudaError_t error = failure_of(CALL);
    if (error == cudaSuccess)
        error = __real_cudaStreamSynchronize(handle);
    std::unique_lock<std::mutex> guard(lock);
    auto of = stream_of(handle);
    moved.wait(guard, [&] { return of->done >= of->given; });
    return error;
}

cudaError_t __wrap_cudaStreamQuery(cudaStream_t handle)
{
    cudaError_t error = failure_of(CALL);
    std::lock_guard<std::mutex> guard(lock);
    auto of = stream_of(handle);
    if (error != cudaSuccess)
        return error;
    return too_early(&of->queries) || of->done < of->given ? cudaErrorNotReady : cudaSuccess;
}

/* The emulated streams work within their calls: so the caller waits in their place. */
cudaError_t __wrap_cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned)
{
    cudaError_t error = failure_of(CALL);
    std::unique_lock<std::mutex> guard(lock);
    stream_of(handle);
    if (error == cudaSuccess)
        moved.wait(guard, [&] { return reached(event_of(event)); });
    return error;
}

/* -------- events -------- */

cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t *handle, unsigned)
{
    cudaError_t error = failure_of(ALLOC);
    if (error != cudaSuccess)
        return error;
    *handle = (cudaEvent_t) new struct event;
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
    std::lock_guard<std::mutex> guard(lock);
    auto of = stream_of(stream);
    of->queries = late_queries();
    event_of(handle)->of = of;
    event_of(handle)->until = of->given;
    event_of(handle)->queries = late_queries();
    return cudaSuccess;
}

cudaError_t __wrap_cudaEventQuery(cudaEvent_t handle)
{
    cudaError_t error = failure_of(CALL);
    if (error != cudaSuccess)
        return error;
    std::lock_guard<std::mutex> guard(lock);
    struct event *event = event_of(handle);
    return too_early(&event->queries) || !reached(event) ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t __real_cudaEventSynchronize(cudaEvent_t handle);
cudaError_t __wrap_cudaEventSynchronize(cudaEvent_t handle)
{
    cudaError_t error = failure_of(CALL);
    if (error == cudaSuccess)
        error = __real_cudaEventSynchronize(handle);
    std::unique_lock<std::mutex> guard(lock);
    if (error == cudaSuccess)
        moved.wait(guard, [&] { return reached(event_of(handle)); });
    return error;
}

/* -------- graphs -------- */

cudaError_t __real_cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t __wrap_cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    cudaError_t error = failure_of(CALL);
    return error == cudaSuccess ? __real_cudaStreamBeginCapture(stream, mode) : error;
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
    release(exec);
    return __real_cudaGraphExecDestroy(exec);
}

cudaError_t __real_cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t __wrap_cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    cudaError_t error = failure_of(CALL);
    return error == cudaSuccess ? __real_cudaGraphLaunch(exec, stream) : error;
}

} /* extern "C" */
