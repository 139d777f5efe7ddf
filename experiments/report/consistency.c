#include "experiments/report/report.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/status.h"
#include "common/base/stats.h"

/* -------- reading ----------------------------------------------------------------------------- */

static const char *field_of(const struct consistency_run *consistency, const char *name)
{
    return consistency->table.rows > 0 ? csv_table_field(&consistency->table, 0, name) : "";
}

static double target_percent(const struct consistency_run *consistency)
{
    const struct csv_table *table = &consistency->table;
    return table->rows > 0 ? 100 * csv_table_number(table, 0, "target_accuracy") : 0;
}

static bool is_of(const struct csv_table *table, size_t row, const struct mode *mode)
{
    return strcmp(csv_table_field(table, row, "mode"), mode->name) == 0 &&
           strcmp(csv_table_field(table, row, "straggler"), mode->straggler) == 0;
}

/* The median of a column over the rows of a mode that know it; with `most`, the largest value. NAN:
 * no row knows it. `values`: space for all rows. */
static double value_of(const struct csv_table *table, const struct mode *mode, const char *name,
                       bool most, double *values)
{
    size_t count = 0;
    for (size_t row = 0; row < table->rows; row++) {
        double value = csv_table_number(table, row, name);
        if (is_of(table, row, mode) && !isnan(value))
            values[count++] = value;
    }
    if (count == 0)
        return (double)NAN;
    double median = stats_median(values, count); /* sorts */
    return most ? values[count - 1] : median;
}

/* The share of steps that late workers skipped or whose gradients came too late. */
static double lost_of(const struct csv_table *table, const struct mode *mode, double *values)
{
    size_t count = 0;
    for (size_t row = 0; row < table->rows; row++) {
        double left = csv_table_number(table, row, "steps_skipped");
        double dropped = csv_table_number(table, row, "steps_dropped");
        double steps =
            csv_table_number(table, row, "step") * csv_table_number(table, row, "workers");
        if (is_of(table, row, mode) && steps > 0)
            values[count++] = ((left > 0 ? left : 0) + (dropped > 0 ? dropped : 0)) / steps;
    }
    return count > 0 ? stats_median(values, count) : (double)NAN;
}

static enum status fill_mode(struct mode *mode, const struct csv_table *table, double *values)
{
    mode->seconds = malloc((table->rows + 1) * sizeof *mode->seconds);
    if (!mode->seconds)
        return STATUS_NO_MEMORY;
    for (size_t row = 0; row < table->rows; row++) {
        if (!is_of(table, row, mode))
            continue;
        double seconds = csv_table_number(table, row, "seconds");
        bool reached = csv_table_number(table, row, "target_reached") == 1 && !isnan(seconds);
        mode->seconds[mode->runs++] = reached ? seconds : (double)INFINITY;
        mode->reached += reached;
    }
    stats_sort(mode->seconds, (size_t)mode->runs);
    mode->images_per_s = value_of(table, mode, "images_per_s", false, values);
    mode->staleness = value_of(table, mode, "staleness_mean", false, values);
    mode->staleness_most = value_of(table, mode, "staleness_max", true, values);
    mode->accuracy_most = (double)NAN; /* of the runs that missed the target */
    for (size_t row = 0; row < table->rows; row++) {
        if (is_of(table, row, mode) && csv_table_number(table, row, "target_reached") != 1)
            mode->accuracy_most =
                fmax(mode->accuracy_most, csv_table_number(table, row, "test_accuracy"));
    }
    mode->lost = lost_of(table, mode, values);
    return STATUS_OK;
}

enum status consistency_read(struct consistency_run *consistency, const char *path)
{
    enum status status;
    double *values = NULL;
    *consistency = (struct consistency_run){.compute_ms = (double)NAN};
    TRY(results_read_table(&consistency->table, path));
    const struct csv_table *table = &consistency->table;
    consistency->modes = calloc(table->rows + 1, sizeof *consistency->modes);
    values = malloc((table->rows + 1) * sizeof *values);
    TRY(consistency->modes && values ? STATUS_OK : STATUS_NO_MEMORY);
    for (size_t row = 0; row < table->rows; row++) {
        size_t m = 0;
        while (m < consistency->count && !is_of(table, row, &consistency->modes[m]))
            m++;
        if (m == consistency->count)
            consistency->modes[consistency->count++] =
                (struct mode){.name = csv_table_field(table, row, "mode"),
                              .straggler = csv_table_field(table, row, "straggler")};
        if (strcmp(csv_table_field(table, row, "straggler"), "none") == 0)
            consistency->compute_ms =
                fmax(consistency->compute_ms, csv_table_number(table, row, "compute_ms"));
    }
    for (size_t m = 0; m < consistency->count; m++)
        TRY(fill_mode(&consistency->modes[m], table, values));
out:
    if (status == STATUS_NO_MEMORY)
        log_error("%s: out of memory", path);
    free(values);
    return status;
}

