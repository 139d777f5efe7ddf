/* The CUDA device: opening it, memory, the operations that are one kernel each, its table. */
#include "common/device/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "common/device/inputs.h"
#include "common/device/open.h"
#include "common/device/cuda/cuda_device.h"
#include "common/device/cuda/kernels/kernels.h"

/* -------- errors ------------------------------------------------------------------------------ */

enum status status_from_cuda(int error, const char *what)
{
    cudaError_t e = (cudaError_t)error;
    if (e == cudaSuccess)
        return STATUS_OK;
    const char *advice = e == cudaErrorMemoryAllocation
                             ? "; use a smaller batch or model, or a GPU without other processes"
                         : e == cudaErrorDevicesUnavailable
                             ? "; another process uses the GPU exclusively, see nvidia-smi"
                             : "";
    log_error("cuda: %s: %s (%s)%s", what, cudaGetErrorString(e), cudaGetErrorName(e), advice);
    if (e == cudaErrorMemoryAllocation)
        return STATUS_NO_MEMORY;
    return e == cudaErrorNoDevice || e == cudaErrorInsufficientDriver ? STATUS_UNSUPPORTED
                                                                      : STATUS_DEVICE;
}

bool cuda_keep(struct cuda *cuda, int error, const char *what)
{
    if (error == cudaSuccess)
        return cuda->failure == STATUS_OK;
    if (cuda->failure == STATUS_OK && cuda->graph.capturing) {
        log_debug("cuda: %s, during recording: %s", what, cudaGetErrorString((cudaError_t)error));
        cuda->failure = STATUS_DEVICE;
    } else if (cuda->failure == STATUS_OK) {
        cuda->failure =
            atomic_exchange(&cuda->told, true) ? STATUS_DEVICE : status_from_cuda(error, what);
    }
    return false;
}

static enum status cuda_sync(struct device *device)
{
    struct cuda *cuda = cuda_of(device);
    cuda_keep(cuda, cudaStreamSynchronize(cuda->compute), "an operation failed");
    return cuda->failure;
}

static void cuda_usage(const struct device *device, struct device_usage *usage)
{
    const struct cuda *cuda = (const struct cuda *)(const void *)device;
    cuda_nvml_usage(cuda->nvml, usage);
}

/* -------- memory ------------------------------------------------------------------------------ */

enum status cuda_allocated(int error, const char *what, void **memory)
{
    if (error == cudaSuccess)
        return STATUS_OK;
    cudaGetLastError(); /* the caller handles this failure; the next launch must not report it */
    *memory = NULL;
    return error == cudaErrorMemoryAllocation ? STATUS_NO_MEMORY : status_from_cuda(error, what);
}

static enum status cuda_alloc(struct device *device, size_t bytes, void **memory)
{
    (void)device;
    return cuda_allocated(cudaMalloc(memory, bytes ? bytes : 1), "an allocation failed", memory);
}

static void cuda_free(struct device *device, void *memory)
{
    cuda_keep(cuda_of(device), cudaFree(memory), "memory cannot be freed");
}

enum status cuda_reserve(struct cuda *cuda, size_t count)
{
    void *larger;
    if (count <= cuda->scratch_count)
        return STATUS_OK;
    enum status status = device_alloc(&cuda->device, "scratch", count * sizeof(float), &larger);
    if (status != STATUS_OK)
        return status;
    if (cuda->scratch)
        cuda_free(&cuda->device, cuda->scratch);
    cuda->scratch = larger;
    cuda->scratch_count = count;
    return STATUS_OK;
}

static enum status open_room(struct cuda *cuda)
{
    char *memory;
    enum status status =
        device_alloc(&cuda->device, "sums",
                     KERNEL_ROOM_SUMS_BYTES + KERNEL_ROOM_ARRIVED_BYTES + 2 * sizeof *cuda->squares,
                     &cuda->room.sums);
    if (status != STATUS_OK)
        return status;
    memory = (char *)cuda->room.sums + KERNEL_ROOM_SUMS_BYTES;
    cuda->room.arrived = (void *)memory;
    cuda->squares = (void *)(memory + KERNEL_ROOM_ARRIVED_BYTES);
    return status_from_cuda(cudaMemsetAsync(memory, 0, KERNEL_ROOM_ARRIVED_BYTES, cuda->compute),
                            "sums");
}

static enum status open_slots(struct cuda *cuda)
{
    enum status status = STATUS_OK;
    struct cuda_slots *slots = &cuda->slots;
    void *memory;
    TRY(status_from_cuda(cudaMallocHost(&memory, (size_t)CUDA_SLOTS * CUDA_SLOT_BYTES),
                         "pinned memory"));
    slots->memory = memory;
    for (int i = 0; i < CUDA_SLOTS; i++)
        TRY(status_from_cuda(cudaEventCreateWithFlags(&slots->free[i], cudaEventDisableTiming |
                                                                           cudaEventBlockingSync),
                             "an event"));
out:
    return status;
}

