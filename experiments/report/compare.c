#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/options.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "experiments/report/report.h"
#include "experiments/report/run.h"
#include "experiments/bench/results.h"

static const char *const keys[] = {
    "backend",      "transport",       "device",          "workers",        "servers",
    "placement",    "bytes",           "mpi_algorithm",   "compress",       "hosts",
    "interface",    "model_gradients", "inter_host_hops", "nccl_algorithm", "skew_ms",
    "series_iters", "radix",           "error_feedback",  "buckets",        "network"};
enum { KEYS = sizeof keys / sizeof *keys, SHARED_KEYS = KEYS - 1 }; /* all except the network */

/* -------- what rows are of -------------------------------------------------------------------- */

/* The keys of the rows of one table. */
struct kinds {
    const char *(*of)[KEYS]; /* (rows), owned; the strings belong to the table */
    bool shared[KEYS]; /* keys in both tables; a key in one table only, from an earlier version, is
                          no difference */
    bool whole[KEYS];  /* all keys of this table, including the network */
};

/* The value of a key whose column an earlier version lacks: its ranks started together, before each
 * operation, and rhd halved. NULL: another key. */
static const char *value_before(const char *key)
{
    static const char *const later[][2] = {{"skew_ms", "0"}, {"series_iters", "1"}, {"radix", "2"}};
    for (size_t k = 0; k < sizeof later / sizeof *later; k++) {
        if (strcmp(key, later[k][0]) == 0)
            return later[k][1];
    }
    return NULL;
}

static const char *field_of(const struct csv_table *table, size_t row, const char *key)
{
    const char *field = csv_table_field(table, row, key), *before = value_before(key);
    return before && !(atof(field) > 0) ? before : field;
}

static enum status kinds_read(struct kinds *kinds, const struct csv_table *table,
                              const struct csv_table *other)
{
    kinds->of = calloc(table->rows + 1, sizeof *kinds->of);
    if (!kinds->of)
        return FAIL(STATUS_NO_MEMORY, "psring compare: out of memory");
    for (int k = 0; k < KEYS; k++) {
        const bool known = value_before(keys[k]) != NULL; /* also without the column */
        kinds->whole[k] = known || csv_table_has(table, keys[k]);
        kinds->shared[k] =
            k < SHARED_KEYS && kinds->whole[k] && (known || csv_table_has(other, keys[k]));
        for (size_t row = 0; row < table->rows; row++)
            kinds->of[row][k] = field_of(table, row, keys[k]);
    }
    return STATUS_OK;
}

static bool are_alike(const char *const *one, const char *const *other, const bool *counts)
{
    for (int k = 0; k < KEYS; k++) {
        if (counts[k] && strcmp(one[k], other[k]) != 0)
            return false;
    }
    return true;
}

/* Whether two rows of one table are of one configuration. */
static bool is_same(const struct kinds *kinds, size_t one, size_t other)
{
    return are_alike(kinds->of[one], kinds->of[other], kinds->whole);
}

static bool has_network(const struct csv_table *table, const char *network)
{
    for (size_t row = 0; row < table->rows; row++) {
        if (strcmp(csv_table_field(table, row, "network"), network) == 0)
            return true;
    }
    return false;
}

/* Whether the networks match: they are equal, or neither is in the other table. */
static bool networks_match(const struct compare *compare, size_t before, size_t after)
{
    const char *one = csv_table_field(&compare->before, before, "network");
    const char *two = csv_table_field(&compare->after, after, "network");
    return strcmp(one, two) == 0 ||
           (!has_network(&compare->before, two) && !has_network(&compare->after, one));
}

/* -------- pairs ------------------------------------------------------------------------------- */

struct compare_search {
    struct compare *compare;
    struct kinds before, after;
};

static bool match(const struct compare_search *search, size_t before, size_t after)
{
    return are_alike(search->before.of[before], search->after.of[after], search->before.shared) &&
           networks_match(search->compare, before, after);
}

/* Whether one table distinguishes rows that the other does not. */
static bool is_ambiguous(const struct compare_search *search, size_t before, size_t after)
{
    const struct compare *compare = search->compare;
    bool apart = false;
    for (size_t row = 0; !apart && row < compare->before.rows; row++)
        apart = !is_same(&search->before, row, before) && match(search, row, after);
    for (size_t row = 0; !apart && row < compare->after.rows; row++)
        apart = !is_same(&search->after, row, after) && match(search, before, row);
    return apart;
}

