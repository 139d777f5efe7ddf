#include "experiments/report/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/status.h"
#include "experiments/report/run_data.h"
#include "experiments/rows/results.h"

static const char *const keys[] = {
    "backend",          "transport",      "device",  "workers",
    "servers",          "placement",      "bytes",   "mpi_algorithm",
    "compress",         "hosts",          "api",     "model_gradients",
    "neighbours_apart", "nccl_algorithm", "skew_ms", "network"};
enum { KEYS = sizeof keys / sizeof *keys, SHARED_KEYS = KEYS - 1 }; /* all but the network */

/* -------- what rows are of -------------------------------------------------------------------- */

/* One table's rows as texts of their keys; (rows) each, owned. */
struct kinds {
    char **shared; /* of those that both tables have: one that only one has, because the other is of
                    * an earlier version, tells nothing */
    char **whole;  /* of all that this table has, the network too */
};

/* A row of an earlier version has no skew_ms: its ranks started together. */
static const char *field_of(const struct csv_table *table, size_t row, const char *key)
{
    const char *field = csv_table_field(table, row, key);
    return strcmp(key, "skew_ms") == 0 && !(atof(field) > 0) ? "0" : field;
}

/* The caller frees; NULL: no memory. */
static char *kind_of(const struct csv_table *table, size_t row, const bool *counts)
{
    size_t size = 1;
    for (int k = 0; k < KEYS; k++)
        size += strlen(field_of(table, row, keys[k])) + 1;
    char *text = malloc(size);
    if (!text)
        return NULL;
    struct line line = line_in(text, size);
    for (int k = 0; k < KEYS; k++) {
        if (counts[k])
            line_add(&line, "%s\n", field_of(table, row, keys[k]));
    }
    return text;
}

static enum status kinds_read(struct kinds *kinds, const struct csv_table *table,
                              const struct csv_table *other)
{
    bool shared[KEYS], own[KEYS];
    for (int k = 0; k < KEYS; k++) {
        const bool skew = strcmp(keys[k], "skew_ms") == 0; /* 0 without the column */
        own[k] = skew || csv_table_has(table, keys[k]);
        shared[k] = own[k] && k < SHARED_KEYS && (skew || csv_table_has(other, keys[k]));
    }
    kinds->shared = calloc(table->rows + 1, sizeof *kinds->shared);
    kinds->whole = calloc(table->rows + 1, sizeof *kinds->whole);
    bool good = kinds->shared && kinds->whole;
    for (size_t row = 0; good && row < table->rows; row++) {
        kinds->shared[row] = kind_of(table, row, shared);
        kinds->whole[row] = kind_of(table, row, own);
        good = kinds->shared[row] && kinds->whole[row];
    }
    if (!good)
        log_error("psring compare: out of memory");
    return good ? STATUS_OK : STATUS_NO_MEMORY;
}

static void kinds_free(struct kinds *kinds, size_t rows)
{
    for (size_t row = 0; row < rows; row++) {
        if (kinds->shared)
            free(kinds->shared[row]);
        if (kinds->whole)
            free(kinds->whole[row]);
    }
    free(kinds->shared);
    free(kinds->whole);
}

static bool has_network(const struct csv_table *table, const char *network)
{
    for (size_t row = 0; row < table->rows; row++) {
        if (strcmp(csv_table_field(table, row, "network"), network) == 0)
            return true;
    }
    return false;
}

/* Of one network, or of two of which neither is in the other's table. */
static bool networks_match(const struct compare *compare, size_t before, size_t after)
{
    const char *one = csv_table_field(&compare->before, before, "network");
    const char *two = csv_table_field(&compare->after, after, "network");
    return strcmp(one, two) == 0 ||
           (!has_network(&compare->before, two) && !has_network(&compare->after, one));
}

/* -------- pairs ------------------------------------------------------------------------------- */

struct search {
    struct compare *compare;
    struct kinds before, after;
};

static bool match(const struct search *search, size_t before, size_t after)
{
    return strcmp(search->before.shared[before], search->after.shared[after]) == 0 &&
           networks_match(search->compare, before, after);
}

/* Whether one of the tables tells apart what the other does not. */
static bool is_ambiguous(const struct search *search, size_t before, size_t after)
{
    const struct compare *compare = search->compare;
    bool apart = false;
    for (size_t row = 0; !apart && row < compare->before.rows; row++)
        apart = strcmp(search->before.whole[row], search->before.whole[before]) != 0 &&
                match(search, row, after);
    for (size_t row = 0; !apart && row < compare->after.rows; row++)
        apart = strcmp(search->after.whole[row], search->after.whole[after]) != 0 &&
                match(search, before, row);
    return apart;
}

/* Was measured before, further up: that row's group has it. */
static bool is_repeated(const struct search *search, size_t after)
{
    size_t first = 0;
    while (strcmp(search->after.whole[first], search->after.whole[after]) != 0)
        first++;
    return first < after;
}

