#include "common/device/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/util.h"
#include "common/device/device.h"
#include "common/device/stream.h"

enum { ALIGNMENT = 16, WORD = 4, BLOCK_BYTES = 16 * 1024 };

/* A block of adjacent inputs. */
struct device_inputs {
    struct device_inputs *next;
    char *memory; /* (bytes), device memory */
    char *host; /* (bytes), the callers' values; equals `memory` if device memory is host memory */
    char *sent; /* (bytes), contents of `memory`; equals `host` likewise */
    size_t bytes, used;
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
    bool shared = device_memory_is_host(device);
    block->host = shared ? block->memory : malloc(2 * bytes);
    if (!block->host)
        return FAIL(STATUS_NO_MEMORY, "%s: out of memory", what);
    block->sent = shared ? block->memory : block->host + bytes;
    memset(block->host, 0, bytes);
    memset(block->sent, 0, bytes);
    device_upload(device, block->memory, block->sent, bytes);
    block->bytes = bytes;
    return STATUS_OK;
}

enum status device_input_new(struct device *device, const char *what, size_t bytes,
                             struct device_input *input)
{
    enum status status = STATUS_OK;
    struct device_inputs *block = device->inputs;
    size_t room = size_divide_up(bytes, ALIGNMENT) * ALIGNMENT;
    bool fits = block && block->bytes - block->used >= room;
    if (!fits) {
        TRY(block_new(device, what, size_larger(room, BLOCK_BYTES)));
        block = device->inputs;
    }
    *input = (struct device_input){block->host + block->used, block->memory + block->used};
    block->used += room;
out:
    return status;
}

void device_inputs_send(struct device *device)
{
    for (struct device_inputs *block = device->inputs; block; block = block->next) {
        size_t first = 0, end = block->used;
        if (memcmp(block->host, block->sent, end) == 0)
            continue;
        while (block->host[first] == block->sent[first])
            first++;
        while (block->host[end - 1] == block->sent[end - 1])
            end--;
        first -= first % WORD; /* the bytes of a number that changed may not all have changed */
        end += (WORD - end % WORD) % WORD;
        memcpy(block->sent + first, block->host + first, end - first);
        device_upload(device, block->memory + first, block->sent + first, end - first);
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
