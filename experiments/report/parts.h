/* The parts of a run's page: the summary's sentences and tables, what was run on what, figures. */
#ifndef PSRING_EXPERIMENTS_REPORT_PARTS_H
#define PSRING_EXPERIMENTS_REPORT_PARTS_H

#include "common/base/status.h"
#include "experiments/report/page.h"
#include "experiments/report/run.h"

/*
 * Inserts the summary's parts into the page. The head is "wrong" if the run's state is WRONG, else
 * "head". "claim" is what the answer states about the ring, one server, and the first configuration
 * that was faster than the ring. "answer" is all of it, and "tables" the rest. An empty part is not
 * inserted.
 */
enum status parts_put_summary(struct page *page, const struct run *run);

/* From provenance.json: "facts", its texts and numbers, and "provenance", all of it. */
enum status parts_put_provenance(struct page *page, const struct run *run);

/* The figures that gnuplot has left in DIR: "figure NAME", as images within the page. */
enum status parts_put_figures(struct page *page, const char *dir);

#endif
