/*
 * The checkpoints of a run in one folder: DIR/NAME.step-00000040.checkpoint, one for each step that
 * was saved. The step orders them, not the time of the file: folders are copied. An earlier version
 * wrote one file, DIR/NAME.checkpoint, which counts as older than all others.
 *
 * One process at a time reads and writes there.
 */
#ifndef PSRING_COMMON_CHECKPOINT_FOLDER_H
#define PSRING_COMMON_CHECKPOINT_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/checkpoint/checkpoint.h"

/*
 * Makes sure that `dir` exists (creates its last component) and can be written to, before hours of
 * training rely on it. STATUS_IO (logged).
 */
enum status checkpoint_prepare(const char *dir);

/*
 * Saves `checkpoint` as that of `step`, then leaves the `keep` >= 1 newest up to it. Those of later
 * steps are removed, too: they are damaged, or of another run, and would be taken for newer. What a
 * killed process left half written is removed first. Errors: as checkpoint_save.
 */
enum status checkpoint_save_step(const char *dir, const char *name, uint64_t step, size_t keep,
                                 const struct checkpoint *checkpoint);

/*
 * Loads the newest one that is whole, and says so if a newer one is damaged. *path is its name.
 * Caller frees both. They are NULL if there is none in the folder, which is no error. STATUS_INPUT
 * (logged): all are damaged. Others (logged): the folder, or a newer one, cannot be read now, or
 * not by this version; an older one is not taken then, as a save would remove the newer one.
 */
enum status checkpoint_load_newest(struct checkpoint **checkpoint, char **path, const char *dir,
                                   const char *name);

/* How many there are, damaged or not. STATUS_IO (logged): that cannot be known. */
enum status checkpoint_count(const char *dir, const char *name, size_t *count);

#endif
