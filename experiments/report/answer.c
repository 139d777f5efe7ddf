#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "experiments/report/report.h"

#define TEXT(...)                                                                                  \
    do {                                                                                           \
        struct text text_;                                                                         \
        snprintf(text_.text, sizeof text_.text, __VA_ARGS__);                                      \
        return text_;                                                                              \
    } while (0)

struct text text_size(double bytes)
{
    if (bytes >= 1e6)
        TEXT("%.1f MB", bytes / 1e6);
    if (bytes >= 1e3)
        TEXT("%.1f kB", bytes / 1e3);
    TEXT("%.0f B", bytes);
}

struct text text_time(double us)
{
    if (isnan(us))
        TEXT("-");
    if (us < 1e3)
        TEXT("%.0f us", us);
    if (us >= 1e6)
        TEXT("%.2f s", us / 1e6);
    TEXT(us >= 1e5 ? "%.0f ms" : "%.1f ms", us / 1e3);
}

struct text text_count(double number)
{
    struct text grouped = {"-"};
    if (!isnan(number))
        text_grouped(number, grouped.text, sizeof grouped.text);
    return grouped;
}

struct text text_percent(double share)
{
    if (isnan(share))
        TEXT("-");
    TEXT("%.1f%%", 100 * share);
}

struct text text_ratio(double above, double below)
{
    if (!isfinite(above / below))
        TEXT("-");
    TEXT("%.2f", above / below);
}

struct text text_counted(double number, const char *word)
{
    TEXT("%.0f %s%s", number, word, number == 1 ? "" : "s");
}

struct text text_point(const struct point *point)
{
    if (!point || !judge_has_time(point->time.state))
        TEXT("-");
    TEXT("%.40s%s", text_time(point->time.median_us).text,
         point->time.state == STATE_LIMITED     ? "*"
         : point->time.state == STATE_DISTURBED ? "+"
                                                : "");
}

struct text text_interval(const struct measured *time)
{
    if (isnan(time->low_us))
        TEXT("-");
    TEXT("%.28s-%.28s", text_time(time->low_us).text, text_time(time->high_us).text);
}

struct text text_comparison(const struct comparison *found, int digits)
{
    enum { DIGITS_MOST = 8 };
    double nearest = found->low > 1 ? found->low - 1 : 1 - found->high;
    if (isnan(found->ratio))
        TEXT("-");
    if (isnan(found->low))
        TEXT("%.*f", digits, found->ratio);
    while (digits < DIGITS_MOST && nearest > 0 && nearest < 0.5 * pow(10, -digits))
        digits++;
    TEXT("%.*f (%.*f to %.*f)", digits, found->ratio, digits, found->low, digits, found->high);
}

static bool is_steady(const struct point *point)
{
    return !*point->unsteady;
}

struct comparison answer_compare(const struct point *first, const struct point *second)
{
    struct comparison found = starts_compare(&first->time, &second->time);
    if (found.verdict != VERDICT_NONE && !(is_steady(first) && is_steady(second)))
        found =
            (struct comparison){found.ratio, (double)NAN, (double)NAN, VERDICT_NONE, "not steady"};
    return found;
}

struct text text_verdict(const struct point *above, const struct point *below, int digits)
{
    if (!above || !below)
        TEXT("-");
    struct comparison found = answer_compare(above, below);
    if (isnan(found.ratio))
        TEXT("-");
    if (found.verdict == VERDICT_SAME)
        TEXT("no difference");
    if (found.verdict == VERDICT_NONE)
        TEXT("(%.*f)", digits, found.ratio);
    return text_comparison(&found, digits);
}

void text_print_point(FILE *out, const struct point *point)
{
    fprintf(out, "%s%s%s, %s, %s: ", point->name, *point->variant ? ", " : "", point->variant,
            text_counted(point->workers, "worker").text, text_size((double)point->bytes).text);
}

void text_replace(char *text, char from, char to)
{
    while ((text = strchr(text, from)))
        *text = to;
}

const char *text_next_entry(const char *entry)
{
    entry += strcspn(entry, ";");
    return entry + (*entry == ';');
}

const char answer_names[] =
    "W: number of workers. servers: on further machines. in workers: on the workers' machines.\n"
    "                + W/2: and W/2 on further machines. in the switch: where the links meet. rhd: "
    "halving-doubling.\n"
    "                tree: double binary tree. MPI_Allreduce: the fastest of its algorithms.";

/* The number of machines that a configuration with this number of workers would need. 0: it was not
 * left out. */