/* Whether an earlier row of the table is of the same configuration. Its group includes this row. */
static bool is_repeated(const struct compare_search *search, size_t after)
{
    size_t first = 0;
    while (!is_same(&search->after, first, after))
        first++;
    return first < after;
}

/* Combines all rows of the configuration of `row`, as its starts. `starts`: space for all rows. */
static void measure(const struct csv_table *table, const struct kinds *kinds, size_t row,
                    struct start *starts, struct measured *time)
{
    size_t count = 0;
    enum state worst = STATE_EXACT;
    for (size_t other = row; other < table->rows; other++) {
        if (!is_same(kinds, other, row))
            continue;
        struct evidence evidence = results_evidence(table, other);
        enum state state = judge_row(&evidence);
        if (state > worst && state != STATE_SINGLE_START)
            worst = state;
        if (evidence.time_us > 0)
            starts[count++] = results_start(table, other);
    }
    *time = (struct measured){.median_us = (double)NAN, .state = worst};
    if (count > 0)
        starts_combine(starts, count, time);
    if (worst != STATE_EXACT)
        time->state = worst;
}

/* Makes the verdicts. At one size the starts of all configurations have a similar spread, so it is
 * pooled by size, over both runs. */
static void draw_verdicts(struct compare *compare)
{
    for (size_t p = 0; p < compare->count; p++) {
        struct compare_pair *pair = &compare->pairs[p];
        const char *bytes = csv_table_field(&compare->after, pair->after, "bytes");
        struct spread spread = {0};
        for (size_t o = 0; o < compare->count; o++) {
            const struct compare_pair *other = &compare->pairs[o];
            if (strcmp(bytes, csv_table_field(&compare->after, other->after, "bytes")) != 0)
                continue;
            spread_add(&spread, &other->time_before);
            spread_add(&spread, &other->time_after);
        }
        starts_widen(&pair->time_before, &spread, compare->count);
        starts_widen(&pair->time_after, &spread, compare->count);
        pair->found = starts_compare(&pair->time_after, &pair->time_before);
    }
}

/* Whether a row that is in no pair has wrong sums, and is the first such row of its configuration.
 */
static bool is_wrong_alone(const struct compare *compare, bool is_before, const struct kinds *kinds,
                           size_t row)
{
    const struct csv_table *table = is_before ? &compare->before : &compare->after;
    const struct evidence evidence = results_evidence(table, row);
    if (!(evidence.wrong > 0))
        return false;
    for (size_t p = 0; p < compare->count; p++) {
        const struct compare_pair *pair = &compare->pairs[p];
        if (is_same(kinds, is_before ? pair->before : pair->after, row))
            return false;
    }
    for (size_t a = 0; a < compare->alone_count; a++) {
        const struct compare_alone *alone = &compare->alone[a];
        if (alone->is_before == is_before && is_same(kinds, alone->row, row))
            return false;
    }
    return true;
}

/* Wrong sums count also without a pair: the program that made them is wrong. */
static void find_wrong_alone(struct compare *compare, bool is_before, const struct kinds *kinds)
{
    const size_t rows = is_before ? compare->before.rows : compare->after.rows;
    for (size_t row = 0; row < rows; row++) {
        if (!is_wrong_alone(compare, is_before, kinds, row))
            continue;
        compare->alone[compare->alone_count++] = (struct compare_alone){is_before, row};
        compare->wrong++;
    }
}

static enum status find_pairs(struct compare *compare)
{
    enum status status;
    struct compare_search search = {.compare = compare};
    struct start *starts = calloc(compare->before.rows + compare->after.rows + 1, sizeof *starts);
    compare->pairs = calloc(compare->after.rows + 1, sizeof *compare->pairs);
    compare->alone = calloc(compare->before.rows + compare->after.rows + 1, sizeof *compare->alone);
    TRY(compare->pairs && compare->alone && starts ? STATUS_OK : STATUS_NO_MEMORY);
    TRY(kinds_read(&search.before, &compare->before, &compare->after));
    TRY(kinds_read(&search.after, &compare->after, &compare->before));
    for (size_t after = 0; after < compare->after.rows; after++) {
        size_t before = 0;
        while (before < compare->before.rows && !match(&search, before, after))
            before++;
        if (before == compare->before.rows || is_repeated(&search, after))
            continue;
        struct compare_pair pair = {.before = before, .after = after};
        measure(&compare->before, &search.before, before, starts, &pair.time_before);
        measure(&compare->after, &search.after, after, starts, &pair.time_after);
        const bool wrong =
            pair.time_before.state == STATE_WRONG || pair.time_after.state == STATE_WRONG;
        if (is_ambiguous(&search, before, after)) {
            compare->ambiguous++;
        } else if (wrong || (pair.time_before.starts > 0 && pair.time_after.starts > 0)) {
            compare->wrong += wrong;
            compare->pairs[compare->count++] = pair;
        }
    }
    find_wrong_alone(compare, true, &search.before);
    find_wrong_alone(compare, false, &search.after);
    draw_verdicts(compare);
out:
    free(search.before.of);
    free(search.after.of);
    free(starts);
    return status;
}

