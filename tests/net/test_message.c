/* The message header: decoding returns what was encoded and refuses all other bytes. */
#include <criterion/criterion.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/net/transport/message.h"

static const struct message_limits limits = {.run_id = UINT64_C(0x0123456789ABCDEF),
                                             .nodes = 5,
                                             .length_max = 1 << 20,
                                             .dtype = MESSAGE_FLOAT32};

static const struct message example = {
    .kind = MESSAGE_PUSH,
    .run_id = UINT64_C(0x0123456789ABCDEF),
    .sender = 3,
    .bucket = 7,
    .step = UINT64_C(0x1122334455667788),
    .offset = UINT64_C(0xAABBCCDD00),
    .length = 4096,
    .dtype = MESSAGE_FLOAT32,
};

/* STATUS_INPUT: any process can have sent it. STATUS_PROTOCOL: only a rank of this run. */
static void expect_refused(enum status expected, const uint8_t *bytes, size_t size, const char *why)
{
    struct message message = {.sender = 99};
    const char *reason = NULL;
    cr_expect_eq(message_decode(bytes, size, &limits, &message, &reason), expected, "%s", why);
    cr_expect_eq(message.sender, 99, "a refused header must not change the message (%s)", why);
    cr_expect_not_null(reason);
}

Test(message, round_trip)
{
    uint8_t bytes[MESSAGE_HEADER_BYTES];
    struct message decoded;
    const char *reason;
    message_encode(&example, bytes);
    cr_assert_eq(message_decode(bytes, sizeof bytes, &limits, &decoded, &reason), STATUS_OK);
    cr_assert_eq(decoded.kind, example.kind);
    cr_assert_eq(decoded.run_id, example.run_id);
    cr_assert_eq(decoded.sender, example.sender);
    cr_assert_eq(decoded.bucket, example.bucket);
    cr_assert_eq(decoded.step, example.step);
    cr_assert_eq(decoded.offset, example.offset);
    cr_assert_eq(decoded.length, example.length);
    cr_assert_eq(decoded.dtype, example.dtype);
}

/* The layout is a contract between builds: these bytes never change without a new version. */
Test(message, bytes_are_as_documented)
{
    uint8_t bytes[MESSAGE_HEADER_BYTES];
    message_encode(&example, bytes);
    static const uint8_t expected[MESSAGE_HEADER_BYTES] = {
        'P',  'S',  'R',  'G',  2,    0,    2,    0,    0xEF, 0xCD, 0xAB, 0x89, 0x67,
        0x45, 0x23, 0x01, 3,    0,    0,    0,    7,    0,    0,    0,    1,    0,
        0,    0,    0,    0,    0,    0,    0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22,
        0x11, 0x00, 0xDD, 0xCC, 0xBB, 0xAA, 0,    0,    0,    0x00, 0x10, 0,    0,
        0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0};
    cr_assert_arr_eq(bytes, expected, sizeof expected);
}

