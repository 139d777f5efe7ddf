#include "common/checkpoint/checkpoint.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/sha256.h"

#define START_ANEW "restore a good copy, or remove it to start without it"

/* The memory that a loaded checkpoint owns. Callers see the struct `checkpoint`, which points into
 * it. */
struct loaded {
    struct checkpoint checkpoint; /* first: checkpoint_free() gets its address */
    char *strings;
    struct checkpoint_option *options;
    float *weights, *state, *carried;
};

struct checkpoint_reader {
    const char *path;
    int fd;
    uint64_t file_bytes;
    struct sha256 sum;
};

static enum status no_memory(const struct checkpoint_reader *reader)
{
    return FAIL(STATUS_NO_MEMORY, "%s: no memory for a checkpoint of %llu bytes", reader->path,
                (unsigned long long)reader->file_bytes);
}

static enum status reader_open(struct checkpoint_reader *reader, const char *path)
{
    struct stat info;
    *reader = (struct checkpoint_reader){.path = path};
    /* O_NONBLOCK: opening a FIFO must not wait for a writer. */
    reader->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (reader->fd < 0 || fstat(reader->fd, &info) != 0)
        return FAIL(STATUS_IO, "%s: the checkpoint cannot be opened: %s; " START_ANEW, path,
                    strerror(errno));
    if (!S_ISREG(info.st_mode))
        return FAIL(STATUS_INPUT, "%s: found %s, expected a checkpoint file; " START_ANEW, path,
                    S_ISDIR(info.st_mode) ? "a directory" : "something that is not a file");
    reader->file_bytes = (uint64_t)info.st_size;
    return sha256_init(&reader->sum);
}

static void reader_close(struct checkpoint_reader *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
    sha256_fini(&reader->sum);
}