static int machines_for(const struct run *run, const char *who, int workers)
{
    char name[64], found[64];
    int found_workers, machines;
    snprintf(name, sizeof name, "%s", who);
    text_replace(name, ' ', '-');
    for (const char *entry = run->left_out; *entry; entry = text_next_entry(entry)) {
        if (sscanf(entry, "%63s %d %d", found, &found_workers, &machines) == 3 &&
            strcmp(found, name) == 0 && found_workers == workers)
            return machines;
    }
    return 0;
}

/* The largest number of workers with which the column and the ring were measured; 0: none.
 * `steady`: only undisturbed measurements. `several`: only with two starts of each. */
static int most_workers(const struct results *results, enum column column, bool steady,
                        bool several)
{
    for (size_t i = results->worker_count; i > 0; i--) {
        const int workers = results->workers[i - 1];
        const uint64_t bytes = results_focus(results, workers);
        const struct point *point = results_column(results, column, workers, bytes);
        const struct point *ring = results_column(results, COLUMN_RING, workers, bytes);
        if (point && ring && (!steady || (is_steady(point) && is_steady(ring))) &&
            (!several || (point->time.starts > 1 && ring->time.starts > 1)))
            return workers;
    }
    return 0;
}

static void add_name(struct line *line, const struct results *results, enum column column,
                     int workers, uint64_t bytes)
{
    char who[64], name[64];
    const struct point *mpi = results_column(results, COLUMN_MPI, workers, bytes);
    results_column_name(column, workers, who, sizeof who);
    results_name(name, sizeof name, column == COLUMN_MPI && mpi ? mpi->who : who, workers);
    line_add(line, "%s", name);
}

static void add_verdict(struct line *line, const struct comparison *found)
{
    switch (found->verdict) {
    case VERDICT_SAME:
        line_add(line, "no difference from the ring was measured");
        break;
    case VERDICT_FASTER:
        line_add(line, "faster than the ring, %s times its time", text_comparison(found, 2).text);
        break;
    case VERDICT_SLOWER:
        line_add(line, "slower than the ring, %s times its time", text_comparison(found, 2).text);
        break;
    default:
        if (isnan(found->ratio))
            line_add(line, "no verdict (%s)", found->why);
        else
            line_add(line, "%.2f times the ring's time, without a verdict (%s)", found->ratio,
                     found->why);
    }
}

static void add_marks(struct line *line, const struct point *one, const struct point *two)
{
    if (one->time.state == STATE_LIMITED || two->time.state == STATE_LIMITED)
        line_add(line, "; CPU-limited*");
    if (one->time.state == STATE_DISTURBED || two->time.state == STATE_DISTURBED)
        line_add(line, "; the machine was busy with other work+");
}

/* Adds a claim, such as "NAME: slower than the ring, 2.66 (2.60 to 2.71) times its time; theory:
 * 2.67." If the measurement with the most workers is missing, disturbed, or from one start only,
 * uses fewer workers. */
static void add_claim(struct answer *answer, const struct run *run, enum column column)
{
    const struct results *results = &run->results;
    const int most = results->workers[results->worker_count - 1];
    const int measured = most_workers(results, column, false, false);
    int steady = most_workers(results, column, true, true);
    char who[64];
    struct claim *claim = &answer->claims[answer->count];
    struct line line = line_in(claim->text, sizeof claim->text);
    results_column_name(column, most, who, sizeof who);
    const int needed = machines_for(run, who, most);
    if (steady == 0)
        steady = most_workers(results, column, true, false);
    const int workers = steady > 0 ? steady : measured > 0 ? measured : most;
    const uint64_t bytes = results_focus(results, workers);
    const struct point *point = results_column(results, column, workers, bytes);
    const struct point *ring = results_column(results, COLUMN_RING, workers, bytes);
    claim->verdict = VERDICT_NONE;
    add_name(&line, results, column, workers, bytes);
    if (!point || !ring) {
        if (needed == 0)
            return;
        line_add(&line, ": not measured");
    } else {
        struct comparison found = answer_compare(point, ring);
        claim->verdict = found.verdict;
        line_add(&line, ": ");
        add_verdict(&line, &found);
        if (isfinite(point->theory_us / ring->theory_us))
            line_add(&line, "; theory: %s", text_ratio(point->theory_us, ring->theory_us).text);
        if (workers != most)
            line_add(&line, "; with %s", text_counted(workers, "worker").text);
        if (steady > 0 && steady < measured)
            line_add(&line, " (with %d: not steady, or one start)", measured);
    }
    if (needed > 0)
        line_add(&line, " (%s would need %d machines)", text_counted(most, "worker").text, needed);
    if (point && ring)
        add_marks(&line, point, ring);
    line_add(&line, ".");
    answer->has_one_server = answer->has_one_server || (column == COLUMN_PS1 && answer->count == 0);
    answer->count++;
}