/* All rows that are alike to `row`, as starts of one configuration. `starts`: room for all rows. */
static void measure(const struct csv_table *table, char *const *whole, size_t row,
                    struct start *starts, struct measured *time)
{
    size_t count = 0;
    enum state worst = STATE_EXACT;
    for (size_t other = row; other < table->rows; other++) {
        if (strcmp(whole[other], whole[row]) != 0)
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

/* At one size the starts of all configurations differ by about as much, so their spread is pooled
 * by size, over both runs. */
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

static enum status find_pairs(struct compare *compare)
{
    enum status status;
    struct search search = {.compare = compare};
    struct start *starts = calloc(compare->before.rows + compare->after.rows + 1, sizeof *starts);
    compare->pairs = calloc(compare->after.rows + 1, sizeof *compare->pairs);
    TRY(compare->pairs && starts ? STATUS_OK : STATUS_NO_MEMORY);
    TRY(kinds_read(&search.before, &compare->before, &compare->after));
    TRY(kinds_read(&search.after, &compare->after, &compare->before));
    for (size_t after = 0; after < compare->after.rows; after++) {
        size_t before = 0;
        while (before < compare->before.rows && !match(&search, before, after))
            before++;
        if (before == compare->before.rows || is_repeated(&search, after))
            continue;
        struct compare_pair pair = {.before = before, .after = after};
        measure(&compare->before, search.before.whole, before, starts, &pair.time_before);
        measure(&compare->after, search.after.whole, after, starts, &pair.time_after);
        const bool wrong =
            pair.time_before.state == STATE_WRONG || pair.time_after.state == STATE_WRONG;
        if (is_ambiguous(&search, before, after)) {
            compare->ambiguous++;
        } else if (wrong || (pair.time_before.starts > 0 && pair.time_after.starts > 0)) {
            compare->wrong += wrong;
            compare->pairs[compare->count++] = pair;
        }
    }
    draw_verdicts(compare);
out:
    kinds_free(&search.before, compare->before.rows);
    kinds_free(&search.after, compare->after.rows);
    free(starts);
    return status;
}

/* -------- the whole --------------------------------------------------------------------------- */

static enum status read_bench(struct csv_table *table, const char *dir)
{
    char *path = run_data_path(dir, "bench.csv");
    enum status status = path ? csv_table_read(table, path) : STATUS_NO_MEMORY;
    free(path);
    return status;
}

enum status compare_read(struct compare *compare, const char *dir_before, const char *dir_after)
{
    enum status status;
    *compare = (struct compare){0};
    TRY(read_bench(&compare->before, dir_before));
    TRY(read_bench(&compare->after, dir_after));
    TRY(find_pairs(compare));
    if (compare->count == 0) {
        log_error("%s and %s: no all-reduce of one kind and size is in both%s; measure both with "
                  "the same --hosts and --sizes",
                  dir_before, dir_after,
                  compare->ambiguous > 0 ? " without one of them being of several kinds" : "");
        status = STATUS_INPUT;
    }
out:
    return status;
}

void compare_free(struct compare *compare)
{
    csv_table_free(&compare->before);
    csv_table_free(&compare->after);
    free(compare->pairs);
    *compare = (struct compare){0};
}

/* -------- in words ---------------------------------------------------------------------------- */

/* The networks of a table, each once. */
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

bool compare_networks(const struct compare *compare, char *text, size_t size)
{
    bool differ = false;
    struct line line = line_in(text, size);
    for (size_t p = 0; !differ && p < compare->count; p++) {
        const char *before = csv_table_field(&compare->before, compare->pairs[p].before, "network");
        const char *after = csv_table_field(&compare->after, compare->pairs[p].after, "network");
        differ = *before && *after && strcmp(before, after) != 0; /* both say */
    }
    if (!differ)
        return false;
    line_add(&line, "Different networks: before ");
    add_networks(&line, &compare->before);
    line_add(&line, "; after ");
    add_networks(&line, &compare->after);
    line_add(&line, ". The times differ with them, whatever else has changed.");
    return true;
}

/* Host by host, as many neighbours are on two hosts as there are hosts. */
static void add_hosts(struct line *line, const struct csv_table *table, size_t row)
{
    const char *hosts = csv_table_field(table, row, "hosts");
    const char *workers = csv_table_field(table, row, "workers");
    const char *apart = csv_table_field(table, row, "neighbours_apart");
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

void compare_name(const struct compare *compare, const struct compare_pair *pair, char *text,
                  size_t size)
{
    static const char *const further[] = {"mpi_algorithm", "compress", "model_gradients",
                                          "api",           "device",   "nccl_algorithm"};
    static const char *const usual[] = {"", "none", "", "comm", "cpu", "ring/simple"};
    const struct csv_table *table = &compare->after;
    struct line line = line_in(text, size);
    line_add(&line, "%s", csv_table_field(table, pair->after, "backend"));
    if (strcmp(csv_table_field(table, pair->after, "transport"), "none") != 0)
        line_add(&line, " over %s", csv_table_field(table, pair->after, "transport"));
    if (strcmp(csv_table_field(table, pair->after, "placement"), "none") != 0)
        line_add(&line, ", %s %s", csv_table_field(table, pair->after, "servers"),
                 csv_table_field(table, pair->after, "placement"));
    for (size_t f = 0; f < sizeof further / sizeof *further; f++) {
        const char *field = csv_table_field(table, pair->after, further[f]);
        if (*field && strcmp(field, usual[f]) != 0)
            line_add(&line, ", %s", field);
    }
    if (atof(csv_table_field(table, pair->after, "skew_ms")) > 0)
        line_add(&line, ", skew %s ms", csv_table_field(table, pair->after, "skew_ms"));
    add_hosts(&line, table, pair->after);
    if (has_several_networks(table))
        line_add(&line, ", %s", csv_table_field(table, pair->after, "network"));
}
