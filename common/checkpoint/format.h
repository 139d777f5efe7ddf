/* The checkpoint file's fixed part; see checkpoint.h for the whole. Private to this folder. */
#ifndef PSRING_COMMON_CHECKPOINT_FORMAT_H
#define PSRING_COMMON_CHECKPOINT_FORMAT_H

#include <stdint.h>

#define CHECKPOINT_MAGIC "PSRINGCK"

enum {
    CHECKPOINT_VERSION = 4,
    CHECKPOINT_VERSION_SHORT = 2, /* the header without its last two fields; 3: without the last */
    CHECKPOINT_SHORT_BYTES = 72,
    CHECKPOINT_BYTE_ORDER = 0x01020304, /* reads as 0x04030201 on a machine of the other order */
    CHECKPOINT_STRING_BYTES_MAX = 64 * 1024,
    CHECKPOINT_OPTIONS_MAX = 256,
    CHECKPOINT_SUM_BYTES = 64, /* hexadecimal digits, no terminator */
};

/* Change the version with any change here. */
struct checkpoint_header {
    char magic[8];
    uint32_t version;
    uint32_t byte_order;
    uint64_t weight_count, state_count;
    uint64_t seed, epoch, step, trained_ns;
    uint32_t string_bytes; /* of model, optimizer and options, their 0 bytes included */
    uint32_t option_count;
    uint64_t carried_count;
    uint64_t images;
};

/* Flushes the folder that holds `path` to the disk: a new or renamed entry survives a power failure
 * only then. 0 or an errno value, not logged. */
int checkpoint_flush_parent(const char *path);

_Static_assert(sizeof(struct checkpoint_header) == 88, "no padding: the struct is the file format");

#endif
