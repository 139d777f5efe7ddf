/* Tests the judge of rows and runs, the combination of several starts, and verdicts. */
#include <math.h>

#include <criterion/criterion.h>

#include "common/base/rng.h"
#include "common/base/stats.h"
#include "experiments/bench/judge.h"

/* -------- the judge --------------------------------------------------------------------------- */

Test(judge, a_row_has_the_state_of_its_worst_mark)
{
    static const struct {
        struct evidence row;
        enum state state;
    } cases[] = {
        {{0, 100, 0.5, 0.1, 2}, STATE_EXACT},     {{0, 100, NAN, NAN, 2}, STATE_EXACT},
        {{NAN, 100, -1, -1, 2}, STATE_EXACT},     {{0, 100, 0.5, 0.1, 1}, STATE_SINGLE_START},
        {{0, 100, 0.9, 0.02, 2}, STATE_LIMITED},  {{0, 100, 0.9, 0.2, 2}, STATE_DISTURBED},
        {{0, 100, 0.99, 0.12, 2}, STATE_LIMITED}, {{0, NAN, 0.5, 0, 2}, STATE_INCOMPLETE},
        {{0, 0, 0.9, 0, 1}, STATE_INCOMPLETE},    {{1, 100, 0.5, 0, 2}, STATE_WRONG},
        {{1, NAN, 0.99, 0.99, 1}, STATE_WRONG},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        cr_expect(judge_row(&cases[c].row) == cases[c].state, "case %zu: %s, expected %s", c,
                  judge_word(judge_row(&cases[c].row)), judge_word(cases[c].state));
    for (int state = STATE_EXACT; state <= STATE_WRONG; state++)
        cr_expect(judge_has_time((enum state)state) == (state < STATE_INCOMPLETE));
}

Test(judge, a_run_is_wrong_before_it_is_incomplete)
{
    cr_expect(judge_run(&(struct run_evidence){STATE_EXACT, false, 0}) == STATE_EXACT);
    cr_expect(judge_run(&(struct run_evidence){STATE_LIMITED, false, 0}) == STATE_LIMITED);
    cr_expect(judge_run(&(struct run_evidence){STATE_LIMITED, false, 2}) == STATE_INCOMPLETE);
    cr_expect(judge_run(&(struct run_evidence){STATE_WRONG, false, 2}) == STATE_WRONG);
    cr_expect(judge_run(&(struct run_evidence){STATE_EXACT, true, 0}) == STATE_WRONG);
}

/* -------- several starts ---------------------------------------------------------------------- */

static struct measured of_two(double one_us, double two_us, double half_width)
{
    struct start starts[] = {{one_us, one_us - half_width, one_us + half_width},
                             {two_us, two_us - half_width, two_us + half_width}};
    struct measured time;
    starts_combine(starts, 2, &time);
    return time;
}

static struct measured of_one(double us, double half_width)
{
    struct start start = {us, us - half_width, us + half_width};
    struct measured time;
    starts_combine(&start, 1, &time);
    return time;
}

Test(starts, the_interval_is_the_hull_of_the_starts_own)
{
    struct start starts[] = {{110, 108, 113}, {100, 97, 101}, {104, 90, 120}};
    struct measured time;
    starts_combine(starts, 3, &time);
    cr_expect(time.median_us == 104 && time.low_us == 90 && time.high_us == 120);
    cr_expect(time.least_us == 100 && time.most_us == 110 && time.starts == 3);
    cr_expect(time.state == STATE_EXACT && of_one(5, 1).state == STATE_SINGLE_START);
}

Test(starts, a_start_without_an_interval_leaves_none)
{
    struct start starts[] = {{100, 97, 101}, {104, NAN, NAN}, {110, 108, 113}};
    struct measured time;
    starts_combine(starts, 3, &time);
    cr_expect(time.median_us == 104 && isnan(time.low_us) && isnan(time.high_us));
    starts_widen(&time, &(struct spread){0.01, 3}, 1);
    cr_expect(isnan(time.low_us) && isnan(time.high_us));
}

Test(starts, a_verdict_needs_intervals_and_two_starts_of_both)
{
    struct measured fast = of_two(100, 101, 1), slow = of_two(200, 202, 1), single = of_one(300, 1);
    struct measured few = slow, wrong = slow;
    few.low_us = few.high_us = (double)NAN;
    wrong.state = STATE_WRONG;
    struct comparison found = starts_compare(&fast, &slow);
    cr_expect(found.verdict == VERDICT_FASTER && found.low < found.ratio &&
              found.ratio < found.high);
    cr_expect(starts_compare(&slow, &fast).verdict == VERDICT_SLOWER);
    found = starts_compare(&fast, &single);
    cr_expect(found.verdict == VERDICT_NONE && isnan(found.low) && found.ratio < 1);
    cr_expect_str_eq(found.why, "only one start");
    cr_expect(starts_compare(&single, &single).verdict == VERDICT_NONE);
    found = starts_compare(&fast, &few);
    cr_expect(found.verdict == VERDICT_NONE);
    cr_expect_str_eq(found.why, "fewer than six iterations");
    found = starts_compare(&wrong, &fast);
    cr_expect(found.verdict == VERDICT_NONE && isnan(found.ratio));
    cr_expect_str_eq(found.why, "sums are WRONG");
}

/* Each start alone would show a difference, because its iterations agree to 0.1%. */
Test(starts, a_difference_below_the_spread_is_none)
{
    struct measured one = of_two(100, 106, 0.1), two = of_two(101, 102, 0.1);
    struct measured near = of_two(107, 108, 0.1);
    cr_expect(starts_compare(&one, &two).verdict == VERDICT_SAME);
    /* The hulls do not overlap, but the medians differ by less than the starts of the first. */
    cr_expect(starts_compare(&one, &near).verdict == VERDICT_SAME);
    struct measured a = of_two(1000, 1000, 0.1), b = of_two(1004, 1004, 0.1);
    cr_expect(starts_compare(&a, &b).verdict == VERDICT_SAME, "1.00");
}

Test(starts, the_spread_of_other_configurations_widens)
{
    struct spread spread = {0};
    struct measured steady = of_two(100, 100.1, 0.1), rough = of_two(100, 110, 0.1);
    spread_add(&spread, &steady);
    spread_add(&spread, &rough);
    struct measured single = of_one(5, 1);
    spread_add(&spread, &single);
    cr_expect(spread.degrees == 2);
    starts_widen(&steady, &spread, 1);
    cr_expect(steady.low_us < 90 && steady.high_us > 110);
    struct measured together = of_two(100, 100.1, 0.1);
    starts_widen(&together, &spread, 10);
    cr_expect(together.low_us < steady.low_us && together.high_us > steady.high_us);
}

/* -------- simulated --------------------------------------------------------------------------- */

/* The sum of twelve uniform numbers minus six is nearly normal. */
static double noise(struct rng_key key, uint64_t at, uint64_t of)
{
    double sum = -6;
    for (uint64_t i = 0; i < 3; i++) {
        struct rng_block block = rng_block(key, 3 * at + i, of);
        for (int w = 0; w < 4; w++)
            sum += (double)rng_uniform(block.word[w]);
    }
    return sum;
}

enum { ITERATIONS = 8, STARTS = 2 };

/* A configuration with the true median `truth_us`. Each start has a random factor, and so has each
 * iteration. */
static struct measured simulate(uint64_t seed, double truth_us, double start_share,
                                double iteration_share)
{
    struct rng_key key = rng_key(seed, RNG_TEST, 7);
    struct start starts[STARTS];
    struct measured time;
    for (uint64_t s = 0; s < STARTS; s++) {
        double values[ITERATIONS], luck = exp(start_share * noise(key, s, 1));
        for (uint64_t i = 0; i < ITERATIONS; i++)
            values[i] = truth_us * luck * exp(iteration_share * noise(key, i, 2 + s));
        starts[s].median_us = stats_median(values, ITERATIONS);
        stats_median_interval(values, ITERATIONS, &starts[s].low_us, &starts[s].high_us);
    }
    starts_combine(starts, STARTS, &time);
    return time;
}

static const struct {
    double start, iteration;
} shares[] = {{0.05, 0.005}, {0.05, 0.05}, {0.002, 0.05}, {0.3, 0.05}};

/* Runs of ten configurations that share the pooled spread. */
Test(starts, intervals_cover_the_truth)
{
    enum { RUNS = 200, POINTS = 10 };
    for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
        size_t covered = 0, by_one_start = 0;
        for (uint64_t run = 0; run < RUNS; run++) {
            struct measured times[POINTS];
            struct spread spread = {0};
            for (uint64_t p = 0; p < POINTS; p++) {
                times[p] =
                    simulate(1000 * run + p, 100 + (double)p, shares[k].start, shares[k].iteration);
                spread_add(&spread, &times[p]);
            }
            for (size_t p = 0; p < POINTS; p++) {
                double truth = 100 + (double)p;
                by_one_start += times[p].own_low_us <= truth && truth <= times[p].own_high_us;
                starts_widen(&times[p], &spread, 1);
                covered += times[p].low_us <= truth && truth <= times[p].high_us;
            }
        }
        cr_expect(covered >= 0.95 * RUNS * POINTS, "starts %g, iterations %g: %zu of %d",
                  shares[k].start, shares[k].iteration, covered, RUNS * POINTS);
        /* intervals must therefore include the starts */
        cr_expect(k != 0 || by_one_start < 0.8 * RUNS * POINTS, "%zu", by_one_start);
    }
}

