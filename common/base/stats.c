#include "common/base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/rng.h"

enum { RESAMPLES = 2000 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void stats_sort(double *values, size_t count)
{
    if (count > 1)
        qsort(values, count, sizeof *values, compare);
}

double stats_quantile(const double *sorted, size_t count, double q)
{
    CHECK(count > 0 && q >= 0 && q <= 1);
    double position = q * (double)(count - 1);
    size_t below = (size_t)position;
    size_t above = below + 1 < count ? below + 1 : below;
    double share = position - (double)below;
    return sorted[below] + share * (sorted[above] - sorted[below]);
}

double stats_median(double *values, size_t count)
{
    stats_sort(values, count);
    return stats_quantile(values, count, 0.5);
}

void stats_summarise(double *values, size_t count, struct stats_summary *summary)
{
    CHECK(count > 0);
    double median = stats_median(values, count); /* sorts */
    *summary = (struct stats_summary){
        .min = values[0],
        .median = median,
        .p95 = stats_quantile(values, count, 0.95),
        .p99 = stats_quantile(values, count, 0.99),
        .max = values[count - 1],
    };
}

/* The value at place `rank` (from 0) of a resample that holds sorted[i] times[i] times. */
static double order_statistic(const double *sorted, const uint32_t *times, size_t rank)
{
    size_t i = 0, seen = times[0];
    while (seen <= rank)
        seen += times[++i];
    return sorted[i];
}

/* The values are sorted: counting how often each is drawn gives a resample's median in O(count). */
static double resample_median(const double *sorted, size_t count, uint32_t *times,
                              struct rng_key key, uint64_t resample)
{
    struct rng_block block = {{0}};
    memset(times, 0, count * sizeof *times);
    for (size_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            block = rng_block(key, i / 4, resample);
        times[rng_below(block.word[i % 4], (uint32_t)count)]++;
    }
    return (order_statistic(sorted, times, (count - 1) / 2) +
            order_statistic(sorted, times, count / 2)) /
           2;
}

enum status stats_median_interval(const double *sorted, size_t count, uint64_t seed, double *low,
                                  double *high)
{
    enum status status = STATUS_OK;
    CHECK(count > 0 && count <= UINT32_MAX);
    uint32_t *times = calloc(count, sizeof *times);
    double *medians = malloc(RESAMPLES * sizeof *medians);
    if (!times || !medians) {
        log_error("no memory for the interval of a median of %zu values", count);
        status = STATUS_NO_MEMORY;
        goto out;
    }
    struct rng_key key = rng_key(seed, RNG_RESAMPLE, 0);
    for (uint64_t r = 0; r < RESAMPLES; r++)
        medians[r] = resample_median(sorted, count, times, key, r);
    stats_sort(medians, RESAMPLES);
    *low = stats_quantile(medians, RESAMPLES, 0.025);
    *high = stats_quantile(medians, RESAMPLES, 0.975);
out:
    free(medians);
    free(times);
    return status;
}
