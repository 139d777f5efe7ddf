/*
 * Writes CSV files (RFC 4180 quoting, lines ended by \n): a header, then rows, each handed to the
 * operating system whole and at once, so that an interrupted run loses no finished row.
 *
 *     csv_text(csv, "ring"); csv_uint(csv, 4); csv_double(csv, 1.5);
 *     TRY(csv_end_row(csv));
 */
#ifndef PSRING_COMMON_BASE_CSV_H
#define PSRING_COMMON_BASE_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

struct csv; /* one thread at a time */

/*
 * Opens `path` to append rows, and writes the header unless it is there already. `columns` holds
 * `column_count` names and is borrowed. A file with another header, or whose last line has no end,
 * is refused and left as it is (STATUS_INPUT). Errors have been logged.
 */
enum status csv_open(struct csv **csv, const char *path, const char *const *columns,
                     size_t column_count);

/* One field each. NULL, like "", is an empty field; so is a double that is not finite. */
void csv_text(struct csv *csv, const char *value);
void csv_uint(struct csv *csv, uint64_t value);
void csv_double(struct csv *csv, double value); /* 9 significant digits */

/* Writes the row. Exactly `column_count` fields must have been given. STATUS_IO (logged). */
enum status csv_end_row(struct csv *csv);

/* Closes; STATUS_IO (logged) if the operating system reports only now that a write failed. */
enum status csv_close(struct csv **csv);

#endif
