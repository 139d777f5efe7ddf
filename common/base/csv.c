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

#include "common/base/status.h"
#include "common/base/util.h"

struct csv {
    char *path;
    int fd;
    size_t column_count;
    size_t field_count; /* in the row being built */
    char *row;          /* (row_size), not terminated */
    size_t row_bytes, row_size;
    bool no_memory; /* a field of the row being built was lost */
};

static enum status file_error(const struct csv *csv, const char *what, int error)
{
    return FAIL(STATUS_IO, "%s: cannot be %s: %s; %s", csv->path, what, strerror(error),
                error == ENOENT ? "make its folder first" : "choose another place or free space");
}

static enum status no_memory(const char *path)
{
    return FAIL(STATUS_NO_MEMORY, "%s: no memory to write a row", path);
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

/* Takes back the first `done` bytes of a row, unless another process has appended to them. */
static void take_back(const struct csv *csv, size_t done)
{
    struct stat info;
    off_t end = lseek(csv->fd, 0, SEEK_CUR); /* after these bytes */
    if (done == 0 || fstat(csv->fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size != end)
        return;
    if (ftruncate(csv->fd, end - (off_t)done) != 0)
        log_warn("%s: its last line is incomplete: %s; remove that line", csv->path,
                 strerror(errno));
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
        if (n < 0) {
            enum status status = file_error(csv, "written", errno);
            take_back(csv, done);
            return status;
        }
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

/* Rows may be appended to an existing file if it begins with the header (in csv->row) and its last
 * line is complete. */
static enum status check_existing(struct csv *csv, off_t file_bytes)
{
    char last = '\0';
    char *found = malloc(csv->row_bytes);
    if (!found)
        return no_memory(csv->path);
    bool same =
        read_at(csv, found, csv->row_bytes, 0) && memcmp(found, csv->row, csv->row_bytes) == 0;
    free(found);
    if (!same)
        return FAIL(STATUS_INPUT,
                    "%s: cannot append rows: its header differs, expected %.*s; move the file away "
                    "or choose another name",
                    csv->path, (int)csv->row_bytes - 1, csv->row);
    if (!read_at(csv, &last, 1, file_bytes - 1) || last != '\n')
        return FAIL(STATUS_INPUT,
                    "%s: cannot append rows: its last line is incomplete; remove that line or "
                    "choose another name",
                    csv->path);
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

static void add(struct fields *fields, struct field field)
{
    CHECK(fields->count < FIELDS_MAX);
    fields->list[fields->count++] = field;
}

void fields_start(struct fields *fields)
{
    fields->count = 0;
}

void fields_text(struct fields *fields, const char *name, const char *text)
{
    add(fields, (struct field){.name = name, .kind = FIELD_TEXT, .text = text});
}

void fields_uint(struct fields *fields, const char *name, uint64_t whole)
{
    fields_uint_if(fields, name, true, whole);
}

void fields_uint_if(struct fields *fields, const char *name, bool known, uint64_t whole)
{
    enum field_kind kind = known ? FIELD_UINT : FIELD_UNKNOWN;
    add(fields, (struct field){.name = name, .kind = kind, .whole = whole});
}

void fields_double(struct fields *fields, const char *name, double real)
{
    enum field_kind kind = isfinite(real) ? FIELD_DOUBLE : FIELD_UNKNOWN;
    add(fields, (struct field){.name = name, .kind = kind, .real = real});
}

enum status fields_csv_open(const struct fields *fields, struct csv **csv, const char *path)
{
    const char *names[FIELDS_MAX];
    for (size_t i = 0; i < fields->count; i++)
        names[i] = fields->list[i].name;
    return csv_open(csv, path, names, fields->count);
}

enum status fields_csv_write(const struct fields *fields, struct csv *csv)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->list[i];
        switch (field->kind) {
        case FIELD_TEXT:
            csv_text(csv, field->text);
            break;
        case FIELD_UINT:
            csv_uint(csv, field->whole);
            break;
        case FIELD_DOUBLE:
            csv_double(csv, field->real);
            break;
        case FIELD_UNKNOWN:
            csv_text(csv, NULL);
            break;
        }
    }
    return csv_end_row(csv);
}

struct csv_reader {
    const char *path;
    struct csv_table *table;
    size_t line, empty; /* lines so far, and how many of them are empty */
    size_t count, room; /* fields so far, including the header's */
};

static enum status read_text(struct csv_table *table, const char *path)
{
    enum status status = STATUS_OK;
    size_t room = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        return FAIL(STATUS_INPUT, "%s: cannot be read: %s; name a readable CSV file", path,
                    strerror(errno));
    ssize_t length = getdelim(&table->text, &room, '\0', file);
    if (length < 0 || ferror(file)) {
        log_error("%s: %s", path, ferror(file) ? strerror(errno) : "is empty, expected a header");
        status = STATUS_INPUT;
    } else if (memchr(table->text, '\0', (size_t)length)) {
        log_error("%s: contains a zero byte, so it is not a CSV file", path);
        status = STATUS_INPUT;
    }
    fclose(file);
    return status;
}

static enum status add_field(struct csv_reader *reader, char *field)
{
    const char **grown = memory_grow(reader->table->names, &reader->room, reader->count,
                                     sizeof *grown, "fields of a table");
    if (!grown)
        return STATUS_NO_MEMORY;
    reader->table->names = grown;
    reader->table->names[reader->count++] = field;
    return STATUS_OK;
}

/* Takes one field off *at, in place. Sets *after to the character after it: ',', '\n' or 0, or '"'
 * if the text ends before the field's closing quote. */
static char *take_field(char **at, char *after)
{
    char *field = *at, *to = *at, *from = *at;
    char *bare = *at; /* the begin of what is not in quotes */
    bool quoted = *from == '"';
    from += quoted;
    while (*from && (quoted || (*from != ',' && *from != '\n'))) {
        if (quoted && *from == '"') {
            from++;
            quoted = *from == '"';
            bare = to;
            if (!quoted)
                continue;
        }
        *to++ = *from++;
    }
    *after = quoted ? '"' : *from;
    *at = from + (*from != 0);
    if (to > bare && to[-1] == '\r' && *after != ',') /* of the line's end */
        to--;
    *to = 0;
    return field;
}

static enum status take_line(struct csv_reader *reader, char **at)
{
    enum status status;
    struct csv_table *table = reader->table;
    size_t before = reader->count;
    char after = ',';
    reader->line++;
    while (after == ',')
        TRY(add_field(reader, take_field(at, &after)));
    size_t found = reader->count - before;
    if (after == '"') {
        log_error("%s: line %zu: a quoted field has no closing quote; the file is incomplete: "
                  "measure again",
                  reader->path, reader->line);
        status = STATUS_INPUT;
    } else if (reader->line == 1) {
        table->columns = found;
    } else if (found == 1 && table->columns > 1 && *table->names[before] == 0) {
        reader->count = before;
        reader->empty++;
    } else if (found != table->columns) {
        log_error("%s: line %zu has %zu fields, expected %zu as in the header; the file is damaged "
                  "or incomplete: measure again",
                  reader->path, reader->line, found, table->columns);
        status = STATUS_INPUT;
    }
out:
    return status;
}

enum status csv_table_read(struct csv_table *table, const char *path)
{
    enum status status;
    struct csv_reader reader = {.path = path, .table = table};
    *table = (struct csv_table){0};
    TRY(read_text(table, path));
    for (char *at = table->text; *at;)
        TRY(take_line(&reader, &at));
    table->rows = reader.line - reader.empty - 1;
    table->fields = table->names + table->columns;
out:
    return status;
}

void csv_table_free(struct csv_table *table)
{
    free(table->names);
    free(table->text);
    *table = (struct csv_table){0};
}

bool csv_table_has(const struct csv_table *table, const char *name)
{
    size_t c = 0;
    while (c < table->columns && strcmp(table->names[c], name) != 0)
        c++;
    return c < table->columns;
}

const char *csv_table_field(const struct csv_table *table, size_t row, const char *name)
{
    for (size_t c = 0; c < table->columns; c++) {
        if (strcmp(table->names[c], name) == 0)
            return table->fields[row * table->columns + c];
    }
    return "";
}

double csv_table_number(const struct csv_table *table, size_t row, const char *name)
{
    const char *field = csv_table_field(table, row, name);
    char *end;
    double number = strtod(field, &end);
    return *field && *end == 0 && isfinite(number) ? number : (double)NAN;
}
