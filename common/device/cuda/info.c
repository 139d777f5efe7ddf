/* Lists the GPUs, or explains why there are none. `psring info` prints them and the libraries that
 * they need. */
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "common/device/cuda/blas.h"
#include "common/device/cuda/nvml.h"
#include "common/device/open.h"

enum { TEXT_BYTES = 512 };

bool cuda_available(char reason[DEVICE_REASON_BYTES])
{
    int count = 0, driver = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0)
        return true;
    cudaGetLastError(); /* the next launch must not report it */
    if (error == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess &&
        driver > 0)
        snprintf(reason, DEVICE_REASON_BYTES,
                 "the NVIDIA driver is older than CUDA " PSRING_TOOLKIT_CUDA " of this build: "
                 "update the driver, build with an older CUDA toolkit, or use --device cpu");
    else if (error == cudaErrorInsufficientDriver)
        snprintf(reason, DEVICE_REASON_BYTES,
                 "no NVIDIA driver was found on this machine: install one, or use --device cpu");
    else
        snprintf(reason, DEVICE_REASON_BYTES,
                 "no GPU can be used (%s): check nvidia-smi and CUDA_VISIBLE_DEVICES, or use "
                 "--device cpu",
                 cudaGetErrorName(error == cudaSuccess ? cudaErrorNoDevice : error));
    return false;
}

int cuda_gpus(char ids[DEVICE_GPUS_MAX][DEVICE_GPU_ID_BYTES])
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess)
        count = 0;
    count = count < DEVICE_GPUS_MAX ? count : DEVICE_GPUS_MAX;
    for (int i = 0; i < count; i++) {
        if (cudaDeviceGetPCIBusId(ids[i], DEVICE_GPU_ID_BYTES, i) != cudaSuccess)
            snprintf(ids[i], DEVICE_GPU_ID_BYTES, "number %d", i);
    }
    cudaGetLastError();
    return count;
}

/* ", 1.5 GiB in use"; "" if unknown. */
static void describe_usage(int index, char *text, size_t size)
{
    struct device_usage usage;
    struct cuda_nvml *nvml = cuda_nvml_new(index);
    cuda_nvml_usage(nvml, &usage);
    text[0] = '\0';
    if (usage.memory_bytes > 0)
        snprintf(text, size, ", %.1f GiB in use", (double)usage.memory_bytes * 0x1p-30);
    cuda_nvml_free(&nvml);
}

/* " 570.86.15"; "" if unknown. */
static void describe_driver(char *text, size_t size)
{
    struct cuda_nvml *nvml = cuda_nvml_new(0);
    text[0] = ' ';
    if (!cuda_nvml_driver(nvml, text + 1, size - 1))
        text[0] = '\0';
    cuda_nvml_free(&nvml);
}

static void list_gpu(int index, device_visitor *visit, void *context)
{
    struct cudaDeviceProp gpu;
    char name[16], text[TEXT_BYTES], in_use[32];
    if (cudaGetDeviceProperties(&gpu, index) != cudaSuccess) {
        cudaGetLastError();
        return;
    }
    snprintf(name, sizeof name, "gpu %d", index);
    describe_usage(index, in_use, sizeof in_use);
    snprintf(text, sizeof text,
             "%.64s, compute capability %d.%d, %.1f GiB%s, %d multiprocessors, %.0f MiB of L2, PCI "
             "%04x:%02x:%02x",
             gpu.name, gpu.major, gpu.minor, (double)gpu.totalGlobalMem * 0x1p-30, in_use,
             gpu.multiProcessorCount, gpu.l2CacheSize * 0x1p-20, (unsigned)gpu.pciDomainID,
             (unsigned)gpu.pciBusID, (unsigned)gpu.pciDeviceID);
    visit(context, name, text);
}

void cuda_list(device_visitor *visit, void *context)
{
    int count = 0, driver = 0, runtime = 0;
    char text[TEXT_BYTES], version[96];
    if (cudaDriverGetVersion(&driver) == cudaSuccess &&
        cudaRuntimeGetVersion(&runtime) == cudaSuccess && driver > 0) {
        describe_driver(version, sizeof version);
        snprintf(text, sizeof text, "driver%s for CUDA %d.%d, run-time %d.%d", version,
                 driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
        visit(context, "cuda driver", text);
    }
    const char *blas = cuda_blas_version(version, sizeof version);
    snprintf(text, sizeof text, "%s", blas ? blas : PSRING_CUBLAS_NAME " cannot be loaded");
    visit(context, "cublas", text);
    visit(context, "gpu code", "for compute capabilities " PSRING_CUDA_ARCHITECTURES);
    if (cudaGetDeviceCount(&count) != cudaSuccess)
        count = 0;
    cudaGetLastError();
    for (int i = 0; i < count; i++)
        list_gpu(i, visit, context);
}
