/* Streams and events of the CPU. The CPU does all work within the call, so nothing is waited for
 * and nothing is recorded. A pointer to the device serves as stream and as event. */
#include <stdlib.h>
#include <string.h>

#include "common/device/cpu/cpu.h"

static enum status stream_new(struct device *device, struct device_stream **stream)
{
    *stream = (struct device_stream *)(void *)device;
    return STATUS_OK;
}

static void stream_free(struct device *device, struct device_stream *stream)
{
    (void)device;
    (void)stream;
}

static enum status event_new(struct device *device, struct device_event **event)
{
    *event = (struct device_event *)(void *)device;
    return STATUS_OK;
}

static void event_free(struct device *device, struct device_event *event)
{
    (void)device;
    (void)event;
}

static void record(struct device *device, struct device_event *event, struct device_stream *stream)
{
    (void)device;
    (void)event;
    (void)stream;
}

static void stream_wait(struct device *device, struct device_stream *stream,
                        struct device_event *event)
{
    (void)device;
    (void)stream;
    (void)event;
}

static enum status event_wait(struct device *device, struct device_event *event)
{
    (void)device;
    (void)event;
    return STATUS_OK;
}

static enum status host_alloc(struct device *device, size_t bytes, void **memory)
{
    return device->ops->alloc(device, bytes, memory);
}

static void host_free(struct device *device, void *memory)
{
    device->ops->free(device, memory);
}

static void transfer(struct device *device, struct device_stream *stream, void *to,
                     const void *from, size_t bytes)
{
    (void)device;
    (void)stream;
    if (bytes && to != from)
        memcpy(to, from, bytes);
}

static enum status repeat(struct device *device, device_work *work, void *context)
{
    (void)device;
    return work(context);
}

const struct stream_ops cpu_stream_ops = {
    .memory_is_host = true,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .event_new = event_new,
    .event_free = event_free,
    .record = record,
    .stream_wait = stream_wait,
    .event_wait = event_wait,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .upload = transfer,
    .download = transfer,
    .repeat = repeat,
};
