/*
 * Saves and loads the state of a training run. Independent of models: it holds arrays of float,
 * counts and names.
 *
 * The file, integers in the byte order of the machine that wrote it:
 *
 *   - Of fixed size: magic "PSRINGCK", version, byte-order mark, counts, seed, epoch, step, time.
 *   - Texts, each ended by a 0 byte: model, optimizer, then name and value of each option.
 *   - float32: weights, the optimizer's state, then the state carried by averaging.
 *   - 64 hexadecimal digits: the SHA-256 of all of the above.
 */
#ifndef PSRING_COMMON_CHECKPOINT_CHECKPOINT_H
#define PSRING_COMMON_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

/* An option of the run that decides its bits, as text, e.g. {"batch", "64"}. Only name and value
 * are saved. */
struct checkpoint_option {
    const char *name, *value;
    const char *advice;   /* how to get the same value. NULL: "give --NAME VALUE" */
    bool may_differ;      /* another value only causes a warning: the run can be resumed, with other
                           * bits */
    const char *expected; /* otherwise what is expected; NULL: "the same" */
};

/* To save: all pointers are borrowed. After a load: the checkpoint owns everything. */
struct checkpoint {
    const char *model;     /* e.g. "keras-cnn" */
    const char *optimizer; /* e.g. "adadelta" */
    uint64_t seed;
    uint64_t epoch;       /* the epoch to continue with, from 0 */
    uint64_t step;        /* the next step of that epoch */
    uint64_t trained_ns;  /* time of all steps done */
    uint64_t images;      /* trained on so far, by all workers; 0: not recorded */
    const float *weights; /* (weight_count) */
    size_t weight_count;
    const float *state; /* (state_count); NULL if the optimizer has no state */
    size_t state_count;
    const float
        *carried; /* (carried_count): state carried by averaging (common/comm/comm.h); or NULL */
    size_t carried_count;
    const struct checkpoint_option *options; /* (option_count) */
    size_t option_count;
};

/*
 * Writes to a temporary name next to `path`, flushes it to the disk and renames it. At every moment
 * `path` is the complete old or the complete new checkpoint. STATUS_IO, or STATUS_DIVERGED if a
 * number is not finite (both logged); the old checkpoint then stays.
 */
enum status checkpoint_save(const char *path, const struct checkpoint *checkpoint);

/* Whether all weights, optimizer values and residuals are finite numbers. */
bool checkpoint_is_finite(const struct checkpoint *checkpoint);

/*
 * Reads and validates everything. The file is untrusted: sizes are compared with the file's own
 * size before memory is allocated, then the sum, the strings and finite numbers are checked. Also
 * reads version 2 (without carried state) and version 3. Logged: STATUS_INPUT (damaged),
 * STATUS_UNSUPPORTED (complete, but written by another version or machine), STATUS_IO. Caller
 * frees.
 */
enum status checkpoint_load(struct checkpoint **checkpoint, const char *path);

void checkpoint_free(struct checkpoint **checkpoint);

/* The value of an option, NULL if it is not recorded. */
const char *checkpoint_option(const struct checkpoint *checkpoint, const char *name);

/*
 * Checks whether a run described by `run` may continue from `loaded`. Compares model, optimizer,
 * seed, counts and options, but not the arrays. If it may not, logs one line for each difference,
 * with both values and what to do, and returns STATUS_USAGE. A different option that may differ is
 * only a warning. `path` is for the messages.
 */
enum status checkpoint_check(const struct checkpoint *loaded, const struct checkpoint *run,
                             const char *path);

/* The checkpoint file's fixed part; the whole file is described above. Private to this folder. */

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
    uint32_t string_bytes; /* of model, optimizer and options, including their 0 bytes */
    uint32_t option_count;
    uint64_t carried_count;
    uint64_t images;
};

/* Flushes the folder that holds `path` to the disk. Only then a new or renamed entry survives a
 * power failure. 0 or an errno value, not logged. */
int checkpoint_flush_parent(const char *path);

_Static_assert(sizeof(struct checkpoint_header) == 88, "no padding: the struct is the file format");

/*
 * The checkpoints of a run in one folder: DIR/NAME.step-00000040.checkpoint, one for each saved
 * step. The step orders them, not the time of the file, because folders are copied. An earlier
 * version wrote one file, DIR/NAME.checkpoint, which counts as older than all others.
 *
 * Only one process at a time reads and writes there.
 */

/*
 * Makes sure that `dir` exists (creates its last component) and can be written to, before hours of
 * training rely on it. STATUS_IO (logged).
 */
enum status checkpoint_prepare(const char *dir);

/*
 * Saves `checkpoint` as that of `step`, then keeps the `keep` >= 1 newest checkpoints up to this
 * step. It also removes those of later steps: they are damaged or belong to another run, and would
 * count as newer. It removes half-written files of a killed process first. Errors: as
 * checkpoint_save.
 */
enum status checkpoint_save_step(const char *dir, const char *name, uint64_t step, size_t keep,
                                 const struct checkpoint *checkpoint);

/*
 * Loads the newest complete checkpoint, and warns if a newer one is damaged. *path is its name.
 * Caller frees both. Both are NULL if the folder has no checkpoint, which is no error. STATUS_INPUT
 * (logged): all are damaged. Other errors (logged): the folder or a newer checkpoint cannot be read
 * now, or not by this version. An older one is not loaded then, because a save would remove the
 * newer one.
 */
enum status checkpoint_load_newest(struct checkpoint **checkpoint, char **path, const char *dir,
                                   const char *name);

/* The number of checkpoints, damaged or not. STATUS_IO (logged): the folder cannot be read. */
enum status checkpoint_count(const char *dir, const char *name, size_t *count);

#endif
