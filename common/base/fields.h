/*
 * A row of results as a list of named fields, in the order of its columns: one list for the header,
 * the CSV row and whatever else shows it, so that none of them can disagree.
 *
 *     static void list(const struct row *row, struct fields *fields)
 *     {
 *         fields_start(fields);
 *         fields_text(fields, "backend", row->backend);
 *         fields_uint(fields, "workers", row->workers);
 *     }
 */
#ifndef PSRING_COMMON_BASE_FIELDS_H
#define PSRING_COMMON_BASE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/csv.h"
#include "common/base/status.h"

enum field_kind { FIELD_TEXT, FIELD_UINT, FIELD_DOUBLE, FIELD_UNKNOWN };

struct field {
    const char *name; /* borrowed, as text */
    enum field_kind kind;
    const char *text; /* may be NULL: empty */
    uint64_t whole;
    double real;
};

enum { FIELDS_MAX = 64 };

struct fields {
    struct field list[FIELDS_MAX];
    size_t count;
};

/* Each adds one. What is not known stays empty: a double that is not finite, and a number that is
 * not `known`. */
void fields_start(struct fields *fields);
void fields_text(struct fields *fields, const char *name, const char *text);
void fields_uint(struct fields *fields, const char *name, uint64_t whole);
void fields_uint_if(struct fields *fields, const char *name, bool known, uint64_t whole);
void fields_double(struct fields *fields, const char *name, double real);

/* csv_open() with the names, which must outlive the file, as string literals do. */
enum status fields_csv_open(const struct fields *fields, struct csv **csv, const char *path);
/* A row. */
enum status fields_csv_write(const struct fields *fields, struct csv *csv);

#endif
