#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "common/base/csv.h"
#include "tests/lib/capture.h"

static const char *const columns[] = {"name", "count", "time"};
static const char *const other_columns[] = {"name", "count", "times"};

static void expect_contents(const char *path, const char *expected)
{
    char text[4096];
    FILE *file = fopen(path, "rb");
    cr_assert(file != NULL);
    size_t count = fread(text, 1, sizeof text - 1, file);
    text[count] = '\0';
    fclose(file);
    cr_assert_str_eq(text, expected);
}

static void write_row(struct csv *csv, const char *name, uint64_t count, double time)
{
    csv_text(csv, name);
    csv_uint(csv, count);
    csv_double(csv, time);
    cr_assert(csv_end_row(csv) == STATUS_OK);
}

static char *in_folder(char path[96], const char *dir)
{
    snprintf(path, 96, "%s/rows.csv", dir);
    return path;
}

Test(csv, quotes_and_flushes_each_row)
{
    char dir[64], path[96];
    struct csv *csv;
    folder_new(dir);
    cr_assert(csv_open(&csv, in_folder(path, dir), columns, 3) == STATUS_OK);
    expect_contents(path, "name,count,time\n");
    write_row(csv, "a \"b\", c", 18446744073709551615u, 0.1);
    expect_contents(path, "name,count,time\n\"a \"\"b\"\", c\",18446744073709551615,0.1\n");
    write_row(csv, "two\nlines", 0, -1234567.891);
    write_row(csv, NULL, 1, (double)NAN);
    write_row(csv, "", 2, (double)INFINITY);
    expect_contents(path, "name,count,time\n\"a \"\"b\"\", c\",18446744073709551615,0.1\n"
                          "\"two\nlines\",0,-1234567.89\n,1,\n,2,\n");
    cr_assert(csv_close(&csv) == STATUS_OK && csv == NULL);
    cr_assert(csv_close(&csv) == STATUS_OK);
    folder_free(dir);
}

Test(csv, appends)
{
    char dir[64], path[96];
    struct csv *csv;
    folder_new(dir);
    in_folder(path, dir);
    for (uint64_t i = 1; i <= 2; i++) {
        cr_assert(csv_open(&csv, path, columns, 3) == STATUS_OK);
        write_row(csv, i == 1 ? "first" : "second", i, (double)i);
        cr_assert(csv_close(&csv) == STATUS_OK);
    }
    expect_contents(path, "name,count,time\nfirst,1,1\nsecond,2,2\n");
    cr_assert(remove(path) == 0);
    cr_assert(csv_open(&csv, path, columns, 3) == STATUS_OK);
    cr_assert(csv_close(&csv) == STATUS_OK);
    expect_contents(path, "name,count,time\n");
    folder_free(dir);
}

Test(csv, refuses_to_append_to_another_file)
{
    static const char *const cases[] = {"name,count,times\n",
                                        "name,count\n",
                                        "name,count,time",
                                        "n",
                                        "\n",
                                        "name,count,time,more\nx,1,2,3\n"};
    char dir[64], path[96];
    struct csv *csv;
    folder_new(dir);
    in_folder(path, dir);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        FILE *file = fopen(path, "wb");
        cr_assert(file && fputs(cases[i], file) >= 0 && fclose(file) == 0);
        assert_refused(csv_open(&csv, path, columns, 3), STATUS_INPUT,
                       "expected name,count,time; move the file away");
        cr_assert(csv == NULL);
        expect_contents(path, cases[i]);
    }
    cr_assert(remove(path) == 0);
    cr_assert(csv_open(&csv, path, columns, 3) == STATUS_OK);
    cr_assert(csv_close(&csv) == STATUS_OK);
    assert_refused(csv_open(&csv, path, other_columns, 3), STATUS_INPUT,
                   "expected name,count,times;");
    FILE *file = fopen(path, "ab");
    cr_assert(file && fputs("cut,1", file) >= 0 && fclose(file) == 0);
    assert_refused(csv_open(&csv, path, columns, 3), STATUS_INPUT, "its last line is incomplete");
    folder_free(dir);
}

Test(csv, reports_what_cannot_be_written)
{
    struct csv *csv;
    assert_refused(csv_open(&csv, "/nowhere/rows.csv", columns, 3), STATUS_IO,
                   "/nowhere/rows.csv: cannot be opened: No such file");
    assert_refused(csv_open(&csv, "/dev/full", columns, 3), STATUS_IO,
                   "/dev/full: cannot be written: No space left");
}

/* As on a full disk: the limit leaves room for a part of the row. */
Test(csv, a_row_that_has_no_room_leaves_no_part)
{
    enum { LONG = 2000, ROOM = 10 }; /* the limit holds for the captured message, too */
    char dir[64], path[96], name[LONG + 1], expected[LONG + 100];
    struct csv *csv;
    struct rlimit limit;
    memset(name, 'x', LONG);
    name[LONG] = '\0';
    int rows = snprintf(expected, sizeof expected, "name,count,time\n%s,1,1\n", name);
    signal(SIGXFSZ, SIG_IGN);
    folder_new(dir);
    cr_assert(csv_open(&csv, in_folder(path, dir), columns, 3) == STATUS_OK);
    write_row(csv, name, 1, 1);
    cr_assert(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    const struct rlimit full = {(rlim_t)rows + ROOM, limit.rlim_max};
    cr_assert(setrlimit(RLIMIT_FSIZE, &full) == 0);
    csv_text(csv, "has no room");
    csv_uint(csv, 2);
    csv_double(csv, 2);
    assert_refused(csv_end_row(csv), STATUS_IO, "rows.csv: cannot be written: File too large");
    expect_contents(path, expected);
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    cr_assert(csv_close(&csv) == STATUS_OK);
    cr_assert(csv_open(&csv, path, columns, 3) == STATUS_OK);
    write_row(csv, "has room", 2, 2);
    snprintf(expected + rows, sizeof expected - (size_t)rows, "has room,2,2\n");
    expect_contents(path, expected);
    cr_assert(csv_close(&csv) == STATUS_OK);
    folder_free(dir);
}
