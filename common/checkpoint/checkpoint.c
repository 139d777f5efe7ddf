#include "common/checkpoint/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/sha256.h"
#include "common/base/status.h"

/* True if `saved` (NULL: not recorded) equals this run's value; else logs the difference. */
static bool same_text(const char *path, const struct checkpoint_option *here, const char *saved)
{
    const char *found = here->value ? here->value : "not known";
    const char *expected = here->expected ? here->expected : "the same";
    if (saved && here->value && strcmp(saved, here->value) == 0)
        return true;
    if (saved && here->advice)
        log_error(
            "%s: %s is %s there and %s here, expected %s; %s, or start again without --resume",
            path, here->name, saved, found, expected, here->advice);
    else if (saved)
        log_error("%s: %s is %s there and %s here, expected %s; give --%s %s, or start again "
                  "without --resume",
                  path, here->name, saved, found, expected, here->name, saved);
    else
        log_error("%s: %s is not recorded there and %s here, expected %s; another version of "
                  "psring wrote it, start again without --resume",
                  path, here->name, found, expected);
    return false;
}

static bool same_word(const char *path, const char *option, const char *saved, const char *here)
{
    return same_text(path, &(struct checkpoint_option){.name = option, .value = here}, saved);
}

static bool same_number(const char *path, const char *option, uint64_t saved, uint64_t here)
{
    char saved_text[24], here_text[24];
    snprintf(saved_text, sizeof saved_text, "%" PRIu64, saved);
    snprintf(here_text, sizeof here_text, "%" PRIu64, here);
    return same_word(path, option, saved_text, here_text);
}

static bool same_count(const char *path, const char *what, size_t saved, size_t here)
{
    if (saved == here)
        return true;
    log_error("%s: %zu %s there and %zu here, expected as many; start again without --resume", path,
              saved, what, here);
    return false;
}

static void warn_if_other(const char *path, const struct checkpoint_option *here, const char *saved)
{
    if (saved && strcmp(saved, here->value) == 0)
        return;
    log_warn("%s: %s is %s there and %s here: the run continues, but not to the same bits", path,
             here->name, saved ? saved : "not recorded", here->value);
}

const char *checkpoint_option(const struct checkpoint *checkpoint, const char *name)
{
    for (size_t i = 0; i < checkpoint->option_count; i++) {
        if (strcmp(checkpoint->options[i].name, name) == 0)
            return checkpoint->options[i].value;
    }
    return NULL;
}

enum status checkpoint_check(const struct checkpoint *loaded, const struct checkpoint *run,
                             const char *path)
{
    bool same_model = same_word(path, "model", loaded->model, run->model);
    bool same_optimizer = same_word(path, "optimizer", loaded->optimizer, run->optimizer);
    bool same = same_model && same_optimizer;
    /* Counts always differ if the model or the optimizer does. */
    if (same) {
        same = same_count(path, "parameters", loaded->weight_count, run->weight_count) && same;
        same = same_count(path, "optimizer values", loaded->state_count, run->state_count) && same;
    }
    same = same_number(path, "seed", loaded->seed, run->seed) && same;
    for (size_t i = 0; i < run->option_count; i++) {
        const struct checkpoint_option *option = &run->options[i];
        const char *saved = checkpoint_option(loaded, option->name);
        if (option->may_differ)
            warn_if_other(path, option, saved);
        else
            same = same_text(path, option, saved) && same;
    }
    for (size_t i = 0; i < loaded->option_count; i++) {
        const char *name = loaded->options[i].name;
        if (!checkpoint_option(run, name))
            same = same_word(path, name, loaded->options[i].value, NULL);
    }
    return same ? STATUS_OK : STATUS_USAGE;
}

/* The file being written, and the sum of the bytes so far. */
struct writer {
    const char *path; /* of the checkpoint, for messages */
    char *temporary;  /* path + ".tmp" */
    int fd;
    struct sha256 sum;
};

static enum status write_error(const struct writer *writer, int error)
{
    return FAIL(STATUS_IO,
                "%s: the checkpoint cannot be written: %s; free space or choose another folder",
                writer->path, strerror(error));
}