void consistency_free(struct consistency_run *consistency)
{
    for (size_t m = 0; m < consistency->count; m++)
        free(consistency->modes[m].seconds);
    free(consistency->modes);
    csv_table_free(&consistency->table);
    *consistency = (struct consistency_run){0};
}

/* -------- in words ---------------------------------------------------------------------------- */

static bool is_slow(const struct mode *mode)
{
    return strcmp(mode->straggler, "none") != 0;
}

/* The median over runs. Between a run that reached the target and one that did not, it is INFINITY.
 */
static double median_of(const struct mode *mode)
{
    double one = mode->seconds[(mode->runs - 1) / 2], two = mode->seconds[mode->runs / 2];
    return isinf(two) ? two : (one + two) / 2;
}

static double most_of(const struct mode *mode)
{
    return mode->seconds[mode->runs - 1];
}

/* Adds seconds with the digits that a ratio of two needs. */
static void add_seconds(struct line *line, double seconds)
{
    if (isinf(seconds))
        line_add(line, "never");
    else
        line_add(line, seconds < 1 ? "%.3f" : seconds < 10 ? "%.2f" : "%.1f", seconds);
}

static const struct mode *find_mode(const struct consistency_run *consistency, const char *name,
                                    bool slow)
{
    for (size_t m = 0; m < consistency->count; m++) {
        if (strcmp(consistency->modes[m].name, name) == 0 &&
            is_slow(&consistency->modes[m]) == slow)
            return &consistency->modes[m];
    }
    return NULL;
}

static void print_table(const struct consistency_run *consistency, bool slow, double target,
                        FILE *out)
{
    const struct mode *bsp = find_mode(consistency, "bsp", slow);
    char heading[32];
    snprintf(heading, sizeof heading, "s to %g%%", target);
    fprintf(out, "%-7s %9s %6s  %-22s %-8s %-10s %6s\n", "mode", "images/s", "x bsp", heading,
            "reached", "staleness", "lost %");
    for (size_t m = 0; m < consistency->count; m++) {
        const struct mode *mode = &consistency->modes[m];
        char factor[16] = "-", times[64], reached[32], staleness[32] = "-";
        if (is_slow(mode) != slow)
            continue;
        if (bsp && bsp->images_per_s > 0)
            snprintf(factor, sizeof factor, "%.2f", mode->images_per_s / bsp->images_per_s);
        struct line line = line_in(times, sizeof times);
        add_seconds(&line, median_of(mode));
        if (mode->runs > 1) {
            line_add(&line, " (");
            add_seconds(&line, mode->seconds[0]);
            line_add(&line, "-");
            add_seconds(&line, most_of(mode));
            line_add(&line, ")");
        }
        snprintf(reached, sizeof reached, "%d/%d", mode->reached, mode->runs);
        if (!isnan(mode->staleness_most))
            snprintf(staleness, sizeof staleness, "%.2f, %.0f", mode->staleness,
                     mode->staleness_most);
        fprintf(out, "%-7s %9.0f %6s  %-22s %-8s %-10s %6.1f\n", mode->name, mode->images_per_s,
                factor, times, reached, staleness, isnan(mode->lost) ? 0 : 100 * mode->lost);
    }
}

/* The fastest mode except `other`. NULL: no mode reached the target in more than half of its runs.
 */
static const struct mode *best_of(const struct consistency_run *consistency, bool slow,
                                  const struct mode *other)
{
    const struct mode *best = NULL;
    for (size_t m = 0; m < consistency->count; m++) {
        const struct mode *mode = &consistency->modes[m];
        if (mode != other && is_slow(mode) == slow && !isinf(median_of(mode)) &&
            (!best || median_of(mode) < median_of(best)))
            best = mode;
    }
    return best;
}

static void add_compared(struct line *line, const struct mode *mode, const struct mode *best)
{
    line_add(line, "%s took ", mode->name);
    add_seconds(line, median_of(mode));
    line_add(line, " s, %.2f times as long", median_of(mode) / median_of(best));
}

/* Equal modes have separate ranges in one of this many cases. Two of all orders of their runs have
 * all runs of one mode first. */
static double cases_apart(int runs, int others)
{
    double orders = 1;
    for (int i = 1; i <= others; i++)
        orders *= (double)(runs + i) / i;
    return orders / 2;
}

/* Adds a doubt about an order. A single run of a mode says nothing about other seeds. Overlapping
 * ranges show that seeds differ as much. Ranges of few runs are often separate by chance. */
