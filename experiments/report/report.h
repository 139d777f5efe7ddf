/* What psring report and psring compare print: sentences, tables, pages and figures. */
#ifndef PSRING_EXPERIMENTS_REPORT_REPORT_H
#define PSRING_EXPERIMENTS_REPORT_REPORT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/csv.h"
#include "common/base/status.h"
#include "experiments/bench/judge.h"
#include "experiments/bench/results.h"
#include "experiments/report/run.h"

/* -------- numbers and ratios as words --------------------------------------------------------- */

/* Each result holds its text: print it with .text. */

struct text {
    char text[64];
};

/* "ring, over zmq, fp16, 4 workers, 4.8 MB: " */
void text_print_point(FILE *out, const struct point *point);

/* Each `from` in `text` becomes `to`. */
void text_replace(char *text, char from, char to);
/* What follows the next ';', or the end. */
const char *text_next_entry(const char *entry);

struct text text_size(double bytes);
struct text text_time(double us);      /* "-": not known */
struct text text_count(double number); /* "1,234,567" */
struct text text_percent(double share);
struct text text_ratio(double above, double below);        /* "-": not known */
struct text text_counted(double number, const char *word); /* "1 worker", "4 workers" */

/* The time of a point that may be NULL, marked "*" where the processors limited it and "+" where
 * other work disturbed it. */
struct text text_point(const struct point *point);
/* "301 ms-303 ms", or "-". */
struct text text_interval(const struct measured *time);

/* "2.66 (2.60 to 2.71)", with as many digits, `digits` at least, as show that a difference is one.
 */
struct text text_comparison(const struct comparison *found, int digits);
/* The same for a table's cell: "no difference", or "(2.66)" where there is no verdict. */
struct text text_verdict(const struct point *above, const struct point *below, int digits);

/* The answer of a run: is the ring or a parameter server faster, in sentences with their verdicts.
 */

enum { ANSWER_CLAIMS_MOST = 16, ANSWER_TEXT = 640 };

struct answer {
    char lead[ANSWER_TEXT]; /* what was measured, and the ring's time; "": nothing to say */
    struct claim {
        char text[ANSWER_TEXT];
        enum verdict verdict; /* against the ring, by time */
    } claims[ANSWER_CLAIMS_MOST];
    size_t count;
    bool has_one_server; /* claims[0] is about one dedicated server */
    const char *note;    /* how to read it; NULL: none */
};

/*
 * Every claim compares two configurations that were measured with the same workers and size, from
 * two starts of each at least. Otherwise it gives the reason why there is no verdict. No claim is
 * about sizes or configurations that were not measured. Nothing is claimed of a run whose state is
 * WRONG.
 */
void answer_make(struct answer *answer, const struct run *run);

/* summary.txt: what a run has found, in sentences and tables for a newcomer. */

/* All of it. A run whose state is WRONG opens with that, and no time is printed. */
void summary_print(const struct run *run, FILE *out);

/* Its parts, for the page. The head has network, links, checks and disturbed measurements. The
 * answer has a line for each sentence. The tables are numbered. */
void summary_print_head(const struct run *run, FILE *out);
void summary_print_tables(const struct run *run, FILE *out);

/* For run_scaling.sh: what should be measured again, a line each, "CONFIGURATION WORKERS START
 * REASON"; START counts from 0. The most workers come first, and of these the ring. */
void summary_print_unsteady(const struct run *run, FILE *out);

/* -------- summary_tables.c: tables of single parts of a run, each with its heading -------------
 */

/* A table's heading, with the next number. */
void summary_heading(int *section, FILE *out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void summary_print_processors(const struct run *run, int *section, FILE *out);
void summary_print_variants(const struct run *run, int *section, FILE *out);
void summary_print_overlap(const struct run *run, int *section, FILE *out);
void summary_print_slots(const struct run *run, int *section, FILE *out);
void summary_print_published(const struct run *run, int *section, FILE *out);
void summary_print_gpus(const struct run *run, int *section, FILE *out);
void summary_print_left_out(const struct run *run, int *section, FILE *out);

/*
 * A page that is one file: a template of plots/report with its places filled in, in the frame that
 * all pages have (frame.html).
 *
 *     {{NAME}}       a line of its own, or in one: what stands for NAME
 *     {{if NAME}}    to {{end}}, on lines of their own: left out unless something stands for NAME
 *
 * The templates, styles and scripts are part of the program.
 */

enum { PAGE_INSERTS_MOST = 48 };

/* What stands for the names; zeroed at first. `html` is the page's own. */
struct page {
    struct page_insert {
        const char *name; /* borrowed */
        char *html;
    } inserts[PAGE_INSERTS_MOST];
    size_t count;
    FILE *open; /* the last insert, until page_end */
    size_t size;
};

/* The stream that the HTML of `name` goes to, until page_end; NULL: no memory (logged). */
FILE *page_begin(struct page *page, const char *name);
enum status page_end(struct page *page);
/* The same of a text, as page_put_text. */
enum status page_put(struct page *page, const char *name, const char *text);
void page_free(struct page *page);

/* Text as HTML, and as an attribute's value in double quotes. */
void page_put_text(FILE *out, const char *text);

/* The data of the scripts, as JSON in which no character can end the element around it. */
enum status page_put_json(struct page *page, const cJSON *data);

/* The style sheets and scripts. */
enum status page_put_assets(struct page *page);

/* Writes `path` from the template, whole or not at all; the page then has its title and main part,
 * too. Once. STATUS_IO is logged. */
enum status page_write(struct page *page, const char *title, const char *template_name,
                       const char *path);

/* One all-reduce of the same kind and size in both, with all its starts. */
struct compare_pair {
    size_t before, after; /* the first rows of the tables */
    struct measured time_before, time_after;
    struct comparison found; /* after over before */
};

struct compare {
    struct csv_table before, after; /* bench.csv of both */
    struct compare_pair *pairs;     /* in the order of `after` */
    size_t count;
    size_t ambiguous; /* left out: one of the tables tells apart what the other does not */
    size_t wrong;     /* pairs with a row whose sums are wrong */
};

/* argv[0] is the command's name. Errors: logged; STATUS_USAGE among them. */
enum status compare_command(int argc, char **argv);

/* argv[0] is the command's name. `replay`: what the page's animation is read with; may be NULL.
 * Errors: logged; STATUS_USAGE among them. */
enum status report_command(int argc, char **argv, run_replay *replay);

/* The files of plots/report, as the build has put them into the program (common/cmake/embed.cmake).
 */
struct report_asset {
    const char *name;          /* "charts.js"; NULL ends them */
    const unsigned char *text; /* ended by a 0 */
};

extern const struct report_asset report_assets[];

#endif
