/* summary.txt: what a run has found, in sentences and tables for a newcomer. */
#ifndef PSRING_EXPERIMENTS_REPORT_SUMMARY_H
#define PSRING_EXPERIMENTS_REPORT_SUMMARY_H

#include <stdio.h>

#include "experiments/report/answer.h"
#include "experiments/report/run.h"

/* All of it. A run whose state is WRONG opens with that, and no time is printed. */
void summary_print(const struct run *run, FILE *out);

/* Its parts, for the page. The head has network, links, checks and disturbed measurements. The
 * answer has a line for each sentence. The tables are numbered. */
void summary_print_head(const struct run *run, FILE *out);
void summary_print_answer(const struct answer *answer, FILE *out);
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

#endif