static void add_doubt(struct line *line, const struct mode *best, const struct mode *second)
{
    const double most_cases = 20; /* 5% */
    const double cases = cases_apart(best->runs, second->runs);
    const bool single = best->runs < 2 || second->runs < 2;
    const bool overlap = second->seconds[0] <= most_of(best);
    if (!single && !overlap && cases >= most_cases)
        return;
    line_add(line, " The order of %s and %s ", best->name, second->name);
    if (single)
        line_add(line, "is based on one run.");
    else if (overlap)
        line_add(line, "is within the difference between seeds.");
    else
        line_add(line,
                 "is based on %d and %d runs, whose ranges are separate by chance in 1 of %.0f "
                 "cases.",
                 best->runs, second->runs, cases);
}

static void print_answer(const struct consistency_run *consistency, bool slow, double target,
                         FILE *out)
{
    char text[2048];
    struct line line = line_in(text, sizeof text);
    const char *words = slow ? "One slow worker" : "All workers equally fast";
    const struct mode *best = best_of(consistency, slow, NULL);
    if (!best) {
        fprintf(out, "%s: none reached %g%% with more than half of its runs.\n", words, target);
        return;
    }
    const struct mode *second = best_of(consistency, slow, best);
    const struct mode *bsp = find_mode(consistency, "bsp", slow);
    line_add(&line, "%s: %s was first to %g%%, after ", words, best->name, target);
    add_seconds(&line, median_of(best));
    line_add(&line, " s");
    if (second) {
        line_add(&line, "; ");
        add_compared(&line, second, best);
    }
    if (bsp && bsp != best && bsp != second && !isinf(median_of(bsp))) {
        line_add(&line, ", ");
        add_compared(&line, bsp, best);
    }
    line_add(&line, ".");
    if (second)
        add_doubt(&line, best, second);
    for (size_t m = 0; m < consistency->count; m++) {
        const struct mode *mode = &consistency->modes[m];
        if (is_slow(mode) == slow && mode->reached < mode->runs)
            line_add(&line, " %s did not reach it in %d of %d runs (%.2f%% at best).", mode->name,
                     mode->runs - mode->reached, mode->runs, 100 * mode->accuracy_most);
    }
    fprintf(out, "%s\n", text);
}

/* Prints the number of completed runs per mode: "2 to 3 runs". */
static void print_runs(const struct consistency_run *consistency, FILE *out)
{
    int least = consistency->modes[0].runs, most = least;
    for (size_t m = 1; m < consistency->count; m++) {
        least = consistency->modes[m].runs < least ? consistency->modes[m].runs : least;
        most = consistency->modes[m].runs > most ? consistency->modes[m].runs : most;
    }
    if (least < most)
        fprintf(out, "Medians of %d to %d runs that ended, ranges in brackets.\n", least, most);
    else if (most == 1)
        fprintf(out, "One run of each.\n");
    else
        fprintf(out, "Medians of %d runs each, ranges in brackets.\n", most);
}

void consistency_print(const struct consistency_run *consistency, const cJSON *provenance,
                       FILE *out)
{
    const cJSON *failed = cJSON_GetObjectItemCaseSensitive(provenance, "failed"), *what;
    const cJSON *quick = cJSON_GetObjectItemCaseSensitive(provenance, "quick");
    const char *compute = field_of(consistency, "compute"), *colon = strchr(compute, ':');
    const char *step_ms = colon ? colon + 1 : compute;
    const double target = target_percent(consistency);
    const char *straggler = "none";
    bool alike = false;
    if (consistency->count == 0)
        return;
    for (size_t m = 0; m < consistency->count; m++) {
        if (is_slow(&consistency->modes[m]))
            straggler = consistency->modes[m].straggler;
        else
            alike = true;
    }
    fprintf(out, "%s, batch %s x %s, computing for %s ms a step. network=%s\n",
            field_of(consistency, "model"), field_of(consistency, "workers"),
            field_of(consistency, "batch"), step_ms, field_of(consistency, "network"));
    fprintf(out, "All modes except the ring have one dedicated server. ");
    print_runs(consistency, out);
    fprintf(out,
            "Staleness: steps of the slowest other worker that are missing in the parameters, mean "
            "and largest.\n"
            "Lost: steps that a late worker skipped, or whose gradients came too late.\n");
    if (alike) {
        fprintf(out, "\nAll workers equally fast:\n");
        print_table(consistency, false, target, out);
    }
    if (strcmp(straggler, "none") != 0) {
        const char *factor = strchr(straggler, ':');
        fprintf(out, "\nOne slow: worker %.*s computes %s times as long:\n",
                (int)strcspn(straggler, ":"), straggler, factor ? factor + 1 : "?");
        print_table(consistency, true, target, out);
    }
    fprintf(out, "\n");
    if (consistency->compute_ms > 1.25 * strtod(step_ms, NULL))
        fprintf(out,
                "Too few cores: a step computed for up to %.0f ms instead of %s. Use a larger "
                "--step-ms, or fewer workers.\n",
                consistency->compute_ms, step_ms);
    if (cJSON_IsNumber(quick) && quick->valuedouble > 0)
        fprintf(
            out,
            "--quick: few steps and a low target, to show the output. Run without --quick for an "
            "answer.\n");
    if (alike)
        print_answer(consistency, false, target, out);
    if (strcmp(straggler, "none") != 0)
        print_answer(consistency, true, target, out);
    cJSON_ArrayForEach(what, failed)
    {
        if (cJSON_IsString(what))
            fprintf(out, "FAILED, not in the tables: %s\n", what->valuestring);
    }
}

