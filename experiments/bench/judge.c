#include "experiments/bench/judge.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/stats.h"
#include "common/base/status.h"
#include "common/net/cpu_watch.h"

enum state judge_row(const struct evidence *row)
{
    if (row->wrong > 0)
        return STATE_WRONG;
    if (!(row->time_us > 0))
        return STATE_INCOMPLETE;
    if (row->cpu_busy > CPU_SHARE_LIMITED)
        return cpu_share_is_others(row->cpu_busy, row->cpu_other) ? STATE_DISTURBED : STATE_LIMITED;
    return row->starts > 1 ? STATE_EXACT : STATE_SINGLE_START;
}

enum state judge_run(const struct run_evidence *run)
{
    if (run->worst_row == STATE_WRONG || run->trainings_differ)
        return STATE_WRONG;
    return run->failed > 0 ? STATE_INCOMPLETE : run->worst_row;
}

const char *judge_word(enum state state)
{
    static const char *const words[] = {"exact",       "single start", "disturbed",
                                        "CPU-limited", "incomplete",   "WRONG"};
    return words[state];
}

bool judge_has_time(enum state state)
{
    return state < STATE_INCOMPLETE;
}

static int by_median(const void *a, const void *b)
{
    const struct start *one = a, *two = b;
    return (one->median_us > two->median_us) - (one->median_us < two->median_us);
}

static double deviation_of(const struct start *starts, size_t count)
{
    double mean = 0, squares = 0;
    for (size_t s = 0; s < count; s++)
        mean += log(starts[s].median_us) / (double)count;
    for (size_t s = 0; s < count; s++)
        squares += pow(log(starts[s].median_us) - mean, 2);
    return count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
}

void starts_combine(struct start *starts, size_t count, struct measured *whole)
{
    CHECK(count > 0);
    qsort(starts, count, sizeof *starts, by_median);
    double low = starts[0].low_us, high = starts[0].high_us;
    for (size_t s = 1; s < count; s++) { /* keep NAN; fmin would drop it */
        low = isnan(starts[s].low_us) || starts[s].low_us < low ? starts[s].low_us : low;
        high = isnan(starts[s].high_us) || starts[s].high_us > high ? starts[s].high_us : high;
        if (isnan(low) || isnan(high))
            break;
    }
    if (isnan(low) || isnan(high))
        low = high = (double)NAN;
    *whole = (struct measured){
        .starts = (int)count,
        .state = count > 1 ? STATE_EXACT : STATE_SINGLE_START,
        .median_us = (starts[count / 2].median_us + starts[(count - 1) / 2].median_us) / 2,
        .low_us = low,
        .high_us = high,
        .least_us = starts[0].median_us,
        .most_us = starts[count - 1].median_us,
        .own_low_us = low,
        .own_high_us = high,
        .deviation = deviation_of(starts, count),
    };
}

void spread_add(struct spread *spread, const struct measured *whole)
{
    if (whole->starts < 2)
        return;
    spread->degrees += (size_t)whole->starts - 1;
    spread->squares += whole->deviation * whole->deviation * (whole->starts - 1);
}

/* A deviation above this multiple of the pooled one has another cause. At 3, fewer are noticed.
 * At 1.5, one measurement in seven counts as unlike the others although it is not. */
enum { UNLIKE = 2 };

void starts_widen(struct measured *whole, const struct spread *spread, size_t claims)
{
    if (spread->degrees == 0 || isnan(whole->own_low_us))
        return;
    const double pooled = sqrt(spread->squares / (double)spread->degrees);
    double factor = stats_student_quantile(1 - 0.05 / (double)claims, spread->degrees) *
                    fmax(pooled, whole->deviation);
    if (whole->deviation > UNLIKE * pooled)
        factor = fmax(factor,
                      stats_student_quantile(0.95, (size_t)whole->starts - 1) * whole->deviation);
    factor /= sqrt(whole->starts);
    whole->low_us = fmin(whole->own_low_us, whole->median_us * exp(-factor));
    whole->high_us = fmax(whole->own_high_us, whole->median_us * exp(factor));
}

static struct comparison no_verdict(double ratio, const char *why)
{
    return (struct comparison){ratio, (double)NAN, (double)NAN, VERDICT_NONE, why};
}

struct comparison starts_compare(const struct measured *first, const struct measured *second)
{
    if (!judge_has_time(first->state) || !judge_has_time(second->state))
        return no_verdict((double)NAN, first->state == STATE_WRONG || second->state == STATE_WRONG
                                           ? "sums are WRONG"
                                           : "a time is missing");
    const double ratio = first->median_us / second->median_us;
    if (isnan(first->low_us) || isnan(second->low_us))
        return no_verdict(ratio, "fewer than six iterations");
    if (first->starts < 2 || second->starts < 2)
        return no_verdict(ratio, "only one start");
    struct comparison found = {ratio, first->low_us / second->high_us,
                               first->high_us / second->low_us, VERDICT_SAME, NULL};
    const double difference = fabs(first->median_us - second->median_us);
    const bool within_spread = difference <= first->most_us - first->least_us ||
                               difference <= second->most_us - second->least_us;
    if (!within_spread && fabs(ratio - 1) >= 0.005 && (found.low > 1 || found.high < 1))
        found.verdict = ratio < 1 ? VERDICT_FASTER : VERDICT_SLOWER;
    return found;
}
