/* A CSV file read whole: a header, then rows of as many fields (RFC 4180 quoting); empty lines are
 * left out. */
#ifndef PSRING_COMMON_BASE_CSV_TABLE_H
#define PSRING_COMMON_BASE_CSV_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

struct csv_table {
    size_t columns, rows;
    char **names;  /* columns */
    char **fields; /* rows * columns, row-major; "" where nothing is known */
    char *text;    /* what these point into */
};

/* STATUS_INPUT (logged with the line): not to be read, empty, or a row of another number of fields.
 * STATUS_NO_MEMORY is logged. Needs csv_table_free whatever it returns. O(bytes of the file). */
enum status csv_table_read(struct csv_table *table, const char *path);
void csv_table_free(struct csv_table *table);

bool csv_table_has(const struct csv_table *table, const char *name);

/* The field of the column `name` in row `row`; "" if there is no such column. */
const char *csv_table_field(const struct csv_table *table, size_t row, const char *name);

#endif
