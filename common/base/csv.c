#include "common/base/csv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/check.h"

struct csv {
    char *path;
    int fd;
    size_t column_count;
    size_t field_count; /* of the row being built */
    char *row;          /* (row_size), not terminated */
    size_t row_bytes, row_size;
    bool no_memory; /* a field of the row being built was lost */
};

static enum status file_error(const struct csv *csv, const char *what, int error)
{
    log_error("%s: cannot be %s: %s; choose another place or make room", csv->path, what,
              strerror(error));
    return STATUS_IO;
}

static enum status no_memory(const char *path)
{
    log_error("%s: no memory to write a row", path);
    return STATUS_NO_MEMORY;
}

static void put(struct csv *csv, const char *bytes, size_t count)
{
    if (count == 0)
        return;
    if (csv->row_bytes + count > csv->row_size) {
        size_t size = 2 * (csv->row_bytes + count) + 256;
        char *row = realloc(csv->row, size);
        if (!row) {
            csv->no_memory = true;
            return;
        }
        csv->row = row;
        csv->row_size = size;
    }
    memcpy(csv->row + csv->row_bytes, bytes, count);
    csv->row_bytes += count;
}

void csv_text(struct csv *csv, const char *value)
{
    if (csv->field_count++ > 0)
        put(csv, ",", 1);
    if (!value)
        return;
    if (!strpbrk(value, ",\"\r\n")) {
        put(csv, value, strlen(value));
        return;
    }
    put(csv, "\"", 1);
    for (const char *c = value; *c; c++)
        put(csv, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
    put(csv, "\"", 1);
}

void csv_uint(struct csv *csv, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    csv_text(csv, text);
}

void csv_double(struct csv *csv, double value)
{
    char text[32] = "";
    if (isfinite(value))
        snprintf(text, sizeof text, "%.9g", value);
    csv_text(csv, text);
}

/* The row goes out in one write, so that a reader or an interruption sees all of it or nothing. */
static enum status write_row(struct csv *csv)
{
    size_t done = 0, count = csv->row_bytes;
    csv->row_bytes = csv->field_count = 0;
    while (done < count) {
        ssize_t n = write(csv->fd, csv->row + done, count - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return file_error(csv, "written", errno);
        done += (size_t)n;
    }
    return STATUS_OK;
}

enum status csv_end_row(struct csv *csv)
{
    CHECK(csv->field_count == csv->column_count);
    put(csv, "\n", 1);
    if (csv->no_memory)
        return no_memory(csv->path);
    return write_row(csv);
}

/* Reads exactly `count` bytes at `offset`; false at the end of the file or on an error. */
static bool read_at(const struct csv *csv, char *into, size_t count, off_t offset)
{
    for (size_t done = 0; done < count;) {
        ssize_t n = pread(csv->fd, into + done, count - done, offset + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* An existing file may be continued if it begins with our header (in csv->row) and ends a line. */
static enum status check_existing(struct csv *csv, off_t file_bytes)
{
    char last = '\0';
    char *found = malloc(csv->row_bytes);
    if (!found)
        return no_memory(csv->path);
    bool same =
        read_at(csv, found, csv->row_bytes, 0) && memcmp(found, csv->row, csv->row_bytes) == 0;
    free(found);
    if (!same) {
        log_error("%s: its first line is not the header that is to be continued, expected %.*s; "
                  "move the file away or choose another name",
                  csv->path, (int)csv->row_bytes - 1, csv->row);
        return STATUS_INPUT;
    }
    if (!read_at(csv, &last, 1, file_bytes - 1) || last != '\n') {
        log_error("%s: its last line has no end, expected whole rows only; remove that line or "
                  "choose another name",
                  csv->path);
        return STATUS_INPUT;
    }
    csv->row_bytes = csv->field_count = 0;
    return STATUS_OK;
}

static enum status open_file(struct csv *csv)
{
    struct stat info;
    csv->fd = open(csv->path, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
    if (csv->fd < 0)
        return file_error(csv, "opened", errno);
    if (fstat(csv->fd, &info) != 0)
        return file_error(csv, "opened", errno);
    if (S_ISREG(info.st_mode) && info.st_size > 0)
        return check_existing(csv, info.st_size);
    return write_row(csv); /* the header */
}

static void destroy(struct csv *csv)
{
    free(csv->path);
    free(csv->row);
    free(csv);
}

enum status csv_open(struct csv **out_csv, const char *path, const char *const *columns,
                     size_t column_count)
{
    enum status status = STATUS_OK;
    CHECK(column_count > 0);
    *out_csv = NULL;
    struct csv *csv = calloc(1, sizeof *csv);
    if (csv)
        csv->path = strdup(path);
    if (!csv || !csv->path) {
        free(csv);
        return no_memory(path);
    }
    csv->fd = -1;
    csv->column_count = column_count;
    for (size_t i = 0; i < column_count; i++)
        csv_text(csv, columns[i]);
    put(csv, "\n", 1);
    if (csv->no_memory) {
        status = no_memory(csv->path);
        goto out;
    }
    TRY(open_file(csv));
    *out_csv = csv;
    return STATUS_OK;
out:
    if (csv->fd >= 0)
        close(csv->fd);
    destroy(csv);
    return status;
}

enum status csv_close(struct csv **out_csv)
{
    enum status status = STATUS_OK;
    struct csv *csv = *out_csv;
    if (!csv)
        return STATUS_OK;
    if (close(csv->fd) != 0)
        status = file_error(csv, "written", errno);
    destroy(csv);
    *out_csv = NULL;
    return status;
}
