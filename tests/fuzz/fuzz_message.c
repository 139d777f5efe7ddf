/* Input: a message header. An accepted header is within the limits and is encoded to the same
 * bytes. A header is refused as a stranger's if and only if it differs in the fields that all
 * headers of this run have in common. */
#include "tests/fuzz/fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "common/base/status.h"
#include "common/net/transport/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct message_limits limits = {
        .run_id = 1, .nodes = 8, .length_max = 1 << 20, .dtype = MESSAGE_BF16};
    /* Magic, version and run id of this run; between them, the kind. */
    static const uint8_t version[] = {'P', 'S', 'R', 'G', 2, 0}, run[] = {1, 0, 0, 0, 0, 0, 0, 0};
    struct message message = {.sender = limits.nodes};
    const char *reason = NULL;
    enum status status = message_decode(data, size, &limits, &message, &reason);
    bool stranger = size != MESSAGE_HEADER_BYTES || memcmp(data, version, sizeof version) != 0 ||
                    memcmp(data + 8, run, sizeof run) != 0;
    CHECK(stranger == (status == STATUS_INPUT));
    if (status != STATUS_OK) {
        CHECK(status == STATUS_INPUT || status == STATUS_PROTOCOL);
        CHECK(reason != NULL && message.sender == limits.nodes);
        return 0;
    }
    CHECK(message.sender < limits.nodes && message.length <= limits.length_max);
    CHECK(message.offset + message.length >= message.offset);
    uint8_t again[MESSAGE_HEADER_BYTES];
    message_encode(&message, again);
    CHECK(size == sizeof again && memcmp(again, data, size) == 0);
    return 0;
}
