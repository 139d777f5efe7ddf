/*
 * Streams and events let device work, copies and communication overlap without blocking the host.
 *
 * A stream is a queue of work that runs in order. All operations of ops.h go to the device's
 * compute stream, which is NULL here. Other streams serve copies and communication. An event marks
 * a point of a stream; another stream or the host may wait for it. On a device that works within
 * the call (the CPU) no wait is needed and all of this costs nothing.
 *
 *     device_event_record(device, ready, NULL);        the work queued so far ...
 *     device_stream_wait(device, copies, ready);       ... comes before later work on `copies`
 *     device_download_async(device, copies, host, gradients, bytes);
 *     device_event_record(device, copied, copies);
 *     device_event_wait(device, copied);               (any thread) now `host` may be read
 *
 * Threads: only the device's thread uses streams, events and copies. Any thread may call
 * device_event_wait. As for operations, the device keeps a failure and device_sync returns it.
 */
#ifndef PSRING_COMMON_DEVICE_STREAM_H
#define PSRING_COMMON_DEVICE_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

struct device;
struct device_stream;
struct device_event;

/* The caller frees streams and events before it closes the device. Freeing sets the pointer to
 * NULL. NULL is allowed. */
enum status device_stream_new(struct device *device, struct device_stream **stream);
void device_stream_free(struct device *device, struct device_stream **stream);
enum status device_event_new(struct device *device, struct device_event **event);
void device_event_free(struct device *device, struct device_event **event);

/* Moves the event to the current end of `stream`: it covers all work queued so far. The event's old
 * meaning is lost. */
void device_event_record(struct device *device, struct device_event *event,
                         struct device_stream *stream);

/* Work queued on `stream` from now on starts only after the event. The host does not wait. */
void device_stream_wait(struct device *device, struct device_stream *stream,
                        struct device_event *event);

/* Blocks the host until the event. Returns at once if the event was never recorded. A device
 * failure found here is logged and returned. Any thread. */
enum status device_event_wait(struct device *device, struct device_event *event);

/* Whether device memory is host memory, which the host may access between operations. */
bool device_memory_is_host(const struct device *device);

/* Allocates host memory, aligned to 64 bytes, that the device copies from and to directly (CUDA:
 * pinned). Errors as device_alloc. NULL may be freed. */
enum status device_host_alloc(struct device *device, const char *what, size_t bytes, void **memory);
void device_host_free(struct device *device, void *memory);

/* Copies in the order of the stream. The host memory belongs to the device until the caller has
 * waited for an event recorded after the copy. Without memory from device_host_alloc the call may
 * block. */
void device_upload_async(struct device *device, struct device_stream *stream, void *to,
                         const void *from_host, size_t bytes);
void device_download_async(struct device *device, struct device_stream *stream, void *to_host,
                           const void *from, size_t bytes);

/*
 * Calls work(context), which queues operations and waits for none. A device may record these
 * operations and later replay them without calling `work` (CUDA: as a graph, one launch for all).
 * Therefore each call of `work` must queue the same operations on the same memory, and must not
 * upload or allocate. Values that differ between steps are inputs (inputs.h; dropout.step_at,
 * sgd.lr_at), which this function sends first. A different `context` makes the device record again.
 */
typedef enum status device_work(void *context);
enum status device_repeat(struct device *device, device_work *work, void *context);

/* How many steps the host may run ahead of the device, at most, to keep it busy. 0 if the device
 * works within the call. */
int device_steps_ahead(const struct device *device);

/* The functions of one kind of device; see those above. A device that works within the call, in
 * host memory, has none (ops.h): its streams and events are NULL. */
struct stream_ops {
    int steps_ahead;
    enum status (*stream_new)(struct device *, struct device_stream **);
    void (*stream_free)(struct device *, struct device_stream *);
    enum status (*event_new)(struct device *, struct device_event **);
    void (*event_free)(struct device *, struct device_event *);
    void (*record)(struct device *, struct device_event *, struct device_stream *);
    void (*stream_wait)(struct device *, struct device_stream *, struct device_event *);
    enum status (*event_wait)(struct device *, struct device_event *);
    enum status (*host_alloc)(struct device *, size_t bytes, void **memory);
    void (*host_free)(struct device *, void *memory);
    void (*upload)(struct device *, struct device_stream *, void *to, const void *from_host,
                   size_t bytes);
    void (*download)(struct device *, struct device_stream *, void *to_host, const void *from,
                     size_t bytes);
    enum status (*repeat)(struct device *, device_work *work, void *context);
};

#endif