/* Two runs of one program with six configurations each, as in psring compare. At most one run in
 * twenty has any verdict. */
Test(starts, one_program_twice_differs_rarely)
{
    enum { RUNS = 400, POINTS = 6 };
    for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
        size_t with_verdict = 0, missed = 0;
        for (uint64_t run = 0; run < RUNS; run++) {
            struct measured before[POINTS], after[POINTS];
            struct spread spread = {0};
            bool any = false;
            for (uint64_t p = 0; p < POINTS; p++) {
                before[p] =
                    simulate(5000000 + 100 * run + p, 100, shares[k].start, shares[k].iteration);
                after[p] =
                    simulate(9000000 + 100 * run + p, 100, shares[k].start, shares[k].iteration);
                spread_add(&spread, &before[p]);
                spread_add(&spread, &after[p]);
            }
            for (size_t p = 0; p < POINTS; p++) {
                starts_widen(&before[p], &spread, POINTS);
                starts_widen(&after[p], &spread, POINTS);
                enum verdict verdict = starts_compare(&after[p], &before[p]).verdict;
                any = any || verdict == VERDICT_FASTER || verdict == VERDICT_SLOWER;
                struct measured half = after[p]; /* a program that is three times as fast */
                half.median_us /= 3;
                half.low_us /= 3;
                half.high_us /= 3;
                half.least_us /= 3;
                half.most_us /= 3;
                missed += starts_compare(&half, &before[p]).verdict != VERDICT_FASTER;
            }
            with_verdict += any;
        }
        cr_expect(with_verdict <= 0.05 * RUNS, "starts %g, iterations %g: %zu of %d",
                  shares[k].start, shares[k].iteration, with_verdict, RUNS);
        cr_expect(shares[k].start > 0.1 || missed <= 0.1 * RUNS * POINTS, "%zu missed", missed);
    }
}

