/* Numbers and ratios as words of the summary. Each result holds its text: print it with .text. */
#ifndef PSRING_EXPERIMENTS_REPORT_TEXT_H
#define PSRING_EXPERIMENTS_REPORT_TEXT_H

#include <stdint.h>

#include "experiments/rows/results.h"

struct text {
    char text[64];
};

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

#endif
