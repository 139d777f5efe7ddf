#include <stdio.h>

#include "common/base/csv.h"
#include "tests/lib/capture.h"

static enum status read_text(struct csv_table *table, const char *text)
{
    char dir[64], path[96];
    folder_new(dir);
    snprintf(path, sizeof path, "%s/table.csv", dir);
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
    enum status status = csv_table_read(table, path);
    folder_free(dir);
    return status;
}

Test(csv_table, finds_fields_by_the_names_of_their_columns)
{
    struct csv_table table;
    cr_assert(read_text(&table, "name,\"a, b\",last\nring,,3\r\n\n\"say \"\"no\"\"\nhere\",7,") ==
              0);
    cr_assert(table.columns == 3 && table.rows == 2);
    cr_assert_str_eq(csv_table_field(&table, 0, "name"), "ring");
    cr_assert_str_eq(csv_table_field(&table, 0, "a, b"), "");
    cr_assert_str_eq(csv_table_field(&table, 0, "last"), "3");
    cr_assert_str_eq(csv_table_field(&table, 1, "name"), "say \"no\"\nhere");
    cr_assert_str_eq(csv_table_field(&table, 1, "a, b"), "7");
    cr_assert_str_eq(csv_table_field(&table, 1, "last"), "");
    cr_assert_str_eq(csv_table_field(&table, 1, "none"), "");
    csv_table_free(&table);
}

/* The end of a line is \n or \r\n. Every other \r belongs to a field. */
Test(csv_table, keeps_returns_within_quotes)
{
    struct csv_table table;
    cr_assert(read_text(&table, "a,b\r\n\"1\r\",2\r\n3\r,\"4\r\"\r\n\"5\",\"6\"\r\n") == STATUS_OK);
    cr_assert_str_eq(csv_table_field(&table, 0, "a"), "1\r");
    cr_assert_str_eq(csv_table_field(&table, 0, "b"), "2");
    cr_assert_str_eq(csv_table_field(&table, 1, "a"), "3\r");
    cr_assert_str_eq(csv_table_field(&table, 1, "b"), "4\r");
    cr_assert_str_eq(csv_table_field(&table, 2, "b"), "6");
    csv_table_free(&table);
}

Test(csv_table, refuses_what_is_no_table)
{
    struct csv_table table;
    cr_assert(read_text(&table, "") == STATUS_INPUT);
    csv_table_free(&table);
    cr_assert(read_text(&table, "a,b\n1,2\n3\n") == STATUS_INPUT);
    csv_table_free(&table);
    /* The open quote would have swallowed the rows after it. */
    assert_refused(read_text(&table, "a,b\n1,2\n3,\"4\n5,6\n"), STATUS_INPUT,
                   "line 3: a quoted field has no closing quote");
    csv_table_free(&table);
    cr_assert(csv_table_read(&table, "/nowhere/table.csv") == STATUS_INPUT);
    csv_table_free(&table);
}

Test(csv_table, has_room_for_many_fields)
{
    enum { ROWS = 3000 };
    static char text[ROWS * 16];
    struct csv_table table;
    size_t used = (size_t)sprintf(text, "a,b\n");
    for (int row = 0; row < ROWS; row++)
        used += (size_t)sprintf(text + used, "%d,%d\n", row, 2 * row);
    cr_assert(read_text(&table, text) == STATUS_OK && table.rows == ROWS);
    for (int row = 0; row < ROWS; row++) {
        cr_assert(atoi(csv_table_field(&table, (size_t)row, "a")) == row);
        cr_assert(atoi(csv_table_field(&table, (size_t)row, "b")) == 2 * row);
    }
    csv_table_free(&table);
}
