/*
 * Saves and loads the state of a training run. Knows nothing of models: arrays of float, counts
 * and names.
 *
 * The file, integers in the byte order of the machine that wrote it:
 *
 * - magic "PSRINGCK", version, byte-order mark, counts, seed, epoch, step, time: of fixed size;
 * - model, optimizer, then name and value of each option: texts, each ended by a 0 byte;
 * - weights, the optimizer's state, then what averaging carries: float32;
 * - SHA-256 of all of the above: 64 hexadecimal digits.
 */
#ifndef PSRING_COMMON_CHECKPOINT_CHECKPOINT_H
#define PSRING_COMMON_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

/* An option of the run, as text, that decides its bits, e.g. {"batch", "64"}. Only name and value
 * are saved. */
struct checkpoint_option {
    const char *name, *value;
    const char *advice; /* how to get the same. NULL: "give --NAME VALUE" */
    bool may_differ;    /* then a resumed run is still of use, but its bits are others: a warning */
    const char *expected; /* else; NULL: "the same" */
};

/* To save: everything borrowed. As loaded: everything owned by the checkpoint. */
struct checkpoint {
    const char *model;     /* e.g. "keras-cnn" */
    const char *optimizer; /* e.g. "adadelta" */
    uint64_t seed;
    uint64_t epoch;       /* the epoch to go on with, from 0 */
    uint64_t step;        /* the first step of that epoch that is not done yet */
    uint64_t trained_ns;  /* time of all steps done */
    uint64_t images;      /* trained on, of all workers; 0: not recorded */
    const float *weights; /* (weight_count) */
    size_t weight_count;
    const float *state; /* (state_count); NULL if the optimizer keeps none */
    size_t state_count;
    const float
        *carried; /* (carried_count): what averaging carries (common/comm/comm.h); or NULL */
    size_t carried_count;
    const struct checkpoint_option *options; /* (option_count) */
    size_t option_count;
};

/*
 * Writes to a temporary name beside `path`, flushes to the disk and renames: at every moment `path`
 * is either the old checkpoint or the new one, whole. STATUS_IO (logged); the old one then stays.
 */
enum status checkpoint_save(const char *path, const struct checkpoint *checkpoint);

/*
 * Reads and validates everything (untrusted: sizes against the file's own size before allocating,
 * sum, strings, finite numbers); versions 2, where averaging carries nothing, and 3 as well.
 * Logged: STATUS_INPUT (damaged), STATUS_UNSUPPORTED (whole, but another version or machine wrote
 * it), STATUS_IO. Caller frees.
 */
enum status checkpoint_load(struct checkpoint **checkpoint, const char *path);

void checkpoint_free(struct checkpoint **checkpoint);

/* The value of an option, NULL if it is not recorded. */
const char *checkpoint_option(const struct checkpoint *checkpoint, const char *name);

/*
 * May a run described by `run` (model, optimizer, seed, counts, options; the arrays themselves are
 * not looked at) go on from `loaded`? If not, logs one line for each difference, with both values
 * and what to do, and returns STATUS_USAGE. An option that may differ, and does, is a warning only.
 * `path` is for the messages.
 */
enum status checkpoint_check(const struct checkpoint *loaded, const struct checkpoint *run,
                             const char *path);

#endif
