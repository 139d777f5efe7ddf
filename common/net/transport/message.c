#include "common/net/transport/message.h"

#include <string.h>

static const uint8_t magic[4] = {'P', 'S', 'R', 'G'};

static void put_le(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_le(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

size_t message_element_bytes(enum message_dtype dtype)
{
    static const size_t bytes[MESSAGE_DTYPES] = {
        [MESSAGE_FLOAT32] = 4, [MESSAGE_FP16] = 2,  [MESSAGE_BF16] = 2,
        [MESSAGE_FLOAT64] = 8, [MESSAGE_INT32] = 4, [MESSAGE_INT64] = 8};
    return bytes[dtype];
}

bool message_same_call(const struct message_call *a, const struct message_call *b)
{
    return a->number == b->number && a->group == b->group && a->what == b->what &&
           a->count == b->count && a->root == b->root && a->op == b->op && a->dtype == b->dtype;
}

static bool has_call(enum message_kind kind)
{
    return kind == MESSAGE_SEGMENT || kind == MESSAGE_CALL || kind == MESSAGE_FAILED;
}

static void encode_call(const struct message_call *call, uint8_t *bytes)
{
    put_le(bytes + 26, call->group, 2);
    put_le(bytes + 28, call->number, 4);
    put_le(bytes + 56, (uint64_t)(call->what | call->op << 3 | (int)call->dtype << 5), 1);
    put_le(bytes + 57, call->root, 2);
    put_le(bytes + 59, call->count, 5);
}

static struct message_call decode_call(const uint8_t *bytes)
{
    return (struct message_call){.what = (enum message_what)(bytes[56] & 7),
                                 .group = (uint16_t)get_le(bytes + 26, 2),
                                 .number = (uint32_t)get_le(bytes + 28, 4),
                                 .op = bytes[56] >> 3 & 3,
                                 .dtype = (enum message_dtype)(bytes[56] >> 5),
                                 .root = (uint16_t)get_le(bytes + 57, 2),
                                 .count = get_le(bytes + 59, 5)};
}

void message_encode(const struct message *message, uint8_t bytes[MESSAGE_HEADER_BYTES])
{
    memset(bytes, 0, MESSAGE_HEADER_BYTES);
    memcpy(bytes, magic, sizeof magic);
    put_le(bytes + 4, MESSAGE_VERSION, 2);
    put_le(bytes + 6, message->kind, 2);
    put_le(bytes + 8, message->run_id, 8);
    put_le(bytes + 16, message->sender, 4);
    put_le(bytes + 20, message->bucket, 4);
    put_le(bytes + 24, message->dtype, 2);
    put_le(bytes + 32, message->step, 8);
    put_le(bytes + 40, message->offset, 8);
    put_le(bytes + 48, message->length, 8);
    if (has_call(message->kind)) {
        encode_call(&message->call, bytes);
        return;
    }
    put_le(bytes + 56, message->staleness, 2);
    put_le(bytes + 58, message->ahead, 2);
    put_le(bytes + 60, message->late, 2);
}

/* NULL: this is a header of run `run_id`, valid or not. Else the reason why not. */
static const char *find_stranger(const uint8_t *bytes, size_t size, uint64_t run_id)
{
    if (size != MESSAGE_HEADER_BYTES)
        return "header of the wrong size";
    if (memcmp(bytes, magic, sizeof magic) != 0)
        return "not a psring message";
    if (get_le(bytes + 4, 2) != MESSAGE_VERSION)
        return "another version of the protocol";
    if (get_le(bytes + 8, 8) != run_id)
        return "from another run";
    return NULL;
}

/* Bytes that this kind of message does not use are zero. */
static bool reserved_bytes_are_zero(const uint8_t *bytes, const struct message *message)
{
    static const struct message_call none;
    if (has_call(message->kind)) {
        const struct message_call *call = &message->call;
        return call->what == MESSAGE_NO_CALL
                   ? message_same_call(call, &none)
                   : call->dtype > MESSAGE_ANY_DTYPE && call->dtype < MESSAGE_DTYPES;
    }
    bool answers = message->kind == MESSAGE_PULL;
    return get_le(bytes + 26, 6) == 0 && get_le(bytes + 62, 2) == 0 &&
           (answers || get_le(bytes + 56, 6) == 0) && get_le(bytes + 60, 2) <= 1;
}

/* NULL: every field is within `limits`. Else the name of the fault. */
static const char *find_fault(const uint8_t *bytes, const struct message *message,
                              const struct message_limits *limits)
{
    if (message->kind < MESSAGE_SEGMENT || message->kind > MESSAGE_FAILED)
        return "unknown kind";
    if (message->sender >= limits->nodes)
        return "sender out of range";
    if (message->dtype < MESSAGE_FLOAT32 || message->dtype >= MESSAGE_DTYPES)
        return "unknown element type";
    if (!reserved_bytes_are_zero(bytes, message))
        return "reserved bytes are not zero";
    if (message->length > limits->length_max)
        return "payload longer than agreed";
    if (limits->dtype != MESSAGE_ANY_DTYPE && message->dtype != limits->dtype)
        return "its elements have another type than this rank's; do all ranks run with the same "
               "--compress";
    size_t element_bytes = message_element_bytes(message->dtype);
    if (message->length % element_bytes || message->offset % element_bytes)
        return "offset or length is not a whole number of elements";
    if (message->offset > UINT64_MAX - message->length)
        return "offset overflows";
    bool empty = message->kind >= MESSAGE_BYE && message->kind != MESSAGE_STORE &&
                 message->kind != MESSAGE_FAILED;
    if (empty && message->length)
        return "payload where none belongs";
    return NULL;
}

enum status message_decode(const uint8_t *bytes, size_t size, const struct message_limits *limits,
                           struct message *message, const char **reason)
{
    *reason = find_stranger(bytes, size, limits->run_id);
    if (*reason)
        return STATUS_INPUT;
    struct message decoded = {
        .kind = (enum message_kind)get_le(bytes + 6, 2),
        .run_id = limits->run_id,
        .sender = (uint32_t)get_le(bytes + 16, 4),
        .bucket = (uint32_t)get_le(bytes + 20, 4),
        .dtype = (enum message_dtype)get_le(bytes + 24, 2),
        .step = get_le(bytes + 32, 8),
        .offset = get_le(bytes + 40, 8),
        .length = get_le(bytes + 48, 8),
    };
    if (has_call(decoded.kind)) {
        decoded.call = decode_call(bytes);
    } else {
        decoded.staleness = (uint16_t)get_le(bytes + 56, 2);
        decoded.ahead = (uint16_t)get_le(bytes + 58, 2);
        decoded.late = get_le(bytes + 60, 2) != 0;
    }
    *reason = find_fault(bytes, &decoded, limits);
    if (*reason)
        return STATUS_PROTOCOL;
    *message = decoded;
    return STATUS_OK;
}