static void close_slots(struct cuda_slots *slots)
{
    for (int i = 0; i < CUDA_SLOTS; i++) {
        if (slots->free[i])
            cudaEventDestroy(slots->free[i]);
    }
    if (slots->memory)
        cudaFreeHost(slots->memory);
}

/* Copies through the pinned slots in turn. The caller may reuse its memory at once, and the copies
 * run in the order of the stream. CUDA does not promise this for a copy from pageable memory, which
 * "might be synchronous" (CUDA Driver API, API synchronization behavior): CUDA may read the source
 * after the call. */
static void cuda_upload(struct device *device, void *to, const void *from_host, size_t bytes)
{
    struct cuda *cuda = cuda_of(device);
    for (size_t at = 0; at < bytes && cuda->failure == STATUS_OK; at += CUDA_SLOT_BYTES) {
        unsigned slot = cuda->slots.next++ % CUDA_SLOTS;
        char *staged = cuda->slots.memory + (size_t)slot * CUDA_SLOT_BYTES;
        size_t piece = size_smaller(bytes - at, CUDA_SLOT_BYTES);
        if (!cuda_keep(cuda, cudaEventSynchronize(cuda->slots.free[slot]), "an earlier copy"))
            return;
        memcpy(staged, (const char *)from_host + at, piece);
        cudaError_t error =
            cudaMemcpyAsync((char *)to + at, staged, piece, cudaMemcpyHostToDevice, cuda->compute);
        cuda_keep(cuda, error, "a copy to the GPU");
        cuda_keep(cuda, cudaEventRecord(cuda->slots.free[slot], cuda->compute), "an event");
    }
}

static void cuda_download(struct device *device, void *to_host, const void *from, size_t bytes)
{
    struct cuda *cuda = cuda_of(device);
    if (bytes > 0 && cuda->failure == STATUS_OK)
        cuda_keep(cuda,
                  cudaMemcpyAsync(to_host, from, bytes, cudaMemcpyDeviceToHost, cuda->compute),
                  "a copy from the GPU");
}

/* -------- operations of one kernel ------------------------------------------------------------ */

static void cuda_fill(struct device *device, float *to, float value, size_t count)
{
    struct cuda *cuda = cuda_of(device);
    cuda_keep(cuda, kernel_fill(cuda->compute, count, value, to), "fill");
}

static void cuda_copy(struct device *device, float *to, const float *from, size_t count)
{
    struct cuda *cuda = cuda_of(device);
    cudaError_t error =
        cudaMemcpyAsync(to, from, count * sizeof *to, cudaMemcpyDeviceToDevice, cuda->compute);
    cuda_keep(cuda, error, "copy");
}

static void cuda_scale(struct device *device, float *values, float factor, size_t count)
{
    struct cuda *cuda = cuda_of(device);
    cuda_keep(cuda, kernel_scale(cuda->compute, count, factor, values), "scale");
}

static void cuda_gather(struct device *device, const struct gather *gather, size_t batch,
                        const uint32_t *samples, float *images, uint8_t *labels)
{
    struct cuda *cuda = cuda_of(device);
    device_inputs_send(device);
    cuda_keep(cuda, kernel_gather(cuda->compute, gather, batch, samples, images, labels), "gather");
}

static void cuda_maxpool_forward(struct device *device, const struct pool2d *pool, size_t batch,
                                 const float *x, float *y, uint8_t *index)
{
    struct cuda *cuda = cuda_of(device);
    cuda_keep(cuda, kernel_maxpool(cuda->compute, pool, batch, x, y, index), "max-pooling");
}

static void cuda_maxpool_backward(struct device *device, const struct pool2d *pool, size_t batch,
                                  const uint8_t *index, const float *dy, float *dx)
{
    struct cuda *cuda = cuda_of(device);
    cuda_keep(cuda,
              kernel_spread(cuda->compute, pool, batch, dy, NULL, index, dx, &(struct bias_sum){0}),
              "max-pooling, backward");
}

static void cuda_relu_forward(struct device *device, size_t count, const float *x, float *y)
{
    struct cuda *cuda = cuda_of(device);
    cuda_keep(cuda, kernel_relu(cuda->compute, count, x, y), "relu");
}

static void cuda_relu_backward(struct device *device, size_t count, const float *y, const float *dy,
                               float *dx)
{
    struct cuda *cuda = cuda_of(device);
    cuda_keep(cuda, kernel_relu_backward(cuda->compute, count, y, dy, dx), "relu, backward");
}

static void cuda_dropout(struct device *device, const struct dropout *dropout, size_t count,
                         const float *x, float *y)
{
    struct cuda *cuda = cuda_of(device);
    device_inputs_send(device);
    cuda_keep(cuda, kernel_dropout(cuda->compute, dropout, count, x, y), "dropout");
}

static void cuda_softmax_cross_entropy(struct device *device, size_t batch, size_t classes,
                                       double divisor, const float *logits, const uint8_t *labels,
                                       float *dlogits, struct loss_sum *sum)
{
    struct cuda *cuda = cuda_of(device);
    cuda_keep(cuda,
              kernel_softmax_cross_entropy(cuda->compute, batch, classes, divisor, logits, labels,
                                           dlogits, sum, cuda->room),
              "softmax and loss");
}

