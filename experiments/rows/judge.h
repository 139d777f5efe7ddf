/*
 * The state of a row of results, and of a run. This is the only place that decides it. The summary,
 * the page, the figures, psring compare and the fit (psring predict) ask here. --backend auto does
 * so through the fitted model.
 */
#ifndef PSRING_EXPERIMENTS_ROWS_JUDGE_H
#define PSRING_EXPERIMENTS_ROWS_JUDGE_H

#include <stdbool.h>

/* From good to bad: of several reasons the worst one counts. */
enum state {
    STATE_EXACT,        /* nothing is wrong with it, and it was started several times */
    STATE_SINGLE_START, /* exact, but one start: its time has that start's luck */
    STATE_DISTURBED,    /* other processes kept the processors busy */
    STATE_LIMITED,      /* the processors may have been the limit, not the network */
    STATE_INCOMPLETE,   /* a part is missing: no time, or a measurement failed */
    STATE_WRONG,        /* sums are not exact, or weights differ that must be equal */
};

/* The marks of a row. Below 0 or NaN: not known. */
struct evidence {
    double wrong; /* elements that differ from the exact sum */
    double time_us;
    double cpu_busy, cpu_other; /* shares of the machine's processors */
    int starts;
};

enum state judge_row(const struct evidence *row);

/* The marks of a run. */
struct run_evidence {
    enum state worst_row;  /* of all rows */
    bool trainings_differ; /* trainings that must end with the same weights do not */
    int failed;            /* measurements that failed */
};

enum state judge_run(const struct run_evidence *run);

/* "exact", "WRONG", "incomplete", ... Never NULL. */
const char *judge_word(enum state state);

/* Whether a time of this state may be shown, drawn and fitted: false for WRONG and incomplete. */
bool judge_has_time(enum state state);

#endif
