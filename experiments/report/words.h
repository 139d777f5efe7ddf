/* What a page says in words: the lines of summary.txt, and what was run on what. */
#ifndef PSRING_EXPERIMENTS_REPORT_WORDS_H
#define PSRING_EXPERIMENTS_REPORT_WORDS_H

#include <cjson/cJSON.h>

#include "common/base/status.h"
#include "experiments/report/page.h"

/*
 * From DIR/summary.txt into the page: "head", its first lines, but for the title; "claim", what
 * its answer says of the ring, of one server, and of the first that was faster than the ring;
 * "answer", all of that; "tables", the rest as it is. What is not there is not inserted.
 */
enum status words_put_summary(struct page *page, const char *dir);

/* From DIR/provenance.json: "facts", what stands in it as text or numbers, and "provenance", all of
 * it. One that is no object is left out, with a warning. */
enum status words_put_provenance(struct page *page, const char *dir);

/* The figures that gnuplot has left, "figure NAME" as images within the page. */
enum status words_put_figures(struct page *page, const char *dir);

#endif
