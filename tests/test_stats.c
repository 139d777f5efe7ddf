#include <math.h>
#include <stdbool.h>
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

/* R: quantile(c(1, 2, 4, 8, 16), c(0, .1, .25, .5, .95, 1)), the default type 7. */
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

Test(stats, the_interval_depends_on_values_and_seed_alone)
{
    double values[200], low[3], high[3];
    struct rng_key key = rng_key(9, RNG_TEST, 0);
    for (size_t i = 0; i < 200; i++)
        values[i] = rng_uniform(rng_block(key, i, 0).word[0]);
    stats_sort(values, 200);
    cr_assert(stats_median_interval(values, 200, 1, &low[0], &high[0]) == STATUS_OK);
    cr_assert(stats_median_interval(values, 200, 1, &low[1], &high[1]) == STATUS_OK);
    cr_assert(low[0] == low[1] && high[0] == high[1]);
    bool another = false;
    for (uint64_t seed = 2; seed < 12; seed++) {
        cr_assert(stats_median_interval(values, 200, seed, &low[2], &high[2]) == STATUS_OK);
        another = another || low[0] != low[2] || high[0] != high[2];
    }
    cr_assert(another);
    cr_assert(low[0] < stats_median(values, 200) && high[0] > stats_median(values, 200));
    /* The exact 95% interval of order statistics (binomial) is [x(86), x(115)] of 200. */
    cr_assert(fabs(low[0] - values[85]) < 0.03 && fabs(high[0] - values[114]) < 0.03);
}

/* Over many samples of a known distribution, near 95% of the intervals hold the true median. */
Test(stats, the_interval_covers_the_true_median)
{
    enum { SAMPLES = 200, VALUES = 31 };
    size_t covered = 0;
    for (uint64_t s = 0; s < SAMPLES; s++) {
        double values[VALUES], low, high;
        for (size_t i = 0; i < VALUES; i++)
            values[i] = rng_uniform(rng_block(rng_key(9, RNG_TEST, s), i, 0).word[0]);
        stats_sort(values, VALUES);
        cr_assert(stats_median_interval(values, VALUES, s, &low, &high) == STATUS_OK);
        covered += low <= 0.5 && 0.5 <= high;
    }
    cr_assert(covered >= 0.90 * SAMPLES && covered <= 0.99 * SAMPLES, "%zu of %d", covered,
              SAMPLES);
}

Test(stats, an_interval_of_few_values)
{
    const double one[] = {3}, equal[] = {5, 5, 5}, two[] = {1, 2};
    double low, high;
    cr_assert(stats_median_interval(one, 1, 1, &low, &high) == STATUS_OK);
    cr_assert(low == 3 && high == 3);
    cr_assert(stats_median_interval(equal, 3, 1, &low, &high) == STATUS_OK);
    cr_assert(low == 5 && high == 5);
    cr_assert(stats_median_interval(two, 2, 1, &low, &high) == STATUS_OK);
    cr_assert(low == 1 && high == 2);
}

/* FIPS 180-4, examples: "", "abc" and a message of two blocks; then in pieces. */
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