/* Reads exactly `count` bytes. */
static enum status read_bytes(struct checkpoint_reader *reader, void *into, size_t count)
{
    size_t done = 0;
    while (done < count) {
        ssize_t n = read(reader->fd, (char *)into + done, count - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return FAIL(STATUS_IO, "%s: the checkpoint cannot be read: %s; " START_ANEW,
                        reader->path, strerror(errno));
        if (n == 0)
            return FAIL(
                STATUS_INPUT,
                "%s: the file ends early, expected %llu bytes; it is truncated, " START_ANEW,
                reader->path, (unsigned long long)reader->file_bytes);
        done += (size_t)n;
    }
    return STATUS_OK;
}

static enum status read_summed(struct checkpoint_reader *reader, void *into, size_t count)
{
    if (count == 0)
        return STATUS_OK;
    enum status status = read_bytes(reader, into, count);
    if (status == STATUS_OK)
        sha256_update(&reader->sum, into, count);
    return status;
}

static size_t header_bytes(const struct checkpoint_header *header)
{
    return CHECKPOINT_SHORT_BYTES +
           (header->version - CHECKPOINT_VERSION_SHORT) * sizeof header->images;
}

/* Bytes of a complete file with this header, or 0 if its counts cannot be true. */
static uint64_t whole_bytes(const struct checkpoint_header *header)
{
    uint64_t floats, bytes;
    if (header->string_bytes > CHECKPOINT_STRING_BYTES_MAX ||
        header->option_count > CHECKPOINT_OPTIONS_MAX ||
        __builtin_add_overflow(header->weight_count, header->state_count, &floats) ||
        __builtin_add_overflow(floats, header->carried_count, &floats) ||
        __builtin_mul_overflow(floats, sizeof(float), &bytes) ||
        __builtin_add_overflow(
            bytes, header_bytes(header) + header->string_bytes + CHECKPOINT_SUM_BYTES, &bytes))
        return 0;
    return bytes;
}

/* Reads the remainder of the file and checks its sum. It does not use the header. */
static bool is_whole(struct checkpoint_reader *reader)
{
    char block[4096], found[CHECKPOINT_SUM_BYTES], expected[SHA256_HEX_SIZE];
    uint64_t left =
        reader->file_bytes - CHECKPOINT_SUM_BYTES - (uint64_t)lseek(reader->fd, 0, SEEK_CUR);
    while (left > 0) {
        size_t count = left < sizeof block ? (size_t)left : sizeof block;
        if (read_summed(reader, block, count) != STATUS_OK)
            return false;
        left -= count;
    }
    if (read_bytes(reader, found, sizeof found) != STATUS_OK)
        return false;
    sha256_final(&reader->sum, expected);
    return memcmp(found, expected, sizeof found) == 0;
}

static enum status of_another(struct checkpoint_reader *reader, const char *what, uint32_t found,
                              uint32_t expected, const char *who)
{
    log_error("%s: %s 0x%x, expected 0x%x; %s wrote it, " START_ANEW, reader->path, what, found,
              expected, who);
    return is_whole(reader) ? STATUS_UNSUPPORTED : STATUS_INPUT;
}

/* Checks everything that must hold before memory of the header's sizes is allocated. */
static enum status read_header(struct checkpoint_reader *reader, struct checkpoint_header *header)
{
    enum status status = STATUS_OK;
    const char *path = reader->path;
    enum { LEAST = CHECKPOINT_SHORT_BYTES + CHECKPOINT_SUM_BYTES };
    if (reader->file_bytes < LEAST)
        return FAIL(
            STATUS_INPUT,
            "%s: %llu bytes, expected a checkpoint of at least %d; it is truncated, " START_ANEW,
            path, (unsigned long long)reader->file_bytes, LEAST);
    memset(header, 0, sizeof *header);
    TRY(read_summed(reader, header, CHECKPOINT_SHORT_BYTES));
    bool known =
        header->version >= CHECKPOINT_VERSION_SHORT && header->version <= CHECKPOINT_VERSION;
    if (known)
        TRY(read_summed(reader, &header->carried_count,
                        header_bytes(header) - CHECKPOINT_SHORT_BYTES));
    status = STATUS_INPUT;
    uint64_t expected = whole_bytes(header);
    if (memcmp(header->magic, CHECKPOINT_MAGIC, sizeof header->magic) != 0)
        log_error("%s: does not begin with " CHECKPOINT_MAGIC
                  "; it is not a checkpoint of psring, " START_ANEW,
                  path);
    else if (header->byte_order != CHECKPOINT_BYTE_ORDER)
        status = of_another(reader, "byte order mark", header->byte_order, CHECKPOINT_BYTE_ORDER,
                            "a machine of the other byte order");
    else if (!known)
        status = of_another(reader, "format version", header->version, CHECKPOINT_VERSION,
                            "another version of psring");
    else if (expected == 0)
        log_error("%s: the counts in its header cannot be true; it is damaged, " START_ANEW, path);
    else if (expected != reader->file_bytes)
        log_error("%s: %llu bytes, expected %llu by its header; it is %s, " START_ANEW, path,
                  (unsigned long long)reader->file_bytes, (unsigned long long)expected,
                  reader->file_bytes < expected ? "truncated" : "longer than it was written");
    else
        status = STATUS_OK;
out:
    return status;
}

static enum status read_floats(struct checkpoint_reader *reader, float **values, uint64_t count)
{
    if (count == 0)
        return STATUS_OK;
    *values = malloc(count * sizeof **values);
    if (!*values)
        return no_memory(reader);
    return read_summed(reader, *values, count * sizeof **values);
}

static enum status read_body(struct checkpoint_reader *reader,
                             const struct checkpoint_header *header, struct loaded *loaded)
{
    enum status status = STATUS_OK;
    char found[CHECKPOINT_SUM_BYTES], expected[SHA256_HEX_SIZE];
    loaded->strings = malloc((size_t)header->string_bytes + 1);
    loaded->options = calloc((size_t)header->option_count + 1, sizeof *loaded->options);
    if (!loaded->strings || !loaded->options)
        return no_memory(reader);
    TRY(read_summed(reader, loaded->strings, header->string_bytes));
    TRY(read_floats(reader, &loaded->weights, header->weight_count));
    TRY(read_floats(reader, &loaded->state, header->state_count));
    TRY(read_floats(reader, &loaded->carried, header->carried_count));
    TRY(read_bytes(reader, found, sizeof found));
    sha256_final(&reader->sum, expected);
    if (memcmp(found, expected, sizeof found) != 0) {
        log_error(
            "%s: its SHA-256 is %s, expected the one at its end, %.*s; it is damaged, " START_ANEW,
            reader->path, expected, (int)sizeof found, found);
        status = STATUS_INPUT;
    }
out:
    return status;
}

/*
 * Takes the next text from [*at, end). NULL: no 0 byte ends it there, or it has control characters.
 * The texts are printed in messages, and a terminal obeys control characters.
 */
static const char *next_string(const char **at, const char *end)
{
    const char *start = *at, *stop = memchr(start, '\0', (size_t)(end - start));
    if (!stop)
        return NULL;
    for (const char *c = start; c < stop; c++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.ArraySubscript): 0 bytes have no end */
        if (iscntrl((unsigned char)*c))
            return NULL;
    }
    *at = stop + 1;
    return start;
}

