/*
 * The state of a row of results, and of a run. This is the only place that decides it. The summary,
 * the page, the figures, psring compare and the fit (psring predict) ask here. --backend auto does
 * so through the fitted model.
 */
#ifndef PSRING_EXPERIMENTS_BENCH_JUDGE_H
#define PSRING_EXPERIMENTS_BENCH_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

/* From good to bad: of several reasons the worst one counts. */
enum state {
    STATE_EXACT,        /* no mark against it, and it has several starts */
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

/*
 * Several starts of one configuration as one measurement, and two measurements compared. A start is
 * one launch of all processes. Times differ more between starts than between the operations of one
 * start, so the interval of one start is too narrow. Source: Hunold and Carpen-Amarie 2016,
 * "Reproducible MPI benchmarking is still not as easy as you think".
 */

/* One start: the median of its operations, and the 95% interval of that median. NAN: it has no
 * interval, because it has fewer than six operations or its row has none. */
struct start {
    double median_us, low_us, high_us;
};

/* How much starts of one configuration differ, from all configurations that have several: the
 * variance of the logarithms of their medians, pooled. */
struct spread {
    double squares;
    size_t degrees; /* of freedom; 0: nothing is known */
};

struct measured {
    int starts;
    enum state state;
    double median_us;               /* the median of the starts' medians */
    double low_us, high_us;         /* its 95% interval; NAN: there is none */
    double least_us, most_us;       /* of the starts' medians */
    double own_low_us, own_high_us; /* the hull of the starts' own intervals */
    double deviation;               /* of the logarithms of the starts' medians; 0: one start */
};

/* Combines the starts' medians and the hull of their intervals, which is also low_us and high_us. A
 * start without an interval leaves the whole without one. The state is STATE_EXACT or
 * STATE_SINGLE_START. count > 0. Sorts `starts`. */
void starts_combine(struct start *starts, size_t count, struct measured *whole);

void spread_add(struct spread *spread, const struct measured *whole);

/*
 * Widens low_us and high_us so that they cover starts as well as operations. On a logarithmic
 * scale, each is at least t s / sqrt(starts) from the median. s is the larger of the pooled
 * deviation and the measurement's. `claims` (at least 1) is the number of verdicts drawn together;
 * the interval then holds for all of them with 95% (Bonferroni), if all starts spread alike. A
 * measurement with more than twice the pooled deviation gets at least its own 95% interval, from
 * its own starts. Two starts can hide that one spreads more than the others. test_starts.c
 * simulates one with 15 times the spread, among equal times. One comparison with it in twelve then
 * shows a difference if there are twenty measurements, and one in seven if there are four. Nothing
 * changes without an interval or without degrees of freedom.
 */
void starts_widen(struct measured *whole, const struct spread *spread, size_t claims);

enum verdict {
    VERDICT_NONE,   /* no verdict can be drawn: `why` has the reason */
    VERDICT_SAME,   /* no difference was measured */
    VERDICT_FASTER, /* the first one took less time */
    VERDICT_SLOWER,
};

struct comparison {
    double ratio;     /* of the times, the first over the second; NAN: not known */
    double low, high; /* what both intervals allow of it; NAN: not known */
    enum verdict verdict;
    const char *why; /* VERDICT_NONE: "only one start", ...; else NULL */
};

/*
 * A verdict needs an interval and several starts on both sides. It is VERDICT_SAME if the intervals
 * overlap, if the ratio is 1.00, or if the difference is below the spread between the starts of one
 * side.
 */
struct comparison starts_compare(const struct measured *first, const struct measured *second);

#endif