/* -------- by size ----------------------------------------------------------------------------- */

/* The number of workers with which the most sizes have a verdict; among equals that with the most
 * sizes of both, then the largest. 0: none. */
static int workers_by_size(const struct results *results, enum column column)
{
    int best = 0;
    size_t most = 0;
    for (size_t w = 0; w < results->worker_count; w++) {
        size_t count = 0;
        const int workers = results->workers[w];
        for (size_t s = 0; s < results->size_count; s++) {
            const struct point *point = results_column(results, column, workers, results->sizes[s]);
            const struct point *ring =
                results_column(results, COLUMN_RING, workers, results->sizes[s]);
            if (!point || !ring)
                continue;
            bool judged = answer_compare(point, ring).verdict != VERDICT_NONE;
            count += judged ? results->size_count + 1 : 1;
        }
        if (count > 0 && count >= most && workers > 1) {
            most = count;
            best = workers;
        }
    }
    return best;
}

/* The mark of the tables: "*": the processors limited one of them. "+": other work disturbed one.
 */
static const char *mark_of(const struct point *one, const struct point *two)
{
    const enum state one_state = one->time.state, two_state = two->time.state;
    return one_state == STATE_LIMITED || two_state == STATE_LIMITED       ? "*"
           : one_state == STATE_DISTURBED || two_state == STATE_DISTURBED ? "+"
                                                                          : "";
}

/* Adds the sizes with one verdict: "; faster at 4 B (0.44 times), 4.1 kB (0.50 times)". Returns
 * their number. */
static size_t add_sizes(struct line *line, const struct results *results, enum column column,
                        int workers, enum verdict verdict, const char *words)
{
    size_t count = 0;
    for (size_t s = 0; s < results->size_count; s++) {
        const uint64_t bytes = results->sizes[s];
        const struct point *point = results_column(results, column, workers, bytes);
        const struct point *ring = results_column(results, COLUMN_RING, workers, bytes);
        if (!point || !ring)
            continue;
        struct comparison found = answer_compare(point, ring);
        if (found.verdict != verdict)
            continue;
        line_add(line, "%s%s", count == 0 ? words : ", ", text_size((double)bytes).text);
        if (verdict == VERDICT_FASTER || verdict == VERDICT_SLOWER)
            line_add(line, " (%.2f times%s)", found.ratio, mark_of(point, ring));
        count++;
    }
    return count;
}

/* Adds the claim by size: only measured sizes, each with its own verdict. */
static void add_by_size(struct answer *answer, const struct results *results)
{
    static const struct {
        enum verdict verdict;
        const char *words;
    } kinds[] = {{VERDICT_FASTER, "faster at"},
                 {VERDICT_SAME, "no difference at"},
                 {VERDICT_SLOWER, "slower at"},
                 {VERDICT_NONE, "no verdict at"}};
    const int workers = workers_by_size(results, COLUMN_PS1);
    struct claim *claim = &answer->claims[answer->count];
    struct line line = line_in(claim->text, sizeof claim->text);
    size_t count = 0;
    if (workers == 0)
        return;
    line_add(&line, "%s compared with the ring, by size, %s:", results_column_title(COLUMN_PS1),
             text_counted(workers, "worker").text);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        char words[32];
        snprintf(words, sizeof words, "%s%s ", count > 0 ? "; " : " ", kinds[k].words);
        count += add_sizes(&line, results, COLUMN_PS1, workers, kinds[k].verdict, words);
    }
    line_add(&line, ". No other size was compared.");
    claim->verdict = VERDICT_NONE;
    answer->count++;
}

/* -------- in six lines ------------------------------------------------------------------------ */

/* The point of a column at the size of the tables; NULL: not measured, or without a time. */
static const struct point *focus_point(const struct results *results, enum column column,
                                       int workers)
{
    const struct point *point =
        results_column(results, column, workers, results_focus(results, workers));
    return point && judge_has_time(point->time.state) ? point : NULL;
}

/* The columns that need only the workers' machines. */
static const enum column inside[] = {COLUMN_RING, COLUMN_RHD, COLUMN_DIRECT,
                                     COLUMN_TREE, COLUMN_INW, COLUMN_IN1};
