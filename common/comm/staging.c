#include "common/comm/comm_impl.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/base/clock.h"

struct staged {
    size_t bytes;
    float *host;               /* (bytes / 4), pinned if the device supports it; NULL: in place */
    float *data;               /* source and destination on the device */
    struct device_event *down; /* `host` (in place: `data`) is complete */
};

struct staging {
    struct device *device;
    struct device_stream *copies;
    struct device_event *order; /* orders one stream after the other, at the time of the call */
    struct staged *buckets;
    size_t bucket_count;
    bool in_place;
    float scale; /* (in place) applied to the average */
    int64_t waited_ns;
};

static enum status open_bucket(struct staging *staging, struct staged *bucket, size_t count)
{
    enum status status = STATUS_OK;
    void *memory = NULL;
    bucket->bytes = count * sizeof *bucket->host;
    if (!staging->in_place)
        TRY(device_host_alloc(staging->device, "the copies of gradients", bucket->bytes, &memory));
    bucket->host = memory;
    TRY(device_event_new(staging->device, &bucket->down));
out:
    return status;
}

enum status staging_new(struct staging **out, struct device *device, const size_t *counts,
                        size_t buckets, bool in_place, float scale)
{
    enum status status = STATUS_OK;
    *out = NULL;
    struct staging *staging = calloc(1, sizeof *staging);
    struct staged *memory = calloc(buckets + 1, sizeof *memory);
    if (!staging || !memory) {
        free(memory);
        free(staging);
        return FAIL(STATUS_NO_MEMORY, "comm: no memory for %zu buckets", buckets);
    }
    *staging = (struct staging){.device = device,
                                .buckets = memory,
                                .bucket_count = buckets,
                                .in_place = in_place,
                                .scale = scale};
    if (!in_place) {
        TRY(device_stream_new(staging->device, &staging->copies));
        TRY(device_event_new(staging->device, &staging->order));
    }
    for (size_t b = 0; b < buckets; b++)
        TRY(open_bucket(staging, &staging->buckets[b], counts[b]));
    *out = staging;
    return STATUS_OK;
out:
    staging_free(&staging);
    return status;
}

/* Orders later work on stream `later` after the present work on stream `earlier`. */
static void put_behind(struct staging *staging, struct device_stream *later,
                       struct device_stream *earlier)
{
    device_event_record(staging->device, staging->order, earlier);
    device_stream_wait(staging->device, later, staging->order);
}

void staging_free(struct staging **out)
{
    struct staging *staging = *out;
    if (!staging)
        return;
    *out = NULL;
    if (staging->copies && staging->order)
        put_behind(staging, NULL, staging->copies);
    device_sync(staging->device); /* waits for copies too; the device has logged failures */
    for (size_t b = 0; b < staging->bucket_count; b++) {
        device_event_free(staging->device, &staging->buckets[b].down);
        device_host_free(staging->device, staging->buckets[b].host);
    }
    device_event_free(staging->device, &staging->order);
    device_stream_free(staging->device, &staging->copies);
    free(staging->buckets);
    free(staging);
}

float *staging_down(struct staging *staging, size_t b, float *data)
{
    struct staged *bucket = &staging->buckets[b];
    bucket->data = data;
    if (staging->in_place) {
        device_event_record(staging->device, bucket->down, NULL);
        return data;
    }
    put_behind(staging, staging->copies, NULL);
    device_download_async(staging->device, staging->copies, bucket->host, data, bucket->bytes);
    device_event_record(staging->device, bucket->down, staging->copies);
    return bucket->host;
}

enum status staging_arrive(struct staging *staging, size_t b)
{
    int64_t start_ns = clock_now_ns();
    enum status status = device_event_wait(staging->device, staging->buckets[b].down);
    staging->waited_ns += clock_now_ns() - start_ns;
    return status;
}

void staging_up(struct staging *staging, size_t b)
{
    struct staged *bucket = &staging->buckets[b];
    if (staging->in_place) {
        if (staging->scale != 1.0f)
            staging->device->ops->scale(staging->device, bucket->data, staging->scale,
                                        bucket->bytes / sizeof *bucket->data);
        return;
    }
    device_upload_async(staging->device, staging->copies, bucket->data, bucket->host,
                        bucket->bytes);
    put_behind(staging, NULL, staging->copies);
}

int64_t staging_waited_ns(const struct staging *staging)
{
    return staging->waited_ns;
}
