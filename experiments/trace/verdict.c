#include "experiments/trace/verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/line.h"
#include "common/base/stats.h"

const char *const verdict_names[VERDICT_LIMITS] = {
    [VERDICT_NONE] = "unknown",  [VERDICT_COMPUTATION] = "computation",
    [VERDICT_DATA] = "data",     [VERDICT_PROCESSORS] = "processors",
    [VERDICT_RANK] = "rank",     [VERDICT_NETWORK] = "network",
    [VERDICT_SERVER] = "server", [VERDICT_OVERHEAD] = "overhead",
};

/* What costs less of a step than this limits nothing. */
static const double least_share = 0.15;
/* Averaging at less than this part of the model's speed is not limited by its bytes on the link. */
static const double least_of_model = 0.5;
/* Nothing is faster than its bytes on the link, but for what a token bucket or a switch's buffer
 * lets through at once, here and at the other end: the rate is another link's. */
static const double most_of_model = 1.05, burst_bytes = 65536;
/* Of one message after another: above this it is no longer their latency. */
static const double latency_most_ms = 1;

/* -------- of all ranks ------------------------------------------------------------------------ */

static double own_time(const struct verdict_rank *rank)
{
    return rank->step - rank->exposed;
}

static double own_data(const struct verdict_rank *rank)
{
    return rank->data;
}

static double own_comm(const struct verdict_rank *rank)
{
    return rank->comm;
}

static double own_exposed(const struct verdict_rank *rank)
{
    return rank->exposed;
}

/* It has its batch, waits for nobody, and does not run. */
static double own_starving(const struct verdict_rank *rank)
{
    return own_time(rank) - rank->data - rank->cpu;
}

/* The value below which this part of the ranks, `without` (-1: none) left out, lies; of an even
 * number the lower one in the middle. */
static double quantile(const struct verdict_facts *facts, double (*of)(const struct verdict_rank *),
                       double q, int without)
{
    double *values = calloc(facts->workers + 1, sizeof *values), found;
    size_t count = 0;
    for (size_t r = 0; values && r < facts->workers; r++) {
        if ((int)r != without)
            values[count++] = of(&facts->ranks[r]);
    }
    if (count > 0)
        stats_sort(values, count);
    found = count > 0 ? values[(size_t)(q * (double)(count - 1))] : (double)NAN;
    free(values);
    return found;
}

static double median(const struct verdict_facts *facts, double (*of)(const struct verdict_rank *))
{
    return quantile(facts, of, 0.5, -1);
}

static double least(const struct verdict_facts *facts, double (*of)(const struct verdict_rank *))
{
    return quantile(facts, of, 0, -1);
}

static int slowest(const struct verdict_facts *facts)
{
    size_t found = 0;
    for (size_t r = 1; r < facts->workers; r++) {
        if (own_time(&facts->ranks[r]) > own_time(&facts->ranks[found]))
            found = r;
    }
    return (int)found;
}

/* -------- the verdict ------------------------------------------------------------------------- */

/* What of `comm` ms of averaging would still be exposed where as much is hidden as now. */
static double still_exposed(const struct verdict_facts *facts, double comm)
{
    double hidden = least(facts, own_comm) - least(facts, own_exposed);
    double exposed = comm - (hidden > 0 ? hidden : 0);
    return exposed > 0 ? exposed : 0;
}

/* The exposed time is the averaging's: of its bytes, of the server's link, or of its messages. The
 * last rank to come, whose averaging takes the least time, waits for nothing else. */
static void judge_averaging(const struct verdict_facts *facts, struct verdict *verdict)
{
    double comm = least(facts, own_comm), exposed = least(facts, own_exposed), helped = comm / 2;
    bool known = facts->link_bits_per_s > 0 && facts->model > 0 && comm > 0;
    verdict->cost = exposed;
    verdict->limit = VERDICT_NETWORK;
    if (!facts->compressed)
        verdict->fp16 = exposed - still_exposed(facts, comm / 2);
    double burst = known ? burst_bytes * 8e3 / facts->link_bits_per_s : 0; /* ms */
    if (known && facts->model > most_of_model * comm + burst) {
        verdict->too_fast = facts->model / comm;
        known = false;
    }
    if (known) {
        verdict->of_model = facts->model / comm;
        helped = comm * facts->model_faster / facts->model;
    }
    if (known && verdict->of_model < least_of_model && comm <= facts->latencies * latency_most_ms) {
        verdict->limit = VERDICT_OVERHEAD;
        verdict->fp16 = verdict->better = (double)NAN;
        return;
    }
    if (facts->dedicated_servers && known && facts->model_spread < 0.75 * facts->model) {
        verdict->limit = VERDICT_SERVER;
        helped = comm * facts->model_spread / facts->model;
    }
    verdict->better = verdict->step - (exposed - still_exposed(facts, helped));
}

/* So many loaders that make a batch in the time of the rest of a step, or as many as have a core
 * for themselves. Those there are make one in each step now; where there is none, its time is all
 * of `data`. */
static void judge_data(const struct verdict_facts *facts, double data, struct verdict *verdict)
{
    double rest = verdict->step - data;
    double batch = facts->loaders > 0 ? facts->loaders * verdict->step : data; /* by one thread */
    int room = facts->cores - facts->threads;
    verdict->limit = VERDICT_DATA;
    verdict->cost = data;
    verdict->better = rest;
    if (room <= facts->loaders)
        return;
    verdict->loaders = rest * room > batch ? (int)ceil(batch / rest) : room;
    verdict->better = fmax(rest, batch / verdict->loaders);
}

