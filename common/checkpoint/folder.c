#include "common/checkpoint/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/status.h"

#define SUFFIX ".checkpoint"
#define HALF_WRITTEN SUFFIX ".tmp" /* see checkpoint_save */

enum status checkpoint_prepare(const char *dir)
{
    struct stat info;
    bool made = mkdir(dir, 0777) == 0;
    int error = made || errno == EEXIST ? 0 : errno;
    if (!error && stat(dir, &info) != 0)
        error = errno;
    if (!error && !S_ISDIR(info.st_mode))
        error = ENOTDIR;
    if (!error && access(dir, R_OK | W_OK | X_OK) != 0)
        error = errno;
    if (!error && made) /* the new folder is on the disk only after a flush of its parent */
        error = checkpoint_flush_parent(dir);
    if (!error)
        return STATUS_OK;
    return FAIL(STATUS_IO,
                "%s: checkpoints cannot be written and read there: %s; choose another folder", dir,
                strerror(error));
}

/* -------- listing ----------------------------------------------------------------------------- */

struct entry {
    bool numbered; /* its name has the step; false: an earlier version wrote it */
    uint64_t step;
    char *file;
};

struct listing {
    struct entry *entries; /* (count), the newest first */
    size_t count;
};

static void listing_fini(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        free(listing->entries[i].file);
    free(listing->entries);
    *listing = (struct listing){0};
}

/* Whether this file is a checkpoint of `name`, with that suffix. */
static bool parse(const char *file, const char *name, const char *suffix, struct entry *entry)
{
    size_t length = strlen(name);
    char *end;
    *entry = (struct entry){0};
    if (strncmp(file, name, length) != 0)
        return false;
    file += length;
    if (strcmp(file, suffix) == 0)
        return true;
    if (strncmp(file, ".step-", 6) != 0 || file[6] < '0' || file[6] > '9')
        return false;
    errno = 0;
    entry->step = strtoull(file + 6, &end, 10);
    entry->numbered = true;
    return errno == 0 && strcmp(end, suffix) == 0;
}

static int newest_first(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->numbered != b->numbered)
        return a->numbered ? -1 : 1;
    return a->step == b->step ? 0 : a->step > b->step ? -1 : 1;
}

static enum status add(struct listing *listing, const struct entry *entry, const char *file)
{
    struct entry *entries =
        realloc(listing->entries, (listing->count + 1) * sizeof *listing->entries);
    char *copy = strdup(file);
    if (entries)
        listing->entries = entries;
    if (!entries || !copy) {
        free(copy);
        return FAIL(STATUS_NO_MEMORY, "no memory for the names of checkpoints");
    }
    listing->entries[listing->count] = *entry;
    listing->entries[listing->count++].file = copy;
    return STATUS_OK;
}

/* Lists the checkpoints. A missing folder has none. A folder that cannot be read now may have some,
 * which is an error. */
static enum status list(struct listing *listing, const char *dir, const char *name,
                        const char *suffix)
{
    enum status status = STATUS_OK;
    struct dirent *found;
    struct entry entry;
    DIR *folder = opendir(dir);
    int error = folder || errno == ENOENT ? 0 : errno;
    *listing = (struct listing){0};
    while (folder && status == STATUS_OK) {
        errno = 0;
        found = readdir(folder);
        error = errno;
        if (!found)
            break;
        if (parse(found->d_name, name, suffix, &entry))
            status = add(listing, &entry, found->d_name);
    }
    if (folder)
        closedir(folder);
    if (error) {
        log_error("%s: cannot be searched for checkpoints: %s", dir, strerror(error));
        status = STATUS_IO;
    }
    if (listing->count > 1)
        qsort(listing->entries, listing->count, sizeof *listing->entries, newest_first);
    if (status != STATUS_OK)
        listing_fini(listing);
    return status;
}

enum status checkpoint_count(const char *dir, const char *name, size_t *count)
{
    struct listing listing;
    enum status status = list(&listing, dir, name, SUFFIX);
    *count = listing.count;
    listing_fini(&listing);
    return status;
}

/* -------- saving ------------------------------------------------------------------------------ */

static enum status join(char **path, const char *dir, const char *file)
{
    if (asprintf(path, "%s/%s", dir, file) >= 0)
        return STATUS_OK;
    *path = NULL;
    return FAIL(STATUS_NO_MEMORY, "%s: no memory for the name of a checkpoint", dir);
}

/* Does not remove anything but a regular file, because checkpoint_save leaves nothing else. */
static void remove_entry(const char *dir, const struct entry *entry)
{
    struct stat info;
    char *path;
    if (join(&path, dir, entry->file) != STATUS_OK)
        return;
    bool ours = lstat(path, &info) == 0 && S_ISREG(info.st_mode);
    if (ours && unlink(path) != 0 && errno != ENOENT)
        log_warn("%s: this old checkpoint cannot be removed: %s", path, strerror(errno));
    free(path);
}

static enum status prune(const char *dir, const char *name, uint64_t step, size_t keep)
{
    enum status status = STATUS_OK;
    struct listing listing = {0};
    size_t kept = 0;
    TRY(list(&listing, dir, name, SUFFIX));
    for (size_t i = 0; i < listing.count; i++) {
        const struct entry *entry = &listing.entries[i];
        bool later = entry->numbered && entry->step > step;
        if (later || kept == keep)
            remove_entry(dir, entry);
        else
            kept++;
    }
out:
    listing_fini(&listing);
    return status;
}

/* Removes files of a killed process before the disk must hold another one. */
static enum status remove_half_written(const char *dir, const char *name)
{
    struct listing listing;
    enum status status = list(&listing, dir, name, HALF_WRITTEN);
    for (size_t i = 0; i < listing.count; i++)
        remove_entry(dir, &listing.entries[i]);
    listing_fini(&listing);
    return status;
}

enum status checkpoint_save_step(const char *dir, const char *name, uint64_t step, size_t keep,
                                 const struct checkpoint *checkpoint)
{
    enum status status = STATUS_OK;
    char *path;
    CHECK(keep > 0);
    if (asprintf(&path, "%s/%s.step-%08" PRIu64 SUFFIX, dir, name, step) < 0)
        return FAIL(STATUS_NO_MEMORY, "%s: no memory for the name of a checkpoint", dir);
    enum status tidied = remove_half_written(dir, name);
    TRY(checkpoint_save(path, checkpoint));
    TRY(tidied);
    TRY(prune(dir, name, step, keep));
out:
    free(path);
    return status;
}

/* -------- loading ----------------------------------------------------------------------------- */

enum status checkpoint_load_newest(struct checkpoint **checkpoint, char **path, const char *dir,
                                   const char *name)
{
    enum status status = STATUS_OK;
    struct listing listing;
    *checkpoint = NULL;
    *path = NULL;
    TRY(list(&listing, dir, name, SUFFIX));
    for (size_t i = 0; i < listing.count && !*checkpoint; i++) {
        free(*path);
        status = join(path, dir, listing.entries[i].file);
        if (status == STATUS_OK)
            status = checkpoint_load(checkpoint, *path);
        if (status != STATUS_OK && status != STATUS_INPUT)
            break; /* it may be complete: no other file may replace it */
        if (status != STATUS_OK && i + 1 < listing.count)
            log_warn("%s cannot be used; loading the one before it, %s", listing.entries[i].file,
                     listing.entries[i + 1].file);
    }
    listing_fini(&listing);
out:
    if (status != STATUS_OK) {
        free(*path);
        *path = NULL;
    }
    return status;
}