/* Whether the name of options[at] is not empty and differs from all names before it. */
static bool is_new_name(const struct checkpoint_option *options, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++) {
        if (strcmp(options[i].name, options[at].name) == 0)
            return false;
    }
    return options[at].name[0] != '\0';
}

/* The sum was right, so only a file of a faulty or malicious writer can fail here. */
static bool parse_strings(struct loaded *loaded, const struct checkpoint_header *header)
{
    struct checkpoint *checkpoint = &loaded->checkpoint;
    const char *at = loaded->strings, *end = at + header->string_bytes;
    checkpoint->model = next_string(&at, end);
    checkpoint->optimizer = checkpoint->model ? next_string(&at, end) : NULL;
    if (!checkpoint->optimizer)
        return false;
    for (uint32_t i = 0; i < header->option_count; i++) {
        struct checkpoint_option *option = &loaded->options[i];
        option->name = next_string(&at, end);
        option->value = option->name ? next_string(&at, end) : NULL;
        if (!option->value || !is_new_name(loaded->options, i))
            return false;
    }
    checkpoint->options = loaded->options;
    checkpoint->option_count = header->option_count;
    return at == end;
}

static enum status validate(const char *path, const struct checkpoint_header *header,
                            struct loaded *loaded)
{
    if (!parse_strings(loaded, header))
        return FAIL(STATUS_INPUT,
                    "%s: its names and options cannot be read; it is damaged, " START_ANEW, path);
    struct checkpoint *checkpoint = &loaded->checkpoint;
    checkpoint->seed = header->seed;
    checkpoint->epoch = header->epoch;
    checkpoint->step = header->step;
    checkpoint->trained_ns = header->trained_ns;
    checkpoint->images = header->images;
    checkpoint->weights = loaded->weights;
    checkpoint->weight_count = header->weight_count;
    checkpoint->state = loaded->state;
    checkpoint->state_count = header->state_count;
    checkpoint->carried = loaded->carried;
    checkpoint->carried_count = header->carried_count;
    if (!checkpoint_is_finite(checkpoint))
        return FAIL(STATUS_INPUT,
                    "%s: found a weight, an optimizer value or a residual that is not a finite "
                    "number; " START_ANEW,
                    path);
    return STATUS_OK;
}

static void free_loaded(struct loaded *loaded)
{
    if (!loaded)
        return;
    free(loaded->strings);
    free(loaded->options);
    free(loaded->weights);
    free(loaded->state);
    free(loaded->carried);
    free(loaded);
}

enum status checkpoint_load(struct checkpoint **checkpoint, const char *path)
{
    enum status status = STATUS_OK;
    struct checkpoint_header header;
    struct checkpoint_reader reader;
    struct loaded *loaded = NULL;
    *checkpoint = NULL;
    TRY(reader_open(&reader, path));
    TRY(read_header(&reader, &header));
    loaded = calloc(1, sizeof *loaded);
    if (!loaded) {
        status = no_memory(&reader);
        goto out;
    }
    TRY(read_body(&reader, &header, loaded));
    TRY(validate(path, &header, loaded));
    *checkpoint = &loaded->checkpoint;
    loaded = NULL;
out:
    free_loaded(loaded);
    reader_close(&reader);
    return status;
}

void checkpoint_free(struct checkpoint **checkpoint)
{
    free_loaded((struct loaded *)*checkpoint);
    *checkpoint = NULL;
}
