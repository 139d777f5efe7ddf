/* Order statistics of measured times, which have long tails: medians rather than means. */
#ifndef PSRING_COMMON_BASE_STATS_H
#define PSRING_COMMON_BASE_STATS_H

#include <stddef.h>

struct stats_summary {
    double min, median, p95, p99, max;
};

/* Sorts ascending, in place. No NaN. */
void stats_sort(double *values, size_t count);

/*
 * The q-quantile, 0 <= q <= 1, of `count` > 0 values in ascending order, interpolated linearly
 * between neighbours. Source: Hyndman and Fan 1996, "Sample quantiles in statistical packages",
 * definition 7 (the default of R and NumPy).
 */
double stats_quantile(const double *sorted, size_t count, double q);

/* Sorts `values` in place and returns their quantile 0.5. */
double stats_median(double *values, size_t count);

/* Sorts `values` in place and fills `summary`. count > 0. */
void stats_summarise(double *values, size_t count, struct stats_summary *summary);

/*
 * A 95% interval of the median, for every distribution. It is the narrowest pair of values with
 * equal ranks from both ends that holds the median with a probability of at least 95%. Fewer than
 * STATS_INTERVAL_LEAST values have no such pair; both results are then NaN. O(count). Source:
 * Thompson 1936, "On confidence ranges for the median and other expectation distributions"; Hahn
 * and Meeker 1991, section 5.2.
 */
enum { STATS_INTERVAL_LEAST = 6 };
void stats_median_interval(const double *sorted, size_t count, double *low, double *high);

/*
 * Student's t with `degrees` > 0 degrees of freedom: a value lies within plus or minus the result
 * with probability `level`, 0 < level < 1. It is accurate to about four digits. Source: Hill 1970,
 * "Algorithm 396, Student's t-quantiles".
 */
double stats_student_quantile(double level, size_t degrees);

#endif