/* -------- the whole --------------------------------------------------------------------------- */

static enum status read_bench(struct csv_table *table, const char *dir)
{
    char *path = run_data_path(dir, "bench.csv");
    enum status status = path ? results_read_table(table, path) : STATUS_NO_MEMORY;
    free(path);
    return status;
}

/*
 * Pairs rows of DIR_AFTER/bench.csv with rows of DIR_BEFORE/bench.csv. The rows of a pair have the
 * same backend, transport, device, workers, servers, placement, bytes, algorithm, compression,
 * hosts and their order, interface and model, as far as both tables have these columns. Equal rows
 * of one table are starts of one configuration. The intervals cover starts and hold for all pairs
 * together (judge.h). A network that is in both runs is compared with itself, otherwise one run's
 * network with the other's. Rows that only one table distinguishes are in no pair.
 * STATUS_INPUT (logged): a file is missing or damaged, or there is neither a pair nor a row with
 * wrong sums. Always needs compare_free. O(rows of one x rows of the other).
 */
static enum status compare_read(struct compare *compare, const char *dir_before,
                                const char *dir_after)
{
    enum status status;
    *compare = (struct compare){0};
    TRY(read_bench(&compare->before, dir_before));
    TRY(read_bench(&compare->after, dir_after));
    TRY(find_pairs(compare));
    if (compare->count == 0 && compare->wrong == 0) {
        log_error(
            "%s and %s: no common all-reduce of one kind and size%s; measure both with the same "
            "--hosts and --sizes",
            dir_before, dir_after, compare->ambiguous > 0 ? " that both distinguish" : "");
        status = STATUS_INPUT;
    }
out:
    return status;
}

static void compare_free(struct compare *compare)
{
    csv_table_free(&compare->before);
    csv_table_free(&compare->after);
    free(compare->pairs);
    free(compare->alone);
    *compare = (struct compare){0};
}

/* -------- in words ---------------------------------------------------------------------------- */

/* Adds the networks of a table, each once. */
static void add_networks(struct line *line, const struct csv_table *table)
{
    for (size_t row = 0; row < table->rows; row++) {
        const char *network = csv_table_field(table, row, "network");
        size_t first = 0;
        while (strcmp(csv_table_field(table, first, "network"), network) != 0)
            first++;
        if (first == row)
            line_add(line, "%s%s", row > 0 ? ", " : "", *network ? network : "unknown");
    }
}

/* Writes one sentence if a pair has two networks, cut to `size`. Otherwise writes "" and returns
 * false. */
static bool compare_networks(const struct compare *compare, char *text, size_t size)
{
    bool differ = false;
    struct line line = line_in(text, size);
    for (size_t p = 0; !differ && p < compare->count; p++) {
        const char *before = csv_table_field(&compare->before, compare->pairs[p].before, "network");
        const char *after = csv_table_field(&compare->after, compare->pairs[p].after, "network");
        differ = *before && *after && strcmp(before, after) != 0; /* both are known */
    }
    if (!differ)
        return false;
    line_add(&line, "Different networks: before ");
    add_networks(&line, &compare->before);
    line_add(&line, "; after ");
    add_networks(&line, &compare->after);
    line_add(&line, ". The networks alone change the times.");
    return true;
}

/* Adds hosts and their order. Ordered host by host, the number of neighbours on two hosts equals
 * the number of hosts. */
static void add_hosts(struct line *line, const struct csv_table *table, size_t row)
{
    const char *hosts = csv_table_field(table, row, "hosts");
    const char *workers = csv_table_field(table, row, "workers");
    const char *apart = csv_table_field(table, row, "inter_host_hops");
    if (!*hosts || strcmp(hosts, workers) == 0)
        return;
    line_add(line, ", %s host%s", hosts, strcmp(hosts, "1") == 0 ? "" : "s");
    if (*apart && strcmp(apart, workers) == 0)
        line_add(line, ", worst order");
    else if (atof(apart) > atof(hosts))
        line_add(line, ", %s neighbours apart", apart);
}