enum { INSIDE = sizeof inside / sizeof *inside };

/* The column with the least median among those whose lead over the ring has a
 * verdict. If there is none, the ring. */
static enum column find_winner(const struct results *results, int workers)
{
    const struct point *ring = focus_point(results, COLUMN_RING, workers), *best = ring;
    enum column winner = COLUMN_RING;
    for (size_t c = 0; c < INSIDE; c++) {
        const struct point *point = focus_point(results, inside[c], workers);
        if (point && point->time.median_us < best->time.median_us &&
            answer_compare(point, ring).verdict == VERDICT_FASTER) {
            best = point;
            winner = inside[c];
        }
    }
    return winner;
}

/* Adds the other columns that have this verdict compared with the winner. */
static void add_others(struct line *line, const struct results *results, int workers,
                       enum column winner, enum verdict verdict, const char *words)
{
    const struct point *best = focus_point(results, winner, workers);
    size_t count = 0;
    for (size_t c = 0; c < INSIDE; c++) {
        const struct point *point = focus_point(results, inside[c], workers);
        if (inside[c] == winner || !point)
            continue;
        if (answer_compare(point, best).verdict != verdict)
            continue;
        line_add(line, "%s", count++ == 0 ? words : "; ");
        add_name(line, results, inside[c], point->workers, point->bytes);
        line_add(line, "%s", mark_of(point, point));
    }
    line_add(line, "%s", count > 0 ? "." : "");
}

static void add_ratio(struct line *line, const struct point *point, const struct point *winner)
{
    bool same = answer_compare(point, winner).verdict == VERDICT_SAME;
    line_add(line, "%s%s", text_verdict(point, winner, 2).text,
             same ? "" : " times the winner's time");
    add_marks(line, point, winner);
}

/* The winner is one of psring's own ways. */
static void add_mpi(struct line *line, const struct results *results, int workers,
                    const struct point *winner)
{
    const struct point *point = focus_point(results, COLUMN_MPI, workers);
    if (!point || answer_compare(point, winner).verdict != VERDICT_FASTER)
        return;
    line_add(line, " Faster than the winner: ");
    add_name(line, results, COLUMN_MPI, workers, point->bytes);
    line_add(line, ", ");
    add_ratio(line, point, winner);
    line_add(line, ".");
}

static void add_change(struct line *line, const struct results *results, int workers,
                       const struct point *winner)
{
    static const enum column outside[] = {COLUMN_PSW, COLUMN_MIXED};
    const int by_size = workers_by_size(results, COLUMN_PS1);
    char text[ANSWER_TEXT];
    struct line sizes = line_in(text, sizeof text);
    bool measured = false;
    for (size_t c = 0; c < sizeof outside / sizeof *outside; c++) {
        const struct point *point = focus_point(results, outside[c], workers);
        if (!point)
            continue;
        line_add(line, "%s", measured ? ". " : "");
        measured = true;
        add_name(line, results, outside[c], point->workers, point->bytes);
        line_add(line, ": ");
        add_ratio(line, point, winner);
    }
    if (!measured)
        line_add(line, "Further machines as servers were not measured");
    if (by_size > 0 && add_sizes(&sizes, results, COLUMN_PS1, by_size, VERDICT_FASTER, "") > 0)
        line_add(line, ". %s is faster than the ring at %s", results_column_title(COLUMN_PS1),
                 text);
    line_add(line, ".");
}

/* Makes these lines. They are about the largest number of workers with which the ring and one
 * server have undisturbed measurements from two starts. Without any: the largest of all. */
