/*
 * Input: a CSV file, such as bench.csv.
 * - A table that was accepted, written and read again, has the same names and fields.
 * - Every table is accepted as results. Each row belongs to a point of its size and number of
 *   workers. The axes are sorted. A look-up finds points of the wanted configuration.
 */
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "common/base/csv.h"
#include "common/base/status.h"
#include "experiments/bench/results.h"

static void check_same(const struct csv_table *one, const struct csv_table *two)
{
    CHECK(one->columns == two->columns && one->rows == two->rows);
    for (size_t i = 0; i < (1 + one->rows) * one->columns; i++)
        CHECK(strcmp(one->names[i], two->names[i]) == 0); /* the fields come after the names */
}

static void write_again(const struct csv_table *table)
{
    char path[64];
    struct csv_table again;
    struct csv *csv;
    int fd = fuzz_file(NULL, 0, path, sizeof path);
    CHECK(csv_open(&csv, path, table->names, table->columns) == STATUS_OK);
    for (size_t row = 0; row < table->rows; row++) {
        for (size_t column = 0; column < table->columns; column++)
            csv_text(csv, table->fields[row * table->columns + column]);
        CHECK(csv_end_row(csv) == STATUS_OK);
    }
    CHECK(csv_close(&csv) == STATUS_OK);
    CHECK(csv_table_read(&again, path) == STATUS_OK);
    check_same(table, &again);
    csv_table_free(&again);
    close(fd);
}

static void look_up(const struct csv_table *table)
{
    CHECK(table->fields == table->names + table->columns);
    for (size_t row = 0; row < table->rows; row++) {
        for (size_t column = 0; column < table->columns; column++) {
            const char *name = table->names[column];
            double number = csv_table_number(table, row, name);
            CHECK(csv_table_has(table, name) && (isnan(number) || isfinite(number)));
            CHECK(isnan(number) || *csv_table_field(table, row, name));
        }
    }
}

static void find_columns(const struct results *results, int workers, uint64_t bytes)
{
    static const char *const transports[] = {"tcp", "zmq", "mpi"};
    for (int column = 0; column < COLUMNS; column++) {
        const struct point *point = results_column(results, column, workers, bytes);
        CHECK(!point || (point->part == PART_PLAIN && point->workers == workers &&
                         point->bytes == bytes && !point->variant[0]));
        for (size_t t = 0; t < sizeof transports / sizeof *transports; t++) {
            point = results_over(results, column, transports[t], workers, bytes);
            CHECK(!point || (point->workers == workers && point->bytes == bytes));
        }
    }
}

static void check_results(const struct results *results)
{
    CHECK(results->row_count == results->table.rows && results->point_count <= results->row_count);
    for (size_t r = 0; r < results->row_count; r++) {
        const struct result_row *row = &results->rows[r];
        CHECK(row->point < results->point_count);
        const struct point *point = &results->points[row->point];
        CHECK(point->part == row->part && point->bytes == row->bytes);
        CHECK(point->workers == row->workers && row->workers >= 0 && row->state <= STATE_WRONG);
    }
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        CHECK(point->who[0] || !point->row->backend[0]);
        CHECK(strlen(point->who) < sizeof point->who && judge_word(point->time.state));
        CHECK(!results_is_drawn(results, point) || point->part == PART_PLAIN);
    }
    for (size_t s = 1; s < results->size_count; s++)
        CHECK(results->sizes[s - 1] < results->sizes[s]);
    for (size_t w = 0; w < results->worker_count; w++) {
        CHECK(results->workers[w] > (w > 0 ? results->workers[w - 1] : 0));
        uint64_t bytes = results_focus(results, results->workers[w]);
        find_columns(results, results->workers[w], bytes);
    }
    int compared = results_compared_workers(results);
    CHECK(compared >= 0 && (compared > 0 || results->worker_count == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct csv_table table;
    struct results results;
    fuzz_quiet();
    int fd = fuzz_file(data, size, path, sizeof path);
    enum status status = csv_table_read(&table, path);
    CHECK(status == STATUS_OK || status == STATUS_INPUT);
    if (status == STATUS_OK) {
        look_up(&table);
        write_again(&table);
    }
    csv_table_free(&table);
    CHECK(results_read(&results, path) == status);
    if (status == STATUS_OK)
        check_results(&results);
    results_free(&results);
    close(fd);
    return 0;
}
