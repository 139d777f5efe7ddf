#include "common/device/device.h"

#include "common/base/status.h"
#include "common/device/inputs.h"
#include "common/device/open.h"

const char *const device_kind_names[] = {[DEVICE_CPU] = "cpu", [DEVICE_CUDA] = "cuda", NULL};

const char *device_unavailable(enum device_kind kind, char reason[DEVICE_REASON_BYTES])
{
    return kind == DEVICE_CUDA && !cuda_available(reason) ? reason : NULL;
}

int device_gpus(char ids[DEVICE_GPUS_MAX][DEVICE_GPU_ID_BYTES])
{
    return cuda_gpus(ids);
}

void device_list(enum device_kind kind, device_visitor *visit, void *context)
{
    if (kind == DEVICE_CUDA)
        cuda_list(visit, context);
}

enum status device_open(struct device **device, const struct device_options *options)
{
    static enum status (*const open_kind[])(struct device **, const struct device_options *) = {
        [DEVICE_CPU] = cpu_open,
        [DEVICE_CUDA] = cuda_open,
    };
    *device = NULL;
    CHECK((size_t)options->kind < sizeof open_kind / sizeof *open_kind);
    return open_kind[options->kind](device, options);
}

void device_close(struct device **device)
{
    if (*device) {
        device_inputs_free(*device);
        (*device)->ops->close(*device);
    }
    *device = NULL;
}

enum status device_sync(struct device *device)
{
    return device->ops->sync(device);
}

void device_usage(const struct device *device, struct device_usage *usage)
{
    *usage = DEVICE_USAGE_UNKNOWN;
    if (device->ops->usage)
        device->ops->usage(device, usage);
}

const char *device_no_memory(const struct device *device)
{
    return device->ops->no_memory ? device->ops->no_memory : "";
}

enum status device_alloc(struct device *device, const char *what, size_t bytes, void **memory)
{
    enum status status = device->ops->alloc(device, bytes, memory);
    if (status == STATUS_NO_MEMORY) /* the device logs other failures itself */
        log_error(
            "%s: cannot allocate %zu bytes of %s memory for %s%s; use a smaller batch or model",
            status_name(status), bytes, device->ops->name, what, device_no_memory(device));
    return status;
}

void device_free(struct device *device, void *memory)
{
    if (memory)
        device->ops->free(device, memory);
}

void device_upload(struct device *device, void *to, const void *from_host, size_t bytes)
{
    device->ops->upload(device, to, from_host, bytes);
}

enum status device_download(struct device *device, void *to_host, const void *from, size_t bytes)
{
    device->ops->download(device, to_host, from, bytes);
    return device->ops->sync(device);
}
