/* Order statistics of measured times, which have long tails: medians rather than means. */
#ifndef PSRING_COMMON_BASE_STATS_H
#define PSRING_COMMON_BASE_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

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

/* Sorts `values` in place; their quantile 0.5. */
double stats_median(double *values, size_t count);

/* Sorts `values` in place and fills `summary`. count > 0. */
void stats_summarise(double *values, size_t count, struct stats_summary *summary);

/*
 * A 95% interval of the median, by the bootstrap: the 2.5% and 97.5% quantiles of the medians of
 * 2,000 resamples with replacement. A function of the values and the seed alone.
 * O(2000 count) time. Source: Efron 1979, "Bootstrap methods: another look at the jackknife";
 * Efron and Tibshirani 1993, section 13.3. STATUS_NO_MEMORY (logged).
 */
enum status stats_median_interval(const double *sorted, size_t count, uint64_t seed, double *low,
                                  double *high);

#endif
