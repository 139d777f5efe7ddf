/*
 * Memory and streams of the CUDA device: copies of every size, copies on separate streams, and a
 * refused allocation. Ends with 77 if there is no GPU.
 */
#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"
#include "tests/lib/cuda_lib.h"

static struct device *cuda;
static float *on_device(size_t count)
{
    void *memory;
    if (device_alloc(cuda, "a test", count * sizeof(float), &memory) != STATUS_OK)
        abort();
    return memory;
}

static float *on_host(size_t count)
{
    float *memory = malloc(count * sizeof *memory);
    if (!memory)
        abort();
    return memory;
}

/* When an upload returns, its source is the caller's again, for any size. */
static void check_uploads(void)
{
    static const size_t counts[] = {1, 16 * 1024, 16 * 1024 + 1, 1200000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        size_t count = counts[c], bytes = count * sizeof(float);
        float *dev = on_device(count), *source = on_host(count), *found = on_host(count);
        for (size_t i = 0; i < count; i++)
            source[i] = (float)i;
        device_upload(cuda, dev, source, bytes);
        memset(source, 0xff, bytes);
        expect(device_download(cuda, found, dev, bytes) == STATUS_OK, "a download");
        bool same = true;
        for (size_t i = 0; i < count; i++)
            same = same && found[i] == (float)i;
        expect(same, "an upload whose source is overwritten");
        free(source);
        free(found);
        device_free(cuda, dev);
    }
}

static void check_small_uploads(void)
{
    enum { UPLOADS = 1000 }; /* more than there are pinned slots */
    uint32_t found[UPLOADS];
    float *dev = on_device(UPLOADS);
    for (uint32_t i = 0; i < UPLOADS; i++)
        device_upload(cuda, dev + i, &i, sizeof i);
    expect(device_download(cuda, found, dev, sizeof found) == STATUS_OK, "a download");
    for (uint32_t i = 0; i < UPLOADS; i++)
        expect(found[i] == i, "small uploads follow each other");
    device_free(cuda, dev);
}

static void check_streams(void)
{
    enum { COUNT = 1 << 20 };
    struct device_stream *stream;
    struct device_event *computed, *copied;
    float *dev = on_device(COUNT);
    void *pinned;
    expect(device_stream_new(cuda, &stream) == STATUS_OK, "stream_new");
    expect(device_event_new(cuda, &computed) == STATUS_OK, "event_new");
    expect(device_event_new(cuda, &copied) == STATUS_OK, "event_new");
    expect(device_host_alloc(cuda, "a test", COUNT * sizeof(float), &pinned) == STATUS_OK, "pin");
    cuda->ops->fill(cuda, dev, 3.0f, COUNT);
    device_event_record(cuda, computed, NULL);
    device_stream_wait(cuda, stream, computed);
    device_download_async(cuda, stream, pinned, dev, COUNT * sizeof(float));
    device_event_record(cuda, copied, stream);
    expect(device_event_wait(cuda, copied) == STATUS_OK, "event_wait");
    for (size_t i = 0; i < COUNT; i++)
        expect(((float *)pinned)[i] == 3.0f, "a copy on a separate stream");
    device_host_free(cuda, pinned);
    device_event_free(cuda, &computed);
    device_event_free(cuda, &copied);
    device_stream_free(cuda, &stream);
    device_free(cuda, dev);
}

static void check_refusal(void)
{
    void *refused;
    expect(device_alloc(cuda, "far too much", SIZE_MAX / 2 + SIZE_MAX / 4, &refused) ==
               STATUS_NO_MEMORY,
           "an allocation that must be refused");
    expect(device_sync(cuda) == STATUS_OK, "a refused allocation is no failure of the device");
}

int main(void)
{
    if (is_skipped())
        return SKIPPED;
    if (device_open(&cuda, &(struct device_options){.kind = DEVICE_CUDA}) != STATUS_OK)
        return 1;
    check_uploads();
    check_small_uploads();
    check_streams();
    check_refusal();
    expect(device_sync(cuda) == STATUS_OK, "an operation failed");
    device_close(&cuda);
    return end_of_test();
}