static bool has_several_networks(const struct csv_table *table)
{
    bool several = false;
    for (size_t row = 1; !several && row < table->rows; row++)
        several = strcmp(csv_table_field(table, row, "network"),
                         csv_table_field(table, 0, "network")) != 0;
    return several;
}

/* Writes the name of a row, cut to `size`: "ring over tcp", "ps over zmq, 2 dedicated, fp16", ...
 */
static void compare_name(const struct csv_table *table, size_t row, char *text, size_t size)
{
    static const char *const further[] = {"mpi_algorithm", "compress", "model_gradients",
                                          "interface",     "device",   "nccl_algorithm"};
    static const char *const usual[] = {"", "none", "", "comm", "cpu", "ring/simple"};
    struct line line = line_in(text, size);
    line_add(&line, "%s", csv_table_field(table, row, "backend"));
    if (strcmp(csv_table_field(table, row, "transport"), "none") != 0)
        line_add(&line, " over %s", csv_table_field(table, row, "transport"));
    if (strcmp(csv_table_field(table, row, "placement"), "none") != 0)
        line_add(&line, ", %s %s", csv_table_field(table, row, "servers"),
                 csv_table_field(table, row, "placement"));
    for (size_t f = 0; f < sizeof further / sizeof *further; f++) {
        const char *field = csv_table_field(table, row, further[f]);
        if (*field && strcmp(field, usual[f]) != 0)
            line_add(&line, ", %s", field);
    }
    if (strcmp(csv_table_field(table, row, "error_feedback"), "off") == 0)
        line_add(&line, ", no feedback");
    if (*csv_table_field(table, row, "model_gradients") && csv_table_has(table, "buckets"))
        line_add(&line, ", %s buckets", csv_table_field(table, row, "buckets"));
    if (atof(csv_table_field(table, row, "skew_ms")) > 0)
        line_add(&line, ", skew %s ms", csv_table_field(table, row, "skew_ms"));
    if (atof(csv_table_field(table, row, "series_iters")) > 1)
        line_add(&line, ", back to back");
    if (atof(csv_table_field(table, row, "radix")) > 2)
        line_add(&line, ", radix %s", csv_table_field(table, row, "radix"));
    add_hosts(&line, table, row);
    if (has_several_networks(table))
        line_add(&line, ", %s", csv_table_field(table, row, "network"));
}

enum { NAME_BYTES = 192, RATIO_BYTES = 160, TEXT_BYTES = 512 };

static const char summary[] =
    "Compares the all-reduces of two runs (folders with a bench.csv): before and after a change,\n"
    "or two clusters. Prints a table and writes AFTER/compare.html.\n"
    "A ratio is the time in AFTER / the time in BEFORE. Rows of one bench.csv that differ only in\n"
    "their measurements are starts of one configuration. A verdict needs at least two starts of "
    "six\n"
    "iterations in both runs. In brackets: the range of the ratio from both 95% intervals. They\n"
    "cover starts, and hold for all verdicts together if all starts spread alike. There is no\n"
    "difference if they overlap, or if the difference is below the spread between starts.\n"
    "Exits with 1 if sums are wrong. Warns if the networks differ.";

/* -------- in words ---------------------------------------------------------------------------- */

static bool is_wrong(const struct compare_pair *pair)
{
    return pair->time_before.state == STATE_WRONG || pair->time_after.state == STATE_WRONG;
}

/* Writes "0.800 (0.782 to 0.818), faster; CPU-limited". */
static void format_ratio(const struct compare_pair *pair, char *text, size_t size)
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

