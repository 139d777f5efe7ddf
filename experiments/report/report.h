/* The output of psring report and psring compare: sentences, tables, pages and figures. */
#ifndef PSRING_EXPERIMENTS_REPORT_REPORT_H
#define PSRING_EXPERIMENTS_REPORT_REPORT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/csv.h"
#include "common/base/status.h"
#include "experiments/bench/judge.h"
#include "experiments/bench/results.h"
#include "experiments/report/run.h"

/* -------- numbers and ratios as words --------------------------------------------------------- */

/* Each result contains its text; print it with .text. */

struct text {
    char text[64];
};

/* "ring, over zmq, fp16, 4 workers, 4.8 MB: " */
void text_print_point(FILE *out, const struct point *point);

/* Replaces each `from` in `text` by `to`. */
void text_replace(char *text, char from, char to);
/* The text after the next ';', or the end. */
const char *text_next_entry(const char *entry);

struct text text_size(double bytes);
struct text text_time(double us);      /* "-": unknown */
struct text text_count(double number); /* "1,234,567" */
struct text text_percent(double share);
struct text text_ratio(double above, double below);        /* "-": unknown */
struct text text_counted(double number, const char *word); /* "1 worker", "4 workers" */

/* The time of a point, which may be NULL. "*": the processors limited it. "+": other work disturbed
 * it. */
struct text text_point(const struct point *point);
/* "301 ms-303 ms", or "-". */
struct text text_interval(const struct measured *time);

/* "2.66 (2.60 to 2.71)", with at least `digits` decimals, and with more if the difference would not
 * show. */
struct text text_comparison(const struct comparison *found, int digits);
/* Compares two measured points; the only place where summary and page get a verdict. There is none
 * if one of the two is not steady. */
struct comparison answer_compare(const struct point *first, const struct point *second);

/* The same for a table cell: also "no difference", or "(2.66)" without a verdict. */
struct text text_verdict(const struct point *above, const struct point *below, int digits);

/* The answer of a run: sentences with verdicts on whether the ring or a parameter server is faster.
 */

enum { ANSWER_CLAIMS_MOST = 16, ANSWER_TEXT = 640, ANSWER_BRIEF_LINES = 6 };

struct answer {
    /* The winner without further machines, its lead, theory, the confidence, what would change the
     * winner, and answer_names. "": no ring was measured, or links had no limit. */
    char brief[ANSWER_BRIEF_LINES][ANSWER_TEXT];
    char lead[ANSWER_TEXT]; /* the measured case and the ring's time; "": no answer */
    struct claim {
        char text[ANSWER_TEXT];
        enum verdict verdict; /* compared with the ring's time */
    } claims[ANSWER_CLAIMS_MOST];
    size_t count;
    bool has_one_server; /* claims[0] is about one dedicated server */
    const char *note;    /* explanation, or NULL */
};

/* Explains the names of configurations (results_name). */
extern const char answer_names[];

/*
 * Makes the answer. Every claim compares two configurations measured with the same workers and
 * size, from at least two starts of each. Otherwise it gives the reason for the missing verdict.
 * Sizes or configurations that were not measured have no claim. A run whose state is WRONG has no
 * answer.
 */
void answer_make(struct answer *answer, const struct run *run);

/* summary.txt: the results of a run, in sentences and tables for a newcomer. */

/* Prints the whole summary. For a run whose state is WRONG it starts with that and prints no time.
 */
void summary_print(const struct run *run, FILE *out);

/* Prints its parts, for the page. The head has network, links, checks and disturbed measurements.
 * The tables are numbered. */
void summary_print_head(const struct run *run, FILE *out);
void summary_print_tables(const struct run *run, FILE *out);

/* For run_scaling.sh: prints the rows to measure again, one per line: "CONFIGURATION WORKERS LINE
 * REASON". Sorted by workers, descending; among equals the ring comes first. */
void summary_print_unsteady(const struct run *run, FILE *out);

/* -------- summary_tables.c: tables of single parts of a run, each with its heading -------------
 */

/* Prints a table heading with the next number. */
void summary_heading(int *section, FILE *out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void summary_print_processors(const struct run *run, int *section, FILE *out);
void summary_print_variants(const struct run *run, int *section, FILE *out);
void summary_print_overlap(const struct run *run, int *section, FILE *out);
void summary_print_slots(const struct run *run, int *section, FILE *out);
void summary_print_published(const struct run *run, int *section, FILE *out);
void summary_print_gpus(const struct run *run, int *section, FILE *out);
void summary_print_left_out(const struct run *run, int *section, FILE *out);
/* A part of winner_map.csv, which psring predict --map writes. Nothing without that file. */
void summary_print_map(const struct run *run, int *section, FILE *out);

/*
 * A page in one file: a template of plots/report with its placeholders filled in, inside the frame
 * of all pages (frame.html).
 *
 *     {{NAME}}       on its own line or within one: the HTML of NAME
 *     {{if NAME}}    to {{end}}, on their own lines: left out unless NAME has HTML
 *
 * Templates, styles and scripts are part of the program.
 */

enum { PAGE_INSERTS_MOST = 48 };

/* The HTML for each NAME. Initialise to zero. The page owns `html`. */
struct page {
    struct page_insert {
        const char *name; /* borrowed */
        char *html;
    } inserts[PAGE_INSERTS_MOST];
    size_t count;
    FILE *open; /* stream of the last insert, until page_end */
    size_t size;
};

/* Opens a stream for the HTML of `name`, until page_end. NULL: no memory (logged). */
FILE *page_begin(struct page *page, const char *name);
enum status page_end(struct page *page);
/* Inserts a text, escaped by page_put_text. */
enum status page_put(struct page *page, const char *name, const char *text);
void page_free(struct page *page);

/* Writes text, escaped for HTML and for attributes in double quotes. */
void page_put_text(FILE *out, const char *text);

/* Inserts the data of the scripts as JSON. No character in it can end the enclosing element. */
enum status page_put_json(struct page *page, const cJSON *data);

/* Inserts the style sheets and scripts. */
enum status page_put_assets(struct page *page);

/* Writes `path` from the template, completely or not at all. Inserts the title and the main part,
 * so call it once. STATUS_IO is logged. */
enum status page_write(struct page *page, const char *title, const char *template_name,
                       const char *path);

/* One all-reduce, of the same kind and size in both runs, with all its starts. */
struct compare_pair {
    size_t before, after; /* first rows in the tables */
    struct measured time_before, time_after;
    struct comparison found; /* after / before */
};

struct compare {
    struct csv_table before, after; /* bench.csv of both */
    struct compare_pair *pairs;     /* in the order of `after` */
    size_t count;
    size_t ambiguous; /* left out: only one table distinguishes them */
    size_t wrong;     /* all-reduces with wrong sums: pairs, and `alone` */
    struct compare_alone {
        bool is_before;
        size_t row;
    } * alone; /* first rows with wrong sums of all-reduces that are in no pair, in file order */
    size_t alone_count;
};

/* argv[0] is the name of the command. Errors, also STATUS_USAGE, are logged. */
enum status compare_command(int argc, char **argv);

/* argv[0] is the name of the command. `replay` reads the timelines of the animation; may be NULL.
 * Errors, also STATUS_USAGE, are logged. */
enum status report_command(int argc, char **argv, run_replay *replay);

/* The files of plots/report, which the build embeds (common/cmake/embed.cmake). */
struct report_asset {
    const char *name;          /* "charts.js"; NULL ends the list */
    const unsigned char *text; /* ends with 0 */
};

extern const struct report_asset report_assets[];

#endif
