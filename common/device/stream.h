/*
 * Streams and events: how work on a device, copies and communication go on side by side without the
 * host waiting for any of them.
 *
 * A stream is a queue of work done in order. The operations of ops.h all go to the device's own,
 * the compute stream, which is called NULL here; further streams are for copies and communication.
 * An event marks a point of a stream: another stream, or the host, may wait for it. On a device
 * that does its work within the call (the CPU) there is nothing to wait for, and all of this is
 * free.
 *
 *     device_event_record(device, ready, NULL);        what has been asked for so far ...
 *     device_stream_wait(device, copies, ready);       ... before what `copies` is given next
 *     device_download_async(device, copies, host, gradients, bytes);
 *     device_event_record(device, copied, copies);
 *     device_event_wait(device, copied);               (any thread) now `host` may be read
 *
 * Threads: streams, events and copies are used from one thread at a time, the device's; only
 * device_event_wait may be called by another one. Failures are kept and returned by device_sync, as
 * those of operations.
 */
#ifndef PSRING_COMMON_DEVICE_STREAM_H
#define PSRING_COMMON_DEVICE_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

struct device;
struct device_stream;
struct device_event;

/* The caller frees them before the device is closed. Freeing sets the pointer to NULL; NULL is
 * fine. */
enum status device_stream_new(struct device *device, struct device_stream **stream);
void device_stream_free(struct device *device, struct device_stream **stream);
enum status device_event_new(struct device *device, struct device_event **event);
void device_event_free(struct device *device, struct device_event **event);

/* The event now means all that `stream` was given until here; what it meant before is forgotten. */
void device_event_record(struct device *device, struct device_event *event,
                         struct device_stream *stream);

/* What `stream` is given from here on begins only after the event. The host does not wait. */
void device_stream_wait(struct device *device, struct device_stream *stream,
                        struct device_event *event);

/* The host waits; at once if the event was never recorded. A failure of the device that is found
 * here is logged and returned. Any thread. */
enum status device_event_wait(struct device *device, struct device_event *event);

/* Whether device memory is ordinary memory, which the host may access between operations. */
bool device_memory_is_host(const struct device *device);

/* Host memory, aligned to 64 bytes, that copies to and from the device need no detour for (CUDA:
 * pinned). Errors as device_alloc. NULL may be freed. */
enum status device_host_alloc(struct device *device, const char *what, size_t bytes, void **memory);
void device_host_free(struct device *device, void *memory);

/* Copies done in the stream's order; the host memory is the device's until an event recorded after
 * it has been waited for. Host memory from device_host_alloc, or the copy may wait. */
void device_upload_async(struct device *device, struct device_stream *stream, void *to,
                         const void *from_host, size_t bytes);
void device_download_async(struct device *device, struct device_stream *stream, void *to_host,
                           const void *from, size_t bytes);

/*
 * Does work(context), which asks the device for operations and waits for none of them. A device may
 * remember what it was asked for and later do that again without a call of `work` (CUDA: as a
 * graph, which costs one launch for all). So `work` asks for the same in every call: the same
 * operations on the same memory, with nothing uploaded or allocated; what differs between steps are
 * inputs (inputs.h; dropout.step_at, sgd.lr_at), which this sends first. Given another `context`,
 * the device starts anew.
 */
typedef enum status device_work(void *context);
enum status device_repeat(struct device *device, device_work *work, void *context);

/* How many steps the host should be ahead of the device at most, to keep it busy; 0 where the work
 * is done within the call. */
int device_steps_ahead(const struct device *device);

/* What a kind of device implements; see the functions above. */
struct stream_ops {
    bool memory_is_host;
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
