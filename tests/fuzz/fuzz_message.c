/* Input: a message header. Whatever is accepted is within the limits and encodes to the same bytes.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "common/base/check.h"
#include "common/net/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct message_limits limits = {
        .run_id = 1, .nodes = 8, .length_max = 1 << 20, .dtype = MESSAGE_BF16};
    struct message message;
    const char *reason = NULL;
    if (message_decode(data, size, &limits, &message, &reason) != STATUS_OK) {
        CHECK(reason != NULL);
        return 0;
    }
    CHECK(message.sender < limits.nodes && message.length <= limits.length_max);
    CHECK(message.offset + message.length >= message.offset);
    uint8_t again[MESSAGE_HEADER_BYTES];
    message_encode(&message, again);
    CHECK(size == sizeof again && memcmp(again, data, size) == 0);
    return 0;
}
