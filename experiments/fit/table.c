#include "experiments/fit/table.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/status.h"

const char *table_field(const struct table_reader *table, const char *name)
{
    return csv_table_field(table->file, table->row, name);
}

enum status table_number(const struct table_reader *table, const char *name, double least,
                         double absent, double *value)
{
    const char *text = table_field(table, name);
    char *end;
    *value = absent;
    if (!*text)
        return STATUS_OK;
    *value = strtod(text, &end);
    if (*end == 0 && isfinite(*value) && *value >= least && *value < 1e18)
        return STATUS_OK;
    log_error("%s: line %zu: %s: found '%s', expected a number of %g at least; the row is broken: "
              "take it out, or measure again",
              table->path, table->line, name, text, least);
    return STATUS_INPUT;
}

enum status table_count(const struct table_reader *table, const char *name, int least, int most,
                        int absent, int *value)
{
    double number;
    enum status status = table_number(table, name, least, absent, &number);
    if (status != STATUS_OK)
        return status;
    *value = number <= most ? (int)number : most;
    if (number <= most && number == *value)
        return STATUS_OK;
    log_error("%s: line %zu: %s: found '%s', out of range: expected a whole number from %d to %d; "
              "the row is broken: take it out, or measure again",
              table->path, table->line, name, table_field(table, name), least, most);
    return STATUS_INPUT;
}

enum status table_word(const struct table_reader *table, const char *name, char *into, size_t size)
{
    const char *text = table_field(table, name);
    if ((size_t)snprintf(into, size, "%s", text) < size)
        return STATUS_OK;
    log_error("%s: line %zu: %s: found '%s', expected at most %zu letters; take the row out",
              table->path, table->line, name, text, size - 1);
    return STATUS_INPUT;
}

/* The caller frees. */
static char *path_of_table(const char *path, const char *name)
{
    struct stat found;
    bool folder = stat(path, &found) == 0 && S_ISDIR(found.st_mode);
    size_t size = strlen(path) + strlen(name) + 2;
    char *whole = malloc(size);
    if (whole)
        snprintf(whole, size, "%s%s%s", path, folder ? "/" : "", folder ? name : "");
    return whole;
}

enum status table_read(const char *path, const char *name, const char *expected,
                       const char *const *needed, table_take *take, void *context)
{
    enum status status;
    struct csv_table file = {0};
    char *whole = path_of_table(path, name);
    struct table_reader table = {.path = whole, .file = &file};
    TRY(whole ? STATUS_OK : STATUS_NO_MEMORY);
    TRY(csv_table_read(&file, whole));
    for (; *needed; needed++) {
        if (!csv_table_has(&file, *needed)) {
            log_error("%s: no column %s; expected %s", whole, *needed, expected);
            status = STATUS_INPUT;
            goto out;
        }
    }
    for (; table.row < file.rows; table.row++) {
        table.line = table.row + 2;
        TRY(take(context, &table));
    }
out:
    csv_table_free(&file);
    free(whole);
    return status;
}