/* -------- figure and page --------------------------------------------------------------------- */

static void put_case(FILE *out, const struct mode *mode)
{
    if (!mode) {
        fprintf(out, " NaN NaN NaN NaN");
        return;
    }
    fprintf(out, " %g", mode->images_per_s);
    const double seconds[] = {median_of(mode), mode->seconds[0], most_of(mode)};
    for (int i = 0; i < 3; i++)
        fprintf(out, " %g", isinf(seconds[i]) ? -1 : seconds[i]);
}

static bool is_first(const struct consistency_run *consistency, size_t index)
{
    for (size_t m = 0; m < index; m++) {
        if (strcmp(consistency->modes[m].name, consistency->modes[index].name) == 0)
            return false;
    }
    return true;
}

struct quoted {
    char text[80];
};

/* Makes a text safe inside single quotes. */
static struct quoted quoted(const char *text)
{
    struct quoted result = {""};
    snprintf(result.text, sizeof result.text, "%s", text);
    text_replace(result.text, '\'', ' ');
    return result;
}

enum status consistency_write_figure(const struct consistency_run *consistency, const char *dir)
{
    FILE *modes = run_open(dir, "modes.txt"), *facts = run_open(dir, "consistency_facts.gp");
    bool failed = !modes || !facts;
    const char *slow = "";
    for (size_t m = 0; !failed && m < consistency->count; m++) {
        const struct mode *mode = &consistency->modes[m];
        const char *factor = strchr(mode->straggler, ':');
        slow = factor ? factor + 1 : slow;
        if (!is_first(consistency, m))
            continue;
        fprintf(modes, "%s", mode->name);
        put_case(modes, find_mode(consistency, mode->name, false));
        put_case(modes, find_mode(consistency, mode->name, true));
        fprintf(modes, "\n");
    }
    if (!failed) {
        const char *compute = strchr(field_of(consistency, "compute"), ':');
        /* Inside single quotes only the quote is special for gnuplot. */
        fprintf(facts,
                "SLOW = '%s times as long'\nTARGET = '%g'\nFACTS = '%s, batch %s x %s, "
                "computing for %s ms a step; network=%s'\n",
                quoted(slow).text, target_percent(consistency),
                quoted(field_of(consistency, "model")).text,
                quoted(field_of(consistency, "workers")).text,
                quoted(field_of(consistency, "batch")).text,
                quoted(compute ? compute + 1 : "?").text,
                quoted(field_of(consistency, "network")).text);
    }
    failed = failed || ferror(modes) || ferror(facts);
    failed = (modes && fclose(modes) != 0) || failed;
    failed = (facts && fclose(facts) != 0) || failed;
    return failed ? STATUS_IO : STATUS_OK;
}

cJSON *consistency_json(const struct consistency_run *consistency)
{
    cJSON *modes = cJSON_CreateArray();
    for (size_t m = 0; m < consistency->count; m++) {
        const struct mode *mode = &consistency->modes[m];
        cJSON *object = cJSON_CreateObject(), *dots;
        cJSON_AddItemToArray(modes, object);
        cJSON_AddStringToObject(object, "mode", mode->name);
        cJSON_AddStringToObject(object, "straggler", mode->straggler);
        run_add_number(object, "runs", mode->runs);
        run_add_number(object, "reached", mode->reached);
        run_add_number(object, "seconds", median_of(mode));
        run_add_number(object, "images_per_s", mode->images_per_s);
        run_add_number(object, "target",
                       csv_table_number(&consistency->table, 0, "target_accuracy"));
        dots = cJSON_AddArrayToObject(object, "dots");
        for (int r = 0; r < mode->reached; r++)
            cJSON_AddItemToArray(dots, cJSON_CreateNumber(mode->seconds[r]));
    }
    return modes;
}
