#include "common/base/fields.h"

#include <math.h>

#include "common/base/check.h"

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