static void add_brief(struct answer *answer, const struct results *results)
{
    struct line line[ANSWER_BRIEF_LINES];
    int workers = most_workers(results, COLUMN_PS1, true, true);
    const bool steady = workers > 0;
    if (!steady)
        workers = results->workers[results->worker_count - 1];
    const struct point *ring = focus_point(results, COLUMN_RING, workers);
    const struct point *server = focus_point(results, COLUMN_PS1, workers);
    for (int i = 0; i < ANSWER_BRIEF_LINES; i++)
        line[i] = line_in(answer->brief[i], sizeof answer->brief[i]);
    line_add(&line[5], "Names:        %s", answer_names);
    if (!ring) {
        line_add(&line[0], "Winner:       unknown, because the ring was not measured");
        return;
    }
    const enum column column = find_winner(results, workers);
    const struct point *winner = focus_point(results, column, workers);
    struct comparison lead = {.verdict = VERDICT_NONE, .why = "the server was not measured"};
    if (server)
        lead = answer_compare(server, winner);
    const bool judged = lead.verdict != VERDICT_NONE;
    line_add(&line[0], "Winner:       %s", judged ? "" : "no verdict. ");
    add_name(&line[0], results, column, winner->workers, winner->bytes);
    line_add(&line[0], ", %s (%s, %s, no further machine).", text_point(winner).text,
             text_counted(winner->workers, "worker").text, text_size((double)winner->bytes).text);
    add_others(&line[0], results, workers, column, VERDICT_SAME, " No difference from it: ");
    add_others(&line[0], results, workers, column, VERDICT_NONE, " Without a verdict: ");
    add_mpi(&line[0], results, workers, winner);
    line_add(&line[1], "By how much:  ");
    if (server) {
        add_name(&line[1], results, COLUMN_PS1, server->workers, server->bytes);
        line_add(&line[1], ": ");
        add_ratio(&line[1], server, winner);
    } else
        line_add(&line[1], "%s was not measured", results_column_title(COLUMN_PS1));
    line_add(&line[1], ".");
    line_add(&line[2], "By theory:    ");
    if (server && isfinite(server->theory_us / winner->theory_us))
        line_add(&line[2], "%s times. ", text_ratio(server->theory_us, winner->theory_us).text);
    else
        line_add(&line[2], "unknown. ");
    if (!isnan(winner->efficiency))
        line_add(&line[2], "The winner reaches %.1f%% of what the workers' links allow.",
                 100 * winner->efficiency);
    line_add(&line[3], "Confidence:   ");
    if (judged) {
        line_add(&line[3], "95%%, over %s", text_counted(winner->time.starts, "start").text);
        add_marks(&line[3], server, winner);
        line_add(&line[3], ". In parentheses: intervals of ratios.");
    } else
        line_add(&line[3], "none: %s.", lead.why);
    if (!steady)
        line_add(&line[3], " No number of workers has a steady measurement of both.");
    line_add(&line[4], "Would change: ");
    add_change(&line[4], results, workers, winner);
}

/* -------- the whole --------------------------------------------------------------------------- */

static void add_lead(struct answer *answer, const struct results *results)
{
    const int workers = most_workers(results, COLUMN_RING, false, false);
    struct line line = line_in(answer->lead, sizeof answer->lead);
    if (workers == 0)
        return;
    const uint64_t bytes = results_focus(results, workers);
    const struct point *ring = results_column(results, COLUMN_RING, workers, bytes);
    line_add(&line, "%s, a message of %s, this network. The ring took %s",
             text_counted(workers, "worker").text, text_size((double)bytes).text,
             text_point(ring).text);
    if (!isnan(ring->time.low_us))
        line_add(&line, " (95%% interval %s, %s)", text_interval(&ring->time).text,
                 text_counted(ring->time.starts, "start").text);
    else
        line_add(&line, " (%s, without an interval)",
                 text_counted(ring->time.starts, "start").text);
    if (*ring->unsteady)
        line_add(&line, " (not steady: %s)", ring->unsteady);
    if (!isnan(ring->efficiency))
        line_add(&line, ", %.1f%% of the best that workers alone can reach",
                 100 * ring->efficiency);
    line_add(&line, ".");
}

void answer_make(struct answer *answer, const struct run *run)
{
    static const enum column columns[] = {COLUMN_PS1,    COLUMN_IN1,   COLUMN_INW,
                                          COLUMN_PSW,    COLUMN_MIXED, COLUMN_RHD,
                                          COLUMN_DIRECT, COLUMN_TREE,  COLUMN_MPI};
    *answer = (struct answer){0};
    if (run->state == STATE_WRONG || run->results.worker_count == 0)
        return;
    if (strncmp(run->results.network, "loopback", 8) == 0) {
        snprintf(
            answer->lead, sizeof answer->lead,
            "network=loopback: no per-node limit, topology effects do not show. The tables "
            "compare\n  how much work each implementation makes for this machine's processors.");
        return;
    }
    add_lead(answer, &run->results);
    if (!*answer->lead)
        return;
    add_brief(answer, &run->results);
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        add_claim(answer, run, columns[c]);
    add_by_size(answer, &run->results);
    answer->note =
        "Theory: the ring is bandwidth-optimal among the workers alone. Servers on further "
        "machines can be faster,\n  because they add links. In brackets: 95% intervals, "
        "which cover starts as well as iterations.\n  A verdict needs two starts of both "
        "configurations.";
}