struct verdict verdict_of(const struct verdict_facts *facts)
{
    struct verdict verdict = {
        .rank = -1, .better = (double)NAN, .fp16 = (double)NAN, .of_model = (double)NAN};
    if (facts->workers == 0)
        return verdict;
    for (size_t r = 0; r < facts->workers; r++)
        verdict.step = fmax(verdict.step, facts->ranks[r].step);
    if (!(verdict.step > 0))
        return verdict;
    double share = least_share * verdict.step;
    int last = slowest(facts);
    double late = facts->workers > 1
                      ? own_time(&facts->ranks[last]) - quantile(facts, own_time, 0.5, last)
                      : 0;
    double data = median(facts, own_data), exposed = least(facts, own_exposed);
    double starving = facts->waits ? 0 : median(facts, own_starving);
    verdict.limit = VERDICT_COMPUTATION;
    verdict.cost = median(facts, own_time) - data;
    if (starving > share && starving >= 0.25 * median(facts, own_time)) {
        verdict.limit = VERDICT_PROCESSORS;
        verdict.cost = starving;
        verdict.better = verdict.step - starving;
    } else if (late > share && late >= exposed && late >= data) {
        verdict.limit = VERDICT_RANK;
        verdict.rank = last;
        verdict.cost = late;
        verdict.better = verdict.step - late;
    } else if (data > share && data >= exposed) {
        judge_data(facts, data, &verdict);
    } else if (exposed > share) { /* one worker's, too: with a server on another host */
        judge_averaging(facts, &verdict);
    }
    return verdict;
}

/* -------- in words ---------------------------------------------------------------------------- */

/* "200 Mbit/s", "10 Gbit/s" */
static const char *rate_text(double bits_per_s, char text[32])
{
    if (bits_per_s >= 1e9)
        snprintf(text, 32, "%.4g Gbit/s", bits_per_s / 1e9);
    else
        snprintf(text, 32, "%.4g Mbit/s", bits_per_s / 1e6);
    return text;
}

static void describe_network(const struct verdict_facts *facts, const struct verdict *verdict,
                             struct line *line)
{
    char rate[32];
    line_add(line, "the network: %.0f%% of a step waits for averaging",
             100 * verdict->cost / verdict->step);
    if (verdict->of_model > 0)
        line_add(line, "; %s is at %.0f%% of the link, %s", facts->backend, 100 * verdict->of_model,
                 rate_text(facts->link_bits_per_s, rate));
    if (verdict->of_model < least_of_model)
        line_add(line, ": a link is slower than that, psring trace says which of a --timeline");
    if (verdict->too_fast > 0)
        line_add(line,
                 "; averaging is %.1f times as fast as a link of %s, so --link-rate is not "
                 "this link's rate",
                 verdict->too_fast, rate_text(facts->link_bits_per_s, rate));
    line_add(line, "; %s%s a step would take %.1f ms instead of %.1f",
             verdict->of_model > 0 ? "at " : "with links twice as fast",
             verdict->of_model > 0 ? rate_text(facts->faster_bits_per_s, rate) : "",
             verdict->better, verdict->step);
    if (verdict->fp16 > 0)
        line_add(line, "; --compress fp16 would save %.1f ms", verdict->fp16);
}

const char *verdict_describe(const struct verdict_facts *facts, const struct verdict *verdict,
                             char *text, size_t size)
{
    struct line line = line_in(text, size);
    double percent = 100 * verdict->cost / verdict->step;
    switch (verdict->limit) {
    case VERDICT_COMPUTATION:
        line_add(&line, "computation: %.0f%% of a step", percent);
        if (facts->workers > 1)
            line_add(&line, ", averaging is exposed for %.1f ms of %.1f", least(facts, own_exposed),
                     verdict->step);
        line_add(&line, "; only faster processors or more workers would help");
        break;
    case VERDICT_DATA:
        line_add(&line, "data: for %.0f%% of a step the next batch is waited for; ", percent);
        if (verdict->loaders > 0)
            line_add(&line, "with --loaders %d", verdict->loaders);
        else if (facts->cores > 0)
            line_add(&line,
                     "each of a rank's cores, %d, computes or loads already; with more of them",
                     facts->cores);
        else
            line_add(&line, "if it were there,");
        line_add(&line, " a step would take %.1f ms instead of %.1f", verdict->better,
                 verdict->step);
        break;
    case VERDICT_PROCESSORS:
        line_add(
            &line,
            "the processors: for %.0f%% of a step a rank that could compute does not run; with a "
            "core for each thread that computes a step would take %.1f ms or less instead of %.1f",
            percent, verdict->better, verdict->step);
        break;
    case VERDICT_RANK:
        line_add(
            &line,
            "rank %d: the others wait for it for %.0f%% of a step; if it were as fast as they are, "
            "a step would take %.1f ms instead of %.1f",
            verdict->rank, percent, verdict->better, verdict->step);
        break;
    case VERDICT_NETWORK:
        describe_network(facts, verdict, &line);
        break;
    case VERDICT_SERVER:
        line_add(
            &line,
            "the server: %.0f%% of a step waits for averaging, at %.0f%% of its link; with as many "
            "servers as workers a step would take %.1f ms instead of %.1f",
            percent, 100 * verdict->of_model, verdict->better, verdict->step);
        break;
    case VERDICT_OVERHEAD:
        line_add(
            &line,
            "steps that are too small: for %.0f%% of one the averaging is exposed, whose bytes "
            "would "
            "take the link %.2f ms of %.1f; a larger --batch has more computation in a step and as "
            "much averaging",
            percent, facts->model, verdict->step);
        break;
    default:
        line_add(&line, "nothing that is known");
        break;
    }
    return text;
}
