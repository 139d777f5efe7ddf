/*
 * A stand-in for NVIDIA's management library with two GPUs. The second one is the emulated GPU of
 * runtime.cu. NVML_STANDIN names what fails: "init", "gpu", "memory", "utilization", or nothing.
 * For the main thread the GPU's utilization rises with each query, so that a test can distinguish
 * the rows. For any other thread it alternates between 85 and 5 percent.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, NOT_SUPPORTED = 3, NOT_FOUND = 6, UNKNOWN = 999 };

static const struct gpu {
    const char *pci_bus_id;
    unsigned long long used_bytes;
    unsigned busy_percent;
} gpus[] = {{"0000:fd:1d.0", 1, 1}, {"0000:fe:1d.0", 149385216001, 40}};

struct memory {
    unsigned long long total, free, used;
};

struct utilization {
    unsigned gpu, memory;
};

static int users;
static unsigned asked, sampled;

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, const struct gpu **gpu);
int nvmlDeviceGetMemoryInfo(const struct gpu *gpu, struct memory *memory);
int nvmlDeviceGetUtilizationRates(const struct gpu *gpu, struct utilization *utilization);
int nvmlSystemGetDriverVersion(char *text, unsigned bytes);

static int fails(const char *what)
{
    const char *failing = getenv("NVML_STANDIN");
    return failing && strcmp(failing, what) == 0;
}

int nvmlInit_v2(void)
{
    if (fails("init"))
        return UNKNOWN;
    users++;
    return SUCCESS;
}

int nvmlShutdown(void)
{
    return users-- > 0 ? SUCCESS : NOT_INITIALIZED;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, const struct gpu **gpu)
{
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus && !fails("gpu"); i++) {
        *gpu = &gpus[i];
        if (strcmp(id, gpus[i].pci_bus_id) == 0)
            return users > 0 ? SUCCESS : NOT_INITIALIZED;
    }
    return NOT_FOUND;
}

int nvmlDeviceGetMemoryInfo(const struct gpu *gpu, struct memory *memory)
{
    if (fails("memory"))
        return UNKNOWN;
    *memory = (struct memory){.total = 150754820096, .used = gpu->used_bytes};
    return users > 0 ? SUCCESS : NOT_INITIALIZED;
}

int nvmlDeviceGetUtilizationRates(const struct gpu *gpu, struct utilization *utilization)
{
    if (fails("utilization"))
        return NOT_SUPPORTED;
    if (syscall(SYS_gettid) == getpid())
        *utilization = (struct utilization){.gpu = gpu->busy_percent + asked++, .memory = 99};
    else
        *utilization = (struct utilization){.gpu = sampled++ % 2 ? 5 : 85, .memory = 99};
    return users > 0 ? SUCCESS : NOT_INITIALIZED;
}

int nvmlSystemGetDriverVersion(char *text, unsigned bytes)
{
    static const char version[] = "580.12.34";
    if (bytes < sizeof version)
        return UNKNOWN;
    memcpy(text, version, sizeof version);
    return SUCCESS;
}
