/*
 * The header of every message between nodes: MESSAGE_HEADER_BYTES bytes, little-endian, versioned.
 * Encoding and decoding are pure functions of bytes. A header from the network is untrusted:
 * message_decode checks every field before anything is used.
 *
 *   at  0  u32 magic "PSRG"    at  8  u64 run id      at 32  u64 step
 *       4  u16 version             16  u32 sender         40  u64 offset (bytes into the bucket)
 *       6  u16 kind                20  u32 bucket         48  u64 length (payload bytes)
 *                                  24  u16 dtype          56  u16 staleness  } of a MESSAGE_PULL
 *                                                         58  u16 ahead      }
 *                                                         60  u16 late       }
 *
 * In a message of libpsring, its call (struct message_call); else zero:
 *
 *       26  u16 group      28  u32 number      56  u8 what, op and dtype (3, 2 and 3 bits)
 *                                              57  u16 root      59  u40 count
 */
#ifndef PSRING_COMMON_NET_TRANSPORT_MESSAGE_H
#define PSRING_COMMON_NET_TRANSPORT_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

enum { MESSAGE_HEADER_BYTES = 64, MESSAGE_VERSION = 2, MESSAGE_KIND_AT = 6 };

enum message_kind {
    /* An all-reduce without servers, a broadcast: part of a vector. Backwards: an empty credit. */
    MESSAGE_SEGMENT = 1,
    MESSAGE_PUSH = 2,  /* worker to server: a gradient chunk */
    MESSAGE_PULL = 3,  /* server to worker: the reduced chunk, or fresh parameters */
    MESSAGE_BYE = 4,   /* worker to server: its last message; no payload */
    MESSAGE_PAUSE = 5, /* worker to server: its last message until they have met; no payload */
    /* For servers that own the parameters (common/comm/comm_options.h): */
    MESSAGE_STORE = 6, /* worker to server: a chunk of array number `step` */
    MESSAGE_FETCH = 7, /* worker to server: requests such a chunk; no payload */
    MESSAGE_CLOCK = 8, /* worker to server: it continues with `step`; no payload */
    /* Between ranks that call libpsring, without a slot: */
    MESSAGE_CALL = 9,    /* this rank waits in its call for the receiver; no payload */
    MESSAGE_FAILED = 10, /* this rank has failed with the status `step`; payload: the reason */
};

/* The elements of the payload. */
enum message_dtype {
    MESSAGE_ANY_DTYPE = 0, /* in limits only, never in a message */
    MESSAGE_FLOAT32 = 1,
    MESSAGE_FP16 = 2,
    MESSAGE_BF16 = 3,
    MESSAGE_FLOAT64 = 4,
    MESSAGE_INT32 = 5,
    MESSAGE_INT64 = 6,
    MESSAGE_DTYPES
};

/* Bytes of an element; not for MESSAGE_ANY_DTYPE. */
size_t message_element_bytes(enum message_dtype dtype);

/* The calls of libpsring. */
enum message_what {
    MESSAGE_NO_CALL = 0,
    MESSAGE_ALLREDUCE = 1,
    MESSAGE_REDUCE_SCATTER = 2,
    MESSAGE_ALL_GATHER = 3,
    MESSAGE_BROADCAST = 4,
    MESSAGE_BARRIER = 5,
    MESSAGE_SPLIT = 6,
    MESSAGE_FINALIZE = 7,
};

#define MESSAGE_COUNT_MOST ((UINT64_C(1) << 40) - 1)

/* A call of a rank. The members of a communicator make the same calls in the same order, so
 * all fields agree between the two ends of a message. */
struct message_call {
    enum message_what what;
    uint16_t group;  /* number of the communicator: 0 is the world, then by splits */
    uint32_t number; /* of the call in the communicator, from 1 on */
    uint8_t op;      /* 0 to 3: enum reduce_op; 0 for a call without one */
    enum message_dtype dtype;
    uint16_t root;  /* 0 for a call without one */
    uint64_t count; /* of elements, at most MESSAGE_COUNT_MOST */
};

bool message_same_call(const struct message_call *a, const struct message_call *b);

struct message {
    enum message_kind kind;
    uint64_t run_id;
    uint32_t sender; /* node */
    uint32_t bucket;
    uint64_t step;
    uint64_t offset;
    uint64_t length;
    enum message_dtype dtype;
    /* For answers with fresh parameters. staleness: the steps of the slowest other worker that the
     * parameters lack. ahead: the steps that the first worker is ahead of the worker that pushed.
     * late: its push came too late and was not used. */
    uint16_t staleness, ahead;
    bool late;
    struct message_call call; /* of segments, MESSAGE_CALL and MESSAGE_FAILED */
};

/* Known to the receiver before it reads; it refuses anything else. */
struct message_limits {
    uint64_t run_id;          /* random: no process can make a header of this run without it */
    uint32_t nodes;           /* senders are 0..nodes-1 */
    uint64_t length_max;      /* payload bytes */
    enum message_dtype dtype; /* MESSAGE_ANY_DTYPE: every type is accepted */
};

void message_encode(const struct message *message, uint8_t bytes[MESSAGE_HEADER_BYTES]);

/*
 * Decodes `size` bytes.
 * - STATUS_INPUT: they are not a header of this run (size, magic, version, run id). Any process can
 *   send such bytes.
 * - STATUS_PROTOCOL: they are, but a field is not within `limits`. A rank of this run has sent
 *   them.
 *
 * In both cases *reason (static) states the fault for the caller's log message, and `message` is
 * unchanged.
 */
enum status message_decode(const uint8_t *bytes, size_t size, const struct message_limits *limits,
                           struct message *message, const char **reason);

#endif
