/*
 * CSV files, written and read. A writer (RFC 4180 quoting, lines ended by \n) writes a header, then
 * rows. It hands each row to the operating system in one piece and at once, so that an interrupted
 * run loses no finished row.
 *
 *     csv_text(csv, "ring"); csv_uint(csv, 4); csv_double(csv, 1.5);
 *     TRY(csv_end_row(csv));
 */
#ifndef PSRING_COMMON_BASE_CSV_H
#define PSRING_COMMON_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

struct csv; /* one thread at a time */

/*
 * Opens `path` to append rows, and writes the header unless it is there already. `columns` holds
 * `column_count` names and is borrowed. A file with another header or an incomplete last line is
 * refused and left unchanged (STATUS_INPUT). Errors have been logged.
 */
enum status csv_open(struct csv **csv, const char *path, const char *const *columns,
                     size_t column_count);

/* Each adds one field. NULL, "" and a double that is not finite give an empty field. */
void csv_text(struct csv *csv, const char *value);
void csv_uint(struct csv *csv, uint64_t value);
void csv_double(struct csv *csv, double value); /* 9 significant digits */

/* Writes the row. The caller must have added exactly `column_count` fields. STATUS_IO
 * (logged): a regular file keeps no part of the row, unless another process has appended to it. */
enum status csv_end_row(struct csv *csv);

/* Closes. STATUS_IO (logged) if the operating system reports a failed write only now. */
enum status csv_close(struct csv **csv);

/*
 * A row of results as a list of named fields, in the order of its columns. One list serves the
 * header, the CSV row and every other output, so that they cannot disagree.
 *
 *     static void list(const struct row *row, struct fields *fields)
 *     {
 *         fields_start(fields);
 *         fields_text(fields, "backend", row->backend);
 *         fields_uint(fields, "workers", row->workers);
 *     }
 */

enum field_kind { FIELD_TEXT, FIELD_UINT, FIELD_DOUBLE, FIELD_UNKNOWN };

struct field {
    const char *name; /* borrowed, like `text` */
    enum field_kind kind;
    const char *text; /* may be NULL: empty */
    uint64_t whole;
    double real;
};

enum { FIELDS_MAX = 96 };

struct fields {
    struct field list[FIELDS_MAX];
    size_t count;
};

/* Each adds one field. An unknown value stays empty: a double that is not finite, and a number that
 * is not `known`. */
void fields_start(struct fields *fields);
void fields_text(struct fields *fields, const char *name, const char *text);
void fields_uint(struct fields *fields, const char *name, uint64_t whole);
void fields_uint_if(struct fields *fields, const char *name, bool known, uint64_t whole);
void fields_double(struct fields *fields, const char *name, double real);

/* csv_open() with the fields' names. They must outlive the file, as string literals do. */
enum status fields_csv_open(const struct fields *fields, struct csv **csv, const char *path);
/* A row. */
enum status fields_csv_write(const struct fields *fields, struct csv *csv);

/* A CSV file read into memory: a header, then rows with as many fields (RFC 4180 quoting). Empty
 * lines are skipped. */

struct csv_table {
    size_t columns, rows;
    const char **names;  /* columns; a caller may rename one */
    const char **fields; /* rows * columns, row-major; "" for an unknown value */
    char *text;          /* what these point into */
};

/* STATUS_INPUT (logged with the line): unreadable, empty, or a row with another number of fields.
 * STATUS_NO_MEMORY is logged. Call csv_table_free after an error, too. O(bytes of the file). */
enum status csv_table_read(struct csv_table *table, const char *path);
void csv_table_free(struct csv_table *table);

bool csv_table_has(const struct csv_table *table, const char *name);

/* The field of the column `name` in row `row`; "" if there is no such column. */
const char *csv_table_field(const struct csv_table *table, size_t row, const char *name);

/* The same as a number. NAN: it is not a number, or not finite. */
double csv_table_number(const struct csv_table *table, size_t row, const char *name);

#endif
