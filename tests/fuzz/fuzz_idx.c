/* Input: a byte that selects images or labels, then a file for the IDX reader. */
#include "tests/fuzz/fuzz.h"

#include <unistd.h>

#include "common/base/status.h"
#include "common/data/idx.h"

static const struct idx_shape shapes[] = {
    {3, {0, 28, 28}, 255},
    {1, {0}, 9},
    {2, {0, 3}, 99},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct idx *idx = NULL;
    if (size == 0)
        return 0;
    const struct idx_shape *shape = &shapes[data[0] % (sizeof shapes / sizeof shapes[0])];
    fuzz_quiet();
    int fd = fuzz_file(data + 1, size - 1, path, sizeof path);
    enum status status = idx_read(&idx, path, shape);
    CHECK((status == STATUS_OK) == (idx != NULL));
    if (idx) {
        CHECK(idx->items >= 1 && idx->items <= IDX_ITEMS_MAX);
        for (size_t i = 0; i < idx->items * idx->item_bytes; i++)
            CHECK(idx->values[i] <= shape->value_max);
    }
    idx_free(&idx);
    close(fd);
    return 0;
}
