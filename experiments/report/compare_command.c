#include "experiments/report/compare_command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/options.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "experiments/report/compare.h"
#include "experiments/report/page.h"
#include "experiments/report/run_data.h"
#include "experiments/report/text.h"

enum { NAME_BYTES = 192, RATIO_BYTES = 160, TEXT_BYTES = 512 };

static const char summary[] =
    "Compares the all-reduces of two runs (folders with a bench.csv): before and after a change,\n"
    "or two clusters. Prints a table and writes AFTER/compare.html.\n"
    "A ratio is the time in AFTER over that in BEFORE. Rows alike within one bench.csv are starts\n"
    "of one configuration. A verdict needs two starts of six iterations at least in both runs. In\n"
    "brackets: what the 95% intervals of both allow, which cover starts and hold for all verdicts\n"
    "together. There is no difference if they overlap, or if the difference is below the spread\n"
    "between starts. Ends with 1 if sums are wrong. Warns if the networks differ.";

/* -------- in words ------------------------------------------------------------------------------
 */

static bool is_wrong(const struct compare_pair *pair)
{
    return pair->time_before.state == STATE_WRONG || pair->time_after.state == STATE_WRONG;
}

/* "0.800 (0.782 to 0.818), faster; CPU-limited" */
static void say_ratio(const struct compare_pair *pair, char *text, size_t size)
{
    const struct comparison *found = &pair->found;
    struct line line = line_in(text, size);
    if (is_wrong(pair)) {
        line_add(&line, "WRONG sums");
        return;
    }
    if (found->verdict == VERDICT_SAME)
        line_add(&line, "no difference");
    else if (isnan(found->ratio))
        line_add(&line, "no verdict: %s", found->why);
    else if (found->verdict == VERDICT_NONE)
        line_add(&line, "(%.3f), no verdict: %s", found->ratio, found->why);
    else
        line_add(&line, "%s, %s", text_comparison(found, 3).text,
                 found->verdict == VERDICT_FASTER ? "faster" : "slower");
    const enum state before = pair->time_before.state, after = pair->time_after.state;
    if (before == STATE_LIMITED || after == STATE_LIMITED)
        line_add(&line, "; CPU-limited");
    if (before == STATE_DISTURBED || after == STATE_DISTURBED)
        line_add(&line, "; the machine was busy with other work");
}

/* "12 all-reduces are in both: 3 faster, ..." */
static void say_all(const struct compare *compare, char *text, size_t size)
{
    double logs = 0;
    size_t counts[VERDICT_SLOWER + 1] = {0}, known = 0;
    for (size_t p = 0; p < compare->count; p++) {
        const struct compare_pair *pair = &compare->pairs[p];
        if (is_wrong(pair))
            continue;
        counts[pair->found.verdict]++;
        if (isnan(pair->found.ratio)) /* a start without a time */
            continue;
        logs += log(pair->found.ratio);
        known++;
    }
    struct line line = line_in(text, size);
    if (compare->wrong > 0)
        line_add(&line, "WRONG: sums of %zu all-reduce%s are not exact. ", compare->wrong,
                 compare->wrong == 1 ? "" : "s");
    line_add(&line,
             "%zu all-reduce%s in both: %zu faster, %zu slower, %zu without a difference, %zu "
             "without a verdict",
             compare->count, compare->count == 1 ? " is" : "s are", counts[VERDICT_FASTER],
             counts[VERDICT_SLOWER], counts[VERDICT_SAME], counts[VERDICT_NONE]);
    if (known > 0)
        line_add(&line, ". Geometric mean of the ratios: %.3f", exp(logs / (double)known));
    if (compare->ambiguous > 0)
        line_add(&line,
                 ". Left out: %zu of which one run has several kinds that the other does "
                 "not tell apart",
                 compare->ambiguous);
}

/* The median, or a dash where sums are wrong. */
static struct text time_of(const struct measured *time)
{
    struct text text = {"-"};
    if (judge_has_time(time->state))
        snprintf(text.text, sizeof text.text, "%.1f", time->median_us);
    return text;
}

static void print_table(const struct compare *compare, FILE *out)
{
    char name[NAME_BYTES], ratio[RATIO_BYTES];
    fprintf(out, "%-40s %7s %12s %6s %12s %12s   %s\n", "", "workers", "bytes", "starts",
            "before, us", "after, us", "after / before");
    for (size_t p = 0; p < compare->count; p++) {
        const struct compare_pair *pair = &compare->pairs[p];
        char starts[32];
        compare_name(compare, pair, name, sizeof name);
        say_ratio(pair, ratio, sizeof ratio);
        snprintf(starts, sizeof starts, "%d, %d", pair->time_before.starts,
                 pair->time_after.starts);
        fprintf(out, "%-40s %7s %12s %6s %12s %12s   %s\n", name,
                csv_table_field(&compare->after, pair->after, "workers"),
                csv_table_field(&compare->after, pair->after, "bytes"), starts,
                time_of(&pair->time_before).text, time_of(&pair->time_after).text, ratio);
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
    char name[NAME_BYTES], ratio[RATIO_BYTES];
    cJSON *data = cJSON_CreateObject(), *pairs = cJSON_AddArrayToObject(data, "pairs");
    for (size_t p = 0; p < compare->count; p++) {
        const struct compare_pair *pair = &compare->pairs[p];
        const bool known = !is_wrong(pair);
        const bool verdict = known && pair->found.verdict > VERDICT_NONE;
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
        add_number(object, "before_us", known ? pair->time_before.median_us : (double)NAN);
        add_number(object, "after_us", known ? pair->time_after.median_us : (double)NAN);
        add_number(object, "ratio", known ? pair->found.ratio : (double)NAN);
        add_number(object, "low", verdict ? pair->found.low : (double)NAN);
        add_number(object, "high", verdict ? pair->found.high : (double)NAN);
        cJSON_AddBoolToObject(object, "differs", verdict && pair->found.verdict != VERDICT_SAME);
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
    const char *dirs[2];
    bool helped;
    const struct options options = {
        .command = "psring compare",
        .summary = summary,
        .specs = &(const struct option_spec){0},
        .operands = "BEFORE AFTER",
        .operands_error = "expected two folders that runs have left",
        .found = dirs,
        .operand_count = 2,
    };
    TRY(options_parse(&options, argc, argv, NULL, &helped));
    if (helped)
        return STATUS_OK;
    TRY(compare_read(&compare, dirs[0], dirs[1]));
    if (compare_networks(&compare, text, sizeof text))
        printf("%s\n\n", text);
    print_table(&compare, stdout);
    say_all(&compare, text, sizeof text);
    printf("\n%s\n", text);
    TRY(write_page(&compare, dirs[0], dirs[1]));
    if (compare.wrong > 0) {
        log_error("psring compare: %zu of %zu all-reduces have WRONG sums; do not use these times",
                  compare.wrong, compare.count);
        status = STATUS_WRONG;
    }
out:
    compare_free(&compare);
    return status;
}
