#include "common/device/cuda/nvml.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "common/base/dynamic.h"

/*
 * The part of NVML's binary interface that psring uses, because a toolkit need not have NVML's
 * header. Functions return 0 for success.
 */
enum { NVML_SUCCESS = 0 };

struct nvml_device;

struct nvml_memory {
    unsigned long long total, free, used; /* bytes */
};

struct nvml_utilization {
    unsigned gpu, memory; /* percent of the time: a kernel ran; memory was accessed */
};

struct nvml_entries {
    int (*init)(void);
    int (*shutdown)(void);
    int (*device_by_pci_bus_id)(const char *id, struct nvml_device **device);
    int (*memory)(struct nvml_device *device, struct nvml_memory *memory);
    int (*utilization)(struct nvml_device *device, struct nvml_utilization *utilization);
    int (*driver_version)(char *text, unsigned bytes);
};

struct cuda_nvml {
    void *library;
    struct nvml_entries call;
    bool ready; /* init was called, so shutdown must be */
    struct nvml_device *gpu;
};

static bool find_all(void *library, struct nvml_entries *call)
{
    return symbol_find(library, "nvmlInit_v2", &call->init) &&
           symbol_find(library, "nvmlShutdown", &call->shutdown) &&
           symbol_find(library, "nvmlDeviceGetHandleByPciBusId_v2", &call->device_by_pci_bus_id) &&
           symbol_find(library, "nvmlDeviceGetMemoryInfo", &call->memory) &&
           symbol_find(library, "nvmlDeviceGetUtilizationRates", &call->utilization) &&
           symbol_find(library, "nvmlSystemGetDriverVersion", &call->driver_version);
}

static bool open_gpu(struct cuda_nvml *nvml, int index)
{
    char id[32];
    if (cudaDeviceGetPCIBusId(id, sizeof id, index) != cudaSuccess) {
        cudaGetLastError(); /* the next launch must not report it */
        return false;
    }
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library || !find_all(nvml->library, &nvml->call))
        return false;
    nvml->ready = nvml->call.init() == NVML_SUCCESS;
    return nvml->ready && nvml->call.device_by_pci_bus_id(id, &nvml->gpu) == NVML_SUCCESS;
}

struct cuda_nvml *cuda_nvml_new(int index)
{
    struct cuda_nvml *nvml = calloc(1, sizeof *nvml);
    if (nvml && !open_gpu(nvml, index))
        cuda_nvml_free(&nvml);
    return nvml;
}

void cuda_nvml_free(struct cuda_nvml **out)
{
    struct cuda_nvml *nvml = *out;
    if (!nvml)
        return;
    *out = NULL;
    if (nvml->ready)
        nvml->call.shutdown();
    if (nvml->library)
        dlclose(nvml->library);
    free(nvml);
}

void cuda_nvml_usage(const struct cuda_nvml *nvml, struct device_usage *usage)
{
    struct nvml_memory memory;
    struct nvml_utilization utilization;
    *usage = DEVICE_USAGE_UNKNOWN;
    if (nvml && nvml->call.memory(nvml->gpu, &memory) == NVML_SUCCESS)
        usage->memory_bytes = memory.used;
    if (nvml && nvml->call.utilization(nvml->gpu, &utilization) == NVML_SUCCESS)
        usage->utilization = utilization.gpu / 100.0;
}

bool cuda_nvml_driver(const struct cuda_nvml *nvml, char *text, size_t bytes)
{
    return nvml && nvml->call.driver_version(text, (unsigned)bytes) == NVML_SUCCESS;
}
