#include "experiments/report/compare_command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/line.h"
#include "common/base/log.h"
#include "experiments/report/compare.h"
#include "experiments/report/page.h"
#include "experiments/report/run_data.h"

enum { NAME_BYTES = 192, TEXT_BYTES = 512 };

static const char help[] =
    "usage: psring compare BEFORE AFTER\n"
    "Holds the all-reduces of two runs (folders with a bench.csv) against each other: before and\n"
    "after a change, or two clusters. Prints a table and writes AFTER/compare.html.\n"
    "A ratio is the time in AFTER over that in BEFORE, in brackets what both medians' 95% "
    "intervals\n"
    "allow; where they overlap there is no difference. Different networks are said so.\n\n"
    "  -h, --help      Print this and exit.\n";

/* -------- in words ------------------------------------------------------------------------------
 */

/* A difference has as many digits as show that neither end of it is 1. */
static void say_ratio(const struct compare_pair *pair, char *text, size_t size)
{
    enum { DIGITS_MOST = 8 };
    int digits = 3;
    double nearest = fmin(fabs(pair->low - 1), fabs(pair->high - 1));
    while (digits < DIGITS_MOST && nearest < 0.5 * pow(10, -digits))
        digits++;
    if (isnan(pair->low))
        snprintf(text, size, "%.3f", pair->ratio);
    else if (pair->differs)
        snprintf(text, size, "%.*f (%.*f to %.*f)", digits, pair->ratio, digits, pair->low, digits,
                 pair->high);
    else
        snprintf(text, size, "no difference");
}

/* "12 all-reduces are in both: 3 faster, ..." */
static void say_all(const struct compare *compare, char *text, size_t size)
{
    double logs = 0;
    size_t faster = 0, slower = 0, unknown = 0;
    for (size_t p = 0; p < compare->count; p++) {
        const struct compare_pair *pair = &compare->pairs[p];
        logs += log(pair->ratio);
        faster += pair->differs && pair->ratio < 1;
        slower += pair->differs && pair->ratio > 1;
        unknown += isnan(pair->low);
    }
    struct line line = line_in(text, size);
    line_add(&line,
             "%zu all-reduce%s in both: %zu faster, %zu slower, %zu without a difference, %zu "
             "without intervals. Geometric mean of the ratios: %.3f",
             compare->count, compare->count == 1 ? " is" : "s are", faster, slower,
             compare->count - faster - slower - unknown, unknown,
             exp(logs / (double)compare->count));
    if (compare->ambiguous > 0)
        line_add(&line,
                 ". Left out: %zu of which one run has several kinds that the other does "
                 "not tell apart",
                 compare->ambiguous);
}

static void print_table(const struct compare *compare, FILE *out)
{
    char name[NAME_BYTES], ratio[64];
    fprintf(out, "%-40s %7s %12s %12s %12s   %s\n", "", "workers", "bytes", "before, us",
            "after, us", "after / before");
    for (size_t p = 0; p < compare->count; p++) {
        const struct compare_pair *pair = &compare->pairs[p];
        compare_name(compare, pair, name, sizeof name);
        say_ratio(pair, ratio, sizeof ratio);
        fprintf(out, "%-40s %7s %12s %12.1f %12.1f   %s\n", name,
                csv_table_field(&compare->after, pair->after, "workers"),
                csv_table_field(&compare->after, pair->after, "bytes"), pair->before_us,
                pair->after_us, ratio);
    }
}

/* -------- as a page -----------------------------------------------------------------------------
 */

static void add_number(cJSON *object, const char *name, double value)
{
    cJSON_AddItemToObject(object, name,
                          isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull());
}

static cJSON *data_of(const struct compare *compare)
{
    char name[NAME_BYTES], ratio[64];
    cJSON *data = cJSON_CreateObject(), *pairs = cJSON_AddArrayToObject(data, "pairs");
    for (size_t p = 0; p < compare->count; p++) {
        const struct compare_pair *pair = &compare->pairs[p];
        cJSON *object = cJSON_CreateObject();
        compare_name(compare, pair, name, sizeof name);
        say_ratio(pair, ratio, sizeof ratio);
        cJSON_AddItemToArray(pairs, object);
        cJSON_AddStringToObject(object, "name", name);
        cJSON_AddStringToObject(object, "words", ratio);
        cJSON_AddStringToObject(object, "backend",
                                csv_table_field(&compare->after, pair->after, "backend"));
        add_number(object, "workers",
                   atof(csv_table_field(&compare->after, pair->after, "workers")));
        add_number(object, "bytes", atof(csv_table_field(&compare->after, pair->after, "bytes")));
        add_number(object, "before_us", pair->before_us);
        add_number(object, "after_us", pair->after_us);
        add_number(object, "ratio", pair->ratio);
        add_number(object, "low", pair->low);
        add_number(object, "high", pair->high);
        cJSON_AddBoolToObject(object, "differs", pair->differs);
    }
    return data;
}

static enum status put_words(struct page *page, const struct compare *compare,
                             const char *dir_before, const char *dir_after)
{
    enum status status;
    char text[TEXT_BYTES];
    FILE *out = page_begin(page, "runs");
    TRY(out ? STATUS_OK : STATUS_NO_MEMORY);
    fputs("Before: ", out);
    page_put_text(out, dir_before);
    fputs("\nAfter: ", out);
    page_put_text(out, dir_after);
    if (compare_networks(compare, text, sizeof text)) {
        fputs("\n", out);
        page_put_text(out, text);
    }
    TRY(page_end(page));
    TRY((out = page_begin(page, "claim")) ? STATUS_OK : STATUS_NO_MEMORY);
    say_all(compare, text, sizeof text);
    page_put_text(out, text);
    TRY(page_end(page));
    char *table = NULL;
    size_t size;
    FILE *memory = open_memstream(&table, &size);
    TRY(memory ? STATUS_OK : STATUS_NO_MEMORY);
    print_table(compare, memory);
    fclose(memory);
    if ((out = page_begin(page, "tables")) && table)
        page_put_text(out, table);
    free(table);
    TRY(out ? page_end(page) : STATUS_NO_MEMORY);
out:
    return status;
}

static enum status write_page(const struct compare *compare, const char *dir_before,
                              const char *dir_after)
{
    enum status status;
    struct page page = {0};
    cJSON *data = data_of(compare);
    char *path = run_data_path(dir_after, "compare.html");
    TRY(path && data ? STATUS_OK : STATUS_NO_MEMORY);
    TRY(page_put_assets(&page));
    TRY(page_put_json(&page, data));
    TRY(put_words(&page, compare, dir_before, dir_after));
    TRY(page_write(&page, "Two runs compared", "compare.html", path));
    printf("\n%s\n", path);
out:
    page_free(&page);
    cJSON_Delete(data);
    free(path);
    return status;
}

enum status compare_command(int argc, char **argv)
{
    enum status status;
    char text[TEXT_BYTES];
    struct compare compare = {0};
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return STATUS_OK;
    }
    if (argc != 3 || argv[1][0] == '-' || argv[2][0] == '-') {
        log_error("psring compare: expected two folders that runs have left; see psring compare "
                  "--help");
        return STATUS_USAGE;
    }
    TRY(compare_read(&compare, argv[1], argv[2]));
    if (compare_networks(&compare, text, sizeof text))
        printf("%s\n\n", text);
    print_table(&compare, stdout);
    say_all(&compare, text, sizeof text);
    printf("\n%s\n", text);
    TRY(write_page(&compare, argv[1], argv[2]));
out:
    compare_free(&compare);
    return status;
}