static enum status write_bytes(struct writer *writer, const void *bytes, size_t count)
{
    size_t done = 0;
    while (done < count) {
        ssize_t n = write(writer->fd, (const char *)bytes + done, count - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return write_error(writer, errno);
        done += (size_t)n;
    }
    return STATUS_OK;
}

static enum status write_summed(struct writer *writer, const void *bytes, size_t count)
{
    if (count == 0)
        return STATUS_OK;
    sha256_update(&writer->sum, bytes, count);
    return write_bytes(writer, bytes, count);
}

static enum status write_string(struct writer *writer, const char *text)
{
    return write_summed(writer, text, strlen(text) + 1);
}

static struct checkpoint_header make_header(const struct checkpoint *checkpoint)
{
    size_t string_bytes = strlen(checkpoint->model) + strlen(checkpoint->optimizer) + 2;
    for (size_t i = 0; i < checkpoint->option_count; i++)
        string_bytes +=
            strlen(checkpoint->options[i].name) + strlen(checkpoint->options[i].value) + 2;
    CHECK(string_bytes <= CHECKPOINT_STRING_BYTES_MAX);
    CHECK(checkpoint->option_count <= CHECKPOINT_OPTIONS_MAX);
    struct checkpoint_header header = {
        .version = CHECKPOINT_VERSION,
        .byte_order = CHECKPOINT_BYTE_ORDER,
        .weight_count = checkpoint->weight_count,
        .state_count = checkpoint->state_count,
        .seed = checkpoint->seed,
        .epoch = checkpoint->epoch,
        .step = checkpoint->step,
        .trained_ns = checkpoint->trained_ns,
        .string_bytes = (uint32_t)string_bytes,
        .option_count = (uint32_t)checkpoint->option_count,
        .carried_count = checkpoint->carried_count,
        .images = checkpoint->images,
    };
    memcpy(header.magic, CHECKPOINT_MAGIC, sizeof header.magic);
    return header;
}

static enum status write_contents(struct writer *writer, const struct checkpoint *checkpoint)
{
    enum status status = STATUS_OK;
    char hex[SHA256_HEX_SIZE];
    struct checkpoint_header header = make_header(checkpoint);
    TRY(write_summed(writer, &header, sizeof header));
    TRY(write_string(writer, checkpoint->model));
    TRY(write_string(writer, checkpoint->optimizer));
    for (size_t i = 0; i < checkpoint->option_count; i++) {
        TRY(write_string(writer, checkpoint->options[i].name));
        TRY(write_string(writer, checkpoint->options[i].value));
    }
    TRY(write_summed(writer, checkpoint->weights, checkpoint->weight_count * sizeof(float)));
    TRY(write_summed(writer, checkpoint->state, checkpoint->state_count * sizeof(float)));
    TRY(write_summed(writer, checkpoint->carried, checkpoint->carried_count * sizeof(float)));
    sha256_final(&writer->sum, hex);
    TRY(write_bytes(writer, hex, CHECKPOINT_SUM_BYTES));
out:
    return status;
}

/* open(2) and fsync(2), repeated after a signal. Return -1 and set errno on failure. */
static int open_again(const char *path, int flags)
{
    int fd;
    do
        fd = open(path, flags | O_CLOEXEC, 0666);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static int flush(int fd)
{
    int result;
    do
        result = fsync(fd);
    while (result != 0 && errno == EINTR);
    return result;
}

/* Some file systems cannot flush a folder, and a folder without read permission cannot be opened.
 */
int checkpoint_flush_parent(const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        return ENOMEM;
    int error = 0, fd = open_again(dirname(copy), O_RDONLY | O_DIRECTORY);
    if (fd < 0 || flush(fd) != 0)
        error = errno;
    if (fd >= 0)
        close(fd);
    free(copy);
    return error == EINVAL || error == ENOTSUP || error == ENOSYS || error == EACCES ? 0 : error;
}

static bool all_finite(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            return false;
    }
    return true;
}

bool checkpoint_is_finite(const struct checkpoint *checkpoint)
{
    return all_finite(checkpoint->weights, checkpoint->weight_count) &&
           all_finite(checkpoint->state, checkpoint->state_count) &&
           all_finite(checkpoint->carried, checkpoint->carried_count);
}

enum status checkpoint_save(const char *path, const struct checkpoint *checkpoint)
{
    enum status status = STATUS_OK;
    struct writer writer = {.path = path, .fd = -1};
    if (!checkpoint_is_finite(checkpoint))
        return FAIL(STATUS_DIVERGED,
                    "%s: training diverged: a weight, an optimizer value or a residual is not a "
                    "finite number; nothing is saved; continue from the last checkpoint with a "
                    "smaller --lr",
                    path);
    if (asprintf(&writer.temporary, "%s.tmp", path) < 0)
        return FAIL(STATUS_NO_MEMORY, "%s: no memory to write the checkpoint", path);
    TRY(sha256_init(&writer.sum));
    writer.fd = open_again(writer.temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (writer.fd < 0) {
        status = write_error(&writer, errno);
        goto out;
    }
    TRY(write_contents(&writer, checkpoint));
    if (flush(writer.fd) != 0 || rename(writer.temporary, path) != 0) {
        status = write_error(&writer, errno);
        goto out;
    }
    int error = checkpoint_flush_parent(path);
    if (error != 0)
        status = write_error(&writer, error);
out:
    if (writer.fd >= 0) {
        close(writer.fd);
        if (status != STATUS_OK)
            unlink(writer.temporary);
    }
    sha256_fini(&writer.sum);
    free(writer.temporary);
    return status;
}
