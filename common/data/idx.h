/*
 * Reads one IDX file (the format of MNIST's four files), plain or gzip, as untrusted input.
 *
 * An IDX file consists of two zero bytes, a type byte (8 = unsigned byte, the only accepted type),
 * the number of dimensions, each dimension as a big-endian 32-bit word, and the values, row-major.
 * Source: LeCun, Cortes, Burges, "The MNIST database of handwritten digits", section "File
 * formats".
 */
#ifndef PSRING_COMMON_DATA_IDX_H
#define PSRING_COMMON_DATA_IDX_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/sha256.h"
#include "common/base/status.h"

enum {
    IDX_DIMENSIONS_MAX = 3,
    /* MNIST has 60,000 items, the largest of its relatives (EMNIST) 814,255. */
    IDX_ITEMS_MAX = 1000000,
};

/* The file that a caller expects. */
struct idx_shape {
    unsigned dimensions;                    /* 1 to IDX_DIMENSIONS_MAX */
    uint32_t dimension[IDX_DIMENSIONS_MAX]; /* [0] is the number of items and is not compared */
    uint8_t value_max;                      /* the largest value allowed */
};

struct idx {
    uint8_t *values;              /* (items, dimension[1], dimension[2]), owned */
    size_t items;                 /* 1 to IDX_ITEMS_MAX */
    size_t item_bytes;            /* product of the other dimensions */
    char sha256[SHA256_HEX_SIZE]; /* of the decompressed file, header included */
};

/*
 * Reads all of `path`. The file must hold exactly one array of the expected shape. Otherwise one
 * logged line names the file, what was found, what was expected and what to do. Memory is bounded
 * before it is allocated: by the file's own size (times gzip's largest expansion) and by
 * IDX_ITEMS_MAX items. STATUS_INPUT: wrong contents. STATUS_IO: the file cannot be opened or read.
 */
enum status idx_read(struct idx **idx, const char *path, const struct idx_shape *shape);

void idx_free(struct idx **idx);

#endif
