#include "common/base/csv_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"

enum { FIELDS_FIRST = 1024 };

struct reader {
    const char *path;
    struct csv_table *table;
    size_t line, empty; /* lines so far, and how many of them are empty */
    size_t count, room; /* fields so far, those of the header among them */
};

static enum status read_text(struct csv_table *table, const char *path)
{
    enum status status = STATUS_OK;
    size_t room = 0;
    FILE *file = fopen(path, "r");
    if (!file) {
        log_error("%s: cannot be read: %s", path, strerror(errno));
        return STATUS_INPUT;
    }
    ssize_t length = getdelim(&table->text, &room, '\0', file);
    if (length < 0) {
        log_error("%s: %s", path, ferror(file) ? strerror(errno) : "is empty, expected a header");
        status = STATUS_INPUT;
    } else if (memchr(table->text, '\0', (size_t)length)) {
        log_error("%s: holds a byte 0, so it is no CSV file", path);
        status = STATUS_INPUT;
    }
    fclose(file);
    return status;
}

static enum status add_field(struct reader *reader, char *field)
{
    if (reader->count == reader->room) {
        size_t room = reader->room ? 2 * reader->room : FIELDS_FIRST;
        char **grown = realloc(reader->table->names, room * sizeof *grown);
        if (!grown) {
            log_error("%s: no memory for %zu fields", reader->path, room);
            return STATUS_NO_MEMORY;
        }
        reader->table->names = grown;
        reader->room = room;
    }
    reader->table->names[reader->count++] = field;
    return STATUS_OK;
}

/* Takes one field off *at, in place, and the character after it in *after: ',', '\n', 0, or '"'
 * where the text ends before the field's quote. */
static char *take_field(char **at, char *after)
{
    char *field = *at, *to = *at, *from = *at;
    bool quoted = *from == '"';
    from += quoted;
    while (*from && (quoted || (*from != ',' && *from != '\n'))) {
        if (quoted && *from == '"') {
            from++;
            quoted = *from == '"';
            if (!quoted)
                continue;
        }
        *to++ = *from++;
    }
    *after = quoted ? '"' : *from;
    *at = from + (*from != 0);
    if (to > field && to[-1] == '\r' && *after != ',')
        to--;
    *to = 0;
    return field;
}

static enum status take_line(struct reader *reader, char **at)
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
        log_error("%s: line %zu: a quoted field has no end; the file is cut off: measure again",
                  reader->path, reader->line);
        status = STATUS_INPUT;
    } else if (reader->line == 1) {
        table->columns = found;
    } else if (found == 1 && table->columns > 1 && *table->names[before] == 0) {
        reader->count = before;
        reader->empty++;
    } else if (found != table->columns) {
        log_error("%s: line %zu has %zu fields, expected %zu as in the header; the file is cut off "
                  "or was mixed up: measure again",
                  reader->path, reader->line, found, table->columns);
        status = STATUS_INPUT;
    }
out:
    return status;
}

enum status csv_table_read(struct csv_table *table, const char *path)
{
    enum status status;
    struct reader reader = {.path = path, .table = table};
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
