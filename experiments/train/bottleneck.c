#include "experiments/train/bottleneck.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/stats.h"
#include "common/base/text.h"
#include "common/net/cpu_watch.h"

const char *const bottleneck_names[BOTTLENECK_CAUSES] = {
    [BOTTLENECK_NONE] = "unknown",  [BOTTLENECK_COMPUTATION] = "computation",
    [BOTTLENECK_LOADER] = "loader", [BOTTLENECK_PROCESSORS] = "processors",
    [BOTTLENECK_RANK] = "rank",     [BOTTLENECK_LINK] = "link",
    [BOTTLENECK_SERVER] = "server", [BOTTLENECK_AVERAGING] = "averaging",
};

/* A bottleneck costs at least this part of a step. */
static const double least_share = 0.15;
/* The link limits averaging that takes at most 1 / least_of_model times what its bytes take. */
static const double least_of_model = 0.8;
/* Averaging cannot be faster than its bytes on the link, except for the burst that a token bucket
 * or a switch's buffer lets through at once. If it is faster, the rate is another link's. */
static const double most_of_model = 1.05, burst_bytes = 65536;
/* A server limits if as many servers as workers would take less than this part of the time. */
static const double spread_most = 0.75;

/* -------- of all ranks ------------------------------------------------------------------------ */

static double own_time(const struct bottleneck_rank *rank)
{
    return rank->step - rank->exposed;
}

static double own_data(const struct bottleneck_rank *rank)
{
    return rank->data;
}

static double own_comm(const struct bottleneck_rank *rank)
{
    return rank->comm;
}

static double own_exposed(const struct bottleneck_rank *rank)
{
    return rank->exposed;
}

/* The rank has its batch, waits for no other rank, and does not run. */
static double own_starving(const struct bottleneck_rank *rank)
{
    return own_time(rank) - rank->data - rank->cpu;
}

/* The q-quantile of the ranks' values, without rank `without` (-1: none). For q = 0.5 and an even
 * count: the lower of the two middle values. */
static double quantile(const struct bottleneck_facts *facts,
                       double (*of)(const struct bottleneck_rank *), double q, int without)
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

static double median(const struct bottleneck_facts *facts,
                     double (*of)(const struct bottleneck_rank *))
{
    return quantile(facts, of, 0.5, -1);
}

static double least(const struct bottleneck_facts *facts,
                    double (*of)(const struct bottleneck_rank *))
{
    return quantile(facts, of, 0, -1);
}

static int slowest(const struct bottleneck_facts *facts)
{
    size_t found = 0;
    for (size_t r = 1; r < facts->workers; r++) {
        if (own_time(&facts->ranks[r]) > own_time(&facts->ranks[found]))
            found = r;
    }
    return (int)found;
}

/* -------- the cause --------------------------------------------------------------------------- */

/* The exposed part of `comm` ms of averaging if as much is hidden as now. */
static double still_exposed(const struct bottleneck_facts *facts, double comm)
{
    double hidden = least(facts, own_comm) - least(facts, own_exposed);
    double exposed = comm - (hidden > 0 ? hidden : 0);
    return exposed > 0 ? exposed : 0;
}

/* The saving of a step if the bytes took `model` ms on the link. */
static double saved(const struct bottleneck_facts *facts, double model)
{
    double comm = least(facts, own_comm), bytes = fmin(facts->model, comm);
    double faster = comm - bytes * (1 - model / facts->model);
    return least(facts, own_exposed) - still_exposed(facts, faster);
}

/* The cores were busy while ranks averaged, and not with the work of other processes. */
static bool cores_limit(const struct bottleneck_facts *facts)
{
    return facts->cpu_busy > CPU_SHARE_LIMITED &&
           !cpu_share_is_others(facts->cpu_busy, facts->cpu_other);
}

/* Ranks wait for averaging: for its bytes on a link, for cores, or for what is not measured. A link
 * that carries what it can comes first: waits that poll keep cores busy, too. */
