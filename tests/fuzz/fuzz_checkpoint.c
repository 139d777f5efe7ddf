/* Input: a checkpoint without its sum. The target appends the right sum, else every input would be
 * refused at once. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/status.h"
#include "common/base/sha256.h"
#include "common/checkpoint/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], hex[SHA256_HEX_SIZE];
    struct checkpoint *checkpoint = NULL;
    uint8_t *whole = malloc(size + SHA256_HEX_SIZE);
    CHECK(whole && sha256_hex(data, size, hex) == STATUS_OK);
    if (size > 0)
        memcpy(whole, data, size);
    memcpy(whole + size, hex, SHA256_HEX_SIZE - 1);
    fuzz_quiet();
    int fd = fuzz_file(whole, size + SHA256_HEX_SIZE - 1, path, sizeof path);
    enum status status = checkpoint_load(&checkpoint, path);
    CHECK((status == STATUS_OK) == (checkpoint != NULL));
    if (checkpoint)
        CHECK(checkpoint_check(checkpoint, checkpoint, path) == STATUS_OK);
    checkpoint_free(&checkpoint);
    close(fd);
    free(whole);
    return 0;
}
