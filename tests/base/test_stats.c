#include <math.h>
#include <string.h>

#include <criterion/criterion.h>

#include "common/base/rng.h"
#include "common/base/sha256.h"
#include "common/base/stats.h"

static void expect_near(double found, double expected)
{
    cr_assert(fabs(found - expected) <= 1e-12 * fabs(expected), "found %.17g, expected %.17g",
              found, expected);
}

/* Source: R, quantile(c(1, 2, 4, 8, 16), c(0, .1, .25, .5, .95, 1)), the default type 7. */
Test(stats, quantiles_are_those_of_r)
{
    const double sorted[] = {1, 2, 4, 8, 16};
    expect_near(stats_quantile(sorted, 5, 0), 1);
    expect_near(stats_quantile(sorted, 5, 0.1), 1.4);
    expect_near(stats_quantile(sorted, 5, 0.25), 2);
    expect_near(stats_quantile(sorted, 5, 0.5), 4);
    expect_near(stats_quantile(sorted, 5, 0.95), 14.4);
    expect_near(stats_quantile(sorted, 5, 1), 16);
    expect_near(stats_quantile(sorted, 4, 0.5), 3);
    expect_near(stats_quantile(sorted, 1, 0.5), 1);
}

Test(stats, summarises_values_in_any_order)
{
    double values[] = {8, 1, 16, 2, 4};
    struct stats_summary summary;
    stats_summarise(values, 5, &summary);
    cr_assert(summary.min == 1 && summary.median == 4 && summary.max == 16);
    expect_near(summary.p95, 14.4);
    expect_near(summary.p99, 15.68);
    for (size_t i = 1; i < 5; i++)
        cr_assert(values[i - 1] < values[i]);
}

/* The ends are the order statistics from tables of the binomial distribution. */
Test(stats, the_interval_ends_at_exact_order_statistics)
{
    static const struct {
        size_t count, low; /* the rank of the lower end, from 1 */
    } cases[] = {{6, 1}, {8, 1}, {9, 2}, {20, 6}, {31, 10}, {200, 86}, {3000, 1446}};
    static double values[3000];
    for (size_t i = 0; i < 3000; i++)
        values[i] = (double)(i + 1);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double low, high;
        stats_median_interval(values, cases[c].count, &low, &high);
        cr_expect(low == (double)cases[c].low, "%zu values: from %g", cases[c].count, low);
        cr_expect(low + high == (double)cases[c].count + 1);
    }
}

/* Over many samples of a known distribution, at least 95% of the intervals contain the median. */
Test(stats, the_interval_covers_the_true_median)
{
    enum { SAMPLES = 4000 };
    static const size_t counts[] = {6, 7, 12, 31};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        size_t covered = 0;
        for (uint64_t s = 0; s < SAMPLES; s++) {
            double values[31], low, high;
            for (size_t i = 0; i < counts[c]; i++)
                values[i] = rng_uniform(rng_block(rng_key(9, RNG_TEST, s), i, c).word[0]);
            stats_sort(values, counts[c]);
            stats_median_interval(values, counts[c], &low, &high);
            covered += low <= 0.5 && 0.5 <= high;
        }
        cr_expect(covered >= 0.95 * SAMPLES, "%zu values: %zu of %d", counts[c], covered, SAMPLES);
    }
}

Test(stats, few_values_have_no_interval)
{
    const double values[] = {1, 2, 3, 4, 5};
    for (size_t count = 1; count <= 5; count++) {
        double low = 0, high = 0;
        stats_median_interval(values, count, &low, &high);
        cr_expect(isnan(low) && isnan(high), "%zu values: %g to %g", count, low, high);
    }
}

Test(stats, student_quantiles_are_those_of_tables)
{
    static const struct {
        double level;
        size_t degrees;
        double quantile;
    } cases[] = {{0.95, 1, 12.7062},  {0.95, 2, 4.30265},   {0.95, 3, 3.18245}, {0.95, 6, 2.44691},
                 {0.95, 12, 2.17881}, {0.95, 120, 1.97993}, {0.99, 4, 4.60409}, {0.99, 30, 2.75000},
                 {0.5, 5, 0.726687},  {0.999, 10, 4.58689}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double found = stats_student_quantile(cases[c].level, cases[c].degrees);
        cr_expect(fabs(found / cases[c].quantile - 1) < 5e-4, "%g, %zu degrees: %.6f",
                  cases[c].level, cases[c].degrees, found);
    }
}

/* FIPS 180-4, examples: "", "abc" and a message of two blocks. Then the same in pieces. */
Test(sha256, sums_are_the_standards)
{
    static const char *const cases[][2] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < 3; i++) {
        char hex[SHA256_HEX_SIZE];
        cr_assert(sha256_hex(cases[i][0], strlen(cases[i][0]), hex) == STATUS_OK);
        cr_assert_str_eq(hex, cases[i][1]);
        struct sha256 sum;
        cr_assert(sha256_init(&sum) == STATUS_OK);
        for (const char *c = cases[i][0]; *c; c++)
            sha256_update(&sum, c, 1);
        sha256_final(&sum, hex);
        cr_assert_str_eq(hex, cases[i][1]);
        sha256_fini(&sum); /* nothing to do */
    }
}
