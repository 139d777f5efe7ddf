/* What `psring info` says of the GPUs and of the libraries that they need. */
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "common/device/cuda_blas.h"
#include "common/device/cuda_open.h"

enum { TEXT_BYTES = 256 };

static void list_gpu(int index, device_visitor *visit, void *context)
{
    struct cudaDeviceProp gpu;
    char name[16], text[TEXT_BYTES];
    if (cudaGetDeviceProperties(&gpu, index) != cudaSuccess) {
        cudaGetLastError();
        return;
    }
    snprintf(name, sizeof name, "gpu %d", index);
    snprintf(text, sizeof text,
             "%.64s, compute capability %d.%d, %.1f GiB, %d multiprocessors, %.0f MiB of L2, PCI "
             "%04x:%02x:%02x",
             gpu.name, gpu.major, gpu.minor, (double)gpu.totalGlobalMem * 0x1p-30,
             gpu.multiProcessorCount, gpu.l2CacheSize * 0x1p-20, (unsigned)gpu.pciDomainID,
             (unsigned)gpu.pciBusID, (unsigned)gpu.pciDeviceID);
    visit(context, name, text);
}

void cuda_list(device_visitor *visit, void *context)
{
    int count = 0, driver = 0, runtime = 0;
    char text[TEXT_BYTES], version[32];
    if (cudaDriverGetVersion(&driver) == cudaSuccess &&
        cudaRuntimeGetVersion(&runtime) == cudaSuccess && driver > 0) {
        snprintf(text, sizeof text, "driver for CUDA %d.%d, run-time %d.%d", driver / 1000,
                 driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
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
