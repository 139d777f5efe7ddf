/* Reads files of results: CSV with a header (RFC 4180), whose columns are found by their names. */
#ifndef PSRING_EXPERIMENTS_FIT_TABLE_H
#define PSRING_EXPERIMENTS_FIT_TABLE_H

#include <stddef.h>

#include "common/base/csv.h"
#include "common/base/status.h"

/* At a row of its file. */
struct table_reader {
    const char *path;
    const struct csv_table *file;
    size_t row, line; /* from 0, and from 1 with the header */
};

/* Takes a row; what it returns but STATUS_OK ends the reading. */
typedef enum status table_take(void *context, const struct table_reader *table);

/*
 * Hands all rows of `path`, or of `name` in it, where it is a folder, to `take`. Has a column of
 * `needed` (ended by NULL) no place in the header, or a line another number of fields:
 * STATUS_INPUT, logged; `expected` says what the file should be.
 */
enum status table_read(const char *path, const char *name, const char *expected,
                       const char *const *needed, table_take *take, void *context);

/* A field of the row; "" where there is no such column. */
const char *table_field(const struct table_reader *table, const char *name);

/* The same as a number of `least` at least; `absent` where it is empty. STATUS_INPUT is logged. */
enum status table_number(const struct table_reader *table, const char *name, double least,
                         double absent, double *value);

/* The same of a number that is `most` at most, as a count. */
enum status table_count(const struct table_reader *table, const char *name, int least, int most,
                        int absent, int *value);

/* The same copied. STATUS_INPUT (logged): it has no room. */
enum status table_word(const struct table_reader *table, const char *name, char *into, size_t size);

#endif
