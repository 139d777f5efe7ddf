#include "common/data/idx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "common/base/status.h"
#include "common/base/util.h"

#define FETCH_AGAIN "fetch it again: run experiments/get_mnist.sh"

enum {
    IDX_UNSIGNED_BYTE = 8,
    WORD_BYTES = 4,
    HEADER_BYTES_MAX = WORD_BYTES * (1 + IDX_DIMENSIONS_MAX),
    READ_BUFFER_BYTES = 128 * 1024,
    /* Source: zlib's technical details: deflate expands at most 1032 : 1. */
    GZIP_EXPANSION_MAX = 1032,
};

/* An open file while it is read. */
struct idx_reader {
    const char *path; /* for messages */
    gzFile file;      /* reads plain files too */
    struct sha256 sum;
    uint64_t bytes_max; /* the most bytes that the file can hold, decompressed */
};

/* Logs that the system refused to open or read `path`. */
static enum status io_error(const char *path, const char *what, int error)
{
    const char *hint = error == ENOENT   ? FETCH_AGAIN
                       : error == EACCES ? "give this user permission to read it"
                                         : "check the disk";
    return FAIL(STATUS_IO, "%s: cannot be %s: %s; %s", path, what, strerror(error), hint);
}

static enum status reader_open(struct idx_reader *reader, const char *path)
{
    enum status status = STATUS_OK;
    struct stat info;
    *reader = (struct idx_reader){.path = path};
    /* O_NONBLOCK: opening a FIFO must not wait for a writer. It does not affect regular files. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return io_error(path, "opened", errno);
    if (fstat(fd, &info) != 0) {
        status = io_error(path, "read", errno);
        goto out;
    }
    if (!S_ISREG(info.st_mode))
        TRY(FAIL(STATUS_INPUT,
                 "%s: found %s, expected a file in IDX format; name the folder that holds the "
                 "four files with --data",
                 path, S_ISDIR(info.st_mode) ? "a directory" : "something that is not a file"));
    TRY(sha256_init(&reader->sum));
    reader->file = gzdopen(fd, "rb");
    if (!reader->file)
        TRY(FAIL(STATUS_NO_MEMORY, "%s: not enough memory to read it", path));
    fd = -1; /* gzclose closes it */
    gzbuffer(reader->file, READ_BUFFER_BYTES);
    reader->bytes_max = (uint64_t)info.st_size * GZIP_EXPANSION_MAX;
out:
    if (fd >= 0)
        close(fd);
    if (status != STATUS_OK)
        sha256_fini(&reader->sum);
    return status;
}

static void reader_close(struct idx_reader *reader)
{
    if (reader->file)
        gzclose_r(reader->file);
    reader->file = NULL;
    sha256_fini(&reader->sum);
}

/*
 * Reads up to `count` bytes. Fewer mean the end of the file. A gzip file that ends early or has a
 * wrong check sum is an error.
 */
static enum status reader_read(struct idx_reader *reader, void *into, size_t count, size_t *got)
{
    *got = 0;
    while (*got < count) {
        size_t piece = size_smaller(count - *got, READ_BUFFER_BYTES);
        int n = gzread(reader->file, (unsigned char *)into + *got, (unsigned)piece);
        int error = Z_OK;
        const char *message = gzerror(reader->file, &error);
        /* zlib's name of the file, such as "<fd:20>", precedes its message. */
        const char *after = message[0] == '<' ? strstr(message, ">: ") : NULL;
        message = after ? after + 3 : message;
        if (error == Z_ERRNO)
            return io_error(reader->path, "read", errno);
        if (error != Z_OK && error != Z_STREAM_END) {
            log_error("%s: found damaged gzip data (%s), expected a whole file; " FETCH_AGAIN,
                      reader->path, error == Z_BUF_ERROR ? "it ends early" : message);
            return error == Z_MEM_ERROR ? STATUS_NO_MEMORY : STATUS_INPUT;
        }
        if (n <= 0)
            break;
        sha256_update(&reader->sum, (unsigned char *)into + *got, (size_t)n);
        *got += (size_t)n;
    }
    return STATUS_OK;
}

