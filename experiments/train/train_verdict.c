/* What limits a training: what its ranks have measured, beside what the model of cost says. */
#include <math.h>
#include <stdlib.h>

#include "experiments/train/trainer.h"

/* ms a step on links of so many bits a second: all buckets, one after the other. `latency_ms`: of a
 * message. */
static double model_ms(const struct trainer *t, const struct topology *topology, const int *hosts,
                       double latency_ms, double bits_per_s)
{
    const struct cost_link link = {.latency_s = latency_ms / 1000, .bytes_per_s = bits_per_s / 8};
    const struct cost_formula *formula = t->backend->cost;
    struct comm_options options;
    double ms = 0;
    config_comm_options(t->config, t->backend, &options);
    for (size_t b = 0; b < t->exchange.count; b++) {
        struct cost_shape shape =
            cost_shape_of(formula, topology, hosts, t->exchange.counts[b], &options);
        ms += 1000 * cost_time_s(formula, &shape, &link);
    }
    return isfinite(ms) ? ms : 0;
}

/* The next faster kind of link that is worth it. */
static double faster(double bits_per_s)
{
    static const double rates[] = {1e9, 10e9, 25e9, 100e9, 400e9};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        if (rates[i] >= 2 * bits_per_s)
            return rates[i];
    }
    return 2 * bits_per_s;
}

static void ask_model(const struct trainer *t, struct verdict_facts *facts)
{
    double link = t->config->link_rate;
    const int *hosts = comm_hosts(t->exchange.comm);
    int workers = t->topology.workers;
    struct topology spread;
    if (link <= 0 || facts->workers < 2)
        return;
    facts->link_bits_per_s = link;
    facts->faster_bits_per_s = faster(link);
    facts->model = model_ms(t, &t->topology, hosts, 0, link);
    facts->model_faster = model_ms(t, &t->topology, hosts, 0, facts->faster_bits_per_s);
    facts->latencies = model_ms(t, &t->topology, hosts, 1, link) - facts->model;
    facts->model_spread = facts->model;
    facts->dedicated_servers = t->topology.servers > 0 && t->topology.servers < workers &&
                               t->config->placement == PLACEMENT_DEDICATED;
    if (facts->dedicated_servers &&
        topology_init(&spread, 2 * workers, workers, PLACEMENT_DEDICATED) == STATUS_OK)
        facts->model_spread = model_ms(t, &spread, NULL, 0, link);
}

/* A row's medians count in the run's as much as it has steps. */
static void add_row(struct report *report, const struct verdict_rank *ranks, size_t workers)
{
    double steps = (double)(report->judged_steps += report->interval.steps);
    double share = (double)report->interval.steps / steps;
    for (size_t r = 0; r < workers; r++) {
        struct verdict_rank *of_run = &report->ranks[r];
        of_run->step += share * (ranks[r].step - of_run->step);
        of_run->exposed += share * (ranks[r].exposed - of_run->exposed);
        of_run->data += share * (ranks[r].data - of_run->data);
        of_run->comm += share * (ranks[r].comm - of_run->comm);
        of_run->cpu += share * (ranks[r].cpu - of_run->cpu);
    }
}

enum status train_verdict(struct trainer *t)
{
    enum status status = STATUS_OK;
    struct report *report = &t->report;
    const struct group *group = comm_group(t->exchange.comm);
    size_t workers = (size_t)comm_workers(t->exchange.comm);
    double own[STEP_TIME_KINDS], (*all)[STEP_TIME_KINDS] = calloc(workers, sizeof *all);
    struct verdict_rank *ranks = calloc(workers, sizeof *ranks);
    if (!report->ranks)
        report->ranks = calloc(workers, sizeof *report->ranks);
    if (!all || !ranks || !report->ranks) {
        log_error("no memory for the times of %zu ranks", workers);
        status = STATUS_NO_MEMORY;
        goto out;
    }
    int cores = t->world->cores / t->world->sharing_cpus;
    bool computes_here =
        !t->config->paced && t->config->real_ms == 0 && device_memory_is_host(t->device);
    step_times_own(&report->times, own);
    TRY(world_gather(t->world, group, own, sizeof own, all));
    for (size_t r = 0; r < workers; r++)
        ranks[r] = (struct verdict_rank){.step = all[r][STEP_TIME_ALL],
                                         .exposed = all[r][STEP_TIME_EXPOSED],
                                         .data = all[r][STEP_TIME_DATA],
                                         .comm = all[r][STEP_TIME_COMM],
                                         .cpu = all[r][STEP_TIME_CPU]};
    struct verdict_facts facts = {
        .ranks = ranks,
        .workers = workers,
        .backend = t->backend->name,
        .loaders = (int)t->config->loaders,
        .cores = cores > 1 ? cores : 1,
        .threads = computes_here ? t->threads : 0,
        .waits = !computes_here,
        .compressed = t->config->compress != COMPRESS_NONE,
    };
    ask_model(t, &facts);
    report->verdict = verdict_of(&facts);
    if (report->interval.steps > 0) /* of which it has the times */
        add_row(report, ranks, workers);
    report->facts = facts;
    report->facts.ranks = report->ranks;
    report->run_verdict = verdict_of(&report->facts);
    verdict_describe(&report->facts, &report->run_verdict, report->verdict_text,
                     sizeof report->verdict_text);
out:
    free(all);
    free(ranks);
    return status;
}