Test(message, every_wrong_field_is_refused)
{
    static const struct {
        int at;
        uint8_t value;
        const char *why;
        enum status status;
    } faults[] = {
        {0, 'X', "magic", STATUS_INPUT},
        {3, 0, "magic", STATUS_INPUT},
        {4, 1, "version", STATUS_INPUT},
        {5, 1, "version", STATUS_INPUT},
        {6, 0, "kind 0", STATUS_PROTOCOL},
        {6, 4, "goodbye with a payload", STATUS_PROTOCOL},
        {6, 5, "pause with a payload", STATUS_PROTOCOL},
        {6, 7, "fetch with a payload", STATUS_PROTOCOL},
        {6, 8, "clock with a payload", STATUS_PROTOCOL},
        {6, 9, "call with a payload", STATUS_PROTOCOL},
        {6, 11, "kind 11", STATUS_PROTOCOL},
        {7, 1, "kind 258", STATUS_PROTOCOL},
        {8, 0, "run id", STATUS_INPUT},
        {15, 9, "run id", STATUS_INPUT},
        {16, 5, "sender", STATUS_PROTOCOL},
        {19, 0x80, "sender", STATUS_PROTOCOL},
        {24, 0, "dtype", STATUS_PROTOCOL},
        {24, 2, "dtype fp16", STATUS_PROTOCOL},
        {24, 4, "dtype 4", STATUS_PROTOCOL},
        {26, 1, "reserved", STATUS_PROTOCOL},
        {31, 1, "reserved", STATUS_PROTOCOL},
        {40, 1, "odd offset", STATUS_PROTOCOL},
        {48, 2, "odd length", STATUS_PROTOCOL},
        {50, 0x11, "length over the limit", STATUS_PROTOCOL},
        {55, 0x80, "huge length", STATUS_PROTOCOL},
        {56, 1, "staleness of a push", STATUS_PROTOCOL},
        {58, 1, "ahead in a push", STATUS_PROTOCOL},
        {60, 1, "lateness of a push", STATUS_PROTOCOL},
        {62, 1, "reserved", STATUS_PROTOCOL},
        {63, 1, "reserved", STATUS_PROTOCOL},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        uint8_t bytes[MESSAGE_HEADER_BYTES];
        message_encode(&example, bytes);
        bytes[faults[i].at] = faults[i].value;
        expect_refused(faults[i].status, bytes, sizeof bytes, faults[i].why);
    }
}

/* The header of an answer reports how fresh its parameters are. */
Test(message, answers_tell_how_fresh_they_are)
{
    uint8_t bytes[MESSAGE_HEADER_BYTES];
    const char *reason = NULL;
    struct message answer = example, decoded;
    answer.kind = MESSAGE_PULL;
    answer.staleness = 0x1234;
    answer.ahead = 0x5678;
    answer.late = true;
    message_encode(&answer, bytes);
    cr_assert_eq(message_decode(bytes, sizeof bytes, &limits, &decoded, &reason), STATUS_OK);
    cr_assert_eq(decoded.staleness, answer.staleness);
    cr_assert_eq(decoded.ahead, answer.ahead);
    cr_assert(decoded.late);
    bytes[60] = 2;
    expect_refused(STATUS_PROTOCOL, bytes, sizeof bytes, "late twice");
}

/* Every message of libpsring names the call to which it belongs. */
Test(message, calls)
{
    static const struct message_call calls[] = {
        {0},
        {.what = MESSAGE_BROADCAST,
         .group = 0x1234,
         .number = 0x89ABCDEF,
         .dtype = MESSAGE_INT64,
         .root = 0xFEDC,
         .count = MESSAGE_COUNT_MOST},
        {.what = MESSAGE_FINALIZE, .number = 1, .op = 3, .dtype = MESSAGE_FLOAT32, .count = 1},
    };
    enum { CALLS = sizeof calls / sizeof *calls };
    for (int c = 0; c < CALLS; c++) {
        uint8_t bytes[MESSAGE_HEADER_BYTES];
        const char *reason = NULL;
        struct message segment = example, decoded;
        segment.kind = MESSAGE_SEGMENT;
        segment.call = calls[c];
        message_encode(&segment, bytes);
        cr_assert_eq(message_decode(bytes, sizeof bytes, &limits, &decoded, &reason), STATUS_OK);
        for (int other = 0; other < CALLS; other++)
            cr_expect_eq(message_same_call(&decoded.call, &calls[other]), c == other);
        bytes[56] = 7 << 5 | MESSAGE_BARRIER;
        expect_refused(STATUS_PROTOCOL, bytes, sizeof bytes, "a call of unknown element type");
        bytes[56] = 1 << 3;
        expect_refused(STATUS_PROTOCOL, bytes, sizeof bytes, "an operation without a call");
    }
}

Test(message, every_other_size_is_refused)
{
    uint8_t bytes[2 * MESSAGE_HEADER_BYTES] = {0};
    message_encode(&example, bytes);
    for (size_t size = 0; size < sizeof bytes; size++) {
        if (size != MESSAGE_HEADER_BYTES)
            expect_refused(STATUS_INPUT, bytes, size, "size");
    }
}