static uint32_t big_endian_32(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* "(items, 28, 28)" or "(60000, 28, 28)". */
static void describe_shape(char *text, size_t size, const uint32_t *dimension, unsigned count,
                           bool free_items)
{
    size_t used = (size_t)(free_items ? snprintf(text, size, "(items")
                                      : snprintf(text, size, "(%u", dimension[0]));
    for (unsigned d = 1; d < count; d++)
        used += (size_t)snprintf(text + used, size - used, ", %u", dimension[d]);
    snprintf(text + used, size - used, ")");
}

static enum status check_magic(const char *path, const unsigned char *header,
                               const struct idx_shape *shape)
{
    uint32_t found = big_endian_32(header);
    uint32_t expected = IDX_UNSIGNED_BYTE << 8 | shape->dimensions;
    if (found == expected)
        return STATUS_OK;
    return FAIL(
        STATUS_INPUT,
        "%s: magic number is 0x%08x, expected 0x%08x (IDX, unsigned bytes, %u dimension%s); "
        "this is another kind of file, " FETCH_AGAIN,
        path, found, expected, shape->dimensions, shape->dimensions == 1 ? "" : "s");
}

/* Compares the dimensions of the header with the shape and fills idx's counts. */
static enum status check_dimensions(const char *path, const unsigned char *header,
                                    const struct idx_shape *shape, struct idx *idx)
{
    uint32_t found[IDX_DIMENSIONS_MAX] = {0};
    bool same = true;
    idx->item_bytes = 1;
    for (unsigned d = 0; d < shape->dimensions; d++) {
        found[d] = big_endian_32(header + (size_t)WORD_BYTES * (1 + d));
        if (d > 0) {
            same = same && found[d] == shape->dimension[d];
            idx->item_bytes *= shape->dimension[d];
        }
    }
    if (!same) {
        char found_text[64], expected_text[64];
        describe_shape(found_text, sizeof found_text, found, shape->dimensions, false);
        describe_shape(expected_text, sizeof expected_text, shape->dimension, shape->dimensions,
                       true);
        return FAIL(STATUS_INPUT, "%s: dimensions are %s, expected %s; " FETCH_AGAIN, path,
                    found_text, expected_text);
    }
    if (found[0] == 0 || found[0] > IDX_ITEMS_MAX)
        return FAIL(STATUS_INPUT, "%s: the header counts %u items, expected 1 to %d; " FETCH_AGAIN,
                    path, found[0], IDX_ITEMS_MAX);
    idx->items = found[0];
    return STATUS_OK;
}

static enum status read_header(struct idx_reader *reader, const struct idx_shape *shape,
                               struct idx *idx)
{
    enum status status = STATUS_OK;
    unsigned char header[HEADER_BYTES_MAX];
    size_t want = (size_t)WORD_BYTES * (1 + shape->dimensions), got;
    TRY(reader_read(reader, header, want, &got));
    if (got == 0)
        return FAIL(STATUS_INPUT, "%s: the file is empty, expected an IDX file; " FETCH_AGAIN,
                    reader->path);
    if (got >= WORD_BYTES)
        TRY(check_magic(reader->path, header, shape));
    if (got < want)
        return FAIL(STATUS_INPUT,
                    "%s: found %zu bytes, expected an IDX header of %zu; the file is "
                    "truncated, " FETCH_AGAIN,
                    reader->path, got, want);
    TRY(check_dimensions(reader->path, header, shape, idx));
out:
    return status;
}

static enum status truncated(const char *path, size_t found, size_t expected)
{
    return FAIL(STATUS_INPUT,
                "%s: %zu bytes after the header, expected %zu; the file is truncated, " FETCH_AGAIN,
                path, found, expected);
}

static enum status read_values(struct idx_reader *reader, struct idx *idx)
{
    enum status status = STATUS_OK;
    size_t want = idx->items * idx->item_bytes, got;
    unsigned char extra;
    if (want > reader->bytes_max) { /* more than any such file can hold */
        return FAIL(
            STATUS_INPUT,
            "%s: the header promises %zu bytes, the file can hold at most %llu; the file is "
            "truncated, " FETCH_AGAIN,
            reader->path, want, (unsigned long long)reader->bytes_max);
    }
    idx->values = malloc(want);
    if (!idx->values)
        return FAIL(STATUS_NO_MEMORY, "%s: no memory for its %zu bytes", reader->path, want);
    TRY(reader_read(reader, idx->values, want, &got));
    if (got < want)
        return truncated(reader->path, got, want);
    TRY(reader_read(reader, &extra, 1, &got));
    if (got > 0)
        return FAIL(STATUS_INPUT,
                    "%s: more than %zu bytes after the header, expected no more; " FETCH_AGAIN,
                    reader->path, want);
out:
    return status;
}

static enum status check_values(const char *path, const struct idx *idx,
                                const struct idx_shape *shape)
{
    size_t count = idx->items * idx->item_bytes;
    if (shape->value_max == UINT8_MAX)
        return STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        if (idx->values[i] > shape->value_max)
            return FAIL(
                STATUS_INPUT,
                "%s: value %u at position %zu, expected 0 to %u: psring has %u classes; use "
                "MNIST or another set with as many classes, not EMNIST's letters",
                path, idx->values[i], i, shape->value_max, shape->value_max + 1u);
    }
    return STATUS_OK;
}

enum status idx_read(struct idx **out_idx, const char *path, const struct idx_shape *shape)
{
    enum status status = STATUS_OK;
    struct idx_reader reader;
    struct idx *idx = NULL;
    CHECK(shape->dimensions >= 1 && shape->dimensions <= IDX_DIMENSIONS_MAX);
    *out_idx = NULL;
    status = reader_open(&reader, path);
    if (status != STATUS_OK)
        return status;
    idx = calloc(1, sizeof *idx);
    if (!idx)
        TRY(FAIL(STATUS_NO_MEMORY, "%s: no memory to read it", path));
    TRY(read_header(&reader, shape, idx));
    TRY(read_values(&reader, idx));
    TRY(check_values(path, idx, shape));
    sha256_final(&reader.sum, idx->sha256);
    *out_idx = idx;
    idx = NULL;
out:
    idx_free(&idx);
    reader_close(&reader);
    return status;
}

void idx_free(struct idx **idx)
{
    if (!*idx)
        return;
    free((*idx)->values);
    free(*idx);
    *idx = NULL;
}
