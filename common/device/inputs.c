#include "common/device/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/device/stream.h"

enum { ALIGNMENT = 16, BLOCK_BYTES = 16 * 1024 };

/* A block of adjacent inputs. */
struct device_inputs {
    struct device_inputs *next;
    char *memory; /* (bytes), device memory */
    char *host;   /* the contents to send; equals `memory` if device memory is host memory */
    size_t bytes, used;
    size_t first, end; /* [first, end) was set and not sent; empty: first == end */
};

static enum status block_new(struct device *device, const char *what, size_t bytes)
{
    void *memory;
    struct device_inputs *block = calloc(1, sizeof *block);
    if (!block)
        return FAIL(STATUS_NO_MEMORY, "%s: out of memory", what);
    block->next = device->inputs;
    device->inputs = block;
    enum status status = device_alloc(device, what, bytes, &memory);
    if (status != STATUS_OK)
        return status;
    block->memory = memory;
    block->host = device_memory_is_host(device) ? block->memory : malloc(bytes);
    if (!block->host)
        return FAIL(STATUS_NO_MEMORY, "%s: out of memory", what);
    memset(block->host, 0, bytes);
    block->bytes = bytes;
    return STATUS_OK;
}

static void note(struct device_inputs *block, size_t first, size_t end)
{
    bool none = block->first == block->end;
    if (block->host == block->memory) /* the value is already in device memory */
        return;
    block->first = none || first < block->first ? first : block->first;
    block->end = none || end > block->end ? end : block->end;
}

enum status device_input_new(struct device *device, const char *what, size_t bytes, void **memory)
{
    enum status status = STATUS_OK;
    struct device_inputs *block = device->inputs;
    size_t room = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *memory = NULL;
    if (!block || block->bytes - block->used < room) {
        TRY(block_new(device, what, room > BLOCK_BYTES ? room : BLOCK_BYTES));
        block = device->inputs;
    }
    *memory = block->memory + block->used;
    note(block, block->used, block->used + room);
    block->used += room;
out:
    return status;
}

void device_input_set(struct device *device, void *memory, const void *from_host, size_t bytes)
{
    struct device_inputs *block = device->inputs;
    while (block &&
           ((char *)memory < block->memory || (char *)memory >= block->memory + block->used))
        block = block->next;
    CHECK(block);
    size_t at = (size_t)((char *)memory - block->memory);
    CHECK(at + bytes <= block->used);
    memcpy(block->host + at, from_host, bytes);
    note(block, at, at + bytes);
}

void device_inputs_send(struct device *device)
{
    for (struct device_inputs *block = device->inputs; block; block = block->next) {
        if (block->first == block->end)
            continue;
        device_upload(device, block->memory + block->first, block->host + block->first,
                      block->end - block->first);
        block->first = block->end = 0;
    }
}

void device_inputs_free(struct device *device)
{
    while (device->inputs) {
        struct device_inputs *block = device->inputs;
        device->inputs = block->next;
        if (block->host != block->memory)
            free(block->host);
        device_free(device, block->memory);
        free(block);
    }
}
