#include "common/base/stats.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/status.h"

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

/* A quantile of the standard normal distribution, for a share below 0.5, by bisection. */
static double normal_quantile(double share)
{
    double low = -40, high = 0;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (erfc(-middle / sqrt(2)) / 2 < share)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/* The probability that at most `rank` of `count` values lie below the median: the sum of the
 * binomial coefficients up to `rank`, over 2^count. Logarithms keep large counts within range. */
static double chance_at_most(size_t rank, size_t count)
{
    double sum = 0, log_term = -(double)count * log(2);
    for (size_t i = 0; i <= rank; i++) {
        sum += exp(log_term);
        log_term += log((double)(count - i) / (double)(i + 1));
    }
    return sum;
}

void stats_median_interval(const double *sorted, size_t count, double *low, double *high)
{
    const double tail = 0.025;
    size_t outside = 0; /* values on each side that the interval leaves out */
    *low = *high = (double)NAN;
    if (count < STATS_INTERVAL_LEAST)
        return;
    while (chance_at_most(outside, count) <= tail)
        outside++;
    /* `outside` is now the first rank with too high a probability: the interval ends there. */
    *low = sorted[outside - 1];
    *high = sorted[count - outside];
}

double stats_student_quantile(double level, size_t degrees)
{
    CHECK(level > 0 && level < 1 && degrees > 0);
    const double tails = 1 - level, n = (double)degrees, half_pi = acos(0);
    if (degrees == 1)
        return cos(tails * half_pi) / sin(tails * half_pi);
    if (degrees == 2)
        return sqrt(2 / (tails * (2 - tails)) - 2);
    double a = 1 / (n - 0.5), b = 48 / (a * a);
    double c = ((20700 * a / b - 98) * a - 16) * a + 96.36;
    double d = ((94.5 / (b + c) - 3) / b + 1) * sqrt(a * half_pi) * n;
    double y = pow(d * tails, 2 / n);
    if (y > 0.05 + a) {
        double x = normal_quantile(tails / 2);
        y = x * x;
        if (degrees < 5)
            c += 0.3 * (n - 4.5) * (x + 0.6);
        c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c;
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x;
        y = expm1(a * y * y);
    } else {
        y = ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y -
             1) *
                (n + 1) / (n + 2) +
            1 / y;
    }
    return sqrt(n * y);
}