static void cuda_adam_count(struct device *device, const struct update *update)
{
    struct cuda *cuda = cuda_of(device);
    cuda_keep(cuda, kernel_adam_count(cuda->compute, update), "adam");
}

static void cuda_update(struct device *device, const struct update *update, size_t count,
                        float *parameters, const float *gradients, float *state)
{
    struct cuda *cuda = cuda_of(device);
    device_inputs_send(device);
    cuda_keep(cuda,
              kernel_update(cuda->compute, update, count, parameters, gradients, state,
                            cuda->squares, cuda->room),
              "the optimizer's step");
}

/* -------- opening ----------------------------------------------------------------------------- */

static enum status choose_gpu(struct cuda *cuda, const struct device_options *options)
{
    char reason[DEVICE_REASON_BYTES];
    if (!cuda_available(reason))
        return FAIL(STATUS_UNSUPPORTED, "--device cuda: %s", reason);
    cuda->index = options->gpu;
    return status_from_cuda(cudaSetDevice(cuda->index), "the GPU cannot be used");
}

/* A build has code for some architectures only. This reports a mismatch before the first kernel
 * does. */
static enum status check_architecture(const struct cuda *cuda)
{
    struct cudaDeviceProp gpu;
    cudaError_t error = (cudaError_t)kernel_probe();
    if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction &&
        error != cudaErrorUnsupportedPtxVersion && error != cudaErrorInvalidPtx)
        return status_from_cuda(error, "the kernels cannot be loaded");
    enum status status = status_from_cuda(cudaGetDeviceProperties(&gpu, cuda->index), "the GPU");
    if (status != STATUS_OK)
        return status;
    return FAIL(STATUS_UNSUPPORTED,
                "--device cuda: %s has compute capability %d.%d, and this build has code for %s; "
                "configure with -DCMAKE_CUDA_ARCHITECTURES=%d%d and build again",
                gpu.name, gpu.major, gpu.minor, PSRING_CUDA_ARCHITECTURES, gpu.major, gpu.minor);
}

static void cuda_close(struct device *device)
{
    struct cuda *cuda = cuda_of(device);
    if (cuda->compute)
        cudaStreamSynchronize(cuda->compute);
    if (cuda->graph.exec)
        cudaGraphExecDestroy(cuda->graph.exec);
    cuda_nvml_free(&cuda->nvml);
    cuda_blas_free(&cuda->blas);
    cudaFree(cuda->blas_workspace);
    cudaFree(cuda->room.sums);
    cudaFree(cuda->scratch);
    close_slots(&cuda->slots);
    if (cuda->compute)
        cudaStreamDestroy(cuda->compute);
    free(cuda);
}

enum status cuda_open(struct device **device, const struct device_options *options)
{
    enum status status = STATUS_OK;
    struct cuda *cuda = calloc(1, sizeof *cuda);
    if (!cuda)
        return FAIL(STATUS_NO_MEMORY, "the cuda device: out of memory");
    cuda->device.ops = &cuda_ops;
    cuda->graph.use = options->graph;
    TRY(choose_gpu(cuda, options));
    TRY(check_architecture(cuda));
    TRY(status_from_cuda(cudaStreamCreateWithFlags(&cuda->compute, cudaStreamNonBlocking),
                         "a stream"));
    TRY(open_slots(cuda));
    TRY(open_room(cuda));
    TRY(device_alloc(&cuda->device, "cuBLAS", CUDA_BLAS_WORKSPACE_BYTES, &cuda->blas_workspace));
    TRY(cuda_blas_new(&cuda->blas, cuda->compute, cuda->blas_workspace, options->tf32));
    cuda->nvml = cuda_nvml_new(cuda->index);
    *device = &cuda->device;
out:
    if (status != STATUS_OK)
        cuda_close(&cuda->device);
    return status;
}

const struct device_ops cuda_ops = {
    .name = "cuda",
    .no_memory = " (cudaErrorMemoryAllocation)",
    .streams = &cuda_stream_ops,
    .close = cuda_close,
    .sync = cuda_sync,
    .usage = cuda_usage,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .download = cuda_download,
    .fill = cuda_fill,
    .copy = cuda_copy,
    .scale = cuda_scale,
    .gather = cuda_gather,
    .conv2d_prepare = cuda_conv2d_prepare,
    .conv2d_forward = cuda_conv2d_forward,
    .conv2d_backward = cuda_conv2d_backward,
    .maxpool_forward = cuda_maxpool_forward,
    .maxpool_backward = cuda_maxpool_backward,
    .dense_prepare = cuda_dense_prepare,
    .dense_rows = cuda_dense_rows,
    .dense_forward = cuda_dense_forward,
    .dense_backward = cuda_dense_backward,
    .relu_forward = cuda_relu_forward,
    .relu_backward = cuda_relu_backward,
    .dropout = cuda_dropout,
    .softmax_cross_entropy = cuda_softmax_cross_entropy,
    .adam_count = cuda_adam_count,
    .update = cuda_update,
};