static void judge_averaging(const struct bottleneck_facts *facts, struct bottleneck *bottleneck)
{
    double comm = least(facts, own_comm);
    bottleneck->cost = least(facts, own_exposed);
    bottleneck->cause = BOTTLENECK_AVERAGING;
    if (facts->link_bits_per_s > 0 && facts->model > 0 && comm > 0) {
        double burst_ms = burst_bytes * 8e3 / facts->link_bits_per_s;
        if (facts->model > most_of_model * comm + burst_ms)
            bottleneck->too_fast = facts->model / comm;
        else
            bottleneck->of_model = facts->model / comm;
    }
    if (bottleneck->of_model >= least_of_model) {
        bool server = facts->dedicated_servers && facts->model_spread < spread_most * facts->model;
        bottleneck->cause = server ? BOTTLENECK_SERVER : BOTTLENECK_LINK;
        bottleneck->better =
            bottleneck->step - saved(facts, server ? facts->model_spread : facts->model_faster);
        if (!facts->compressed)
            bottleneck->fp16 = saved(facts, facts->model / 2);
    } else if (cores_limit(facts)) {
        bottleneck->cause = BOTTLENECK_PROCESSORS;
    }
}

/* The number of loaders that make a batch in the time that a step takes without its data, or one
 * for each free core. The present loaders make one batch in each step. Without loaders, the time of
 * a batch is all of `data`. */
static void judge_loader(const struct bottleneck_facts *facts, double data,
                         struct bottleneck *bottleneck)
{
    double rest = bottleneck->step - data;
    double batch =
        facts->loaders > 0 ? facts->loaders * bottleneck->step : data; /* by one thread */
    int room = facts->cores - facts->threads;
    bottleneck->cause = BOTTLENECK_LOADER;
    bottleneck->cost = data;
    bottleneck->better = rest;
    if (room <= facts->loaders)
        return;
    bottleneck->loaders = rest * room > batch ? (int)ceil(batch / rest) : room;
    bottleneck->better = fmax(rest, batch / bottleneck->loaders);
}