Test(message, offset_that_overflows_is_refused)
{
    uint8_t bytes[MESSAGE_HEADER_BYTES];
    struct message message = example;
    message.offset = UINT64_MAX - 3;
    message_encode(&message, bytes);
    expect_refused(STATUS_PROTOCOL, bytes, sizeof bytes, "offset + length overflows");
}

/* Elements of 16 bits: an odd number of them is a whole payload, though not for float32. All ranks
 * must use the same type. */
Test(message, element_types)
{
    struct message_limits narrow = limits;
    struct message message = example, decoded;
    uint8_t bytes[MESSAGE_HEADER_BYTES];
    const char *reason = "";
    message.offset += 2;
    message.length += 2;
    for (enum message_dtype sent = MESSAGE_FLOAT32; sent <= MESSAGE_BF16; sent++) {
        for (narrow.dtype = MESSAGE_FLOAT32; narrow.dtype <= MESSAGE_BF16; narrow.dtype++) {
            message.dtype = sent;
            message_encode(&message, bytes);
            enum status status = message_decode(bytes, sizeof bytes, &narrow, &decoded, &reason);
            bool taken = sent == narrow.dtype && sent != MESSAGE_FLOAT32;
            cr_assert_eq(status, taken ? STATUS_OK : STATUS_PROTOCOL);
            if (sent != narrow.dtype)
                cr_assert(strstr(reason, "--compress"), "%s", reason);
        }
    }
}

/* A receiver that takes any type still refuses an unknown type, and a part of an element. */
Test(message, any_element_type)
{
    struct message_limits any = limits;
    struct message message = example, decoded;
    uint8_t bytes[MESSAGE_HEADER_BYTES];
    const char *reason = "";
    any.dtype = MESSAGE_ANY_DTYPE;
    message.offset = 0;
    for (int sent = MESSAGE_ANY_DTYPE; sent <= MESSAGE_DTYPES; sent++) {
        for (message.length = 2; message.length <= 8; message.length += 2) {
            message.dtype = (enum message_dtype)sent;
            message_encode(&message, bytes);
            enum status status = message_decode(bytes, sizeof bytes, &any, &decoded, &reason);
            bool known = sent > MESSAGE_ANY_DTYPE && sent < MESSAGE_DTYPES;
            bool whole = known && message.length % message_element_bytes(message.dtype) == 0;
            cr_assert_eq(status, whole ? STATUS_OK : STATUS_PROTOCOL);
            cr_assert(!whole || (int)decoded.dtype == sent);
        }
    }
}

Test(message, bye_and_pause_have_no_payload)
{
    uint8_t bytes[MESSAGE_HEADER_BYTES];
    struct message message = example;
    message.kind = MESSAGE_BYE;
    message_encode(&message, bytes);
    expect_refused(STATUS_PROTOCOL, bytes, sizeof bytes, "bye with a payload");
    message.kind = MESSAGE_PAUSE;
    message_encode(&message, bytes);
    expect_refused(STATUS_PROTOCOL, bytes, sizeof bytes, "pause with a payload");
}

/* Random bytes and random changes: every accepted header is encoded to the same bytes again. */
Test(message, accepted_headers_are_canonical)
{
    struct rng_key key = rng_key(1, RNG_TEST, 0);
    int accepted = 0;
    for (uint64_t round = 0; round < 200000; round++) {
        uint8_t bytes[MESSAGE_HEADER_BYTES], again[MESSAGE_HEADER_BYTES];
        struct rng_block random = rng_block(key, round, 0);
        message_encode(&example, bytes);
        bytes[random.word[0] % MESSAGE_HEADER_BYTES] = (uint8_t)random.word[1];
        bytes[random.word[2] % MESSAGE_HEADER_BYTES] = (uint8_t)random.word[3];
        struct message message;
        const char *reason;
        if (message_decode(bytes, sizeof bytes, &limits, &message, &reason) != STATUS_OK)
            continue;
        accepted++;
        message_encode(&message, again);
        cr_assert_arr_eq(bytes, again, sizeof bytes);
    }
    cr_assert_gt(accepted, 0);
}
