/* The four files of MNIST, or of any data set in its format, in memory. */
#ifndef PSRING_COMMON_DATA_DATASET_H
#define PSRING_COMMON_DATA_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/sha256.h"
#include "common/base/status.h"

enum {
    DATASET_ROWS = 28,
    DATASET_COLUMNS = 28,
    DATASET_PIXELS = DATASET_ROWS * DATASET_COLUMNS,
    DATASET_CLASSES = 10,
    DATASET_FILES = 4,
};

/* Images with their labels. Read-only once opened, so any number of threads may read it. */
struct dataset_split {
    const uint8_t *images; /* (count, 28, 28), 0 = background, 255 = ink; owned by the dataset */
    const uint8_t *labels; /* (count), 0 to 9; owned by the dataset */
    size_t count;          /* at least 1 */
};

struct dataset {
    struct dataset_split train, test;
    /* "mnist" or "fashion-mnist" if the SHA-256 sums of all four files are the canonical ones, else
     * "other". Part of every result. */
    const char *name;
    struct idx *files[DATASET_FILES]; /* own the memory above */
};

/*
 * Loads train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
 * t10k-labels-idx1-ubyte from `dir`.
 * - Each file may be plain or end with .gz (plain first), and may be spelled with a dot
 *   (train-images.idx3-ubyte).
 * - They may be in MNIST/raw or a similar folder below `dir`.
 *
 * Every file is untrusted: see idx.h. Image and label counts must agree. Errors have been logged:
 * STATUS_INPUT, STATUS_IO.
 */
enum status dataset_open(struct dataset **dataset, const char *dir);

/* One SHA-256 for all four files; "" without a data set (NULL). Errors: logged. */
enum status dataset_sum(const struct dataset *dataset, char sha256[SHA256_HEX_SIZE]);

void dataset_free(struct dataset **dataset);

#endif