struct bottleneck bottleneck_of(const struct bottleneck_facts *facts)
{
    struct bottleneck bottleneck = {
        .rank = -1, .better = (double)NAN, .fp16 = (double)NAN, .of_model = (double)NAN};
    if (facts->workers == 0 || facts->steps < STATS_INTERVAL_LEAST)
        return bottleneck;
    for (size_t r = 0; r < facts->workers; r++)
        bottleneck.step = fmax(bottleneck.step, facts->ranks[r].step);
    if (!(bottleneck.step > 0))
        return bottleneck;
    double share = least_share * bottleneck.step;
    int last = slowest(facts);
    double late = facts->workers > 1
                      ? own_time(&facts->ranks[last]) - quantile(facts, own_time, 0.5, last)
                      : 0;
    double data = median(facts, own_data), exposed = least(facts, own_exposed);
    double starving = facts->waits ? 0 : median(facts, own_starving);
    bottleneck.cause = BOTTLENECK_COMPUTATION;
    bottleneck.cost = median(facts, own_time) - data;
    if (starving > share && starving >= 0.25 * median(facts, own_time)) {
        bottleneck.cause = BOTTLENECK_PROCESSORS;
        bottleneck.cost = starving;
        bottleneck.starved = true;
    } else if (late > share && late >= exposed && late >= data) {
        bottleneck.cause = BOTTLENECK_RANK;
        bottleneck.rank = last;
        bottleneck.cost = late;
        bottleneck.better = bottleneck.step - late;
    } else if (data > share && data >= exposed) {
        judge_loader(facts, data, &bottleneck);
    } else if (exposed > share) { /* also with one worker, if its server is on another host */
        judge_averaging(facts, &bottleneck);
    }
    return bottleneck;
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

static void add_projection(struct line *line, const struct bottleneck *bottleneck)
{
    line_add(line, " a step would take %.1f ms instead of %.1f", bottleneck->better,
             bottleneck->step);
}

static void describe_link(const struct bottleneck_facts *facts, const struct bottleneck *bottleneck,
                          struct line *line)
{
    char rate[32];
    line_add(line, "%s is at %.0f%% of the link, %s; at ", facts->backend,
             100 * bottleneck->of_model, rate_text(facts->link_bits_per_s, rate));
    line_add(line, "%s", rate_text(facts->faster_bits_per_s, rate));
    add_projection(line, bottleneck);
    if (bottleneck->fp16 > 0)
        line_add(line, "; --compress fp16 would save %.1f ms", bottleneck->fp16);
}

/* The facts about averaging whose cause is not known. */
static void describe_unknown(const struct bottleneck_facts *facts,
                             const struct bottleneck *bottleneck, struct line *line)
{
    char rate[32];
    rate_text(facts->link_bits_per_s, rate);
    if (bottleneck->too_fast > 0)
        line_add(line,
                 "averaging is %.1f times as fast as a link of %s, so --link-rate is not this "
                 "link's rate",
                 bottleneck->too_fast, rate);
    else if (bottleneck->of_model > 0)
        line_add(line, "%s is at %.0f%% of the link, %s", facts->backend,
                 100 * bottleneck->of_model, rate);
    else
        line_add(line, "the links' rate is not known (--link-rate)");
    if (facts->cpu_busy > 0)
        line_add(line, "; cores were %.0f%% busy meanwhile", 100 * facts->cpu_busy);
    if (facts->cpu_busy > CPU_SHARE_LIMITED)
        line_add(line, ", %.0f%% with other processes: measure again without these",
                 100 * facts->cpu_other);
}

const char *bottleneck_describe(const struct bottleneck_facts *facts,
                                const struct bottleneck *bottleneck, char *text, size_t size)
{
    struct line line = line_in(text, size);
    double percent = 100 * bottleneck->cost / bottleneck->step;
    switch (bottleneck->cause) {
    case BOTTLENECK_COMPUTATION:
        line_add(&line, "computation: %.0f%% of a step", percent);
        if (facts->workers > 1)
            line_add(&line, ", averaging is exposed for %.1f ms of %.1f", least(facts, own_exposed),
                     bottleneck->step);
        break;
    case BOTTLENECK_LOADER:
        line_add(&line, "the loader: ranks wait for the next batch for %.0f%% of a step; ",
                 percent);
        if (bottleneck->loaders > 0)
            line_add(&line, "with --data-threads %d", bottleneck->loaders);
        else if (facts->cores > 0)
            line_add(&line,
                     "each of a rank's cores, %d, computes or loads already; with more of them",
                     facts->cores);
        else
            line_add(&line, "without that wait");
        add_projection(&line, bottleneck);
        break;
    case BOTTLENECK_PROCESSORS:
        if (bottleneck->starved)
            line_add(&line,
                     "the processors: ranks that could compute wait for a core for %.0f%% of a "
                     "step",
                     percent);
        else
            line_add(&line,
                     "the processors: averaging is exposed for %.0f%% of a step, and cores were "
                     "%.0f%% busy meanwhile",
                     percent, 100 * facts->cpu_busy);
        break;
    case BOTTLENECK_RANK:
        line_add(&line,
                 "rank %d: the other ranks wait for it for %.0f%% of a step; if it were as fast as "
                 "they are,",
                 bottleneck->rank, percent);
        add_projection(&line, bottleneck);
        break;
    case BOTTLENECK_LINK:
        line_add(&line, "the link: %.0f%% of a step waits for averaging; ", percent);
        describe_link(facts, bottleneck, &line);
        break;
    case BOTTLENECK_SERVER:
        line_add(&line,
                 "the server: %.0f%% of a step waits for averaging, at %.0f%% of the server's "
                 "link; with as many servers as workers",
                 percent, 100 * bottleneck->of_model);
        add_projection(&line, bottleneck);
        break;
    case BOTTLENECK_AVERAGING:
        line_add(&line,
                 "averaging: it is exposed for %.0f%% of a step, and what limits it is not known: ",
                 percent);
        describe_unknown(facts, bottleneck, &line);
        break;
    default:
        line_add(&line, "nothing that is known");
        if (facts->steps < STATS_INTERVAL_LEAST)
            line_add(&line, ": a median needs at least %d steps, found %llu", STATS_INTERVAL_LEAST,
                     (unsigned long long)facts->steps);
        break;
    }
    return text;
}
