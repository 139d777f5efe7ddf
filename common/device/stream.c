#include "common/device/stream.h"

#include "common/device/device.h"
#include "common/device/inputs.h"

enum status device_stream_new(struct device *device, struct device_stream **stream)
{
    *stream = NULL;
    return device->ops->streams ? device->ops->streams->stream_new(device, stream) : STATUS_OK;
}

void device_stream_free(struct device *device, struct device_stream **stream)
{
    if (*stream)
        device->ops->streams->stream_free(device, *stream);
    *stream = NULL;
}

enum status device_event_new(struct device *device, struct device_event **event)
{
    *event = NULL;
    return device->ops->streams ? device->ops->streams->event_new(device, event) : STATUS_OK;
}

void device_event_free(struct device *device, struct device_event **event)
{
    if (*event)
        device->ops->streams->event_free(device, *event);
    *event = NULL;
}

void device_event_record(struct device *device, struct device_event *event,
                         struct device_stream *stream)
{
    if (device->ops->streams)
        device->ops->streams->record(device, event, stream);
}

void device_stream_wait(struct device *device, struct device_stream *stream,
                        struct device_event *event)
{
    if (device->ops->streams)
        device->ops->streams->stream_wait(device, stream, event);
}

enum status device_event_wait(struct device *device, struct device_event *event)
{
    return device->ops->streams ? device->ops->streams->event_wait(device, event) : STATUS_OK;
}

bool device_memory_is_host(const struct device *device)
{
    return !device->ops->streams;
}

enum status device_host_alloc(struct device *device, const char *what, size_t bytes, void **memory)
{
    const struct stream_ops *streams = device->ops->streams;
    enum status status = streams ? streams->host_alloc(device, bytes, memory)
                                 : device->ops->alloc(device, bytes, memory);
    if (status == STATUS_NO_MEMORY)
        log_error(
            "%s: cannot allocate %zu bytes of host memory that the %s device can copy, for %s%s; "
            "use a smaller batch or model",
            status_name(status), bytes, device->ops->name, what, device_no_memory(device));
    return status;
}

void device_host_free(struct device *device, void *memory)
{
    if (memory && device->ops->streams)
        device->ops->streams->host_free(device, memory);
    else
        device_free(device, memory);
}

void device_upload_async(struct device *device, struct device_stream *stream, void *to,
                         const void *from_host, size_t bytes)
{
    if (device->ops->streams)
        device->ops->streams->upload(device, stream, to, from_host, bytes);
    else
        device->ops->upload(device, to, from_host, bytes);
}

void device_download_async(struct device *device, struct device_stream *stream, void *to_host,
                           const void *from, size_t bytes)
{
    if (device->ops->streams)
        device->ops->streams->download(device, stream, to_host, from, bytes);
    else
        device->ops->download(device, to_host, from, bytes);
}

enum status device_repeat(struct device *device, device_work *work, void *context)
{
    device_inputs_send(device);
    return device->ops->streams ? device->ops->streams->repeat(device, work, context)
                                : work(context);
}

int device_steps_ahead(const struct device *device)
{
    return device->ops->streams ? device->ops->streams->steps_ahead : 0;
}