/* Writes "12 all-reduces are in both: 3 faster, ...". */
static void format_all(const struct compare *compare, char *text, size_t size)
{
    double logs = 0;
    size_t counts[VERDICT_SLOWER + 1] = {0}, known = 0;
    for (size_t p = 0; p < compare->count; p++) {
        const struct compare_pair *pair = &compare->pairs[p];
        if (is_wrong(pair))
            continue;
        counts[pair->found.verdict]++;
        if (isnan(pair->found.ratio)) /* one has no time */
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
    if (known > 0 && counts[VERDICT_FASTER] + counts[VERDICT_SLOWER] > 0)
        line_add(&line, ". Geometric mean of the ratios: %.3f", exp(logs / (double)known));
    if (compare->ambiguous > 0)
        line_add(&line, ". Left out: %zu that only one run distinguishes", compare->ambiguous);
}

/* A field of the pair's row in `after`. */
static const char *field_in(const struct compare *compare, const struct compare_pair *pair,
                            const char *name)
{
    return csv_table_field(&compare->after, pair->after, name);
}

/* The median, or a dash if sums are wrong. */
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
        compare_name(&compare->after, pair->after, name, sizeof name);
        format_ratio(pair, ratio, sizeof ratio);
        snprintf(starts, sizeof starts, "%d, %d", pair->time_before.starts,
                 pair->time_after.starts);
        fprintf(out, "%-40s %7s %12s %6s %12s %12s   %s\n", name,
                field_in(compare, pair, "workers"), field_in(compare, pair, "bytes"), starts,
                time_of(&pair->time_before).text, time_of(&pair->time_after).text, ratio);
    }
    for (size_t a = 0; a < compare->alone_count; a++) {
        const struct compare_alone *alone = &compare->alone[a];
        const struct csv_table *table = alone->is_before ? &compare->before : &compare->after;
        compare_name(table, alone->row, name, sizeof name);
        fprintf(out, "%-40s %7s %12s %6s %12s %12s   WRONG sums %s, not compared\n", name,
                csv_table_field(table, alone->row, "workers"),
                csv_table_field(table, alone->row, "bytes"), "", "-", "-",
                alone->is_before ? "before" : "after");
    }
}

/* -------- as a page --------------------------------------------------------------------------- */

static cJSON *data_of(const struct compare *compare)
{
    char name[NAME_BYTES], ratio[RATIO_BYTES];
    cJSON *data = cJSON_CreateObject(), *pairs = cJSON_AddArrayToObject(data, "pairs");
    for (size_t p = 0; p < compare->count; p++) {
        const struct compare_pair *pair = &compare->pairs[p];
        const bool known = !is_wrong(pair);
        const bool verdict = known && pair->found.verdict > VERDICT_NONE;
        cJSON *object = cJSON_CreateObject();
        compare_name(&compare->after, pair->after, name, sizeof name);
        format_ratio(pair, ratio, sizeof ratio);
        cJSON_AddItemToArray(pairs, object);
        cJSON_AddStringToObject(object, "name", name);
        cJSON_AddStringToObject(object, "words", ratio);
        cJSON_AddStringToObject(object, "backend", field_in(compare, pair, "backend"));
        run_add_number(object, "workers", atof(field_in(compare, pair, "workers")));
        run_add_number(object, "bytes", atof(field_in(compare, pair, "bytes")));
        run_add_number(object, "before_us", known ? pair->time_before.median_us : (double)NAN);
        run_add_number(object, "after_us", known ? pair->time_after.median_us : (double)NAN);
        run_add_number(object, "ratio", known ? pair->found.ratio : (double)NAN);
        run_add_number(object, "low", verdict ? pair->found.low : (double)NAN);
        run_add_number(object, "high", verdict ? pair->found.high : (double)NAN);
        cJSON_AddBoolToObject(object, "differs", verdict && pair->found.verdict != VERDICT_SAME);
    }
    return data;
}

static enum status put_words(struct page *page, const struct compare *compare,
                             const char *dir_before, const char *dir_after)
{
    enum status status;
    char text[TEXT_BYTES], *table = NULL;
    size_t size;
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
    format_all(compare, text, sizeof text);
    TRY(page_put(page, "claim", text));
    FILE *memory = open_memstream(&table, &size);
    TRY(memory ? STATUS_OK : STATUS_NO_MEMORY);
    print_table(compare, memory);
    fclose(memory);
    TRY(table ? page_put(page, "tables", table) : STATUS_NO_MEMORY);
out:
    free(table);
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
        .operands_error = "expected two folders, the results of two runs",
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
    format_all(&compare, text, sizeof text);
    printf("\n%s\n", text);
    if (compare.count > 0)
        TRY(write_page(&compare, dirs[0], dirs[1]));
    if (compare.wrong > 0) {
        log_error("psring compare: %zu of %zu all-reduces have WRONG sums; do not use these times",
                  compare.wrong, compare.count + compare.alone_count);
        status = STATUS_WRONG;
    }
out:
    compare_free(&compare);
    return status;
}