/* One of `points` configurations spreads fifteen times as much as the others, and all take equally
 * long. Returns the share of comparisons with it that have a verdict. */
static double false_verdicts(uint64_t points)
{
    enum { RUNS = 400, POINTS_MOST = 20 };
    size_t with_verdict = 0;
    for (uint64_t run = 0; run < RUNS; run++) {
        struct measured times[POINTS_MOST];
        struct spread spread = {0};
        for (uint64_t p = 0; p < points; p++) {
            times[p] = simulate(3000000 + 100 * run + p, 100, p == 0 ? 0.03 : 0.002, 0.001);
            spread_add(&spread, &times[p]);
        }
        for (size_t p = 0; p < points; p++)
            starts_widen(&times[p], &spread, 1);
        for (size_t p = 1; p < points; p++)
            with_verdict += starts_compare(&times[p], &times[0]).verdict != VERDICT_SAME;
    }
    return (double)with_verdict / (double)(RUNS * (points - 1));
}

/* With the degrees of freedom of all, one of five of twenty has a verdict. Four cannot reveal it.
 */
Test(starts, one_that_spreads_more_has_few_verdicts)
{
    double of_twenty = false_verdicts(20), of_four = false_verdicts(4);
    cr_expect(of_twenty <= 0.1, "%g", of_twenty);
    cr_expect(of_four <= 0.18, "%g", of_four);
}
